"""The deterministic automaton of all runs with one start, which tells which levels they reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from estero.automata.cea import CEA, Transition
from estero.automata.determinize import DEAD, DEFAULT_STATE_CAP
from estero.automata.exploration import leaving
from estero.automata.growth import too_many_states
from estero.errors import LimitExceeded

__all__ = ["DEAD", "Move", "LevelsAutomaton"]


class Move(NamedTuple):
    """The effect of an event on the runs of a start: the state after it, or DEAD, and the reached levels.

    Bit l of `reached` is set if one of the runs ends a complex event with a label of level l.
    """

    target: int
    reached: int


@dataclass(slots=True)
class LevelsAutomaton:
    """The subset automaton of a CEA for the runs of one start, without their marks, built on demand.

    A state is the set of the CEA's states that the runs are in; state 0 is their state before they start.
    `levels` maps the labels that stand for levels to numbers from 0. Classes are numbered as they are met;
    class 0 contains the events with no bit set.
    """

    cea: CEA
    levels: Mapping[str, int]
    state_cap: int = DEFAULT_STATE_CAP
    subsets: list[frozenset[int]] = field(default_factory=list)
    class_bits: list[int] = field(default_factory=list)
    _state_ids: dict[frozenset[int], int] = field(default_factory=dict)
    _class_ids: dict[int, int] = field(default_factory=dict)
    _leaving: dict[int, list[Transition]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._leaving = leaving(self.cea.transitions)
        self.subsets.append(self.cea.initial)  # not in the ids, as no run returns to its initial state
        self.class_of(0)

    def class_of(self, bits: int) -> int:
        """The class of events with these bits (bit k is predicate k)."""
        if bits not in self._class_ids:
            self._class_ids[bits] = len(self.class_bits)
            self.class_bits.append(bits)
        return self._class_ids[bits]

    def move(self, state: int, event_class: int) -> Move:
        """The effect of an event of the class on runs in `state`."""
        bits = self.class_bits[event_class]
        targets: set[int] = set()
        reached = 0
        for source in self.subsets[state]:
            for transition in self._leaving.get(source, ()):
                if transition.guard.allows(bits):
                    targets.add(transition.target)
                    if transition.target in self.cea.final:
                        reached |= sum(
                            1 << self.levels[label] for label in transition.labels & self.levels.keys()
                        )
        going_on = frozenset(targets) - self.cea.final
        return Move(self._state(going_on) if going_on else DEAD, reached)

    def _state(self, subset: frozenset[int]) -> int:
        if subset not in self._state_ids:
            if len(self.subsets) >= self.state_cap:
                raise LimitExceeded(too_many_states(self.cea, self.subsets, self.state_cap))
            self._state_ids[subset] = len(self.subsets)
            self.subsets.append(subset)
        return self._state_ids[subset]
