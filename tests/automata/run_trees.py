"""All run trees of a PCEA over a finite stream, by trying: the definition in section 3 of its paper."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from estero.automata.cea import EventPredicate
from estero.automata.pcea import PCEA, JoinKey, PceaTransition
from estero.language.tree.literals import Value
from estero.reference.queries import ComplexEvent, Event
from estero.reference.values import compare, evaluate_expression, evaluate_predicate

Mark = tuple[int, str]
"""A position and one of its labels."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run tree: the state and the position of its root, and all marks in it, as often as they are made."""

    state: int
    position: int
    marks: tuple[Mark, ...]

    @property
    def is_simple(self) -> bool:
        return len(set(self.marks)) == len(self.marks)

    def complex_event(self) -> ComplexEvent:
        positions: defaultdict[str, set[int]] = defaultdict(set)
        for position, label in self.marks:
            positions[label].add(position)
        labels = frozenset((label, frozenset(each)) for label, each in positions.items())
        return ComplexEvent(min(self.marks)[0], self.position, labels)


def accepting_runs(pcea: PCEA, events: Sequence[Event]) -> list[Run]:
    """All accepting runs."""
    return [run for run in all_runs(pcea, events) if run.state in pcea.final]


def all_runs(pcea: PCEA, events: Sequence[Event]) -> list[Run]:
    """All runs, by position."""
    runs: list[Run] = []
    for position, event in enumerate(events):
        runs += [
            run
            for transition in pcea.transitions
            if is_true(pcea.predicates[transition.predicate], event)
            for run in _fired(pcea, transition, events, position, runs)
        ]
    return runs


def is_true(predicate: EventPredicate, event: Event) -> bool:
    """Whether the bit of a predicate is set."""
    if event.type not in predicate.types:
        return False
    return predicate.condition is None or evaluate_predicate(predicate.condition, event) is True


def key_of(key: JoinKey, event: Event) -> tuple[Value, ...] | None:
    """The values of a key, or None for an event that has none."""
    if event.type not in key.forms:
        return None
    values = tuple(evaluate_expression(each, event) for each in key.forms[event.type])
    return None if any(value is None for value in values) else values


def _fired(
    pcea: PCEA, transition: PceaTransition, events: Sequence[Event], position: int, before: Sequence[Run]
) -> list[Run]:
    event = events[position]
    choices = [
        [
            run
            for run in before
            if run.state == source.state
            and _are_equal(
                key_of(pcea.keys[source.left], events[run.position]), key_of(pcea.keys[source.right], event)
            )
        ]
        for source in transition.sources
    ]
    own = tuple((position, label) for label in sorted(transition.labels))
    return [
        Run(transition.target, position, own + tuple(mark for run in chosen for mark in run.marks))
        for chosen in product(*choices)
    ]


def _are_equal(left: tuple[Value, ...] | None, right: tuple[Value, ...] | None) -> bool:
    if left is None or right is None:
        return False
    return all(compare("=", a, b) is True for a, b in zip(left, right, strict=True))
