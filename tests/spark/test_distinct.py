"""distinct="marks" on Spark: tasks and micro-batches give what this process gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import estero
from engines import SparkStream
from estero.spark import count, recognize

pytestmark = pytest.mark.spark

EVENTS = pa.table({"kind": ["A", "B", "A", "B"] * 10, "t": list(range(40)), "n": [1, 1, 2, 2] * 10})
LAYOUT: dict[str, Any] = {"type": "kind", "time": "t", "time_unit": "s"}


@pytest.mark.parametrize(
    "clauses", ["", "WITHIN 5 SECONDS", "PARTITION BY n WITHIN 9 SECONDS"], ids=["all", "window", "keys"]
)
def test_a_job_merges_starts_as_this_process_does(spark: SparkSession, clauses: str) -> None:
    query = estero.query(f"SELECT * WHERE A ; B AS b KEEP [b] {clauses}")
    right = query.run(EVENTS, **LAYOUT, distinct="marks")
    frame = spark.createDataFrame(EVENTS)
    rows = recognize(frame, query, **LAYOUT, positions=True, partitions=3, distinct="marks").collect()
    expected = sorted((each.start, each.end) for each in right)
    assert sorted((row["start"], row["end"]) for row in rows) == expected
    assert count(frame, query, **LAYOUT, partitions=3, distinct="marks") == len(expected)


def test_a_stream_merges_starts(spark: SparkSession, tmp_path: Path) -> None:
    query = estero.query("SELECT * WHERE A ; B AS b KEEP [b] PARTITION BY n WITHIN 9 SECONDS")
    found = SparkStream(spark, tmp_path).rows(query.with_distinct("marks"), EVENTS, LAYOUT)
    right = query.run(EVENTS, **LAYOUT, distinct="marks")
    assert sorted(row["end_time"] for row in found) == sorted(each.end_time for each in right)
