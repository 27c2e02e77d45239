"""Functions of the language written in Python: ``call``, ``case``, ``aggregate`` and predicates over sets."""

from __future__ import annotations

from typing import cast as typed_as

from estero.arguments import checked, shown
from estero.language.builder.conditions import (
    Condition,
    Expression,
    Operand,
    Variable,
    aggregated,
    literal_of,
    node_of,
)
from estero.language.tree import expressions as e
from estero.language.tree.functions import AGGREGATES, CAST_TYPES, CASTS, SCALAR_FUNCTIONS
from estero.language.tree.literals import Value


@checked
def call(function: str, *arguments: Operand) -> Expression:
    """A scalar function of the language.

    >>> from estero import var
    >>> print(call("length", var("a").name) > 3)
    a[length(name) > 3]
    """
    if function not in SCALAR_FUNCTIONS:
        raise ValueError(f"unknown function {function}; the functions are {', '.join(SCALAR_FUNCTIONS)}")
    return Expression(e.Call(function, tuple(map(node_of, arguments))))


@checked
def case(*whens: tuple[Condition | Expression, Operand], otherwise: Operand = None) -> Expression:
    """The value after the first condition that is true, else `otherwise`: ``CASE WHEN … END``.

    >>> from estero import attribute, var
    >>> price = attribute("price")
    >>> print(var("a")[case((price > 100, "high"), otherwise="low") == attribute("level")])
    a[CASE WHEN price > 100 THEN 'high' ELSE 'low' END = level]
    """
    if not whens:
        raise ValueError("a case needs at least one condition with its value")
    for when in whens:
        if len(when) != 2:
            raise TypeError(f"a case takes pairs of a condition and its value, not {when!r}")
    cases = tuple(e.When(_in_case(condition), node_of(value)) for condition, value in whens)
    return Expression(e.Case(cases, None if otherwise is None else node_of(otherwise)))


def _in_case(condition: Condition | Expression) -> e.Node:
    """A condition as one part of a larger one: ``X.a`` for each ``a`` in ``X[…]``."""
    if not isinstance(condition, Condition | Expression):
        raise TypeError(
            f"the condition of a case must be one like var('x').price > 5, not {shown(condition)}"
        )
    return outside(condition).tree if isinstance(condition, Condition) else condition.tree


@checked
def cast(value: Operand, type: str) -> Expression:
    """The value as one of another type, NULL if it is not one: ``CAST(e AS INTEGER)``.

    >>> from estero import var
    >>> print(cast(var("a").code, "INTEGER") > 3)
    a[CAST(code AS INTEGER) > 3]
    """
    name = CAST_TYPES.get(type.upper())
    if name is None:
        raise ValueError(f"unknown type {type!r}; the types are {', '.join(CASTS)}")
    return Expression(e.Cast(node_of(value), name))


@checked
def aggregate(function: str, of: Expression | Variable, *, distinct: bool = False) -> Expression:
    """A value of all events marked with a variable: ``aggregate("avg", var("a").price) > 5``.

    >>> from estero import var
    >>> print(aggregate("sum", var("a").price * var("a").volume) > 1000)
    sum(a.price * a.volume) > 1000
    >>> print(aggregate("count", var("a").user, distinct=True) > 3)
    count(DISTINCT a.user) > 3
    """
    if function not in AGGREGATES:
        raise ValueError(f"unknown aggregate {function}; the aggregates are {', '.join(AGGREGATES)}")
    name = typed_as(e.AggregateFunction, function)
    if distinct and function != "count":
        raise ValueError("only count takes distinct values: aggregate('count', …, distinct=True)")
    if isinstance(of, Variable):
        return Expression(e.Aggregate(name, of.variable_name))
    return aggregated(name, of, distinct=distinct)


@checked
def count(of: Expression | Variable, *, distinct: bool = False) -> Expression:
    """The number of events marked with a variable, ``count(x)``, or of those with a value of an attribute.

    >>> from estero import var
    >>> print((count(var("x")) >= 3) & (count(var("x").user, distinct=True) == 1))
    count(x) >= 3 AND count(DISTINCT x.user) = 1
    """
    return aggregate("count", of, distinct=distinct)


@checked
def holds(predicate: str, *arguments: Variable | Expression | Value) -> Condition:
    """A predicate over sets of events by its name, on variables, their attributes and constants.

    >>> from estero import var
    >>> print(holds("near", var("a"), var("b").price, 0.5))
    near(a, b.price, 0.5)
    """
    return Condition(e.SetPredicate(predicate, tuple(map(_argument, arguments))))


@checked
def prev(value: Expression) -> Expression:
    """The value of the previous event marked with the same variable.

    >>> from datetime import timedelta
    >>> from estero import var
    >>> print(var("a").time - prev(var("a").time) <= timedelta(minutes=5))
    a.time - prev(a.time) <= 5 MINUTES
    """
    match value.tree:
        case e.Attribute(_, str()):
            return Expression(e.Previous(value.tree))
        case _:
            raise TypeError("prev takes an attribute of a variable")


@checked
def increasing(values: Expression) -> Condition:
    """The condition that each of these events has a larger value than the one before it.

    >>> from estero import var
    >>> print(increasing(var("a").price))
    increasing(a.price)
    """
    return holds("increasing", values)


@checked
def decreasing(values: Expression) -> Condition:
    """The condition that each event has a smaller value than the one before it: ``decreasing(a.price)``."""
    return holds("decreasing", values)


@checked
def outside(condition: Condition | Expression) -> Condition:
    """The equivalent condition on ``X.a`` instead of ``X[… a …]``.

    >>> from estero import var
    >>> print(var("a").price > 5, "/", outside(var("a").price > 5))
    a[price > 5] / a.price > 5
    """
    return Condition(e.over_logic(condition.as_filter().tree, _with_variable))


def _argument(argument: Variable | Expression | Value) -> e.VariableReference | e.Attribute | e.Literal:
    if isinstance(argument, Variable):
        return e.VariableReference(argument.variable_name)
    if not isinstance(argument, Expression):
        return literal_of(argument)
    match argument.tree:
        case e.Attribute(_, str()) | e.Literal():
            return argument.tree
        case _:
            raise TypeError("a predicate over sets takes variables, their attributes and constants")


def _with_variable(part: e.Node) -> e.Node:
    """``X.a`` for each ``a`` in ``X[…]``, without the brackets."""
    return e.with_variable(part.predicate, part.variable) if isinstance(part, e.EventFilter) else part
