"""Runs that are only counted: numbers take the place of a compact set.

Runs of a partition that are in one state have the same continuations. So without a window, the number of runs
is all that must be known for each state; with one, also what leaves it. If each end counts only once, it is
the latest start: that run is the last to leave the window.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, Reported, automaton_cursor_of, report
from estero.engine.runs.numbered_events import Settings
from estero.engine.runs.plain_runs import PlainRuns
from estero.engine.runs.tables import Automaton, KnowsFutures
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.store.arena import NONE
from estero.engine.store.checks import Arrays
from estero.engine.tally.moves import Moves, moves_of, order_of_moves
from estero.engine.tally.sliding_sums import Order
from estero.engine.tally.totals import Counts, EndCounts, NoTotalError, OpenRunCounts, WindowCounts
from estero.errors import LimitExceeded

_MOST_STATES = 32
"""The most states whose rows are computed ahead."""


class CountedRuns(PlainRuns):
    """See `Runs`. Two roots without nodes, at the first and the last event loaded, stand for all results.

    Raises NoTotalError if only a compact set can give the total.
    """

    cursor_kind: ClassVar[Any] = automaton_cursor_of()

    def __init__(self, automaton: Automaton, settings: Settings) -> None:
        super().__init__(automaton, settings)
        self.tally = None
        self._counts: Counts = EndCounts()
        if settings.counting:
            self._counts = OpenRunCounts() if settings.window is None else WindowCounts()
        self._moves: Moves | None = None
        self._order: Order | None = None

    def advance(self, reported: Reported, last: int) -> int:
        """See `Runs`. Counts all that is loaded."""
        if last == 0:
            return DONE
        first = int(self._cursor.first)
        self.total = self._counts.count(self._known_moves(), self._order, self._events, first)
        for event in (first, first + last - 1) if self.total else ():
            report(reported, event, NONE, 0)
        return DONE

    def _known_moves(self) -> Moves:
        """The moves of all known classes."""
        classes = int(self._classes.size[0])
        if self._moves is None or self._moves.first.size <= classes:
            builder = self._builder
            try:
                complete = builder.complete(classes, _MOST_STATES)
            except LimitExceeded:  # which open runs may never reach
                complete = False
            self._moves = moves_of(builder.tables, self._like_states(), classes) if complete else None
            self._order = None if self._moves is None else order_of_moves(self._moves, builder.tables)
            self._counts.place(slice(None), self._partitions.first.size, builder.states)
        if self._moves is None:
            raise NoTotalError
        return self._moves

    def _like_states(self) -> list[int]:
        """The first state with the same continuations as each state: accepted runs differ in that alone."""
        automaton = self._automaton
        if not isinstance(automaton, KnowsFutures):
            return list(range(self.states))
        known: dict[Hashable, int] = {}
        return [0, *(known.setdefault(automaton.future(state), state) for state in range(1, self.states))]

    def _keep_partitions(self, kept: NDArray[np.intp] | slice, capacity: int) -> None:
        super()._keep_partitions(kept, capacity)
        self._counts.place(kept, self._partitions.first.size, self._builder.states)

    def _opened(self, oldest: int) -> Arrays:
        return {"opened": self._counts.opened(int(self._keys.size[0]), oldest)}

    def _put(self, arrays: Arrays) -> NDArray[np.int32]:
        return np.full(arrays["opened"].size, NONE, np.int32)

    def snapshot(self, oldest: int) -> Snapshot:
        """Raises ValueError: nothing can continue from numbers that were never read."""
        del oldest
        raise ValueError("runs that are only counted have no compact set, and so no snapshot")
