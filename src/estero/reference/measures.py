"""The reference meaning of the columns that SELECT computes from a complex event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estero.errors import QueryError
from estero.language.tree import expressions as e
from estero.language.tree.literals import Value
from estero.language.tree.query import KeyBracket, QueryTree, SelectExpression
from estero.reference.filters import aggregate
from estero.reference.queries import ComplexEvent, decided_at, wait_of
from estero.reference.times import with_ticks
from estero.reference.values import Event, arithmetic, evaluate


def evaluate_measures(
    tree: QueryTree, complex_event: ComplexEvent, events: Sequence[Event], *, tick: int = 1
) -> dict[str, Any]:
    """The values of the columns of SELECT for one complex event over `events`; `list` gives lists.

    Times are in ticks of `tick` nanoseconds.

    >>> from estero.language.syntax.parser import parse_query
    >>> tree = parse_query("SELECT sum(A.n) AS total, duration * 2 AS twice WHERE A+")
    >>> events = [Event("A", {"n": 3}, 10), Event("A", {"n": 4}, 15)]
    >>> both = ComplexEvent(0, 1, frozenset({("A", frozenset({0, 1}))}))
    >>> evaluate_measures(tree, both, events)
    {'total': 7, 'twice': 10}
    """
    marked = {
        label: tuple(events[place] for place in sorted(places)) for label, places in complex_event.labels
    }
    start, end = events[complex_event.start], events[complex_event.end]
    wait = wait_of(tree, tick)

    def meaning(name: e.Attribute | e.Aggregate | e.Previous) -> Value:
        match name:
            case e.Aggregate(variable=variable):
                value: Value = aggregate(name, marked.get(variable, ()))
                return value
            case e.Attribute(attribute, str(variable)):
                (event,) = marked.get(variable, (None,))
                return None if event is None else event.value(attribute)
            case e.Attribute("start_time"):
                return start.time
            case e.Attribute("end_time"):
                return end.time
            case e.Attribute("decided_time") if wait is not None:
                return decided_at(end.time, wait)
            case e.Attribute(key) if (bracket := _bracket(tree, key)) is not None:
                return next(end.value(one) for one in bracket.alternatives if end.has(one))
            case e.Attribute("duration"):
                return arithmetic("-", end.time, start.time)
            case _:
                raise QueryError(f"{name} is not a column of the answer", span=name.span)

    return {
        item.name: evaluate(with_ticks(item, tick).expression, meaning)
        for item in tree.select or ()
        if isinstance(item, SelectExpression)
    }


def _bracket(tree: QueryTree, key: str) -> KeyBracket | None:
    return next((bracket for bracket in tree.partition_by if key in bracket.alternatives), None)
