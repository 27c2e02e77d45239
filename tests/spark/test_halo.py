"""One global order in many tasks: ranges of time with a halo find what one task finds, each answer once."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

import estero
from estero.classify.column_names import POSITION, TIME
from estero.errors import DataError
from estero.language.tree.query import Consume, QueryTree
from estero.language.tree.schema import EventLayout
from estero.plan.division import Division
from estero.plan.plan import Window
from estero.reference.queries import Event
from estero.spark import recognize
from estero.spark.batch import ranges
from estero.spark.batch.halo import MARKED, after_halo
from estero.spark.batch.ranges import Cut, Ranges, find_ranges
from estero.spark.batch.tasks import in_ranges
from estero.spark.frames import laid_out
from estero.spark.work import layout_of_schema
from spark.frames import as_in_process, as_the_reference_says, in_any_order, without_positions
from strategies.full import full_queries
from strategies.patterns import queries, streams
from strategies.steps import stepped_queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

few = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""A query on Spark takes about a second, however small the stream."""

AFTER, NEXT_TO = "SELECT a, b WHERE A AS a ; B AS b", "SELECT a, b WHERE A AS a : B AS b"
TASKS = [1, 2, 7]


def in_one_order(tree: QueryTree) -> QueryTree:
    return replace(tree, partition_by=(), consume=Consume.NONE)


ANY = st.one_of(queries(), full_queries(), stepped_queries())
WINDOWED = ANY.filter(lambda tree: tree.window is not None).map(in_one_order)


def events(number: int = 240, seed: int = 1) -> pa.Table:
    """Events of which many have the time of the one before, with silent stretches between."""
    draw = random.Random(seed)
    time, rows = 0, []
    for place in range(number):
        time += draw.choice([0, 0, 0, 1, 1, 2, 9])
        rows.append({"type": draw.choice("AABBC"), "t": time, "k": place})
    return pa.Table.from_pylist(rows)


def frame(spark: SparkSession, *rows: tuple[str, int | None]) -> DataFrame:
    return spark.createDataFrame(list(rows), "type string, t bigint")


@pytest.fixture(scope="module")
def scattered(spark: SparkSession) -> tuple[DataFrame, pa.Table]:
    """Events that several tasks have in no order of time, and as they arrive."""
    df = spark.createDataFrame(events()).repartition(3, "k").sortWithinPartitions("k")
    return df, df.toArrow()


def in_process(query: str, table: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = estero.query(query).run(table, type="type", time="t").to_arrow().to_pylist()
    return found


# ----------------------------------------------------------------------------------------- equality


@pytest.mark.slow
@few
@given(WINDOWED, streams(min_size=5, max_size=9), st.sampled_from(TASKS), st.integers(0, 2**32))
def test_any_number_of_ranges_finds_what_the_reference_says(
    spark: SparkSession, tree: QueryTree, stream: list[Event], tasks: int, seed: int
) -> None:
    assert as_the_reference_says(spark, tree, stream, seed, partitions=tasks)


@pytest.mark.slow
@few
@given(WINDOWED, streams(min_size=5, max_size=9), st.sampled_from(TASKS))
def test_without_positions_the_same_rows_are_found_in_ranges(
    spark: SparkSession, tree: QueryTree, stream: list[Event], tasks: int
) -> None:
    assert as_in_process(spark, replace(tree, limit=None), stream, partitions=tasks)


@pytest.mark.parametrize(("tasks", "positions"), [(2, False), (7, True)])
@pytest.mark.parametrize(
    "query",
    [
        f"{AFTER} WITHIN 5 [t]",
        f"{AFTER} WITHIN 1 [t]",
        f"{AFTER} WITHIN 150 [t]",
        f"{AFTER} WITHIN 6 EVENTS",
        f"{AFTER} WITHIN 90 EVENTS",
        f"{NEXT_TO} WITHIN 3 [t]",
        f"{NEXT_TO} WITHIN 1 EVENTS",
        "SELECT a, b WHERE START(A AS a ; B AS b) WITHIN 40 EVENTS",
        "SELECT NEXT a, b WHERE A AS a ; B AS b WITHIN 9 [t]",
        "SELECT a, b WHERE A AS a ;[<= 3 [t], NOT C] B AS b WITHIN 9 [t]",
        "SELECT a, b WHERE A AS a ;[2 EVENTS .. 5 EVENTS] B+[<= 2 [t]] AS b WITHIN 12 EVENTS",
    ],
)
def test_ties_and_wide_halos(
    scattered: tuple[DataFrame, pa.Table], query: str, tasks: int, *, positions: bool
) -> None:
    df, arrived = scattered
    expected = in_process(query, arrived)
    found = recognize(df, query, type="type", time="t", positions=positions, partitions=tasks)
    rows = expected if positions else without_positions(expected)
    assert in_any_order(found.toArrow().to_pylist()) == in_any_order(rows)


def test_events_of_joined_queries_are_cut_too(spark: SparkSession) -> None:
    query = estero.conjunctive("Q(x, y) <- A(k: x), B(k: y) WITHIN 9 EVENTS")
    table = events(60)
    expected = query.run(table, type="type", time="t").to_arrow().to_pylist()
    df = spark.createDataFrame(table)
    found = recognize(df, query, type="type", time="t", positions=True, partitions=5)
    assert found.rdd.getNumPartitions() == 5
    assert in_any_order(found.toArrow().to_pylist()) == in_any_order(expected)


def test_times_that_are_instants_and_an_order_of_ties(spark: SparkSession) -> None:
    query = f"{AFTER} WITHIN 4 SECONDS"
    table = events(90)
    ticks = [each * 1_000_000 for each in table.column("t").to_pylist()]
    instants = pa.array(ticks, pa.timestamp("us", "UTC"))
    table = table.set_column(1, "t", instants)
    how: dict[str, Any] = {"type": "type", "time": "t", "order": ["k"]}
    expected = estero.query(query).run(table, **how).to_arrow().to_pylist()
    shuffled = spark.createDataFrame(table).repartition(4, "type")
    found = recognize(shuffled, query, **how, positions=True, partitions=5)
    assert in_any_order(found.toArrow().to_pylist()) == in_any_order(expected)


# ------------------------------------------------------------------------------------------- ranges


@pytest.mark.parametrize("window", [Window(5), Window(30, in_positions=True)])
def test_a_range_has_its_events_and_the_window_before_them(spark: SparkSession, window: Window) -> None:
    table = events(700)
    df = spark.createDataFrame(table).repartition(3)
    layout = layout_of_schema(df.schema, EventLayout.of(type="type", time="t"))
    classification = estero.query("SELECT * WHERE A ; B ; C").plan(layout).classification
    laid = laid_out(df, classification, every=True)
    found = find_ranges(laid.rows, places=True, count=7)
    cut = in_ranges(laid, Division(by_key=False, positions=True, cut=True), found, window)
    rows = cut.withColumn("number", F.spark_partition_id()).collect()
    own = {each: [row for row in rows if row.number == each and row[MARKED] >= 0] for each in range(7)}
    assert sorted(row[POSITION] for each in own.values() for row in each) == list(range(700))
    assert max(map(len, own.values())) < 1.5 * 100
    measured = POSITION if window.in_positions else TIME
    for number, mine in own.items():
        first = min(row[POSITION] for row in mine)
        reached = min(row[measured] for row in mine) - window.length
        before = [row for each in own.values() for row in each if row[POSITION] < first]
        expected = sorted(row[POSITION] for row in before if row[measured] >= reached)
        halo = [row for row in rows if row.number == number and row[MARKED] < 0]
        assert sorted(row[POSITION] for row in halo) == expected


def test_many_events_of_one_time_are_one_range(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(5,)] * 90 + [(6,)] * 5 + [(2**62,)] * 5, f"{TIME} bigint")
    assert find_ranges(rows, places=True, count=40) == Ranges((Cut((6, 2**62), (0, 90, 95)),))
    assert find_ranges(rows, places=False, count=40) == Ranges((Cut((6, 2**62)),))
    assert find_ranges(rows.limit(0), places=True, count=40).count == 1


def test_a_halo_ends_in_any_batch_and_has_its_bits_back() -> None:
    batch = pa.RecordBatch.from_pydict({TIME: [1, 2, 3, 4, 5], MARKED: [-1, -6, 5, 0, 2**62]})
    for cut in range(6):
        found = list(after_halo(iter([batch.slice(0, cut), batch.slice(cut)])))
        for own, times, bits in [(False, [1, 2], [0, 5]), (True, [3, 4, 5], [5, 0, 2**62])]:
            rows = pa.Table.from_batches([each.rows for each in found if each.own is own])
            assert rows.to_pydict() == {TIME: times, MARKED: bits}
    with pytest.raises(RuntimeError, match="events of a halo come after those of the range"):
        list(after_halo(iter([batch, batch])))
    with pytest.raises(RuntimeError, match="events of a halo come after those of the range"):
        list(after_halo(iter([batch.slice(1, 2).take(pa.array([1, 0]))])))


def test_few_events_are_one_range_unless_more_are_asked_for(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    df, query = spark.createDataFrame(events()), f"{AFTER} WITHIN 5 [t]"
    found = recognize(df, query, type="type", time="t")
    assert found.rdd.getNumPartitions() == 1
    monkeypatch.setattr(ranges, "SMALLEST_TASK", 90)
    cut = recognize(df, query, type="type", time="t")
    assert cut.rdd.getNumPartitions() == 2
    assert in_any_order(cut.toArrow().to_pylist()) == in_any_order(found.toArrow().to_pylist())


def test_no_task_sees_all_events(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    df = spark.createDataFrame(events())
    for query in (f"{AFTER} WITHIN 5 [t]", f"{NEXT_TO} WITHIN 5 EVENTS"):
        for positions in (False, True):
            recognize(df, query, type="type", time="t", positions=positions, partitions=3).explain()
            plan = capsys.readouterr().out
            assert "SinglePartition" not in plan
            assert "MapInArrow" in plan


@pytest.mark.parametrize("rest", [" LIMIT 2", " WITHIN 5 [t] CONSUME BY ANY"])
def test_what_needs_one_order_is_one_task(
    spark: SparkSession, rest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = events(60)
    found = recognize(spark.createDataFrame(table), AFTER + rest, type="type", time="t", partitions=3)
    assert found.rdd.getNumPartitions() == 1
    found.explain()
    assert "SinglePartition" in capsys.readouterr().out
    expected = without_positions(in_process(AFTER + rest, table))
    assert in_any_order(found.toArrow().to_pylist()) == in_any_order(expected)


def test_without_a_time_nothing_is_cut(spark: SparkSession) -> None:
    df = frame(spark, ("A", 1), ("B", 2), ("B", 3))
    found = recognize(df, f"{AFTER} WITHIN 1 EVENTS", type="type", positions=True, partitions=3)
    assert [(row.start, row.end) for row in found.collect()] == [(0, 1)]
    assert found.rdd.getNumPartitions() == 3  # each has all events: they share the enumeration


def test_no_events_have_no_ranges(spark: SparkSession) -> None:
    query = f"{AFTER} WITHIN 5 [t]"
    for positions in (False, True):
        for df in (frame(spark), frame(spark, ("C", 1))):
            found = recognize(df, query, type="type", time="t", positions=positions, partitions=4)
            assert found.count() == 0


def test_a_relevant_event_without_a_time_is_an_error_of_cutting(spark: SparkSession) -> None:
    df = frame(spark, ("A", 1), ("C", None), ("B", 2))
    query = f"{AFTER} WITHIN 5 [t]"
    assert recognize(df, query, type="type", time="t", partitions=2).count() == 1
    wrong = df.union(frame(spark, ("A", None)))
    with pytest.raises(DataError, match=r"^the time of an event is NULL$"):
        recognize(wrong, query, type="type", time="t", partitions=2)
