"""Spark finds what the reference semantics say, and what the in-process engine finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from estero.answers.answer import Answer
from estero.language.tree.query import QueryTree
from estero.reference.queries import Event
from estero.spark.batch.batch import recognize_frame
from spark.frames import answer_batches, as_in_process, as_the_reference_says, in_any_order, without_positions
from strategies.full import full_queries
from strategies.nested import nested_event, nested_run, nested_table, nested_tree
from strategies.patterns import queries, streams
from strategies.steps import stepped_queries
from strategies.whole import whole_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

few = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""A query on Spark takes about a second, however small the stream."""

ANY = st.one_of(queries(), full_queries(), stepped_queries(), whole_queries())
"""Queries of the plain operators, and of the whole language."""

DECIDED = st.one_of(queries(), full_queries(), whole_queries().filter(lambda tree: tree.limit is None))
"""Queries whose rows are known: of those that LIMIT leaves it is known how many they are."""


@few
@given(ANY, streams(min_size=4, max_size=9), st.integers(0, 2**32))
def test_spark_finds_what_the_reference_says(
    spark: SparkSession, tree: QueryTree, events: list[Event], seed: int
) -> None:
    assert as_the_reference_says(spark, tree, events, seed, partitions=3)


@few
@given(DECIDED, streams(min_size=4, max_size=9))
def test_without_positions_the_same_rows_are_found(
    spark: SparkSession, tree: QueryTree, events: list[Event]
) -> None:
    assert as_in_process(spark, tree, events)


@few
@given(DECIDED, streams(min_size=4, max_size=9))
def test_what_is_inside_of_structs_and_lists_is_read_alike(
    spark: SparkSession, tree: QueryTree, events: list[Event]
) -> None:
    inside, nested = nested_tree(tree), list(map(nested_event, events))
    run, df = nested_run(inside, nested), spark.createDataFrame(nested_table(nested))
    found = answer_batches(recognize_frame(df, run.plan), run.plan, df, positions=False)
    rows = [row for batch in found for row in batch.to_pylist()]
    assert in_any_order(rows) == in_any_order(without_positions(Answer(run).to_arrow().to_pylist()))
