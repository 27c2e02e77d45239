"""What the JVM keeps to itself: filters reach the scan, and irrelevant events never reach Python."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from estero.spark import recognize
from estero.spark.failures import jobs
from estero.spark.work import Work
from spark.frames import parquet_frame

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Batches = Iterator[pa.RecordBatch]

SELECTIVE = "SELECT a WHERE A AS a ; B AS b FILTER a[n < 5] AND b[n >= 995]"
PER_KEY = f"{SELECTIVE} PARTITION BY [k]"


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """1,000 events; 5 are relevant: `n` counts them, and the first and the last ten alternate types."""
    rows = [{"type": "AB"[n % 2], "t": n, "n": n, "k": n % 2 + n // 2 % 2} for n in range(1000)]
    return parquet_frame(spark, pa.Table.from_pylist(rows), tmp_path / "events.parquet")


def plan_text(found: DataFrame) -> str:
    """The physical plan as text, with the details of each node on lines of their own."""
    java: Any = found.sparkSession._jvm
    mode = java.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")
    text: str = found._jdf.queryExecution().explainString(mode)
    return text


@pytest.mark.parametrize("query", [SELECTIVE, PER_KEY])
def test_the_relevance_condition_reaches_the_scan(events: DataFrame, query: str) -> None:
    text = plan_text(recognize(events, query, type="type", time="t"))
    pushed = next(line for line in text.splitlines() if "PushedFilters" in line)
    assert "And(EqualTo(type,A),LessThan(n,5))" in pushed
    assert "And(EqualTo(type,B),GreaterThanOrEqual(n,995))" in pushed


def test_columns_that_nobody_needs_are_not_scanned(events: DataFrame) -> None:
    text = plan_text(recognize(events, SELECTIVE.replace("a WHERE", "a[n] WHERE"), type="type", time="t"))
    (scanned,) = [line for line in text.splitlines() if "ReadSchema" in line]
    assert "k:" not in scanned


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize(
    "query", [SELECTIVE, PER_KEY, f"{PER_KEY} WITHIN 10 EVENTS", PER_KEY.replace(" ; ", " : ")]
)
def test_relevant_events_only_reach_python(
    spark: SparkSession, events: DataFrame, monkeypatch: pytest.MonkeyPatch, query: str, positions: bool
) -> None:
    crossed = spark.sparkContext.accumulator(0)

    def counted(work: Work, *how: Any) -> Callable[[Batches], Batches]:
        recognize_batches = on_batches(work, *how)

        def count(batches: Batches) -> Batches:
            for batch in batches:
                crossed.add(batch.num_rows)
                yield batch

        return lambda batches: recognize_batches(count(batches))

    on_batches = Work.on_batches
    monkeypatch.setattr(Work, "on_batches", counted)
    recognize(events, query, type="type", time="t", positions=positions, share=1).collect()
    assert crossed.value == 6


def test_nothing_runs_before_an_action(spark: SparkSession, events: DataFrame) -> None:
    spark.sparkContext.setJobGroup("lazy", "no job may have this group")
    try:
        recognize(events, PER_KEY, type="type", time="t", positions=True)
        assert spark.sparkContext.statusTracker().getJobIdsForGroup("lazy") == []
    finally:
        spark.sparkContext._jsc.clearJobGroup()


def test_ctrl_c_ends_a_job_of_any_length_and_leaves_the_session_as_it_was(spark: SparkSession) -> None:
    many = spark.range(200).selectExpr("'A' AS type", "id AS t")
    endless = recognize(many, "SELECT a[t] WHERE (A AS a)+", type="type", time="t")
    for _ in range(2):
        interrupt = threading.Timer(2, os.kill, [os.getpid(), signal.SIGINT])
        interrupt.start()
        with pytest.raises(KeyboardInterrupt), jobs():
            endless.count()
        interrupt.join()
        assert spark.range(3).count() == 3
    # What has ended is known once Spark has told its own listeners.
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert list(spark.sparkContext.statusTracker().getActiveJobsIds()) == []


def test_the_driver_does_not_load_the_kernels() -> None:
    loaded = "import sys, estero.queries.query, estero.spark.batch.batch"
    program = f"{loaded}; assert 'estero.engine.library' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
