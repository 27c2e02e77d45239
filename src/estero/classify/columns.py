"""How expressions read a column: its kind, and the form in which its values are compared.

Expressions know five kinds of values, each with one form per engine: BIGINT, DOUBLE, strings, truth
values and instants. A column in another form (a small integer, a decimal, a zoned timestamp, an
enumeration) is cast where an expression reads it, and stays as it is where the report shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from sqlglot import exp

from estero.classify.column_names import event_column
from estero.language.tree.schema import Kind, Nested

Tick = OneOf["us", "ns"]
"""The resolution in which timestamps are compared: microseconds, or nanoseconds where a column has them."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The kind of a column, and `cast`: the engine's type that expressions read it as (None: as it is).

    `checked` is whether that cast can overflow (unsigned 64-bit integers). `stands` is what the column is
    called in the relation that is read, or computed from there, if it is not its `event_column`. Of a struct
    `fields` are what its fields are, and of a list `element` what its elements are.
    """

    kind: Kind
    cast: str | None = None
    checked: bool = False
    tick: Tick = "us"
    stands: exp.Expr | None = None
    fields: tuple[tuple[str, ColumnType], ...] | None = None
    element: ColumnType | None = None

    @property
    def nested(self) -> Nested:
        """What is inside, as the language checks it."""
        fields = None if self.fields is None else {name: each.nested for name, each in self.fields}
        return Nested(self.kind, fields, None if self.element is None else self.element.nested)

    def step(self, step: str | int) -> ColumnType | None:
        """How expressions read what a step leads to; None where there is no such."""
        if self.kind is Kind.NULL:
            return self
        return self.element if isinstance(step, int) else dict(self.fields or ()).get(step)


_CANONICAL = {kind: ColumnType(kind) for kind in Kind}


def canonical(kind: Kind) -> ColumnType:
    """The form in which expressions read `kind` without a cast."""
    return _CANONICAL[kind]


def reference(name: str, column: ColumnType) -> exp.Expr:
    """The column as it is in the relation that is read."""
    return exp.column(event_column(name), quoted=True) if column.stands is None else column.stands.copy()
