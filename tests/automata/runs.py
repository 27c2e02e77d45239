"""Automata run by brute force, and residual filters checked one by one: what the engine is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from estero.automata.cea import CEA, FIRST, EventPredicate
from estero.automata.compile_pattern import Compiled
from estero.automata.residual import ALL_MARKED, Agreement, Hidden, HiddenSet, Key, Residual
from estero.language.pattern import PartitionKey
from estero.semantics import ComplexEvent, Event, evaluate_predicate
from estero.semantics_filters import SetPredicates, evaluate_filter
from estero.semantics_values import all_true, compare

Marked = tuple[tuple[int, frozenset[str], HiddenSet], ...]
"""(position, labels, hidden labels) of the marked events of one run, ascending."""


def bits_of(automaton: CEA, events: Sequence[Event]) -> list[int]:
    """For each event, bit k is predicate k."""
    return [
        sum(1 << bit for bit, each in enumerate(automaton.predicates) if _holds(each, event, position))
        for position, event in enumerate(events)
    ]


def _holds(predicate: EventPredicate, event: Event, position: int) -> bool:
    if predicate == FIRST:
        return position == 0
    if event.type not in predicate.types:
        return False
    return predicate.condition is None or evaluate_predicate(predicate.condition, event) is True


def runs(automaton: CEA, events: Sequence[Event]) -> set[tuple[int, int, Marked]]:
    """(start, end, marks) of all accepting runs."""
    bits = bits_of(automaton, events)
    found: set[tuple[int, int, Marked]] = set()
    for start in range(len(events)):
        reached: set[tuple[int, Marked]] = {(state, ()) for state in automaton.initial}
        for position in range(start, len(events)):
            after: set[tuple[int, Marked]] = set()
            for state, marks in reached:
                for each in automaton.transitions:
                    if each.source == state and each.guard.allows(bits[position]):
                        mark = (position, each.labels, each.hidden)
                        new = (*marks, mark) if each.labels or each.hidden else marks
                        after.add((each.target, new))
            reached = after
            found.update((start, position, marks) for state, marks in reached if state in automaton.final)
    return found


def complex_events(
    compiled: Compiled, events: Sequence[Event], predicates: SetPredicates | None = None
) -> set[ComplexEvent]:
    """What the automaton finds and the residual filters leave."""
    return {
        ComplexEvent(start, end, _shown(marks))
        for start, end, marks in runs(compiled.automaton, events)
        if all(satisfies(residual, marks, events, predicates or {}) for residual in compiled.residuals)
    }


def _shown(marks: Marked) -> frozenset[tuple[str, frozenset[int]]]:
    labels = {label for _, given, _ in marks for label in given}
    return frozenset((label, frozenset(at for at, given, _ in marks if label in given)) for label in labels)


def satisfies(residual: Residual, marks: Marked, events: Sequence[Event], predicates: SetPredicates) -> bool:
    """Whether a residual filter holds for the marks of a run."""
    return all(
        _value(residual, marked, events, predicates) is not residual.refuted
        if residual.refuted
        else _value(residual, marked, events, predicates) is True
        for marked in _instances(residual, marks)
    )


def _instances(residual: Residual, marks: Marked) -> Iterator[Mapping[str, tuple[int, ...]]]:
    if residual.place is None:
        yield {name: _positions(key, marks, 0, len(marks)) for name, key in residual.bindings}
        return
    for first, last in _ranges(residual.place, marks):
        instance = {}
        for name, key in residual.bindings:
            low, high = 0, len(marks)
            if isinstance(key, Hidden):
                low, high = next((a, b) for a, b in _ranges(key.place, marks) if a <= first < b)
                if key.place == residual.place:
                    low, high = first, last
            instance[name] = _positions(key, marks, low, high)
        yield instance


def _ranges(place: int, marks: Marked) -> list[tuple[int, int]]:
    begins = [at for at, (_, _, hidden) in enumerate(marks) if Hidden(place) in hidden]
    return list(pairwise([*begins, len(marks)]))


def _positions(key: Key, marks: Marked, low: int, high: int) -> tuple[int, ...]:
    return tuple(
        at
        for at, labels, hidden in marks[low:high]
        if key in labels or key in hidden or (key == ALL_MARKED and labels)
    )


def _value(
    residual: Residual,
    marked: Mapping[str, tuple[int, ...]],
    events: Sequence[Event],
    predicates: SetPredicates,
) -> bool | None:
    at = {name: tuple(events[position] for position in positions) for name, positions in marked.items()}
    if isinstance(residual.condition, Agreement):
        values = [value for key in residual.condition.keys for value in _values(key, at, residual.condition)]
        return all_true([compare("=", left, right) for left in values for right in values])
    return evaluate_filter(residual.condition, at, predicates)


def _values(key: PartitionKey, at: Mapping[str, tuple[Event, ...]], agreement: Agreement) -> Iterator[object]:
    if key.variable is not None:
        yield from (event.attributes.get(key.attribute) for event in at[key.variable])
        return
    names = [each.attribute for each in agreement.keys if each.variable is None]
    for event in at[ALL_MARKED]:
        yield next((event.attributes[name] for name in names if name in event.attributes), None)
