"""A key with most of the events: its ranges of time are read by many tasks, which find the same together."""

from __future__ import annotations

import gc
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

import estero
from estero.answers.answer import Answer
from estero.classify.column_names import KEYS, TIME
from estero.errors import DataError
from estero.language.tree.distances import EventWindow
from estero.language.tree.query import Consume, KeyBracket, QueryTree
from estero.language.tree.schema import EventLayout
from estero.plan.plan import Window
from estero.reference.queries import Event, evaluate_query
from estero.spark import count, recognize
from estero.spark.batch import ranges
from estero.spark.batch.batch import recognize_frame
from estero.spark.batch.distribute import Distributed, distribute
from estero.spark.batch.halo import MARKED
from estero.spark.batch.ranges import Cut, find_hot_keys
from estero.spark.work import Work, layout_of_schema
from laws.evaluators import planned
from spark.frames import answer_batches, in_any_order, without_positions
from strategies.full import full_queries
from strategies.patterns import TICK, from_table, queries, streams, to_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

HOW: dict[str, Any] = {"type": "type", "time": "t"}
AFTER = "SELECT a, b WHERE A AS a ; B AS b PARTITION BY [k]"
NEXT_TO = AFTER.replace(" ; ", " : ")


BY_KEY = (
    st.one_of(queries(), full_queries())
    .filter(lambda tree: tree.window is not None and not isinstance(tree.window, EventWindow))
    .map(
        lambda tree: replace(
            tree, partition_by=(KeyBracket(("k",)),), consume=Consume.NONE, limit=None, select=None
        )
    )
)
"""Queries that are cut where a key is hot."""


def skewed(number: int = 400, seed: int = 3) -> pa.Table:
    """Events of which 80 % have key 7, many at the time of the one before."""
    draw = random.Random(seed)
    time, rows = 0, []
    for place in range(number):
        time += draw.choice([0, 0, 0, 1, 1, 2, 9])
        key = 7 if draw.random() < 0.8 else draw.choice([None, *range(7)])
        rows.append({"type": draw.choice("AABBC"), "t": time, "k": key, "place": place})
    return pa.Table.from_pylist(rows)


def distributed(df: DataFrame, query: str, count: int, *, split_keys: bool = True) -> Distributed:
    """The rows as tasks receive them."""
    work = Work.of(
        df.schema,
        estero.query(query).plan(layout_of_schema(df.schema, EventLayout.of(**HOW))),
        positions=False,
    )
    return distribute(df, work.plan, work.division, count, split_keys=split_keys)


def in_memory(rows: DataFrame) -> bool:
    return rows.storageLevel.useMemory


# ----------------------------------------------------------------------------------------- equality


@pytest.mark.parametrize(
    ("query", "tasks"),
    [
        (f"{AFTER} WITHIN 5 [t]", 5),
        (f"{AFTER} WITHIN 150 [t]", 12),
        (f"{NEXT_TO} WITHIN 1 [t]", 12),
        ("SELECT a, b WHERE START(A AS a ; B AS b) PARTITION BY [k] WITHIN 60 [t]", 4),
        ("SELECT NEXT a, b WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 9 [t]", 4),
        ("SELECT a, b WHERE A AS a ; B AS b FILTER a.k = b.k AND a.place < b.place WITHIN 20 [t]", 4),
    ],
)
def test_a_key_in_ranges_finds_what_a_whole_key_finds(spark: SparkSession, query: str, tasks: int) -> None:
    df = spark.createDataFrame(skewed()).repartition(3, "place").sortWithinPartitions("place")
    expected = estero.query(query).run(df.toArrow(), **HOW).to_arrow().to_pylist()
    found = recognize(df, query, **HOW, partitions=tasks).toArrow().to_pylist()
    assert in_any_order(found) == in_any_order(without_positions(expected))
    assert count(df, query, **HOW, partitions=tasks) == len(expected)


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BY_KEY, streams(min_size=6, max_size=9), st.sampled_from([3, 9]))
def test_any_query_finds_what_the_reference_says(
    spark: SparkSession, tree: QueryTree, stream: list[Event], tasks: int
) -> None:
    events = [
        replace(event, attributes={**event.attributes, "k": 1 if n % 5 else 2})
        for n, event in enumerate(stream)
    ]
    table = to_table(events)
    run = planned(tree, table)
    df = spark.createDataFrame(table)
    found = answer_batches(recognize_frame(df, run.plan, partitions=tasks), run.plan, df, positions=False)
    rows = [row for batch in found for row in batch.to_pylist()]
    assert in_any_order(rows) == in_any_order(without_positions(Answer(run).to_arrow().to_pylist()))
    assert len(rows) == sum(map(len, evaluate_query(tree, from_table(table), tick=TICK).values()))


# -------------------------------------------------------------------------------------------- tasks


@pytest.mark.parametrize("query", [f"{AFTER} WITHIN 5 [t]", f"{NEXT_TO} WITHIN 5 [t]"])
def test_no_task_has_much_more_than_its_share(spark: SparkSession, query: str) -> None:
    df = spark.createDataFrame(skewed(2000))

    def most(rows: DataFrame) -> int:
        sizes = rows.groupBy(F.spark_partition_id()).count().collect()
        return max(int(row["count"]) for row in sizes)

    whole, cut = (distributed(df, query, 8, split_keys=split).rows for split in (False, True))
    relevant = whole.count()
    assert most(whole) > 0.8 * relevant
    assert most(cut) < 1.5 * relevant / 8
    own = cut.withColumn("task", F.spark_partition_id()).where(F.col(MARKED) >= 0)
    assert own.count() == relevant
    assert cut.count() < 1.2 * relevant
    assert own.groupBy(*KEYS).agg(F.countDistinct("task").alias("tasks")).where("tasks > 1").count() == 1


def test_a_hot_key_is_cut_at_its_own_quantiles(spark: SparkSession) -> None:
    rows = [(7, n) for n in range(100)] + [(k, 1000 + k) for k in range(25)]
    df = spark.createDataFrame(rows, f"{KEYS[0]} bigint, {TIME} bigint").withColumn(KEYS[1], F.lit(-3))
    window = Window(5)
    (found,) = find_hot_keys(df, window, places=False, count=5).hot
    assert found == Cut((20, 40, 60, 80), key=(7, -3))
    (counted,) = find_hot_keys(df, window, places=True, count=5).hot
    assert counted.first == (0, 20, 40, 60, 80)


def test_even_keys_and_few_events_are_left_whole(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = spark.createDataFrame([(n % 6, n) for n in range(120)], f"{KEYS[0]} bigint, {TIME} bigint")
    df = df.withColumn(KEYS[1], F.lit(0))
    short = Window(5)
    assert find_hot_keys(df, short, places=False, count=4).hot == ()
    hot = df.withColumn(KEYS[0], F.lit(1))
    assert find_hot_keys(hot, short, places=False, count=1).hot == ()
    assert find_hot_keys(hot, short, places=False, count=None).hot == ()
    monkeypatch.setattr(ranges, "SMALLEST_TASK", 10)
    assert find_hot_keys(hot, short, places=False, count=None).hot == (Cut((59,), key=(1, 0)),)
    assert find_hot_keys(hot, Window(60), places=False, count=None).hot == ()
    assert find_hot_keys(df.limit(0), short, places=False, count=4).hot == ()


@pytest.mark.parametrize(
    ("rest", "positions"), [("", False), ("WITHIN 5 [t] CONSUME BY PARTITION", False), ("WITHIN 5 [t]", True)]
)
def test_what_needs_whole_keys_gets_them(
    spark: SparkSession, rest: str, positions: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    df = spark.createDataFrame(skewed())
    recognize(df, f"{AFTER} {rest}", **HOW, positions=positions, partitions=8).explain()
    assert "__task" not in capsys.readouterr().out


def test_what_was_read_for_cutting_is_kept_as_long_as_the_answer(spark: SparkSession) -> None:
    df = spark.createDataFrame(skewed())
    rows = distributed(df, f"{AFTER} WITHIN 5 [t]", 8)
    assert rows.kept is not None
    kept = rows.kept
    assert in_memory(kept)
    found = rows.rows.where(F.col(MARKED) >= 0)
    rows.release_with(found)
    later = found.limit(1000)
    number = found.count()
    del found
    gc.collect()
    assert not in_memory(kept)
    assert later.count() == number


def test_a_time_that_is_missing_is_an_error_of_looking_for_keys(spark: SparkSession) -> None:
    df = spark.createDataFrame([("A", None, 1), ("B", 2, 1)], "type string, t bigint, k bigint")
    with pytest.raises(DataError, match=r"^the time of an event is NULL$"):
        recognize(df, f"{AFTER} WITHIN 5 [t]", **HOW, partitions=8)
