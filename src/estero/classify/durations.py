"""Arithmetic with timestamps and durations as SQL of a dialect (semantics in reference/times.py).

A duration is a 64-bit integer of microseconds, or of nanoseconds where some take part: intervals of the
engines know months, and compare as each engine sees fit.
"""

from __future__ import annotations

import math

from sqlglot import exp

from estero.classify.instants import EXACT
from estero.classify.operations import Operations, Typed, finest
from estero.classify.sql_trees import SQL, bound, call, cast, compared, either
from estero.language.tree.expressions import ArithmeticOperator
from estero.language.tree.schema import Kind

TIMES = frozenset({Kind.TIMESTAMP, Kind.DURATION})


def computed(of: Operations, operator: ArithmeticOperator, left: Typed, right: Typed) -> Typed:
    """``left operator right`` of checked values (language/check/times.py)."""
    kinds = (left.kind, right.kind)
    if None in kinds or not TIMES.intersection(kinds):
        return of.arithmetic(operator, left, right)
    match operator, *kinds:
        case "+" | "-", _, _:
            return _sum(of, operator, left, right)
        case "/", _, Kind.DURATION:
            return _ratio(of, left, right)
        case "*", _, Kind.DURATION:
            return _product(of, right, left)
        case "*", _, _:
            return _product(of, left, right)
        case _:
            return _part(of, left, right)


def seconds(of: Operations, value: Typed) -> Typed:
    """The seconds of a duration, a float."""
    per_second = of.dialect.floating(1e9 if value.tick == "ns" else 1e6)
    ticks = cast(of.ticks(value, value.tick), "DOUBLE")
    return Typed(exp.paren(exp.Div(this=ticks, expression=per_second, typed=True)), Kind.FLOAT, value.known)


def _sum(of: Operations, operator: ArithmeticOperator, left: Typed, right: Typed) -> Typed:
    """The sum of two ticks: with one timestamp a timestamp, else a duration."""
    tick, known = finest(left, right), of.all_known(left, right)
    ticks = of.dialect.checked(operator, of.ticks(left, tick), of.ticks(right, tick), known)
    if [left.kind, right.kind].count(Kind.TIMESTAMP) == 1:
        return Typed(of.dialect.moment(ticks, tick), Kind.TIMESTAMP, known, tick=tick)
    return Typed(ticks, Kind.DURATION, known, tick=tick)


def _product(of: Operations, value: Typed, factor: Typed) -> Typed:
    ticks = of.ticks(value, value.tick)
    if factor.kind is Kind.FLOAT:
        steps = exp.Mul(this=cast(ticks, "DOUBLE"), expression=bound(factor.sql))
        return Typed(_nearest(of, exp.paren(steps)), Kind.DURATION, tick=value.tick)
    known = of.all_known(value, factor)
    product = of.dialect.checked("*", ticks, of.wide(factor), known)
    return Typed(product, Kind.DURATION, known, tick=value.tick)


def _part(of: Operations, value: Typed, number: Typed) -> Typed:
    steps = of.arithmetic("/", Typed(cast(of.ticks(value, value.tick), "DOUBLE"), Kind.FLOAT), number)
    return Typed(_nearest(of, steps.sql), Kind.DURATION, tick=value.tick)


def _ratio(of: Operations, left: Typed, right: Typed) -> Typed:
    tick = finest(left, right)
    one, other = (
        Typed(cast(of.ticks(operand, tick), "DOUBLE"), Kind.FLOAT, of.all_known(operand))
        for operand in (left, right)
    )
    return of.arithmetic("/", one, other)


def _nearest(of: Operations, steps: SQL) -> SQL:
    """The nearest whole number to a float, halves away from zero; NULL for NaN, an error beyond 64 bits."""
    dialect = of.dialect
    is_broken = compared("<", call("abs", steps.copy()), dialect.floating(float(EXACT)))
    whole = either(is_broken, call("round", steps.copy()), steps.copy())
    is_number = compared("!=", steps, dialect.floating(math.nan))
    return exp.paren(either(is_number, dialect.whole(whole), exp.Null()), copy=False)
