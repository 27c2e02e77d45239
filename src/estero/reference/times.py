"""The reference meaning of arithmetic with timestamps and durations.

A duration is a 64-bit number of microseconds, or of nanoseconds if it has some. Beside integers, which
are then times of the stream or differences of them, it is a number of ticks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from estero.errors import DataError
from estero.language.tree.durations import Duration
from estero.language.tree.expressions import ArithmeticOperator, Literal
from estero.language.tree.literals import Value
from estero.language.tree.nodes import SyntaxNode, with_changed
from estero.reference.functions import as_number, fit

Node = TypeVar("Node", bound=SyntaxNode)

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class TickedDuration(Duration):
    """A duration beside integer times with ticks of `tick` nanoseconds."""

    tick: int = 1


def with_ticks(pattern: Node, tick: int) -> Node:
    """The same tree with durations that know the length of a tick."""

    def change(item: object) -> object:
        match item:
            case Literal(Duration(nanoseconds)):
                return replace(item, value=TickedDuration(nanoseconds, tick))
            case SyntaxNode():
                return with_ticks(item, tick)
            case _:
                return item

    return with_changed(pattern, change)


def ticked(value: Value, beside: Value) -> Value:
    """An integer beside a duration as the duration of that many ticks; any other value as it is."""
    if isinstance(value, int) and isinstance(beside, TickedDuration):
        return replace(beside, nanoseconds=value * beside.tick)
    return value


def of_times(sign: ArithmeticOperator, left: Value, right: Value) -> Value:
    """``left sign right``, at least one of them a timestamp or a duration, and none NULL.

    A product or quotient that is not whole is rounded, half a microsecond away from zero, and that by NaN is
    NULL. Overflows are errors, and so are timestamps outside of the years 1 to 9999.
    """
    if sign in ("+", "-") and int in (type(left), type(right)):
        return _in_ticks(sign, ticked(left, right), ticked(right, left))
    match sign, left, right:
        case "-", datetime(), datetime():
            return _fit(Duration((left - right) // _MICROSECOND * 1000))
        case "+", Duration(), datetime():
            return _moved(right, left.nanoseconds)
        case "+" | "-", datetime(), Duration():
            return _moved(left, right.nanoseconds if sign == "+" else -right.nanoseconds)
        case "+" | "-", Duration(), Duration():
            other = right.nanoseconds if sign == "+" else -right.nanoseconds
            return _fit(replace(left, nanoseconds=left.nanoseconds + other))
        case "*", Duration(), int() | float():
            return _product(left, as_number(right))
        case "*", int() | float(), Duration():
            return _product(right, as_number(left))
        case "/", Duration(), Duration():
            step = _step(left, right)
            by = float(right.nanoseconds // step)
            return float(left.nanoseconds // step) / by if by else None
        case "/", Duration(), int() | float():
            step = _step(left)
            by = float(as_number(right))
            return _nearest(left, float(left.nanoseconds // step) / by, step) if by else None
    raise DataError(f"{left!r} {sign} {right!r} has no meaning")


def negated(value: Duration) -> Duration:
    """The negative of a duration."""
    return _fit(replace(value, nanoseconds=-value.nanoseconds))


def absolute(value: Duration) -> Duration:
    """The absolute value of a duration."""
    return _fit(replace(value, nanoseconds=abs(value.nanoseconds)))


def seconds(value: Value) -> float:
    """The seconds of a duration."""
    if not isinstance(value, Duration):
        raise DataError(f"{value!r} is not a duration")
    step = _step(value)
    return float(value.nanoseconds // step) / (1e9 / step)


def _in_ticks(sign: ArithmeticOperator, left: Value, right: Value) -> int:
    """Times in ticks, earlier or later by whole ticks."""
    if not isinstance(left, TickedDuration) or not isinstance(right, TickedDuration):
        raise DataError(f"{left!r} {sign} {right!r} has no meaning")
    total = left.nanoseconds + (right.nanoseconds if sign == "+" else -right.nanoseconds)
    ticks, rest = divmod(total, left.tick)
    if rest:
        raise DataError(f"{right!r} is not a whole number of ticks")
    return fit(ticks)


def _moved(moment: datetime, nanoseconds: int) -> datetime:
    if nanoseconds % 1000:
        raise DataError("timestamps have microseconds here")
    try:
        return moment.astimezone(UTC) + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError as error:
        raise DataError("a timestamp before the year 1 or after the year 9999") from error


def _product(value: Duration, factor: float) -> Duration | None:
    if isinstance(factor, int):
        return _fit(replace(value, nanoseconds=value.nanoseconds * factor))
    step = _step(value)
    return _nearest(value, float(value.nanoseconds // step) * factor, step)


def _nearest(value: Duration, steps: float, step: int) -> Duration | None:
    """The duration of the nearest whole number of steps; NULL for NaN."""
    if math.isnan(steps):
        return None
    if not -(2.0**63) <= steps < 2.0**63:
        raise DataError(f"{steps!r} steps of a duration have more than 64 bits")
    below = math.floor(abs(steps))
    whole = int(math.copysign(below + (abs(steps) - below >= 0.5), steps))
    return replace(value, nanoseconds=whole * step)


def _step(*values: Duration) -> int:
    """The step of the result: a microsecond, or a nanosecond if one of the durations has nanoseconds."""
    return 1 if any(value.nanoseconds % 1000 for value in values) else 1000


def _fit(value: Duration) -> Duration:
    if not value.fits:
        raise DataError(f"{value} has more than 64 bits")
    return value
