"""Kinds of columns, and the form in which expressions read and compare their values.

Expressions have six kinds of values: BIGINT, DOUBLE, strings, truth values and instants, each with one form
per engine, and decimals, whose `cast` is their type. A column in another form (a small integer, a zoned
timestamp, an enumeration) is cast where an expression reads it, and is shown unchanged in the report.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from typing import Literal as OneOf

from estero.classify.column_names import event_column
from estero.language.tree.schema import Kind, Nested

if TYPE_CHECKING:
    from sqlglot import exp

MOST_DIGITS: Final = 38
"""The largest number of digits of a decimal."""

Tick = OneOf["us", "ns"]
"""The resolution in which timestamps are compared: microseconds, or nanoseconds if a column has them."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The kind of a column, and `cast`: the engine's type as which expressions read it (None: unchanged).

    `checked` is whether that cast can overflow (unsigned 64-bit integers). `stands` is the name of the column
    in the relation that is read, or its computation there, unless it is its `event_column`. `fields` are the
    column types of the fields of a struct, and `element` is that of the elements of a list.
    """

    kind: Kind
    cast: str | None = None
    checked: bool = False
    tick: Tick = "us"
    stands: exp.Expr | None = None
    fields: tuple[tuple[str, ColumnType], ...] | None = None
    element: ColumnType | None = None

    @property
    def scale(self) -> int:
        """The number of digits of a decimal after the decimal point."""
        return decimal_digits(self.cast)[1] if self.cast and self.kind is Kind.DECIMAL else 0

    @property
    def nested(self) -> Nested:
        """The nested fields and elements, as the language checks them."""
        fields = None if self.fields is None else {name: field.nested for name, field in self.fields}
        return Nested(self.kind, fields, None if self.element is None else self.element.nested)

    def step(self, step: str | int) -> ColumnType | None:
        """The column type at the end of a step, as of `Nested.step`; None if there is none."""
        if self.kind is Kind.NULL:
            return self
        if isinstance(step, int):
            return self.element
        if self.element is None:
            return dict(self.fields or ()).get(step)
        inner = self.element.step(step)
        if inner is None or inner.element is not None:
            return inner
        return ColumnType(Kind.OPAQUE, element=inner)


def decimal_digits(engine_type: str) -> tuple[int, int]:
    """The precision and the scale of a decimal's type.

    >>> decimal_digits("DECIMAL(10,2)")
    (10, 2)
    """
    precision, scale = engine_type[engine_type.index("(") + 1 : engine_type.rindex(")")].split(",")
    return int(precision), int(scale)


def common_decimal(types: Iterable[str]) -> str | None:
    """The decimal type with all values of several; None if it needs more than 38 digits.

    >>> common_decimal(["DECIMAL(10,2)", "DECIMAL(5,4)"])
    'DECIMAL(12,4)'
    """
    digits = [decimal_digits(kind) for kind in types]
    scale = max(scale for _, scale in digits)
    precision = scale + max(precision - scale for precision, scale in digits)
    return f"DECIMAL({precision},{scale})" if precision <= MOST_DIGITS else None


_CANONICAL = {kind: ColumnType(kind) for kind in Kind}


def canonical(kind: Kind) -> ColumnType:
    """The form in which expressions read `kind` without a cast."""
    return _CANONICAL[kind]


def reference(name: str, column: ColumnType) -> exp.Expr:
    """The column under its name in the relation that is read."""
    from sqlglot import exp  # 0.1 s; recognition needs no SQL

    return exp.column(event_column(name), quoted=True) if column.stands is None else column.stands.copy()
