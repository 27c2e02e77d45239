"""Sets of rules in the buckets of a stream, without Spark: rows are those of one process, cut anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType, StructField, StructType

import estero
from estero.classify.column_names import BITS, KEYS, POSITION, RELEVANT, TIME, is_working, payload_name
from estero.events.sources import Source, open_source
from estero.language.tree.schema import EventLayout
from estero.plan.division import Division
from estero.plan.plan import Plan
from estero.recognize.rules.conditions import dispatch
from estero.recognize.rules.passes import EventColumns, Pass, dispatched_passes
from estero.spark.batch.rules import shown_of_rules
from estero.spark.streams.bucket import FORMAT, Duty, Held, Turn
from estero.spark.streams.history import History
from estero.spark.streams.kept import KEPT
from estero.spark.streams.packing import GUARD, Packing, group_numbers
from estero.spark.streams.rules import RulesWork, readings_of
from estero.spark.streams.stages import state_in
from spark.frames import in_any_order, with_events
from spark.simulated import SECOND

Row = dict[str, Any]
LAYOUT: dict[str, Any] = {"type": "kind", "time": "t", "time_unit": "s", "types": ["A", "B", "C"]}
POOL = (
    "SELECT * WHERE A AS a ; B AS b FILTER b[x > 1] PARTITION BY n WITHIN 5 SECONDS",
    "SELECT * WHERE A AS a ; B AS b FILTER b[x > 2] PARTITION BY n WITHIN 5 SECONDS",
    "SELECT MAX * WHERE A+ ; C AS c PARTITION BY n WITHIN 6 SECONDS",
    "SELECT * WHERE A AS a : B AS b PARTITION BY n",
    "SELECT * WHERE B AS b ; NOT(C) FOR 2 SECONDS PARTITION BY n",
    "SELECT * WHERE A AS a ; C AS c PARTITION BY n WITHIN 4 EVENTS",
    "SELECT NEXT * WHERE A AS a ; B AS b ; C AS c PARTITION BY n WITHIN 9 SECONDS",
    "SELECT a[x], 2 AS two WHERE A AS a ; C AS c FILTER c[x > 0] PARTITION BY n",
    "SELECT * WHERE A AS a ; C AS c FILTER c[x > 1] WITHIN 3 SECONDS",
    "SELECT * WHERE A AS a ; B AS b FILTER a.n = b.n WITHIN 8 SECONDS",
)
SCHEMA = StructType(
    [
        StructField("kind", StringType()),
        *(StructField(name, LongType()) for name in ("t", "n", "x", "id")),
    ]
)
EVENTS = st.lists(
    st.tuples(st.sampled_from("ABCD"), st.integers(0, 2), st.integers(0, 1), st.integers(0, 3)), min_size=1
)
"""A kind, seconds since the event before, a key, and a number."""


class Buckets:
    """The buckets of one reading of some rules, between micro-batches of events in order."""

    def __init__(self, reading: Pass, division: Division, source: Source, answer: pa.Schema) -> None:
        self.asked = reading.classification
        events = source.classified_schema(self.asked)
        self.work = RulesWork(reading, division, events, pa.int64(), answer, header="a header")
        self.held: dict[int, Held | None] = {}
        self.watermark: int | None = None

    def duty(self, packed: pa.Schema) -> Duty:
        """The duty of the buckets."""
        header = json.dumps({"format": FORMAT, "query": "rules", "plan": "", "buckets": 3})
        number = 1 if self.work.division.one_order else 3
        return Duty(self.work, header, packed, (TIME,), number, SECOND, 0)

    def past(self, events: pa.Table) -> Iterator[Row]:
        """The rows of past events, with whose states the buckets begin."""
        newest = events.column("t")[-1].as_py()
        crossing = self.crossing(events)
        duty = self.duty(crossing.schema)
        history = History(duty, tuple(group_numbers(duty.buckets)), newest)
        placed = pa.Table.from_batches(history.bucketed(iter([crossing])))
        ordered = placed.take(np.argsort(placed.column("__bucket").to_numpy(), kind="stable"))
        for batch in history.answers(iter(ordered.to_batches(max_chunksize=9))):
            yield from batch.to_pylist()
        for batch in history.states(iter(ordered.to_batches(max_chunksize=7))):
            frame = batch.to_pandas()
            self.held[frame["bucket"][0]] = state_in([frame])
        for bucket in history.groups:
            self.held.setdefault(bucket, Held(duty.header, closed=newest))

    def rows(self, events: pa.Table) -> Iterator[Row]:
        """The rows of a micro-batch, and of what its watermark decides."""
        newest = events.column("t")[-1].as_py()
        crossing = self.crossing(events)
        duty = self.duty(crossing.schema)
        packed = pa.Table.from_batches(Packing(duty.buckets, crossing.schema).packed([crossing], 0))
        for bucket in set(packed.column("bucket").to_pylist()) - {GUARD}:
            rows = packed.filter(pc.equal(packed.column("bucket"), bucket))
            turn = Turn(duty, self.held.get(bucket), self.watermark, newest)
            blobs = rows.column("events").drop_null().to_pylist()
            yield from (row for batch in turn.run(blobs) for row in batch.to_pylist())
            assert not turn.late
            self.held[bucket] = turn.close()
        self.watermark = newest * 1000

    def crossing(self, events: pa.Table) -> pa.RecordBatch:
        """Events as they come from Spark, relevant ones; where they are counted, all, and a column tells."""
        source = open_source(events, EventLayout.of(**LAYOUT))
        (batch,) = source.read(replace(self.asked, keep_all=True))
        names = batch.schema.names
        columns, words = {}, [batch.column(name).to_numpy() for name in names if name.startswith(BITS)]
        for name in names:
            column = batch.column(name)
            if is_working(name):
                columns[name] = column.view(pa.int64()) if name in KEYS else column
        for place, name in enumerate(name for name in names if not is_working(name)):
            columns[payload_name(place)] = batch.column(name)
        del columns[POSITION]
        wanted = np.any(np.array(words) != 0, axis=0) | self.asked.keep_all
        if not self.work.division.positions:
            return pa.RecordBatch.from_pydict(columns).filter(pa.array(wanted, pa.bool_()))
        columns[RELEVANT] = pa.array(wanted, pa.bool_())
        return pa.RecordBatch.from_pydict(columns)


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(POOL), min_size=1, max_size=6),
    EVENTS,
    st.lists(st.integers(1, 9), max_size=6),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_rows_are_those_of_one_process_however_the_stream_is_cut(
    texts: list[str],
    drawn: list[tuple[str, int, int, int]],
    sizes: list[int],
    keeps: bool,
    dispatched: bool,
    positions: bool,
    past: bool,
) -> None:
    time, events = 0, list[Row]()
    for kind, passed, key, number in drawn:
        time += passed
        events.append({"kind": kind, "t": time, "n": key, "x": number, "id": 7 * len(events)})
    table = pa.Table.from_pylist(events)
    rules = estero.rules({f"rule{number}": text for number, text in enumerate(texts)})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dispatch, "FEWEST", 1 if dispatched else 99)
        patched.setattr(KEPT, "_most", 64 if keeps else 0)
        rows = list(_in_turns(rules, table, sizes, positions=positions, past=past))
    right = rules.run(table, **LAYOUT, until=time) if "NOT" in str(texts) else rules.run(table, **LAYOUT)
    expected = right.to_arrow().to_pylist()
    if not positions:
        expected = [with_events(row, events, ("t", "id")) for row in expected]
    assert in_any_order(rows) == in_any_order(expected)


def _in_turns(
    rules: estero.RuleSet, table: pa.Table, sizes: list[int], *, positions: bool, past: bool
) -> Iterator[Row]:
    source = open_source(table, EventLayout.of(**LAYOUT))
    plans = dict(rules.explain(table, **LAYOUT).plans)
    layout = replace(source.layout, order=("id",))
    plans, answer = shown_of_rules(SCHEMA, plans, layout, positions=positions)
    columns = EventColumns(source.column_types, source.classified_schema)
    readings = [
        Buckets(reading, division, source, answer)
        for own, division in readings_of(plans, positions=positions)
        for reading in dispatched_passes(_by_shared_keys(own, division), columns)
    ]
    first = 0
    for size in [*sizes, table.num_rows]:
        events = table.slice(first, size)
        first += size
        for reading in readings if events.num_rows else ():
            yield from reading.past(events) if past and first == size else reading.rows(events)


def _by_shared_keys(plans: dict[str, Plan], division: Division) -> dict[str, Plan]:
    """The plans with the keys that their equalities give, as events are divided by them."""
    if not division.by_key:
        return plans
    keys = {
        name: tuple((key,) for key in dict.fromkeys(plan.shared.values())) for name, plan in plans.items()
    }
    return {
        name: replace(plan, classification=replace(plan.classification, keys=keys[name]))
        if plan.shared
        else plan
        for name, plan in plans.items()
    }
