"""What chooses for each start, or for an interval, on Spark: tasks by keys, or one; streams decide later."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from engines import InProcess, SparkBatch, SparkStream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LAYOUT = {"type": "type", "time": "time", "time_unit": "s"}
QUERIES = (
    "SELECT LONGEST DISJOINT A, B WHERE A+ ; B PARTITION BY k WITHIN 6 [time]",
    "SELECT SHORTEST A, B WHERE A+ ; B WITHIN 6 [time]",
    "SELECT SHORTEST DISJOINT A, B WHERE A+ ; B PARTITION BY k WITHIN 6 [time] LIMIT 1 PER 9 [time]",
    "SELECT LONGEST DISJOINT A, B WHERE A+[<= 2 [time]] ; B PARTITION BY k WITHIN 6 [time]",
    "SELECT SHORTEST A, B WHERE A ; B FILTER A.k <= B.k WITHIN 6 [time] LIMIT 2 PER 5 [time]",
    "SELECT A, B WHERE A ; B PARTITION BY k WITHIN 4 [time] LIMIT 2 PER 9 [time]",
    "SELECT LONGEST A, B WHERE A ; B WITHIN 4 [time] LIMIT 1 PER 5 [time]",
)


def _events(size: int = 60) -> pa.Table:
    """Events of a few keys; the window of all others has passed at the last one."""
    draw = np.random.default_rng(7)
    kinds = [*np.array(["A", "A", "B", "C"])[draw.integers(0, 4, size)].tolist(), "C", "C", "C"]
    times = [*(np.arange(size) // 2).tolist(), 1000, 1000, 1000]
    keys = [*draw.integers(0, 3, size).tolist(), 0, 1, 2]
    return pa.table({"type": kinds, "time": pa.array(times, pa.int64()), "k": pa.array(keys, pa.int64())})


def _shown(rows: list[dict[str, object]]) -> list[str]:
    """Rows by what batches and streams know: times, keys and the attributes of events."""
    kept = ("start_time", "end_time", "k", "suppressed", "A", "B")
    events = [{name: row[name] for name in kept if name in row} for row in rows]
    for row in events:
        for name in ("A", "B"):
            marked = row[name]
            assert isinstance(marked, list)
            row[name] = [{key: each[key] for key in ("time", "k")} for each in marked]
    return sorted(map(repr, events))


@pytest.mark.parametrize("query", QUERIES)
def test_a_job_chooses_what_this_process_chooses(spark: SparkSession, query: str) -> None:
    wanted = _shown(InProcess().rows(query, _events(), LAYOUT))
    assert _shown(SparkBatch(spark, 3).rows(query, _events(), LAYOUT)) == wanted
    assert len(wanted) > 2


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES[::2])
def test_a_stream_gives_what_is_decided(spark: SparkSession, tmp_path: Path, query: str) -> None:
    """By key and in one order, with and without an interval; laws draw all of them, cut anywhere."""
    wanted = _shown(InProcess().rows(query, _events(), LAYOUT))
    assert _shown(SparkStream(spark, tmp_path).rows(query, _events(), LAYOUT)) == wanted
