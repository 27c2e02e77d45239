"""Short ways to write streams, patterns and answers in the tests of the reference semantics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from estero.language.tree.expressions import (
    Attribute,
    Comparison,
    ComparisonOperator,
    EventFilter,
    Literal,
    Node,
)
from estero.language.tree.literals import Value
from estero.language.tree.pattern import EventType, Link, Pattern
from estero.language.tree.pattern import Sequence as SequencePattern
from estero.reference.queries import ComplexEvent, Event, evaluate_pattern

A, B, C = EventType("A"), EventType("B"), EventType("C")


def stream(types: str, /, **columns: Sequence[Value]) -> list[Event]:
    """``stream("A B", n=[1, 2])``: events of these types, with a column of values for each attribute.

    The time of an event is its `time` attribute, if there is such a column.
    """
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    names = types.split()
    return [
        Event(name, row, _ticks(row)) for name, row in zip(names, rows or [{} for _ in names], strict=True)
    ]


def _ticks(row: Mapping[str, Value]) -> int | None:
    time = row.get("time")
    return time if isinstance(time, int) else None


def seq(*parts: Pattern) -> Pattern:
    """``a ; b ; c``."""
    return SequencePattern(parts, (Link(),) * (len(parts) - 1))


def then(*parts: Pattern) -> Pattern:
    """``a : b : c``."""
    return SequencePattern(parts, (Link(contiguous=True),) * (len(parts) - 1))


def holds(attribute: str, operator: ComparisonOperator, value: Value) -> Node:
    """The predicate ``attribute operator value`` over one event."""
    return Comparison(operator, Attribute(attribute), Literal(value))


def each(variable: str, attribute: str, operator: ComparisonOperator, value: Value) -> Node:
    """The filter ``variable[attribute operator value]``."""
    return EventFilter(variable, holds(attribute, operator, value))


def found(pattern: Pattern, events: Sequence[Event]) -> list[str]:
    """The complex events as text, in order."""
    return shown(evaluate_pattern(pattern, events))


def shown(complex_events: Iterable[ComplexEvent]) -> list[str]:
    """Complex events as text, in order."""
    return sorted(str(one) for one in complex_events)
