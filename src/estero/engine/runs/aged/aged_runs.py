"""Runs whose age counts: the arrays of `run_aged`, and how they grow."""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import Found
from estero.engine.runs.aged import run_aged
from estero.engine.runs.aged.queues import MOST_TREES, entries_with_queues, new_queues, new_waiting
from estero.engine.runs.aged.run_aged import Aged, Ages
from estero.engine.runs.aged.states import aged_arrays, aged_pools, check_aged_runs
from estero.engine.runs.cea_runs import ROOM, CeaRuns
from estero.engine.runs.numbered_events import Settings
from estero.engine.runs.run_cea import DEAD, new_entries, new_pending
from estero.engine.runs.tables import Automaton
from estero.engine.snapshots.columns import Arrays
from estero.engine.store.arena import copy_columns
from estero.engine.store.pools import with_free
from estero.engine.store.tecs import new_cells


class KnowsAges(Protocol):
    """An automaton that says at which age runs move on by themselves, and where to."""

    def next_length(self, state: int, clock: int) -> int:
        """The age by a clock at which runs in `state` move on; -1 where none makes a difference."""

    def later(self, state: int, clock: int) -> int:
        """The state of runs that have come to that age, or DEAD."""


class AgedRuns(CeaRuns):
    """See `CeaRuns`. Columns 0 … `clocks` - 1 of the values are what clocks show; they do not fall."""

    cursor_kind = run_aged.Cursor

    def __init__(self, automaton: Automaton, settings: Settings) -> None:
        super().__init__(automaton, settings)
        self._clocks = settings.clocks
        self._cells = new_cells(ROOM)
        self._entries = new_entries(ROOM)
        self._queues = new_queues(ROOM)
        self._waiting = new_waiting(ROOM, self._clocks)
        self._pending = new_pending(ROOM, 1)
        self._trees = np.empty((3, MOST_TREES), np.int32)
        self._ages = _new_ages(8, self._clocks)
        self._known = 0

    @property
    def _pools(self) -> Aged:
        pools = self._cells, self._entries, self._queues, self._waiting
        return Aged(self.arena, *pools, self._partitions, self._pending, self._trees)

    def _advance(self, found: Found) -> int:
        if self._known < self._builder.states:
            self._learn_ages()
        read = found, self._events, self._cursor, self.settings.gaps, self.consume
        return int(run_aged.advance(self._builder.tables, self._ages, self._pools, *read))

    def _learn_ages(self) -> None:
        """Works out when runs move on from states that are new, and from those that this leads to."""
        automaton = cast(KnowsAges, self._automaton)
        while self._known < self._builder.states:
            state = self._known
            if state == self._ages.queued.size:
                self._ages = _copied(self._ages, _new_ages(2 * state, self._clocks))
            for clock in range(self._clocks):
                length = automaton.next_length(state, clock)
                self._ages.length[state, clock] = length
                later = DEAD if length == run_aged.NEVER else automaton.later(state, clock)
                self._ages.later[state, clock] = later
                if later != DEAD:
                    self._builder.meet(later)
            self._ages.queued[state] = bool((self._ages.length[state] != run_aged.NEVER).any())
            self._known += 1

    def _make_room(self, needed: dict[str, int]) -> None:
        if needed["pending"] > self._pending.entry.size:
            self._pending = new_pending(2 * needed["pending"], 1)
        self._cells = with_free(self._cells, needed["cells"], new_cells)
        self._entries = with_free(self._entries, needed["entries"], new_entries)
        self._queues = entries_with_queues(self._entries, self._queues)
        clocks = self._clocks
        self._waiting = with_free(self._waiting, needed["waiting"], lambda size: new_waiting(size, clocks))

    def _drop(self, partition: int) -> None:
        pools = self._cells, self._entries, self._queues, self._waiting
        run_aged.drop_partition(*pools, self._partitions, partition)

    def _listed(self, used: int, generation: int, oldest: int) -> Arrays:
        self._learn_ages()
        at = int(self._cursor.at)
        now = self._events.values[min(at, self._events.values.shape[0] - 1)] if at else None
        return aged_arrays(self._pools, self._ages, used, generation, oldest, now)

    def _check_listed(self, arrays: Arrays, nodes: int, states: int) -> None:
        check_aged_runs(arrays, nodes, states, self._clocks)

    def _put(self, arrays: Arrays) -> NDArray[np.int32]:
        self._learn_ages()
        pools = self._cells, self._entries, self._waiting
        rooms = [pool.next.size for pool in pools]  # smaller ones would be too small again
        self._cells, self._entries, self._queues, self._waiting, first = aged_pools(arrays, self._ages, rooms)
        return first


def _new_ages(states: int, clocks: int) -> Ages:
    return Ages(
        np.full((states, clocks), run_aged.NEVER, np.int64),
        np.full((states, clocks), DEAD, np.int32),
        np.zeros(states, np.int8),
    )


def _copied(old: Ages, new: Ages) -> Ages:
    copy_columns(old, new, old.queued.size)
    return new
