"""Runs of which only a total is asked: of each state the latest start is kept, and no compact set is made.

Runs of a partition that are in one state go on alike, and of them the one that began last is the last to leave
the window. So where something ends, and which rows of the automaton are needed, is known without a node. How
much ends there a tally counts, if that is asked.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, Reported, automaton_cursor_of, report
from estero.engine.kernels import Grid, inlined, kernel, pool
from estero.engine.runs.numbered_events import FEWEST_PARTITIONS, Settings
from estero.engine.runs.plain_runs import PlainRuns
from estero.engine.runs.reading import missing
from estero.engine.runs.run_cea import DEAD, IDLE, MISSING, Events, Tables
from estero.engine.runs.tables import Automaton
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.store.arena import NONE
from estero.engine.store.checks import Arrays
from estero.engine.tally.sliding_count import target_of

Cursor: Any = automaton_cursor_of()


@pool
class Latest(NamedTuple):
    """Of each partition and state the event int64[partitions, S] with which its latest run began, or NONE.

    state, row int32[S] and start int64[S] are scratch: the states that an event changes, and what they had.
    """

    began: Grid[np.int64]
    state: NDArray[np.int32]
    row: NDArray[np.int32]
    start: NDArray[np.int64]


def new_latest(partitions: int, states: int) -> Latest:
    """No runs."""
    began = np.full((partitions, states), NONE, np.int64)
    return Latest(began, np.empty(states, np.int32), np.empty(states, np.int32), np.empty(states, np.int64))


class CountedRuns(PlainRuns):
    """See `Runs`. Roots say only where something ends: they have no nodes, and states cannot be kept."""

    cursor_kind: ClassVar[Any] = Cursor

    def __init__(self, automaton: Automaton, settings: Settings) -> None:
        super().__init__(automaton, settings)
        self._latest = new_latest(FEWEST_PARTITIONS, self._builder.states)

    def _advance(self, reported: Reported) -> int:
        if self._latest.state.size < self._builder.states:
            self._latest = self._moved(slice(None), self._latest.began.shape[0])
        tables, events = self._builder.tables, self._events
        return int(_follow(tables, self._latest, reported, events, self._cursor))

    def _moved(self, kept: NDArray[np.intp] | slice, capacity: int) -> Latest:
        """The latest starts of some partitions, which are numbered from 0 then."""
        latest, began = new_latest(capacity, self._builder.states), self._latest.began[kept]
        latest.began[: began.shape[0], : began.shape[1]] = began
        return latest

    def _keep_partitions(self, kept: NDArray[np.intp] | slice, capacity: int) -> None:
        super()._keep_partitions(kept, capacity)
        self._latest = self._moved(kept, capacity)

    def _opened(self, oldest: int) -> Arrays:
        began = self._latest.began[: int(self._keys.size[0]) if self.settings.keyed else 1]
        return {"opened": np.count_nonzero(began >= oldest, axis=1)}

    def _put(self, arrays: Arrays) -> NDArray[np.int32]:
        return np.full(arrays["opened"].size, NONE, np.int32)

    def snapshot(self, oldest: int) -> Snapshot:
        raise ValueError("runs of which only a total is asked have no compact set to write")


@inlined
def _go_on(tables, row, began, partition, start):  # type: ignore[no-untyped-def]
    """Has runs go where a row leads; whether something ends."""
    ended = False
    for edge in range(tables.first[row] - 1, tables.first[row + 1]):
        target = target_of(tables, row, edge)
        if target != DEAD:
            if tables.accepts[target]:
                ended = True
            if tables.continues[target]:
                began[partition, target] = max(began[partition, target], start)
    return ended


@kernel(Tables, Latest, Reported, Events, Cursor)
def _follow(tables, latest, reported, events, cursor):  # type: ignore[no-untyped-def]
    """Reads events from cursor.at to before cursor.last, and reports each at which something ends.

    Loop invariant: at the top `began` describes all events before cursor.at; starts that have left the window
    may stand in it.
    """
    began = latest.began
    while cursor.at < cursor.last:
        place = cursor.at
        if reported.size[0] == reported.event.size:
            return FULL
        event_class, partition, oldest = events.event_class[place], events.partition[place], events.oldest[place]
        changed = 0
        for state in range(1, latest.state.size):
            start = began[partition, state]
            if start < oldest:
                continue
            row = tables.row_of[state, event_class]
            if row == IDLE:
                continue
            if row == MISSING:
                return missing(cursor, state, event_class)
            latest.state[changed] = state
            latest.row[changed] = row
            latest.start[changed] = start
            changed += 1
        first_row = tables.row_of[0, event_class]
        if first_row == MISSING:
            return missing(cursor, 0, event_class)
        for number in range(changed):
            began[partition, latest.state[number]] = NONE
        ended = False
        for number in range(changed):
            ended |= _go_on(tables, latest.row[number], began, partition, latest.start[number])
        if first_row != IDLE:
            ended |= _go_on(tables, first_row, began, partition, cursor.first + place)
        if ended:
            report(reported, cursor.first + place, NONE, oldest)
        cursor.at = place + 1
    return DONE
