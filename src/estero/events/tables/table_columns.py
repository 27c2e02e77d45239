"""The columns of events in one table, or in a table for each type, and how all of them are read together.

A column that several tables share has one type for all, into which no value is forced. A value that has no
exact form in that type is an error of its row: it names the column, the value and the type of the other
table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from estero.classify.columns import MOST_DIGITS, ColumnType, Tick, common_decimal
from estero.errors import DataError
from estero.language.tree.schema import Kind

_EXACT = frozenset({Kind.INT, Kind.DECIMAL})
_INTEGERS = "DECIMAL(19,0)"
"""The decimal type that holds all integers of 64 bits."""
CONVERT_IT: Final = "rename one of the two columns, or convert it"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table, `type_name` in messages: DuckDB's type, and how expressions read it."""

    type_name: str
    engine_type: str
    column: ColumnType


Tables = Mapping[str, Mapping[str, TableColumn]]
"""The columns of each table, by name; a table is named by the type of its events, or by its file."""


def union_columns(tables: Tables) -> dict[str, ColumnType]:
    """How expressions read the columns of all tables; an integer next to a float is read as a float.

    Raises `DataError` for columns of one name that hold values of different kinds.
    """
    union: dict[str, TableColumn] = {}
    for columns in tables.values():
        for name, here in columns.items():
            known = union.get(name)
            union[name] = here if known is None else _common(name, known, here)
    return {name: described.column for name, described in union.items()}


def _common(name: str, one: TableColumn, other: TableColumn) -> TableColumn:
    """How a column of two tables is read in their union; raises `DataError` for values of two kinds.

    Integers next to floats are floats, and timestamps have the finer resolution.
    """
    left, right = one.column, other.column
    kinds = {left.kind, right.kind}
    if left == right and (one.engine_type == other.engine_type or not _loses(left)):
        return one
    if Kind.NULL in kinds:
        return other if left.kind is Kind.NULL else one
    if kinds == {Kind.OPAQUE}:
        return TableColumn(one.type_name, one.engine_type, _merged(left, right))
    if Kind.DECIMAL in kinds and kinds <= _EXACT:
        return TableColumn(one.type_name, one.engine_type, _decimal(name, one, other))
    if len(kinds) == 1:
        tick: Tick = "ns" if "ns" in (left.tick, right.tick) else "us"
        return TableColumn(one.type_name, one.engine_type, ColumnType(left.kind, tick=tick))
    if kinds == {Kind.INT, Kind.FLOAT}:
        return TableColumn(one.type_name, one.engine_type, ColumnType(Kind.FLOAT))
    raise DataError(
        f"{name!r} is {left.kind.value} in the table of {one.type_name} "
        f"and {right.kind.value} in that of {other.type_name}",
        column=name,
        hint=CONVERT_IT,
    )


def _decimal(name: str, one: TableColumn, other: TableColumn) -> ColumnType:
    """The decimal type that holds the values of both columns, which are decimals and integers."""
    types = [
        str(side.column.cast) if side.column.kind is Kind.DECIMAL else _INTEGERS for side in (one, other)
    ]
    common = common_decimal(types)
    if common is None:
        raise DataError(
            f"{name!r} is {types[0]} in the table of {one.type_name} and {types[1]} in that of "
            f"{other.type_name}: together they need more than {MOST_DIGITS} digits",
            column=name,
            hint=CONVERT_IT,
        )
    return ColumnType(Kind.DECIMAL, common)


def _merged(one: ColumnType, other: ColumnType) -> ColumnType:
    """The inner columns of two structs or lists together; those of different kinds cannot be compared."""
    if one.kind is Kind.NULL or one == other:
        return other
    if other.kind is Kind.NULL:
        return one
    if one.fields is not None and other.fields is not None:
        fields = dict(one.fields)
        for name, inner in other.fields:
            fields[name] = _merged(fields[name], inner) if name in fields else inner
        return ColumnType(Kind.OPAQUE, fields=tuple(fields.items()))
    if one.element is not None and other.element is not None:
        return ColumnType(Kind.OPAQUE, element=_merged(one.element, other.element))
    if Kind.DECIMAL in (one.kind, other.kind):
        return ColumnType(Kind.OPAQUE)
    if one.kind is other.kind:
        tick: Tick = "ns" if "ns" in (one.tick, other.tick) else "us"
        return ColumnType(one.kind, one.cast or other.cast, checked=one.checked or other.checked, tick=tick)
    numbers = {one.kind, other.kind} == {Kind.INT, Kind.FLOAT}
    return ColumnType(Kind.FLOAT, "DOUBLE") if numbers else ColumnType(Kind.OPAQUE)


def _loses(column: ColumnType) -> bool:
    """Whether DuckDB's own union of two types that are read alike may round, truncate or overflow."""
    return column.kind is Kind.FLOAT or column.checked
