"""Functions of rows with the kinds of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from estero.classify.columns import Tick
from estero.classify.instants import micros_of
from estero.classify.rows.classified import Row
from estero.engine.int64 import GREATEST, LEAST
from estero.language.tree.durations import Duration
from estero.language.tree.literals import Value
from estero.language.tree.schema import Kind

Function = Callable[[Row], Any]


class NotInPythonError(Exception):
    """Raised for an expression that only SQL can evaluate; the message is the reason, in words for users."""


class AskSqlError(Exception):
    """Raised for a value that only SQL can evaluate, for instance one beyond 64 bits."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A function with the kind of its value (None: it is NULL), and its literal value if it has one."""

    function: Function
    kind: Kind | None
    literal: Value = None
    tick: Tick = "us"


def unknown(row: Row) -> None:
    """The function that gives NULL for every row."""


def literal(value: Value) -> Typed:
    """The function that gives a constant."""
    match value:
        case None:
            return Typed(unknown, None)
        case datetime():
            utc = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
            micros = micros_of(utc)
            return Typed(lambda _: micros, Kind.TIMESTAMP, utc)
        case Duration(nanoseconds):
            whole, beyond = divmod(nanoseconds, 1000)
            ticks = nanoseconds if beyond else whole
            return Typed(lambda _: ticks, Kind.DURATION, value, "ns" if beyond else "us")
    return Typed(lambda _: value, _KINDS[type(value)], value)


_KINDS: Final[Mapping[type, Kind]] = {bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT, str: Kind.STRING}


def of_one(function: Function, change: Callable[[Any], Any]) -> Function:
    """The function `change` of a value; NULL for NULL."""

    def changed(row: Row) -> Any:
        value = function(row)
        return None if value is None else change(value)

    return changed


def of_two(left: Function, right: Function, join: Callable[[Any, Any], Any]) -> Function:
    """The function `join` of two values; NULL if one is. Both are evaluated, as one may fail."""

    def joined(row: Row) -> Any:
        one, other = left(row), right(row)
        return None if one is None or other is None else join(one, other)

    return joined


def fit(number: int) -> int:
    """The number if it fits into 64 bits; an overflow is left to SQL, which may not evaluate it."""
    if not LEAST <= number <= GREATEST:
        raise AskSqlError("64-bit overflow")
    return number
