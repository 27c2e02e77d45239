"""Runs whose age matters, with the arrays that `run_aged` works on."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import Reported
from estero.engine.runs.aged import run_aged
from estero.engine.runs.aged.run_aged import Aged, Ages
from estero.engine.runs.aged.states import aged_arrays, check_aged_runs, with_aged_runs
from estero.engine.runs.cea_runs import CeaRuns
from estero.engine.runs.numbered_events import Settings
from estero.engine.runs.run_cea import DEAD
from estero.engine.runs.tables import Automaton
from estero.engine.store.checks import Arrays
from estero.engine.store.lists import references
from estero.engine.store.schema import grown, new


class KnowsAges(Protocol):
    """An automaton that says at which age runs change their state by themselves, and to which one."""

    def next_length(self, state: int, clock: int) -> int:
        """The age by a clock at which runs in `state` change it; -1 if no age makes a difference."""

    def later(self, state: int, clock: int) -> int:
        """The state of runs that have reached that age, or DEAD."""


class AgedRuns(CeaRuns):
    """See `CeaRuns`. Columns 0 … `clocks` - 1 of the values are the readings of clocks, which ascend."""

    store: Aged

    cursor_kind: ClassVar[Any] = run_aged.Cursor
    store_kind: ClassVar[Any] = Aged
    lists: ClassVar[str] = "entries"
    scratch: ClassVar[str] = "pending"

    def __init__(self, automaton: Automaton, settings: Settings) -> None:
        self._clocks = settings.clocks
        super().__init__(automaton, settings, clocks=settings.clocks, levels=3)
        self._ages = new(Ages, states=8, clocks=settings.clocks)
        self._known = 0

    def _advance(self, reported: Reported) -> int:
        if self._known < self._builder.states:
            self._learn_ages()
        read = reported, self._events, self._cursor, self.settings.gaps, self.consume
        return int(run_aged.advance(self._builder.tables, self._ages, self.store, *read))

    def _learn_ages(self) -> None:
        """Determines when runs leave states that are new, or that are reached from those."""
        automaton = cast(KnowsAges, self._automaton)
        while self._known < self._builder.states:
            state = self._known
            if state == self._ages.queued.size:
                self._ages = grown(self._ages, states=2 * state)
            for clock in range(self._clocks):
                length = automaton.next_length(state, clock)
                self._ages.length[state, clock] = length
                later = DEAD if length == run_aged.NEVER else automaton.later(state, clock)
                self._ages.later[state, clock] = later
                if later != DEAD:
                    self._builder.meet(later)
            self._ages.queued[state] = bool((self._ages.length[state] != run_aged.NEVER).any())
            self._known += 1

    def _enlarge_pools(self, needed: dict[str, int]) -> None:
        super()._enlarge_pools(needed)
        rows = self.store.entries.next.size
        if rows > self.store.queues.oldest.size:
            self._replace("queues", grown(self.store.queues, rows=rows))

    def _drop(self, partition: int) -> None:
        _, *pools, partitions, _, _ = self.store
        run_aged.drop_partition(*pools, partitions, partition)

    def _listed(self, first: NDArray[np.int32], oldest: int) -> tuple[Arrays, NDArray[np.int32]]:
        self._learn_ages()
        at = int(self._cursor.at)
        now = self._events.values[min(at, self._events.values.shape[0] - 1)] if at else None
        return aged_arrays(self.store, self._ages, first, oldest, now)

    @classmethod
    def references(cls, to: str) -> list[str]:
        """See `CeaRuns`; runs in queues refer to nodes, too."""
        return [*super().references(to), *references(cls.store_kind, "waiting", to)]

    def _check_listed(self, arrays: Arrays, opened: NDArray[np.int32], sizes: dict[str, int]) -> None:
        check_aged_runs(arrays, opened, {**sizes, "clocks": self._clocks})

    def _put(self, arrays: Arrays) -> NDArray[np.int32]:
        self._learn_ages()
        self.store, first = with_aged_runs(self.store, self._ages, arrays)
        return first
