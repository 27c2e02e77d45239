"""A plan and a streaming DataFrame of events → a streaming DataFrame of complex events.

The JVM classifies, as it does for batches, and follows the watermark. A stage in Python packs relevant events
into few blobs (packing.py), Spark brings them to the state of their bucket, where recognition continues
(bucket.py), and a last stage unpacks its answers.

The state is kept by ``applyInPandasWithState``. The newer ``transformWithState`` was slower with few groups,
requires RocksDB and a package that Estero does not need (protobuf), and has no advantage here: one value for
each bucket and a timer are enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.answers.wait import latest_time
from estero.classify.column_names import ORDER, TIME
from estero.events.streams.stream_layout import Lateness
from estero.plan.levels import PartialsPlan
from estero.plan.plan import Plan
from estero.spark.batch.batch import keyed
from estero.spark.failures import jobs
from estero.spark.frames import arrow_type, streamed
from estero.spark.rows import rows_of
from estero.spark.streams.bucket import HELD, Duty, header_of
from estero.spark.streams.bucket_work import BucketWork
from estero.spark.streams.history import begun_from, with_state
from estero.spark.streams.packing import PACKED
from estero.spark.streams.stages import (
    COUNTS,
    LATE,
    MATCH,
    OLDEST,
    Stages,
    open_names,
    turn_schema,
)
from estero.spark.streams.watermark import DELAY, Clock, clock_of
from estero.spark.work import Work, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


BUCKETS = 16
"""The default number of buckets that share the keys: a power of two, so that tasks get equally many."""

MOST_BUCKETS = 4096
"""The largest number of buckets: each has a row in each micro-batch and, if it is not empty, one of state."""

METRICS = "estero"
"""The name under which a progress report has the counts of a micro-batch."""


def recognize_stream(  # noqa: PLR0913 (as `recognize`)
    df: DataFrame,
    plan: Plan | PartialsPlan,
    *,
    tick_ns: int | None,
    positions: bool,
    partitions: int | None,
    lateness: Lateness | None,
    late_events: bool,
    event_rows: bool,
    answer_ids: bool,
    state: str | None,
) -> DataFrame:
    """The complex events of `plan` in the streaming DataFrame `df`, one row each, in output mode append.

    `tick_ns` is the length of a tick of the time column, None for an integer without a unit. `partitions` is
    the number of buckets that share the partition keys; it is fixed for the life of a checkpoint. `lateness`
    makes a watermark, unless the time column of `df` has one. With `late_events` there are two columns, of
    which one is NULL in each row: ``match``, a complex event, and ``late``, a late event. With `event_rows`
    there is one row for each marked event and label (`rows_of`), with `answer_ids` a column of ids. A plan
    for partial matches gives these, too. A stream begins from an existing `state`; if `df` is a batch, the
    result is what a stream would have given, and its state is written there (history.py).

    Raises `QueryError` for a query that decides nothing before the end, `DataError` without a time column,
    and for a watermark of another column or a second one, and ValueError for a lateness that is no duration.
    """
    partials = plan if isinstance(plan, PartialsPlan) else None
    events = df.schema if late_events else None
    df, plan = keyed(df, plan)
    plan.refuse_endless()
    work = Work.of(df.schema, plan, positions=positions, every=True, partials=partials)
    clock = clock_of(df, work.plan.classification, tick_ns, lateness)
    with jobs():
        rows = streamed(
            clock.df,
            df.schema,
            work.plan.classification,
            clock=clock.column,
            every=work.division.positions,
            whole=events.names if events is not None else (),
        )
        buckets = 1 if work.division.one_order else BUCKETS if partitions is None else partitions
        packed = packed_events(rows.schema)
        header = header_of(work, packed, buckets)
        duty = duty_of(work, header, packed, clock, buckets)
        flush = int(df.sparkSession.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") or 0)
        stages = Stages(duty, flush, ids=answer_ids)
        if df.isStreaming:
            matches = connected([rows], stages, events, beside=begun_from(df, state))
        else:
            matches = with_state(df, [rows], stages, work.plan.classification, state or "")
        if not event_rows:
            return matches
        return rows_of(matches, work.answer, late=None if events is None else LATE)


def connected(
    readings: Sequence[DataFrame],
    stages: Stages,
    events: StructType | None = None,
    *,
    beside: DataFrame | None,
) -> DataFrame:
    """The stages connected: classified rows of each duty, and one operator with all buckets.

    `events` are the columns of late events if they are shown, and `beside` further packed rows.
    """
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    packs = zip(readings, stages.packs(), strict=True)
    packed = reduce(
        lambda first, second: first.union(second),
        (rows.mapInArrow(pack, packed_schema()) for rows, pack in packs),
    )
    if beside is not None:
        packed = packed.union(beside)
    steps = stages.duty.steps
    turned = packed.groupBy("bucket").applyInPandasWithState(
        stages.turn(), turn_schema(steps), HELD, "append", "EventTimeTimeout"
    )
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in (*COUNTS, *open_names(steps))]
    turned = turned.observe(METRICS, *sums, *_since_when(stages.duty))
    shown = spark_schema(stages.answer)
    if events is None:
        return turned.mapInArrow(stages.unpack(), shown)
    return turned.mapInArrow(stages.unpack(events.names), _both(shown, events))


def _since_when(duty: Duty) -> Iterator[Column]:
    """The time of the oldest marked event of the open runs, and when its window has passed."""
    from pyspark.sql import functions as F  # noqa: N812

    window, oldest = duty.work.window, F.min(OLDEST)
    times = {OLDEST: oldest}
    kind = duty.work.time
    if window is not None and not window.in_positions and kind is not None:
        latest = latest_time(kind)
        passed = F.when(oldest > F.lit(latest - window.length), F.lit(latest))
        times["expires"] = passed.otherwise(oldest + F.lit(window.length))
    for name, ticks in times.items():
        timed = kind is not None and pa.types.is_timestamp(kind)
        yield (F.timestamp_micros(ticks) if timed else ticks).alias(name)


def packed_events(rows: StructType) -> pa.Schema:
    """The columns of packed events."""
    return pa.schema([(field.name, arrow_type(field.name, rows)) for field in rows.fields])


def duty_of(work: BucketWork, header: str, packed: pa.Schema, clock: Clock, buckets: int) -> Duty:
    """The duty with this number of buckets."""
    order = (TIME, *(name for name in packed.names if name.startswith(ORDER)))
    return Duty(work, header, packed, order, buckets, clock.ticks, clock.lateness)


def packed_schema() -> StructType:
    """The columns of packed rows. Spark checks the first to know that there is a watermark."""
    from pyspark.sql.types import StructType

    clock, *others = spark_schema(PACKED)
    clock.metadata = {DELAY: 0}
    return StructType([clock, *others])


def _both(answer: StructType, events: StructType) -> StructType:
    """A complex event, or a late event."""
    from pyspark.sql.types import StructField, StructType

    def nullable(fields: StructType) -> StructType:
        return StructType(
            [StructField(field.name, field.dataType, metadata=field.metadata) for field in fields.fields]
        )

    late = StructType([StructField(field.name, field.dataType) for field in events.fields])
    return StructType([StructField(MATCH, nullable(answer)), StructField(LATE, late)])
