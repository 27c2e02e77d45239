"""Values that break ties, and values that are compared: NULL, NaN and other kinds, the same everywhere."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.errors import DataError
from estero.pipeline.stream_order import OrderCheck
from estero.spark import recognize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")
WHOLE = 2**60

ORDERS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [-1, WHOLE, WHOLE + 1]),
    "floats": (pa.float64(), [-float("inf"), -0.0, 1.5, float("inf"), NAN]),
    "small floats": (pa.float32(), [-1.5, 0.0, NAN]),
    "decimals": (pa.decimal128(30, 2), [Decimal(-1), Decimal(WHOLE), Decimal(WHOLE) + Decimal("0.01")]),
    "strings": (pa.string(), ["", "B", "a", "ab", "é", "\ufffd", "\U0001f600"]),
    "truth values": (pa.bool_(), [False, True]),
    "dates": (pa.date32(), [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]),
    "timestamps": (pa.timestamp("us"), [-(10**16), 1]),
    "bytes": (pa.binary(), [b"", b"\x00", b"a", b"\xff"]),
}
"""For each type of an order column some values as they sort; NULL is after all of them."""


def table_of(kind: pa.DataType, values: list[Any]) -> pa.Table:
    """Events at one time, each with its place as `n`."""
    order = pa.array(values, kind)
    size = len(values)
    return pa.table({"type": ["A"] * size, "t": [0] * size, "o": order, "n": list(range(size))})


def ways(table: pa.Table, place: Path) -> dict[str, object]:
    """The same events in memory, as a stream of small batches, and in a file."""
    pa.parquet.write_table(table, place)
    return {"table": table, "batches": pa.Table.from_batches(table.to_batches(2)), "Parquet": str(place)}


def order_of(events: object) -> list[int]:
    """The places of events in stream order."""
    answer = estero.query("SELECT a WHERE A AS a").run(events, type="type", time="t", order=["o"])
    return [row["a"][0]["n"] for row in answer.to_arrow().to_pylist()]


def order_on_spark(spark: SparkSession, table: pa.Table) -> list[int]:
    found = recognize(
        spark.createDataFrame(table),
        "SELECT a WHERE A AS a",
        type="type",
        time="t",
        order="o",
        positions=True,
    )
    return [row["a"][0]["n"] for row in sorted(found.toArrow().to_pylist(), key=lambda row: row["start"])]


def order_when_pushed(table: pa.Table) -> list[int]:
    recognizer = estero.query("SELECT a WHERE A AS a").recognizer(
        table.schema, type="type", time="t", order=["o"], lateness=5
    )
    for place in range(table.num_rows):
        assert recognizer.push(table.slice(place, 1)).count() == 0
    return [row["a"][0]["n"] for row in recognizer.flush().to_arrow().to_pylist()]


def shuffled(name: str) -> tuple[pa.Table, list[int]]:
    """Values twice each with NULL between them, and the places that they have in order."""
    kind, values = ORDERS[name]
    both = [*values[::-1], None, *values, None]
    count = len(values)
    places = [place for k in range(count) for place in (count - 1 - k, count + 1 + k)]
    return table_of(kind, both), [*places, count, 2 * count + 1]


# -------------------------------------------------------------------------------------- order columns


def test_null_in_an_order_column_hides_no_disorder(tmp_path: Path) -> None:
    table = pa.table({"type": ["A", "X", "B"], "t": [1, 1, 1], "o": [2, None, 1]})
    for events in ways(table, tmp_path / "events.parquet").values():
        answer = estero.query("SELECT * WHERE B ; A").run(events, type="type", time="t", order=["o"])
        assert [(each.start, each.end) for each in answer] == [(0, 1)]


@pytest.mark.parametrize("name", ORDERS)
def test_order_columns_sort_the_same_wherever_events_are(name: str, tmp_path: Path) -> None:
    table, expected = shuffled(name)
    for events in ways(table, tmp_path / "events.parquet").values():
        assert order_of(events) == expected
    assert order_when_pushed(table) == expected


@pytest.mark.spark
def test_order_columns_sort_the_same_on_spark(spark: SparkSession) -> None:
    for name in ORDERS:
        table, expected = shuffled(name)
        assert order_on_spark(spark, table) == expected, name
    collated = spark.createDataFrame(table_of(pa.string(), ["b", "B", "a"])).selectExpr(
        "type", "t", "o COLLATE UTF8_LCASE AS o", "n"
    )
    found = recognize(collated, "SELECT a WHERE A AS a", type="type", time="t", order="o", positions=True)
    rows = sorted(found.toArrow().to_pylist(), key=lambda row: row["start"])
    assert [row["a"][0]["n"] for row in rows] == [1, 2, 0]


def test_minus_zero_breaks_no_tie(tmp_path: Path) -> None:
    table = table_of(pa.float64(), [0.0, -0.0, 0.0])
    assert all(order_of(events) == [0, 1, 2] for events in ways(table, tmp_path / "events.parquet").values())
    assert order_when_pushed(table) == [0, 1, 2]


def test_an_order_column_without_any_value_breaks_no_tie() -> None:
    table = table_of(pa.null(), [None, None, None])
    assert order_of(table) == order_when_pushed(table) == [0, 1, 2]
    frame = pd.DataFrame({"type": ["A"] * 2, "t": [0, 0], "o": [None, None], "n": [0, 1]})
    assert order_of(frame) == [0, 1]
    assert order_of(iter(table.to_batches(1))) == [0, 1, 2]


def test_strings_of_polars_are_in_order_of_their_code_points() -> None:
    frame = pl.DataFrame({"type": ["A"] * 3, "t": [0] * 3, "o": ["b", None, "B"], "n": [0, 1, 2]})
    assert order_of(frame) == [2, 0, 1]


@pytest.mark.parametrize(
    ("values", "shown"), [([[1], [2], None], "BIGINT[]"), ([{"a": 1}, None, {"a": 0}], "STRUCT(a BIGINT)")]
)
def test_an_order_column_of_lists_or_structs_is_refused(values: list[Any], shown: str) -> None:
    table = table_of(pa.infer_type(values), values)
    with pytest.raises(DataError) as error:
        order_of(table)
    assert error.value.column == "o"
    assert error.value.message == f"the order column holds values of type {shown}, which have no order here"
    assert error.value.hint == "name columns of numbers, strings, truth values or times"
    with pytest.raises(DataError, match="which have no order here"):
        order_when_pushed(table)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from([None, NAN, -0.0, 0.0, 1.0]), st.sampled_from([None, 0, 1]))))
def test_the_check_of_the_order_is_that_of_the_sort(rows: list[tuple[float | None, int | None]]) -> None:
    def rank(row: tuple[float | None, int | None]) -> tuple[Any, ...]:
        number, other = row
        kind = 2 if number is None else 1 if number != number else 0  # noqa: PLR0124 (NaN)
        return kind, 0.0 if kind else number, other is None, other or 0

    columns = pa.table(
        {
            "x": pa.array([number for number, _ in rows], pa.float64(), from_pandas=False),
            "k": pa.array([other for _, other in rows], pa.int64()),
        }
    )
    check = OrderCheck(["x", "k"], timed=False)
    for batch in columns.to_batches(2):
        check.follow(batch)
    ranks = [rank(row) for row in rows]
    falls = [place for place in range(1, len(ranks)) if ranks[place] < ranks[place - 1]]
    assert check.is_sorted == (not falls)
    assert check.first_unsorted == (falls[0] + 1 if falls else None)
