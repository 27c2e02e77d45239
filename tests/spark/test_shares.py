"""One order of events in several tasks that share the enumeration: the answer, each complex event once."""

from __future__ import annotations

import gc
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import estero
from estero.errors import QueryError
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import EventLayout
from estero.reference.queries import Event
from estero.spark import recognize
from estero.spark.batch.distribute import MOST_SHARES, distribute, number_of_shares
from estero.spark.work import Work, layout_of_schema
from laws.evaluators import planned
from spark.frames import as_the_reference_says, in_any_order, without_positions
from strategies.full import full_queries
from strategies.patterns import queries, streams, to_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

TIMED = EventLayout("type", "t")

few = settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""A query on Spark takes about a second, however small the stream."""


def events(number: int = 60, seed: int = 1) -> pa.Table:
    """Events of which many have the time of the one before."""
    draw = random.Random(seed)
    time, rows = 0, []
    for place in range(number):
        time += draw.choice([0, 0, 1, 2])
        rows.append({"type": draw.choice("AABBC"), "t": time, "k": place, "key": draw.choice("xyz")})
    return pa.Table.from_pylist(rows)


def in_process(query: Any, table: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = query.run(table, type="type", time="t").to_arrow().to_pylist()
    return found


def rows_by_task(df: DataFrame) -> list[int]:
    """How many rows each task gives."""
    return [len(part) for part in df.rdd.glom().collect()]


# ----------------------------------------------------------------------------------------- equality


def can_be_shared(tree: QueryTree) -> bool:
    plan = planned(tree, to_table([])).plan
    return not plan.sieved or plan.consume.name == "NONE"


@pytest.mark.slow
@few
@given(
    st.one_of(queries(), full_queries()).filter(can_be_shared),
    streams(min_size=5, max_size=9),
    st.integers(1, 7),
    st.integers(0, 2**32),
)
def test_any_number_of_shares_finds_what_the_reference_says(
    spark: SparkSession, tree: QueryTree, stream: list[Event], share: int, seed: int
) -> None:
    assert as_the_reference_says(spark, tree, stream, seed, share=share)


@pytest.mark.parametrize(
    "query",
    [
        estero.query("SELECT a, b WHERE A AS a ; B AS b"),
        estero.query("SELECT a, b, c WHERE A AS a ; B AS b ; C AS c WITHIN 9 [t] LIMIT 7"),
        estero.query("SELECT a, b, c WHERE A AS a ; B AS b ; C AS c PARTITION BY [key] WITHIN 9 [t]"),
        estero.query("SELECT a, b WHERE A AS a : B AS b PARTITION BY [key]"),
        estero.query("SELECT a, b WHERE A AS a ; B AS b FILTER a.k * b.k > 60"),
        estero.query("SELECT a, b WHERE A AS a ; B AS b CONSUME BY ANY"),
        estero.query("SELECT MAX a, b WHERE A+ AS a ; B AS b WITHIN 6 EVENTS"),
        estero.query("SELECT a, b WHERE A AS a ; B AS b FILTER a.key = b.key AND a.k < b.k"),
        estero.conjunctive("Q(x, y) <- A(key: x, k: y), B(key: x) WITHIN 30 EVENTS"),
    ],
    ids=str,
)
def test_shares_are_the_rows_that_one_process_finds(spark: SparkSession, query: Any) -> None:
    df = spark.createDataFrame(events()).repartition(3, "k").sortWithinPartitions("k")
    expected = in_process(query, df.toArrow())
    found = recognize(df, query, type="type", time="t", positions=True, share=3)
    assert found.rdd.getNumPartitions() == 3
    assert in_any_order(found.toArrow().to_pylist()) == in_any_order(expected)
    bare = recognize(df, query, type="type", time="t", share=2)
    assert in_any_order(bare.toArrow().to_pylist()) == in_any_order(without_positions(expected))


def test_every_task_has_as_much_to_enumerate(spark: SparkSession) -> None:
    table = pa.table({"type": ["A"] * 400 + ["B"], "t": range(401)})
    query = "SELECT * WHERE A ; A ; B"
    found = recognize(spark.createDataFrame(table), query, type="type", time="t", share=7)
    assert rows_by_task(found) == [400 * 399 // 2 // 7] * 7


# ------------------------------------------------------------------------------------- who decides


def shares_of(
    spark: SparkSession, text: str, *, share: int | None = None, partitions: int | None = None
) -> int | None:
    layout = layout_of_schema(spark.createDataFrame(events(1)).schema, TIMED)
    return number_of_shares(estero.query(text).plan(layout), spark, share=share, partitions=partitions)


def test_the_events_decide_unless_somebody_says(spark: SparkSession) -> None:
    text = "SELECT * WHERE A ; B"
    assert shares_of(spark, text) is None
    assert shares_of(spark, text, partitions=1) == 1
    assert shares_of(spark, text, partitions=11) == 11
    assert shares_of(spark, text, share=1, partitions=11) == 1
    assert shares_of(spark, f"{text} LIMIT 1") == 1
    assert shares_of(spark, f"{text} LIMIT 1", partitions=11) == 1
    assert shares_of(spark, f"{text} LIMIT 1", share=5) == 5


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize(
    ("query", "tasks"),
    [
        ("SELECT * WHERE A ; A ; B", 2),  # three million are to be expected
        ("SELECT * WHERE A ; A ; C", 1),  # there is no C
        ("SELECT * WHERE A ; B", 1),  # one for each A
    ],
)
def test_the_enumeration_is_shared_where_the_events_promise_a_long_one(
    spark: SparkSession, query: str, tasks: int, positions: bool
) -> None:
    table = pa.table({"type": ["B"] + ["A"] * 4_500, "t": range(4_501)})
    df = spark.createDataFrame(table)
    found = recognize(df, query, type="type", time="t", positions=positions)
    assert tasks <= MOST_SHARES
    assert found.rdd.getNumPartitions() == tasks
    assert found.count() == 0


def test_what_was_read_for_deciding_is_kept_as_long_as_the_answer(spark: SparkSession) -> None:
    df = spark.createDataFrame(events())
    plan = estero.query("SELECT * WHERE A ; B").plan(layout_of_schema(df.schema, TIMED))
    work = Work.of(df.schema, plan, positions=False)
    decided = distribute(df, work.plan, work.division, None, shares=None)
    assert decided.kept is not None
    kept = decided.kept
    assert kept.storageLevel.useMemory
    found = decided.rows.limit(1000)
    decided.release_with(found)
    assert found.count() > 0
    del found
    gc.collect()
    assert not kept.storageLevel.useMemory


def test_what_cannot_be_shared_is_refused_with_the_reason(spark: SparkSession) -> None:
    df = spark.createDataFrame(events())
    with pytest.raises(ValueError, match=r"^share is a whole number from 1 to 100,000, not 0$"):
        recognize(df, "SELECT * WHERE A ; B", type="type", time="t", share=0)
    text = "SELECT * WHERE A AS a ; B AS b FILTER a.k * b.k > 9 CONSUME BY ANY"
    with pytest.raises(QueryError) as caught:
        recognize(df, text, type="type", time="t", share=2)
    assert (
        "the enumeration of this query cannot be shared: filters after enumeration decide what CONSUME BY"
        in str(caught.value)
    )
    assert "leave out share, or CONSUME BY" in str(caught.value)
    assert recognize(df, text, type="type", time="t", share=1).count() > 0


def test_a_stream_is_not_shared(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(
        ValueError, match=r"^share is for batch DataFrames; on a stream, partitions says how many tasks share"
    ):
        recognize(stream, "SELECT * WHERE Event ; Event", time="timestamp", share=2)


def test_tasks_have_all_relevant_events_and_no_other(spark: SparkSession) -> None:
    df = spark.createDataFrame(events())
    plan = estero.query("SELECT * WHERE A ; B").plan(layout_of_schema(df.schema, TIMED))
    rows = distribute(df, plan, Work.of(df.schema, plan, positions=False).division, None, shares=3).rows
    found = [[(row["__share"], row["__time"]) for row in part] for part in rows.rdd.glom().collect()]
    relevant = [row["t"] for row in events().to_pylist() if row["type"] != "C"]
    assert sorted(found) == [[(number, time) for time in relevant] for number in range(3)]
