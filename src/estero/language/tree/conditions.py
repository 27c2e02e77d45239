"""What a filter speaks of: its variables, its parts, and whether one event at a time decides it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from estero.language.tree.expressions import (
    Aggregate,
    And,
    Attribute,
    EventFilter,
    Node,
    Not,
    Or,
    SetPredicate,
    VariableReference,
    without_variable,
)
from estero.language.tree.pattern import Filter, PartitionBy, Pattern
from estero.language.tree.selection import label_types


def variables_of(condition: Node) -> set[str]:
    """The variables that a filter speaks of."""
    speaking = (Attribute, Aggregate, EventFilter, VariableReference)
    return {
        node.variable for node in condition.walk() if isinstance(node, speaking) and node.variable is not None
    }


def as_unary(condition: Node, inside: set[str]) -> Node | None:
    """The condition as one of ``X[p]`` with X in `inside`, joined by AND, OR, NOT; None where it is not.

    A comparison about one variable holds for each of its events, so ``X.a < 5`` is ``X[a < 5]``.
    """
    match condition:
        case EventFilter(variable):
            return condition if variable in inside else None
        case And(parts) | Or(parts):
            unary = [each for each in (as_unary(part, inside) for part in parts) if each is not None]
            return type(condition)(tuple(unary), span=condition.span) if len(unary) == len(parts) else None
        case Not(part):
            inner = as_unary(part, inside)
            return None if inner is None else Not(inner, span=condition.span)
        case _:
            variables = variables_of(condition)
            only = next(iter(variables)) if len(variables) == 1 else None
            of_sets = any(isinstance(each, Aggregate | SetPredicate) for each in condition.walk())
            if only not in inside or of_sets:
                return None
            return EventFilter(only, without_variable(condition), span=condition.span)


def has_residuals(pattern: Pattern) -> bool:
    """Whether some filter in the pattern is more than one-event predicates of variables inside it."""
    for node in pattern.walk():
        if isinstance(node, PartitionBy):
            return True
        if isinstance(node, Filter):
            inside = set(label_types(node.pattern))
            if any(as_unary(part, inside) is None for part in conjuncts(node.condition)):
                return True
    return False


def of_one_event(condition: Node) -> Node:
    """``X[p]``, joined by AND, OR and NOT, of an event that every variable is: p."""
    match condition:
        case EventFilter(_, predicate):
            return predicate
        case And(parts) | Or(parts):
            return type(condition)(tuple(map(of_one_event, parts)))
        case Not(part):
            return Not(of_one_event(part))
        case _:
            raise TypeError(f"not a filter of one-event predicates: {condition!r}")


def conjuncts(condition: Node | None) -> Iterator[Node]:
    """The parts that must all be true, left to right: `condition` itself where it is no AND; none of None."""
    if isinstance(condition, And):
        for part in condition.parts:
            yield from conjuncts(part)
    elif condition is not None:
        yield condition


def conjoined(conditions: Iterable[Node]) -> Node | None:
    """One condition that asks for all of these, each once; None for none."""
    parts = tuple(dict.fromkeys(conditions))
    return And(parts) if len(parts) > 1 else next(iter(parts), None)
