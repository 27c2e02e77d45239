"""Arithmetic with timestamps and durations → functions of rows, which give ticks (reference/times.py)."""

from __future__ import annotations

import math
from typing import Final

from estero.classify.columns import Tick
from estero.classify.instants import FIRST, LAST
from estero.classify.rows.typed import AskSqlError, Function, Typed, fit, of_one, of_two
from estero.engine.int64 import GREATEST, LEAST
from estero.language.tree.expressions import ArithmeticOperator
from estero.language.tree.schema import Kind

TIMES: Final = frozenset({Kind.TIMESTAMP, Kind.DURATION})


def computed(sign: ArithmeticOperator, left: Typed, right: Typed) -> Typed:
    """``left sign right`` of values that were checked (language/check/times.py)."""
    match sign, left.kind, right.kind:
        case "+" | "-", _, _:
            return _sum(sign, left, right)
        case "/", _, Kind.DURATION:
            tick = finest(left, right)
            return Typed(of_two(in_ticks(left, tick), in_ticks(right, tick), divided), Kind.FLOAT)
        case "*", _, Kind.DURATION:
            return _product(right, left)
        case "*", _, _:
            return _product(left, right)
        case _:
            parts = of_two(left.function, right.function, divided)
            return Typed(of_one(parts, _nearest), Kind.DURATION, tick=left.tick)


def negative(value: Typed) -> Typed:
    """The negative of a duration."""
    return Typed(of_one(value.function, lambda ticks: fit(-ticks)), Kind.DURATION, tick=value.tick)


def seconds(value: Typed) -> Typed:
    """The seconds of a duration, a float."""
    per_second = 1e9 if value.tick == "ns" else 1e6
    return Typed(of_one(value.function, lambda ticks: float(ticks) / per_second), Kind.FLOAT)


def finest(*values: Typed) -> Tick:
    """The finest resolution of the values."""
    return "ns" if any(value.tick == "ns" for value in values) else "us"


def in_ticks(value: Typed, tick: Tick) -> Function:
    """A timestamp or a duration in its own resolution, or in nanoseconds."""
    return value.function if value.tick == tick else of_one(value.function, (1000).__mul__)


def divided(dividend: float, divisor: float) -> float | None:
    """A quotient of floats; NULL where the divisor is zero."""
    return None if divisor == 0 else float(dividend) / float(divisor)


def _sum(sign: ArithmeticOperator, left: Typed, right: Typed) -> Typed:
    tick = finest(left, right)
    direction = 1 if sign == "+" else -1
    is_moment = [left.kind, right.kind].count(Kind.TIMESTAMP) == 1
    first, last = (FIRST, LAST) if is_moment and tick == "us" else (LEAST, GREATEST)

    def total(one: int, other: int) -> int:
        ticks = fit(one) + direction * fit(other)
        if not first <= ticks <= last:
            raise AskSqlError("an overflow of times")
        return ticks

    kind = Kind.TIMESTAMP if is_moment else Kind.DURATION
    return Typed(of_two(in_ticks(left, tick), in_ticks(right, tick), total), kind, tick=tick)


def _product(value: Typed, factor: Typed) -> Typed:
    is_whole = factor.kind is Kind.INT

    def product(ticks: int, number: float) -> int | None:
        return fit(ticks * int(number)) if is_whole else _nearest(float(ticks) * number)

    return Typed(of_two(value.function, factor.function, product), Kind.DURATION, tick=value.tick)


def _nearest(ticks: float) -> int | None:
    """The nearest whole number, halves away from zero; NULL for NaN."""
    if math.isnan(ticks):
        return None
    if not -(2.0**63) <= ticks < 2.0**63:
        raise AskSqlError("an overflow of durations")
    below = math.floor(abs(ticks))
    whole = below + (abs(ticks) - below >= 0.5)
    return whole if ticks >= 0 else -whole
