"""Sets of rules in the bucket of a stream, without Spark: rows are those of one process, cut anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.answers.rule_rows import rule_schema
from estero.classify.column_names import BITS, KEYS, POSITION, RELEVANT, TIME, is_working, payload_name
from estero.events.sources import Source, open_source
from estero.language.tree.schema import EventLayout
from estero.plan.division import Division
from estero.recognize.rules import dispatch
from estero.recognize.rules.passes import EventColumns, Pass, dispatched_passes
from estero.spark.streams.bucket import FORMAT, Duty, Held, Turn
from estero.spark.streams.kept import KEPT
from estero.spark.streams.packing import blob_of
from estero.spark.streams.rules import RulesWork, readings_of
from spark.frames import in_any_order
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
)
EVENTS = st.lists(
    st.tuples(st.sampled_from("ABCD"), st.integers(0, 2), st.integers(0, 1), st.integers(0, 3)), min_size=1
)
"""A kind, seconds since the event before, a key, and a number."""


class Bucket:
    """The bucket of one reading of some rules, between micro-batches of events in order."""

    def __init__(self, reading: Pass, source: Source) -> None:
        time = pa.int64()
        self.asked = reading.classification
        events = source.classified_schema(self.asked)
        division = Division(by_key=False, positions=True)
        self.work = RulesWork(reading, division, events, time, rule_schema(time), header="a header")
        self.held: Held | None = None
        self.watermark: int | None = None

    def rows(self, events: pa.Table) -> Iterator[Row]:
        """The rows of a micro-batch, and of what its watermark decides."""
        newest = events.column("t")[-1].as_py()
        packed = self.packed(events)
        header = json.dumps({"format": FORMAT, "query": "rules", "plan": "", "buckets": 1})
        duty = Duty(self.work, header, packed.schema, (TIME,), 1, SECOND, 0)
        turn = Turn(duty, self.held, self.watermark, newest)
        yield from (row for batch in turn.run([blob_of(packed)]) for row in batch.to_pylist())
        assert not turn.late
        self.held = turn.close()
        self.watermark = newest * 1000

    def packed(self, events: pa.Table) -> pa.RecordBatch:
        """All events as they come from Spark: positions are not known, and a column tells relevant ones."""
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
        columns[RELEVANT] = pa.array(wanted, pa.bool_())
        return pa.RecordBatch.from_pydict(columns)


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(POOL), min_size=1, max_size=6),
    EVENTS,
    st.lists(st.integers(1, 9), max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_rows_are_those_of_one_process_however_the_stream_is_cut(
    texts: list[str], drawn: list[tuple[str, int, int, int]], sizes: list[int], keeps: bool, dispatched: bool
) -> None:
    time, events = 0, []
    for kind, passed, key, number in drawn:
        time += passed
        events.append({"kind": kind, "t": time, "n": key, "x": number})
    table = pa.Table.from_pylist(events)
    rules = estero.rules({f"rule{number}": text for number, text in enumerate(texts)})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dispatch, "FEWEST", 1 if dispatched else 99)
        patched.setattr(KEPT, "_most", 64 if keeps else 0)
        rows = list(_in_turns(rules, table, sizes))
    right = rules.run(table, **LAYOUT, until=time) if "NOT" in str(texts) else rules.run(table, **LAYOUT)
    assert in_any_order(rows) == in_any_order(right.to_arrow().to_pylist())


def _in_turns(rules: estero.RuleSet, table: pa.Table, sizes: list[int]) -> Iterator[Row]:
    source = open_source(table, EventLayout.of(**LAYOUT))
    plans = rules.explain(table, **LAYOUT).plans
    columns = EventColumns(source.column_types, source.classified_schema)
    buckets = [
        Bucket(reading, source) for own in readings_of(plans) for reading in dispatched_passes(own, columns)
    ]
    first = 0
    for size in [*sizes, table.num_rows]:
        events = table.slice(first, size)
        first += size
        for bucket in buckets if events.num_rows else ():
            yield from bucket.rows(events)
