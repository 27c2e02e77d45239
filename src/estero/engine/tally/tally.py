"""Counts by end for a plain automaton, without reading the compact set: in words, and beyond.

The tally remembers the class, partition and window of each event that still matters. Partitions are laid one
after the other in a line, where the window of an event never reaches back into another partition: so all are
counted at once. Counting goes through the window before the requested ends; so request many at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.runs.tables import TableBuilder
from estero.engine.tally.forward_count import ForwardCounts
from estero.engine.tally.long_counts import LongCounts
from estero.engine.tally.sliding_count import Line, count_ends, new_window
from estero.engine.tally.sliding_sums import count_by_sums, order_of
from estero.engine.walk.counter import FITS
from estero.engine.walk.matches import offsets_of, places_of

_FEWEST = 1 << 16
"""The number of events that are counted at once, or as many as the window has before them."""
_LONGEST = 1 << 18
"""The most events of a window for which sums are kept."""
_FEW = 32
"""The number of events of a partition in the window below which a tally is slow: measured with 10 of them, it
took 300 ns an event more.
"""


class Stretch(NamedTuple):
    """Events as they came: class int32[n], partition uint64[n, 2], first event in the window int64[n]."""

    event_class: NDArray[np.int32]
    partition: NDArray[np.uint64]
    oldest: NDArray[np.int64]

    def part(self, rows: slice) -> Stretch:
        """A slice of the events."""
        return Stretch(self.event_class[rows], self.partition[rows], self.oldest[rows])


class _Laid(NamedTuple):
    """A line of n events and its partitions; key int64[n], ascending: partition × n + number of event."""

    line: Line
    key: NDArray[np.int64]
    partitions: int

    def places(self, number: int) -> NDArray[np.int64]:
        """The place in each partition at which the events from `number` on begin."""
        return np.searchsorted(self.key, np.arange(self.partitions) * self.key.size + number)

    def numbers(self, places: NDArray[np.int64] | slice) -> NDArray[np.int64]:
        """The numbers of the events."""
        return self.key[places] % self.key.size


class _Counted(NamedTuple):
    """The number of complex events at each event, uint64, without some places (from, to) of the line."""

    exact: NDArray[np.uint64]
    long: list[tuple[int, int]]


class Tally:
    """Exact counts of the complex events that end at the events of one stream, batch after batch."""

    def __init__(self, builder: TableBuilder, *, windowed: bool = True) -> None:
        self._builder = builder
        self._forward = None if windowed else ForwardCounts(builder)
        self.scattered: bool = False
        """Whether partitions have few events in a window, so that reading the compact set is faster."""
        self._base = 0
        self._stretches: list[Stretch] = []
        self._size, self._capacity = 0, _FEWEST
        self._laid: _Laid | None = None
        self._long: LongCounts | None = None
        self._partitioned = False
        self._due: tuple[int, int] | None = None

    def append(self, stretch: Stretch, first: int, partitions: int) -> None:
        """Appends the next events, from number `first` on; keeps only those ends before it that are due.

        `partitions` is their number, 0 without keys.
        """
        self._stretches.append(stretch)
        self._size += stretch.oldest.size
        if stretch.oldest.size:
            reach = self._base + self._size - int(stretch.oldest[-1])
            self.scattered = reach < _FEW * partitions
        self._laid = None
        self._partitioned = partitions > 0
        if self._partitioned:
            self._long = None  # places in the line have changed
        if self._size > self._capacity:
            self._join(first if self._due is None else self._due[0])

    def _join(self, end: int) -> Stretch:
        """All events in one stretch, without those that no window from `end` on reaches."""
        event_class, partition, oldest = (
            np.concatenate([getattr(stretch, name) for stretch in self._stretches])
            for name in Stretch._fields
        )
        dropped = int(oldest[end - self._base]) - self._base
        joined = Stretch(event_class[dropped:], partition[dropped:], oldest[dropped:])
        self._stretches = [joined]
        self._base += dropped
        self._size = joined.oldest.size
        self._capacity = max(_FEWEST, 2 * self._size)
        return joined

    def add(self, first: int, last: int) -> int:
        """Counts the ends first … last - 1, now or later; returns the total of those counted now.

        Ranges come one after the other; at ends between them there are no complex events.
        """
        self._due = (first if self._due is None else self._due[0]), last
        return self.rest() if last - self._due[0] >= max(_FEWEST, self._due[0] - self._base) else 0

    def rest(self) -> int:
        """The total of the ends that are still to be counted."""
        if self._due is None:
            return 0
        first, last = self._due
        self._due = None
        exact, long = self._counted(first, last)
        total = _sum(exact) + sum(self._long_total(places, last) for places in long)
        if total < FITS:
            self._long = None
        return total

    def before(self, ends: NDArray[np.int64]) -> Callable[[int], int]:
        """The number of complex events at the first k of these ascending, complete ends, by k."""
        before = self._before(ends)
        if self._long is not None and before(ends.size) < FITS:
            self._long = None
            before = self._before(ends)
        return before

    def _before(self, ends: NDArray[np.int64]) -> Callable[[int], int]:
        """As `before`, in words or not."""
        first = int(ends[0])
        exact, long = self._counted(first, int(ends[-1]) + 1)
        short = list(accumulate(exact[ends - first].tolist(), initial=0))

        def total(k: int) -> int:
            number: int = short[k]
            return number + sum(self._long_total(places, int(ends[k - 1]) + 1) for places in long if k)

        return cache(total) if long else short.__getitem__

    def _counted(self, first: int, last: int) -> _Counted:
        """Counts the ends first … last - 1, partition by partition.

        Without keys, counts that were too long for words are expected to be so again, and words are not
        tried.
        """
        if (forward := self._counted_forward(first, last)) is not None:
            return _Counted(forward, [])
        laid = self._laid_out(first)
        low, high = (laid.places(number - self._base) for number in (first, last))
        low, high = low[low < high], high[low < high]
        if self._long is not None and not self._partitioned:
            return _Counted(
                np.zeros(last - first, np.uint64), list(zip(low.tolist(), high.tolist(), strict=True))
            )
        places = places_of(low, high - low)
        oldest = laid.line.oldest
        counted = np.zeros(last - first, np.uint64)
        if self._counted_by_sums(laid, low, high, exact := np.zeros(places.size, np.uint64)):
            counted[laid.numbers(places) + self._base - first] = exact
            return _Counted(counted, [])
        rows = min(int((places - oldest[places]).max()), int((oldest[high - 1] - oldest[low]).max()) + 1)
        window = new_window(max(rows, 1), 1, self._builder.states)
        rough = np.zeros(places.size)
        count_ends(self._builder.tables, laid.line, low, high, 0, window, exact, rough)
        short = np.logical_and.reduceat(rough < FITS, offsets_of(high - low)[:-1])
        counted[laid.numbers(places) + self._base - first] = exact * np.repeat(short, high - low)
        return _Counted(counted, list(zip(low[~short].tolist(), high[~short].tolist(), strict=True)))

    def _counted_by_sums(
        self, laid: _Laid, low: NDArray[np.int64], high: NDArray[np.int64], exact: NDArray[np.uint64]
    ) -> bool:
        """Fills `exact` for these ranges of the line, if sums are possible and words are long enough."""
        places = places_of(low, high - low)
        rows = int((places - laid.line.oldest[places]).max(initial=0)) + 1
        order = order_of(self._builder.tables, self._builder.states) if rows <= _LONGEST else None
        if order is None or not order.fits(rows):
            return False
        count_by_sums(self._builder.tables, order, laid.line, low, high, rows, exact)
        return True

    def _counted_forward(self, first: int, last: int) -> NDArray[np.uint64] | None:
        """The number of complex events of the ends first … last - 1; None with a window, or beyond words."""
        forward = self._forward
        if forward is not None and first >= forward.first:
            if last > forward.next:
                forward.push(*self._between(forward.next, last))
            if first >= forward.first:
                exact, rough = forward.between(first, last)
                if bool((rough < FITS).all()):
                    return exact
        self._forward = None
        return None

    def _between(self, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
        """Classes and partitions of the events first … last - 1."""
        parts, begin = [], self._base
        for stretch in self._stretches:
            parts.append(stretch.part(slice(max(first - begin, 0), max(last - begin, 0))))
            begin += stretch.oldest.size
        return (
            np.concatenate([part.event_class for part in parts]),
            np.concatenate([part.partition for part in parts]),
        )

    def _long_total(self, places: tuple[int, int], last: int) -> int:
        """The ends before event number `last` at these places of the line, which are of one partition."""
        laid, states, tables = self._laid_out(last), self._builder.states, self._builder.tables
        base = 0 if self._partitioned else self._base
        if self._long is None or self._long.states != states:
            self._long = LongCounts(tables, states, laid.line, base)
        else:
            self._long.go_on(tables, laid.line, base)
        low, high = places
        until = np.searchsorted(laid.numbers(slice(low, high)), last - self._base)
        return self._long.total(base + low, base + low + int(until))

    def _laid_out(self, end: int) -> _Laid:
        """The events in order of their partitions; those before the window of `end` may be missing."""
        if self._laid is None:
            event_class, partition, oldest = self._join(end)
            count = event_class.size
            if not self._partitioned:
                line = Line(event_class, np.maximum(oldest - self._base, 0))
                self._laid = _Laid(line, np.arange(count), 1)
                return self._laid
            order = np.lexsort(partition.T)
            partition = partition[order]
            section = np.concatenate(([0], np.cumsum((partition[1:] != partition[:-1]).any(axis=1))))
            key = section * count + order
            places = np.searchsorted(key, section * count + np.maximum(oldest[order] - self._base, 0))
            self._laid = _Laid(Line(event_class[order], places), key, int(section[-1]) + 1)
        return self._laid


def _sum(words: NDArray[np.uint64]) -> int:
    """The exact sum."""
    low, high = words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)
    return int(low.sum()) + (int(high.sum()) << 32)
