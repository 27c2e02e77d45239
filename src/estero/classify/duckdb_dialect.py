"""SQL in the dialect of DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Final

from sqlglot import exp

from estero.classify.columns import ColumnType, Tick
from estero.classify.dialect import Dialect, escaped
from estero.classify.duckdb_types import DUCKDB_TYPES, duckdb_column
from estero.classify.instants import FIRST, LAST
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
)
from estero.engine.int64 import GREATEST, LEAST
from estero.language.regex.dialects import for_re2
from estero.language.tree.paths import Step
from estero.language.tree.schema import Kind

_SALT = "\u2021estero"
_SALT_BITS = 0x5851F42D4C957F2D
_ONLY_LONGER = "[ß\u1f80-\u1f87\u1f90-\u1f97\u1fa0-\u1fa7\u1fb3\u1fc3\u1ff3]"
"""Letters whose upper case has several letters, where DuckDB uses a single one."""
_CHECKED = {"+": "add", "-": "subtract", "*": "multiply"}


class DuckDB(Dialect):
    """The dialect of DuckDB, in a session whose zone is UTC."""

    name = "duckdb"
    text_type = "VARCHAR"
    hash_type = "UBIGINT"
    starts_with = "starts_with"
    ends_with = "ends_with"
    types: ClassVar[Mapping[str, ColumnType]] = DUCKDB_TYPES

    def column_type(self, engine_type: str) -> ColumnType:
        """The column type for a type as DESCRIBE names it."""
        return duckdb_column(engine_type)

    def stepped(self, value: SQL, step: Step) -> SQL:
        if isinstance(step, int):
            return call("list_extract", value, number(step))
        return call("struct_extract", value, text(step))

    def of_elements(self, whole: SQL, item: exp.Column, value: SQL) -> SQL:
        return call(
            "list_transform", whole, exp.Lambda(this=value, expressions=[item.this.copy()], colon=True)
        )

    def flat(self, whole: SQL, item: exp.Column) -> SQL:
        not_null = exp.Lambda(this=is_not_null(item), expressions=[item.this.copy()], colon=True)
        return call("flatten", call("list_filter", whole, not_null))

    def any_element(self, whole: SQL, item: exp.Column, condition: SQL) -> SQL:
        test = exp.Lambda(this=condition, expressions=[item.this.copy()], colon=True)
        return compared(">", call("len", call("list_filter", whole, test)), number(0))

    def has_any_text(self, whole: SQL, texts: Sequence[str]) -> SQL | None:
        # Planning a statement with hundreds of lambdas takes seconds.
        if len(texts) == 1:
            return call("list_contains", whole, text(texts[0]))
        return call("list_has_any", whole, call("list_value", *map(text, texts)))

    def let(self, name: exp.Column, value: SQL, result: SQL) -> SQL:
        body = exp.Lambda(this=result, expressions=[name.this.copy()], colon=True)
        return call("list_extract", call("list_transform", call("list_value", value), body), number(1))

    def integer(self, value: int) -> SQL:
        return negative(number(abs(value)), is_negative=value < 0)

    def _float_text(self, digits: str) -> str:
        return digits if "e" in digits else f"{digits}e0"

    def instant(self, moment: datetime) -> SQL:
        return cast(text(moment.replace(tzinfo=None).isoformat(" ")), "TIMESTAMP")

    def from_json(self, items: SQL, element: str) -> SQL:
        return call("unnest", cast(cast(items, "JSON"), f"{element}[]"))

    def like(self, value: SQL, pattern: str) -> SQL:
        like = exp.Like(this=bound(value), expression=text(escaped(pattern)))
        return exp.Escape(this=like, expression=text("\\"))

    def matches(self, value: SQL, regex: str) -> SQL:
        return call("regexp_matches", value, text(for_re2(regex)))

    def checked(self, operator: str, left: SQL, right: SQL, known: Sequence[SQL]) -> SQL:
        # DuckDB turns n + 1 > 0 into n > -1, which forgets the overflow, but leaves add alone.
        return call(_CHECKED[operator], left, right)

    def wide(self, value: SQL, *, is_literal: bool) -> SQL:
        return cast(value, "BIGINT") if is_literal else value  # a small literal is of a small type

    def rounded(self, function: str, value: SQL) -> SQL:
        return call(function, value)

    def whole(self, value: SQL) -> SQL:
        return cast(value, "BIGINT")

    def ticks_of(self, value: SQL, tick: Tick) -> SQL:
        return call("epoch_ns" if tick == "ns" else "epoch_us", value)

    def nanoseconds_of(self, value: SQL, tick: Tick) -> SQL:
        ticks = self.ticks_of(value, tick)
        if tick == "ns":
            return ticks
        return exp.paren(exp.Mul(this=cast(ticks, "HUGEINT"), expression=number(1000)), copy=False)

    def moment(self, ticks: SQL, tick: Tick) -> SQL:
        if tick == "ns":
            return call("make_timestamp_ns", ticks)
        # DuckDB does not reuse a condition with an explicit error, which has side effects; an overflow has
        # none.
        for step, back, length in (("subtract", "add", FIRST - LEAST), ("add", "subtract", GREATEST - LAST)):
            ticks = call(back, call(step, ticks, number(length)), number(length))
        return call("make_timestamp", ticks)

    def part_of_time(self, part: str, value: SQL, tick: Tick) -> SQL:
        instant = _microsecond_of(call("epoch_ns", value)) if tick == "ns" else value
        return cast(call("isodow" if part == "day_of_week" else part, instant), "BIGINT")

    def truncated(self, unit: str, value: SQL, tick: Tick) -> SQL:
        instant = _microsecond_of(call("epoch_ns", value)) if tick == "ns" else value
        return cast(call("date_trunc", text(unit), instant), "TIMESTAMP")

    def lower(self, value: SQL) -> SQL:
        return call("lower", value)

    def upper(self, value: SQL) -> SQL:
        letter = exp.column("__letter")
        kept = call("regexp_matches", letter, text(_ONLY_LONGER))
        in_upper_case = exp.Lambda(
            this=either(kept, letter.copy(), call("upper", letter.copy())), expressions=[letter]
        )
        letters = call("string_split", value.copy(), text(""))
        by_letter = call("array_to_string", call("list_transform", letters, in_upper_case), text(""))
        has_some = call("regexp_matches", value.copy(), text(_ONLY_LONGER))
        return either(has_some, by_letter, call("upper", value))

    def trimmed(self, value: SQL) -> SQL:
        return call("trim", value, text(" "))

    def split_part(self, value: SQL, delimiter: SQL, place: SQL) -> SQL:
        # The definition of DuckDB's macro of this name, which itself would read the operands twice unnoticed.
        part = call("list_extract", call("string_split", value, delimiter), place)
        known = exp.and_(*map(is_not_null, (value, delimiter, place)))
        return either(known, call("coalesce", part, text("")), exp.Null())

    def last_position(self, value: SQL, part: SQL) -> SQL:
        before = exp.DPipe(this=text("(?s)^(.*)"), expression=call("regexp_escape", part.copy()), safe=False)
        prefix = call("regexp_extract", value.copy(), before, number(1))
        place = exp.Add(this=call("length", prefix), expression=number(1))
        is_absent = exp.Not(this=call("contains", value.copy(), part.copy()))
        return cast(either(is_absent, number(0), place), "BIGINT")

    def number_of(self, digits: SQL, base: int) -> SQL:
        letter, so_far = exp.column("digit"), exp.column("so_far")
        of_letter = exp.Sub(
            this=call("instr", text("0123456789abcdefghijklmnopqrstuvwxyz"), letter), expression=number(1)
        )
        step = exp.Add(
            this=exp.Mul(this=so_far, expression=number(base)), expression=cast(of_letter, "HUGEINT")
        )
        letters = call(
            "list_transform",
            call("string_split", digits, text("")),
            exp.Lambda(this=letter.copy(), expressions=[letter.this.copy()], colon=True),
        )
        added = exp.Lambda(this=step, expressions=[so_far.this.copy(), letter.this.copy()], colon=True)
        return call("list_reduce", letters, added, cast(number(0), "HUGEINT"))

    def power(self, base: SQL, exponent: SQL) -> SQL:
        return call("pow", base, exponent)

    def hashes(self, values: Sequence[tuple[SQL, Kind]]) -> tuple[SQL, SQL]:
        salted = (_salted(value, kind) for value, kind in values)
        return call("hash", *(value for value, _ in values)), call("hash", *salted)


DUCKDB: Final = DuckDB()


def _salted(value: SQL, kind: Kind) -> SQL:
    """A distinct value for each value, whose hash is independent of that of the original."""
    if kind in (Kind.STRING, Kind.FLOAT):
        shown = value.copy() if kind is Kind.STRING else cast(value.copy(), "VARCHAR")
        return call("concat", shown, text(_SALT))
    return call("xor", value.copy(), number(_SALT_BITS))


def _microsecond_of(nanoseconds: SQL) -> SQL:
    """The timestamp rounded down to the microsecond (a cast rounds to the nearest)."""
    beyond = call("mod", nanoseconds.copy(), number(1000))
    whole = exp.Sub(this=nanoseconds.copy(), expression=beyond)
    micros = exp.IntDiv(this=exp.paren(whole), expression=number(1000))
    step = either(compared("<", beyond, number(0)), number(1), number(0))
    return call("make_timestamp", exp.Sub(this=micros, expression=step))
