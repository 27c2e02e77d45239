"""Lazy frames, datasets and lists of dicts as events: read when they are asked for, and as far as needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.errors import DataError
from estero.events.tables.lazy_tables import LazyFrame

EVENTS = pa.table(
    {"type": ["A", "B", "A", "B"], "time": [1, 2, 3, 4], "k": [1, 1, 2, 2], "v": [1.0, None, 3.0, 4.0]}
)
LAZY = pl.DataFrame(EVENTS).lazy()
QUERY = estero.query("SELECT A[v], B[v] WHERE A ; B PARTITION BY [k]")


def found(events: object) -> pa.Table:
    return QUERY.run(events, type="type", time="time").to_arrow()


def test_a_lazy_frame_is_run_at_each_reading() -> None:
    answer = QUERY.run(LAZY, type="type", time="time")
    assert answer.count() == 2
    assert answer.to_arrow() == found(EVENTS)


def test_a_lazy_frame_reads_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    wide = EVENTS.append_column("wide", pa.array(["x" * 100] * 4))
    pa.parquet.write_table(wide, tmp_path / "events.parquet")
    read: list[list[str]] = []

    def note(frame: pl.DataFrame) -> pl.DataFrame:
        if frame.height:  # none are asked for their columns alone
            read.append(frame.columns)
        return frame

    scanned = pl.scan_parquet(tmp_path / "events.parquet")
    lazy = scanned.map_batches(note, projection_pushdown=True, validate_output_schema=False)
    assert found(lazy) == found(EVENTS)
    assert read
    assert all("wide" not in columns for columns in read)


def test_a_lazy_frame_that_fails_is_an_error_of_the_data() -> None:
    lazy = LAZY.with_columns(pl.col("type").cast(pl.Int64, strict=True).alias("k"))
    with pytest.raises(DataError, match=r"Polars cannot run this lazy frame: .*conversion"):
        found(lazy)


def test_a_dataset_is_scanned(tmp_path: Path) -> None:
    assert found(pa.dataset.dataset(EVENTS)) == found(EVENTS)
    by_key = pa.dataset.partitioning(pa.schema([("k", pa.int64())]), flavor="hive")
    pa.dataset.write_dataset(EVENTS, tmp_path, format="parquet", partitioning=by_key)
    scanned = pa.dataset.dataset(tmp_path, partitioning=by_key)
    assert found(scanned)["k"].to_pylist() == [1, 2]
    assert found(tmp_path)["k"].to_pylist() == [1, 2]


def test_a_list_of_dicts_is_a_table() -> None:
    assert found(EVENTS.to_pylist()) == found(EVENTS)
    ragged = [{"type": "A", "time": 1, "k": 1}, {"type": "B", "time": 2, "k": 1, "v": 2.5}]
    assert found(ragged).to_pylist()[0]["B"] == [{"v": 2.5, "position": 1}]
    with pytest.raises(DataError, match="time"):
        found([{"type": "A", "time": 1}, {"type": "B", "time": "x"}])


# ------------------------------------------------------------------- what a lazy frame leaves out itself

KINDS = ["A", "B", "C", None]
QUERIES = [
    "SELECT A[v], B[v] WHERE A ; B WITHIN 3 EVENTS",
    "SELECT x[v], y[v] WHERE A AS x ; B AS y FILTER x[name = 'n'] AND y[name = 'n' OR name = 'm']",
    "SELECT x[v] WHERE A AS x ; B AS y FILTER x[name = 'n' OR v > 2]",
    "SELECT A[v], B[v] WHERE A : B",
    "SELECT A[v], B[v] WHERE A : B PARTITION BY [name]",
]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(["n", "m", "", None]), st.integers(0, 4))),
    st.sampled_from(QUERIES),
    st.sampled_from([pl.String, pl.Categorical, pl.Enum(["A", "B", "C"])]),
    st.booleans(),
)
def test_positions_stay_where_a_lazy_frame_leaves_rows_out(
    rows: list[tuple[str | None, str | None, int]], query: str, kind: pl.DataType, timed: bool
) -> None:
    columns = {"type": pl.String, "name": pl.String, "v": pl.Int64}
    frame = pl.DataFrame([*rows, ("A", "n", 3), ("B", "n", 1)], schema=columns, orient="row")
    frame = frame.with_columns(pl.col("type").cast(kind))
    layout: dict[str, Any] = {"type": "type"} | ({"time": "v"} if timed else {})
    asked = estero.query(query)
    lazily = asked.run(frame.lazy(), **layout)
    assert lazily.to_arrow().to_pylist() == asked.run(frame, **layout).to_arrow().to_pylist()


def test_a_lazy_frame_leaves_out_rows_itself() -> None:
    numbered = LazyFrame(LAZY).numbered(["time", "type"], [{"type": frozenset("B")}]).read_all()
    assert numbered.to_pydict() == {"time": [2, 4], "type": ["B", "B"], "__position": [1, 3]}


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (LAZY, "the lazy frame numbers the rows and keeps only those with type = 'A' or type = 'B'"),
        (EVENTS, "all rows, because every row has a position"),
    ],
)
def test_explain_says_what_is_read(events: object, said: str) -> None:
    explained = QUERY.explain(events, type="type", time="time")
    assert dict(explained.sections())["Read"] == f"type, time, k, v (4 of 4 columns); {said}"


def test_explain_says_that_all_rows_are_counted() -> None:
    explained = estero.query("SELECT A[v] WHERE A : B PARTITION BY [k]").explain(LAZY, type="type")
    assert dict(explained.sections())["Read"] == (
        "type, k, v (3 of 4 columns); all rows, because every row has a position"
    )


def test_in_a_mapping_columns_that_nobody_asks_for_are_not_read() -> None:
    failing = LAZY.with_columns(pl.col("type").cast(pl.Int64, strict=True).alias("odd")).drop("type")
    answer = estero.query("SELECT A[v], B[v] WHERE A ; B").run({"A": failing, "B": failing}, time="time")
    assert answer.count() == 10
    with pytest.raises(DataError, match="Polars cannot run this lazy frame"):
        estero.query("SELECT A[odd] WHERE A ; B").run({"A": failing, "B": failing}, time="time").to_arrow()
