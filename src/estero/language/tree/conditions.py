"""Analysis of filters: their variables, their parts, and whether one event at a time decides them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from estero.language.tree.expressions import (
    Aggregate,
    And,
    Attribute,
    Comparison,
    EventFilter,
    Node,
    Previous,
    SetPredicate,
    joined_by_logic,
    over_logic,
    substituted,
    without_variable,
)
from estero.language.tree.functions import SET_PREDICATES
from estero.language.tree.pattern import Filter, PartitionBy, Pattern
from estero.language.tree.selection import label_types


def variables_of(condition: Node) -> set[str]:
    """The variables of a filter."""
    return {
        variable for node in condition.walk() if (variable := getattr(node, "variable", None)) is not None
    }


def as_unary(condition: Node, inside: set[str]) -> Node | None:
    """The condition as one on ``X[p]`` with X in `inside`, joined by AND, OR, NOT; None if it is not one.

    A comparison about one variable holds for each of its events, so ``X.a < 5`` is ``X[a < 5]``.
    """
    if not all(_is_unary(part, inside) for part in joined_by_logic(condition)):
        return None
    return over_logic(condition, _of_each_event)


def _is_unary(part: Node, inside: set[str]) -> bool:
    if isinstance(part, EventFilter):
        return part.variable in inside
    variables = variables_of(part)
    of_sets = any(isinstance(node, Aggregate | SetPredicate | Previous) for node in part.walk())
    return len(variables) == 1 and variables <= inside and not of_sets


def _of_each_event(part: Node) -> Node:
    if isinstance(part, EventFilter):
        return part
    (variable,) = variables_of(part)
    return EventFilter(variable, without_variable(part), span=part.span)


def as_previous(condition: Node) -> Node:
    """The condition with ``X.a > prev(X.a)`` for ``increasing(X.a)``, and likewise for ``decreasing``.

    >>> from estero.language.syntax.parser import parse_condition
    >>> print(as_previous(parse_condition("NOT decreasing(x.a) AND x.b > 1")))
    NOT x.a < prev(x.a) AND x.b > 1
    """

    def change(part: Node) -> Node | None:
        match part:
            case SetPredicate(name, (Attribute(_, str()) as values,)) if name in SET_PREDICATES:
                return Comparison(SET_PREDICATES[name], values, Previous(values), span=part.span)
            case _:
                return None

    return substituted(condition, change)


def residuals(pattern: Pattern) -> Iterator[Node | PartitionBy]:
    """The parts of a pattern that relate several events: keys, and filters beyond one-event predicates."""
    for node in pattern.walk():
        if isinstance(node, PartitionBy):
            yield node
        elif isinstance(node, Filter):
            inside = set(label_types(node.pattern))
            yield from (part for part in conjuncts(node.condition) if as_unary(part, inside) is None)


def of_one_event(condition: Node) -> Node:
    """``X[p]``, joined by AND, OR and NOT, of an event that every variable is: p."""

    def predicate_of(part: Node) -> Node:
        if isinstance(part, EventFilter):
            return part.predicate
        raise TypeError(f"not a filter of one-event predicates: {part!r}")

    return over_logic(condition, predicate_of)


def conjuncts(condition: Node | None) -> Iterator[Node]:
    """The conjuncts from left to right: `condition` itself if it is not an AND, none if it is None."""
    if isinstance(condition, And):
        for part in condition.parts:
            if isinstance(part, And):
                yield from conjuncts(part)
            else:
                yield part
    elif condition is not None:
        yield condition


def conjoined(conditions: Iterable[Node]) -> Node | None:
    """The conjunction of these conditions without duplicates; None for no conditions."""
    parts = tuple(dict.fromkeys(conditions))
    return And(parts) if len(parts) > 1 else next(iter(parts), None)
