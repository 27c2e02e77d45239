"""Footers of Parquet files tell where times lie: streams are cut by them without a job, and right."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import estero
from estero.errors import DataError
from estero.plan.plan import Window
from estero.spark import recognize
from estero.spark.batch import footers
from estero.spark.batch.footers import ranges_by_footers
from estero.spark.batch.ranges import Cut, Ranges
from spark.frames import in_any_order, without_positions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SHORT = Window(5)
ROWS = 1000


def written(spark: SparkSession, place: Path, times: pa.Array, **how: Any) -> DataFrame:
    """Events with such times in a Parquet file of many row groups."""
    table = pa.table({"type": ["A", "B"] * (len(times) // 2), "t": times, "k": range(len(times))})
    pq.write_table(table, place, row_group_size=max(1, len(times) // 10), **how)
    return spark.read.parquet(place.as_uri())


def by_footers(df: DataFrame, count: int | None = 4, window: Window = SHORT, **how: Any) -> Ranges | None:
    return ranges_by_footers(df, "t", window, count, **({"by_key": False} | how))


def sizes(df: DataFrame, ranges: Ranges | None) -> list[int]:
    """How many events are in each range, in their order."""
    assert ranges is not None
    times = [int(row[0]) for row in df.selectExpr("CAST(t AS BIGINT)").collect()]
    (cut,) = ranges.cuts
    starts = [-(2**63), *cut.starts, 2**63]
    return [sum(begin <= time < end for time in times) for begin, end in pairwise(starts)]


def uneven(number: int = ROWS) -> list[int]:
    """Ascending times, most of them late."""
    return sorted(int(number * 10 * (place / number) ** 0.3) for place in range(number))


# ------------------------------------------------------------------------------------------- ranges


@pytest.mark.parametrize("shuffled", [False, True])
def test_ranges_have_about_equally_many_events(spark: SparkSession, tmp_path: Path, shuffled: bool) -> None:
    times = uneven()
    if shuffled:
        random.Random(1).shuffle(times)
        times.sort(key=lambda time: time // 3000)  # groups overlap, but not all of them are alike
    df = written(spark, tmp_path / "events.parquet", pa.array(times))
    found = sizes(df, by_footers(df))
    assert len(found) == 4
    assert max(found) < 1.5 * ROWS / 4


def test_groups_of_many_files_are_sampled(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        written(spark, tmp_path / f"{number}.parquet", pa.array(range(number * 100, number * 100 + 100)))
    monkeypatch.setattr(footers, "_FILES", 6)
    monkeypatch.setattr(footers, "_GROUPS", 12)
    df = spark.read.parquet(str(tmp_path))
    found = sizes(df, by_footers(df, 3))
    assert len(found) == 3
    assert max(found) <= 600


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_instants_are_told_in_microseconds(spark: SparkSession, tmp_path: Path, unit: str) -> None:
    step = {"ms": 1, "us": 1000}[unit]
    times = pa.array([1_700_000_000_000 * step + place * step for place in range(ROWS)], pa.timestamp(unit))
    df = written(spark, tmp_path / "events.parquet", times)
    assert by_footers(df.select("k", "t"), 2) == Ranges((Cut((1_700_000_000_000_000 + 500_000,)),))


def test_names_of_files_are_read_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "100% of a day é.parquet"
    written(spark, tmp_path / "plain.parquet", pa.array(range(ROWS)))
    (tmp_path / "plain.parquet").rename(place)
    df = spark.read.parquet(f"file://{place}")
    assert by_footers(df, 2) == Ranges((Cut((500,)),))


def test_a_file_that_is_damaged_or_gone_is_named(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "events.parquet"
    df = written(spark, place, pa.array(range(ROWS)))
    query = "SELECT a, b WHERE A AS a ; B AS b WITHIN 1 [t]"
    too_long = b"PAR1" + (2**31).to_bytes(4, "little") + b"PAR1"
    for damaged in (b"no Parquet file at all", b"short", too_long):
        place.write_bytes(damaged)
        with pytest.raises(DataError, match=r"events\.parquet: this is not a Parquet file"):
            recognize(df, query, type="type", time="t", partitions=3)
    place.unlink()
    with pytest.raises(DataError, match=r"events\.parquet does not exist"):
        recognize(df, query, type="type", time="t", partitions=3)


def test_footers_are_read_in_parts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = written(spark, tmp_path / "events.parquet", pa.array(range(ROWS)))
    monkeypatch.setattr(footers, "_AT_ONCE", 100)
    assert by_footers(df, 2) == Ranges((Cut((500,)),))


def test_encrypted_footers_tell_nothing(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "events.parquet"
    df = written(spark, place, pa.array(range(ROWS)))
    place.write_bytes(place.read_bytes()[:-4] + b"PARE")
    assert by_footers(df, 2) is None


def test_a_column_that_is_only_moved_is_still_known(spark: SparkSession, tmp_path: Path) -> None:
    df = written(spark, tmp_path / "events.parquet", pa.array(range(ROWS)))
    assert by_footers(df.select("t").withColumn("more", df.t + 1), 2) == Ranges((Cut((500,)),))


@pytest.mark.parametrize(
    "unknown",
    ["t > 7", "t + 1 AS t", "k AS t"],
)
def test_what_is_no_table_of_files_is_asked_otherwise(
    spark: SparkSession, tmp_path: Path, unknown: str
) -> None:
    df = written(spark, tmp_path / "events.parquet", pa.array(range(ROWS)))
    other = df.selectExpr(unknown) if " AS " in unknown else df.where(unknown)
    assert by_footers(other) is None


def test_footers_that_do_not_tell_are_not_believed(spark: SparkSession, tmp_path: Path) -> None:
    times = pa.array(range(ROWS))
    assert by_footers(written(spark, tmp_path / "silent.parquet", times, write_statistics=False)) is None
    instants = times.cast(pa.timestamp("us"))
    old = written(spark, tmp_path / "old.parquet", instants, use_deprecated_int96_timestamps=True)
    assert by_footers(old) is None
    assert by_footers(written(spark, tmp_path / "days.parquet", times.cast("int32").cast("date32"))) is None
    assert by_footers(written(spark, tmp_path / "none.parquet", pa.array([], "int64"))) is None
    assert by_footers(spark.createDataFrame([(1,)], "t bigint")) is None


def test_how_many_ranges_pay(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    df = written(spark, tmp_path / "events.parquet", pa.array(range(ROWS)))
    running = spark.sparkContext.defaultParallelism
    assert by_footers(df, None) is None  # 1,000 events are no work for two
    monkeypatch.setattr(footers, "SMALLEST_TASK", 10)
    assert len(sizes(df, by_footers(df, None))) == running
    monkeypatch.setattr(footers, "MOST_ROWS", 100)
    assert len(sizes(df, by_footers(df, None))) == 1000 // 100
    wide = Window(1000)
    assert by_footers(df, None, wide) is None
    assert by_footers(df, 4, wide, by_key=True) is None
    assert len(sizes(df, by_footers(df, 4, wide))) == 4


# ------------------------------------------------------------------------------------------ answers


@pytest.mark.parametrize("by", ["", "PARTITION BY [k]"])
def test_answers_over_files_are_those_of_one_process(spark: SparkSession, tmp_path: Path, by: str) -> None:
    draw = random.Random(3)
    times = sorted(draw.choices(range(300), k=400))  # with ties, also where ranges begin
    table = pa.table(
        {
            "type": draw.choices("AABC", k=400),
            "t": times,
            "k": [draw.choice([1, 1, 1, 2, 3, None]) for _ in times],
        }
    )
    place = tmp_path / "events.parquet"
    pq.write_table(table, place, row_group_size=40)
    query = f"SELECT a, b WHERE A AS a ; B AS b {by} WITHIN 4 [t]"
    expected = estero.query(query).run(table, type="type", time="t").to_arrow().to_pylist()
    df = spark.read.parquet(place.as_uri())
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    found = recognize(df, query, type="type", time="t", partitions=7)
    assert set(tracker.getJobIdsForGroup(None)) == before, "cutting runs no job"
    assert found.rdd.getNumPartitions() == 7
    assert in_any_order(found.toArrow().to_pylist()) == in_any_order(without_positions(expected))
    assert expected
