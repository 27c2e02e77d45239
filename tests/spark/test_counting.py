"""`estero.spark.count`: the number of rows of the answer, without enumerating them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import estero
from estero.errors import DataError
from estero.language.tree.query import QueryTree
from estero.reference.queries import Event, evaluate_query
from estero.spark import count, recognize
from estero.spark.batch.batch import count_frame
from laws.evaluators import planned
from strategies.full import full_queries
from strategies.patterns import TICK, from_table, queries, streams, to_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

few = settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""A query on Spark takes about a second, however small the stream."""

HOW: dict[str, Any] = {"type": "type", "time": "t"}


def letters(number: int, keys: int = 3, seed: int = 5) -> pa.Table:
    draw = random.Random(seed)
    rows = [{"type": draw.choice("AABC"), "t": n // 2, "k": draw.randrange(keys)} for n in range(number)]
    return pa.Table.from_pylist(rows)


@pytest.mark.slow
@few
@given(st.one_of(queries(), full_queries()), streams(min_size=4, max_size=9), st.sampled_from([1, 3]))
def test_as_many_as_the_reference_finds(
    spark: SparkSession, tree: QueryTree, events: list[Event], partitions: int
) -> None:
    table = to_table(events)
    expected = evaluate_query(tree, from_table(table), tick=TICK)
    plan = planned(tree, table).plan
    found = count_frame(spark.createDataFrame(table), plan, partitions=partitions)
    assert found == sum(map(len, expected.values()))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * WHERE A AS a ; (B AS b)+ ; C AS c PARTITION BY [k]",
        "SELECT * WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 40 [t] LIMIT 3",
        "SELECT * WHERE (A AS a)+ ; B AS b WITHIN 9 [t]",
        "SELECT * WHERE A AS a : B AS b WITHIN 30 EVENTS",
        "SELECT * WHERE A AS a ; B AS b CONSUME BY ANY",
        "SELECT MAX * WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 5 [t]",
        "SELECT * WHERE A AS a ; B AS b FILTER a.k * b.k = 1 WITHIN 20 [t]",
        "SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k WITHIN 20 [t]",
    ],
)
@pytest.mark.parametrize("partitions", [None, 5])
def test_as_many_as_the_engine_counts(spark: SparkSession, query: str, partitions: int | None) -> None:
    table = letters(160)
    expected = estero.query(query).run(table, **HOW).count()
    assert expected > 0
    found = count(spark.createDataFrame(table), query, **HOW, partitions=partitions)
    assert found == expected


def test_counts_of_any_size_are_exact(spark: SparkSession) -> None:
    rows = [("A", n, n % 2) for n in range(400)] + [("B", 400, 0), ("B", 401, 1)]
    df = spark.createDataFrame(rows, "type string, t bigint, k bigint")
    query = "SELECT * WHERE (A AS a)+ ; B AS b"
    assert count(df, f"{query} PARTITION BY [k]", **HOW) == 2 * (2**200 - 1)
    assert count(df, query, **HOW) == 2 * (2**400 - 1)
    many = spark.createDataFrame([("A", n) for n in range(20_000)] + [("B", 20_000)], "type string, t bigint")
    assert count(many, query, **HOW) == 2**20_000 - 1


def test_tasks_count_what_ends_in_their_ranges_or_keys(spark: SparkSession) -> None:
    df = spark.createDataFrame(letters(300, keys=40))
    for rest in ("PARTITION BY [k]", "WITHIN 12 [t]"):
        query = f"SELECT * WHERE A AS a ; B AS b {rest}"
        expected = recognize(df, query, **HOW).count()
        assert [count(df, query, **HOW, partitions=n) for n in (1, 2, 7)] == 3 * [expected]


def test_nothing_to_count_is_zero(spark: SparkSession) -> None:
    df = spark.createDataFrame([], "type string, t bigint, k bigint")
    assert count(df, "SELECT NONE WHERE A AS a ; B AS b", **HOW) == 0
    assert count(df, "SELECT * WHERE A AS a PARTITION BY [k]", **HOW) == 0


def test_what_is_wrong_with_an_event_is_an_error_of_the_count(spark: SparkSession) -> None:
    df = spark.createDataFrame([("A", None)], "type string, t bigint")
    with pytest.raises(DataError, match=r"^the time of an event is NULL$"):
        count(df, "SELECT * WHERE A AS a", **HOW)
    with pytest.raises(ValueError, match="partitions is a whole number from 1 to 100,000, not 0"):
        count(df, "SELECT * WHERE A AS a", **HOW, partitions=0)
