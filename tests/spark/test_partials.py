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

import estero
from estero.answers.answer import Answer
from estero.errors import QueryError
from estero.language.tree.query import Consume, QueryTree
from estero.plan.levels import PartialsPlan, partials_plan
from estero.recognize.in_process import InProcessRun
from estero.reference.queries import Event
from estero.spark import explain, recognize
from laws.evaluators import planned
from partials_strategies import queries_with_levels
from recognize.test_levels import sequences
from spark.simulated import Simulation
from spark.test_turns import BUCKETS, SIZES, after_all, cut, out_of_order, some
from strategies import streams, to_table

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
    *(("basket", 6 * user + 31, user) for user in range(1, 30, 2)),
    *(("pay", 6 * user + 50, user) for user in range(0, 30, 3)),
    ("other", 700, 99),
]
BOUGHT = "SELECT * WHERE visit ; basket ; pay PARTITION BY [k] WITHIN 10 MINUTES"
CALLED = "SELECT * WHERE visit ; basket ; NOT(pay) FOR 30 SECONDS ; other PARTITION BY [k] WITHIN 5 MINUTES"
BY_PLACE = "SELECT basket, pay WHERE basket ; pay WITHIN 2 EVENTS"
OF_KEYS_BY_PLACE = "SELECT * WHERE visit ; basket ; pay PARTITION BY [k] WITHIN 25 EVENTS"
UNKEYED = "SELECT * WHERE visit AS x ; basket AS y FILTER x.k = y.k WITHIN 40 SECONDS"
HOW: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s"}


def shop() -> pa.Table:
    in_order = sorted(SHOP, key=itemgetter(1))
    return pa.Table.from_pylist([dict(zip(("type", "time", "k"), each, strict=True)) for each in in_order])


def here(query: str, *, later: int | None = None) -> Counter[Row]:
    """What this process finds, also where one more event comes `later`."""
    table = shop() if later is None else pa.concat_tables([shop(), after(later)])
    answer = estero.query(query).run(table, **HOW)
    whole = told(answer.to_arrow().to_pylist(), complete=True)
    return whole + told(answer.partials().to_arrow().to_pylist(), complete=False)


def after(time: int) -> pa.Table:
    return pa.table({"type": ["other"], "time": [time], "k": [7]})


@pytest.mark.parametrize("query", [BOUGHT, CALLED, BY_PLACE, OF_KEYS_BY_PLACE, UNKEYED])
def test_a_batch_gives_both_kinds_of_rows(spark: SparkSession, query: str) -> None:
    frame = spark.createDataFrame(shop().to_pandas().sample(frac=1, random_state=2)).repartition(3)
    rows = recognize(frame, query, **HOW, partials=True).collect()
    wanted = here(query)
    assert {each[0] for each in wanted} == ({False} if query is CALLED else {False, True})
    assert told([row.asDict(recursive=True) for row in rows]) == wanted


def test_until_says_which_windows_of_a_batch_have_passed(spark: SparkSession) -> None:
    table = shop().filter(pa.compute.less(shop()["time"], 400))
    frame = spark.createDataFrame(table.to_pandas())
    assert recognize(frame, BOUGHT, **HOW, partials=True).where("NOT complete").count() == 0
    known = recognize(frame, BOUGHT, **HOW, partials=True, until="end").where("NOT complete").count()
    assert known == estero.query(BOUGHT).run(table, **HOW, until="end").partials().count() == 25


def test_positions_are_shown_where_they_are_asked_for(spark: SparkSession) -> None:
    frame = spark.createDataFrame(shop().to_pandas())
    rows = recognize(frame, BOUGHT, **HOW, partials=True, positions=True)
    assert rows.columns[:2] == ["start", "end"]
    assert rows.columns[-3:] == ["steps", "expired_time", "complete"]
    partials = estero.query(BOUGHT).run(shop(), **HOW).partials().to_arrow()
    starts = {row["start"] for row in rows.where("NOT complete").collect()}
    assert starts == set(partials["start"].to_pylist())


def test_rows_of_events_are_those_of_both(spark: SparkSession) -> None:
    frame = spark.createDataFrame(shop().to_pandas())
    rows = recognize(frame, BOUGHT, **HOW, partials=True, rows="events").collect()
    whole = recognize(frame, BOUGHT, **HOW, partials=True).collect()
    assert whole
    assert len(rows) == sum(len(row[name]) for row in whole for name in ("visit", "basket", "pay"))
    assert len({row["match"] for row in rows}) == len(whole)


@pytest.mark.parametrize("query", [BOUGHT, CALLED])
def test_a_stream_gives_each_row_once(spark: SparkSession, tmp_path: Path, query: str) -> None:
    """Three files in three micro-batches, then one that moves the watermark."""
    table = shop()
    for number, (first, size) in enumerate([(0, 20), (20, 21), (41, 100)]):
        _as_file(table.slice(first, size), tmp_path / "events", number)
    _as_file(after(100_000), tmp_path / "events", 9)
    events = spark.readStream.schema("type string, time bigint, k bigint").option("maxFilesPerTrigger", 1)
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
    frame = spark.createDataFrame(shop().to_pandas())
    assert "tasks share the partition keys" in str(explain(frame, BOUGHT, **HOW, partials=True))
    said = str(explain(frame, UNKEYED, **HOW, partials=True))
    assert "one ordered task, because partial matches are divided by the keys of PARTITION BY alone" in said
    assert "one ordered task" not in str(explain(frame, UNKEYED, **HOW))


def test_what_does_not_go_with_partial_matches(spark: SparkSession) -> None:
    frame = spark.createDataFrame(shop().to_pandas())
    with pytest.raises(QueryError, match="window"):
        recognize(frame, "SELECT * WHERE visit ; pay", **HOW, partials=True)
    with pytest.raises(QueryError, match="sequence"):
        recognize(frame, "SELECT * WHERE visit WITHIN 1 HOUR", **HOW, partials=True)
    with pytest.raises(ValueError, match="share and partials"):
        recognize(frame, BOUGHT, **HOW, partials=True, share=2)
