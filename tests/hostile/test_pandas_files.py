"""Parquet files as pandas writes them: nanoseconds, zones, and columns of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from estero.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

QUERY = 'SELECT a[t], b[t, "${x}"] WHERE Event AS a ; Event AS b WITHIN 2 HOURS'


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Naive times and zoned ones with nanoseconds, and the index of a frame that was filtered."""
    times = pd.to_datetime([f"2024-03-31 0{hour}:30:00.000001" for hour in range(4)]).as_unit("ns")
    frame = pd.DataFrame({"t": times, "${x}": times.tz_localize("UTC").tz_convert("America/Santiago")})
    frame = frame[frame.t.dt.hour != 1]
    frame.to_parquet(tmp_path / "events.parquet", version="2.6")
    assert "__index_level_0__" in pa.parquet.read_schema(tmp_path / "events.parquet").names
    return tmp_path / "events.parquet"


def micros(answer: pa.Table, name: str) -> list[int]:
    """A column of the events marked b, in microseconds since 1970."""
    values = answer.column("b").combine_chunks().flatten().field(name)
    nanoseconds = 1 if values.type.unit == "ns" else 1000
    return sorted(tick * nanoseconds // 1000 for tick in values.cast(pa.int64()).to_pylist())


@pytest.mark.spark
def test_nanoseconds_and_columns_of_an_index_are_read_as_in_process(
    spark: SparkSession, written: Path
) -> None:
    from estero.spark import read_events, recognize

    before = spark.conf.get("spark.sql.legacy.parquet.nanosAsLong")
    df = read_events(written)
    assert df.columns == ["t", "${x}", "__index_level_0__"]
    assert dict(df.dtypes)["t"] == "timestamp_ntz"
    there, here = (
        recognize(df, QUERY, time="t").toArrow(),
        estero.query(QUERY).run(written, time="t").to_arrow(),
    )
    assert [micros(there, name) for name in ("t", "${x}")] == [micros(here, name) for name in ("t", "${x}")]
    assert here.num_rows == 2
    assert spark.conf.get("spark.sql.legacy.parquet.nanosAsLong") == before


@pytest.mark.spark
def test_a_time_that_is_finer_than_those_of_spark_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    from estero.spark import collect, read_events, recognize

    times = pa.array([1, 1000], pa.timestamp("ns"))
    pa.parquet.write_table(pa.table({"t": times, "v": [1, 2]}), tmp_path / "fine.parquet", version="2.6")
    df = read_events(tmp_path / "fine.parquet")
    assert collect(recognize(df, "SELECT a[v] WHERE Event AS a")).count() == 2
    with pytest.raises(DataError, match="a time has nanoseconds, and those of Spark end at microseconds"):
        collect(recognize(df, "SELECT a WHERE Event AS a", time="t")).count()


@pytest.mark.spark
def test_nanoseconds_inside_of_values_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    from estero.spark import read_events

    times = pa.array([[1000]], pa.list_(pa.timestamp("ns")))
    pa.parquet.write_table(pa.table({"t": times}), tmp_path / "inside.parquet", version="2.6")
    with pytest.raises(
        DataError, match=r"(?s)column 't': holds timestamps in nanoseconds inside .*coerce_timestamps"
    ):
        read_events(tmp_path / "inside.parquet")


@pytest.mark.spark
def test_a_stream_of_nanoseconds_says_the_line_to_write(spark: SparkSession, written: Path) -> None:
    from estero.spark import read_stream

    with pytest.raises(
        DataError, match=r"spark\.conf\.set\('spark\.sql\.legacy\.parquet\.nanosAsLong', 'true'\)"
    ):
        read_stream(f"parquet:{written.parent}")
