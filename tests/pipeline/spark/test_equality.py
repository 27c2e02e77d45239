"""Spark finds what the reference semantics say, and what the in-process engine finds."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from estero.language.query import QueryTree
from estero.pipeline.answer import Answer
from estero.pipeline.spark.batch import recognize_frame
from estero.semantics import Event, is_answer
from full_strategies import full_queries
from laws.evaluators import by_end, planned
from pipeline.spark.frames import answer_batches, in_any_order, without_positions
from strategies import TICK, from_table, queries, streams, to_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

few = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""A query on Spark takes about a second, however small the stream."""

ANY = st.one_of(queries(), full_queries())
"""Queries of the plain operators, and of the whole language."""


@few
@given(ANY, streams(min_size=4, max_size=9), st.integers(0, 2**32))
def test_spark_finds_what_the_reference_says(
    spark: SparkSession, tree: QueryTree, events: list[Event], seed: int
) -> None:
    random.Random(seed).shuffle(events)
    in_stream_order = sorted(events, key=lambda event: event.time or 0)
    table = to_table(events)
    plan = planned(tree, table).plan
    frame = spark.createDataFrame(table)
    found = recognize_frame(frame, plan, positions=True, partitions=3)
    answer = by_end(answer_batches(found, plan, frame, positions=True))
    assert is_answer(tree, from_table(to_table(in_stream_order)), answer, tick=TICK)


@few
@given(ANY, streams(min_size=4, max_size=9))
def test_without_positions_the_same_rows_are_found(
    spark: SparkSession, tree: QueryTree, events: list[Event]
) -> None:
    table = to_table(events)
    run = planned(tree, table)
    frame = spark.createDataFrame(table)
    found = answer_batches(recognize_frame(frame, run.plan), run.plan, frame, positions=False)
    rows = [row for batch in found for row in batch.to_pylist()]
    assert in_any_order(rows) == in_any_order(without_positions(Answer(run).to_arrow().to_pylist()))
