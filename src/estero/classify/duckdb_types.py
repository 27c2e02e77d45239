"""The column types of expressions for DuckDB's types, by the names that DuckDB gives these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from estero.classify.columns import ColumnType, canonical
from estero.classify.struct_types import split_fields
from estero.language.tree.schema import Kind

_STRUCT = "STRUCT("
_SORTED = frozenset({"BLOB", "TIME", "TIME_NS", "INTERVAL"})
"""Types unknown to expressions that still have an order."""
_SHORTER = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")
_LONGER = ("UBIGINT", "HUGEINT", "UHUGEINT")
_INSTANTS = ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP WITH TIME ZONE", "DATE")

DUCKDB_TYPES: Final[Mapping[str, ColumnType]] = {
    '"NULL"': ColumnType(Kind.NULL, "BIGINT"),
    "BOOLEAN": ColumnType(Kind.BOOL),
    "BIGINT": ColumnType(Kind.INT),
    **dict.fromkeys(_SHORTER, ColumnType(Kind.INT, "BIGINT")),
    **dict.fromkeys(_LONGER, ColumnType(Kind.INT, "BIGINT", checked=True)),
    "DOUBLE": ColumnType(Kind.FLOAT),
    "FLOAT": ColumnType(Kind.FLOAT, "DOUBLE"),
    "VARCHAR": ColumnType(Kind.STRING),
    "UUID": ColumnType(Kind.STRING, "VARCHAR"),
    "TIMESTAMP": ColumnType(Kind.TIMESTAMP),
    **dict.fromkeys(_INSTANTS, ColumnType(Kind.TIMESTAMP, "TIMESTAMP")),
    "TIMESTAMP_NS": ColumnType(Kind.TIMESTAMP, tick="ns"),
    "TIMESTAMPTZ_NS": ColumnType(Kind.TIMESTAMP, "TIMESTAMP_NS", tick="ns"),
}


def duckdb_column(engine_type: str) -> ColumnType:
    """The column type for a type as DESCRIBE names it; columns of unknown types are opaque.

    >>> duckdb_column("DECIMAL(10,2)").kind
    <Kind.DECIMAL: 'a decimal'>
    """
    if engine_type.startswith("ENUM("):
        return ColumnType(Kind.STRING, "VARCHAR")
    if engine_type.endswith("]"):
        return ColumnType(Kind.OPAQUE, element=duckdb_column(engine_type[: engine_type.rindex("[")]))
    if engine_type.startswith(_STRUCT):
        fields = split_fields(engine_type.removeprefix(_STRUCT).removesuffix(")"))
        known = tuple((name, duckdb_column(inner)) for name, inner in fields)
        return ColumnType(Kind.OPAQUE, fields=known)
    if engine_type.upper().startswith("DECIMAL"):
        return ColumnType(Kind.DECIMAL, engine_type.upper())
    return DUCKDB_TYPES.get(engine_type, canonical(Kind.OPAQUE))


def has_order(engine_type: str, column: ColumnType) -> bool:
    """Whether the order of values of this type is the same on every engine, so that it can break ties."""
    return column.kind is not Kind.OPAQUE or engine_type in _SORTED
