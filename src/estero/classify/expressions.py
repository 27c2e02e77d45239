"""Expressions over one event → SQL of a dialect, with the same meaning in each (dialect.py)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlglot import exp

from estero.classify.columns import ColumnType, Tick, reference
from estero.classify.dialect import EXACT, Dialect, micros_of
from estero.classify.sql_trees import SQL, bound, call, cast, compared, either, is_not_null, number, text
from estero.errors import QueryError
from estero.language.tree import expressions as e
from estero.language.tree.literals import Value
from estero.language.tree.schema import Kind

UNKNOWN = cast(exp.Null(), "BOOLEAN")

_CONDITIONS = (e.Comparison, e.Between, e.In, e.Like, e.Matches, e.IsNull, e.And, e.Or, e.Not)

_MIRRORED: Mapping[e.ComparisonOperator, e.ComparisonOperator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression in SQL with its kind (None: the literal NULL) and, for a literal, its value.

    `known` are the conditions under which it is not NULL; None stands for "ask the value itself".
    """

    sql: SQL
    kind: Kind | None
    known: tuple[SQL, ...] | None = None
    literal: Value = None
    tick: Tick = "us"


class ExpressionWriter:
    """Writes expressions over one event for `dialect`, reading the columns as `columns` says.

    An attribute that is not in `columns` is missing from every event: NULL.
    """

    def __init__(self, columns: Mapping[str, ColumnType], dialect: Dialect) -> None:
        self._columns = columns
        self._dialect = dialect

    def condition(self, node: e.Node) -> SQL:
        """A predicate over one event as a boolean SQL expression; unknown is NULL."""
        match node:
            case e.And(parts):
                return exp.paren(exp.and_(*(self.condition(part) for part in parts)), copy=False)
            case e.Or(parts):
                return exp.paren(exp.or_(*(self.condition(part) for part in parts)), copy=False)
            case e.Not(e.IsNull(operand)):
                return self._is_known(self.value(operand))
            case e.Not(part):
                return exp.paren(exp.Not(this=exp.paren(self.condition(part))), copy=False)
            case e.Comparison(operator, left, right):
                return self.compare(operator, self.value(left), self.value(right))
            case e.Between(operand, low, high):
                value = self.value(operand)
                return self._between(value, self.value(low), self.value(high))
            case e.In(operand, members):
                return self._is_member(self.value(operand), members)
            case e.Like(operand, pattern) | e.Matches(operand, pattern):
                value = self.value(operand)
                test = self._dialect.like if isinstance(node, e.Like) else self._dialect.matches
                return UNKNOWN.copy() if value.kind is None else test(value.sql, pattern)
            case e.IsNull(operand):
                return exp.paren(exp.Not(this=self._is_known(self.value(operand))), copy=False)
            case e.Literal(bool() as truth):
                return exp.true() if truth else exp.false()
            case _:
                typed = self.value(node)
                return typed.sql if typed.kind is not None else UNKNOWN.copy()

    def value(self, node: e.Node) -> Typed:
        """An expression over one event with its kind."""
        match node:
            case e.Literal(value):
                return self._literal(value)
            case e.Attribute(name, None):
                return self._attribute(name)
            case e.Negative(e.Literal(int() | float() as number)) if not isinstance(number, bool):
                return self._literal(-number)
            case e.Negative(operand):
                return self._negative(self.value(operand))
            case e.Arithmetic(operator, left, right):
                return self._arithmetic(operator, self.value(left), self.value(right))
            case e.Call(name, arguments):
                return self._call(node, name, [self.value(argument) for argument in arguments])
            case _ if isinstance(node, _CONDITIONS):
                return Typed(self.condition(node), Kind.BOOL)
            case _:
                raise QueryError(f"{type(node).__name__} is not an expression over one event", span=node.span)

    # ---------------------------------------------------------------------------------- leaves

    def _attribute(self, name: str) -> Typed:
        column = self._columns.get(name)
        if column is None or column.kind is Kind.NULL:
            return self._literal(None)
        known = (is_not_null(reference(name, column)),)
        return Typed(self._dialect.as_read(name, column), column.kind, known, tick=column.tick)

    def _literal(self, value: Value) -> Typed:
        match value:
            case None:
                return Typed(exp.Null(), None, (exp.false(),))
            case bool():
                return Typed(exp.true() if value else exp.false(), Kind.BOOL, (), value)
            case int():
                return Typed(self._dialect.integer(value), Kind.INT, (), value)
            case float():
                return Typed(self._dialect.floating(value), Kind.FLOAT, (), value)
            case str():
                return Typed(text(value), Kind.STRING, (), value)
            case datetime():
                utc = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
                return Typed(self._dialect.instant(utc), Kind.TIMESTAMP, (), utc)

    # ------------------------------------------------------------------------------ comparisons

    def compare(self, operator: e.ComparisonOperator, left: Typed, right: Typed) -> SQL:
        """``left operator right`` as semantics.md means it."""
        kinds = (left.kind, right.kind)
        if None in kinds:
            return UNKNOWN.copy()
        if kinds == (Kind.INT, Kind.FLOAT):
            return self._compare_exactly(operator, left, right)
        if kinds == (Kind.FLOAT, Kind.INT):
            return self._compare_exactly(_MIRRORED[operator], right, left)
        if kinds == (Kind.TIMESTAMP, Kind.TIMESTAMP) and "ns" in (left.tick, right.tick):
            return compared(operator, self._nanos(left), self._nanos(right))
        return compared(operator, left.sql, right.sql)

    def _compare_exactly(self, operator: e.ComparisonOperator, whole: Typed, broken: Typed) -> SQL:
        """An integer against a float, as numbers: 2**53 + 1 is not 2.0**53.

        Rounding keeps the order, so it decides where the rounded integer differs from the float. Where they
        are equal the float is an integer, and integers are compared. 2.0**63 is the only such float that is
        not a 64-bit integer; it is above them all.
        """
        if isinstance(whole.literal, int) and abs(whole.literal) <= EXACT:
            return compared(operator, self._literal(float(whole.literal)).sql, broken.sql)
        if isinstance(broken.literal, float):
            return self._compare_with_float(operator, whole, broken.literal)
        rounded = cast(whole.sql.copy(), "DOUBLE")
        # NULL where the cast is none: a NULL beside it already makes the result unknown.
        whole_float = exp.TryCast(**cast(broken.sql.copy(), "BIGINT").args, safe=True)
        limit = self._dialect.floating(2.0**63)
        above: e.ComparisonOperator = "<=" if operator in {"<", "<=", "!="} else "<"
        return (
            exp.Case()
            .when(compared("!=", rounded, broken.sql), compared(operator, rounded, broken.sql))
            .when(compared("=", broken.sql, limit), compared(above, rounded, limit))
            .else_(compared(operator, whole.sql, whole_float))
        )

    def _compare_with_float(self, operator: e.ComparisonOperator, whole: Typed, number: float) -> SQL:
        """An integer against a float literal, as a comparison of integers: ``n < 1.5`` is ``n < 2``."""
        if not math.isfinite(number) or abs(number) >= 2.0**63:
            smaller = number != -math.inf and (math.isnan(number) or number > 0)
            if number == -(2.0**63):
                return self.compare(operator, whole, self._literal(-(2**63)))
            holds = operator == "!=" or ((operator in {"<", "<="}) == smaller and operator != "=")
            return _constant_if_known(holds, self._is_known(whole))
        if number.is_integer():
            return self.compare(operator, whole, self._literal(int(number)))
        if operator in {"=", "!="}:
            return _constant_if_known(operator == "!=", self._is_known(whole))
        bound = math.ceil(number) if operator in {"<", ">="} else math.floor(number)
        return self.compare(operator, whole, self._literal(bound))

    def _between(self, value: Typed, low: Typed, high: Typed) -> SQL:
        above = self.compare(">=", value, low)
        below = self.compare("<=", value, high)
        return exp.paren(exp.and_(above, below), copy=False)

    def _is_member(self, value: Typed, members: tuple[e.Literal | e.Range, ...]) -> SQL:
        """``IN {…}``: plain literals of the value's own kind in one list, the rest one by one."""
        listed: list[SQL] = []
        parts: list[SQL] = []
        for member in members:
            if isinstance(member, e.Range):
                parts.append(self._between(value, self.value(member.low), self.value(member.high)))
                continue
            typed = self.value(member)
            if typed.kind == value.kind and typed.kind is not None and value.tick == "us":
                listed.append(typed.sql)
            else:
                parts.append(self.compare("=", value, typed))
        if listed:
            parts.insert(0, exp.In(this=bound(value.sql), expressions=listed))
        return exp.paren(exp.or_(*parts, copy=False), copy=False)

    def _nanos(self, value: Typed) -> SQL:
        """Nanoseconds since the epoch; no instant overflows them."""
        if isinstance(value.literal, datetime):
            return self._dialect.integer(micros_of(value.literal) * 1000)
        return self._dialect.nanoseconds_of(value.sql, value.tick)

    # ------------------------------------------------------------------------------- arithmetic

    def _arithmetic(self, operator: str, left: Typed, right: Typed) -> Typed:
        if left.kind is None or right.kind is None:
            return self._literal(None)
        known = self._both_known(left, right)
        if operator == "/":
            return self._divide(left, right, known)
        if left.kind is Kind.INT and right.kind is Kind.INT:
            if operator == "%":
                return self._remainder(left, right, known)
            checked = self._dialect.checked(operator, self._wide(left), self._wide(right), known)
            return Typed(checked, Kind.INT, known)
        a, b = self._as_float(left), self._as_float(right)
        if operator == "%":
            return _unless_zero(exp.Mod(this=bound(a), expression=bound(b)), b, known)
        build = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}[operator]
        return Typed(exp.paren(build(this=bound(a), expression=bound(b))), Kind.FLOAT, known)

    def _divide(self, left: Typed, right: Typed, known: tuple[SQL, ...]) -> Typed:
        a, b = self._as_float(left), self._as_float(right)
        return _unless_zero(exp.Div(this=bound(a), expression=bound(b), typed=True), b, known)

    def _remainder(self, left: Typed, right: Typed, known: tuple[SQL, ...]) -> Typed:
        zero, minus_one = self._dialect.integer(0), self._dialect.integer(-1)
        remainder = exp.Mod(this=bound(self._wide(left)), expression=bound(self._wide(right)))
        of_minus_one = either(is_not_null(left.sql), zero)
        guarded = (
            exp.Case()
            .when(compared("=", right.sql, zero), exp.Null())
            .when(compared("=", right.sql, minus_one), of_minus_one)
            .else_(remainder)
        )
        return Typed(cast(guarded, "BIGINT"), Kind.INT, (*known, compared("!=", right.sql, zero)))

    def _negative(self, operand: Typed) -> Typed:
        if operand.kind is Kind.FLOAT:
            return Typed(exp.paren(exp.Neg(this=bound(operand.sql))), Kind.FLOAT, operand.known)
        if operand.kind is None:
            return operand
        return self._arithmetic("-", self._literal(0), operand)

    def _wide(self, value: Typed) -> SQL:
        return self._dialect.wide(value.sql.copy(), is_literal=value.literal is not None)

    def _as_float(self, value: Typed) -> SQL:
        if isinstance(value.literal, int):
            return self._dialect.floating(float(value.literal))
        return value.sql.copy() if value.kind is Kind.FLOAT else cast(value.sql.copy(), "DOUBLE")

    # --------------------------------------------------------------------------------- functions

    def _call(self, node: e.Node, name: str, arguments: list[Typed]) -> Typed:
        if name == "coalesce":
            return self._coalesce(arguments)
        (argument,) = arguments
        if argument.kind is None:
            return argument
        match name:
            case "abs":
                return self._abs(argument)
            case "floor" | "ceil":
                if argument.kind is Kind.INT:
                    return argument
                return Typed(self._dialect.rounded(name, argument.sql), Kind.FLOAT, argument.known)
            case "year" | "month" | "day" | "hour" | "minute" | "second":
                part = self._dialect.part_of_time(name, argument.sql, argument.tick)
                return Typed(part, Kind.INT, argument.known)
            case "length":
                return Typed(cast(call(name, argument.sql), "BIGINT"), Kind.INT, argument.known)
            case _:
                raise QueryError(f"there is no function {name}", span=node.span)

    def _coalesce(self, arguments: list[Typed]) -> Typed:
        typed = [argument for argument in arguments if argument.kind is not None]
        if not typed:
            return self._literal(None)
        kinds = {argument.kind for argument in typed}
        if kinds == {Kind.INT, Kind.FLOAT}:
            return Typed(call("coalesce", *map(self._as_float, typed)), Kind.FLOAT)
        if kinds == {Kind.INT}:
            return Typed(call("coalesce", *map(self._wide, typed)), Kind.INT)
        tick: Tick = "ns" if any(argument.tick == "ns" for argument in typed) else "us"
        return Typed(call("coalesce", *(argument.sql for argument in typed)), typed[0].kind, tick=tick)

    def _abs(self, argument: Typed) -> Typed:
        if argument.kind is Kind.FLOAT:
            return Typed(call("abs", argument.sql), Kind.FLOAT, argument.known)
        negative = compared("<", argument.sql, self._dialect.integer(0))
        value = either(negative, self._negative(argument).sql, self._wide(argument))
        return Typed(value, Kind.INT, argument.known)

    # ------------------------------------------------------------------------------------- NULLs

    def _is_known(self, value: Typed) -> SQL:
        if value.known is None:
            return exp.paren(is_not_null(value.sql))
        return exp.paren(exp.and_(exp.true(), *value.known)) if value.known else exp.true()

    def _both_known(self, left: Typed, right: Typed) -> tuple[SQL, ...]:
        parts: dict[SQL, None] = {}
        for side in (left, right):
            conditions = (self._is_known(side),) if side.known is None else side.known
            parts.update(dict.fromkeys(conditions))
        return tuple(parts)


def _unless_zero(result: SQL, divisor: SQL, known: tuple[SQL, ...]) -> Typed:
    """A float, or NULL where the divisor is zero."""
    value = either(compared("=", divisor, number(0)), exp.Null(), result)
    return Typed(value, Kind.FLOAT, (*known, compared("!=", divisor, number(0))))


def _constant_if_known(truth: bool, known: SQL) -> SQL:
    """`truth` where the operand is known, else unknown."""
    return either(known, exp.true() if truth else exp.false(), exp.Null())
