"""The work of a task: classified rows as they cross from Spark → rows of the answer as they go back.

Batches, streams and the table function of SQL all do this; they differ in how rows come to a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from estero.answers.answer_schema import answer_schema, schema_with_partials
from estero.classify.arrays import array_of
from estero.classify.column_names import KEYS, POSITION, SHARE, TIME, is_working, payload_name
from estero.engine.walk.share import WHOLE, Share
from estero.errors import NOWHERE, DataError, QueryError
from estero.events.tables.shown_types import in_type
from estero.language.tree.schema import EventLayout, Kind
from estero.plan.division import Division, division_of, division_of_partials
from estero.plan.identity import Columns
from estero.plan.plan import Layout, Plan, Window
from estero.plan.steps import labels_of_steps
from estero.plan.together import together
from estero.spark.batch.halo import after_halo
from estero.spark.workers import spare_collector

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from estero.plan.levels import PartialsPlan
    from estero.recognize.ended_sets import EndedSets
    from estero.recognize.partial_matches.partials_recognition import PartialsRecognition
    from estero.recognize.recognition import Recognition
    from estero.recognize.set_reader import SetReader

    Recognizing = Recognition | PartialsRecognition

Batches = Iterator[pa.RecordBatch]

NAME = "estero:name"
"""The metadata of a column whose name on Spark differs from its usual name: the usual name."""


def layout_of_schema(events: StructType, columns: EventLayout) -> Layout:
    """The columns of such a table that hold the parts of an event, with the `columns` that a user names.

    Raises `DataError` for a column that is missing, of a wrong kind, or there twice. Nothing is read: the
    types that occur are not known.
    """
    from estero.events.sources import open_source
    from estero.spark.frames import columns_of_frame

    columns_of_frame(events)
    likeness = pa.schema([(field.name, _likeness(field.name, events)) for field in events.fields])
    # Only the schema of a one-shot stream is read.
    return open_source(pa.RecordBatchReader.from_batches(likeness, []), columns).layout


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a task: the plan, the division of events among tasks, and the shape of the answers.

    `events` is the schema of classified events, `time` the type in which answers show times, `positions`
    whether they show positions, `answer` their schema, and `known` the time up to which the events of a batch
    are known, or `last_position` the position, if it matters. With `partials` partial matches are found, too;
    then events are classified for all its plans. It travels to workers by pickle.
    """

    plan: Plan
    division: Division
    events: pa.Schema
    time: pa.DataType | None
    positions: bool
    answer: pa.Schema
    known: int | None = None
    partials: PartialsPlan | None = None
    last_position: int | None = None

    @classmethod
    def of(
        cls,
        events: StructType,
        plan: Plan,
        *,
        positions: bool,
        every: bool = False,
        partials: PartialsPlan | None = None,
    ) -> Work:
        """The work for events with this schema; `positions` says whether the answer shows them.

        With `every` a task sees all events that the plan needs, including irrelevant ones. Without,
        contiguity inside partitions uses ordinals, so that no event crosses only to be counted.
        """
        from estero.spark.frames import classified_schema  # here: workers write no SQL

        division = division_of(plan, positions=positions)
        if partials is not None:
            asked = together([part.classification for part in partials.plans])
            plan = replace(plan, classification=replace(asked, keys=plan.classification.keys))
            division = division_of_partials(partials, positions=positions)
        if every:
            division = replace(division, ordinals=False)
        elif division.ordinals:
            plan = replace(plan, classification=replace(plan.classification, keep_all=False))
        classified = classified_schema(events, plan.classification, ordinals=division.ordinals)
        time = shown_time(events, plan.classification.schema.time)
        work = cls(plan, division, classified, time, positions, pa.schema([]), partials=partials)
        shown = work.recognized
        if partials is not None:
            shown = schema_with_partials(shown, timed=not plan.by_position)
        return replace(work, answer=told_apart(shown))

    @property
    def recognized(self) -> pa.Schema:
        """The columns of complex events with the names and types that recognition gives them."""
        from estero.recognize.role_rows import recognized_schema

        plan = self.plan
        return answer_schema(
            plan.shown,
            recognized_schema(plan, self.events),
            keys=plan.shown_keys,
            time=self.time,
            positions=self.positions,
            suppressed=plan.interval is not None,
            measures=plan.measures,
            waits=plan.wait is not None,
        )

    def check_shown(self) -> None:
        """Raises `QueryError` if no column is left to show."""
        if not self.answer.names:
            raise QueryError(
                "SELECT NONE without a time or a partition leaves no column to show",
                text=self.plan.tree.text,
                span=self.plan.tree.places.get("LIST", NOWHERE),
                found="NONE",
                expected="a label, a PARTITION BY clause or a time column",
                hint="name the time column, or ask for positions=True",
            )

    def on_batches(self, shares: int | None = None) -> Callable[[Batches], Batches]:
        """The function for ``mapInArrow`` over the result of `distribute`: a task, or its share."""

        def recognize(batches: Batches) -> Batches:
            for reader, ended in self.ended(batches, shares=shares):
                yield from map(self.shown, reader.tables(ended))

        return recognize

    def with_partials(self, plan: PartialsPlan) -> Callable[[Batches], Batches]:
        """The same with partial matches; a task has all events of its keys."""

        def recognize(batches: Batches) -> Batches:
            spare_collector()
            recognition, seen = self._partials_recognition(plan), 0
            for batch in batches:
                classified = classified_batch(batch, self.events, seen)
                seen += classified.num_rows
                yield from map(self.shown, recognition.push(classified))
            yield from map(self.shown, recognition.tables_ended(self.known, self.last_position))

        return recognize

    def ended(
        self, batches: Batches, *, counting: bool = False, shares: int | None = None
    ) -> Iterator[tuple[SetReader, EndedSets]]:
        """The compact sets that end in a task's own events, each with its reader."""
        spare_collector()
        recognition = None
        for piece in after_halo(batches):
            if recognition is None:  # a task without events loads nothing
                share = WHOLE
                if shares is not None:
                    share = Share(piece.rows.column(SHARE)[0].as_py(), shares)
                recognition, seen = self.recognition(counting=counting, share=share), 0
            classified = classified_batch(piece.rows, self.events, seen)
            seen += classified.num_rows
            for ended in recognition.recognize(classified):
                if piece.own:
                    yield recognition.reader, ended
        if recognition is not None:
            for ended in recognition.ended(self.known):
                yield recognition.reader, ended

    def recognition(
        self,
        *,
        counting: bool = False,
        snapshots: bool = False,
        share: Share = WHOLE,
        state: bytes | None = None,
    ) -> Recognition:
        """The recognition of a worker's events; with `state` it continues from a snapshot."""
        from estero.recognize.recognition import Recognition  # for workers only

        return Recognition(
            self.plan,
            self.events,
            time=self.time,
            positions=self.positions,
            counting=counting,
            endless=snapshots,
            share=share,
            state=state,
        )

    def recognizing(self, *, snapshots: bool = False, state: bytes | None = None) -> Recognizing:
        """The same as `recognition`, or one that also finds partial matches, if they are requested."""
        if self.partials is None:
            return self.recognition(snapshots=snapshots, state=state)
        return self._partials_recognition(self.partials, state=state)

    def _partials_recognition(self, plan: PartialsPlan, *, state: bytes | None = None) -> PartialsRecognition:
        from estero.recognize.partial_matches.partials_recognition import PartialsRecognition

        return PartialsRecognition(
            plan,
            self.plan.classification,
            self.events,
            time=self.time,
            positions=self.positions,
            state=state,
        )

    @property
    def steps(self) -> int:
        """The number of steps of the pattern."""
        return len(labels_of_steps(self.plan.tree.pattern))

    @property
    def window(self) -> Window | None:
        """The window of the query."""
        return self.plan.window

    @property
    def waits(self) -> bool:
        """Whether events wait for deadlines."""
        return self.plan.wait is not None

    @property
    def decides_later(self) -> bool:
        """Whether some rows are decided later than at the end of their events."""
        return self.partials is not None or self.plan.decides_later or self.plan.wait is not None

    def fingerprint(self, columns: Columns) -> str:
        """A text that two works share if they can use each other's states; see `Plan.fingerprint`."""
        own = self.plan.fingerprint(columns)
        if self.partials is None:
            return own
        return " ".join([own, *(plan.fingerprint(columns) for plan in self.partials.plans[1:])])

    def shown(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of complex events with the names and types that they have on Spark."""
        columns = [
            column if column.type.equals(field.type) else column.cast(field.type)
            for column, field in zip(table.columns, self.answer, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.answer)


def classified_batch(batch: pa.RecordBatch, events: pa.Schema, seen: int) -> pa.RecordBatch:
    """One batch from Spark as a batch of `events`; rows are numbered from `seen` unless they already are."""
    names = batch.schema.names
    numbers = array_of(np.arange(seen, seen + batch.num_rows))
    places = batch.column(POSITION) if POSITION in names else numbers
    columns = []
    for field, name in zip(events, _crossing_names(events), strict=True):
        if name == POSITION or (name == TIME and TIME not in names):
            columns.append(places)
        elif name in KEYS:
            columns.append(batch.column(name).view(field.type))
        else:
            columns.append(in_type(batch.column(name), field.type))
    return pa.RecordBatch.from_arrays(columns, schema=events)


def _crossing_names(events: pa.Schema) -> list[str]:
    """The names under which the columns of `events` come from Spark."""
    working = [name for name in events.names if is_working(name)]
    return working + [payload_name(place) for place in range(len(events) - len(working))]


def told_apart(answer: pa.Schema) -> pa.Schema:
    """The schema with names that differ in more than case: Spark does not distinguish ``A`` from ``a``.

    The later one gets an underscore; the metadata of the field keeps the name that it has in other answers.
    Columns of type null become strings: Spark misreads that type in lists of structs, and few file formats
    support it.
    """
    taken: set[str] = set()
    fields = []
    for field in answer:
        name = field.name
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        renamed = field.with_type(_with_strings(field.type))
        if name != field.name:
            renamed = renamed.with_name(name).with_metadata(
                (field.metadata or {}) | {NAME.encode(): field.name}
            )
        fields.append(renamed)
    return pa.schema(fields)


def _with_strings(kind: pa.DataType) -> pa.DataType:
    """The type with strings in place of type null."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_strings(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_strings(field.type)) for field in kind])
    return kind


def spark_schema(answer: pa.Schema) -> StructType:
    """The schema of an answer in Spark's types, with its metadata: which label a column shows."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in answer:
        metadata = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        spark_type = from_arrow_type(field.type, prefer_timestamp_ntz=True)
        fields.append(StructField(field.name, spark_type, field.nullable, metadata or None))
    return StructType(fields)


def shown_time(events: StructType, name: str | None) -> pa.DataType | None:
    """The type in which answers show the times of this column: unchanged, in UTC or local, or integers.

    None without a time.
    """
    if name is None:
        return None
    from estero.classify.spark_dialect import LOCAL_TIME
    from estero.spark.frames import columns_of_frame

    column = columns_of_frame(events)[name]
    if column.kind is not Kind.TIMESTAMP:
        return pa.int64()
    return pa.timestamp("us", None if column.cast == LOCAL_TIME else "UTC")


def _likeness(name: str, events: StructType) -> pa.DataType:
    """The type of a column for the checks of names and kinds; one that cannot cross is opaque."""
    from estero.spark.frames import arrow_type

    try:
        return arrow_type(name, events)
    except DataError:
        return pa.binary()
