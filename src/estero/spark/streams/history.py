"""A batch of past events → the answers a stream would have given, and the state from which one continues.

Tasks have whole buckets, whose events come in stream order. A bucket takes turns as on a stream, some events
at a time, and a last one that knows the time of the very last event. The state is a table of Parquet files
with a packed row for each bucket, which a stream reads in its first micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from estero.classify.classify import Clauses
from estero.classify.column_names import ARRIVAL, KEYS
from estero.classify.spark_dialect import SPARK
from estero.engine.int64 import LEAST, saturated
from estero.errors import DataError
from estero.plan.plan import Classification
from estero.spark.connectors.address import located
from estero.spark.failures import jobs
from estero.spark.frames import positional, positional_columns
from estero.spark.streams.bucket import Duty, Held, Turn, held_blob
from estero.spark.streams.packing import GUARD, NO_TIME, PACKED, STATE, blob_of, buckets_of
from estero.spark.work import Batches, spark_schema
from estero.spark.workers import spare_collector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from estero.spark.streams.stages import Stages

_BUCKET: Final = "__bucket"
_AT_ONCE: Final = 1 << 17
"""The largest number of events of a turn: their answers are not held, but their state is written."""

Row = tuple[None, int, int, int, int, bytes]
"""A packed row."""


@dataclass(frozen=True, slots=True)
class History:
    """The work of tasks on the past events of a duty; it travels to workers by pickle.

    `groups` are the numbers of its buckets, and `newest` is the time of the last event of all, in ticks.
    """

    duty: Duty
    groups: tuple[int, ...]
    newest: int

    def bucketed(self, batches: Batches) -> Batches:
        """Classified rows, each with the number of its bucket after its columns."""
        for batch in batches:
            numbers = np.full(batch.num_rows, self.groups[0], np.int32)
            if self.duty.buckets > 1:
                keys = [batch.column(name).to_numpy() for name in KEYS]
                numbers = np.array(self.groups, np.int32)[buckets_of(keys, self.duty.buckets)]
            yield batch.append_column(_BUCKET, pa.array(numbers))

    def answers(self, batches: Batches) -> Batches:
        """The answers that a stream would have given."""
        for _, answers in self._turns(batches):
            yield from answers

    def states(self, batches: Batches) -> Batches:
        """The state of each bucket that has events, as packed rows."""
        for bucket, answers in self._turns(batches):
            for _ in answers:
                pass
            if bucket.ended:
                columns = zip(*[bucket.row()], strict=True)
                arrays = [pa.array(column, field.type) for column, field in zip(columns, PACKED, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=PACKED)

    def _turns(self, batches: Batches) -> Iterator[tuple[_Bucket, Batches]]:
        """The turns of buckets, one after the other; the answers of one are read before the next."""
        spare_collector()
        bucket = None
        for number, events in self._lots(batches):
            if bucket is None or bucket.number != number:
                if bucket is not None:
                    yield bucket, bucket.end(self.newest)
                bucket = _Bucket(self.duty, number)
            yield bucket, bucket.turn(events)
        if bucket is not None:
            yield bucket, bucket.end(self.newest)

    def _lots(self, batches: Batches) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The events of one bucket in lots, with its number."""
        packed = self.duty.packed
        for batch in batches:
            numbers = batch.column(_BUCKET).to_numpy()
            changes = np.flatnonzero(np.diff(numbers)) + 1
            cuts = sorted({0, *changes.tolist(), *range(0, batch.num_rows, _AT_ONCE), batch.num_rows})
            columns = [batch.column(name) for name in packed.names]
            rows = pa.RecordBatch.from_arrays(columns, schema=packed)
            for first, last in pairwise(cuts):
                yield int(numbers[first]), rows.slice(first, last - first)


class _Bucket:
    """A bucket of past events, between its turns."""

    def __init__(self, duty: Duty, number: int) -> None:
        self._duty = duty
        self.number: int = number
        self.held: Held | None = None
        self.ended: bool = False

    def turn(self, events: pa.RecordBatch | None, newest: int | None = None) -> Batches:
        """The answers of a turn with these events, which come after all earlier ones."""
        last = None if events is None else int(events.column(self._duty.order[0])[-1].as_py())
        turn = Turn(self._duty, self.held, None, last if newest is None else newest)
        yield from turn.run([] if events is None else [blob_of(events)])
        if turn.late:
            raise RuntimeError("events of a bucket do not come in stream order")
        self.held = turn.close()

    def end(self, newest: int) -> Batches:
        """The answers of the last turn: all events up to a time are known."""
        yield from self.turn(None, newest)
        self.ended = True

    def row(self) -> Row:
        """The packed row with the state."""
        return _row(self.number, self.held or Held(self._duty.header))


def with_state(
    df: DataFrame, readings: Sequence[DataFrame], stages: Stages, asked: Classification, place: str
) -> DataFrame:
    """The answers a stream would have given for past events; another job writes the state to continue from.

    `readings` are the classified rows of the duties, made of a batch, `df`, and `asked` says how its times
    are read. The state is a new directory of Parquet files at `place`.
    """
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)
    from pyspark.sql.types import IntegerType, StructField, StructType

    text = Clauses(asked, SPARK, positional_columns(df.schema)).time()
    with jobs():
        last = positional(df).selectExpr(f"max({text}) AS last").collect()[0]["last"]
    newest, packed = LEAST if last is None else int(last), spark_schema(PACKED)
    states, answers, rows = [], [], [_row(GUARD, Held(stages.duty.header))]
    for reading, (duty, groups) in zip(readings, stages.groups(), strict=True):
        history = History(duty, groups, newest)
        placed = reading.withColumn(ARRIVAL, F.monotonically_increasing_id())
        schema = StructType([*placed.schema.fields, StructField(_BUCKET, IntegerType())])
        order = [F.col(name).asc_nulls_last() for name in duty.order]
        ordered = placed.mapInArrow(history.bucketed, schema).repartition(_BUCKET)
        ordered = ordered.sortWithinPartitions(_BUCKET, *order, ARRIVAL)
        states.append(ordered.mapInArrow(history.states, packed))
        answers.append(ordered.mapInArrow(history.answers, spark_schema(duty.work.answer)))
        closed = LEAST if last is None else saturated(newest - (duty.lateness or 0))
        rows += [_row(group, Held(duty.header, closed=closed)) for group in groups]
    union = type(df).union
    said = f"the state cannot be written to {place}"
    with jobs(), _clear_of(said, "name a directory that is not there yet"):
        others = df.sparkSession.createDataFrame(rows, packed)
        reduce(union, states, others).write.parquet(located(place))
    return reduce(union, answers)


def begun_from(df: DataFrame, place: str | None) -> DataFrame | None:
    """Packed rows with the state with which a stream begins, for its first micro-batch; None without one."""
    if place is None:
        return None
    with _clear_of(f"there is no state at {place}", "recognize a batch with this state first"):
        return df.sparkSession.readStream.schema(spark_schema(PACKED)).parquet(located(place))


@contextmanager
def _clear_of(said: str, hint: str) -> Iterator[None]:
    """Reports that a state is missing, or cannot be written, in place of Spark's error about a path."""
    from pyspark.errors import AnalysisException, IllegalArgumentException

    try:
        yield
    except (AnalysisException, IllegalArgumentException):
        raise DataError(said, hint=hint) from None


def _row(group: int, held: Held) -> Row:
    return None, group, STATE, 0, NO_TIME, held_blob(held)
