"""All runs of an automaton, tried one by one: what it finds in a stream, without anything clever."""

from __future__ import annotations

from collections.abc import Sequence

from estero.automata.cea import CEA, FIRST, EventPredicate
from estero.reference.queries import ComplexEvent, Event, evaluate_predicate

Marks = frozenset[tuple[str, int]]


def found_by(automaton: CEA, events: Sequence[Event]) -> set[ComplexEvent]:
    """The complex events of all accepting runs; hidden labels are not looked at."""
    bits = [_bits(automaton.predicates, event, place == 0) for place, event in enumerate(events)]
    found: set[tuple[int, int, Marks]] = set()
    for start in range(len(events)):
        runs: set[tuple[int, Marks]] = {(state, frozenset()) for state in automaton.initial}
        for place in range(start, len(events)):
            runs = {
                (each.target, marks | {(label, place) for label in each.labels})
                for state, marks in runs
                for each in automaton.transitions
                if each.source == state and each.guard.allows(bits[place])
            }
            found |= {(start, place, marks) for state, marks in runs if state in automaton.final}
    return {_complex_event(*each) for each in found}


def _bits(predicates: Sequence[EventPredicate], event: Event, first: bool) -> int:
    return sum(1 << bit for bit, each in enumerate(predicates) if _holds(each, event, first))


def _holds(predicate: EventPredicate, event: Event, first: bool) -> bool:
    if predicate == FIRST:
        return first
    condition = predicate.condition
    return event.type in predicate.types and (
        condition is None or evaluate_predicate(condition, event) is True
    )


def _complex_event(start: int, end: int, marks: Marks) -> ComplexEvent:
    by_label: dict[str, set[int]] = {}
    for label, place in marks:
        by_label.setdefault(label, set()).add(place)
    labels = frozenset((label, frozenset(places)) for label, places in by_label.items())
    return ComplexEvent(start, end, labels)
