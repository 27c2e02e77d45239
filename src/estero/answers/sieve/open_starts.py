"""Complex events whose starts may get better ones, with their events: added in batches, taken by age."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from estero.answers.event_store import joined_events
from estero.answers.measures.marked import Integers, occurring
from estero.classify.arrays import array_of, empty_batch
from estero.classify.column_names import place_column
from estero.engine.walk.matches import Matches, chosen, joined, new_matches, sliced

_MANY = 1 << 12
"""The largest number of candidates that are added before they form a part."""
_NONE = np.zeros(0, np.int64)

Choice = Callable[[Matches], Matches]
"""A function that chooses the best of each start, by ascending start."""


class Candidates(NamedTuple):
    """Complex events by ascending start, whose events are given by position, and those events, ascending.

    There may be other events, too.
    """

    matches: Matches
    events: pa.RecordBatch

    @property
    def positions(self) -> Integers:
        """The ascending positions of all events of the complex events."""
        return occurring(self.matches.start, self.matches.end, self.matches.event)

    def values(self, positions: Integers, column: str) -> Integers:
        """The values of a column of the events at these positions."""
        return integers_of(self.events, column)[self._rows(positions)]

    def without_others(self) -> Candidates:
        """The same without other events."""
        positions = self.positions
        if positions.size == self.events.num_rows:
            return self
        return Candidates(self.matches, self.events.take(array_of(self._rows(positions))))

    def part(self, first: int, last: int) -> Candidates:
        """The complex events in the rows first … last - 1, in time linear in their own size."""
        return Candidates(sliced(self.matches, first, last), self.events).without_others()

    def _rows(self, positions: Integers) -> Integers:
        return np.searchsorted(places_of(self.events), positions)


class _Part(NamedTuple):
    """Candidates, the number of them that have been taken, and two ascending columns.

    For each row, these are the stamp of its start and the first end from that row on.
    """

    candidates: Candidates
    gone: int
    stamps: Integers
    first_ends: Integers

    @property
    def size(self) -> int:
        return self.stamps.size - self.gone

    @property
    def rest(self) -> Candidates:
        """The candidates that have not been taken."""
        return self.candidates.part(self.gone, self.stamps.size) if self.gone else self.candidates

    def ended(self, last: int) -> Integers:
        """The starts of candidates that end at `last` or before, and of few others."""
        rows = int(np.searchsorted(self.first_ends, last, "right"))
        return self.candidates.matches.start[self.gone : max(self.gone, rows)]

    def of_starts(self, starts: Integers) -> Matches:
        """The remaining candidates of some ascending starts."""
        matches = self.candidates.matches
        low = int(np.searchsorted(matches.start, starts[0]))
        high = int(np.searchsorted(matches.start, starts[-1], "right"))
        near = sliced(matches, low, high)
        return chosen(near, np.flatnonzero(np.isin(near.start, starts)))


class OpenStarts:
    """Candidates in parts of descending size, so that each of n is joined with others at most O(log n) times.

    The oldest are taken without looking at the others. `stamp` is the column with the age of a start, and
    ascends with the position.
    """

    def __init__(self, schema: pa.Schema, stamp: str, best: Choice) -> None:
        self._schema, self._stamp, self._best = schema, stamp, best
        self._parts: list[_Part] = []
        self._added: list[Candidates] = []
        self._size = 0

    def add(self, candidates: Candidates) -> None:
        """Adds the best of some starts, some of which may already be known."""
        if not candidates.matches.start.size:
            return
        self._added.append(candidates)
        self._size += candidates.matches.start.size
        if self._size > _MANY:
            self._settle()

    def _settle(self) -> None:
        """Makes a part of the added candidates, and joins parts that are too small for their places."""
        if not self._added:
            return
        added, self._added, self._size = self._added, [], 0
        self._append(self._joined(added))
        while len(self._parts) > 1 and self._parts[-2].size <= 2 * self._parts[-1].size:
            self._join(self._parts[-2:])

    def all(self) -> Candidates:
        """The best of all starts."""
        self._settle()
        if len(self._parts) > 1 or any(part.gone for part in self._parts):
            self._join(self._parts)
        return self._parts[0].candidates if self._parts else self._joined([])

    def clear(self) -> None:
        """Removes all candidates."""
        self._parts.clear()
        self._added, self._size = [], 0

    def take(self, before: int) -> Candidates:
        """Removes and returns the best of those that start with a stamp below `before`."""
        self._settle()
        old = []
        for place, part in enumerate(self._parts):
            if part.stamps[part.gone] < before:
                last = int(np.searchsorted(part.stamps, before))
                old.append(part.candidates.part(part.gone, last))
                self._parts[place] = part._replace(gone=last)
        self._parts = [_shrunk(part) for part in self._parts if part.size]
        return self._joined(old)

    def first_end(self, last: int) -> int:
        """The first end of the best of all starts, or any end after `last`."""
        self._settle()
        starts = np.unique(np.concatenate([part.ended(last) for part in self._parts] or [_NONE]))
        if not starts.size:
            return last + 1
        return int(self._best(joined([part.of_starts(starts) for part in self._parts])).end.min())

    @property
    def empty(self) -> bool:
        """Whether there are no candidates."""
        return not self._parts and not self._added

    def _append(self, candidates: Candidates) -> None:
        if candidates.matches.start.size:
            stamps = candidates.values(candidates.matches.start, self._stamp)
            first_ends = np.minimum.accumulate(candidates.matches.end[::-1])[::-1]
            self._parts.append(_Part(candidates, 0, stamps, first_ends))

    def _join(self, last: Sequence[_Part]) -> None:
        """Joins the last parts into one."""
        one = self._joined([part.rest for part in last])
        del self._parts[len(self._parts) - len(last) :]
        self._append(one)

    def _joined(self, parts: Sequence[Candidates]) -> Candidates:
        if len(parts) == 1:
            return parts[0]
        return together(parts, self._schema, self._best)


def _shrunk(part: _Part) -> _Part:
    """The part without the candidates taken, if those are the majority."""
    if 2 * part.gone <= part.stamps.size:
        return part
    return _Part(part.rest, 0, part.stamps[part.gone :], part.first_ends[part.gone :])


def together(parts: Sequence[Candidates], schema: pa.Schema, best: Choice) -> Candidates:
    """The best of all parts, whose events have a schema."""
    if not parts:
        return Candidates(new_matches(0, 0), empty_batch(schema))
    events = joined_events([part.events for part in parts])
    _, rows = np.unique(places_of(events), return_index=True)
    matches = best(joined([part.matches for part in parts]))
    return Candidates(matches, events.take(array_of(rows))).without_others()


def places_of(events: pa.RecordBatch) -> Integers:
    """The indexes of positions of events; if an event has several rows, those of all."""
    return integers_of(events, place_column(events.schema.names))


def integers_of(events: pa.RecordBatch, name: str) -> Integers:
    """A column of integers as an array."""
    numbers: Integers = events.column(name).to_numpy(zero_copy_only=False)
    return numbers
