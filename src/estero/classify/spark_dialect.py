"""SQL in the dialect of Spark, independent of the settings of its session.

Spark replaces ``${…}`` in every text that it parses (``spark.sql.variable.substitute``), even inside strings,
and reads backslashes in strings according to ``spark.sql.parser.escapedStringLiterals``. So a string with a
character that may be special is written in hexadecimal digits: Spark makes a constant of them before it looks
for filters to push into a scan.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import ClassVar, Final

from sqlglot import exp

from estero.classify.columns import ColumnType, Tick, reference
from estero.classify.dialect import Dialect, escaped
from estero.classify.instants import EXACT, FIRST, LAST, micros_of
from estero.classify.sql_trees import (
    SQL,
    bound,
    call,
    cast,
    compared,
    either,
    is_not_null,
    negative,
    number,
    text,
    total,
)
from estero.errors import DataError, QueryError
from estero.language.regex.dialects import for_re2
from estero.language.regex.java import for_java, like_for_java
from estero.language.tree.paths import Step
from estero.language.tree.schema import Kind

LOCAL_TIME = "timestamp_ntz"
"""The type of timestamps without a zone, which are taken to be in UTC."""
MATCHER = "estero_matches"
"""The function for expressions that Java cannot match; its arguments are a text and an RE2 expression."""

_MOST_LOOPS_OF_LIKE = 2
"""The most ``%`` for which Spark's LIKE is used, because Java tries all ways through ``%a%b%c%``."""
_PLAIN = re.compile(r"[\w !#%&()*+,./:;<=>?@^|~\-]*")
"""Strings that are literal in every setting."""
_OVERFLOW = "estero: 64-bit overflow"
_BEYOND_CALENDAR = "estero: overflow of a timestamp, which is before the year 1 or after the year 9999"
_CHECKED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_CLOCK = {"hour": (3600 * _SECOND, 24), "minute": (60 * _SECOND, 60), "second": (_SECOND, 60)}
"""The length of each in microseconds, and how many make up the next."""
_LENGTHS = {
    "week": (7 * _DAY, 4 * _DAY),
    "day": (_DAY, 0),
    **{unit: (length, 0) for unit, (length, _) in _CLOCK.items()},
}
"""The length of each in microseconds, and the start of one of them."""


class Spark(Dialect):
    """The dialect of Spark, with the same meaning under all settings of a session."""

    name = "spark"
    text_type = "STRING"
    hash_type = "BIGINT"
    starts_with = "startswith"
    ends_with = "endswith"
    types: ClassVar[Mapping[str, ColumnType]] = {
        "void": ColumnType(Kind.NULL, "BIGINT"),
        "boolean": ColumnType(Kind.BOOL),
        "bigint": ColumnType(Kind.INT),
        "tinyint": ColumnType(Kind.INT, "BIGINT"),
        "smallint": ColumnType(Kind.INT, "BIGINT"),
        "int": ColumnType(Kind.INT, "BIGINT"),
        "double": ColumnType(Kind.FLOAT),
        "float": ColumnType(Kind.FLOAT, "DOUBLE"),
        "string": ColumnType(Kind.STRING),
        "timestamp": ColumnType(Kind.TIMESTAMP),
        "timestamp_ntz": ColumnType(Kind.TIMESTAMP, LOCAL_TIME),
        "date": ColumnType(Kind.TIMESTAMP, LOCAL_TIME),
    }

    def column_type(self, engine_type: str) -> ColumnType:
        """The column type for a type as ``df.dtypes`` names it."""
        if engine_type.startswith(("char(", "varchar(", "string collate ")):
            return ColumnType(Kind.STRING, "STRING")
        return super().column_type(engine_type)

    def stepped(self, value: SQL, step: Step) -> SQL:
        if isinstance(step, int):
            return call("get", value, number(step - 1))
        if "${" in step:
            raise DataError(
                f"the field {step!r} has ${{ in its name, which Spark replaces in every text of SQL",
                hint="rename the field",
            )
        return exp.Dot(this=value, expression=exp.to_identifier(step, quoted=True))

    def of_elements(self, whole: SQL, item: exp.Column, value: SQL) -> SQL:
        return call("transform", whole, _lambda(item, value))

    def flat(self, whole: SQL, item: exp.Column) -> SQL:
        return call("flatten", call("filter", whole, _lambda(item, is_not_null(item))))

    def any_element(self, whole: SQL, item: exp.Column, condition: SQL) -> SQL:
        return call("exists", whole, _lambda(item, condition))

    def let(self, name: exp.Column, value: SQL, result: SQL) -> SQL:
        return call("get", call("transform", call("array", value), _lambda(name, result)), number(0))

    def in_utc(self, column: ColumnType) -> ColumnType:
        """The same column for a session in UTC, where Spark's own fast cast is right."""
        return replace(column, cast="timestamp") if column.cast == LOCAL_TIME else column

    def as_read(self, name: str, column: ColumnType) -> SQL:
        if column.cast != LOCAL_TIME:
            return super().as_read(name, column)
        return call("timestamp_micros", _micros_of_local_time(reference(name, column)))

    def integer(self, value: int) -> SQL:
        if value == -(2**63):
            return cast(text(str(value)), "BIGINT")
        return negative(number(f"{abs(value)}L"), is_negative=value < 0)

    def _float_text(self, digits: str) -> str:
        return f"{digits}D"

    def instant(self, moment: datetime) -> SQL:
        return call("timestamp_micros", self.integer(micros_of(moment)))

    def from_json(self, items: SQL, element: str) -> SQL:
        return call("explode", call("from_json", items, text(f"array<{element}>")))

    def like(self, value: SQL, pattern: str) -> SQL:
        if pattern.count("%") > _MOST_LOOPS_OF_LIKE:
            return exp.RegexpLike(this=bound(value), expression=text(like_for_java(pattern)))
        # A backslash is the escape; settings can make ESCAPE '\\' fail.
        return exp.Like(this=bound(value), expression=text(escaped(pattern)))

    def matches(self, value: SQL, regex: str) -> SQL:
        in_java = for_java(regex)
        if in_java is None:
            return call(MATCHER, value, text(for_re2(regex)))
        return exp.RegexpLike(this=bound(value), expression=text(in_java))

    def checked(self, operator: str, left: SQL, right: SQL, known: Sequence[SQL]) -> SQL:
        failure = _failure(_OVERFLOW, "BIGINT")
        beyond = either(exp.and_(*known), failure, exp.Null()) if known else failure
        return call("coalesce", call(_CHECKED[operator], left, right), beyond)

    def wide(self, value: SQL, *, is_literal: bool) -> SQL:
        return value

    def rounded(self, function: str, value: SQL) -> SQL:
        # Spark converts floats to 64-bit integers, which is only right for those that have a fraction.
        has_fraction = compared("<", call("abs", value.copy()), self.floating(float(EXACT)))
        return either(has_fraction, cast(call(function, value), "DOUBLE"), value.copy())

    def whole(self, value: SQL) -> SQL:
        # A cast turns 2.0**63 into the greatest integer, and everything larger as well without ANSI mode.
        number = exp.TryCast(**cast(value, "BIGINT").args, safe=True)
        fitting = either(compared("<", value, self.floating(2.0**63)), number)
        beyond = either(is_not_null(value), _failure(_OVERFLOW, "BIGINT"))
        return call("coalesce", fitting, beyond)

    def ticks_of(self, value: SQL, tick: Tick) -> SQL:
        return call("unix_micros", value)  # Spark has no finer resolution

    def moment(self, ticks: SQL, tick: Tick) -> SQL:
        if tick == "ns":
            raise QueryError(
                "a timestamp of Spark has microseconds, and this would have nanoseconds",
                hint="add whole microseconds",
            )
        first, last = self.integer(FIRST), self.integer(LAST)
        beyond = exp.Not(this=exp.paren(exp.Between(this=bound(ticks), low=first, high=last)))
        return either(beyond, _failure(_BEYOND_CALENDAR, "TIMESTAMP"), call("timestamp_micros", ticks.copy()))

    def part_of_time(self, part: str, value: SQL, tick: Tick) -> SQL:
        # Functions of timestamps depend on the session's zone; those of dates do not.
        instant = self.ticks_of(value, tick)
        if part in _CLOCK:
            unit, modulus = _CLOCK[part]
            return self._divided(self._rest(instant, unit * modulus), unit)
        date = self._date(instant)
        if part == "day_of_week":
            return cast(total([call("weekday", date), number(1)]), "BIGINT")
        return cast(call("weekofyear" if part == "week" else part, date), "BIGINT")

    def truncated(self, unit: str, value: SQL, tick: Tick) -> SQL:
        instant = self.ticks_of(value, tick)
        if unit in _LENGTHS:
            length, begin = _LENGTHS[unit]
            since = exp.Sub(this=instant.copy(), expression=self.integer(begin))
            micros: SQL = exp.Sub(this=instant, expression=self._rest(exp.paren(since), length))
        else:
            day = call("unix_date", call("trunc", self._date(instant), text(unit.upper())))
            micros = exp.Mul(this=cast(day, "BIGINT"), expression=self.integer(_DAY))
        return call("timestamp_micros", exp.paren(micros))

    def lower(self, value: SQL) -> SQL:
        # Two letters for one, and another letter at the end of a word.
        return call("lower", call("translate", value, text("\u0130\u03a3"), text("i\u03c3")))

    def upper(self, value: SQL) -> SQL:
        place = exp.column("__place")
        letter = call("substring", value.copy(), place, number(1))
        upper, size = call("upper", letter), call("length", call("upper", letter.copy()))
        one = either(compared("=", size, number(1)), upper, letter.copy())
        places = call("sequence", number(1), call("length", value.copy()))
        by_letter = call(
            "array_join", call("transform", places, exp.Lambda(this=one, expressions=[place])), text("")
        )
        whole = call("upper", value.copy())
        is_longer = compared("!=", call("length", whole), call("length", value))
        return either(is_longer, by_letter, whole.copy())

    def trimmed(self, value: SQL) -> SQL:
        return call("btrim", value, text(" "))

    def last_position(self, value: SQL, part: SQL) -> SQL:
        behind = call("length", call("substring_index", value.copy(), part.copy(), number(-1)))
        before = exp.Sub(this=call("length", value.copy()), expression=behind)
        begin = exp.Sub(this=before, expression=call("length", part.copy()))
        at_end = exp.Add(this=call("length", value.copy()), expression=number(1))
        is_empty = compared("=", part, text(""))
        is_absent = exp.Not(this=call("contains", value.copy(), part.copy()))
        position = either(is_absent, number(0), exp.Add(this=begin, expression=number(1)))
        return cast(either(is_empty, at_end, position), "BIGINT")

    def number_of(self, digits: SQL, base: int) -> SQL:
        letter, so_far = exp.column("digit"), exp.column("so_far")
        of_letter = exp.Sub(
            this=call("instr", text("0123456789abcdefghijklmnopqrstuvwxyz"), letter), expression=number(1)
        )
        step = exp.Add(this=exp.Mul(this=so_far, expression=number(base)), expression=of_letter)
        added = exp.Lambda(
            this=cast(step, "DECIMAL(38,0)"), expressions=[so_far.this.copy(), letter.this.copy()]
        )
        letters = call(
            "filter",
            call("split", digits, text("")),
            exp.Lambda(this=compared("!=", letter, text("")), expressions=[letter.this.copy()]),
        )
        return call("aggregate", letters, cast(number(0), "DECIMAL(38,0)"), added)

    def power(self, base: SQL, exponent: SQL) -> SQL:
        # Java has NaN where IEEE 754 has 1.
        one = self.floating(1.0)
        infinite = compared("=", call("abs", exponent.copy()), self.floating(math.inf))
        turned = exp.and_(compared("=", base, self.floating(-1.0)), infinite)
        is_one = exp.or_(compared("=", base, one), turned)
        known = exp.and_(is_not_null(base), is_not_null(exponent))
        return either(exp.and_(known, exp.paren(is_one)), one, call("power", base, exponent))

    def _date(self, instant: SQL) -> SQL:
        midnight = exp.Sub(this=instant.copy(), expression=self._rest(instant, _DAY))
        return call("date_from_unix_date", cast(self._divided(midnight, _DAY), "INT"))

    def _rest(self, value: SQL, modulus: int) -> SQL:
        return call("pmod", value.copy(), self.integer(modulus))

    def _divided(self, value: SQL, divisor: int) -> SQL:
        return exp.paren(exp.IntDiv(this=exp.paren(value), expression=self.integer(divisor)))

    def hashes(self, values: Sequence[tuple[SQL, Kind]]) -> tuple[SQL, SQL]:
        plain = [value for value, _ in values]
        return call("xxhash64", *plain), call("xxhash64", text("estero"), *(value.copy() for value in plain))

    def text(self, tree: SQL, *, copy: bool = True) -> str:
        return super().text(tree.transform(_in_safe_letters, copy=copy), copy=False)

    def _plain(self, tree: SQL) -> SQL:
        if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.HexString):
            return text(bytes.fromhex(tree.this.this).decode())
        return tree


SPARK: Final = Spark()


def _failure(message: str, engine_type: str) -> SQL:
    """An expression of some type that raises an error."""
    return cast(call("raise_error", text(message)), engine_type)


def _in_safe_letters(tree: SQL) -> SQL:
    if not (isinstance(tree, exp.Literal) and tree.is_string) or _PLAIN.fullmatch(tree.this):
        return tree
    return cast(exp.HexString(this=tree.this.encode().hex().upper()), "STRING")


def _micros_of_local_time(value: SQL) -> SQL:
    """Microseconds since 1970 on a clock that is never put forward, computed from the local time's parts.

    ``timestampdiff`` would read it as an instant in the session's zone, an hour off in a gap of that zone.
    """
    local = cast(value, LOCAL_TIME)
    seconds = call("date_part", text("SECOND"), local)
    parts = [
        (call("unix_date", cast(local.copy(), "DATE")), _DAY),
        (call("hour", local.copy()), 3600 * _SECOND),
        (call("minute", local.copy()), 60 * _SECOND),
    ]
    terms: list[SQL] = [exp.Mul(this=part, expression=number(f"{length}L")) for part, length in parts]
    micros = exp.paren(exp.Mul(this=seconds, expression=number(_SECOND)), copy=False)
    return total([*terms, cast(micros, "BIGINT")])


def _lambda(name: exp.Column, result: SQL) -> exp.Lambda:
    """A lambda function with a result in terms of its named parameter."""
    return exp.Lambda(this=result, expressions=[name.this.copy()])
