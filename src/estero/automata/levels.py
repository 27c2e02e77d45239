"""The deterministic automaton of all runs with one start, which tells which levels they reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from estero.automata.cea import Transition
from estero.automata.determinize import DEAD, SubsetAutomaton
from estero.automata.exploration import leaving

__all__ = ["DEAD", "Move", "LevelsAutomaton"]


class Move(NamedTuple):
    """The effect of an event on the runs of a start: the state after it, or DEAD, and the reached levels.

    Bit l of `reached` is set if one of the runs ends a complex event with a label of level l.
    """

    target: int
    reached: int


@dataclass(slots=True)
class LevelsAutomaton(SubsetAutomaton):
    """The subset automaton of a CEA for the runs of one start, without their marks, built on demand.

    A state is the set of the CEA's states that the runs are in; state 0 is their state before they start.
    `levels` maps the labels that stand for levels to numbers from 0.
    """

    levels: Mapping[str, int] = field(kw_only=True)
    _leaving: dict[int, list[Transition]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._leaving = leaving(self.cea.transitions)
        self.subsets.append(self.cea.initial)  # not in the ids, as no run returns to its initial state
        self.class_of(0)

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
        return Move(self._numbered(going_on, going_on) if going_on else DEAD, reached)
