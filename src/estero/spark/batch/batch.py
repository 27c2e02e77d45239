"""A plan and a DataFrame of events → a DataFrame of complex events.

The JVM classifies (frames.py), Arrow batches of relevant events cross to Python workers, and each worker
runs recognition over the partition keys that its task has, interleaved as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from estero.answers.report import answer_schema, label_of
from estero.classify.column_names import KEYS, POSITION, TIME, is_working
from estero.classify.columns import LOCAL_TIME
from estero.engine.walk.share import Share
from estero.errors import NOWHERE, DataError, QueryError
from estero.events.sources import open_source
from estero.language.tree.query import Consume
from estero.language.tree.schema import EventLayout, Kind
from estero.plan.plan import Layout
from estero.plan.plan_joins import AnyPlan, KeyedPlan
from estero.spark.batch.distribute import distribute
from estero.spark.batch.halo import Piece, whole
from estero.spark.batch.shares import number_of_shares
from estero.spark.batch.spreading import spread
from estero.spark.frames import (
    Tasks,
    arrow_type,
    classified_schema,
    columns_of_frame,
    payload_name,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from estero.recognize.recognition import Ended, Recognition

Batches = Iterator[pa.RecordBatch]

_PLACES = ("start", "end")
NAME = "estero:name"
"""The metadata of a column that has another name on Spark than elsewhere: that name."""


def layout_of_frame(df: DataFrame, columns: EventLayout) -> Layout:
    """Where the parts of an event stand in `df` (`layout_of_schema`)."""
    return layout_of_schema(df.schema, columns)


def layout_of_schema(events: StructType, columns: EventLayout) -> Layout:
    """Where the parts of an event stand in such a table, with the `columns` that a user names.

    Raises `DataError` for a column that is missing, of a wrong kind, or there twice. Nothing is read: the
    types that occur are not known.
    """
    columns_of_frame(events)
    likeness = pa.schema([(field.name, _likeness(field.name, events)) for field in events.fields])
    # A stream that passes once is asked for nothing but its schema.
    return open_source(pa.RecordBatchReader.from_batches(likeness, []), columns).layout


def recognize_frame(
    df: DataFrame,
    plan: AnyPlan,
    *,
    positions: bool = False,
    partitions: int | None = None,
    split_keys: bool = True,
    share: int | None = None,
) -> DataFrame:
    """The complex events of `plan` in `df`, one row each: lazily, but for cutting ranges (distribute.py).

    With `positions` the columns are those of the public table (interface.md); without, ``start``, ``end``
    and the ``position`` of events are left out, because positions in the whole stream cost a move and
    a sort of all events. `partitions` is the number of tasks that share the partition keys, or of the ranges
    of time that a windowed query without keys is cut into; with `split_keys` hot keys are cut as well.
    `share` tasks share the enumeration (shares.py; None: as the planner says).

    Raises `QueryError` where no column is left to show, `DataError` for a column that cannot cross or that
    Spark does not find, and ValueError for less than one task.
    """
    if isinstance(plan, KeyedPlan):
        df, plan = spread(df, plan)
    work = Work.of(df.schema, plan, positions=positions)
    work.check_shown()
    shares = number_of_shares(work.plan, df.sparkSession, share=share, partitions=partitions)
    distributed = distribute(df, work.plan, work.tasks, partitions, split_keys=split_keys, shares=shares)
    answers = work.on_batches(distributed.pieces, distributed.shares)
    found = distributed.rows.mapInArrow(answers, spark_schema(work.answer))
    distributed.release_with(found)
    return found


@dataclass(frozen=True, slots=True)
class Work:
    """What one task does: the plan, how events reach it, and the shape of its answers.

    `plan` is evaluated as it is except that contiguity inside partitions goes by ordinals, so that no
    event has to cross only to be counted. It travels to workers by pickle.
    """

    plan: AnyPlan
    tasks: Tasks
    events: pa.Schema
    time: pa.DataType | None
    answer: pa.Schema

    @classmethod
    def of(cls, events: StructType, plan: AnyPlan, *, positions: bool, every: bool = False) -> Work:
        """The work for events with this schema; `positions` says whether the answer shows them.

        With `every`, irrelevant events cross as well, where the plan asks for them.
        """
        contiguous = plan.classification.keep_all and plan.keyed and not every
        if contiguous:
            plan = replace(plan, classification=replace(plan.classification, keep_all=False))
        tasks = Tasks(
            # CONSUME BY ANY forgets across partitions: they have to be seen in one order.
            by_key=plan.keyed and plan.consume is not Consume.ANY,
            positions=positions or plan.needs_positions,
            ordinals=contiguous,
        )
        classified = classified_schema(events, plan.classification, ordinals=contiguous)
        time = shown_time(events, plan)
        public = answer_schema(plan.shown, classified, keys=plan.shown_keys, time=time)
        answer = told_apart(public if positions else without_positions(public))
        return cls(plan, tasks, classified, time, answer)

    def check_shown(self) -> None:
        """Raises `QueryError` where no column is left to show."""
        if not self.answer.names:
            raise QueryError(
                "SELECT NONE without a time or a partition leaves no column to show",
                text=self.plan.tree.text,
                span=self.plan.tree.places.get("LIST", NOWHERE),
                found="NONE",
                expected="a label, a PARTITION BY clause or a time column",
                hint="name the time column, or ask for positions=True",
            )

    def on_batches(
        self, cut: Callable[[Batches], Iterator[Piece]] = whole, shares: int | None = None
    ) -> Callable[[Batches], Batches]:
        """The function for ``mapInArrow`` over what `distribute` gives; `cut` makes pieces of batches."""

        def recognize(batches: Batches) -> Batches:
            for recognition, ended in self.ended(cut(batches), shares=shares):
                yield from map(self.shown, recognition.tables(ended))

        return recognize

    def ended(
        self, cut: Iterator[Piece], *, counting: bool = False, shares: int | None = None
    ) -> Iterator[tuple[Recognition, Ended]]:
        """The compact sets that end in the events of a task, each with what recognized it.

        With `shares` the number of a piece is that of the share that is wanted of what is found in it.
        """
        from estero.recognize.recognition import Recognition
        from estero.spark.warming import warm_up

        warm_up(self.plan, self.events, self.time)
        number = None
        for piece in cut:
            if piece.number != number:
                number, seen = piece.number, 0
                recognition = Recognition(self.plan, self.events, time=self.time, counting=counting)
                if shares is not None:
                    recognition.give_only(Share(number, shares))
            classified = classified_batch(piece.rows, self.events, seen)
            seen += classified.num_rows
            for ended in recognition.recognize(classified):
                if piece.own:
                    yield recognition, ended

    def shown(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of the public table → a batch of `answer`."""
        first = table.num_columns - len(self.answer)
        shown = table.columns[first:]
        columns = [_fitted(column, field.type) for column, field in zip(shown, self.answer, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self.answer)


def classified_batch(batch: pa.RecordBatch, events: pa.Schema, seen: int) -> pa.RecordBatch:
    """One batch from Spark as a batch of `events`; its rows are numbered from `seen` where they are not."""
    names = batch.schema.names
    numbers = pa.array(np.arange(seen, seen + batch.num_rows))
    places = batch.column(POSITION) if POSITION in names else numbers
    columns = []
    for field, name in zip(events, _crossing_names(events), strict=True):
        if name == POSITION or (name == TIME and TIME not in names):
            columns.append(places)
        elif name in KEYS:
            columns.append(batch.column(name).view(field.type))
        else:
            columns.append(batch.column(name).cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=events)


def _crossing_names(events: pa.Schema) -> list[str]:
    """The names under which the columns of `events` come from Spark."""
    working = [name for name in events.names if is_working(name)]
    return working + [payload_name(place) for place in range(len(events) - len(working))]


def without_positions(public: pa.Schema) -> pa.Schema:
    """The schema of the public table without ``start``, ``end`` and the positions of events."""
    return pa.schema([_without_position(field) for field in list(public)[len(_PLACES) :]])


def told_apart(answer: pa.Schema) -> pa.Schema:
    """The schema with names that differ in more than case: Spark does not see that ``A`` is not ``a``.

    The later one gets an underscore; the metadata of the field keeps the name that it has in other answers.
    """
    taken: set[str] = set()
    fields = []
    for field in answer:
        name = field.name
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        if name == field.name:
            fields.append(field)
        else:
            said = (field.metadata or {}) | {NAME.encode(): field.name}
            fields.append(field.with_name(name).with_metadata(said))
    return pa.schema(fields)


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


def _without_position(field: pa.Field) -> pa.Field:
    if label_of(field) is None:
        return field
    items = list(field.type.value_type)[:-1]
    return field.with_type(pa.list_(pa.field("item", pa.struct(items), nullable=False)))


def _fitted(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The column, its events without what `wanted` does not show."""
    if column.type == wanted:
        return column
    events = column.values
    items = [events.field(each.name) for each in wanted.value_type]
    shorter = pa.StructArray.from_arrays(items, fields=list(wanted.value_type))
    return pa.ListArray.from_arrays(column.offsets, shorter, type=wanted)


def shown_time(events: StructType, plan: AnyPlan) -> pa.DataType | None:
    """The type in which answers show times: as they came, instants in UTC or local, or integers.

    None without a time.
    """
    name = plan.classification.schema.time
    if name is None:
        return None
    column = columns_of_frame(events)[name]
    if column.kind is not Kind.TIMESTAMP:
        return pa.int64()
    return pa.timestamp("us", None if column.cast == LOCAL_TIME else "UTC")


def _likeness(name: str, events: StructType) -> pa.DataType:
    """The type that a column has for the checks of names and kinds; one that cannot cross is opaque."""
    try:
        return arrow_type(name, events)
    except DataError:
        return pa.binary()
