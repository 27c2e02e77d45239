"""Predicates of one's own on Spark: in all tasks that share the work where they are given values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import estero
from estero.spark import collect, count, explain, recognize
from spark.frames import in_any_order, without_positions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EVENTS = pa.table(
    {
        "kind": ["A" if n % 3 else "B" for n in range(90)],
        "n": [n * n % 31 for n in range(90)],
        "key": [f"k{n % 7}" for n in range(90)],
        "t": list(range(90)),
    }
)
LAYOUT: dict[str, Any] = {"type": "kind", "time": "t"}


@pytest.fixture(autouse=True)
def _near() -> None:
    def near(values: pa.Array, others: pa.Array, by: int) -> bool:
        return abs(int(values[-1].as_py()) - int(others[0].as_py())) <= by

    estero.predicate(near)


@pytest.mark.parametrize(
    "end", [" PARTITION BY [key]", " PARTITION BY [key] WITHIN 9 [t]", " WITHIN 6 [t]", " WITHIN 6 EVENTS"]
)
def test_the_rows_are_those_of_one_process(spark: SparkSession, end: str) -> None:
    query = estero.query(f"SELECT * WHERE A+ AS first ; B AS last FILTER near(first.n, last.n, 4){end}")
    answer = query.run(EVENTS, **LAYOUT)
    df = spark.createDataFrame(EVENTS).repartition(3)
    found = [row.asDict(recursive=True) for row in recognize(df, query, partitions=3, **LAYOUT).collect()]
    rows = without_positions(answer.to_arrow().to_pylist())
    assert rows
    assert in_any_order(found) == in_any_order(rows)
    assert count(df, query, **LAYOUT) == len(rows)


def test_with_values_no_task_has_all_events(spark: SparkSession) -> None:
    df = spark.createDataFrame(EVENTS)
    query = "SELECT * WHERE A AS a ; B AS b FILTER near(a.n, b.n, 4) PARTITION BY [key]"
    assert recognize(df, query, partitions=5, **LAYOUT).rdd.getNumPartitions() == 5


def test_what_it_raises_names_its_arguments(spark: SparkSession) -> None:
    estero.predicate(name="size")(len)
    query = "SELECT * WHERE A AS a ; B AS b FILTER size(a.n) PARTITION BY [key]"
    found = recognize(spark.createDataFrame(EVENTS), query, **LAYOUT)
    with pytest.raises(estero.DataError) as caught:
        list(collect(found).batches())
    assert str(caught.value).startswith(
        "the predicate size returned 1, and not True, False or None; it was called with ["
    )


def test_a_dry_run_starts_no_job(spark: SparkSession) -> None:
    df = spark.createDataFrame(EVENTS)
    spark.sparkContext.setJobGroup("dry", "a dry run")
    try:
        said = str(explain(df, "SELECT * WHERE A ; B WITHIN 9 [t]", **LAYOUT))
        started = spark.sparkContext.statusTracker().getJobIdsForGroup("dry")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert "\n  on Spark: each task processes a range of time and the window before it\n" in said
    assert list(started) == []


def test_a_dry_run_says_what_needs_one_ordered_task(spark: SparkSession) -> None:
    df = spark.createDataFrame(EVENTS)
    query = "SELECT * WHERE A AS a ; B AS b FILTER near({}, b.n, 4) PARTITION BY [key]"
    assert "ordered task" not in str(explain(df, query.format("a.n"), **LAYOUT))
    assert "one ordered task numbers all events, because near(a, b.n, 4) receives" in str(
        explain(df, query.format("a"), **LAYOUT)
    )
    assert "because the answer shows positions" in str(
        explain(df, query.format("a.n"), positions=True, **LAYOUT)
    )
    stream = spark.readStream.format("rate").load().selectExpr("'A' AS kind", "timestamp AS t")
    said = str(explain(stream, "SELECT * WHERE A ; A WITHIN 1 MINUTE", **LAYOUT))
    assert (
        "one ordered task, with one bucket for all events, because not all events of an answer share a key"
        in said
    )


def test_a_dry_run_finds_what_is_wrong(spark: SparkSession) -> None:
    df = spark.createDataFrame(EVENTS)
    with pytest.raises(estero.QueryError, match="price"):
        explain(df, "SELECT * WHERE A FILTER A[price > 3]", **LAYOUT)
    with pytest.raises(estero.DataError, match="not a Spark DataFrame"):
        explain(EVENTS, "SELECT * WHERE A")
