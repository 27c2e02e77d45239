"""Complex events and partial matches on Spark, batch and stream: those that this process finds."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

import estero
from estero.answers.answer import Answer
from estero.errors import QueryError
from estero.language.tree.query import Consume, QueryTree
from estero.plan.levels import PartialsPlan, partials_plan
from estero.recognize.in_process import InProcessRun
from estero.reference.queries import Event
from estero.spark import explain, recognize
from laws.evaluators import planned
from recognize.partial_matches.test_levels import sequences
from spark.simulated import Simulation
from spark.test_turns import BUCKETS, SIZES, after_all, cut, out_of_order, some
from strategies.partials import queries_with_levels
from strategies.patterns import streams, to_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Row = tuple[object, ...]
QUERIES = st.one_of(sequences(), queries_with_levels())
_PARTIAL = ("steps", "complete")


def plan_for_partials(run: InProcessRun) -> PartialsPlan:
    """As `recognize` makes it; raises `QueryError` where the query has no partial matches."""
    layout = replace(run.source.layout, schema=run.plan.classification.schema)
    return partials_plan(run.plan.tree, layout, as_written=True)


def told(rows: list[dict[str, Any]], *, complete: bool | None = None) -> Counter[Row]:
    """Each row's steps, whether it is complete, times, keys, and the attributes of marked events."""
    found: list[Row] = []
    for row in rows:
        kind = row["complete"] if complete is None else complete
        own = {name: value for name, value in row.items() if name not in {"start", "end", *_PARTIAL}}
        own.pop("expired_time" if kind else "decided_time", None)  # NULL, or no column
        found.append((kind, row.get("steps") if not kind else None, _shown(own)))
    return Counter(found)


def _shown(value: object) -> object:
    match value:
        case dict():
            return tuple((name, _shown(each)) for name, each in sorted(value.items()) if name != "position")
        case list():
            return tuple(map(_shown, value))
        case float():
            return repr(value)
        case _:
            return value


def expected(run: InProcessRun) -> Counter[Row]:
    """Of the whole stream, in this process: all complex events, and the partial matches."""
    answer = Answer(run)
    whole = told(answer.to_arrow().to_pylist(), complete=True)
    return whole + told(answer.partials().to_arrow().to_pylist(), complete=False)


@some
@given(QUERIES, streams(min_size=2, max_size=12), SIZES, st.integers(1, 6), st.integers(0, 2**32), BUCKETS)
def test_streams_in_buckets_give_those_of_the_whole_stream(
    tree: QueryTree, events: list[Event], sizes: list[int], lateness: int, seed: int, buckets: int
) -> None:
    table = to_table(out_of_order(events, lateness, seed))
    run = planned(replace(tree, select=None, limit=None, per=None), table)
    try:
        plan = plan_for_partials(run)
        counted = any(each.needs_positions for each in plan.plans) or run.plan.consume is Consume.ANY
        if counted:  # the simulation does not count events without a key
            run = planned(replace(run.plan.tree, partition_by=()), table)
            plan = plan_for_partials(run)
    except QueryError:  # what must be absent depends on a later part
        return
    stream = Simulation(run, buckets=buckets, lateness=lateness, partials=plan, counted=counted)
    batches = [*cut(table, sizes), after_all(), after_all(10**7)]  # the last one waits
    found = pa.Table.from_batches(list(stream.answers(batches)), stream.stages().duty.work.answer)
    wanted = expected(planned(run.plan.tree, pa.concat_tables([table, after_all()])))
    assert told(found.to_pylist()) == wanted, str(tree)
    assert stream.counts["late"] == 0


SHOP = [
    *(("visit", 6 * user, user) for user in range(30)),
    *(("visit", 6 * number + 3, None) for number in range(8)),
    *(("basket", 6 * user + 31, user) for user in range(1, 30, 2)),
    *(("pay", 6 * user + 50, user) for user in range(0, 30, 3)),
    ("other", 700, 99),
]
BOUGHT = "SELECT * WHERE visit ; basket ; pay PARTITION BY [k] WITHIN 10 MINUTES"
CALLED = "SELECT * WHERE visit ; basket ; NOT(pay) FOR 30 SECONDS ; other PARTITION BY [k] WITHIN 5 MINUTES"
BY_PLACE = "SELECT basket, pay WHERE basket ; pay WITHIN 2 EVENTS"
OF_KEYS_BY_PLACE = "SELECT * WHERE visit ; basket ; pay PARTITION BY [k] WITHIN 25 EVENTS"
UNKEYED = "SELECT * WHERE visit AS x ; basket AS y FILTER x.n < y.n WITHIN 40 SECONDS"
JOINED = "SELECT * WHERE visit AS x ; basket AS y ; pay AS z FILTER x.k = y.k AND y.k = z.n WITHIN 70 SECONDS"
"""Some visits have no key, and are partial matches all the same."""
HOW: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s"}


def shop() -> pa.Table:
    in_order = sorted(SHOP, key=itemgetter(1))
    rows = [dict(zip(("type", "time", "k", "n"), (*each, each[2]), strict=True)) for each in in_order]
    return pa.Table.from_pylist(rows)


def in_spark(spark: SparkSession, *, shuffled: bool = False) -> DataFrame:
    frame = spark.createDataFrame(shop())
    return frame.orderBy(F.xxhash64("time", "type")).repartition(3) if shuffled else frame


def here(query: str, *, later: int | None = None) -> Counter[Row]:
    """What this process finds, also where one more event comes `later`."""
    table = shop() if later is None else pa.concat_tables([shop(), after(later)])
    answer = estero.query(query).run(table, **HOW)
    whole = told(answer.to_arrow().to_pylist(), complete=True)
    return whole + told(answer.partials().to_arrow().to_pylist(), complete=False)


def after(time: int) -> pa.Table:
    return pa.table({"type": ["other"], "time": [time], "k": [7], "n": [7]})


@pytest.mark.parametrize("query", [BOUGHT, CALLED, BY_PLACE, OF_KEYS_BY_PLACE, UNKEYED, JOINED])
def test_a_batch_gives_both_kinds_of_rows(spark: SparkSession, query: str) -> None:
    frame = in_spark(spark, shuffled=True)
    rows = recognize(frame, query, **HOW, partials=True).collect()
    wanted = here(query)
    assert {each[0] for each in wanted} == ({False} if query is CALLED else {False, True})
    assert told([row.asDict(recursive=True) for row in rows]) == wanted


def test_until_says_which_windows_of_a_batch_have_passed(spark: SparkSession) -> None:
    table = shop().filter(pa.compute.less(shop()["time"], 400))
    frame = spark.createDataFrame(table)
    assert recognize(frame, BOUGHT, **HOW, partials=True).where("NOT complete").count() == 0
    known = recognize(frame, BOUGHT, **HOW, partials=True, until="end").where("NOT complete").count()
    assert known == estero.query(BOUGHT).run(table, **HOW, until="end").partials().count() == 25


def test_positions_are_shown_where_they_are_asked_for(spark: SparkSession) -> None:
    frame = in_spark(spark)
    rows = recognize(frame, BOUGHT, **HOW, partials=True, positions=True)
    assert rows.columns[:2] == ["start", "end"]
    assert rows.columns[-3:] == ["steps", "expired_time", "complete"]
    partials = estero.query(BOUGHT).run(shop(), **HOW).partials().to_arrow()
    starts = {row["start"] for row in rows.where("NOT complete").collect()}
    assert starts == set(partials["start"].to_pylist())


def test_rows_of_events_are_those_of_both(spark: SparkSession) -> None:
    frame = in_spark(spark)
    rows = recognize(frame, BOUGHT, **HOW, partials=True, rows="events").collect()
    whole = recognize(frame, BOUGHT, **HOW, partials=True).collect()
    assert whole
    assert len(rows) == sum(len(row[name]) for row in whole for name in ("visit", "basket", "pay"))
    assert len({row["match"] for row in rows}) == len(whole)


@pytest.mark.parametrize("query", [CALLED, JOINED])
def test_a_stream_gives_each_row_once(spark: SparkSession, tmp_path: Path, query: str) -> None:
    """Three files in three micro-batches, then one that moves the watermark.

    A sequence by key alone is among the streams that are killed (`test_streaming.py`).
    """
    table = shop()
    for number, (first, size) in enumerate([(0, 20), (20, 21), (41, 100)]):
        _as_file(table.slice(first, size), tmp_path / "events", number)
    _as_file(after(100_000), tmp_path / "events", 9)
    events = spark.readStream.schema("type string, time bigint, k bigint, n bigint").option(
        "maxFilesPerTrigger", 1
    )
    found = recognize(events.parquet(str(tmp_path / "events")), query, **HOW, partials=True, partitions=2)
    written = _run(found, tmp_path)
    rows = [row.asDict(recursive=True) for row in spark.read.parquet(str(written)).collect()]
    assert told(rows) == here(query, later=100_000)


def _as_file(table: pa.Table, folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    file = folder / f"{number}.parquet"
    pq.write_table(table, file)
    os.utime(file, (number + 1, number + 1))


def _run(found: DataFrame, folder: Path) -> Path:
    written = folder / "found"
    started = found.writeStream.format("parquet").option("checkpointLocation", str(folder / "state"))
    started.trigger(availableNow=True).start(str(written)).awaitTermination()
    return written


def test_killed_a_hundred_times_it_gives_the_same_rows_once() -> None:
    """A micro-batch that a kill has broken off leaves nothing, and is done again from the state before."""
    draw = Random(5)
    happened = [
        (draw.choice("AABBC"), {"time": time, "k": draw.randint(0, 4), "n": time, "x": None, "s": None})
        for time in sorted(draw.randint(0, 60) for _ in range(80))
    ]
    table = to_table([Event(kind, attributes, int(str(attributes["time"]))) for kind, attributes in happened])
    query = "SELECT * WHERE A ; B ; NOT(C) FOR 2 [time] PARTITION BY [k] WITHIN 6 [time]"
    run = planned(estero.query(query).tree, table)
    plan = plan_for_partials(run)
    wanted = expected(planned(run.plan.tree, pa.concat_tables([table, after_all()])))
    assert sum(wanted.values()) > 20
    killed = seed = 0
    while killed < 100:
        stream, found = Simulation(run, partials=plan), list[pa.RecordBatch]()
        draw, seed = Random(seed), seed + 1
        for batch in (*cut(table, [draw.randint(1, 20) for _ in range(4)]), after_all()):
            for each in (batch, None):
                if draw.random() < 0.5:
                    broken = replace(stream, state=dict(stream.state), counts=dict(stream.counts))
                    next(broken.micro_batch(each), None)
                    killed += 1
                found += stream.micro_batch(each)
        schema = stream.stages().duty.work.answer
        assert told(pa.Table.from_batches(found, schema).to_pylist()) == wanted


def test_explain_says_who_works_on_them(spark: SparkSession) -> None:
    frame = in_spark(spark)
    assert "each task processes some of the partition keys" in str(
        explain(frame, BOUGHT, **HOW, partials=True)
    )
    said = str(explain(frame, JOINED, **HOW, partials=True))
    assert (
        "each task processes some of the values of k or n, which all events of a partial match share" in said
    )
    said = str(explain(frame, UNKEYED, **HOW, partials=True))
    assert "one ordered task, because the events of the first 2 steps share no key: no equality" in said
    assert "one ordered task" not in str(explain(frame, UNKEYED, **HOW))


def test_what_shares_a_key_at_the_end_alone_is_not_divided(spark: SparkSession) -> None:
    """Any visit and basket are partial matches, and only what is paid tells them apart."""
    query = (
        "SELECT * WHERE visit AS x ; basket AS y ; pay AS z FILTER x.k = z.k AND y.k = z.k WITHIN 70 SECONDS"
    )
    frame = in_spark(spark)
    said = str(explain(frame, query, **HOW, partials=True))
    assert "one ordered task, because the events of the first 2 steps share no key" in said
    rows = recognize(frame, query, **HOW, partials=True).collect()
    assert told([row.asDict(recursive=True) for row in rows]) == here(query)


@pytest.mark.parametrize("kind", ["string", "double", "decimal(9,2)", "timestamp", "boolean"])
def test_keys_of_any_kind_divide_them_and_are_not_shown(spark: SparkSession, kind: str) -> None:
    """Partitions are as many as keys, and each event without one is where it may be."""
    key = {"timestamp": "timestamp_seconds(k)", "boolean": "k % 2 = 0"}.get(kind, f"CAST(k AS {kind})")
    frame = in_spark(spark)
    frame = frame.selectExpr("type", "time", f"{key} AS k", f"{key} AS n")
    query = JOINED.replace("*", "x[time], y[time], z[time]")
    found = recognize(frame, query, **HOW, partials=True, partitions=5)
    one = estero.query(query).run(frame.toArrow(), **HOW)
    with_positions = estero.query(query).run(shop(), **HOW, partials=True).schema.names
    assert {*found.columns} == {*with_positions} - {"start", "end"}
    wanted = told(one.to_arrow().to_pylist(), complete=True)
    wanted += told(one.partials().to_arrow().to_pylist(), complete=False)
    assert told([row.asDict(recursive=True) for row in found.collect()]) == wanted


def test_late_events_have_the_columns_that_came(spark: SparkSession, tmp_path: Path) -> None:
    _as_file(shop(), tmp_path / "events", 0)
    schema = "type string, time bigint, k bigint, n bigint"
    events = spark.readStream.schema(schema).parquet(str(tmp_path / "events"))
    found = recognize(events, JOINED, **HOW, partials=True, late_events=True)
    assert found.select("late.*").columns == ["type", "time", "k", "n"]


def test_what_does_not_go_with_partial_matches(spark: SparkSession) -> None:
    frame = in_spark(spark)
    with pytest.raises(QueryError, match="window"):
        recognize(frame, "SELECT * WHERE visit ; pay", **HOW, partials=True)
    with pytest.raises(QueryError, match="sequence"):
        recognize(frame, "SELECT * WHERE visit WITHIN 1 HOUR", **HOW, partials=True)
    with pytest.raises(ValueError, match="share and partials"):
        recognize(frame, BOUGHT, **HOW, partials=True, share=2)
