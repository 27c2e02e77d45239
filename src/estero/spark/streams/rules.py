"""The plans of a set of rules and a streaming DataFrame of events → their complex events, as one stream.

Rules with the same keys share a reading: events are classified, packed and brought to their bucket for all of
them at once. All readings share one stateful operator, in which each has its own buckets: those that share
its keys, or one that has all events in order. The state of a bucket is that of the recognitions of its groups
of rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from estero.answers.rule_metadata import NOTHING_SAID, RuleColumns
from estero.answers.rule_rows import common_rows
from estero.plan.division import Division, division_of
from estero.plan.identity import digest
from estero.plan.plan import Layout, Plan, Window
from estero.plan.together import reading_of
from estero.recognize.rules.passes import Pass, dispatched_passes
from estero.spark.batch.rules import event_columns, keyed_rules, shown_of_rules, widest_window
from estero.spark.failures import jobs
from estero.spark.frames import classified_schema, streamed
from estero.spark.streams.bucket import FORMAT
from estero.spark.streams.history import begun_from, with_state
from estero.spark.streams.kept import KEPT
from estero.spark.streams.packing import batch_of, blob_of
from estero.spark.streams.stages import Stages
from estero.spark.streams.streaming import BUCKETS, connected, duty_of, packed_events
from estero.spark.streams.watermark import clock_of
from estero.spark.work import shown_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from estero.events.streams.stream_layout import Lateness
    from estero.recognize.ended_sets import EndedSets
    from estero.recognize.open_runs import OpenRuns
    from estero.recognize.rules.group_recognition import GroupRecognition

_STATES: Final = pa.schema([("recognition", pa.binary())])
"""The state of a bucket: a snapshot of each group, in order."""


@dataclass(frozen=True, slots=True)
class RulesWork:
    """The work of a bucket for all rules of a reading; it travels to workers by pickle.

    `events` is the schema of the events classified for the `reading`, `common` the common columns, to which
    the metadata columns `said` are added, and `header` that of states.
    """

    reading: Pass
    division: Division
    events: pa.Schema
    time: pa.DataType | None
    common: pa.Schema
    said: RuleColumns = NOTHING_SAID
    header: str = ""

    steps = 0
    """Zero: rules have patterns of many lengths, so open runs are not counted by step."""

    @property
    def answer(self) -> pa.Schema:
        """The columns of answers."""
        return self.said.schema(self.common)

    @property
    def plans(self) -> list[Plan]:
        """The plans of the rules."""
        return [plan for group in self.reading.groups for plan in group.plans]

    @property
    def window(self) -> Window | None:
        """The longest window; None if a rule has none."""
        return widest_window(self.plans)

    @property
    def waits(self) -> bool:
        """Whether events wait for deadlines."""
        return any(plan.wait is not None for plan in self.plans)

    @property
    def decides_later(self) -> bool:
        """Whether some rows are decided later than at the end of their events."""
        return any(plan.decides_later or plan.wait is not None for plan in self.plans)

    def recognizing(self, *, snapshots: bool = True, state: bytes | None = None) -> RulesRecognition:
        """The recognition of all rules; with `state` it continues from a snapshot."""
        kept = None if state is None else KEPT.taken(state)
        if isinstance(kept, RulesRecognition) and kept.header == self.header:
            return kept
        return RulesRecognition(self, endless=snapshots, state=state)

    def shown(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of the common table in Spark's form."""
        return table


class RulesRecognition:
    """The recognitions of the groups of rules of one reading, as one; see `Recognition`."""

    def __init__(self, work: RulesWork, *, endless: bool, state: bytes | None) -> None:
        from estero.recognize.rules.group_recognition import GroupRecognition  # for workers only

        reading, places = work.reading, work.reading.places()
        states: list[bytes | None] = [None] * len(reading.groups)
        if state is not None:
            states = batch_of(state, _STATES).column(0).to_pylist()
        self.header = work.header
        self._common, self._said = work.common, work.said
        self._dispatcher = reading.dispatcher()
        self._groups = [
            GroupRecognition(
                group,
                reading.classification,
                work.events,
                time=work.time,
                endless=endless,
                dispatched=places,
                state=own,
            )
            for group, own in zip(reading.groups, states, strict=True)
        ]

    def push(self, classified: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The complex events that end in this batch, in the common columns."""
        held = self._dispatcher.held(classified)
        for group in self._groups:
            yield from self._tables(group, group.push(classified, held))

    def tables_decided(self, *, position: int, time: int | None) -> Iterator[pa.RecordBatch]:
        """The answers that are decided once no event before `position`, or before `time`, comes."""
        for group in self._groups:
            yield from self._tables(group, group.recognition.decided(position=position, time=time))

    def advance(self, time: int) -> None:
        """Announces that no event before `time` comes any more: windows close, and memory is freed."""
        for group in self._groups:
            group.recognition.advance(time)

    def snapshot(self) -> bytes:
        """The data needed to continue."""
        states = [group.recognition.snapshot() for group in self._groups]
        row = pa.RecordBatch.from_arrays([pa.array(states, pa.binary())], schema=_STATES)
        return KEPT.keep(blob_of(row), self)

    def open_runs(self) -> OpenRuns:
        """Nothing: the steps of several rules are not comparable."""
        from estero.recognize.open_runs import OpenRuns

        return OpenRuns({}, None)

    @property
    def idle(self) -> bool:
        """Whether nothing is open."""
        return all(group.recognition.idle for group in self._groups)

    @property
    def due(self) -> int | None:
        """The time of the first deadline that something waits for; None if nothing waits."""
        dues = [group.recognition.due for group in self._groups]
        return min((due for due in dues if due is not None), default=None)

    def _tables(self, group: GroupRecognition, sets: Iterable[EndedSets]) -> Iterator[pa.RecordBatch]:
        for ended in sets:
            for table in group.tables(ended):
                yield self._said.added(common_rows(table, self._common))


def recognize_rules_on_stream(  # noqa: PLR0913 (as `recognize`)
    df: DataFrame,
    plans: Mapping[str, Plan],
    layout: Layout,
    *,
    positions: bool,
    partitions: int | None,
    lateness: Lateness | None,
    state: str | None,
    said: RuleColumns,
    answer_ids: bool,
) -> DataFrame:
    """The complex events of all `plans`, by name, in the streaming DataFrame `df`, in the common columns.

    With `positions` each reading has one bucket, which numbers all events. Without, they show events
    (`shown_of_rules`), and this many `partitions` share the keys of a reading that has keys. Raises
    `QueryError` for a rule that decides nothing before the end, and `DataError` and ValueError as
    `recognize_stream`, which also explains `state`.
    """
    if not plans:
        raise ValueError("a stream of rules needs a rule: add one to the set, or name a directory of rules")
    for plan in plans.values():
        plan.refuse_endless()
    time = shown_time(df.schema, layout.schema.time)
    plans, common = shown_of_rules(df.schema, plans, layout, positions=positions)
    works, frames, clocks = [], [], []
    with jobs():
        for rules, division in readings_of(plans, positions=positions):
            events, own = keyed_rules(df, rules) if division.by_key else (df, rules)
            clock = clock_of(events, next(iter(own.values())).classification, layout.tick_ns, lateness)
            for reading in dispatched_passes(own, event_columns(events.schema, own, ordinals=False)):
                asked = reading.classification
                rows = streamed(clock.df, events.schema, asked, clock=clock.column, every=division.positions)
                classified = classified_schema(events.schema, asked, ordinals=False)
                works.append(RulesWork(reading, division, classified, time, common, said))
                frames.append(rows)
                clocks.append(clock)
        packed = [packed_events(rows.schema) for rows in frames]
        buckets = [1 if work.division.one_order else partitions or BUCKETS for work in works]
        header = header_of_rules(plans, works, packed, max(buckets))
        duties = [
            duty_of(replace(work, header=header), header, columns, clock, number)
            for work, columns, clock, number in zip(works, packed, clocks, buckets, strict=True)
        ]
        flush = int(df.sparkSession.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") or 0)
        stages = Stages(duties[0], flush, tuple(duties[1:]), answer_ids)
        if df.isStreaming:
            return connected(frames, stages, beside=begun_from(df, state))
        return with_state(df, frames, stages, works[0].reading.classification, state or "")


def readings_of(plans: Mapping[str, Plan], *, positions: bool) -> Iterator[tuple[dict[str, Plan], Division]]:
    """The rules that share a reading, in order of their first ones, and how buckets divide it.

    They have the same keys and values, and either all or none of them need positions in the whole stream.
    """
    alike: dict[tuple[object, ...], tuple[dict[str, Plan], Division]] = {}
    for name, plan in plans.items():
        known = division_of(plan, positions=positions)
        division = Division(by_key=not known.one_order, positions=known.positions)
        shared = tuple(sorted(plan.shared.items())) if division.by_key else ()
        key = (*reading_of(plan.classification), plan.classification.values, shared, division)
        alike.setdefault(key, ({}, division))[0][name] = plan
    yield from alike.values()


def header_of_rules(
    plans: Mapping[str, Plan], works: Iterable[RulesWork], packed: Iterable[pa.Schema], buckets: int
) -> str:
    """The header of the state of a stream of these rules, whose readings have such columns and buckets."""
    readings = [
        [
            [*(group.names), group.plan.fingerprint(columns), group.shape is None]
            for group in work.reading.groups
        ]
        for work, columns in zip(works, packed, strict=True)
    ]
    about = {
        "format": FORMAT,
        "query": f"a set of {len(plans)} rules",
        "rules": {name: digest([plan.text, plan.distinct]) for name, plan in plans.items()},
        "plan": digest(readings),
        "buckets": buckets,
    }
    return json.dumps(about)
