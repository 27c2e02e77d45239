"""Function calls as SQL of a dialect (semantics in language/tree/functions.py)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from sqlglot import exp

from estero.classify.columns import ColumnType
from estero.classify.durations import seconds
from estero.classify.instants import EXACT
from estero.classify.operations import Operations, Typed, finest
from estero.classify.sql_trees import (
    SQL,
    bound,
    call,
    cast,
    compared,
    either,
    is_not_null,
    number,
    text,
    total,
)
from estero.engine.int64 import GREATEST, LEAST
from estero.language.tree.expressions import CastType, ComparisonOperator
from estero.language.tree.functions import CASTS
from estero.language.tree.schema import NUMBERS, Kind

_LONGEST: Final = 2**31 - 2
"""An upper bound on the length of strings."""

Writer: TypeAlias = Callable[[Operations, Sequence[Typed]], Typed]


def called(operations: Operations, name: str, arguments: Sequence[Typed]) -> Typed:
    """A function call on checked arguments (language/check/kinds.py)."""
    if name in _CHOOSING:
        return _CHOOSING[name](operations, arguments)
    if any(argument.kind is None for argument in arguments):
        return operations.literal(None)
    if name == "contains" and arguments[0].element is not None:
        return _in_list(operations, arguments[0].sql, arguments[0].element, arguments[1])
    return _FUNCTIONS[name](operations, arguments)


def _in_list(operations: Operations, whole: SQL, element: ColumnType, value: Typed) -> Typed:
    """The test whether an element equals the value: NULL elements do not, and in NULL it is unknown."""
    dialect, item = operations.dialect, exp.column("item")
    if element.kind is Kind.NULL:
        equal: SQL = exp.false()
    else:
        one = Typed(dialect.as_read("item", replace(element, stands=item)), element.kind, tick=element.tick)
        equal = operations.compare("=", one, value)
    contained = dialect.any_element(whole, item, call("coalesce", equal, exp.false()))
    return Typed(either(is_not_null(exp.paren(value.sql.copy())), contained, exp.Null()), Kind.BOOL)


# -------------------------------------------------------------------------------- choosing among arguments


def _coalesce(operations: Operations, arguments: Sequence[Typed]) -> Typed:
    return _chosen(operations, "coalesce", arguments)


def _chosen(operations: Operations, function: str, arguments: Sequence[Typed]) -> Typed:
    """A call of an engine function that chooses among arguments of one kind."""
    typed = [argument for argument in arguments if argument.kind is not None]
    if not typed:
        return operations.literal(None)
    if len(typed) == 1:
        return typed[0]
    kinds = {argument.kind for argument in typed}
    if kinds == NUMBERS:
        return Typed(call(function, *map(operations.as_float, typed)), Kind.FLOAT)
    if kinds == {Kind.INT}:
        return Typed(call(function, *map(operations.wide, typed)), Kind.INT)
    tick = finest(*typed)
    if kinds == {Kind.DURATION}:
        return Typed(
            call(function, *(operations.ticks(operand, tick) for operand in typed)), Kind.DURATION, tick=tick
        )
    return Typed(call(function, *(argument.sql for argument in typed)), typed[0].kind, tick=tick)


def _nullif(operations: Operations, arguments: Sequence[Typed]) -> Typed:
    value, other = arguments
    if value.kind is None:
        return value
    kind = Kind.FLOAT if {value.kind, other.kind} == NUMBERS else value.kind
    kept = operations.wide(value) if kind is Kind.INT else value.sql.copy()
    if kind is Kind.FLOAT:
        kept = operations.as_float(value)
    elif kind is Kind.DURATION:
        kept = operations.ticks(value, value.tick)
    equal = operations.compare("=", value, other)
    return Typed(either(equal, exp.Null(), kept), kind, tick=value.tick)


_CHOOSING: Final[Mapping[str, Writer]] = {
    "coalesce": _coalesce,
    "greatest": lambda operations, arguments: _chosen(operations, "greatest", arguments),
    "least": lambda operations, arguments: _chosen(operations, "least", arguments),
    "nullif": _nullif,
}


def chosen(operations: Operations, cases: Sequence[tuple[SQL, Typed]], default: Typed) -> Typed:
    """``CASE WHEN condition THEN value … ELSE default END``; the values are alike."""
    values = [value for _, value in cases]
    typed = [value for value in (*values, default) if value.kind is not None]
    if not typed:
        return operations.literal(None)
    kinds = {value.kind for value in typed}
    tick = finest(*typed)

    def written(value: Typed) -> SQL:
        if value.kind is None:
            return exp.Null()
        if kinds == NUMBERS:
            return operations.as_float(value)
        if value.kind is Kind.DURATION:
            return operations.ticks(value, tick)
        return operations.wide(value) if value.kind is Kind.INT else value.sql.copy()

    ifs = [exp.If(this=condition, true=written(value)) for condition, value in cases]
    kind = Kind.FLOAT if kinds == NUMBERS else typed[0].kind
    return Typed(exp.paren(exp.Case(ifs=ifs, default=written(default)), copy=False), kind, tick=tick)


# ----------------------------------------------------------------------------------------- conversions

_NOT_IN_INTEGERS: Final = "[^0-9+-]|[+-][+-]"
_NOT_IN_FLOATS: Final = "[^0-9.eE+-]|[+-][+-]"
"""Characters that no number may have: engines disagree on spaces, double signs, hexadecimals and names."""


def converted(operations: Operations, value: Typed, wanted: CastType) -> Typed:
    """``CAST(value AS wanted)``; NULL if the value is not one of that type."""
    kind, _ = CASTS[wanted]
    if value.kind is None:
        return value
    if value.kind is kind:
        return value
    return Typed(exp.paren(_CONVERSIONS[value.kind, kind](operations, value), copy=False), kind)


def _float_to_integer(operations: Operations, value: Typed) -> SQL:
    """The integer part of a float, which engines would round otherwise or not at all."""
    dialect = operations.dialect
    whole = either(
        compared("<", value.sql, dialect.floating(0.0)),
        dialect.rounded("ceil", value.sql.copy()),
        dialect.rounded("floor", value.sql.copy()),
    )
    least, above = dialect.floating(-(2.0**63)), dialect.floating(2.0**63)
    fits = exp.and_(compared(">=", value.sql, least), compared("<", value.sql, above))
    return either(fits, cast(whole, "BIGINT"), exp.Null())


def _decimal_to_integer(operations: Operations, value: Typed) -> SQL:
    """The integer part of a decimal, by the text before its point: engines round otherwise."""
    shown = cast(value.sql.copy(), operations.dialect.text_type)
    whole = call("regexp_replace", shown, text("[.].*"), text("")) if value.scale else shown
    return exp.TryCast(**cast(whole, "BIGINT").args, safe=True)


def _text_to_integer(operations: Operations, value: Typed) -> SQL:
    number = exp.TryCast(**cast(value.sql.copy(), "BIGINT").args, safe=True)
    return either(_has_none(operations, value, _NOT_IN_INTEGERS), number, exp.Null())


def _text_to_float(operations: Operations, value: Typed) -> SQL:
    number = exp.TryCast(**cast(value.sql.copy(), "DOUBLE").args, safe=True)
    is_finite = compared("<", call("abs", number), operations.dialect.floating(math.inf))
    is_number = _has_none(operations, value, _NOT_IN_FLOATS)
    return either(is_number, either(is_finite, number.copy(), exp.Null()), exp.Null())


def _has_none(operations: Operations, value: Typed, characters: str) -> SQL:
    """The test that a string has none of these characters."""
    return exp.Not(this=exp.paren(operations.dialect.matches(value.sql.copy(), characters)))


def _truth_to(one: SQL, other: SQL, value: SQL) -> SQL:
    """The conversion of a truth value to one value for true and another for false."""
    return exp.Case(ifs=[exp.If(this=value, true=one), exp.If(this=exp.Not(this=bound(value)), true=other)])


_CONVERSIONS: Final[Mapping[tuple[Kind, Kind], Callable[[Operations, Typed], SQL]]] = {
    (Kind.FLOAT, Kind.INT): _float_to_integer,
    (Kind.STRING, Kind.INT): _text_to_integer,
    (Kind.BOOL, Kind.INT): lambda of, value: _truth_to(
        of.dialect.integer(1), of.dialect.integer(0), value.sql
    ),
    (Kind.INT, Kind.FLOAT): lambda of, value: of.as_float(value),
    (Kind.BOOL, Kind.FLOAT): lambda of, value: _truth_to(
        of.dialect.floating(1.0), of.dialect.floating(0.0), value.sql
    ),
    (Kind.STRING, Kind.FLOAT): _text_to_float,
    (Kind.INT, Kind.STRING): lambda of, value: cast(of.wide(value), of.dialect.text_type),
    (Kind.BOOL, Kind.STRING): lambda _, value: _truth_to(text("true"), text("false"), value.sql),
    (Kind.DECIMAL, Kind.STRING): lambda of, value: of.dialect.text_of_decimal(value.sql.copy(), value.scale),
    (Kind.DECIMAL, Kind.FLOAT): lambda of, value: cast(
        cast(value.sql.copy(), of.dialect.text_type), "DOUBLE"
    ),
    (Kind.DECIMAL, Kind.INT): _decimal_to_integer,
    (Kind.INT, Kind.BOOL): lambda of, value: compared("!=", value.sql, of.dialect.integer(0)),
}


# ------------------------------------------------------------------------------------------ numbers


def _abs(operations: Operations, arguments: Sequence[Typed]) -> Typed:
    (value,) = arguments
    if value.kind is Kind.FLOAT:
        return Typed(call("abs", value.sql), Kind.FLOAT, value.known)
    is_negative = compared("<", value.sql, operations.dialect.integer(0))
    if value.kind is Kind.DURATION:
        absolute = either(is_negative, operations.negative(value).sql, operations.ticks(value, value.tick))
    else:
        absolute = either(is_negative, operations.negative(value).sql, operations.wide(value))
    return Typed(absolute, value.kind, value.known, tick=value.tick)


def _sign(operations: Operations, arguments: Sequence[Typed]) -> Typed:
    (value,) = arguments
    signs: list[tuple[ComparisonOperator, int]] = [(">", 1), ("<", -1), ("=", 0)]
    ifs = [
        exp.If(
            this=operations.compare(operator, value, operations.literal(0)),
            true=operations.dialect.integer(sign),
        )
        for operator, sign in signs
    ]
    return Typed(cast(exp.Case(ifs=ifs), "BIGINT"), Kind.INT, value.known)


def _whole(function: str) -> Writer:
    def write(operations: Operations, arguments: Sequence[Typed]) -> Typed:
        (value,) = arguments
        if value.kind is Kind.INT:
            return value
        return Typed(operations.dialect.rounded(function, value.sql), Kind.FLOAT, value.known)

    return write


def _round(operations: Operations, arguments: Sequence[Typed]) -> Typed:
    """The rounded number: beyond 2**53 all floats are whole, and Spark's ``round`` would overflow."""
    value, *digits = arguments
    if value.kind is Kind.INT:
        return value
    scale = operations.dialect.floating(10.0 ** (digits[0].literal if digits else 0))  # type: ignore[operator]
    scaled = exp.paren(exp.Mul(this=bound(value.sql), expression=scale.copy()))
    nearest = exp.paren(exp.Div(this=call("round", scaled.copy()), expression=scale, typed=True))
    has_places = compared("<", call("abs", scaled), operations.dialect.floating(float(EXACT)))
    return Typed(either(has_places, nearest, value.sql.copy()), Kind.FLOAT, value.known)


def _defined(function: str, operator: ComparisonOperator | None) -> Writer:
    """A function of a float that is NULL unless the argument has this comparison with zero."""

    def write(operations: Operations, arguments: Sequence[Typed]) -> Typed:
        (value,) = arguments
        argument = operations.as_float(value)
        result = call(function, argument)
        known = operations.all_known(value)
        if operator is None:
            return Typed(result, Kind.FLOAT, known)
        is_defined = compared(operator, argument, operations.dialect.floating(0.0))
        return Typed(either(is_defined, result, exp.Null()), Kind.FLOAT, (*known, is_defined))

    return write


def _power(operations: Operations, arguments: Sequence[Typed]) -> Typed:
    base, exponent = map(operations.as_float, arguments)
    return Typed(operations.dialect.power(base, exponent), Kind.FLOAT, operations.all_known(*arguments))


def _div(operations: Operations, arguments: Sequence[Typed]) -> Typed:
    """The quotient of integers; that of the least one by -1 exceeds 64 bits, like its negative."""
    left, right = arguments
    zero, minus_one = (operations.dialect.integer(value) for value in (0, -1))
    quotient = exp.IntDiv(this=bound(operations.wide(left)), expression=bound(operations.wide(right)))
    guarded = (
        exp.Case()
        .when(compared("=", right.sql, zero), exp.Null())
        .when(compared("=", right.sql, minus_one), operations.negative(left).sql)
        .else_(quotient)
    )
    known = (*operations.all_known(*arguments), compared("!=", right.sql, zero))
    return Typed(cast(guarded, "BIGINT"), Kind.INT, known)


# ------------------------------------------------------------------------------------------ strings


def _of_strings(kind: Kind, write: Callable[..., SQL]) -> Writer:
    """A function of strings whose SQL `write` builds from that of the arguments."""

    def written(operations: Operations, arguments: Sequence[Typed]) -> Typed:
        result = write(operations.dialect, *(argument.sql.copy() for argument in arguments))
        return Typed(result, kind, operations.all_known(*arguments))

    return written


def _concat(operations: Operations, arguments: Sequence[Typed]) -> Typed:
    """Concatenation by ``||``, because DuckDB's ``concat`` ignores NULLs."""
    parts = [argument.sql for argument in arguments]
    while len(parts) > _MOST_JOINED:
        parts = [_joined(parts[first : first + _MOST_JOINED]) for first in range(0, len(parts), _MOST_JOINED)]
    return Typed(_joined(parts), Kind.STRING, operations.all_known(*arguments))


_MOST_JOINED: Final = 100
"""The number of strings that one expression joins, each a level; DuckDB reads at most 1,000 levels."""


def _joined(parts: Sequence[SQL]) -> SQL:
    first, *others = parts
    joined = first.copy()
    for other in others:
        joined = exp.DPipe(this=joined, expression=bound(other), safe=False)
    return exp.paren(joined, copy=False)


def _substring(operations: Operations, arguments: Sequence[Typed]) -> Typed:
    """A substring; positions before the first character, on which engines differ, are removed beforehand.

    NULL is tested separately, because ``greatest`` and ``least`` ignore it.
    """
    value, start, *length = arguments
    first = _clipped(start, 1)
    parts = [cast(first, "INT")]
    if length:
        end = total([_clipped(start, -_LONGEST), _clipped(length[0], -_LONGEST)])
        many = call("greatest", exp.Sub(this=end, expression=first.copy()), number(0))
        parts.append(cast(call("least", many, number(_LONGEST)), "INT"))
    result = call("substring", value.sql.copy(), *parts)
    conditions = operations.all_known(start, *length)
    if conditions:
        result = either(exp.and_(*conditions), result)
    return Typed(result, Kind.STRING, operations.all_known(*arguments))


def _clipped(value: Typed, least: int) -> SQL:
    """An integer clipped to the range from `least` to the length of a string."""
    wide = cast(value.sql.copy(), "BIGINT")
    return call("least", call("greatest", wide, number(least)), number(_LONGEST))


_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def _parse_integer(operations: Operations, arguments: Sequence[Typed]) -> Typed:
    """The number written in digits to a base: a sum that cannot overflow, as longer ones are NULL already."""
    value, base = arguments
    to = int(base.literal)  # type: ignore[arg-type]
    most = next(digits for digits in range(64, 0, -1) if to ** (digits - 1) <= -LEAST)
    digits = f"[{_DIGITS[:to]}]"
    shown = operations.dialect.lower(value.sql.copy())
    is_one = operations.dialect.matches(shown, rf"\A[+-]?0*{digits}{{1,{most}}}\z")
    bare = call("regexp_replace", shown.copy(), text("^[+-]?0*"), text(""))
    total_of_digits = operations.dialect.number_of(bare, to)
    negative_one = call(operations.dialect.starts_with, shown.copy(), text("-"))
    signed = either(negative_one, exp.Neg(this=exp.paren(total_of_digits.copy())), total_of_digits)
    fits = exp.Between(this=exp.paren(signed.copy()), low=number(str(LEAST)), high=number(str(GREATEST)))
    return Typed(either(is_one, either(fits, cast(signed, "BIGINT"))), Kind.INT)


# -------------------------------------------------------------------------------------------- times


def _part_of_time(part: str) -> Writer:
    def write(operations: Operations, arguments: Sequence[Typed]) -> Typed:
        (value,) = arguments
        read = operations.dialect.part_of_time(part, value.sql, value.tick)
        return Typed(read, Kind.INT, value.known)

    return write


def _epoch(operations: Operations, arguments: Sequence[Typed]) -> Typed:
    (value,) = arguments
    ticks = cast(operations.dialect.ticks_of(value.sql.copy(), value.tick), "DOUBLE")
    per_second = operations.dialect.floating(1e9 if value.tick == "ns" else 1e6)
    seconds = exp.paren(exp.Div(this=ticks, expression=per_second, typed=True))
    return Typed(seconds, Kind.FLOAT, value.known)


def _date_trunc(operations: Operations, arguments: Sequence[Typed]) -> Typed:
    unit, value = arguments
    begin = operations.dialect.truncated(str(unit.literal), value.sql.copy(), value.tick)
    return Typed(begin, Kind.TIMESTAMP, value.known)


_FUNCTIONS: Final[Mapping[str, Writer]] = {
    "abs": _abs,
    "sign": _sign,
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "round": _round,
    "sqrt": _defined("sqrt", ">="),
    "ln": _defined("ln", ">"),
    "exp": _defined("exp", None),
    "power": _power,
    "length": _of_strings(Kind.INT, lambda _, value: cast(call("length", value), "BIGINT")),
    "lower": _of_strings(Kind.STRING, lambda dialect, value: dialect.lower(value)),
    "upper": _of_strings(Kind.STRING, lambda dialect, value: dialect.upper(value)),
    "trim": _of_strings(Kind.STRING, lambda dialect, value: dialect.trimmed(value)),
    "substring": _substring,
    "starts_with": _of_strings(Kind.BOOL, lambda dialect, *both: call(dialect.starts_with, *both)),
    "ends_with": _of_strings(Kind.BOOL, lambda dialect, *both: call(dialect.ends_with, *both)),
    "contains": _of_strings(Kind.BOOL, lambda _, *both: call("contains", *both)),
    "replace": _of_strings(Kind.STRING, lambda _, *three: call("replace", *three)),
    "concat": _concat,
    "div": _div,
    "position": _of_strings(Kind.INT, lambda _, *both: cast(call("instr", *both), "BIGINT")),
    "last_position": _of_strings(Kind.INT, lambda dialect, *both: dialect.last_position(*both)),
    "parse_integer": _parse_integer,
    "split_part": _of_strings(Kind.STRING, lambda dialect, *three: dialect.split_part(*three)),
    **{
        part: _part_of_time(part)
        for part in (
            *("year", "quarter", "month", "week", "day", "day_of_week"),
            *("hour", "minute", "second"),
        )
    },
    "epoch": _epoch,
    "seconds": lambda operations, arguments: seconds(operations, arguments[0]),
    "date_trunc": _date_trunc,
}
