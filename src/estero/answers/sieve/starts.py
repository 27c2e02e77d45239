"""LONGEST and SHORTEST among complex events that are listed: one of each start, as soon as it is known.

The one that ends last is known when the window of the start is over, the one that ends first at once. What
DISJOINT leaves depends on earlier starts that may still be open, which nothing here tells: it waits, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.event_store import EventStore
from estero.answers.measures.marked import Integers, Mask, occurring
from estero.answers.sieve.strategies import strategic
from estero.classify.column_names import KEYS, POSITION, TIME
from estero.engine.disjoint import Disjoint
from estero.engine.int64 import saturated
from estero.engine.store.checks import Arrays, need, within
from estero.engine.store.checks import taken as array_of
from estero.engine.walk.matches import Matches, chosen, joined, new_matches, taken
from estero.language.tree.query import Consume, Strategy
from estero.plan.plan import Plan

_FEW = 1 << 12
_NONE = new_matches(0, 0)


class Decided(NamedTuple):
    """Complex events by end and start; they count their events by the rows of `store`.

    position int64[m]: the stream position of each end.
    """

    matches: Matches
    store: EventStore
    position: Integers


class Starts:
    """Of each start the complex events with the last end, or the first, of the support that NEXT chooses.

    `events` is the schema of classified events. Here they are told by their positions in the stream, which no
    restart changes, and kept apart from others. With `ordered` what is decided is given in order of its end,
    else when `decided` is asked. Only starts at some positions are `wanted` (int64, ascending), all where it
    is None. Of a plan for partial matches what NEXT chooses of all complex events of a start is kept,
    wherever it ends.
    """

    def __init__(
        self, plan: Plan, events: pa.Schema, *, ordered: bool, wanted: Integers | None = None
    ) -> None:
        self.wanted = wanted
        self._best_per_start = plan.best_per_start
        self._longest = plan.strategy is Strategy.LONGEST
        self._disjoint = Disjoint() if plan.tree.disjoint else None
        self._partition_columns = partition_columns(plan)
        self._width = None if plan.window is None else plan.window.length
        self._stamp = POSITION if plan.by_position else TIME
        self._limit = None if plan.limit is None else plan.limit.per_end
        self._at_once = not (self._longest or self._best_per_start or plan.tree.disjoint)
        self._ordered = ordered or (self._limit is not None and self._longest)
        self._store = EventStore(events, self._partition_columns)
        self._open = self._waiting = _NONE
        self._completed = np.zeros((0, 2), np.int64)
        self._added: list[Matches] = []
        self._size = 0
        self._events: list[pa.RecordBatch] = []

    def wants(self, starts: Integers) -> Mask:
        """Which of these positions of starts are wanted."""
        if self.wanted is None or not self.wanted.size:
            return np.full(starts.size, self.wanted is None)
        places = np.minimum(np.searchsorted(self.wanted, starts), self.wanted.size - 1)
        return np.asarray(self.wanted[places] == starts)

    def add(self, matches: Matches, store: EventStore) -> None:
        """Takes complex events, with the sequence numbers that their events have in `store`."""
        if self.wanted is not None:
            start = _numbers(store.take(matches.start, [POSITION]), POSITION)
            matches = chosen(matches, np.flatnonzero(self.wants(start)))
        if not matches.start.size:
            return
        best = self._best(matches)
        sequence = occurring(best.start, best.end, best.event)
        events = store.take(sequence)
        position = _numbers(events, POSITION)
        told = _told_by(best, sequence, position)
        if self._completed.size:
            told = chosen(told, np.flatnonzero(~np.isin(told.start, self._completed[:, 0])))
        self._added.append(told)
        self._events.append(events)
        self._size += told.start.size
        if self._size > 2 * self._open.start.size + _FEW:
            self._settle()

    def decided(self, until: int | None) -> Decided | None:
        """What is given as no event with a stamp below `until` comes any more, or none at all (None)."""
        if until is not None and self._width is None and not self._at_once:
            return None
        self._settle()
        oldest = None if until is None or self._width is None else saturated(until - self._width)
        passed = np.ones(self._open.start.size, np.bool_)
        if self._at_once:
            self._complete(self._open.start, oldest)
        elif oldest is not None:
            passed = self._values(self._open.start, self._stamp) < oldest
        ended = self._apart(chosen(self._open, np.flatnonzero(passed)))
        self._open = chosen(self._open, np.flatnonzero(~passed))
        if self._disjoint is not None and oldest is not None:
            self._disjoint.forget(oldest)
        ended = joined([self._waiting, ended])
        ready = np.ones(ended.start.size, np.bool_)
        if self._ordered and self._open.start.size:
            ready = ended.end < self._open.end.min()
        self._waiting = chosen(ended, np.flatnonzero(~ready))
        places = np.flatnonzero(ready)
        ended = taken(ended, places[np.lexsort((ended.start[places], ended.end[places]))])
        if self._limit is not None:
            place = np.arange(ended.end.size) - np.searchsorted(ended.end, ended.end)
            ended = chosen(ended, np.flatnonzero(place < self._limit))
        return self._given(ended) if ended.start.size else None

    @property
    def idle(self) -> bool:
        """Whether nothing has to be remembered."""
        open_or_waiting = self._open.start.size + self._waiting.start.size + len(self._added)
        return not open_or_waiting and (self._disjoint is None or self._disjoint.idle)

    # --------------------------------------------------------------------------------- choosing

    def _best(self, matches: Matches) -> Matches:
        """The best of each start, by ascending start."""
        order = np.argsort(matches.start, kind="stable")
        start, end = matches.start[order], matches.end[order]
        begins = np.flatnonzero(np.diff(start, prepend=-1))
        best = (np.maximum if self._longest else np.minimum).reduceat(end, begins)
        of_best = end == np.repeat(best, np.diff([*begins.tolist(), start.size]))
        of_best |= self._best_per_start
        candidates = taken(matches, order[of_best])
        contested = np.flatnonzero(np.isin(candidates.start, _repeated(candidates.start)))
        if not contested.size:
            return candidates
        rivals = chosen(candidates, contested)
        keep = np.ones(candidates.start.size, np.bool_)
        keep[contested] = False
        keep[contested[strategic(Strategy.NEXT, rivals._replace(end=rivals.start))]] = True
        return chosen(candidates, np.flatnonzero(keep))

    def _complete(self, starts: Integers, oldest: int | None) -> None:
        """Remembers starts whose first end is given, as long as they may have others."""
        stamped = np.column_stack((starts, self._values(starts, self._stamp)))
        completed = np.concatenate((self._completed, stamped))
        self._completed = completed if oldest is None else completed[completed[:, 1] >= oldest]

    def _settle(self) -> None:
        """Chooses among what was added, and lets events go that nothing needs."""
        if self._added:
            self._open = self._best(joined([self._open, *self._added]))
            self._added, self._size = [], 0
        kept = (self._open, self._waiting)
        needed = occurring(
            *(part for matches in kept for part in (matches.start, matches.end, matches.event))
        )
        self._events = [self._rows(needed)]

    def _rows(self, positions: Integers) -> pa.RecordBatch:
        """The events at these positions."""
        events = pa.Table.from_batches(self._events, schema=self._store.schema).combine_chunks()
        known, first = np.unique(_numbers(events, POSITION), return_index=True)
        rows = first[np.searchsorted(known, positions)]
        batches = events.take(pa.array(rows)).combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=self._store.schema)

    def _values(self, positions: Integers, column: str) -> Integers:
        """The values of a column of the events at these positions."""
        (events,) = self._events
        return _numbers(events, column)[np.searchsorted(_numbers(events, POSITION), positions)]

    def _apart(self, matches: Matches) -> Matches:
        """The complex events that DISJOINT leaves."""
        if self._disjoint is None or not matches.start.size:
            return matches
        keys = np.zeros((matches.start.size, 2), np.uint64)
        for place, name in enumerate(self._partition_columns):
            keys[:, place] = self._values(matches.start, name).view(np.uint64)
        ends = np.column_stack((matches.end, self._values(matches.end, self._stamp)))
        return chosen(matches, np.flatnonzero(self._disjoint.kept(keys, matches.start, ends)))

    def _given(self, matches: Matches) -> Decided:
        needed = occurring(matches.start, matches.end, matches.event)
        store = EventStore(self._store.schema, self._partition_columns)
        store.restart(self._rows(needed))
        position = matches.end
        return Decided(_told_by(matches, needed, np.arange(needed.size)), store, position)

    # ------------------------------------------------------------------- stopping and going on

    def arrays(self) -> tuple[Arrays, pa.RecordBatch]:
        """The state to be kept, for `resume`."""
        self._settle()
        arrays = {} if self._disjoint is None else self._disjoint.arrays()
        for prefix, matches in (("open", self._open), ("waiting", self._waiting)):
            arrays |= {f"{prefix}_{name}": array for name, array in matches._asdict().items()}
        arrays["completed_starts"] = self._completed
        return arrays, self._events[0]

    def resume(self, arrays: Arrays, events: pa.RecordBatch, marks: int) -> None:
        """Takes what `arrays` gave out of them; raises ValueError or KeyError for other arrays."""
        need(events.schema.equals(self._store.schema), "the columns of events are the same")
        positions = _numbers(events, POSITION)
        need(np.diff(positions) > 0, "events are in order")
        if self._disjoint is not None:
            self._disjoint.resume(arrays)
        self._open, self._waiting = (_read(arrays, name, positions, marks) for name in ("open", "waiting"))
        need(np.diff(self._open.start) >= 0, "candidates are by start")
        self._completed = array_of(arrays, "completed_starts", np.int64, None, 2)
        del arrays["completed_starts"]
        self._events = [events]


def partition_columns(plan: Plan) -> tuple[str, ...]:
    """The columns that identify a partition, for LIMIT … PER, DISJOINT, absences and CONSUME BY."""
    compared = any(deadline.compared for deadline in plan.deadlines)
    looks = plan.interval is not None or plan.tree.disjoint or compared
    looks = looks or plan.cut_by is Consume.PARTITION
    return KEYS if looks and plan.shown_keys else ()


def _repeated(ascending: Integers) -> Integers:
    """The values that are there more than once."""
    repeated: Integers = ascending[1:][ascending[1:] == ascending[:-1]]
    return repeated


def _told_by(matches: Matches, old: Integers, new: Integers) -> Matches:
    """The same complex events, with new numbers in place of the ascending old ones of their events."""
    start, end, event = (
        new[np.searchsorted(old, positions)] for positions in (matches.start, matches.end, matches.event)
    )
    return matches._replace(start=start, end=end, event=event)


def _read(arrays: Arrays, prefix: str, positions: Integers, marks: int) -> Matches:
    """Complex events read from arrays, checked to name only events and marks that exist."""
    start, end = (array_of(arrays, f"{prefix}_{name}", np.int64, None) for name in ("start", "end"))
    event = array_of(arrays, f"{prefix}_event", np.int64, None)
    offsets = array_of(arrays, f"{prefix}_offsets", np.int64, start.size + 1)
    event_marks = array_of(arrays, f"{prefix}_marks", np.int32, event.size)
    within(event_marks, 0, marks, "marks")
    need(end.size == start.size, "each start has an end")
    need((offsets[0] == 0, offsets[-1] == event.size), "all marks are of some complex event")
    need(np.diff(offsets) >= 0, "marks are in order")
    for stamps in (start, end, event):
        need(np.isin(stamps, positions), "each event is there")
    for name in Matches._fields:
        del arrays[f"{prefix}_{name}"]
    return Matches(start, end, offsets, event, event_marks)


def _numbers(events: pa.RecordBatch | pa.Table, name: str) -> NDArray[np.int64]:
    column = events.column(name)
    numbers: NDArray[np.int64] = (
        column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    )
    return numbers
