"""Runs of which only some are answers, by their marks (MAX, NEXT, LAST): the arrays of `run_spans`."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import Found
from estero.engine.runs.cea_runs import ROOM, CeaRuns
from estero.engine.runs.numbered_events import Settings
from estero.engine.runs.spans import run_spans
from estero.engine.runs.spans.run_spans import UNKNOWN, Contest, Spanned, new_made
from estero.engine.runs.spans.spans import drop_spans, new_members, new_spans
from estero.engine.runs.split.run_split import Order
from estero.engine.runs.tables import Automaton
from estero.engine.snapshots.columns import Arrays
from estero.engine.snapshots.open_runs import span_arrays, span_pools
from estero.engine.snapshots.sound import check_span_runs
from estero.engine.store.arena import copy_columns
from estero.engine.store.pools import with_free


@runtime_checkable
class Rivalry(Protocol):
    """An automaton whose states say of a run which others have marked what it has: what MAX needs."""

    def own(self, state: int) -> int:
        """The state of the run itself, whatever the others do."""

    def empty(self, state: int) -> bool:
        """Whether the run has marked nothing so far."""

    def beside(self, state: int, rival: int, *, more: bool) -> int:
        """The state with one more rival, which stands in `rival` by itself; DEAD where that beats the run."""


class SpanRuns(CeaRuns):
    """See `CeaRuns`."""

    cursor_kind = run_spans.Cursor

    def __init__(self, automaton: Automaton, settings: Settings) -> None:
        self._contest = _new_contest(8, 8)
        self._contested = 0
        super().__init__(automaton, settings)
        visible = np.array([] if settings.visible is None else settings.visible, np.bool_)
        self._order = Order(settings.order, settings.window is not None, visible)
        self._members = new_members(ROOM)
        self._spans = new_spans(ROOM)
        self._made = new_made(ROOM, self._builder.tables.accepts.size)
        self._ask()

    @property
    def _pools(self) -> Spanned:
        return Spanned(self.arena, self._members, self._spans, self._partitions, self._made)

    def _advance(self, found: Found) -> int:
        tables = self._builder.tables
        if tables.accepts.size > self._made.where.size:
            self._made = new_made(self._made.state.size, tables.accepts.size)
        read = found, self._events, self._cursor, self.settings.gaps, self.consume
        return int(run_spans.advance(tables, self._contest, self._pools, *read, self._order))

    def _learn(self, state: int, event_class: int) -> None:
        if event_class >= 0:
            super()._learn(state, event_class)
        elif isinstance(self._automaton, Rivalry):
            rival, more = divmod(-1 - event_class, 2)
            target = self._automaton.beside(state, rival, more=bool(more))
            self._contest.beside[state, 2 * rival + more] = target
            self._builder.meet(target)
        self._ask()

    def _ask(self) -> None:
        """Sees to it that the contest knows all states, where there is one."""
        if not isinstance(self._automaton, Rivalry):
            return
        known, states = self._contested, self._builder.states
        own = [self._automaton.own(state) for state in range(known, states)]
        old, asked = self._contest, 2 * (max(own, default=0) + 1)
        rows, columns = old.beside.shape
        if states > rows or asked > columns:
            self._contest = _new_contest(max(rows, 2 * states), max(columns, 2 * asked))
            self._contest.beside[:rows, :columns] = old.beside
            copy_columns(old[1:], self._contest[1:], known)
        self._contest.own[known:states] = own
        self._contest.empty[known:states] = [self._automaton.empty(state) for state in range(known, states)]
        self._contested = states

    def _make_room(self, needed: dict[str, int]) -> None:
        if needed["made"] > self._made.state.size:
            self._made = new_made(2 * needed["made"], self._builder.tables.accepts.size)
        self._members = with_free(self._members, needed["members"], new_members, self._ahead)
        self._spans = with_free(self._spans, needed["spans"], new_spans, self._ahead)

    def _drop(self, partition: int) -> None:
        drop_spans(self._members, self._spans, self._partitions, partition)

    def _listed(self, used: int, generation: int, oldest: int) -> Arrays:
        return span_arrays(self._pools, used, generation, oldest)

    def _check_listed(self, arrays: Arrays, nodes: int, states: int) -> None:
        check_span_runs(arrays, nodes, states)

    def _put(self, arrays: Arrays) -> NDArray[np.int32]:
        rooms = self._members.next.size, self._spans.next.size  # smaller ones would be too small again
        self._members, self._spans, first = span_pools(arrays, rooms)
        self._ask()
        return first


def _new_contest(states: int, columns: int) -> Contest:
    beside = np.full((states, columns), UNKNOWN, np.int32)
    return Contest(beside, np.zeros(states, np.int32), np.zeros(states, np.int8))
