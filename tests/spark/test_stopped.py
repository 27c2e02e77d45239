"""One stream, as in the laws, where it is killed anywhere or divided among many tasks."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

import estero
from engines import SparkBatch, cut
from estero.recognize.in_process import InProcessRun
from estero.reference.queries import Event
from laws.one_answer import EVENTS, HOW, QUERIES, by_reference, expected, found
from spark import stopped_stream
from spark.simulated import Simulation
from spark.streams import Row, timed_events
from spark.streams import expected as stream_answer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", ["keys", "ranges"])
def test_a_batch_in_more_tasks_than_it_has_events(spark: SparkSession, name: str) -> None:
    tasks = EVENTS.num_rows + 1
    assert found(SparkBatch(spark, tasks).rows(QUERIES[name], EVENTS, HOW)) == expected(name)


@pytest.mark.parametrize("name", [name for name in QUERIES if name != "keys, places"])
@pytest.mark.parametrize("seed", [3, 4])
def test_cut_and_killed_anywhere_without_spark(name: str, seed: int) -> None:
    """A micro-batch that a kill has broken off is done again from the state before, with the same ids.

    Without Spark, events that have no key are not there to be counted, as places in the stream need.
    """
    run = estero.query(QUERIES[name]).run(EVENTS, **HOW, types=("A", "B", "C"))._run
    assert isinstance(run, InProcessRun)
    one_order = "ANY" in QUERIES[name]
    stream = Simulation(run, buckets=1 if one_order else 3, counted=run.plan.needs_positions, ids=True)
    draw, rows, again = Random(seed), list[Row](), list[Row]()
    for batch in cut(EVENTS, seed, most=30):
        for each in (batch, None):
            if draw.random() < 0.4:
                killed = replace(stream, state=dict(stream.state), counts=dict(stream.counts))
                again += [row for answer in killed.micro_batch(each) for row in answer.to_pylist()]
            rows += [row for answer in stream.micro_batch(each) for row in answer.to_pylist()]
    by_id = {row.pop("answer_id"): row for row in rows}
    assert len(by_id) == len(rows)
    assert all(by_id[row.pop("answer_id")] == row for row in again)
    assert found(rows) == expected(name)
    assert stream.counts["late"] == 0


@pytest.mark.parametrize("name", sorted(set(stopped_stream.QUERIES) - {stopped_stream.WITH_PARTIALS}))
def test_streams_that_are_killed_have_to_find_what_the_reference_says(name: str) -> None:
    """Processes are killed in test_streaming.py, and in test_delta.py of the connectors."""
    table = timed_events()
    stream = [Event(row["type"], row, n * 1_000_000) for n, row in enumerate(table.to_pylist())]
    query = stopped_stream.QUERIES[name]
    rows = stream_answer(query, table, type="type", time="ts")
    assert found(rows) == by_reference(query, stream, tick=1000)
