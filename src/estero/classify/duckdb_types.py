"""The column types of expressions for DuckDB's types, by the names that DuckDB gives these."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from estero.classify.columns import ColumnType, canonical
from estero.language.tree.schema import Kind

_STRUCT = "STRUCT("
_PIECE: Final = re.compile(r"""[^"'(),]+|"(?:[^"]|"")*"|'(?:[^']|'')*'|[(),]""")
"""Brackets, commas, and text without them: names and strings in quotes, or other text."""
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


def split_fields(text: str) -> list[tuple[str, str]]:
    """The names and types in ``name type, …``, as DuckDB describes what is inside of ``STRUCT(…)``.

    >>> split_fields('pid INTEGER, "a, b" DECIMAL(10,2), args STRUCT(a VARCHAR)[]')
    [('pid', 'INTEGER'), ('a, b', 'DECIMAL(10,2)'), ('args', 'STRUCT(a VARCHAR)[]')]
    """
    return [_name_and_type(part.strip()) for part in _parts(text)]


def _parts(text: str) -> Iterator[str]:
    """The text between commas that are in no brackets."""
    depth, part = 0, ""
    for piece in _PIECE.findall(text):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "," and depth == 0:
            yield part
            part = ""
        else:
            part += piece
    yield part


def _name_and_type(part: str) -> tuple[str, str]:
    quoted = re.match(r'"((?:[^"]|"")*)"\s+', part)
    if quoted is not None:
        return quoted[1].replace('""', '"'), part[quoted.end() :]
    name, _, kind = part.partition(" ")
    return name, kind
