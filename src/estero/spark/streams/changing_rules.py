"""Rules that may change while a stream runs on Spark: unclassified events, and a recognizer of rules.

Spark fixes the computation of a stream when it starts, so the JVM cannot evaluate conditions of future rules.
All columns of all events go to one bucket, whose state is that of a recognizer of rules and the texts of
these. The rules of a micro-batch come with its events (rule_source.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from estero.answers.rule_rows import rule_schema
from estero.classify.column_names import attribute_in, is_working
from estero.engine.int64 import LEAST
from estero.events.streams.stream_layout import StreamLayout, windows_of
from estero.language.tree.schema import EventLayout
from estero.plan.division import Division
from estero.plan.identity import digest
from estero.plan.plan import Classification, Layout
from estero.queries.rules.rule_origin import put_rule
from estero.queries.rules.rule_set import RuleSet
from estero.queries.rules.rule_table import RuleTable, origin_of
from estero.queries.rules.rule_texts import query_of_text, version_of
from estero.recognize.state_bytes import read
from estero.spark.failures import jobs
from estero.spark.frames import arrow_type, classified_schema, streamed
from estero.spark.streams.bucket import FORMAT
from estero.spark.streams.kept import KEPT
from estero.spark.streams.packing import batch_of, blob_of, group_numbers
from estero.spark.streams.rule_source import of_files, rule_rows
from estero.spark.streams.stages import Stages
from estero.spark.streams.streaming import connected, duty_of, packed_events
from estero.spark.streams.watermark import clock_of
from estero.spark.work import shown_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from estero.answers.rule_answers import RuleAnswers
    from estero.events.streams.stream_layout import Keep, Lateness
    from estero.queries.query import Query
    from estero.recognize.open_runs import OpenRuns

_STATE: Final = pa.schema([("rules", pa.string()), ("recognizer", pa.binary())])
_BEGUN, _NO_RULE = "no rule", "SELECT * WHERE Event"
"""The placeholder rule: a recognizer needs a rule to begin with; this one is removed at once."""


@dataclass(frozen=True, slots=True)
class ChangingWork:
    """The work of the bucket of a stream whose rules may change; it travels to workers by pickle.

    `events` is the schema of events, with all their columns, `layout` their layout, and `answer` the common
    columns and ``version``.
    """

    events: pa.Schema
    layout: StreamLayout
    time: pa.DataType | None
    answer: pa.Schema

    steps = 0
    division = Division(by_key=False, positions=True)
    window = None
    waits = True
    decides_later = True

    def recognizing(self, *, snapshots: bool = True, state: bytes | None = None) -> ChangingRecognition:
        """The recognition of the rules in a state, or of none; `snapshots` can always be made."""
        del snapshots
        kept = None if state is None else KEPT.taken(state)
        if isinstance(kept, ChangingRecognition) and kept.work == self:
            return kept
        return ChangingRecognition(self, state)

    def shown(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of answers in Spark's form."""
        return table


class ChangingRecognition:
    """A recognizer of rules and their texts, with the interface of `Recognition`."""

    def __init__(self, work: ChangingWork, state: bytes | None) -> None:
        self.work = work
        self._last = LEAST
        if state is None:
            self._texts: dict[str, str] = {}
            self._recognizer = RuleSet(_queries({_BEGUN: _NO_RULE})).recognizer_of(work.layout)
            self._recognizer.remove(_BEGUN)
        else:
            row = batch_of(state, _STATE).to_pylist()[0]
            self._texts = json.loads(row["rules"])
            rules = RuleSet(_queries(self._texts))
            self._recognizer = rules.recognizer_of(work.layout, read(row["recognizer"]))
        self._version = version_of(self._texts)

    def change(self, texts: Mapping[str, str]) -> None:
        """Replaces the rules by these: unchanged ones keep their open runs, new ones see events from now on.

        If events are kept, new ones begin with a replay of these.
        """
        if texts and not self._texts and not self._recognizer.position:  # all at once, which is quicker
            self._recognizer = RuleSet(_queries(texts)).recognizer_of(self.work.layout)
            self._texts = dict(texts)
        for name in [name for name in self._texts if name not in texts]:
            self._recognizer.remove(name)
        for name, text in texts.items():
            if self._texts.get(name) != text:
                put_rule(self._recognizer, name, query_of_text(name, text))
        self._texts = dict(texts)
        self._version = version_of(self._texts)

    def push(self, classified: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The complex events that end in this batch."""
        names = [name for name in classified.schema.names if not is_working(name)]
        events = classified.select(names).rename_columns([attribute_in(name) for name in names])
        return self._shown(self._recognizer.push(pa.Table.from_batches([events])))

    def tables_decided(self, *, position: int, time: int | None) -> Iterator[pa.RecordBatch]:
        """The answers that are decided once no event before `time` comes."""
        del position  # the recognizer counts its events
        if time is None or time == LEAST:
            return
        self._last = time
        passed = time
        if self.work.time is not None and pa.types.is_timestamp(self.work.time):
            passed = pa.scalar(time, self.work.time)
        yield from self._shown(self._recognizer.advance(passed))

    def advance(self, time: int) -> None:
        """Does nothing: `tables_decided` has done it, as it may decide something."""

    def snapshot(self) -> bytes:
        """The data needed to continue."""
        row = [pa.array([json.dumps(self._texts)]), pa.array([self._recognizer.snapshot()], pa.binary())]
        return KEPT.keep(blob_of(pa.RecordBatch.from_arrays(row, schema=_STATE)), self)

    def open_runs(self) -> OpenRuns:
        """Nothing: the steps of several rules are not comparable."""
        from estero.recognize.open_runs import OpenRuns

        return OpenRuns({}, None)

    idle = False
    """False: positions are counted on."""

    @property
    def due(self) -> int | None:
        """The next time to run: whenever the watermark has moved, as a rule may wait for a deadline."""
        return None if self._last == LEAST else self._last

    def _shown(self, answers: RuleAnswers) -> Iterator[pa.RecordBatch]:
        for batch in answers.batches():
            if batch.num_rows:
                version = pa.array([self._version] * batch.num_rows, pa.string())
                yield pa.RecordBatch.from_arrays([*batch.columns, version], schema=self.work.answer)


def recognize_changing_rules(
    df: DataFrame,
    place: Path | RuleTable,
    columns: EventLayout,
    layout: Layout,
    *,
    lateness: Lateness | None,
    keep: Keep | None,
    answer_ids: bool,
) -> DataFrame:
    """The complex events of the rules in a directory or a table, which may change, with a `version`.

    Raises `DataError` if there is none, for a column that cannot cross, and as `recognize_stream`.
    """
    if isinstance(place, RuleTable):
        place = of_files(df.sparkSession, place)
    origin = origin_of(place)
    asked = Classification(
        predicates=(),
        schema=layout.schema,
        type_column=layout.type_column,
        only_type=layout.only_type,
        order=layout.order,
        payload=tuple(df.columns),
        keep_all=True,
    )
    clock = clock_of(df, asked, layout.tick_ns, lateness)
    time = shown_time(df.schema, layout.schema.time)
    answer = pa.schema([*rule_schema(time), ("version", pa.string())])
    arrow = pa.schema([(name, arrow_type(name, df.schema)) for name in df.columns])
    # Events come in order, so that nothing is left to break ties.
    unordered = replace(columns, order=(), only_type=layout.only_type)
    stream = StreamLayout({"": arrow}, unordered, keep=windows_of(keep, columns, layout.tick_ns))
    with jobs():
        rows = streamed(clock.df, df.schema, asked, clock=clock.column, every=True)
        events = classified_schema(df.schema, asked, ordinals=False)
        work = ChangingWork(events, stream, time, answer)
        packed = packed_events(rows.schema)
        about = {
            "format": FORMAT,
            "query": origin.called,
            "plan": digest([str(packed), stream.as_text()]),
            "buckets": 1,
        }
        duty = duty_of(work, json.dumps(about), packed, clock, 1)
        flush = int(df.sparkSession.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") or 0)
        versions = rule_rows(df.sparkSession, place, stream, group_numbers(1)[0])
        return connected([rows], Stages(duty, flush, ids=answer_ids), beside=versions)


def _queries(texts: Mapping[str, str]) -> dict[str, Query]:
    return {name: query_of_text(name, text) for name, text in texts.items()}
