"""Throttling: at most n in an interval of time, and the number omitted in between (LIMIT n PER d)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.int64 import LEAST
from estero.engine.kernels import INT, INT32S, INT64S, UINT, UINT64S, kernel, pool
from estero.engine.store.checks import Arrays, need, taken
from estero.engine.store.hashing import new_table, numbered, table_of
from estero.engine.store.schema import data, new, picked

MOST_COUNTED = (1 << 62) - 1
"""The greatest count."""

_FEWEST_KEYS = 64


@pool
class Intervals(NamedTuple):
    """The current interval of each partition.

    Its first time, as bits (uint64); how many were let through in it, 0 before the first; and how many were
    left out since the last one let through, at most `MOST_COUNTED` (int64).
    """

    opened: NDArray[np.uint64] = data(0)
    given: NDArray[np.int64] = data(0)
    left_out: NDArray[np.int64] = data(0)


class Throttle:
    """Lets at most `most` through in each interval of `length` ticks that one of them opens.

    Partitions have keys of two words. In each of them, items come in order of time.
    """

    def __init__(self, most: int, length: int) -> None:
        self._most, self._length = most, length
        self._keys = new_table(_FEWEST_KEYS, 2)
        self._intervals = new(Intervals, _FEWEST_KEYS)
        self._last = LEAST

    def admitted(
        self, keys: NDArray[np.uint64], times: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many of the counts[i] items at times[i] are let through, and how many were left out before.

        keys uint64[n, 2]; counts are at most `MOST_COUNTED`. The second number counts those of the partition
        that were left out since the last one let through, and is 0 where none is now.
        """
        take, before = np.zeros(times.size, np.int64), np.zeros(times.size, np.int64)
        if times.size:
            numbers = self._numbered(keys)
            stamps = np.ascontiguousarray(times, np.int64).view(np.uint64)
            _admit(
                numbers, stamps, counts, self._intervals, self._most, np.uint64(self._length), take, before
            )
            self._last = max(self._last, int(times.max()))
        return take, before

    @property
    def idle(self) -> bool:
        """Whether there is no state to keep."""
        return not self._remembered().size

    def arrays(self) -> Arrays:
        """The state as arrays, for `resume`."""
        kept = self._remembered()
        opened, given, left_out = (column[kept] for column in self._intervals)
        return {
            "limit_keys": self._keys.words[kept],
            "limit_opened": opened.view(np.int64),
            "limit_given": given,
            "limit_left_out": left_out,
            "limit_last": np.array([self._last]),
        }

    def resume(self, arrays: Arrays) -> None:
        """Takes the state of `arrays` out of them; raises ValueError or KeyError for other arrays."""
        names = ("limit_opened", "limit_given", "limit_left_out")
        opened, given, left_out = (taken(arrays, name, np.int64, None) for name in names)
        keys = taken(arrays, "limit_keys", np.uint64, opened.size, 2)
        last = taken(arrays, "limit_last", np.int64, 1)
        need(given.size == left_out.size == opened.size, "partitions have all numbers")
        need((given >= 0) & (left_out >= 0) & (left_out <= MOST_COUNTED), "counts are not negative")
        self._set(keys, Intervals(opened.view(np.uint64), given, left_out))
        need(self._keys.size[0] == opened.size, "partitions are there once")
        self._last = int(last[0])
        for name in ("limit_keys", "limit_last", *names):
            del arrays[name]

    def _set(self, keys: NDArray[np.uint64], intervals: Intervals) -> None:
        capacity = max(_FEWEST_KEYS, 2 * keys.shape[0])
        self._keys = table_of(np.ascontiguousarray(keys), capacity)
        self._intervals = picked(intervals, slice(keys.shape[0]), capacity)

    def _numbered(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        known = self._keys
        self._keys, numbers = numbered(known, keys)
        if self._keys is not known:
            self._intervals = picked(self._intervals, slice(None), self._keys.words.shape[0])
        return numbers

    def _remembered(self) -> NDArray[np.intp]:
        """The partitions whose interval is not over, or of which items have been left out."""
        used = int(self._keys.size[0])
        opened, given, left_out = (column[:used] for column in self._intervals)
        passed = np.array([self._last]).view(np.uint64) - opened
        return np.flatnonzero((left_out > 0) | ((given > 0) & (passed < np.uint64(self._length))))


@kernel(INT32S, UINT64S, INT64S, Intervals, INT, UINT, INT64S, INT64S)
def _admit(numbers, times, counts, intervals, most, length, take, before):  # type: ignore[no-untyped-def]
    """See `Throttle.admitted`. times uint64: the bits of signed ones, so that differences are distances."""
    opened, given, left_out = intervals
    for place in range(numbers.size):
        count = counts[place]
        if count == 0:
            continue
        number = numbers[place]
        if given[number] == 0 or times[place] - opened[number] >= length:
            opened[number] = times[place]
            given[number] = 0
        some = min(count, most - given[number])
        if some > 0:
            take[place] = some
            before[place] = left_out[number]
            given[number] += some
            left_out[number] = 0
        rest = MOST_COUNTED if count == MOST_COUNTED else count - some
        full = rest > MOST_COUNTED - left_out[number]
        left_out[number] = MOST_COUNTED if full else left_out[number] + rest
