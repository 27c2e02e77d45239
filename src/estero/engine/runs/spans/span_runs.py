"""Runs that are compared by their marks (MAX, NEXT, LAST), with the arrays that `run_spans` works on."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import Reported
from estero.engine.runs.cea_runs import CeaRuns
from estero.engine.runs.numbered_events import Settings
from estero.engine.runs.spans import run_spans
from estero.engine.runs.spans.run_spans import Contest, Spanned
from estero.engine.runs.spans.spans import drop_spans
from estero.engine.runs.split.run_split import Order
from estero.engine.runs.tables import Automaton
from estero.engine.store.arena import BOTTOM
from estero.engine.store.checks import Arrays, need
from estero.engine.store.lists import begins
from estero.engine.store.schema import new, with_sizes


@runtime_checkable
class Rivalry(Protocol):
    """An automaton whose states tell which other runs have marked all that a run has: for MAX."""

    def own(self, state: int) -> int:
        """The state of the run itself, whatever the others are."""

    def empty(self, state: int) -> bool:
        """Whether the run has marked nothing so far."""

    def beside(self, state: int, rival: int, *, more: bool) -> int:
        """The state with one more rival, whose own state is `rival`; DEAD if that beats the run."""


class SpanRuns(CeaRuns):
    """See `CeaRuns`."""

    cursor_kind: ClassVar[Any] = run_spans.Cursor
    store_kind: ClassVar[Any] = Spanned
    lists: ClassVar[str] = "spans"
    scratch: ClassVar[str] = "made"

    def __init__(self, automaton: Automaton, settings: Settings) -> None:
        super().__init__(automaton, settings)
        visible = np.array([] if settings.visible is None else settings.visible, np.bool_)
        self._order = Order(settings.order, settings.window is not None, visible)
        self._contest = new(Contest, states=8, rivals=8)
        self._contested = 0
        self._ask()

    def _advance(self, reported: Reported) -> int:
        read = reported, self._events, self._cursor, self.settings.gaps, self.consume
        tables, contest = self._builder.tables, self._contest
        return int(run_spans.advance(tables, contest, self.store, *read, self._order))

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
        """Ensures that the contest, if there is one, knows all states."""
        if not isinstance(self._automaton, Rivalry):
            return
        known, states = self._contested, self._builder.states
        own = [self._automaton.own(state) for state in range(known, states)]
        rivals = 2 * (max(own, default=0) + 1)
        self._contest = with_sizes(self._contest, states=states, rivals=rivals)
        self._contest.own[known:states] = own
        self._contest.empty[known:states] = [self._automaton.empty(state) for state in range(known, states)]
        self._contested = states

    def _drop(self, partition: int) -> None:
        _, members, spans, partitions, _ = self.store
        drop_spans(members, spans, partitions, partition)

    def _check_listed(self, arrays: Arrays, opened: NDArray[np.int32], sizes: dict[str, int]) -> None:
        super()._check_listed(arrays, opened, sizes)
        last = arrays["spans.last"]
        event = arrays["arena.event"][last]
        need(arrays["members.rank"] >= 0, "ranks are not negative")
        need(arrays["arena.kind"][last] == BOTTOM, "spans have a last event")
        need((event[1:] < event[:-1]) | begins(opened)[1:], "no two spans of a partition have one last event")

    def _put(self, arrays: Arrays) -> NDArray[np.int32]:
        first = super()._put(arrays)
        self._ask()
        return first
