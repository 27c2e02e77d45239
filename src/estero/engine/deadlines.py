"""Absences with a deadline: which events are followed or preceded by certain others within a time.

Events wait here until their deadlines have passed (docs/language.md, "NOT … FOR"). The events of a partition
that wait for the same deadline form a list, newest first: a forbidden event goes through it until it meets
one that is too old, and the list is empty afterwards. So each event enters a list once and leaves it once,
and a deadline takes amortised constant time per event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import BITS_IN_WORD, words_of
from estero.engine.int64 import LEAST
from estero.engine.kernels import FLAG, INT, INT32S, INT64S, Grid, column, kernel, pool
from estero.engine.store.checks import Arrays, need, taken
from estero.engine.store.hashing import new_table, number_rows, table_of
from estero.engine.store.schema import data, grown, new, picked, ref

NOTHING: Final = -1
_FEWEST: Final = 64


@pool
class Asked(NamedTuple):
    """D deadlines as arrays.

    asking uint64[D, W]: the bits that an event loses; word int64[D] and bit uint64[D]: the place of the bit
    of forbidden events; ticks uint64[D]; ahead bool[D].
    """

    asking: Grid[np.uint64]
    word: NDArray[np.int64]
    bit: NDArray[np.uint64]
    ticks: NDArray[np.uint64]
    ahead: NDArray[np.bool_]


@pool
class Waiting(NamedTuple):
    """The waiting events, in order: times uint64[n], words uint64[n, W], next int64[n, D] in their lists."""

    times: NDArray[np.uint64] = data()
    words: Grid[np.uint64] = data(axes=("words",))
    next: Grid[np.int64] = ref("waiting", NOTHING, fill=NOTHING, axes=("deadlines",))


@pool
class Partitions(NamedTuple):
    """For each partition and deadline, the newest event of its list, or the time of the last forbidden event.

    newest int64[p, D], NOTHING where there is none; last uint64[p, D], where seen bool[p, D] is true.
    """

    newest: Grid[np.int64] = ref("waiting", NOTHING, fill=NOTHING, axes=("deadlines",))
    last: Grid[np.uint64] = data(0, axes=("deadlines",))
    seen: Grid[np.bool_] = data(0, axes=("deadlines",))


def asked_of(deadlines: Sequence[tuple[Sequence[int], int, int, bool]], words: int) -> Asked:
    """Deadlines as arrays, from tuples of asking bits, forbidden bit, ticks and whether it looks ahead."""
    masks = [words_of(sum(1 << bit for bit in asking), words)[0] for asking, *_ in deadlines]
    forbidden = np.array([bit for _, bit, _, _ in deadlines], np.int64)
    return Asked(
        np.array(masks, np.uint64).reshape(-1, words),
        forbidden // BITS_IN_WORD,
        (forbidden % BITS_IN_WORD).astype(np.uint64),
        np.array([ticks for _, _, ticks, _ in deadlines], np.uint64),
        np.array([ahead for *_, ahead in deadlines], np.bool_),
    )


class Deadlines:
    """The events of one stream, partitioned by keys of two words, that wait for deadlines.

    Times are ticks in ascending order.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._keys = new_table(_FEWEST, 2)
        words, deadlines = asked.asking.shape[1], asked.ticks.size
        self._partitions = new(Partitions, _FEWEST, deadlines=deadlines)
        self._waiting = new(Waiting, _FEWEST, words=words, deadlines=deadlines)
        self._first = self._last = 0
        self._now = LEAST

    @property
    def held(self) -> int:
        """The number of events that wait."""
        return self._last - self._first

    @property
    def times(self) -> NDArray[np.int64]:
        """The times of the waiting events."""
        return self._waiting.times[self._first : self._last].view(np.int64)

    @property
    def words(self) -> NDArray[np.uint64]:
        """The bits that the waiting events have left; uint64[n, W]."""
        return self._waiting.words[self._first : self._last]

    def enter(
        self,
        keys: NDArray[np.uint64],
        times: NDArray[np.int64],
        words: NDArray[np.uint64],
        *,
        again: bool = False,
    ) -> None:
        """Takes the next events: keys uint64[n, 2], times int64[n], words uint64[n, W].

        Removes bits from them, and from waiting events, as the deadlines say. Removes none if the events are
        entered `again` after a restart.
        """
        count = times.size
        if not count:
            return
        self._ensure_capacity(count)
        here = slice(self._last, self._last + count)
        self._waiting.times[here] = np.ascontiguousarray(times, np.int64).view(np.uint64)
        self._waiting.words[here] = words
        numbers = self._numbered(keys)
        _pass(numbers, self._first, self._last, self._asked, self._waiting, self._partitions, again)
        self._last += count
        self._now = max(self._now, int(times[-1]))  # what waited before a restart is older

    def leave(self, count: int) -> None:
        """Removes the first events."""
        self._first += count

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Keeps only these events, ascending places among the waiting ones; no others wait any longer."""
        self._keep(self._first + rows)

    def remembered(self, time: int) -> Arrays:
        """The part of the past that still matters for events from `time` on, as arrays for `resume`."""
        kept, deadline = np.nonzero(self._near(time))
        return {
            "deadline_keys": self._keys.words[kept],
            "deadline_number": deadline.astype(np.int64),
            "deadline_last": self._partitions.last[kept, deadline].view(np.int64),
        }

    def resume(self, arrays: Arrays) -> None:
        """Takes the state of `remembered` out of the arrays; raises ValueError or KeyError for others."""
        deadline = taken(arrays, "deadline_number", np.int64, None)
        last = taken(arrays, "deadline_last", np.int64, None)
        keys = taken(arrays, "deadline_keys", np.uint64, deadline.size, 2)
        need(last.size == deadline.size, "deadlines have their times")
        need((deadline >= 0) & (deadline < self._asked.ticks.size), "deadlines are those of the query")
        for name in ("deadline_keys", "deadline_number", "deadline_last"):
            del arrays[name]
        if deadline.size:
            numbers = self._numbered(np.ascontiguousarray(keys))
            self._partitions.last[numbers, deadline] = last.view(np.uint64)
            self._partitions.seen[numbers, deadline] = True
            self._now = int(last.max())

    # ---------------------------------------------------------------------------------------- memory

    def _near(self, time: int) -> NDArray[np.bool_]:
        """Whether the last forbidden event still counts at `time`, for each partition and deadline."""
        used = int(self._keys.size[0])
        now = np.array([max(time, self._now)]).view(np.uint64)
        passed = now - self._partitions.last[:used]
        near: NDArray[np.bool_] = self._partitions.seen[:used] & (passed <= self._asked.ticks)
        return near

    def _ensure_capacity(self, count: int) -> None:
        """Makes room for `count` more events: reuses that of removed events if they hold half of it."""
        if self._last + count <= self._waiting.times.size:
            return
        self._keep(np.arange(self._first, self._last))
        if 2 * (self._last + count) > self._waiting.times.size:
            self._waiting = grown(self._waiting, rows=2 * (self._last + count))

    def _keep(self, rows: NDArray[np.intp]) -> None:
        """Keeps only the events at these places; the lists skip the others."""
        place = np.full(self._last, NOTHING, np.int64)
        place[rows] = np.arange(rows.size)
        waiting, used = self._waiting, int(self._keys.size[0])
        _renumber(place, self._first, waiting.next, self._partitions.newest[:used])
        for values in waiting:
            values[: rows.size] = values[rows]
        self._first, self._last = 0, rows.size

    def _numbered(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The numbers of partitions; a full table first drops the partitions without any state."""
        numbers = np.empty(keys.shape[0], np.int32)
        while number_rows(self._keys, keys, numbers, insert=True) < keys.shape[0]:
            self._forget(keys.shape[0])
        return numbers

    def _forget(self, count: int) -> None:
        """Drops the partitions without any state, and leaves capacity for `count` more."""
        used = int(self._keys.size[0])
        waits = (self._partitions.newest[:used] >= self._first).any(1)
        kept = np.flatnonzero(waits | self._near(self._now).any(1))
        capacity = max(_FEWEST, 2 * kept.size + count)
        self._keys = table_of(self._keys.words[kept], capacity)
        self._partitions = picked(self._partitions, kept, capacity)


@kernel(INT32S, INT, INT, Asked, Waiting, Partitions, FLAG)
def _pass(numbers, first, begin, asked, waiting, partitions, again):  # type: ignore[no-untyped-def]
    """Processes the events from place `begin` on, one by one; those before place `first` no longer wait.

    numbers int32[n]: those of their partitions. If events come `again`, they only begin to wait. Invariant:
    the list of a deadline and a partition holds the events that ask for it and came after the last forbidden
    one.
    """
    times, words, following = waiting
    newest, last, seen = partitions
    width = words.shape[1]
    for row in range(numbers.size):
        place, number = begin + row, numbers[row]
        for deadline in range(asked.ticks.size):
            bit = words[place, asked.word[deadline]] >> asked.bit[deadline]
            forbidden = not again and (bit & np.uint64(1)) != np.uint64(0)
            asks = False
            for word in range(width):
                asks |= (words[place, word] & asked.asking[deadline, word]) != np.uint64(0)
            if asked.ahead[deadline]:
                if forbidden:
                    other = newest[number, deadline]
                    while other >= first and times[place] - times[other] <= asked.ticks[deadline]:
                        for word in range(width):
                            words[other, word] &= ~asked.asking[deadline, word]
                        other = following[other, deadline]
                    newest[number, deadline] = NOTHING
                if asks:
                    following[place, deadline] = newest[number, deadline]
                    newest[number, deadline] = place
            elif not again:
                passed = times[place] - last[number, deadline]
                if asks and seen[number, deadline] and passed <= asked.ticks[deadline]:
                    for word in range(width):
                        words[place, word] &= ~asked.asking[deadline, word]
                if forbidden:
                    seen[number, deadline] = True
                    last[number, deadline] = times[place]


@kernel(INT64S, INT, column(np.int64, 2), column(np.int64, 2))
def _renumber(place, first, following, newest):  # type: ignore[no-untyped-def]
    """Removes from the lists what is not kept; place int64[n]: the new place of each event, or NOTHING."""
    deadlines = following.shape[1]
    for deadline in range(deadlines):
        for number in range(newest.shape[0]):
            other = newest[number, deadline]
            while other >= first and place[other] == NOTHING:
                other = following[other, deadline]
            newest[number, deadline] = place[other] if other >= first else NOTHING
        for event in range(place.size - 1, first - 1, -1):
            if place[event] != NOTHING:
                other = following[event, deadline]
                while other >= first and place[other] == NOTHING:
                    other = following[other, deadline]
                following[event, deadline] = place[other] if other >= first else NOTHING
