"""Lazy frames, datasets and lists of dicts as events: read when they are asked for, and as far as needed."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import estero
from estero.errors import DataError

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
    with pytest.raises(DataError, match="x"):
        found([{"type": "A", "time": 1}, {"type": "B", "time": "x"}])
