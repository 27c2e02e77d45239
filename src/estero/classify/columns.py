"""What an engine calls the type of a column → its kind, and how expressions read it.

Expressions know five kinds of values, each with one form per engine: BIGINT, DOUBLE, strings, truth
values and instants. A column in another form (a small integer, a decimal, a zoned timestamp, an
enumeration) is cast where an expression reads it, and stays as it is where the report shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from sqlglot import exp

from estero.classify.column_names import event_column
from estero.language.tree.schema import Kind

Dialect = OneOf["duckdb", "spark"]
Tick = OneOf["us", "ns"]
"""The resolution in which timestamps are compared: microseconds, or nanoseconds where a column has them."""


LOCAL_TIME = "timestamp_ntz"
"""Spark's timestamps without a zone, which are taken to be in UTC."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The kind of a column, and `cast`: the engine's type that expressions read it as (None: as it is).

    `checked` is whether that cast can overflow (unsigned 64-bit integers). `stands` is what the column is
    called in the relation that is read, or computed from there, if it is not its `event_column`.
    """

    kind: Kind
    cast: str | None = None
    checked: bool = False
    tick: Tick = "us"
    stands: exp.Expr | None = None


_DUCKDB: Mapping[str, ColumnType] = {
    '"NULL"': ColumnType(Kind.NULL, "BIGINT"),
    "BOOLEAN": ColumnType(Kind.BOOL),
    "BIGINT": ColumnType(Kind.INT),
    "TINYINT": ColumnType(Kind.INT, "BIGINT"),
    "SMALLINT": ColumnType(Kind.INT, "BIGINT"),
    "INTEGER": ColumnType(Kind.INT, "BIGINT"),
    "UTINYINT": ColumnType(Kind.INT, "BIGINT"),
    "USMALLINT": ColumnType(Kind.INT, "BIGINT"),
    "UINTEGER": ColumnType(Kind.INT, "BIGINT"),
    "UBIGINT": ColumnType(Kind.INT, "BIGINT", checked=True),
    "HUGEINT": ColumnType(Kind.INT, "BIGINT", checked=True),
    "UHUGEINT": ColumnType(Kind.INT, "BIGINT", checked=True),
    "DOUBLE": ColumnType(Kind.FLOAT),
    "FLOAT": ColumnType(Kind.FLOAT, "DOUBLE"),
    "VARCHAR": ColumnType(Kind.STRING),
    "UUID": ColumnType(Kind.STRING, "VARCHAR"),
    "TIMESTAMP": ColumnType(Kind.TIMESTAMP),
    "TIMESTAMP_S": ColumnType(Kind.TIMESTAMP, "TIMESTAMP"),
    "TIMESTAMP_MS": ColumnType(Kind.TIMESTAMP, "TIMESTAMP"),
    "TIMESTAMP WITH TIME ZONE": ColumnType(Kind.TIMESTAMP, "TIMESTAMP"),
    "DATE": ColumnType(Kind.TIMESTAMP, "TIMESTAMP"),
    "TIMESTAMP_NS": ColumnType(Kind.TIMESTAMP, tick="ns"),
    "TIMESTAMPTZ_NS": ColumnType(Kind.TIMESTAMP, tick="ns"),
}

_SPARK: Mapping[str, ColumnType] = {
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

_SORTED = frozenset({"BLOB", "TIME", "TIME_NS", "INTERVAL"})
"""Types of DuckDB's that expressions do not know, and that have an order nevertheless."""

_CANONICAL: Mapping[Kind, ColumnType] = {kind: ColumnType(kind) for kind in Kind}


def column_type(engine_type: str, dialect: Dialect) -> ColumnType:
    """The kind of a column of `engine_type`, as DuckDB's DESCRIBE or Spark's ``df.dtypes`` names it.

    >>> column_type("DECIMAL(10,2)", "duckdb").kind
    <Kind.FLOAT: 'a float'>
    """
    if engine_type.upper().startswith("DECIMAL"):
        return ColumnType(Kind.FLOAT, "DOUBLE")
    if dialect == "duckdb":
        if engine_type.startswith("ENUM("):
            return ColumnType(Kind.STRING, "VARCHAR")
        return _DUCKDB.get(engine_type, _CANONICAL[Kind.OPAQUE])
    if engine_type.startswith(("char(", "varchar(", "string collate ")):
        return ColumnType(Kind.STRING, "STRING")
    return _SPARK.get(engine_type, _CANONICAL[Kind.OPAQUE])


def canonical(kind: Kind) -> ColumnType:
    """The form in which expressions read `kind` without a cast."""
    return _CANONICAL[kind]


def in_utc(column: ColumnType) -> ColumnType:
    """The same column where the zone of Spark's session is UTC: its own cast is right, and fast, there."""
    return replace(column, cast="timestamp") if column.cast == LOCAL_TIME else column


def reference(name: str, column: ColumnType) -> exp.Expr:
    """The column as it is in the relation that is read."""
    return exp.column(event_column(name), quoted=True) if column.stands is None else column.stands.copy()


def as_read(name: str, column: ColumnType) -> exp.Expr:
    """The column as expressions read it: in its kind's own form, timestamps as the engine's instants.

    In DuckDB instants are naive timestamps in UTC (the session's zone is UTC). In Spark they are
    ``timestamp``; a ``timestamp_ntz`` or a date is moved there without asking the session's zone.
    """
    value = reference(name, column)
    if column.cast is None:
        return value
    if column.cast == LOCAL_TIME:
        return exp.Anonymous(this="timestamp_micros", expressions=[_micros_of_local_time(value)])
    return cast(value, column.cast)


def micros(value: exp.Expr, dialect: Dialect) -> exp.Expr:
    """Microseconds since the epoch of an instant, a 64-bit integer."""
    return exp.Anonymous(this="epoch_us" if dialect == "duckdb" else "unix_micros", expressions=[value])


def ticks(name: str, column: ColumnType, dialect: Dialect) -> exp.Expr:
    """A time column as 64-bit ticks."""
    value = as_read(name, column)
    if column.kind is not Kind.TIMESTAMP:
        return value
    return (
        exp.Anonymous(this="epoch_ns", expressions=[value]) if column.tick == "ns" else micros(value, dialect)
    )


def is_one_of(name: str, column: ColumnType, texts: Sequence[str]) -> exp.Expr:
    """Whether a string column is one of `texts`; never true of none."""
    value = as_read(name, column)
    literals: list[exp.Expr] = [exp.Literal.string(text) for text in texts]
    if len(literals) == 1:
        return exp.EQ(this=value, expression=literals[0])
    return exp.In(this=value, expressions=literals) if literals else exp.false()


def as_sorted(name: str, column: ColumnType) -> exp.Expr:
    """The column as it breaks ties: as it is, because a decimal or a large integer would lose by a cast.

    Strings of other types (enumerations, collations) are in the order of their code points.
    """
    if column.kind in (Kind.STRING, Kind.NULL):
        return as_read(name, column)
    return reference(name, column)


def has_order(engine_type: str, column: ColumnType) -> bool:
    """Whether values of this type of DuckDB's break ties, the same way on every engine."""
    return column.kind is not Kind.OPAQUE or engine_type in _SORTED


def cast(value: exp.Expr, engine_type: str) -> exp.Expr:
    """``CAST(value AS engine_type)``, the type written as it is."""
    return exp.Cast(this=value, to=exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=engine_type))


def _micros_of_local_time(value: exp.Expr) -> exp.Expr:
    """Microseconds since 1970 on a clock that is never put forward: made of the parts of the local time.

    ``timestampdiff`` would read it as an instant in the session's zone, an hour off in a gap of that zone.
    """
    local = cast(value, LOCAL_TIME)
    seconds = exp.Anonymous(this="date_part", expressions=[exp.Literal.string("SECOND"), local])
    parts = [
        (exp.Anonymous(this="unix_date", expressions=[cast(local.copy(), "DATE")]), 86_400_000_000),
        (exp.Anonymous(this="hour", expressions=[local.copy()]), 3_600_000_000),
        (exp.Anonymous(this="minute", expressions=[local.copy()]), 60_000_000),
    ]
    terms: list[exp.Expr] = [
        exp.Mul(this=part, expression=exp.Literal.number(f"{micros}L")) for part, micros in parts
    ]
    terms.append(
        cast(exp.paren(exp.Mul(this=seconds, expression=exp.Literal.number(1_000_000)), copy=False), "BIGINT")
    )
    total = terms[0]
    for term in terms[1:]:
        total = exp.Add(this=total, expression=term)
    return total
