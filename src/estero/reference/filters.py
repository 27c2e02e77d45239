"""The reference meaning of filters over complex events: universal extension, aggregates, set predicates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import MAX_PREC, Context, Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from typing import Any
from typing import Literal as OneOf

from estero.errors import DataError, QueryError
from estero.language.tree import expressions as e
from estero.language.tree.literals import Value
from estero.language.tree.whole import TIME_OF
from estero.reference.functions import as_number
from estero.reference.values import (
    Event,
    all_true,
    any_true,
    arithmetic,
    as_truth,
    compare,
    evaluate,
    evaluate_expression,
    evaluate_predicate,
    not_true,
)

Marked = Mapping[str, tuple[Event, ...]]
"""The events that each variable marks, in stream order."""

SetPredicates = Mapping[str, Callable[..., bool | None]]
"""Registered set predicates by name. They receive a tuple of events for ``X``, of values for ``X.a``."""


def evaluate_filter(condition: e.Node, marked: Marked, predicates: SetPredicates) -> bool | None:
    """Whether a complex event satisfies a filter, by three-valued logic.

    ``X[p]`` is p of every event of X; a comparison is that of all tuples of events of its variables.
    Both are true if a variable marks nothing.
    """
    match condition:
        case e.And(parts):
            return all_true([evaluate_filter(part, marked, predicates) for part in parts])
        case e.Or(parts):
            return any_true([evaluate_filter(part, marked, predicates) for part in parts])
        case e.Not(part):
            return not_true(evaluate_filter(part, marked, predicates))
        case e.EventFilter(variable, predicate):
            return all_true([evaluate_predicate(predicate, event) for event in marked[variable]])
        case e.SetPredicate():
            return _set_predicate(condition, marked, predicates)
        case _:
            return _for_all_tuples(condition, marked)


def _for_all_tuples(comparison: e.Node, marked: Marked) -> bool | None:
    """The comparison over all tuples of events, without the first event of a variable under prev."""
    nodes = list(comparison.walk())
    attributes = [node for node in nodes if isinstance(node, e.Attribute)]
    variables = sorted({node.variable for node in attributes if node.variable is not None})
    followed = {node.operand.variable for node in nodes if isinstance(node, e.Previous)}

    def holds_for(chosen: Mapping[str, Event]) -> bool | None:
        def meaning(name: e.Attribute | e.Aggregate | e.Previous) -> Value:
            if isinstance(name, e.Aggregate):
                value: Value = aggregate(name, marked[name.variable])
                return value
            if isinstance(name, e.Previous):
                return _before(name.operand, chosen, marked)
            if name.variable is None:
                raise QueryError(f"{name.name} belongs to no variable", span=name.span)
            event = chosen[name.variable]
            return event.time if name.name == TIME_OF else event.value(name.name)

        return as_truth(evaluate(comparison, meaning))

    tuples = product(*(marked[variable][variable in followed :] for variable in variables))
    return all_true([holds_for(dict(zip(variables, events, strict=True))) for events in tuples])


def _before(attribute: e.Attribute, chosen: Mapping[str, Event], marked: Marked) -> Value:
    """The value of the previous event marked by the variable of a ``prev``."""
    if attribute.variable is None:
        raise QueryError(f"{attribute.name} belongs to no variable", span=attribute.span)
    events = marked[attribute.variable]
    (place,) = (n for n, event in enumerate(events) if event is chosen[attribute.variable])
    return events[place - 1].value(attribute.name)


def _set_predicate(node: e.SetPredicate, marked: Marked, predicates: SetPredicates) -> bool | None:
    predicate = predicates.get(node.name) or _BUILT_IN.get(node.name)
    if predicate is None:
        raise QueryError(f"unknown set predicate {node.name}", span=node.span)
    return predicate(*(_argument(argument, marked) for argument in node.arguments))


def _argument(argument: e.Node, marked: Marked) -> object:
    match argument:
        case e.VariableReference(variable):
            return marked[variable]
        case e.Attribute(name, str() as variable):
            return tuple(event.value(name) for event in marked[variable])
        case e.Literal(value):
            return value
        case _:
            raise QueryError("a set predicate takes X, X.a and constants", span=argument.span)


def _in_order(values: tuple[Value, ...], before: OneOf["<", ">"]) -> bool | None:
    return all_true([compare(before, earlier, later) for earlier, later in pairwise(values)])


_BUILT_IN: SetPredicates = {
    "increasing": partial(_in_order, before="<"),
    "decreasing": partial(_in_order, before=">"),
}


def aggregate(node: e.Aggregate, events: Sequence[Event]) -> Any:
    """An aggregate as in SQL: NULLs do not count; of nothing it is NULL, except count, which is 0.

    `first` and `last` are the values of the first and last event, NULL or not, and `list` has those of all;
    `stddev` is that of a sample.
    """
    if node.operand is None:
        return len(events)
    values: list[Any] = [evaluate_expression(node.operand, event) for event in events]
    known = [value for value in values if value is not None]
    match node.function:
        case "count":
            return len(_different(known) if node.distinct else known)
        case "list":
            return values or None
        case "first":
            return values[0] if values else None
        case "last":
            return values[-1] if values else None
        case "min":
            return _first_in_order(known, "<")
        case "max":
            return _first_in_order(known, ">")
        case "sum":
            return _sum(known)
        case "avg":
            return _mean(_computable(known))
        case "stddev":
            return _sample_deviation(_computable(known))
        case "median":
            return _median(_computable(known))


def _first_in_order(values: Sequence[Value], before: OneOf["<", ">"]) -> Value:
    best: Value = None
    for value in values:
        if best is None or compare(before, value, best):
            best = value
    return best


def _computable(values: Sequence[Any]) -> list[Any]:
    """The values, decimals as the nearest floats."""
    return [float(value) if isinstance(value, Decimal) else value for value in values]


def _sum_of_decimals(values: Sequence[Any]) -> Decimal:
    """The exact sum of decimals; raises `DataError` beyond 38 digits."""
    total = sum(map(Fraction, values), Fraction())
    scale = max(-int(value.as_tuple().exponent) for value in values)
    units = total * 10**scale
    if abs(units) >= 10**38:
        raise DataError("a sum of decimals has more than 38 digits")
    return Decimal(int(units)).scaleb(-scale, Context(prec=MAX_PREC))


def _sum(values: Sequence[Any]) -> Any:
    if not values:
        return None
    if any(isinstance(value, Decimal) for value in values):
        return _sum_of_decimals(values)
    total: Value = 0
    for value in values:
        total = arithmetic("+", total, value)
    return total


def _mean(values: Sequence[Value]) -> Value:
    """The sum divided by the number of values; that of integers is exact and may be of any size."""
    if all(isinstance(value, int) for value in values):
        return arithmetic("/", sum(map(as_number, values)), len(values))
    return arithmetic("/", _sum(values), len(values))


def _sample_deviation(values: Sequence[Value]) -> float | None:
    if len(values) < 2:
        return None
    numbers = [float(as_number(value)) for value in values]
    mean = sum(numbers) / len(numbers)
    return math.sqrt(sum((number - mean) * (number - mean) for number in numbers) / (len(numbers) - 1))


def _different(values: Sequence[Value]) -> list[Value]:
    """The values without duplicates, in order of first occurrence."""
    distinct: list[Value] = []
    for value in values:
        if not any(compare("=", value, other) for other in distinct):
            distinct.append(value)
    return distinct


def _median(values: Sequence[Value]) -> float | None:
    """The median: the middle value in ascending order, or the mean of the two middle ones."""
    if not values:
        return None
    numbers = sorted(
        (float(as_number(value)) for value in values), key=lambda number: (math.isnan(number), number)
    )
    half = len(numbers) // 2
    return numbers[half] if len(numbers) % 2 else (numbers[half - 1] + numbers[half]) / 2
