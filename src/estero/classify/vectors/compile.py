"""Trees of predicates → conditions over batches (conditions.py), if they are plain.

Plain conditions are comparisons of a column with constants, IN, BETWEEN, IS NULL and truth values, joined by
AND, OR and NOT. All others (with functions, arithmetic, LIKE, two columns, decimals, parts of structs) are
for SQL.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final

import pyarrow as pa

from estero.classify.columns import ColumnType, Tick
from estero.classify.instants import EXACT, micros_of
from estero.classify.lists import in_form
from estero.classify.vectors.arrow_types import engine_type, is_converted, value_type
from estero.classify.vectors.batch_columns import DAY, MICROSECONDS
from estero.classify.vectors.conditions import (
    Condition,
    Constant,
    Joined,
    Known,
    NumberList,
    NumberTest,
    TextList,
    TextTest,
)
from estero.language.tree import expressions as e
from estero.language.tree.literals import Value
from estero.language.tree.paths import is_path
from estero.language.tree.schema import Kind


class NotPlainError(Exception):
    """Raised for a condition, a column or a key that is not plain."""


class PlainColumns:
    """Compiles conditions for the columns of `events`, which expressions read as `columns` says."""

    def __init__(self, columns: Mapping[str, ColumnType], events: pa.Schema) -> None:
        self.types: Mapping[str, ColumnType] = columns
        """How expressions read columns."""
        self._events = events
        self.has_converted: bool = any(is_converted(field.type) for field in events)
        """Whether DuckDB converts all values of a column."""
        self._stored = {
            field.name: value_type(field.type) for field in events if engine_type(field) is not None
        }

    def column(self, name: str) -> ColumnType | None:
        """The form in which expressions read a column; None if it is NULL in every event."""
        if is_path(name):
            raise NotPlainError
        return self.read(name)

    def read(self, name: str) -> ColumnType | None:
        """The same for a name with its own column among the events, even if it is a nested field."""
        column = self.types.get(name)
        if column is None or column.kind is Kind.NULL:
            return None
        if column.kind not in _PLAIN or column.stands is not None:
            raise NotPlainError
        self.stored(name)
        return column

    def ticks_of(self, name: str) -> Tick | None:
        """The resolution in which a column of instants is compared; None for other columns."""
        column = self.column(name)
        return column.tick if column is not None and column.kind is Kind.TIMESTAMP else None

    def has(self, name: str) -> bool:
        """Whether the events have such a column, or expressions read something under that name."""
        return name in self.types

    def kind_of_key(self, name: str) -> Kind | None:
        """The kind of a column as a key; None for one that only SQL can read."""
        column = self.types[name]
        if is_path(name) or column.stands is not None or column.kind is Kind.NULL:
            return None
        self.stored(name)
        return column.kind

    def has_hash(self, name: str) -> bool:
        """Whether every value of a column has a hash."""
        return self.kind_of_key(name) is not None and not self.types[name].checked

    def is_encoded(self, name: str) -> bool:
        """Whether a column comes with a dictionary."""
        return isinstance(self._events.field(name).type, pa.DictionaryType)

    def stored(self, name: str) -> pa.DataType:
        """The type in which the values of a column are stored; raises `NotPlainError` for other types."""
        if name not in self._stored:
            raise NotPlainError
        return self._stored[name]

    def condition(self, node: e.Node, *, is_true: bool = True) -> Condition:
        """The rows in which a condition is true, or false; raises `NotPlainError`."""
        match node:
            case e.And(parts) | e.Or(parts):
                some = isinstance(node, e.Or) == is_true
                return joined((self.condition(part, is_true=is_true) for part in parts), some=some)
            case e.Not(part):
                return self.condition(part, is_true=not is_true)
            case e.Literal(None):
                return Constant(holds=False)
            case e.Literal(bool() as truth):
                return Constant(holds=truth == is_true)
            case e.Attribute(name, None):
                return self._compared(name, "=" if is_true else "!=", True)
            case e.IsNull(e.Attribute(name, None)):
                if self.column(name) is None:
                    return Constant(holds=is_true)
                return Known(name, missing=is_true)
            case e.Comparison(sign, left, right):
                return self._comparison(sign, left, right, is_true=is_true)
            case e.Between(operand, low, high):
                ends = e.Comparison(">=", operand, low), e.Comparison("<=", operand, high)
                return self.condition(e.And(ends), is_true=is_true)
            case e.In(e.Attribute(name, None), members) if members:
                return self._member(name, members, is_true=is_true)
            case e.InList(e.Attribute(name, None), values):
                return self._listed(name, values.values, is_true=is_true)
        raise NotPlainError

    def _comparison(
        self, sign: e.ComparisonOperator, left: e.Node, right: e.Node, *, is_true: bool
    ) -> Condition:
        if not isinstance(left, e.Attribute):
            sign, left, right = e.MIRRORED[sign], right, left
        if not isinstance(left, e.Attribute) or left.variable is not None:
            raise NotPlainError
        return self._compared(left.name, sign if is_true else e.NEGATED[sign], _constant(right))

    def _member(self, name: str, members: tuple[e.Literal | e.Range, ...], *, is_true: bool) -> Condition:
        """``IN {…}``: strings are looked up together, the rest one by one."""
        attribute = e.Attribute(name)
        listed: set[str] = set()
        parts: list[Condition] = []
        for member in members:
            if isinstance(member, e.Literal) and isinstance(member.value, str):
                self._compared(name, "=", member.value)  # raises if it is not plain
                listed.add(member.value)
                continue
            one: e.Node = (
                e.Between(attribute, member.low, member.high)
                if isinstance(member, e.Range)
                else e.Comparison("=", attribute, member)
            )
            parts.append(self.condition(one, is_true=is_true))
        if listed and self.column(name) is not None:
            parts.append(TextList(name, frozenset(listed), without=not is_true))
        elif listed:
            parts.append(Constant(holds=False))
        return joined(parts, some=is_true)

    def _listed(self, name: str, values: tuple[Value, ...], *, is_true: bool) -> Condition:
        """``IN`` a bound list."""
        column = self.column(name)
        if column is None:
            return Constant(holds=False)
        if column.kind is Kind.BOOL:
            raise NotPlainError
        known = in_form(values, column.kind, column.tick)
        if column.kind is Kind.STRING:
            texts = frozenset(_encoded(str(text)) for text in known)
            return TextList(name, texts, without=not is_true)
        if column.kind is Kind.FLOAT and any(math.isnan(float(number)) for number in known):
            raise NotPlainError
        numbers: list[int | float] = []
        for number in known:
            test = self._compared(name, "=", number, in_ticks=True)
            if isinstance(test, NumberTest) and test.operator == "=":
                numbers.append(test.constant)
        if known and not numbers:
            raise NotPlainError
        return NumberList(name, tuple(numbers), without=not is_true) if known else _all(name, not is_true)

    def _compared(
        self, name: str, sign: e.ComparisonOperator, constant: Value, *, in_ticks: bool = False
    ) -> Condition:
        """The rows in which a comparison of a column with a constant holds; instants may be in ticks."""
        column = self.column(name)
        if column is None or constant is None:
            return Constant(holds=False)
        match column.kind, constant:
            case Kind.BOOL, bool():
                return NumberTest(name, sign, int(constant))
            case Kind.STRING, str():
                return TextTest(name, sign, _encoded(constant))
            case Kind.FLOAT, float() if not math.isnan(constant):
                return NumberTest(name, sign, constant)
            case Kind.FLOAT, int() if not isinstance(constant, bool) and abs(constant) <= EXACT:
                return NumberTest(name, sign, float(constant))
            case Kind.INT, int() | float() if not isinstance(constant, bool):
                return self._with_number(name, sign, constant)
            case Kind.TIMESTAMP, datetime():
                utc = constant.replace(tzinfo=UTC) if constant.tzinfo is None else constant
                ticks = micros_of(utc) * (1000 if column.tick == "ns" else 1)
                return self._with_number(name, sign, Fraction(ticks, self._ticks(name)))
            case Kind.TIMESTAMP, int() if in_ticks:
                return self._with_number(name, sign, Fraction(constant, self._ticks(name)))
        raise NotPlainError

    def _ticks(self, name: str) -> int:
        """The ticks of one stored unit in a column of instants."""
        kind = self.stored(name)
        if pa.types.is_timestamp(kind):
            return 1 if kind.unit == "ns" else MICROSECONDS[kind.unit]
        return DAY

    def _with_number(self, name: str, sign: e.ComparisonOperator, constant: Fraction | float) -> Condition:
        """The comparison of integers with a number as one with an integer: ``n < 1.5`` is ``n < 2``."""
        kind = self.stored(name)
        bits, signed = kind.bit_width, not pa.types.is_unsigned_integer(kind)
        least, greatest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        above = constant > greatest or constant != constant  # noqa: PLR0124 - NaN is above all
        if above or constant < least:
            holds = sign == "!=" or (sign != "=" and (sign in {"<", "<="}) == above)
        elif constant == math.floor(constant):
            return NumberTest(name, sign, math.floor(constant))
        elif sign in {"=", "!="}:
            holds = sign == "!="
        else:
            return NumberTest(name, sign, (math.ceil if sign in {"<", ">="} else math.floor)(constant))
        return NumberTest(name, ">=" if holds else "<", least)  # all numbers, or none; it still reads them


def joined(parts: Iterable[Condition], *, some: bool) -> Condition:
    """The conditions joined; if one decides the result it stands alone, and neutral ones are left out."""
    undecided: dict[Condition, None] = {}
    for part in parts:
        if part == Constant(holds=some):
            return part
        if part != Constant(holds=not some):
            undecided[part] = None
    if len(undecided) < 2:
        return next(iter(undecided), Constant(holds=not some))
    return Joined(tuple(undecided), some=some)


def _all(name: str, holds: bool) -> Condition:
    """The rows in which a column is known, or none."""
    return Known(name) if holds else Constant(holds=False)


def _constant(node: e.Node) -> Value:
    """The value of a constant, with its sign."""
    match node:
        case e.Literal(value):
            return value
        case e.Negative(e.Literal(int() | float() as number)) if not isinstance(number, bool):
            return -number
    raise NotPlainError


def _encoded(text: str) -> str:
    """The text, if it can be compared with strings of Arrow."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise NotPlainError from error
    return text


_PLAIN: Final = frozenset({Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.STRING, Kind.TIMESTAMP})
