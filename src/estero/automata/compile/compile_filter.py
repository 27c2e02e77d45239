"""Filters of one-event predicates, as changes of an automaton (SO-CEL, section 6: unary predicates).

``X[p]`` narrows every transition that marks X. Its negation asks for an event of X of which p is
false, so the automaton remembers whether it has seen one. OR is union, AND is one after the other.
Where a variable marks exactly one event the connectives move inside its predicate first, which keeps
the automaton small.
"""

from __future__ import annotations

from dataclasses import replace

from estero.automata.compile.fragment import Arc, Fragment, Workshop
from estero.automata.compile.marks import ONE, marks_of
from estero.language.tree.expressions import And, EventFilter, Node, Not, Or
from estero.language.tree.pattern import Pattern


def apply_filter(workshop: Workshop, fragment: Fragment, condition: Node, pattern: Pattern) -> Fragment:
    """`fragment` (the automaton of `pattern`) restricted to the complex events that satisfy `condition`."""
    return _keep_if(workshop, fragment, _push_negations(_fold(condition, pattern), positive=True))


def _fold(condition: Node, pattern: Pattern) -> Node:
    """Connectives of filters on one single-event variable, moved inside its predicate."""
    match condition:
        case Not(part=part):
            part = _fold(part, pattern)
            if isinstance(part, EventFilter) and marks_of(pattern, part.variable) == ONE:
                return replace(part, predicate=Not(part.predicate))
            return Not(part)
        case And(parts=parts) | Or(parts=parts):
            folded = _merge_same_variable(type(condition), [_fold(part, pattern) for part in parts], pattern)
            return folded[0] if len(folded) == 1 else type(condition)(tuple(folded))
        case _:
            return condition


def _merge_same_variable(connective: type[And | Or], parts: list[Node], pattern: Pattern) -> list[Node]:
    merged: list[Node] = []
    predicates: dict[str, list[Node]] = {}
    for part in parts:
        if isinstance(part, EventFilter) and marks_of(pattern, part.variable) == ONE:
            if part.variable not in predicates:
                predicates[part.variable] = []
                merged.append(part)
            predicates[part.variable].append(part.predicate)
        else:
            merged.append(part)
    return [
        replace(part, predicate=connective(tuple(predicates[part.variable])))
        if isinstance(part, EventFilter) and len(predicates.get(part.variable, ())) > 1
        else part
        for part in merged
    ]


def _push_negations(condition: Node, *, positive: bool) -> Node:
    match condition:
        case Not(part=part):
            return _push_negations(part, positive=not positive)
        case And(parts=parts) | Or(parts=parts):
            connective = type(condition) if positive else (Or if isinstance(condition, And) else And)
            return connective(tuple(_push_negations(part, positive=positive) for part in parts))
        case _:
            return condition if positive else Not(condition)


def _keep_if(workshop: Workshop, fragment: Fragment, condition: Node) -> Fragment:
    match condition:
        case EventFilter():
            return workshop.relabel(fragment, lambda arc: _narrow(arc, condition))
        case Not(part=EventFilter() as refuted):
            return _seen_false(workshop, fragment, refuted)
        case And(parts=parts):
            for part in parts:
                fragment = _keep_if(workshop, fragment, part)
            return fragment
        case Or(parts=parts):
            return workshop.union(_keep_if(workshop, workshop.copy(fragment), part) for part in parts)
        case _:
            raise TypeError(f"not a filter of one-event predicates: {condition!r}")


def _narrow(arc: Arc, condition: EventFilter) -> Arc:
    return arc._replace(need=arc.need.also(condition.predicate)) if condition.variable in arc.labels else arc


def _seen_false(workshop: Workshop, fragment: Fragment, refuted: EventFilter) -> Fragment:
    """Two layers: before and after an event of the variable of which the predicate is false."""
    after = workshop.copy(fragment)
    to_after = {arc.target: copied.target for arc, copied in zip(fragment.arcs, after.arcs, strict=True)}
    crossing = [
        arc._replace(need=arc.need.also(Not(refuted.predicate)), target=to_after[arc.target])
        for arc in fragment.arcs
        if refuted.variable in arc.labels
    ]
    return Fragment(fragment.initial, after.final, (*fragment.arcs, *crossing, *after.arcs))
