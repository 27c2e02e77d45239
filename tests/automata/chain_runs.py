"""All runs of a chain automaton over a finite stream, by trying: the definition in section 4 of its paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from automata.run_trees import is_true
from estero.automata.chain import Chain, ChainTransition, Neighbours
from estero.automata.residual import Residual
from estero.language.tree.expressions import Node
from estero.reference.filters import evaluate_filter
from estero.reference.queries import ComplexEvent, Event
from estero.reference.values import compare, evaluate_expression

Marks = frozenset[tuple[str, int]]


def chain_runs(chain: Chain, events: Sequence[Event]) -> Counter[Marks]:
    """The marks of all accepting runs, and how many runs make them."""
    runs: list[tuple[int, int, Marks]] = []
    for position, event in enumerate(events):
        begun: list[tuple[int | None, int, Marks]] = [(None, -1, frozenset()), *runs]
        runs += [
            (each.target, position, marks | {(label, position) for label in each.labels})
            for state, before, marks in begun
            for each in chain.transitions
            if each.source == state
            and is_true(chain.predicates[each.predicate], event)
            and (each.source is None or _compares(each, events[before], event))
        ]
    return Counter(marks for state, _, marks in runs if state in chain.final)


def found_by(chain: Chain, events: Sequence[Event]) -> set[ComplexEvent]:
    """The complex events of a chain that satisfy its residuals, which are about labels of the answer."""
    return {
        complex_event(marks)
        for marks in chain_runs(chain, events)
        if all(_is_true(residual, marks, events) for residual in chain.residuals)
    }


def complex_event(marks: Marks) -> ComplexEvent:
    by_label: dict[str, set[int]] = {}
    for label, position in marks:
        by_label.setdefault(label, set()).add(position)
    positions = [position for _, position in marks]
    labels = frozenset((label, frozenset(each)) for label, each in by_label.items())
    return ComplexEvent(min(positions), max(positions), labels)


def can_be_checked(residual: Residual) -> bool:
    """Whether labels of the answer say everything that the residual asks."""
    simple = isinstance(residual.condition, Node) and residual.place is None and not residual.refuted
    return simple and all(isinstance(key, str) for _, key in residual.bindings)


def _compares(transition: ChainTransition, before: Event, event: Event) -> bool:
    return all(map(partial(holds, before, event), transition.comparisons))


def holds(before: Event, event: Event, asked: Neighbours) -> bool:
    left, right = evaluate_expression(asked.left, before), evaluate_expression(asked.right, event)
    truth = compare(asked.operator, left, right)
    return asked.or_null if truth is None else truth


def _is_true(residual: Residual, marks: Marks, events: Sequence[Event]) -> bool:
    assert isinstance(residual.condition, Node)
    assert residual.place is None
    marked = {
        variable: tuple(events[at] for at in sorted(at for label, at in marks if label == key))
        for variable, key in residual.bindings
    }
    return evaluate_filter(residual.condition, marked, {}) is True
