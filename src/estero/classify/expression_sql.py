"""One predicate tree → SQL for DuckDB and for Spark, with the same meaning on both.

What the engines do differently of their own accord, and what is written here instead:

===========================  ================================  =========================================
semantics.md says            engines                           here
===========================  ================================  =========================================
overflow is an error         Spark only in ANSI mode, DuckDB   ``try_add`` and an explicit ``raise_error``;
                             unless it rewrites the condition  ``add``, which DuckDB does not rewrite
integers against floats      both round the integer first      `_compare_exactly`
``/``, ``%`` by zero is NULL  errors, or infinities            an explicit CASE
``min_int % -1`` is 0        DuckDB: an overflow               an explicit CASE
float literals               DuckDB reads 0.1 as a decimal     written with an exponent, ``1e-1``
instants                     by the session's zone             columns.py; literals as UTC instants
===========================  ================================  =========================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlglot import exp

from estero.classify.columns import ColumnType, Dialect, Tick, as_read, cast, micros, reference
from estero.errors import QueryError
from estero.language.regex.dialects import for_re2
from estero.language.regex.java import for_java, like_for_java
from estero.language.tree.expressions import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    ComparisonOperator,
    In,
    IsNull,
    Like,
    Literal,
    Matches,
    Negative,
    Node,
    Not,
    Or,
    Range,
)
from estero.language.tree.literals import Value
from estero.language.tree.schema import Kind

SQL = exp.Expr

MATCHER = "estero_matches"
"""The function that matches expressions on Spark which its Java cannot: of a text and RE2's syntax."""
_MOST_LOOPS_OF_LIKE = 2
"""Spark makes a regular expression of LIKE, and Java tries all ways through ``%a%b%c%``."""

TRUE, FALSE = exp.true(), exp.false()
UNKNOWN = cast(exp.Null(), "BOOLEAN")

_COMPARE: Mapping[ComparisonOperator, Callable[..., SQL]] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}
_MIRRORED: Mapping[ComparisonOperator, ComparisonOperator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
_OVERFLOW = "estero: 64-bit overflow"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_CLOCK = {"hour": (3600 * _SECOND, 24), "minute": (60 * _SECOND, 60), "second": (_SECOND, 60)}
"""The length of each in microseconds, and how many make up the next."""
_EXACT = 2**53
"""Integers up to here are exact as floats."""


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

    def condition(self, node: Node) -> SQL:
        """A predicate over one event as a boolean SQL expression; unknown is NULL."""
        match node:
            case And(parts):
                return exp.paren(exp.and_(*(self.condition(part) for part in parts)), copy=False)
            case Or(parts):
                return exp.paren(exp.or_(*(self.condition(part) for part in parts)), copy=False)
            case Not(IsNull(operand)):
                return self._is_known(self.value(operand))
            case Not(part):
                return exp.paren(exp.Not(this=exp.paren(self.condition(part))), copy=False)
            case Comparison(operator, left, right):
                return self.compare(operator, self.value(left), self.value(right))
            case Between(operand, low, high):
                value = self.value(operand)
                return self._between(value, self.value(low), self.value(high))
            case In(operand, members):
                return self._is_member(self.value(operand), members)
            case Like(operand, pattern):
                return self._like(self.value(operand), pattern)
            case Matches(operand, regex):
                return self._matches(self.value(operand), regex)
            case IsNull(operand):
                return exp.paren(exp.Not(this=self._is_known(self.value(operand))), copy=False)
            case Literal(bool() as truth):
                return exp.true() if truth else exp.false()
            case _:
                typed = self.value(node)
                return typed.sql if typed.kind is not None else UNKNOWN.copy()

    def value(self, node: Node) -> Typed:
        """An expression over one event with its kind."""
        match node:
            case Literal(value):
                return self._literal(value)
            case Attribute(name, None):
                return self._attribute(name)
            case Negative(Literal(int() | float() as number)) if not isinstance(number, bool):
                return self._literal(-number)
            case Negative(operand):
                return self._negative(self.value(operand))
            case Arithmetic(operator, left, right):
                return self._arithmetic(operator, self.value(left), self.value(right))
            case Call(name, arguments):
                return self._call(node, name, [self.value(argument) for argument in arguments])
            case Comparison() | Between() | In() | Like() | Matches() | IsNull() | And() | Or() | Not():
                return Typed(self.condition(node), Kind.BOOL)
            case _:
                raise QueryError(f"{type(node).__name__} is not an expression over one event", span=node.span)

    # ---------------------------------------------------------------------------------- leaves

    def _attribute(self, name: str) -> Typed:
        column = self._columns.get(name)
        if column is None or column.kind is Kind.NULL:
            return self._literal(None)
        known = (_is_not_null(reference(name, column)),)
        return Typed(as_read(name, column), column.kind, known, tick=column.tick)

    def _literal(self, value: Value) -> Typed:
        match value:
            case None:
                return Typed(exp.Null(), None, (exp.false(),))
            case bool():
                return Typed(exp.true() if value else exp.false(), Kind.BOOL, (), value)
            case int():
                return Typed(_integer(value, self._dialect), Kind.INT, (), value)
            case float():
                return Typed(_float(value, self._dialect), Kind.FLOAT, (), value)
            case str():
                return Typed(exp.Literal.string(value), Kind.STRING, (), value)
            case datetime():
                return Typed(_instant(value, self._dialect), Kind.TIMESTAMP, (), value)

    # ------------------------------------------------------------------------------ comparisons

    def compare(self, operator: ComparisonOperator, left: Typed, right: Typed) -> SQL:
        """``left operator right`` as semantics.md means it."""
        kinds = (left.kind, right.kind)
        if None in kinds:
            return UNKNOWN.copy()
        if kinds == (Kind.INT, Kind.FLOAT):
            return self._compare_exactly(operator, left, right)
        if kinds == (Kind.FLOAT, Kind.INT):
            return self._compare_exactly(_MIRRORED[operator], right, left)
        if kinds == (Kind.TIMESTAMP, Kind.TIMESTAMP) and "ns" in (left.tick, right.tick):
            return _COMPARE[operator](this=self._nanos(left), expression=self._nanos(right))
        return _COMPARE[operator](this=_operand(left.sql), expression=_operand(right.sql))

    def _compare_exactly(self, operator: ComparisonOperator, whole: Typed, broken: Typed) -> SQL:
        """An integer against a float, as numbers: 2**53 + 1 is not 2.0**53.

        Rounding keeps order, so where the rounded integer differs from the float it decides; where they
        are equal the float is an integer, and integers are compared. 2.0**63 is the one such float that
        is no 64-bit integer; it is above all of them.
        """
        if isinstance(whole.literal, int) and abs(whole.literal) <= _EXACT:
            rounded = self._literal(float(whole.literal))
            return _COMPARE[operator](this=_operand(rounded.sql), expression=_operand(broken.sql))
        if isinstance(broken.literal, float):
            return self._compare_with_float(operator, whole, broken.literal)
        rounded_sql = cast(whole.sql.copy(), "DOUBLE")
        limit = _float(2.0**63, self._dialect)
        above: ComparisonOperator = "<=" if operator in {"<", "<=", "!="} else "<"
        return (
            exp.Case()
            .when(
                exp.NEQ(this=rounded_sql, expression=_operand(broken.sql)),
                _COMPARE[operator](this=rounded_sql.copy(), expression=_operand(broken.sql)),
            )
            .when(
                exp.EQ(this=_operand(broken.sql), expression=limit),
                _COMPARE[above](this=rounded_sql.copy(), expression=limit.copy()),
            )
            .else_(_COMPARE[operator](this=_operand(whole.sql), expression=_try_cast(broken.sql, "BIGINT")))
        )

    def _compare_with_float(self, operator: ComparisonOperator, whole: Typed, number: float) -> SQL:
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

    def _is_member(self, value: Typed, members: tuple[Literal | Range, ...]) -> SQL:
        """``IN {…}``: plain literals of the value's own kind in one list, the rest one by one."""
        listed: list[SQL] = []
        parts: list[SQL] = []
        for member in members:
            if isinstance(member, Range):
                parts.append(self._between(value, self.value(member.low), self.value(member.high)))
                continue
            typed = self.value(member)
            if typed.kind == value.kind and typed.kind is not None and value.tick == "us":
                listed.append(typed.sql)
            else:
                parts.append(self.compare("=", value, typed))
        if listed:
            parts.insert(0, exp.In(this=_operand(value.sql), expressions=listed))
        return exp.paren(exp.or_(*parts, copy=False), copy=False)

    def _nanos(self, value: Typed) -> SQL:
        """Nanoseconds since the epoch, in DuckDB's 128-bit integers: no instant overflows them."""
        if isinstance(value.literal, datetime):
            return _integer((value.literal - _EPOCH) // timedelta(microseconds=1) * 1000, self._dialect)
        if value.tick == "ns":
            return exp.Anonymous(this="epoch_ns", expressions=[value.sql])
        wide = cast(micros(value.sql, self._dialect), "HUGEINT")
        return exp.paren(exp.Mul(this=wide, expression=exp.Literal.number(1000)))

    # ---------------------------------------------------------------------------------- strings

    def _like(self, value: Typed, pattern: str) -> SQL:
        if value.kind is None:
            return UNKNOWN.copy()
        if self._dialect == "spark" and pattern.count("%") > _MOST_LOOPS_OF_LIKE:
            once = exp.Literal.string(like_for_java(pattern))
            return exp.RegexpLike(this=_operand(value.sql), expression=once)
        like = exp.Like(this=_operand(value.sql), expression=exp.Literal.string(_escaped(pattern)))
        if self._dialect == "spark":  # a backslash is the escape; settings can make ESCAPE '\\' fail
            return like
        return exp.Escape(this=like, expression=exp.Literal.string("\\"))

    def _matches(self, value: Typed, regex: str) -> SQL:
        if value.kind is None:
            return UNKNOWN.copy()
        if self._dialect == "duckdb":
            arguments = [value.sql, exp.Literal.string(for_re2(regex))]
            return exp.Anonymous(this="regexp_matches", expressions=arguments)
        in_java = for_java(regex)
        if in_java is None:
            return exp.Anonymous(this=MATCHER, expressions=[value.sql, exp.Literal.string(for_re2(regex))])
        return exp.RegexpLike(this=_operand(value.sql), expression=exp.Literal.string(in_java))

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
            return Typed(self._checked(operator, left, right, known), Kind.INT, known)
        a, b = self._as_float(left), self._as_float(right)
        if operator == "%":
            remainder = exp.Mod(this=_operand(a), expression=_operand(b))
            return Typed(_unless_zero(b, remainder), Kind.FLOAT, (*known, _is_not_zero(b)))
        build = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}[operator]
        return Typed(exp.paren(build(this=_operand(a), expression=_operand(b))), Kind.FLOAT, known)

    def _divide(self, left: Typed, right: Typed, known: tuple[SQL, ...]) -> Typed:
        a, b = self._as_float(left), self._as_float(right)
        quotient = exp.Div(this=_operand(a), expression=_operand(b), typed=True)
        return Typed(_unless_zero(b, quotient), Kind.FLOAT, (*known, _is_not_zero(b)))

    def _remainder(self, left: Typed, right: Typed, known: tuple[SQL, ...]) -> Typed:
        zero, minus_one = _integer(0, self._dialect), _integer(-1, self._dialect)
        remainder = exp.Mod(this=_operand(self._wide(left)), expression=_operand(self._wide(right)))
        of_minus_one = exp.Case().when(_is_not_null(left.sql.copy()), zero)
        guarded = (
            exp.Case()
            .when(exp.EQ(this=_operand(right.sql), expression=zero.copy()), exp.Null())
            .when(exp.EQ(this=_operand(right.sql), expression=minus_one), of_minus_one)
            .else_(remainder)
        )
        not_zero = exp.NEQ(this=_operand(right.sql), expression=zero.copy())
        return Typed(cast(guarded, "BIGINT"), Kind.INT, (*known, not_zero))

    def _checked(self, operator: str, left: Typed, right: Typed, known: tuple[SQL, ...]) -> SQL:
        """``+ - *`` on 64-bit integers; an overflow is an error, whatever Spark's ANSI setting.

        DuckDB turns ``n + 1 > 0`` into ``n > -1``, which forgets the overflow, but leaves ``add`` alone.
        """
        a, b = self._wide(left), self._wide(right)
        if self._dialect == "duckdb":
            name = {"+": "add", "-": "subtract", "*": "multiply"}[operator]
            return exp.Anonymous(this=name, expressions=[a, b])
        name = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}[operator]
        return _or_overflow(exp.Anonymous(this=name, expressions=[a, b]), known)

    def _negative(self, operand: Typed) -> Typed:
        if operand.kind is Kind.FLOAT:
            return Typed(exp.paren(exp.Neg(this=_operand(operand.sql))), Kind.FLOAT, operand.known)
        if operand.kind is None:
            return operand
        return self._arithmetic("-", self._literal(0), operand)

    def _wide(self, value: Typed) -> SQL:
        """A 64-bit operand: DuckDB gives a small literal a small type."""
        if self._dialect == "duckdb" and value.literal is not None:
            return cast(value.sql.copy(), "BIGINT")
        return value.sql.copy()

    def _as_float(self, value: Typed) -> SQL:
        if isinstance(value.literal, int):
            return _float(float(value.literal), self._dialect)
        return value.sql.copy() if value.kind is Kind.FLOAT else cast(value.sql.copy(), "DOUBLE")

    # --------------------------------------------------------------------------------- functions

    def _call(self, node: Node, name: str, arguments: list[Typed]) -> Typed:
        if name == "coalesce":
            return self._coalesce(arguments)
        (argument,) = arguments
        if argument.kind is None:
            return argument
        match name:
            case "abs":
                return self._abs(argument)
            case "floor" | "ceil":
                return self._round(name, argument)
            case "year" | "month" | "day" | "hour" | "minute" | "second":
                return Typed(self._part_of_time(name, argument), Kind.INT, argument.known)
            case "length":
                call = exp.Anonymous(this=name, expressions=[argument.sql])
                return Typed(cast(call, "BIGINT"), Kind.INT, argument.known)
            case _:
                raise QueryError(f"there is no function {name}", span=node.span)

    def _coalesce(self, arguments: list[Typed]) -> Typed:
        typed = [argument for argument in arguments if argument.kind is not None]
        if not typed:
            return self._literal(None)
        kinds = {argument.kind for argument in typed}
        if kinds == {Kind.INT, Kind.FLOAT}:
            return Typed(_coalesce([self._as_float(argument) for argument in typed]), Kind.FLOAT)
        if kinds == {Kind.INT}:
            return Typed(_coalesce([self._wide(argument) for argument in typed]), Kind.INT)
        tick: Tick = "ns" if any(argument.tick == "ns" for argument in typed) else "us"
        return Typed(_coalesce([argument.sql for argument in typed]), typed[0].kind, tick=tick)

    def _abs(self, argument: Typed) -> Typed:
        if argument.kind is Kind.FLOAT:
            return Typed(exp.Anonymous(this="abs", expressions=[argument.sql]), Kind.FLOAT, argument.known)
        negative = exp.LT(this=_operand(argument.sql), expression=_integer(0, self._dialect))
        value = exp.Case().when(negative, self._negative(argument).sql).else_(self._wide(argument))
        return Typed(value, Kind.INT, argument.known)

    def _round(self, name: str, argument: Typed) -> Typed:
        """``floor`` and ``ceil`` of a float are floats (Spark makes them 64-bit integers)."""
        if argument.kind is Kind.INT:
            return argument
        call = exp.Anonymous(this=name, expressions=[argument.sql])
        if self._dialect == "duckdb":
            return Typed(call, Kind.FLOAT, argument.known)
        size = exp.Anonymous(this="abs", expressions=[argument.sql.copy()])
        has_fraction = exp.LT(this=size, expression=_float(float(_EXACT), self._dialect))
        value = exp.Case().when(has_fraction, cast(call, "DOUBLE")).else_(argument.sql.copy())
        return Typed(value, Kind.FLOAT, argument.known)

    def _part_of_time(self, part: str, argument: Typed) -> SQL:
        """Calendar and clock in UTC. Spark's own functions ask the session's zone; those of dates do not."""
        if self._dialect == "duckdb":
            instant = argument.sql
            if argument.tick == "ns":
                instant = _microseconds_of(exp.Anonymous(this="epoch_ns", expressions=[instant]))
            return cast(exp.Anonymous(this=part, expressions=[instant]), "BIGINT")
        instant = micros(argument.sql, "spark")
        if part in _CLOCK:
            unit, modulus = _CLOCK[part]
            return self._whole_part(self._rest(instant, unit * modulus), unit)
        day = cast(self._whole_part(exp.Sub(this=instant, expression=self._rest(instant, _DAY)), _DAY), "INT")
        date = exp.Anonymous(this="date_from_unix_date", expressions=[day])
        return cast(exp.Anonymous(this=part, expressions=[date]), "BIGINT")

    def _rest(self, number: SQL, modulus: int) -> SQL:
        return exp.Anonymous(this="pmod", expressions=[number.copy(), _integer(modulus, self._dialect)])

    def _whole_part(self, number: SQL, divisor: int) -> SQL:
        return exp.paren(exp.IntDiv(this=exp.paren(number), expression=_integer(divisor, self._dialect)))

    # ------------------------------------------------------------------------------------- NULLs

    def _is_known(self, value: Typed) -> SQL:
        if value.known is None:
            return exp.paren(_is_not_null(value.sql))
        return exp.paren(exp.and_(exp.true(), *value.known)) if value.known else exp.true()

    def _both_known(self, left: Typed, right: Typed) -> tuple[SQL, ...]:
        parts: dict[SQL, None] = {}
        for side in (left, right):
            conditions = (self._is_known(side),) if side.known is None else side.known
            parts.update(dict.fromkeys(conditions))
        return tuple(parts)


def _operand(value: SQL) -> SQL:
    """A copy of `value` that binds as one operand."""
    if isinstance(value, exp.Column | exp.Literal | exp.Cast | exp.Anonymous | exp.Paren):
        return value.copy()
    return exp.paren(value)


def _integer(number: int, dialect: Dialect) -> SQL:
    if number == -(2**63) and dialect == "spark":
        return cast(exp.Literal.string(str(number)), "BIGINT")
    literal = exp.Literal.number(f"{abs(number)}L" if dialect == "spark" else str(abs(number)))
    return exp.paren(exp.Neg(this=literal)) if number < 0 else literal


def _float(number: float, dialect: Dialect) -> SQL:
    if not math.isfinite(number):
        name = "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
        return cast(exp.Literal.string(name), "DOUBLE")
    text = repr(abs(number))
    literal = exp.Literal.number(text if "e" in text else f"{text}e0")
    if dialect == "spark":
        literal = exp.Literal.number(f"{text}D")
    return exp.paren(exp.Neg(this=literal)) if math.copysign(1.0, number) < 0 else literal


def _instant(moment: datetime, dialect: Dialect) -> SQL:
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if dialect == "duckdb":
        return cast(exp.Literal.string(utc.replace(tzinfo=None).isoformat(" ")), "TIMESTAMP")
    ticks = (utc - _EPOCH) // timedelta(microseconds=1)
    return exp.Anonymous(this="timestamp_micros", expressions=[_integer(ticks, dialect)])


def _microseconds_of(nanoseconds: SQL) -> SQL:
    """DuckDB's timestamp of the microsecond that has begun (its cast takes the nearest)."""
    beyond = exp.Anonymous(this="mod", expressions=[nanoseconds.copy(), exp.Literal.number(1000)])
    whole = exp.Sub(this=nanoseconds.copy(), expression=beyond)
    step = exp.Case().when(
        exp.LT(this=beyond.copy(), expression=exp.Literal.number(0)), exp.Literal.number(1)
    )
    micros = exp.IntDiv(this=exp.paren(whole), expression=exp.Literal.number(1000))
    return exp.Anonymous(
        this="make_timestamp",
        expressions=[exp.Sub(this=micros, expression=step.else_(exp.Literal.number(0)))],
    )


def _escaped(pattern: str) -> str:
    """The pattern of LIKE with escapes only where both engines accept them: before ``% _ \\``."""
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        escaped = next(characters, "\\") if character == "\\" else None
        if escaped is None:
            parts.append(character)
        else:
            parts.append(f"\\{escaped}" if escaped in {"%", "_", "\\"} else escaped)
    return "".join(parts)


def _is_not_null(value: SQL) -> SQL:
    return exp.Not(this=exp.Is(this=_operand(value), expression=exp.Null()))


def _is_not_zero(value: SQL) -> SQL:
    return exp.NEQ(this=_operand(value), expression=exp.Literal.number(0))


def _unless_zero(divisor: SQL, result: SQL) -> SQL:
    zero = exp.EQ(this=_operand(divisor), expression=exp.Literal.number(0))
    return exp.Case().when(zero, exp.Null()).else_(result)


def _constant_if_known(truth: bool, known: SQL) -> SQL:
    """`truth` where the operand is known, else unknown."""
    return exp.Case().when(known, exp.true() if truth else exp.false()).else_(exp.Null())


def _or_overflow(value: SQL, known: tuple[SQL, ...]) -> SQL:
    message = exp.Literal.string(_OVERFLOW)
    failure = cast(exp.Anonymous(this="raise_error", expressions=[message]), "BIGINT")
    if not known:
        return _coalesce([value, failure])
    return _coalesce([value, exp.Case().when(exp.and_(*known), failure).else_(exp.Null())])


def _try_cast(value: SQL, engine_type: str) -> SQL:
    """NULL where the cast is none: a NULL beside it already makes the result unknown."""
    return exp.TryCast(**cast(value.copy(), engine_type).args, safe=True)


def _coalesce(values: list[SQL]) -> SQL:
    return exp.Anonymous(this="coalesce", expressions=values)
