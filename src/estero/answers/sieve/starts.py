"""LONGEST and SHORTEST among enumerated complex events: one for each start, as soon as it is known.

The one that ends last is known when the window of the start is over, the one that ends first at once.
DISJOINT depends on earlier starts that may still be open, which are not known here: it waits, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from estero.answers.event_store import EventStore
from estero.answers.measures.marked import Integers, Mask, occurring
from estero.answers.sieve.open_starts import Candidates, OpenStarts, integers_of, places_of, together
from estero.answers.sieve.strategies import strategic
from estero.classify.arrays import empty_batch
from estero.classify.column_names import KEYS, POSITION, TIME, place_column
from estero.engine.disjoint import Disjoint
from estero.engine.int64 import saturated
from estero.engine.store.checks import Arrays, need, within
from estero.engine.store.checks import taken as array_of
from estero.engine.walk.matches import Matches, chosen, new_matches, taken
from estero.language.tree.query import Consume, Strategy
from estero.plan.plan import Plan


class Decided(NamedTuple):
    """Complex events by end and start, whose events are given by rows of `store`.

    position int64[m]: the stream position of each end.
    """

    matches: Matches
    store: EventStore
    position: Integers


class Starts:
    """For each start the complex events with the last end, or the first, with the support that NEXT chooses.

    `events` is the schema of classified events. Here they are identified by their positions in the stream,
    which no restart changes, and kept apart from others. With `ordered`, decided complex events are given in
    order of their ends, else when `decided` is called. Only starts at the positions `wanted` (int64,
    ascending) count, or all if it is None. For a plan of partial matches, NEXT's choice among all complex
    events of a start is kept, wherever it ends.
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
        self._place = place_column(events.names)
        self._limit = None if plan.limit is None else plan.limit.per_end
        self._at_once = not (self._longest or self._best_per_start or plan.tree.disjoint)
        self._ordered = ordered or (self._limit is not None and self._longest)
        self._store = EventStore(events, self._partition_columns)
        self._open = OpenStarts(self._store.schema, self._stamp, self._best)
        self._waiting = Candidates(new_matches(0, 0), empty_batch(self._store.schema))
        self._completed = np.zeros((0, 2), np.int64)

    def wants(self, starts: Integers) -> Mask:
        """Whether each of these positions of starts is wanted."""
        if self.wanted is None or not self.wanted.size:
            return np.full(starts.size, self.wanted is None)
        places = np.minimum(np.searchsorted(self.wanted, starts), self.wanted.size - 1)
        return np.asarray(self.wanted[places] == starts)

    def add(self, matches: Matches, store: EventStore) -> None:
        """Adds complex events, whose events have these sequence numbers in `store`."""
        if self.wanted is not None:
            start = integers_of(store.take(matches.start, [self._place]), self._place)
            matches = chosen(matches, np.flatnonzero(self.wants(start)))
        if not matches.start.size:
            return
        best = self._best(matches)
        sequence = occurring(best.start, best.end, best.event)
        events = store.take(sequence)
        placed = _renumbered(best, sequence, places_of(events))
        if self._completed.size:
            placed = chosen(placed, np.flatnonzero(~np.isin(placed.start, self._completed[:, 0])))
        self._open.add(Candidates(placed, events))

    def decided(self, until: int | None) -> Decided | None:
        """The complex events decided once no events with a stamp below `until` (None: none at all) come."""
        if until is not None and self._width is None and not self._at_once:
            return None
        oldest = None if until is None or self._width is None else saturated(until - self._width)
        passed = self._passed(oldest)
        if self._at_once:
            self._complete(passed, oldest)
        ended = self._apart(passed)
        if self._disjoint is not None and oldest is not None:
            self._disjoint.forget(oldest)
        if self._waiting.matches.start.size:
            ended = together([self._waiting, ended], self._store.schema, lambda matches: matches)
        given, self._waiting = self._ready(ended)
        return self._given(given) if given.matches.start.size else None

    def _passed(self, oldest: int | None) -> Candidates:
        """The complex events of starts that get no better ones."""
        if not self._at_once and oldest is not None:
            return self._open.take(oldest)
        passed = self._open.all()
        self._open.clear()
        return passed

    def _ready(self, ended: Candidates) -> tuple[Candidates, Candidates]:
        """The complex events to give, by end and start, and those that wait for open starts to end."""
        matches, waiting = ended.matches, np.zeros(0, np.int64)
        places = np.arange(matches.start.size)
        if self._ordered and places.size and not self._open.empty:
            ready = matches.end < self._open.first_end(int(matches.end.max()))
            places, waiting = np.flatnonzero(ready), np.flatnonzero(~ready)
        given = taken(matches, places[np.lexsort((matches.start[places], matches.end[places]))])
        if self._limit is not None:
            place = np.arange(given.end.size) - np.searchsorted(given.end, given.end)
            given = chosen(given, np.flatnonzero(place < self._limit))
        rest = Candidates(taken(matches, waiting), ended.events).without_others()
        return Candidates(given, ended.events), rest

    @property
    def idle(self) -> bool:
        """Whether there is nothing to remember."""
        open_or_waiting = not self._open.empty or self._waiting.matches.start.size
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

    def _complete(self, given: Candidates, oldest: int | None) -> None:
        """Remembers starts whose first end has been given, as long as they may have others."""
        starts = given.matches.start
        stamped = np.column_stack((starts, given.values(starts, self._stamp)))
        completed = np.concatenate((self._completed, stamped))
        self._completed = completed if oldest is None else completed[completed[:, 1] >= oldest]

    def _apart(self, ended: Candidates) -> Candidates:
        """The complex events that DISJOINT keeps."""
        matches = ended.matches
        if self._disjoint is None or not matches.start.size:
            return ended
        keys = np.zeros((matches.start.size, 2), np.uint64)
        for place, name in enumerate(self._partition_columns):
            keys[:, place] = ended.values(matches.start, name).view(np.uint64)
        ends = np.column_stack((matches.end, ended.values(matches.end, self._stamp)))
        kept = np.flatnonzero(self._disjoint.kept(keys, matches.start, ends))
        return Candidates(chosen(matches, kept), ended.events)

    def _given(self, ended: Candidates) -> Decided:
        needed = ended.without_others()
        store = EventStore(self._store.schema, self._partition_columns)
        store.restart(needed.events)
        positions = needed.positions
        placed = _renumbered(needed.matches, positions, np.arange(positions.size))
        return Decided(placed, store, ended.values(ended.matches.end, POSITION))

    # ------------------------------------------------------------------- stopping and resuming

    def arrays(self) -> tuple[Arrays, pa.RecordBatch]:
        """The state as arrays, for `resume`."""
        arrays = {} if self._disjoint is None else self._disjoint.arrays()
        kept = (self._open.all(), self._waiting)
        for prefix, candidates in zip(("open", "waiting"), kept, strict=True):
            arrays |= {f"{prefix}_{name}": array for name, array in candidates.matches._asdict().items()}
        arrays["completed_starts"] = self._completed
        return arrays, together(kept, self._store.schema, lambda matches: matches).events

    def resume(self, arrays: Arrays, events: pa.RecordBatch, marks: int) -> None:
        """Restores the state from `arrays`; raises ValueError or KeyError for other arrays."""
        need(events.schema.equals(self._store.schema), "the columns of events are the same")
        positions = places_of(events)
        need(np.diff(positions) > 0, "events are in order")
        if self._disjoint is not None:
            self._disjoint.resume(arrays)
        still, waiting = (_read(arrays, name, positions, marks) for name in ("open", "waiting"))
        need(np.diff(still.start) >= 0, "candidates are by start")
        self._open.add(Candidates(still, events).without_others())
        self._waiting = Candidates(waiting, events).without_others()
        self._completed = array_of(arrays, "completed_starts", np.int64, None, 2)
        del arrays["completed_starts"]


def partition_columns(plan: Plan) -> tuple[str, ...]:
    """The columns that identify a partition, for LIMIT … PER, DISJOINT, absences and CONSUME BY."""
    compared = any(deadline.compared for deadline in plan.deadlines)
    looks = plan.interval is not None or plan.tree.disjoint or compared
    looks = looks or plan.cut_by is Consume.PARTITION
    return KEYS if looks and plan.shown_keys else ()


def _repeated(ascending: Integers) -> Integers:
    """The values that occur more than once."""
    repeated: Integers = ascending[1:][ascending[1:] == ascending[:-1]]
    return repeated


def _renumbered(matches: Matches, old: Integers, new: Integers) -> Matches:
    """The same complex events, with new numbers in place of the old ascending numbers of their events."""
    start, end, event = (
        new[np.searchsorted(old, positions)] for positions in (matches.start, matches.end, matches.event)
    )
    return matches._replace(start=start, end=end, event=event)


def _read(arrays: Arrays, prefix: str, positions: Integers, marks: int) -> Matches:
    """Complex events read from arrays, checked to refer only to events and marks that exist."""
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
