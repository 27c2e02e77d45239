"""Typed values, and operations and comparisons on them, as SQL of a dialect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from estero.classify.columns import MOST_DIGITS, ColumnType, Tick
from estero.classify.dialect import Dialect
from estero.classify.instants import EXACT, micros_of
from estero.classify.lists import in_form
from estero.classify.sql_trees import SQL, bound, cast, compared, either, is_not_null, number, text
from estero.language.tree import expressions as e
from estero.language.tree.durations import Duration
from estero.language.tree.literals import Value
from estero.language.tree.schema import Kind

UNKNOWN = cast(exp.Null(), "BOOLEAN")

_NANOSECONDS: Mapping[Tick, int] = {"us": 1000, "ns": 1}


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression in SQL with its kind (None: the literal NULL) and, for a literal, its value.

    `known` are the conditions under which it is not NULL; None means that the value itself is tested.
    `element` says how the elements of a list are read, and `scale` is the number of decimal places of a
    decimal.
    """

    sql: SQL
    kind: Kind | None
    known: tuple[SQL, ...] | None = None
    literal: Value = None
    tick: Tick = "us"
    element: ColumnType | None = None
    scale: int = 0


class Operations:
    """Writes operations on values for `dialect`, with the semantics of docs/semantics.md."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def literal(self, value: Value) -> Typed:
        """A constant."""
        match value:
            case None:
                return Typed(exp.Null(), None, (exp.false(),))
            case bool():
                return Typed(exp.true() if value else exp.false(), Kind.BOOL, (), value)
            case int():
                return Typed(self.dialect.integer(value), Kind.INT, (), value)
            case float():
                return Typed(self.dialect.floating(value), Kind.FLOAT, (), value)
            case str():
                return Typed(text(value), Kind.STRING, (), value)
            case datetime():
                utc = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
                return Typed(self.dialect.instant(utc), Kind.TIMESTAMP, (), utc)
            case Duration(nanoseconds):
                micros, beyond = divmod(nanoseconds, 1000)
                ticks = self.dialect.integer(nanoseconds if beyond else micros)
                return Typed(ticks, Kind.DURATION, (), value, "ns" if beyond else "us")

    # ------------------------------------------------------------------------------ comparisons

    def compare(self, operator: e.ComparisonOperator, left: Typed, right: Typed) -> SQL:
        """``left operator right`` with the semantics of docs/semantics.md."""
        kinds = (left.kind, right.kind)
        if None in kinds:
            return UNKNOWN.copy()
        if Kind.DECIMAL in kinds:
            return self._compare_decimals(operator, left, right)
        if kinds == (Kind.INT, Kind.FLOAT):
            return self._compare_exactly(operator, left, right)
        if kinds == (Kind.FLOAT, Kind.INT):
            return self._compare_exactly(e.MIRRORED[operator], right, left)
        if kinds == (Kind.DURATION, Kind.DURATION):
            tick = finest(left, right)
            return compared(operator, self.ticks(left, tick), self.ticks(right, tick))
        if kinds == (Kind.TIMESTAMP, Kind.TIMESTAMP) and "ns" in (left.tick, right.tick):
            return compared(operator, self._nanos(left), self._nanos(right))
        return compared(operator, left.sql, right.sql)

    def _compare_exactly(self, operator: e.ComparisonOperator, whole: Typed, broken: Typed) -> SQL:
        """Compares an integer with a float as numbers: 2**53 + 1 is not 2.0**53.

        Rounding keeps the order, so it decides where the rounded integer differs from the float. Where they
        are equal the float is an integer, and integers are compared. 2.0**63 is the only such float that is
        not a 64-bit integer; it is above them all.
        """
        if isinstance(whole.literal, int) and abs(whole.literal) <= EXACT:
            return compared(operator, self.literal(float(whole.literal)).sql, broken.sql)
        if isinstance(broken.literal, float):
            return self._compare_with_float(operator, whole, broken.literal)
        rounded = cast(whole.sql.copy(), "DOUBLE")
        # NULL if the cast fails: a NULL next to it already makes the result unknown.
        whole_float = exp.TryCast(**cast(broken.sql.copy(), "BIGINT").args, safe=True)
        limit = self.dialect.floating(2.0**63)
        above: e.ComparisonOperator = "<=" if operator in {"<", "<=", "!="} else "<"
        return (
            exp.Case()
            .when(compared("!=", rounded, broken.sql), compared(operator, rounded, broken.sql))
            .when(compared("=", broken.sql, limit), compared(above, rounded, limit))
            .else_(compared(operator, whole.sql, whole_float))
        )

    def _compare_decimals(self, operator: e.ComparisonOperator, left: Typed, right: Typed) -> SQL:
        """Compares a decimal with a decimal or an integer; a constant is the decimal as written.

        Engines widen both sides to one type without losing digits; more than 38 are an error.
        """
        if isinstance(right.literal, int | float):
            return self._compare_with_decimal(operator, left, Fraction(repr(right.literal)))
        if isinstance(left.literal, int | float):
            return self._compare_with_decimal(e.MIRRORED[operator], right, Fraction(repr(left.literal)))
        return compared(operator, left.sql, right.sql)

    def _compare_with_decimal(self, operator: e.ComparisonOperator, value: Typed, constant: Fraction) -> SQL:
        """Compares a decimal with a constant rounded to its scale: ``d < 0.125`` is ``d <= 0.12``."""
        units = constant * 10**value.scale
        most = 10**MOST_DIGITS
        if abs(units) >= most:
            holds = operator == "!=" or (operator != "=" and (operator in {"<", "<="}) == (units > 0))
            return _constant_if_known(holds, self.is_known(value))
        if units.denominator > 1:
            if operator in {"=", "!="}:
                return _constant_if_known(operator == "!=", self.is_known(value))
            is_below = operator in {"<", "<="}
            operator, units = ("<=" if is_below else ">="), Fraction((floor if is_below else ceil)(units))
        shown = f"{int(units):+0{value.scale + 2}d}"
        digits = f"{shown[: len(shown) - value.scale]}.{shown[len(shown) - value.scale :]}".rstrip(".")
        exact = cast(text(digits.removeprefix("+")), f"DECIMAL({MOST_DIGITS},{value.scale})")
        return compared(operator, value.sql, exact)

    def _compare_with_float(self, operator: e.ComparisonOperator, whole: Typed, number: float) -> SQL:
        """Compares an integer with a float literal as integers: ``n < 1.5`` is ``n < 2``."""
        if not math.isfinite(number) or abs(number) >= 2.0**63:
            smaller = number != -math.inf and (math.isnan(number) or number > 0)
            if number == -(2.0**63):
                return self.compare(operator, whole, self.literal(-(2**63)))
            holds = operator == "!=" or ((operator in {"<", "<="}) == smaller and operator != "=")
            return _constant_if_known(holds, self.is_known(whole))
        if number.is_integer():
            return self.compare(operator, whole, self.literal(int(number)))
        if operator in {"=", "!="}:
            return _constant_if_known(operator == "!=", self.is_known(whole))
        bound = math.ceil(number) if operator in {"<", ">="} else math.floor(number)
        return self.compare(operator, whole, self.literal(bound))

    def between(self, value: Typed, low: Typed, high: Typed) -> SQL:
        """``value BETWEEN low AND high``, both ends included."""
        above = self.compare(">=", value, low)
        below = self.compare("<=", value, high)
        return exp.paren(exp.and_(above, below), copy=False)

    def is_member(self, value: Typed, members: tuple[e.Literal | e.Range, ...]) -> SQL:
        """``IN {…}``: plain literals of the value's own kind in one list, the rest one by one."""
        listed: list[SQL] = []
        parts: list[SQL] = []
        for member in members:
            if isinstance(member, e.Range):
                low, high = self.literal(member.low.value), self.literal(member.high.value)
                parts.append(self.between(value, low, high))
                continue
            typed = self.literal(member.value)
            if typed.kind == value.kind and typed.kind is not None and value.tick == typed.tick == "us":
                listed.append(typed.sql)
            else:
                parts.append(self.compare("=", value, typed))
        if listed:
            parts.insert(0, exp.In(this=bound(value.sql), expressions=listed))
        return exp.paren(exp.or_(*parts, copy=False), copy=False)

    def is_listed(self, value: Typed, values: Sequence[Value]) -> SQL:
        """``IN`` a bound list of any length, of values of one kind without NULL."""
        if value.kind is None:
            return UNKNOWN.copy()
        known = in_form(values, value.kind, value.tick)
        if not known:
            return _constant_if_known(False, self.is_known(value))
        if value.kind is Kind.DECIMAL:
            shown = self.dialect.text_of_decimal(value.sql.copy(), value.scale)
            return exp.paren(self.dialect.listed(bound(shown), known, Kind.STRING), copy=False)
        own = self.dialect.ticks_of(value.sql, value.tick) if value.kind is Kind.TIMESTAMP else value.sql
        return exp.paren(self.dialect.listed(bound(own), known, value.kind), copy=False)

    def ticks(self, value: Typed, tick: Tick) -> SQL:
        """A duration, or a timestamp since the epoch, in 64-bit ticks; an overflow is an error."""
        if isinstance(value.literal, Duration):
            return cast(self.dialect.integer(value.literal.nanoseconds // _NANOSECONDS[tick]), "BIGINT")
        own = value.sql.copy()
        if value.kind is Kind.TIMESTAMP:
            own = self.dialect.ticks_of(own, value.tick)
        if value.tick == tick:
            return own
        known = self.all_known(value)
        return self.dialect.checked("*", own, self.wide(self.literal(1000)), known)

    def _nanos(self, value: Typed) -> SQL:
        """Nanoseconds since the epoch, without overflow for any instant."""
        if isinstance(value.literal, datetime):
            return self.dialect.integer(micros_of(value.literal) * 1000)
        return self.dialect.nanoseconds_of(value.sql, value.tick)

    # ------------------------------------------------------------------------------- arithmetic

    def arithmetic(self, operator: str, left: Typed, right: Typed) -> Typed:
        """``left operator right``; overflow of integers is an error, and division by zero gives NULL."""
        if left.kind is None or right.kind is None:
            return self.literal(None)
        known = self.all_known(left, right)
        if operator == "/":
            return self._divide(left, right, known)
        if left.kind is Kind.INT and right.kind is Kind.INT:
            if operator == "%":
                return self._remainder(left, right, known)
            checked = self.dialect.checked(operator, self.wide(left), self.wide(right), known)
            return Typed(checked, Kind.INT, known)
        a, b = self.as_float(left), self.as_float(right)
        if operator == "%":
            return _unless_zero(exp.Mod(this=bound(a), expression=bound(b)), b, known)
        build = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}[operator]
        return Typed(exp.paren(build(this=bound(a), expression=bound(b))), Kind.FLOAT, known)

    def _divide(self, left: Typed, right: Typed, known: tuple[SQL, ...]) -> Typed:
        a, b = self.as_float(left), self.as_float(right)
        return _unless_zero(exp.Div(this=bound(a), expression=bound(b), typed=True), b, known)

    def _remainder(self, left: Typed, right: Typed, known: tuple[SQL, ...]) -> Typed:
        zero, minus_one = self.dialect.integer(0), self.dialect.integer(-1)
        remainder = exp.Mod(this=bound(self.wide(left)), expression=bound(self.wide(right)))
        of_minus_one = either(is_not_null(left.sql), zero)
        guarded = (
            exp.Case()
            .when(compared("=", right.sql, zero), exp.Null())
            .when(compared("=", right.sql, minus_one), of_minus_one)
            .else_(remainder)
        )
        return Typed(cast(guarded, "BIGINT"), Kind.INT, (*known, compared("!=", right.sql, zero)))

    def negative(self, operand: Typed) -> Typed:
        """The negated number or duration."""
        if operand.kind is Kind.FLOAT:
            return Typed(exp.paren(exp.Neg(this=bound(operand.sql))), Kind.FLOAT, operand.known)
        if operand.kind is None:
            return operand
        if operand.kind is Kind.DURATION:
            zero, known = self.wide(self.literal(0)), self.all_known(operand)
            ticks = self.dialect.checked("-", zero, self.ticks(operand, operand.tick), known)
            return Typed(ticks, Kind.DURATION, known, tick=operand.tick)
        return self.arithmetic("-", self.literal(0), operand)

    def wide(self, value: Typed) -> SQL:
        """An integer as an operand of 64 bits."""
        return self.dialect.wide(value.sql.copy(), is_literal=value.literal is not None)

    def as_float(self, value: Typed) -> SQL:
        """A number as a float."""
        if isinstance(value.literal, int):
            return self.dialect.floating(float(value.literal))
        return value.sql.copy() if value.kind is Kind.FLOAT else cast(value.sql.copy(), "DOUBLE")

    # ------------------------------------------------------------------------------------- NULLs

    def is_known(self, value: Typed) -> SQL:
        """The test that a value is not NULL."""
        if value.known is None:
            return exp.paren(is_not_null(value.sql))
        return exp.paren(exp.and_(exp.true(), *value.known)) if value.known else exp.true()

    def all_known(self, *values: Typed) -> tuple[SQL, ...]:
        """The conditions under which none of the values is NULL."""
        parts: dict[SQL, None] = {}
        for value in values:
            conditions = (self.is_known(value),) if value.known is None else value.known
            parts.update(dict.fromkeys(conditions))
        return tuple(parts)


def finest(*values: Typed) -> Tick:
    """The finest resolution of the values."""
    return "ns" if any(value.tick == "ns" for value in values) else "us"


def _unless_zero(result: SQL, divisor: SQL, known: tuple[SQL, ...]) -> Typed:
    """A quotient of floats, or NULL if the divisor is zero."""
    value = either(compared("=", divisor, number(0)), exp.Null(), result)
    return Typed(value, Kind.FLOAT, (*known, compared("!=", divisor, number(0))))


def _constant_if_known(truth: bool, known: SQL) -> SQL:
    """`truth` if the operand is not NULL, else unknown."""
    return either(known, exp.true() if truth else exp.false(), exp.Null())
