"""The deterministic automaton as arrays that grow row by row (the miss protocol)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, runtime_checkable

from estero.engine.runs.run_cea import ANY_FAR, DEAD, IDLE, MISSING, Tables
from estero.engine.store.schema import new, with_sizes


class RowLike(Protocol):
    """The moves of a state for a class: `skip` (state or DEAD) and edges (label-set id, state)."""

    @property
    def skip(self) -> int:
        """The state after reading the event unmarked, or DEAD."""

    @property
    def edges(self) -> Sequence[tuple[int, int]]:
        """The edges: (label-set id, state after reading the event with these labels)."""


class Automaton(Protocol):
    """A deterministic automaton that is built on demand; states and classes count from 0.

    State 0 is where runs begin and is never entered again; class 0 is the events with no bit set.
    """

    def row(self, state: int, event_class: int) -> RowLike:
        """The moves of `state` for events of the class."""

    def class_of(self, bits: int) -> int:
        """The class of events with these bits."""

    def accepts(self, state: int) -> bool:
        """Whether a run that enters `state` has found a complex event."""

    def continues(self, state: int) -> bool:
        """Whether more can be found from `state`."""


@runtime_checkable
class KnowsRegisters(Protocol):
    """An automaton that knows which registers matter; for others, all registers always do."""

    def live_registers(self, state: int) -> Sequence[bool]:
        """Whether each register can still be read by a check in `state` or later."""

    def register_reaches(self, state: int) -> Sequence[int | None]:
        """How far each register may be below its clock before the run is hopeless; None: any distance."""


@runtime_checkable
class KnowsFutures(Protocol):
    """An automaton that knows which states have the same continuations; for others, no two states do."""

    def future(self, state: int) -> Hashable:
        """A value that is equal for such states."""


class TableBuilder:
    """Keeps `tables` in step with an automaton; `learn` adds one row."""

    def __init__(self, automaton: Automaton, registers: int = 0) -> None:
        self._automaton = automaton
        self._rows = 0
        self._edges = 0
        self.states: int = 0
        self.tables: Tables = new(Tables, 64, edges=64, states=8, classes=16, registers=registers)
        self.meet(0)

    def learn(self, state: int, event_class: int) -> None:
        """Adds the row of (state, class)."""
        self.ensure_column(event_class)
        row = self._automaton.row(state, event_class)
        for target in (row.skip, *(target for _, target in row.edges)):
            if target != DEAD:
                self.meet(target)
        stays = row.skip == state and not self._automaton.accepts(state)
        if not row.edges and (stays or (state == 0 and row.skip == DEAD)):
            self.tables.row_of[state, event_class] = IDLE
            return
        self._append(row)
        self.tables.row_of[state, event_class] = self._rows - 1

    def complete(self, classes: int, most: int) -> bool:
        """Learns the rows of all states for that many classes; whether at most `most` states exist then."""
        self.ensure_column(classes - 1)
        state = 0
        while state < self.states <= most:
            for event_class in range(classes if self.tables.continues[state] else 0):
                if self.tables.row_of[state, event_class] == MISSING:
                    self.learn(state, event_class)
            state += 1
        return self.states <= most

    def ensure_column(self, event_class: int) -> None:
        """Ensures that `row_of` has a column for the class."""
        if event_class >= self.tables.row_of.shape[1]:
            self.tables = with_sizes(self.tables, classes=event_class + 1)

    def _append(self, row: RowLike) -> None:
        tables = self.tables
        edges = self._edges + len(row.edges)
        if self._rows == tables.skip.size or edges > tables.edge_marks.size:
            tables = with_sizes(tables, rows=self._rows + 1, edges=edges)
        for marks, target in row.edges:
            tables.edge_marks[self._edges] = marks
            tables.edge_target[self._edges] = target
            self._edges += 1
        tables.skip[self._rows] = row.skip
        tables.first[self._rows + 1] = self._edges
        self._rows += 1
        self.tables = tables

    def meet(self, state: int) -> None:
        """Enters the properties of `state` and of all states with smaller numbers."""
        if state < self.states:
            return
        if state >= self.tables.accepts.size:
            self.tables = with_sizes(self.tables, states=state + 1)
        for fresh in range(self.states, state + 1):
            self.tables.accepts[fresh] = self._automaton.accepts(fresh)
            self.tables.continues[fresh] = self._automaton.continues(fresh)
            if self.tables.live.shape[1] and isinstance(self._automaton, KnowsRegisters):
                self.tables.live[fresh] = self._automaton.live_registers(fresh)
                reaches = self._automaton.register_reaches(fresh)
                self.tables.reach[fresh] = [ANY_FAR if reach is None else reach for reach in reaches]
        self.states = state + 1
