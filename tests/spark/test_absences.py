"""What did not happen, on Spark: jobs look for the last event, streams wait for the watermark."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import estero
from engines import SparkBatch, SparkStream
from estero.answers.answer import Answer
from estero.errors import DataError, QueryError
from estero.language.tree.pattern import ending
from estero.language.tree.query import Consume, QueryTree
from estero.reference.queries import Event, is_answer
from estero.spark import count, recognize, register
from laws.evaluators import by_end, planned
from spark.frames import in_any_order, without_positions
from spark.simulated import Simulation
from spark.test_turns import BUCKETS, SIZES, after_all, cut, in_stream_order, out_of_order, rows, some
from strategies.absences import absent_queries
from strategies.patterns import TICK, from_table, streams, to_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LAYOUT = {"type": "type", "time": "time", "time_unit": "s"}
QUERIES = (
    "SELECT * WHERE A ; NOT(B) FOR 3 [time] PARTITION BY [k]",
    "SELECT * WHERE A ; NOT(B) FOR 2 SECONDS",
    "SELECT * WHERE NOT(A) FOR 2 [time] ; A ; B PARTITION BY [k] WITHIN 6 [time]",
    "SELECT * WHERE A ; NOT(B) FOR 2 [time] ; C PARTITION BY [k] WITHIN 8 [time]",
    "SELECT LAST * WHERE A+ ; NOT(B) FOR 2 [time] PARTITION BY [k] WITHIN 6 [time]",
    "SELECT A, decided_time AS at WHERE A ; NOT(B) FOR 3 [time] FILTER decided_time % 2 = 0 PARTITION BY [k]",
)
AFTER_ALL = 10**6
_NOTHING: dict[str, Any] = {"n": None, "x": None, "s": None}


@some
@given(
    absent_queries(),
    streams(min_size=3, max_size=12),
    SIZES,
    st.integers(0, 6),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_streams_cut_anywhere_decide_what_the_reference_says(
    tree: QueryTree, events: list[Event], sizes: list[int], lateness: int, seed: int, own: bool
) -> None:
    tree = replace(tree, partition_by=(), select=None)
    table = to_table(out_of_order(events, lateness, seed))
    stream = Simulation(planned(tree, table), lateness=lateness, own=own, counted=True)
    found = [*stream.answers([*cut(table, sizes), after_all()])]
    positioned = from_table(to_table(in_stream_order(from_table(table))))
    assert is_answer(tree, positioned, by_end(found), tick=TICK, until=math.inf)
    assert stream.counts["late"] == 0


@some
@given(
    absent_queries(),
    streams(min_size=3, max_size=14),
    SIZES,
    st.integers(0, 6),
    st.integers(0, 2**32),
    BUCKETS,
)
def test_keys_in_buckets_decide_the_same(
    tree: QueryTree, events: list[Event], sizes: list[int], lateness: int, seed: int, buckets: int
) -> None:
    table = to_table(out_of_order(events, lateness, seed))
    run = planned(replace(tree, limit=None), table)
    assume(not run.plan.needs_positions and run.plan.consume is not Consume.ANY)
    stream = Simulation(run, buckets=buckets, lateness=lateness)
    known = replace(run, until=AFTER_ALL) if ending(tree.pattern) else run
    found = rows(stream.answers([*cut(table, sizes), after_all()]))
    assert in_any_order(found) == in_any_order(without_positions(Answer(known).to_arrow().to_pylist()))
    assert stream.counts["late"] == 0


def test_idle_keys_are_decided_when_the_whole_stream_has_passed() -> None:
    run = planned(estero.query("SELECT * WHERE A ; NOT(B) FOR 3 [time] PARTITION BY [k]").tree, to_table([]))
    stream = Simulation(run, buckets=7)

    def pushed(*events: tuple[str, int, int]) -> list[int]:
        table = to_table([Event(kind, {"time": time, "k": key}, time) for kind, time, key in events])
        found = rows(stream.answers([table]))
        return sorted(int(str(row["k"])) for row in found)

    assert pushed(*(("A", 10, key) for key in range(9)), ("B", 12, 4)) == []
    assert pushed(("C", 13, 100)) == []
    assert pushed(("Z", 14, 100)) == [0, 1, 2, 3, 5, 6, 7, 8]
    assert pushed(("Z", 99, 100)) == []


@pytest.mark.parametrize("query", QUERIES)
def test_killed_at_random_moments_it_gives_the_same_rows_once(query: str) -> None:
    """A micro-batch that a kill has broken off leaves nothing, and is done again from the state before."""
    happened = [
        (row["type"], {**_NOTHING, "time": row["time"], "k": row["k"]}) for row in _events().to_pylist()
    ]
    table = to_table([Event(kind, attributes, attributes["time"]) for kind, attributes in happened])
    killed = seed = 0
    run = planned(estero.query(query).tree, table)
    known = replace(run, until=AFTER_ALL) if run.plan.wait is not None else run
    wanted = in_any_order(without_positions(Answer(known).to_arrow().to_pylist()))
    while killed < 12:
        stream, draw, found, seed = Simulation(run), Random(seed), list[dict[str, object]](), seed + 1
        sizes = [draw.randint(1, 20) for _ in range(4)]
        for batch in (*cut(table, sizes), after_all()):
            for each in (batch, None):
                if draw.random() < 0.5:
                    broken = replace(stream, state=dict(stream.state), counts=dict(stream.counts))
                    next(broken.micro_batch(each), None)
                    killed += 1
                found += rows(stream.micro_batch(each))
        assert in_any_order(found) == wanted


def _events(size: int = 60) -> pa.Table:
    draw = np.random.default_rng(7)
    kinds = [*np.array(["A", "A", "B", "C"])[draw.integers(0, 4, size)].tolist(), "Z"]
    times = [*(np.arange(size) // 2).tolist(), size]
    keys = [*draw.integers(0, 3, size).tolist(), 9]
    return pa.table({"type": kinds, "time": pa.array(times, pa.int64()), "k": pa.array(keys, pa.int64())})


def _wanted(query: str, table: pa.Table, **known: object) -> list[dict[str, object]]:
    found = estero.query(query).run(table, **LAYOUT, **known)  # type: ignore[arg-type]
    return without_positions(found.to_arrow().to_pylist())


@pytest.mark.parametrize("query", QUERIES)
def test_a_job_decides_what_this_process_decides(spark: SparkSession, query: str) -> None:
    batch, table = SparkBatch(spark, 3), _events()
    wanted = _wanted(query, table)
    assert len(wanted) > 2
    assert in_any_order(batch.rows(query, table, LAYOUT)) == in_any_order(wanted)
    short = table.slice(0, 60)
    frame = batch.frame(short)
    assert count(frame, query, **LAYOUT) == len(_wanted(query, short))  # type: ignore[arg-type]
    if "decided_time" in wanted[0]:
        found = recognize(frame, query, until="end", **LAYOUT)  # type: ignore[arg-type]
        assert in_any_order(found.toArrow().to_pylist()) == in_any_order(_wanted(query, short, until="end"))
        with pytest.raises(DataError, match="until is before the last event"):
            recognize(frame, query, until=28, **LAYOUT)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("query", [QUERIES[2], QUERIES[5]])
def test_a_stream_gives_what_is_decided(spark: SparkSession, tmp_path: Path, query: str) -> None:
    """All queries are cut and killed without Spark above."""
    assert in_any_order(SparkStream(spark, tmp_path).rows(query, _events(), LAYOUT)) == in_any_order(
        _wanted(query, _events())
    )


def test_a_table_function_is_told_what_is_known(spark: SparkSession) -> None:
    SparkBatch(spark, 2).frame(_events()).createOrReplaceTempView("happened")
    register(spark)
    query = QUERIES[0]
    asked = f"SELECT * FROM recognize(TABLE(happened), '{query}', type => 'type', time_unit => 's'"
    found = spark.sql(f"{asked}, until => 'end')").toArrow().to_pylist()
    assert in_any_order(found) == in_any_order(_wanted(query, _events(), until="end"))
    with pytest.raises(Exception, match="a table function sees only some"):
        spark.sql(f"{asked})").collect()


def test_it_needs_a_time(spark: SparkSession) -> None:
    frame = SparkBatch(spark, 2).frame(_events())
    with pytest.raises(QueryError, match="a duration needs a time column"):
        recognize(frame, "SELECT * WHERE A ; NOT(B) FOR 2 SECONDS", type="type")
