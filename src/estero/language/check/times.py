"""Arithmetic on timestamps and durations: the kinds that go together, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from estero.language.tree.expressions import ArithmeticOperator
from estero.language.tree.schema import NUMBERS, Kind

TIMES: Final = frozenset({Kind.TIMESTAMP, Kind.DURATION})
"""The kinds of times: arithmetic takes some of them, but not as numbers."""

_TIMESTAMP, _DURATION = Kind.TIMESTAMP, Kind.DURATION
COMPUTED: Final[Mapping[tuple[ArithmeticOperator, Kind, Kind], Kind]] = {
    ("-", _TIMESTAMP, _TIMESTAMP): _DURATION,
    ("+", _TIMESTAMP, _DURATION): _TIMESTAMP,
    ("-", _TIMESTAMP, _DURATION): _TIMESTAMP,
    ("+", _DURATION, _TIMESTAMP): _TIMESTAMP,
    ("+", _DURATION, _DURATION): _DURATION,
    ("-", _DURATION, _DURATION): _DURATION,
    ("/", _DURATION, _DURATION): Kind.FLOAT,
    **{("*", number, _DURATION): _DURATION for number in sorted(NUMBERS, key=str)},
    **{(sign, _DURATION, number): _DURATION for sign in ("*", "/") for number in sorted(NUMBERS, key=str)},
}
"""The result kind of an operator on two kinds, at least one of them a time."""

NAMES: Final[Mapping[ArithmeticOperator, str]] = {
    "+": "sum",
    "-": "difference",
    "*": "product",
    "/": "quotient",
    "%": "remainder",
}
OPERANDS: Final[Mapping[ArithmeticOperator, str]] = {
    "+": "numbers, durations, or a timestamp and a duration",
    "-": "numbers, durations, timestamps, or a timestamp less a duration",
    "*": "numbers, or a duration and a number",
    "/": "numbers, durations, or a duration by a number",
    "%": "numbers",
}


def kind_computed(operator: ArithmeticOperator, left: Kind | None, right: Kind | None) -> Kind | None:
    """The kind of ``left operator right`` if they go together; None if it is unknown.

    >>> kind_computed("-", Kind.TIMESTAMP, Kind.TIMESTAMP), kind_computed("/", Kind.INT, None)
    (<Kind.DURATION: 'a duration'>, <Kind.FLOAT: 'a float'>)
    """
    kinds = {left, right}
    if kinds & TIMES:
        return None if left is None or right is None else COMPUTED.get((operator, left, right))
    if operator == "/":
        return None if left is None else Kind.FLOAT
    if Kind.FLOAT in kinds:
        return None if operator == "*" and None in kinds else Kind.FLOAT
    return None if None in kinds else Kind.INT


def mended(left: Kind, right: Kind) -> str:
    """The hint for a time in an operation that does not take it."""
    if {left, right} & NUMBERS:
        return "a number with its unit is a duration: 5 MINUTES"
    if left is _DURATION and right is _TIMESTAMP:
        return "write the timestamp first"
    return "timestamps have a difference, which is a duration; durations are multiplied by numbers"
