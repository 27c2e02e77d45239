"""Streams without Spark: the stages of a stream one after the other, with Spark's own objects for state.

The classification is DuckDB's, brought into the form in which rows come from Spark; each micro-batch goes
through the packing of two tasks, the turns of all buckets that Spark would call, and the unpacking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.state import GroupState
from pyspark.sql.types import StructType

from estero.answers.answer_schema import answer_schema, schema_with_partials
from estero.classify.column_names import KEYS, POSITION, RELEVANT, TIME, payload_name
from estero.events.sources import open_source
from estero.language.tree.schema import EventLayout
from estero.plan.division import Division
from estero.plan.levels import PartialsPlan
from estero.plan.plan import Plan
from estero.plan.together import together
from estero.recognize.in_process import InProcessRun
from estero.recognize.source_run import time_type
from estero.spark.streams.bucket import Duty, header_of
from estero.spark.streams.packing import GUARD, Packing
from estero.spark.streams.stages import COUNTS, Stages
from estero.spark.streams.ticks import Ticks
from estero.spark.work import Work

SECOND = Ticks(1_000_000_000)


@dataclass(slots=True)
class Simulation:
    """A stream of the query of `run`, with times in seconds.

    With `own`, Estero has made the watermark, `lateness` behind the greatest time; else it is the user's.
    With `partials` partial matches of the query are found, too, and with `ids` answers have their ids.
    `state` is what Spark holds: of each group its value and its timer.
    """

    run: InProcessRun
    buckets: int = 3
    lateness: int = 0
    own: bool = True
    counted: bool = False
    partials: PartialsPlan | None = None
    ids: bool = False
    number: int = 0
    state: dict[int, tuple[tuple[Any, ...], int]] = field(default_factory=dict)
    watermark: int = 0
    newest: int | None = None
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))

    def answers(self, batches: Sequence[pa.Table]) -> Iterator[pa.RecordBatch]:
        """The answers of micro-batches, and of one without data after each."""
        for batch in batches:
            yield from self.micro_batch(batch)
            yield from self.micro_batch(None)

    def micro_batch(self, table: pa.Table | None) -> Iterator[pa.RecordBatch]:
        """The answers of one micro-batch; then the watermark follows its times, of all events."""
        stages = self.stages()
        groups = {} if table is None else self.packed(stages, table)
        found = []
        timers = {group: timer for group, (_, timer) in self.state.items() if -1 < timer < self.watermark}
        for group in [*groups, *(timers.keys() - groups.keys())]:
            frames = [pd.DataFrame(groups[group])] if group in groups else []
            state = self.state_of(group, timed_out=group not in groups)
            with patch("pyspark.TaskContext.get", return_value=self):
                found += list(stages.turn()((group,), frames, state))
            self.keep(group, state)
        for row in (row for frame in found for row in frame.to_dict("records")):
            for name in COUNTS:
                self.counts[name] += int(row[name]) if pd.notna(row[name]) else 0
        blobs = [pa.RecordBatch.from_pandas(frame, schema=_BLOBS) for frame in found]
        yield from stages.unpack()(iter(blobs))
        self.number += 1
        if table is not None and table.num_rows:
            newest = max(table.column("time").to_pylist())
            self.newest = newest if self.newest is None else max(self.newest, newest)
            self.watermark = max(self.watermark, (self.newest - self.lateness) * 1000)

    def stages(self) -> Stages:
        """What workers do."""
        plan, source = self.plan, self.run.source
        events = source.classified_schema(plan.classification)
        time, positions = time_type(source), self.counted
        waits = plan.wait is not None
        answer = answer_schema(
            plan.shown, events, keys=plan.shown_keys, time=time, positions=positions, waits=waits
        )
        if self.partials is not None:
            answer = schema_with_partials(answer, timed=not plan.by_position)
        division = Division(by_key=plan.keyed, positions=self.counted)
        work = Work(plan, division, events, time, positions, answer, partials=self.partials)
        packed = self.crossing(pa.RecordBatch.from_pylist([], schema=events)).schema
        buckets = self.buckets if plan.keyed and not self.counted else 1
        header = header_of(work, packed, buckets)
        lateness = self.lateness if self.own else None
        duty = Duty(work, header, packed, (TIME,), buckets, SECOND, lateness)
        return Stages(duty, 2, ids=self.ids)

    def getLocalProperty(self, name: str) -> str:  # noqa: N802 (PySpark's name)
        """What a task knows of the stream: its id, and the number of the micro-batch."""
        return {"sql.streaming.queryId": "a stream", "streaming.sql.batchId": str(self.number)}[name]

    @property
    def plan(self) -> Plan:
        """The plan, and what is asked of events."""
        if self.partials is None:
            return self.run.plan
        asked = together([each.classification for each in self.partials.plans])
        return replace(self.partials.whole, classification=asked)

    def packed(self, stages: Stages, table: pa.Table) -> dict[int, list[dict[str, Any]]]:
        """Packed rows by group, the events of the table in two tasks."""
        rows = pa.Table.from_batches(map(self.crossing, self.classified(table)), stages.duty.packed)
        groups: dict[int, list[dict[str, Any]]] = {}
        half = rows.num_rows // 2
        packing = Packing(stages.duty.buckets, stages.duty.packed)
        for task, part in enumerate([rows.slice(0, half), rows.slice(half)]):
            for batch in packing.packed(part.to_batches(), task):
                for row in batch.to_pylist():
                    groups.setdefault(row["bucket"], []).insert(0, row)
        return groups

    def classified(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        source = open_source(table, EventLayout.of(type="type", time="time", time_unit="s", only_type="A"))
        asked = self.plan.classification
        yield from source.read(replace(asked, keep_all=True) if self.counted else asked)

    def crossing(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A classified batch as Spark's rows are: without positions, keys signed, the payload numbered."""
        columns: dict[str, pa.Array] = {}
        payload = 0
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name in KEYS:
                columns[name] = column.view(pa.int64())
            elif name.startswith("__") and name != POSITION:
                columns[name] = column
            elif name != POSITION:
                columns[payload_name(payload)] = column
                payload += 1
        if self.counted:
            words = [columns[name].to_numpy() for name in columns if name.startswith("__bits")]
            wanted = np.any(np.array(words) != 0, axis=0) | self.plan.classification.keep_all
            columns[RELEVANT] = pa.array(wanted, pa.bool_())
        return pa.RecordBatch.from_pydict(columns)

    def state_of(self, group: int, *, timed_out: bool) -> GroupState:
        """What Spark hands to a turn."""
        value, _ = self.state.get(group, (None, -1))
        there = value is not None
        row: Any = Row(*value) if value is not None else None
        properties = (timed_out, True, there, False, False, -1, b"", StructType())
        return GroupState(row, 0, self.watermark, "EventTimeTimeout", *properties)

    def keep(self, group: int, state: GroupState) -> None:
        """What Spark makes of a turn: it forgets the timer that was there."""
        if state.exists:
            self.state[group] = (state.get, state._timeout_timestamp)
        else:
            self.state.pop(group, None)

    @property
    def held(self) -> set[int]:
        """The groups that have state, but for the guard."""
        return set(self.state) - {GUARD}


_BLOBS = pa.schema([("answers", pa.binary()), ("late_events", pa.binary())])
