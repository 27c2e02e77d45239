"""Conjunctive queries on Spark: the rows that the in-process engine finds."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import estero
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.language.tree.schema import EventLayout
from estero.plan.chains import ChainPlan
from estero.plan.joins import JoinPlan
from estero.plan.rules import plan_of
from estero.reference.queries import Event
from estero.spark import collect, recognize
from estero.spark.batch.batch import keyed, recognize_frame
from estero.spark.work import Work, layout_of_schema
from spark.frames import in_any_order, without_positions
from strategies.conjunctive import hierarchical_queries, streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

few = settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])

RANDOM = random.Random(7)
TABLE = pa.Table.from_pylist(
    [
        {
            "type": RANDOM.choice("TSR"),
            "ts": at,
            "k": RANDOM.choice([None, *range(6)]),
            "name": RANDOM.choice(["u", "ä", "w"]),
            "word": RANDOM.choice(["u", "ä", "w", None]),
            "x": float(RANDOM.randrange(4)),
        }
        for at in range(90)
    ]
)


@few
@given(hierarchical_queries(), streams(most=9))
def test_spark_finds_what_the_engine_finds(
    spark: SparkSession, query: ConjunctiveTree, events: list[Event]
) -> None:
    schema = pa.schema(
        [("type", pa.string()), ("at", pa.int64()), ("a", pa.int64()), ("b", pa.float64()), ("c", pa.int64())]
    )
    rows = [{"type": event.type, "at": n, **event.attributes} for n, event in enumerate(events)]
    table = pa.Table.from_pylist(rows, schema=schema)
    asked = estero.conjunctive(query)
    expected = asked.run(table, type="type", time="at", types=("T", "S", "R")).to_arrow().to_pylist()
    frame = spark.createDataFrame(table)
    found = recognize(frame, asked, type="type", time="at", positions=True, partitions=2)
    assert in_any_order(found.toArrow().to_pylist()) == in_any_order(expected)


@pytest.mark.parametrize(
    ("text", "parallel"),
    [
        ("Q(x, y) <- T(k: x), S(k: x, name: y), R(k: x, name: y) WITHIN 20 [ts]", True),
        ("Q(x, y) <- T(k: x), S(k: x, name: y), R(k: x, name: y) WITHIN 30 EVENTS", True),
        ("Q(x) <- T(k: x), S(x: x), R(k: x, name: 'ä') WITHIN 20 [ts]", True),
        ("Q(x, y) <- T(name: x, k: y), S(word: x) WITHIN 20 [ts]", True),
        ("Q(x) <- T(name: x), T(word: x) WITHIN 20 [ts]", False),
        ("Q(x, y) <- T(k: x), S(name: y) WITHIN 3 [ts]", False),
    ],
)
def test_tasks_share_the_values_that_all_atoms_have(
    spark: SparkSession, text: str, *, parallel: bool
) -> None:
    query = estero.conjunctive(text)
    frame = spark.createDataFrame(TABLE)
    plan = query.plan(layout_of_schema(frame.schema, EventLayout.of(type="type", time="ts")))
    assert isinstance(plan, JoinPlan)
    spread_frame, spread_plan = keyed(frame, plan)
    assert Work.of(spread_frame.schema, spread_plan, positions=False).division.by_key == parallel
    expected = query.run(TABLE, type="type", time="ts").to_arrow().to_pylist()
    assert expected
    found = recognize(frame, query, type="type", time="ts", partitions=3)
    assert in_any_order(found.toArrow().to_pylist()) == in_any_order(without_positions(expected))


@pytest.mark.parametrize(
    ("pattern", "parallel"),
    [
        ("T ALL S AS s ALL R AS r FILTER T.k = s.k AND r.k = s.k AND r.name = s.name AND s[x > 0]", True),
        (
            "T ALL S AS s ALL R AS r FILTER T.name = s.word AND r.name = s.word AND r.k = s.k AND T[k < 4]",
            True,
        ),
        ("T AS t ALL T AS s FILTER t.name = s.word", False),
    ],
)
@pytest.mark.parametrize("window", ["WITHIN 20 [ts]", "WITHIN 30 EVENTS LIMIT 2"])
def test_parts_of_all_that_equalities_join(
    spark: SparkSession, pattern: str, window: str, *, parallel: bool
) -> None:
    query = estero.query(f"SELECT * WHERE ({pattern}) {window}")
    frame = spark.createDataFrame(TABLE)
    plan = query.plan(layout_of_schema(frame.schema, EventLayout.of(type="type", time="ts")))
    assert isinstance(plan, JoinPlan)
    assert bool(plan.shared) == parallel
    expected = query.run(TABLE, type="type", time="ts").to_arrow().to_pylist()
    assert expected
    collected = collect(recognize(frame, query, type="type", time="ts", partitions=3))
    found = [row for batch in collected.batches() for row in batch.to_pylist()]
    if "LIMIT" in window:
        assert len(found) == len(expected)
    else:
        assert in_any_order(found) == in_any_order(without_positions(expected))


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("T AS a ; S AS b FILTER a.x < b.x PARTITION BY [name] WITHIN 20 [ts]", "keys"),
        ("T AS a ; S AS b FILTER a.k = b.k AND a.x < b.x WITHIN 30 EVENTS", "keys"),
        (
            "T AS a ; S AS b FILTER a.word != b.word AND a.x <= b.x PARTITION BY [k] CONSUME BY PARTITION",
            "keys",
        ),
        ("T AS a ; S AS b FILTER a.x < b.x AND a.word != b.word WITHIN 20 [ts]", "ranges"),
        ("T AS a ; S AS b FILTER a.x BETWEEN b.x - 1 AND b.x AND a.k + b.k > 4 WITHIN 20 [ts]", "ranges"),
        ("T AS a ; S AS b FILTER a.name != b.name AND a.x < b.x WITHIN 20 [ts] CONSUME BY ANY", "one task"),
        ("T AS a ; S AS b FILTER a.x < b.x PARTITION BY [name] CONSUME BY ANY", "one task"),
        ("T AS a ; S AS b FILTER a.k = b.k AND a.x < b.x CONSUME BY ANY", "one task"),
    ],
)
def test_neighbours_are_compared_by_keys_or_in_ranges(spark: SparkSession, text: str, how: str) -> None:
    query = estero.query(f"SELECT * WHERE {text}")
    frame = spark.createDataFrame(TABLE)
    plan = plan_of(
        query.tree, layout_of_schema(frame.schema, EventLayout.of(type="type", time="ts")), only="chain"
    )
    assert isinstance(plan, ChainPlan)
    spread_frame, spread_plan = keyed(frame, plan)
    work = Work.of(spread_frame.schema, spread_plan, positions=False)
    assert work.division.by_key == (how == "keys")
    assert work.division.cut == ("WITHIN" in text and "CONSUME" not in text)
    expected = query.run(TABLE, type="type", time="ts").to_arrow().to_pylist()
    assert expected
    found = recognize_frame(frame, plan, partitions=3).toArrow().to_pylist()
    assert in_any_order(found) == in_any_order(without_positions(expected))
