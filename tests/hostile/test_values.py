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
from estero.classify.classify import Clauses
from estero.classify.spark_dialect import SPARK
from estero.errors import DataError
from estero.events.stream_order import OrderCheck
from estero.language.tree.schema import Schema
from estero.plan.plan import Classification
from estero.spark import recognize
from estero.spark.frames import columns_of_frame

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
        assert [(match.start, match.end) for match in answer] == [(0, 1)]


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
    assert error.value.message == f"the order column holds values of type {shown}, which cannot be sorted"
    assert error.value.hint == "name columns of numbers, strings, truth values or times"
    with pytest.raises(DataError, match="which cannot be sorted"):
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


# ------------------------------------------------------------------------------ values of two types

BIG = 2**53
MICROS, NANOS = pa.timestamp("us"), pa.timestamp("ns")

ALTERNATIVES: dict[str, tuple[pa.Array, pa.Array, list[tuple[int, int]]]] = {
    "an integer and its text": (pa.array([1]), pa.array(["1"]), []),
    "an integer and a truth value": (pa.array([1]), pa.array([True]), []),
    "an integer and a time": (pa.array([1]), pa.array([1], MICROS), []),
    "a truth value and its text": (pa.array([True]), pa.array(["true"]), []),
    "a time and its text": (pa.array([0], MICROS), pa.array(["1970-01-01 00:00:00"]), []),
    "an integer and the float it is": (pa.array([BIG]), pa.array([float(BIG)]), [(0, 1)]),
    "an integer and the float beside it": (pa.array([BIG + 1]), pa.array([float(BIG)]), []),
    "the least integer": (pa.array([-(2**63)]), pa.array([-(2.0**63)]), [(0, 1)]),
    "the greatest integer": (pa.array([2**63 - 1]), pa.array([2.0**63]), []),
    "zeros": (pa.array([0]), pa.array([-0.0]), [(0, 1)]),
}
"""Values of two alternatives of one key, and the complex events of A ; B by that key."""


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_keys_are_equal_where_values_are_exactly(name: str) -> None:
    one, other, expected = ALTERNATIVES[name]
    for first, second in ((one, other), (other, one)):
        tables = {"A": pa.table({"t": [1], "a": first}), "B": pa.table({"t": [2], "b": second})}
        answer = estero.query("SELECT NONE WHERE A ; B PARTITION BY [a, b]").run(tables, time="t")
        assert answer.count() == len(expected)


def pairs(query: str, tables: dict[str, pa.Table]) -> list[tuple[int, int]]:
    rows = estero.query(query).run(tables, time="t").to_arrow().to_pylist()
    return [(row["start"], row["end"]) for row in rows]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT NONE WHERE A ; B PARTITION BY [a, b]",
        "SELECT NONE WHERE A AS x ; B AS y FILTER x.a = y.b",
        "SELECT NONE WHERE A AS x ; B AS y FILTER x.a = y.b WITHIN 1 DAY",
        "SELECT NONE WHERE A AS x ; B AS y FILTER x.a >= y.b AND x.a <= y.b",
    ],
)
def test_microseconds_and_nanoseconds_are_equal_as_instants(query: str) -> None:
    a = pa.table({"t": pa.array([1], MICROS), "a": pa.array([1000], MICROS)})
    for nanos, expected in ((1000, []), (1_000_000, [(0, 1)]), (1_000_001, [])):
        b = pa.table({"t": pa.array([2000], NANOS), "b": pa.array([nanos], NANOS)})
        assert pairs(query, {"A": a, "B": b}) == expected
        zoned = b.set_column(1, "b", pa.array([nanos], pa.timestamp("ns", "America/Santiago")))
        assert pairs(query, {"A": a, "B": zoned}) == expected


def test_an_integer_that_is_no_float_is_not_bent_to_one() -> None:
    whole = pa.table({"t": [1], "k": [BIG + 1]})
    floats = pa.table({"t": [2], "k": [float(BIG)]})
    for query in ("SELECT * WHERE A ; B PARTITION BY [k]", f"SELECT * WHERE A FILTER A[k = {BIG}]"):
        with pytest.raises(DataError) as error:
            pairs(query, {"A": whole, "B": floats})
        assert error.value.message == (
            f"column 'k': {BIG + 1} in the table of A is beside floats in that of B, "
            "and no float is equal to it"
        )
        assert error.value.hint == "rename one of the two columns, or convert it"
    fitting = whole.set_column(1, "k", [[BIG]])
    assert pairs("SELECT NONE WHERE A ; B PARTITION BY [k]", {"A": fitting, "B": floats}) == [(0, 1)]


def test_a_time_that_nanoseconds_do_not_hold_is_an_error_that_names_both() -> None:
    late = pa.table({"t": pa.array([dt.date(3000, 1, 1)]), "v": pa.array([dt.date(3000, 1, 1)])})
    nanos = pa.table({"t": pa.array([1], NANOS), "w": pa.array([1], NANOS)})
    with pytest.raises(DataError, match="3000-01-01 in the table of A is beside nanoseconds in that of B"):
        pairs("SELECT NONE WHERE B ; A", {"A": late, "B": nanos})
    late, nanos = (table.set_column(0, "t", [[number]]) for number, table in enumerate((late, nanos)))
    query = "SELECT NONE WHERE A AS x ; B AS y FILTER x.v > y.w"
    with pytest.raises(DataError) as error:
        pairs(query, {"A": late, "B": nanos})
    assert error.value.message == (
        "v is before 1677 or after 2262, and it is compared with times in nanoseconds"
    )
    assert error.value.hint == "convert one of them"


def test_numbers_of_two_widths_lose_nothing_in_one_column() -> None:
    fine = pa.table({"t": [1], "k": pa.array([Decimal("0.1")], pa.decimal128(38, 30))})
    some = pa.table({"t": [2], "k": pa.array([Decimal("7.25")], pa.decimal128(8, 2))})
    whole = pa.table({"t": [3], "k": pa.array([-(2**63)], pa.int64())})
    query = estero.query("SELECT x WHERE (A OR B) AS x")
    rows = query.run({"A": some, "B": whole}, time="t").to_arrow().to_pylist()
    assert [row["x"][0]["k"] for row in rows] == [Decimal("7.25"), Decimal(-(2**63))]
    rows = query.run({"A": fine, "B": some}, time="t").to_arrow().to_pylist()
    assert [row["x"][0]["k"] for row in rows] == [Decimal("0.1"), Decimal("7.25")]
    with pytest.raises(DataError, match="together they need more than 38 digits"):
        query.run({"A": fine, "B": whole}, time="t").count()
    small = pa.table({"t": [3], "k": pa.array([0.5], pa.float32())})
    with pytest.raises(DataError, match="'k' is a decimal in the table of A and a float in that of B"):
        query.run({"A": fine, "B": small}, time="t").count()


def test_a_column_without_values_is_of_the_kind_that_it_has_in_other_tables() -> None:
    none = pa.table({"t": [1], "k": pa.nulls(1)})
    for values in (pa.array(["x"]), pa.array([1], MICROS), pa.array([1.5]), pa.array([True])):
        some = pa.table({"t": [2], "k": values})
        for tables in ({"A": none, "B": some}, {"B": some, "A": none}):
            assert pairs("SELECT NONE WHERE B FILTER B[k IS NOT NULL]", tables) == [(1, 1)]


def test_a_key_that_its_column_cannot_show_is_an_error() -> None:
    tables = {"A": pa.table({"t": [1], "a": [BIG + 1]}), "B": pa.table({"t": [2], "b": [0.5]})}
    with pytest.raises(DataError, match="a key cannot be shown exactly in its column, which is of type d"):
        pairs("SELECT NONE WHERE (A OR B) PARTITION BY [a, b]", tables)


def test_an_infinite_time_is_an_error() -> None:
    table = pa.table({"type": ["A", "B"], "t": pa.array([0, 2**63 - 1], MICROS)})
    for query in ("SELECT * WHERE A ; B", "SELECT * WHERE A ; B WITHIN 1 DAY"):
        with pytest.raises(DataError, match="column 't': a time is infinite"):
            estero.query(query).run(table, type="type", time="t").count()
    recognizer = estero.query("SELECT * WHERE A ; B").recognizer(table.schema, type="type", time="t")
    with pytest.raises(DataError, match="a time is infinite"):
        recognizer.push(table)


@pytest.mark.spark
def test_keys_are_equal_on_spark_where_values_are_exactly(spark: SparkSession) -> None:
    for name, (one, other, expected) in ALTERNATIVES.items():
        columns = {"type": ["A", "B"]}
        table = pa.table(
            columns
            | {
                "a": pa.concat_arrays([one, pa.nulls(1, one.type)]),
                "b": pa.concat_arrays([pa.nulls(1, other.type), other]),
            }
        )
        df = spark.createDataFrame(table)
        read = columns_of_frame(df.schema)
        kinds = Schema({"A": {"a": read["a"].kind}, "B": {"b": read["b"].kind}})
        asked = Classification((), kinds, "type", keys=(("a", "b"),))
        keys = df.selectExpr(*Clauses(asked, SPARK, read).keys().values()).collect()
        assert (keys[0] == keys[1]) == bool(expected), name
