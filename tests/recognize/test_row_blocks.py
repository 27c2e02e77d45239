"""Rows of MATCH_RECOGNIZE in blocks: whole partitions, in the order that DuckDB gives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import estero
from estero import DataError
from estero.recognize.row_patterns import row_blocks, statements

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.one_of(st.integers(-2, 2), st.integers(-(2**63), 2**63 - 1)),
    pa.uint64(): st.one_of(st.integers(0, 2), st.integers(0, 2**64 - 1)),
    pa.int8(): st.integers(-128, 127),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(st.sampled_from("aZé𝄞"), max_size=2),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 1e300]),
    pa.float32(): st.sampled_from([0.0, -0.0, 1.5, math.nan, -math.inf]),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("ns"): st.integers(-(10**15), 10**15),
    pa.time64("us"): st.times(),
    pa.decimal128(5, 2): st.integers(-99, 99).map(lambda cents: Decimal(cents) / 100),
    pa.binary(): st.binary(max_size=2),
}


def columns(kinds: Sequence[pa.DataType], rows: int) -> st.SearchStrategy[list[pa.Array]]:
    """A column of each type, in which NULL may be."""
    drawn = [st.lists(st.one_of(VALUES[kind], st.none()), min_size=rows, max_size=rows) for kind in kinds]
    return st.tuples(*drawn).map(
        lambda lists: [pa.array(values, kind) for values, kind in zip(lists, kinds, strict=True)]
    )


DUCKDB_SORTS = {pa.float64(), pa.float32(), pa.decimal128(5, 2), pa.binary()}
KINDS = st.lists(st.sampled_from(list(VALUES)), min_size=4, max_size=4)
TABLES = st.tuples(KINDS, st.integers(0, 12)).flatmap(lambda drawn: columns(*drawn))
DIRECTION = st.sampled_from(("", " DESC", " NULLS FIRST", " ASC NULLS LAST", " DESC NULLS FIRST"))


def ordered(table: pa.Table, partition: str, order: str) -> list[int]:
    """The numbers of the rows as they come out of a match for each row."""
    text = f"""
        SELECT i FROM events MATCH_RECOGNIZE (
            {partition} {order} ALL ROWS PER MATCH PATTERN (a) DEFINE a AS TRUE)"""
    numbers: list[int] = estero.sql(text, events=table).to_arrow().column("i").to_pylist()
    return numbers


@given(
    TABLES, DIRECTION, DIRECTION, st.integers(0, 2), st.integers(1, 2), st.integers(1, 4), st.integers(1, 2)
)
def test_rows_are_in_the_order_that_duckdb_gives(
    drawn: list[pa.Array], one: str, other: str, keys: int, orders: int, size: int, threads: int
) -> None:
    rows = len(drawn[0])
    table = pa.table([*drawn, pa.array(range(rows))], ["p0", "p1", "o0", "o1", "i"])
    partition = ", ".join(("p0", "p1")[:keys])
    order = ", ".join((f"o0{one}", f"o1{other}")[:orders])
    sorting = ", ".join(filter(None, [partition, order, "i"]))
    wanted = duckdb.connect().from_arrow(table).order(sorting).project("i").fetchall()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESTERO_THREADS", str(threads))
        patch.setattr(row_blocks, "ROWS", size)
        clause = f"PARTITION BY {partition}" if partition else ""
        assert ordered(table, clause, f"ORDER BY {order}, i") == [row for (row,) in wanted]
        if not DUCKDB_SORTS & {column.type for column in drawn}:  # rows of equal keys stay as they are
            assert ordered(table, clause, f"ORDER BY {order}") == [row for (row,) in wanted]


@pytest.mark.parametrize("most", [0, 1 << 32])
@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_blocks_do_not_change_what_matches(
    monkeypatch: pytest.MonkeyPatch, most: int, threads: str, size: int
) -> None:
    monkeypatch.setattr(statements, "MOST_BYTES", most)
    monkeypatch.setattr(row_blocks, "ROWS", size)
    monkeypatch.setattr(statements, "_ROWS", 3)
    monkeypatch.setenv("ESTERO_THREADS", threads)
    prices = pa.table(
        {
            "key": [f"k{number % 7}" for number in range(100)],
            "day": list(range(100)),
            "price": [number * number % 11 for number in range(100)],
        }
    )
    text = """
        SELECT * FROM (SELECT * FROM prices WHERE price >= 0) MATCH_RECOGNIZE (
            PARTITION BY key ORDER BY day
            MEASURES MATCH_NUMBER() AS number, FIRST(day) AS since, LAST(day) AS until, count(*) AS days
            PATTERN (high down+ up+)
            DEFINE down AS price < PREV(price), up AS price > PREV(price)
        )"""
    found = estero.sql(text, prices=prices).to_arrow().to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (key, number, *shape)
        for key in sorted(set(prices["key"].to_pylist()))
        for number, shape in enumerate(v_shapes([row for row in prices.to_pylist() if row["key"] == key]), 1)
    ]


def v_shapes(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[int, int, int]]:
    """First and last day and the days of falls with a rise behind."""
    price = [row["price"] for row in rows]
    start = 0
    while start < len(rows):
        bottom = start
        while bottom + 1 < len(rows) and price[bottom + 1] < price[bottom]:
            bottom += 1
        top = bottom
        while top + 1 < len(rows) and price[top + 1] > price[top]:
            top += 1
        if start < bottom < top:
            yield rows[start]["day"], rows[top]["day"], top - start + 1
            start = top + 1
        else:
            start += 1


def test_the_first_partition_that_cannot_go_on_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "ROWS", 1)
    monkeypatch.setenv("ESTERO_THREADS", "2")
    table = pa.table({"key": [3, 1, 2, 4], "day": [1, 1, 1, 1]})
    text = """
        SELECT * FROM events MATCH_RECOGNIZE (
            PARTITION BY key ORDER BY day MEASURES count(*) AS days
            AFTER MATCH SKIP TO LAST a PATTERN (a) DEFINE a AS key > 1)"""
    with pytest.raises(DataError, match="of the partition 2"):
        estero.sql(text, events=table).to_arrow()


def test_files_are_read_when_the_statement_runs(tmp_path: Any) -> None:
    file = tmp_path / "prices.parquet"
    pq.write_table(pa.table({"key": [day % 3 for day in range(30)], "day": range(30)}), file)
    text = """
        SELECT * FROM prices MATCH_RECOGNIZE (
            PARTITION BY key ORDER BY day MEASURES count(*) AS days PATTERN (a+) DEFINE a AS TRUE)"""
    result = estero.sql(text, prices=str(file))
    assert result.to_arrow().to_pylist() == [{"key": key, "days": 10} for key in range(3)]
