"""The same queries over the same stream, by all that can run them: the answers of the reference semantics."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from estero.recognize.in_process import InProcessRun
from estero.reference.queries import Event
from estero.spark import recognize
from spark import stopped_stream
from spark.one_answer import EVENTS, HOW, QUERIES, by_reference, cut, expected, found
from spark.simulated import Simulation
from spark.streams import expected as stream_answer
from spark.streams import timed_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONJUNCTIVE = "Q(x) <- A(k: x) AS a, B(k: x) AS b, C(k: x) AS c WITHIN 4 [time]"
"""What the joined query asks for."""
SCHEMA = "type STRING, time BIGINT, n BIGINT, x DOUBLE, s STRING, k BIGINT"

each_query = pytest.mark.parametrize("name", QUERIES)
on_spark = pytest.mark.spark


@on_spark
@pytest.mark.slow
@pytest.mark.parametrize("name", ["keys", "ranges"])
def test_a_batch_in_200_tasks(spark: SparkSession, name: str) -> None:
    rows = recognize(frame(spark, 7), QUERIES[name], **HOW, partitions=200).toArrow().to_pylist()
    assert found(rows) == expected(name)


# ---------------------------------------------------------------------------------- in this process


@each_query
def test_in_one_process(name: str) -> None:
    answer = estero.query(QUERIES[name]).run(EVENTS, **HOW)
    assert found(answer.to_arrow().to_pylist()) == expected(name)
    assert answer.count() == len(expected(name))


def test_a_conjunctive_query_finds_what_the_join_of_all_finds() -> None:
    answer = estero.conjunctive(CONJUNCTIVE).run(EVENTS, **HOW)
    assert found(answer.to_arrow().to_pylist()) == expected("joined")


@each_query
@pytest.mark.parametrize("seed", [1, 2])
def test_pushed_in_random_batches(name: str, seed: int) -> None:
    recognizer = estero.query(QUERIES[name]).recognizer(EVENTS.schema, **HOW)
    rows = []
    for batch in cut(EVENTS, seed, most=30):
        rows += recognizer.push(batch).to_arrow().to_pylist()
    rows += recognizer.close().to_arrow().to_pylist()
    assert found(rows) == expected(name)
    assert recognizer.late == 0


# -------------------------------------------------------------------------------- batches on Spark


def frame(spark: SparkSession, tasks: int) -> DataFrame:
    """The events, which arrive from so many tasks in the order that they have."""
    numbers = spark.range(0, EVENTS.num_rows, 1, tasks)
    kinds = (part.split() for part in SCHEMA.split(", "))
    return numbers.selectExpr(*(f"{literal(name, kind)}[int(id)] AS {name}" for name, kind in kinds))


def literal(name: str, kind: str) -> str:
    """A column as an array in SQL."""
    values = ", ".join("NULL" if value is None else repr(value) for value in EVENTS[name].to_pylist())
    return f"CAST(array({values}) AS ARRAY<{kind}>)"


@on_spark
@pytest.mark.parametrize("tasks", [1, 2, 7])
@each_query
def test_a_batch_in_so_many_tasks(spark: SparkSession, name: str, tasks: int) -> None:
    """As many of them share keys, ranges of time or the enumeration."""
    df = frame(spark, tasks)
    rows = recognize(df, QUERIES[name], **HOW, partitions=tasks).toArrow().to_pylist()
    assert found(rows) == expected(name)


# ------------------------------------------------------------------------------------------ streams


@pytest.mark.parametrize("name", [name for name in QUERIES if name != "keys, places"])
@pytest.mark.parametrize("seed", [3, 4])
def test_cut_and_killed_anywhere_without_spark(name: str, seed: int) -> None:
    """A micro-batch that a kill has broken off leaves nothing, and is done again from the state before.

    Without Spark, events that have no key are not there to be counted, as places in the stream need.
    """
    run = estero.query(QUERIES[name]).run(EVENTS, **HOW, types=("A", "B", "C"))._run
    assert isinstance(run, InProcessRun)
    one_order = "ANY" in QUERIES[name]
    stream = Simulation(run, buckets=1 if one_order else 3, counted=run.plan.needs_positions)
    draw, rows = Random(seed), []
    for batch in cut(EVENTS, seed, most=30):
        for each in (batch, None):
            if draw.random() < 0.4:
                killed = replace(stream, state=dict(stream.state), counts=dict(stream.counts))
                next(killed.micro_batch(each), None)
            rows += [row for answer in stream.micro_batch(each) for row in answer.to_pylist()]
    assert found(rows) == expected(name)
    assert stream.counts["late"] == 0


@pytest.mark.parametrize("name", stopped_stream.QUERIES)
def test_streams_that_are_killed_have_to_find_what_the_reference_says(name: str) -> None:
    """Processes are killed in test_streaming.py, and in test_delta.py of the connectors."""
    table = timed_events()
    stream = [Event(row["type"], row, n * 1_000_000) for n, row in enumerate(table.to_pylist())]
    query = stopped_stream.QUERIES[name]
    rows = stream_answer(query, table, type="type", time="ts")
    assert found(rows) == by_reference(query, stream, tick=1000)


@on_spark
@pytest.mark.slow
def test_streams_in_random_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    """All queries at once, each with cuts of its own; what comes late is none of them."""
    running = {}
    for seed, name in enumerate(QUERIES):
        place = tmp_path / f"{seed}"
        files(place / "events", seed)
        df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(place / "events"))
        sink = recognize(df, QUERIES[name], **HOW).writeStream.format("parquet").trigger(availableNow=True)
        sink = sink.option("checkpointLocation", str(place / "checkpoint"))
        running[name] = sink.start(str(place / "answers")), place / "answers"
    for name, (query, answers) in running.items():
        query.awaitTermination()
        assert found(spark.read.parquet(str(answers)).toArrow().to_pylist()) == expected(name), name
        assert sum(report.observedMetrics["estero"].late for report in query.recentProgress) == 0


def files(place: Path, seed: int) -> None:
    """The events in two or three files; Spark takes them by their times."""
    place.mkdir(parents=True)
    for number, piece in enumerate(cut(EVENTS, seed, most=89)):
        file = place / f"{number:03}.parquet"
        pa.parquet.write_table(piece, file)
        os.utime(file, (1_000_000_000 + number,) * 2)
