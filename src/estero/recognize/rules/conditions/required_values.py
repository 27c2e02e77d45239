"""Values that conditions require of an event, by which most events are told to satisfy none of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from estero.classify.vectors.conditions import (
    Condition,
    Constant,
    Joined,
    NumberList,
    NumberTest,
    TextList,
    TextTest,
)

Required = Mapping[str, frozenset[str | int]]
"""Values by column: a condition holds only where one of the columns has one of its values."""
_EXACT: Final = 2**53
"""The number up to which an integer equals the same floats in Python and in vector code."""


def required_by_some(conditions: Iterable[Condition]) -> Required | None:
    """What holds wherever one of some conditions does; None if one of them requires no value.

    >>> required_by_some([TextTest("name", "=", "a"), TextTest("kind", "=", "b")])
    {'name': frozenset({'a'}), 'kind': frozenset({'b'})}
    """
    values: dict[str, frozenset[str | int]] = {}
    for condition in conditions:
        required = _required(condition)
        if required is None:
            return None
        for column, own in required.items():
            values[column] = values.get(column, frozenset()) | own
    return values


def _required(condition: Condition) -> Required | None:
    match condition:
        case Constant(False):
            return {}
        case TextTest(column, "=", text):
            return {column: frozenset({text})}
        case TextList(column, texts, False):
            return {column: texts}
        case NumberTest(column, "=", int(number)):
            return _numbers(column, (number,))
        case NumberList(column, numbers, False):
            return _numbers(column, numbers)
        case Joined(parts, True):
            return required_by_some(parts)
        case Joined(parts, False):
            known = [required for part in parts if (required := _required(part)) is not None]
            return min(known, key=lambda required: sum(map(len, required.values())), default=None)
    return None


def _numbers(column: str, numbers: Sequence[object]) -> Required | None:
    exact = frozenset(number for number in numbers if isinstance(number, int) and -_EXACT <= number <= _EXACT)
    return {column: exact} if len(exact) == len(set(numbers)) else None
