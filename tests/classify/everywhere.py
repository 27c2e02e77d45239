"""Expressions on every engine: DuckDB, Python, Spark and the reference; and values at the edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.classify.duckdb_dialect import DUCKDB
from estero.classify.expressions import ExpressionWriter
from estero.classify.rows.functions import FunctionWriter, RowColumn
from estero.classify.rows.typed import NotInPythonError
from estero.classify.spark_dialect import SPARK
from estero.events.database import lent_cursor
from estero.events.streams.row_types import row_type
from estero.language.tree.durations import Duration
from estero.language.tree.expressions import (
    Attribute,
    Comparison,
    ComparisonOperator,
    Node,
)
from estero.language.tree.literals import Value
from estero.language.tree.schema import Kind
from estero.reference.queries import Event, evaluate_expression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = Mapping[str, Value]
Evaluate = Callable[[Sequence[Node], pa.Table], list[list[Value]]]
"""From expressions and rows to one list of values, row by row, for each expression."""

MAX, MIN = 2**63 - 1, -(2**63)
INTEGERS = [0, 1, -1, 7, -7, 2**53, 2**53 + 1, -(2**53) - 1, MAX, MIN, None]
FLOATS = [0.0, -0.0, 1.5, -2.5, 2.0**53, 2.0**63, -(2.0**63), 1e300, math.inf, -math.inf, math.nan, None]
STRINGS = ["", "a", "A", "b", "a_b", "axb", "a%b", "a\\b", "a\nb", "é", "\uffff", "\U0001d11e", "it's", None]
TIMES = [
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1, 1, 2, tzinfo=UTC),
    datetime(2019, 9, 23, 18, 12, 45, tzinfo=UTC),
    datetime(2020, 2, 29, 23, 59, 59, 123_456, tzinfo=UTC),
    datetime(9999, 12, 30, tzinfo=UTC),
    None,
]
COLUMNS = pa.schema(
    [
        ("i", pa.int64()),
        ("j", pa.int64()),
        ("f", pa.float64()),
        ("g", pa.float64()),
        ("s", pa.string()),
        ("r", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("u", pa.timestamp("us", "UTC")),
        ("b", pa.bool_()),
        ("c", pa.bool_()),
    ]
)
OPERATORS: tuple[ComparisonOperator, ...] = ("=", "!=", "<", "<=", ">", ">=")
I, J, F, G, S, R, T, U, B, C = (Attribute(name) for name in COLUMNS.names)


def pairs(left: str, right: str, one: Sequence[Value], other: Sequence[Value]) -> list[Row]:
    return [{left: a, right: b} for a, b in product(one, other)]


EDGES = pa.Table.from_pylist(
    [
        *pairs("i", "f", INTEGERS, FLOATS),
        *pairs("f", "g", FLOATS, FLOATS),
        *pairs("i", "j", INTEGERS, INTEGERS),
        *pairs("s", "r", STRINGS, STRINGS),
        *pairs("t", "u", TIMES, TIMES),
        *pairs("b", "c", [True, False, None], [True, False, None]),
    ],
    schema=COLUMNS,
)
SMALL = pa.Table.from_pylist(
    pairs("i", "j", [0, 1, -1, 7, -7, 10**6, None], [0, 3, -3, -1, None]), schema=COLUMNS
)


# ---------------------------------------------------------------------------------------- three ways


def on_reference(nodes: Sequence[Node], rows: pa.Table) -> list[list[Value]]:
    events = [Event("E", row) for row in rows.to_pylist()]
    return [[evaluate_expression(node, event) for event in events] for node in nodes]


def on_duckdb(nodes: Sequence[Node], rows: pa.Table) -> list[list[Value]]:
    with lent_cursor() as connection:
        connection.register("rows", rows)
        types = {
            name: DUCKDB.column_type(kind)
            for name, kind, *_ in connection.execute("DESCRIBE rows").fetchall()
        }
        writer = ExpressionWriter(types, DUCKDB)
        selected = [f"{writer.value(node).sql.sql('duckdb')} AS v{n}" for n, node in enumerate(nodes)]
        answer = connection.sql(f"SELECT {', '.join(selected)} FROM rows").to_arrow_table()
    return [answer.column(n).to_pylist() for n in range(len(nodes))]


def on_rows(nodes: Sequence[Node], rows: pa.Table) -> list[list[Value]]:
    """In Python, as single events are classified; what Python refuses is asked of DuckDB."""
    columns = {field.name: _row_column(place, field.type) for place, field in enumerate(rows.schema)}
    readers = [row_type(field.type) for field in rows.schema]
    values = [
        tuple(
            [
                reader.of_scalar(column[row])
                for reader, column in zip(readers, rows.columns, strict=True)
                if reader
            ]
        )
        for row in range(rows.num_rows)
    ]
    writer = FunctionWriter(columns)
    found = []
    for node in nodes:
        try:
            function = writer.value(node).function
        except NotInPythonError:
            found += on_duckdb([node], rows)
        else:
            found.append([function(row) for row in values])
    return found


def _row_column(place: int, of: pa.DataType) -> RowColumn:
    if pa.types.is_timestamp(of):
        return RowColumn(place, Kind.TIMESTAMP, "ns" if of.unit == "ns" else "us")
    if of == pa.date32():
        return RowColumn(place, Kind.TIMESTAMP, scale=86_400_000_000)
    return RowColumn(place, _KINDS[of])


_KINDS = {pa.int64(): Kind.INT, pa.float64(): Kind.FLOAT, pa.string(): Kind.STRING, pa.bool_(): Kind.BOOL}


def on_spark(spark: SparkSession) -> Evaluate:
    def evaluate(nodes: Sequence[Node], rows: pa.Table) -> list[list[Value]]:
        frame = _frame(spark, rows)
        writer = ExpressionWriter({name: SPARK.column_type(kind) for name, kind in frame.dtypes}, SPARK)
        selected = [f"{writer.value(node).sql.sql('spark')} AS v{n}" for n, node in enumerate(nodes)]
        answer = frame.selectExpr(*selected).toArrow()
        return [answer.column(n).to_pylist() for n in range(len(nodes))]

    return evaluate


def _frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows as a frame of one partition; a timestamp without a zone stays one, whatever the session's."""
    local = [field.name for field in rows.schema if field.type == pa.timestamp("us")]
    for name in local:
        rows = rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.string()))
    frame = spark.createDataFrame(rows).coalesce(1)
    for name in local:
        frame = frame.withColumn(name, frame[name].cast("timestamp_ntz"))
    return frame


def assert_same(evaluate: Evaluate, nodes: Sequence[Node], rows: pa.Table = EDGES) -> None:
    """The engine gives the value of the reference for each expression and row."""
    wanted, found = on_reference(nodes, rows), evaluate(nodes, rows)
    for node, expected, values in zip(nodes, wanted, found, strict=True):
        for place, (one, other) in enumerate(zip(expected, values, strict=True)):
            assert _same(one, other), f"{node} of {_shown(rows, place)}: {other!r}, not {one!r}"


def _shown(rows: pa.Table, place: int) -> Row:
    (row,) = rows.slice(place, 1).to_pylist()
    return {name: value for name, value in row.items() if value is not None}


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, datetime):
        return one == _instant(other)
    if isinstance(one, Duration):
        return isinstance(other, int) and one.nanoseconds == other * 1000
    return type(one) is type(other) and one == other


def _instant(value: Value) -> Value:
    """A timestamp, also where an engine has none with a zone, or only its microseconds."""
    if isinstance(value, int):
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def comparisons(left: Node, right: Node) -> list[Node]:
    return [Comparison(operator, left, right) for operator in OPERATORS]
