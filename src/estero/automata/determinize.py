"""I/O determinization on the fly (section 5 of "CORE: a Complex Event Recognition Engine", docs/papers.md).

A deterministic state is a set of CEA states. For each (state, class of events) there is one row: the
state after reading the event unmarked (the *skip*), and one state for each label set it can be marked
with. Runs that read and mark the same events are one run, so no complex event is found twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from estero.automata.cea import CEA, NO_LABELS, LabelSet, Transition
from estero.automata.exploration import leaving
from estero.automata.growth import too_many_states
from estero.automata.registers import RegisterProgram, live_registers, register_reaches
from estero.automata.residual import NO_HIDDEN, HiddenSet
from estero.errors import LimitExceeded

DEAD = -1
"""The skip of a row that has none."""

DEFAULT_STATE_CAP = 100_000

Labels = tuple[LabelSet, HiddenSet]
"""The labels of a transition that answers show, and the hidden ones."""
PASSED: Labels = (NO_LABELS, NO_HIDDEN)
"""The labels of transitions that pass over an event."""


@dataclass(frozen=True, slots=True)
class Row:
    """The transitions of a state on events of one class.

    `skip` is the state after reading it unmarked, or DEAD; `edges` are (label set id, state after).
    """

    skip: int
    edges: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class SubsetAutomaton:
    """A deterministic automaton of sets of states of a CEA, built on demand, with at most `state_cap` states.

    States and classes of events are numbered as they are met; class 0 is the events with no bit set.
    """

    cea: CEA
    state_cap: int = DEFAULT_STATE_CAP
    subsets: list[frozenset[int]] = field(default_factory=list)
    class_bits: list[int] = field(default_factory=list)
    _state_ids: dict[Hashable, int] = field(default_factory=dict)
    _class_ids: dict[int, int] = field(default_factory=dict)

    def class_of(self, bits: int) -> int:
        """The class of events with these bits (bit k is predicate k)."""
        if bits not in self._class_ids:
            self._class_ids[bits] = len(self.class_bits)
            self.class_bits.append(bits)
        return self._class_ids[bits]

    def _numbered(self, state: Hashable, subset: frozenset[int]) -> int:
        """The number of a state that stands for `subset`."""
        if state not in self._state_ids:
            if len(self.subsets) >= self.state_cap:
                raise LimitExceeded(too_many_states(self.cea, self.subsets, self.state_cap))
            self._state_ids[state] = len(self.subsets)
            self.subsets.append(subset)
        return self._state_ids[state]


@dataclass(slots=True)
class MarkingAutomaton(SubsetAutomaton, ABC):
    """A deterministic automaton whose transitions mark events.

    State 0 is where runs begin. `label_sets[id]` and `hidden_sets[id]` are the labels behind an id; a
    transition with neither passes over the event.
    """

    label_sets: list[LabelSet] = field(default_factory=list)
    hidden_sets: list[HiddenSet] = field(default_factory=list)
    rows: dict[tuple[int, int], Row] = field(default_factory=dict)
    _label_ids: dict[Labels, int] = field(default_factory=dict)

    def row(self, state: int, event_class: int) -> Row:
        """The row of (state, class), computed at its first use."""
        key = (state, event_class)
        if key not in self.rows:
            self.rows[key] = self._work_out(state, self.class_bits[event_class])
        return self.rows[key]

    def accepts(self, state: int) -> bool:
        """Whether a run that has just entered `state` has found a complex event."""
        return not self.subsets[state].isdisjoint(self.cea.final)

    def continues(self, state: int) -> bool:
        """Whether `state` can still lead to further complex events."""
        return not self.subsets[state] <= self.cea.final

    def future(self, state: int) -> frozenset[int]:
        """A value that is equal for states with equal futures: no transition leaves a final state."""
        return self.subsets[state] - self.cea.final

    def behind(self, state: int) -> frozenset[int]:
        """The states of the CEA that `state` stands for."""
        return self.subsets[state]

    @abstractmethod
    def _work_out(self, state: int, bits: int) -> Row:
        """The row of a state and the class of events with these bits."""

    def _number_labels(self, labels: Labels) -> None:
        if labels != PASSED and labels not in self._label_ids:
            self._label_ids[labels] = len(self.label_sets)
            self.label_sets.append(labels[0])
            self.hidden_sets.append(labels[1])


@dataclass(slots=True)
class LazyAutomaton(MarkingAutomaton):
    """The deterministic automaton of a CEA, built on demand."""

    registers: RegisterProgram | None = None
    _leaving: dict[int, list[Transition]] = field(default_factory=dict)
    _moves: dict[tuple[int, int], list[tuple[Labels, int]]] = field(default_factory=dict)
    _live: list[set[int]] = field(default_factory=list)
    _reaches: list[list[int | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._leaving = leaving(self.cea.transitions)
        if self.registers is not None:
            self._live = live_registers(self.cea, self.registers)
            self._reaches = register_reaches(self.cea, self.registers)
        for transition in self.cea.transitions:
            self._number_labels((transition.labels, transition.hidden))
        self._state(self.cea.initial)
        self.class_of(0)

    def live_registers(self, state: int) -> list[bool]:
        """Whether the value of each register can still matter in `state`; empty without `registers`."""
        return [not live.isdisjoint(self.subsets[state]) for live in self._live]

    def register_reaches(self, state: int) -> list[int | None]:
        """For each register the lag at which a run in `state` can no longer accept; None if there is none.

        Empty without `registers`.
        """
        farthest = []
        for reaches in self._reaches:
            of_state = [reaches[subset] for subset in self.subsets[state]]
            bounded = [reach for reach in of_state if reach is not None]
            farthest.append(max(bounded) if bounded and len(bounded) == len(of_state) else None)
        return farthest

    def described(self, state: int) -> tuple[int, ...]:
        """A description of `state` that does not depend on its number: its states of the CEA, ascending."""
        return tuple(sorted(self.subsets[state]))

    def met(self, description: Sequence[int]) -> int:
        """The number of the state with this description, possibly of another automaton of the same CEA.

        Raises ValueError if there is no such state.
        """
        if not all(0 <= state < self.cea.states for state in description):
            raise ValueError(f"the automaton has {self.cea.states} states, and not all of {description}")
        return self._state(frozenset(description))

    def _work_out(self, state: int, bits: int) -> Row:
        targets: dict[Labels, set[int]] = defaultdict(set)
        for source in self.subsets[state]:
            for labels, target in self._moves_from(source, bits):
                targets[labels].add(target)
        skip = self._state(frozenset(targets.pop(PASSED))) if PASSED in targets else DEAD
        edges = sorted((self._label_ids[labels], frozenset(reached)) for labels, reached in targets.items())
        return Row(skip, tuple((label, self._state(reached)) for label, reached in edges))

    def _moves_from(self, source: int, bits: int) -> list[tuple[Labels, int]]:
        """The labels and targets of the transitions of one state of the CEA on an event with these bits."""
        key = (source, bits)
        if key not in self._moves:
            self._moves[key] = [
                ((transition.labels, transition.hidden), transition.target)
                for transition in self._leaving.get(source, ())
                if transition.guard.allows(bits)
            ]
        return self._moves[key]

    def _state(self, subset: frozenset[int]) -> int:
        return self._numbered(subset, subset)
