"""Filters of predicates of one event, as transformations of an automaton.

They are the unary predicates of "A Second-Order Approach to Complex Event Recognition", section 6. ``X[p]``
narrows every transition that marks X. Its negation requires an event of X that p is false of, so the
automaton remembers whether it has seen one. OR is a union, AND applies one filter after the other. Where a
variable marks exactly one event, the connectives first move inside its predicate, which keeps the automaton
small.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from estero.automata.compile.fragment import Arc, Fragment, Workshop
from estero.language.tree import pattern as p
from estero.language.tree.expressions import And, EventFilter, Node, Not, Or
from estero.language.tree.marks import ONE, marks_of


def apply_filter(workshop: Workshop, fragment: Fragment, condition: Node, pattern: p.Pattern) -> Fragment:
    """Restricts `fragment` (the automaton of `pattern`) to the complex events that satisfy `condition`."""
    return _keep_if(workshop, fragment, _push_negations(_fold(condition, pattern), positive=True))


def _fold(condition: Node, pattern: p.Pattern) -> Node:
    """Moves connectives of filters on a variable with a single event inside its predicate."""
    match condition:
        case Not(part):
            part = _fold(part, pattern)
            if isinstance(part, EventFilter) and marks_of(pattern, part.variable) == ONE:
                return replace(part, predicate=Not(part.predicate))
            return Not(part)
        case And(parts) | Or(parts):
            alike: dict[str | int, list[Node]] = {}
            for number, part in enumerate(_fold(operand, pattern) for operand in parts):
                of_one = isinstance(part, EventFilter) and marks_of(pattern, part.variable) == ONE
                same = part.variable if of_one and isinstance(part, EventFilter) else number
                alike.setdefault(same, []).append(part)
            folded = tuple(_merged(type(condition), filters) for filters in alike.values())
            return folded[0] if len(folded) == 1 else type(condition)(folded)
        case _:
            return condition


def _merged(connective: type[And | Or], parts: list[Node]) -> Node:
    """Merges filters on one variable into one; returns a single part unchanged."""
    predicates = [part.predicate for part in parts if isinstance(part, EventFilter)]
    first = parts[0]
    if len(predicates) > 1 and isinstance(first, EventFilter):
        return replace(first, predicate=connective(tuple(predicates)))
    return first


def _push_negations(condition: Node, *, positive: bool) -> Node:
    match condition:
        case Not(part):
            return _push_negations(part, positive=not positive)
        case And(parts) | Or(parts):
            connective = And if isinstance(condition, And) == positive else Or
            return connective(tuple(_push_negations(part, positive=positive) for part in parts))
        case _:
            return condition if positive else Not(condition)


def _keep_if(workshop: Workshop, fragment: Fragment, condition: Node) -> Fragment:
    match condition:
        case EventFilter():
            return workshop.relabel(fragment, lambda arc: _narrow(arc, condition))
        case Not(EventFilter() as refuted):
            return _seen_false(workshop, fragment, refuted)
        case And(parts):
            return reduce(lambda kept, part: _keep_if(workshop, kept, part), parts, fragment)
        case Or(parts):
            return workshop.union(_keep_if(workshop, workshop.copy(fragment), part) for part in parts)
        case _:
            raise TypeError(f"not a filter of one-event predicates: {condition!r}")


def _narrow(arc: Arc, condition: EventFilter) -> Arc:
    return (
        arc._replace(guard=arc.guard.also(condition.predicate)) if condition.variable in arc.labels else arc
    )


def _seen_false(workshop: Workshop, fragment: Fragment, refuted: EventFilter) -> Fragment:
    """Two copies of a fragment: before and after an event of the variable that violates the predicate."""
    after = workshop.copy(fragment)
    crossing = [
        arc._replace(guard=arc.guard.also(Not(refuted.predicate)), target=copied.target)
        for arc, copied in zip(fragment.arcs, after.arcs, strict=True)
        if refuted.variable in arc.labels
    ]
    return Fragment(fragment.initial, after.final, (*fragment.arcs, *crossing, *after.arcs))
