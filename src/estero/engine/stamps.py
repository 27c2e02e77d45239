"""Distances of stamps, and the stamps that a window reaches: the only place where the engine subtracts them.

Stamps are times or positions: ascending 64-bit integers. The distance of two is less than 2^64, and so exact
as an unsigned integer: two's complement wraps around to just that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.engine.int64 import count_before
from estero.engine.kernels import INT, INT64S, UINT, UINT64S, kernel

_LEAST_CAPACITY = 1 << 10


class Stamps:
    """The stamps of the events that a window can still reach, by sequence number.

    `width` is the length of the window, None if there is no window: then all events are reached, and no
    stamps are kept. `oldest` is the earliest event reached.
    """

    def __init__(self, width: int | None) -> None:
        self._width = width
        self._kept = np.empty(0, np.int64)
        self._first = self._end = 0
        self.oldest: int = 0

    def ahead(self, stamps: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The kept stamps followed by these, and the earliest event in the window of each of these.

        Nothing changes until they are passed to `extend`.
        """
        if self._width is None:
            return self._kept, np.zeros(stamps.size, np.int64)
        kept = self._reached()
        together = np.concatenate((kept, stamps))
        return together, window_starts(together, kept.size, self._width, self.oldest)

    def extend(self, together: NDArray[np.int64], starts: NDArray[np.int64]) -> None:
        """Appends the events that were passed to `ahead`."""
        self._kept, self._first = together, self.oldest
        self._end = self._first + together.size
        self.oldest = int(starts[-1])

    def append(self, stamp: int) -> int:
        """Appends one event, and returns the earliest event in its window."""
        if self._width is None:
            return 0
        if self._end - self._first == self._kept.size:
            kept = self._reached()
            self._kept = np.empty(max(_LEAST_CAPACITY, 2 * kept.size), np.int64)
            self._kept[: kept.size] = kept
            self._first = self.oldest
        self._kept[self._end - self._first] = stamp
        self._end += 1
        place, least = self.oldest - self._first, stamp - self._width
        while self._kept.item(place) < least:
            place += 1
        self.oldest = self._first + place
        return self.oldest

    def of(self, events: NDArray[np.int64]) -> NDArray[np.int64]:
        """The stamps of events in reach; events out of reach that are still named get the earliest stamp."""
        return self._kept[np.maximum(events - self._first, 0)]

    def expire(self, stamp: int) -> None:
        """Declares that no event before `stamp` will come: events too long before it are out of reach."""
        if self._width is not None:
            self.oldest += out_of_reach(self._reached(), stamp, self._width)

    def restart(self, stamps: NDArray[np.int64]) -> None:
        """Keeps only these stamps, whose events are numbered from 0."""
        self._kept, self._first, self._end, self.oldest = stamps, 0, stamps.size, 0

    def _reached(self) -> NDArray[np.int64]:
        return self._kept[self.oldest - self._first : self._end - self._first]


def window_starts(stamps: NDArray[np.int64], first: int, width: int, number: int = 0) -> NDArray[np.int64]:
    """For each stamp from place `first` on, the number of the earliest one that is at most `width` before.

    The stamp at place 0 has the number `number`. stamps int64, ascending; 0 <= width < 2^64. Returns
    int64[stamps.size - first].
    """
    starts = np.empty(stamps.size - first, np.int64)
    unsigned = np.ascontiguousarray(stamps, np.int64).view(np.uint64)
    _window_starts(unsigned, first, np.uint64(width), number, starts)
    return starts


@kernel(UINT64S, INT, UINT, INT, INT64S)
def _window_starts(stamps, first, width, number, starts):  # type: ignore[no-untyped-def]
    """See `window_starts`. stamps uint64: the bits of the signed ones, so that differences are distances."""
    oldest = 0
    for place in range(first, stamps.size):
        while stamps[place] - stamps[oldest] > width:
            oldest += 1
        starts[place - first] = oldest + number


def out_of_reach(stamps: NDArray[np.int64], stamp: int, width: int) -> int:
    """The number of stamps, which ascend, that are more than `width` before `stamp`."""
    return count_before(stamps, stamp - width)
