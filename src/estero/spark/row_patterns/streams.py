"""One MATCH_RECOGNIZE over a streaming DataFrame → a streaming DataFrame of its result.

As `recognize` does on streams: rows are packed into blobs, Spark brings these to the state of their bucket
(buckets.py), and a last stage unpacks the decided rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

import pyarrow as pa

from estero.classify.column_names import KEYS, TIME
from estero.errors import DataError, QueryError
from estero.language.row_patterns.tree import RowPatternClause
from estero.recognize.row_patterns.keys import Key
from estero.recognize.row_patterns.resumption import ends_with_partition
from estero.spark.failures import NULL_TIME
from estero.spark.row_patterns.buckets import HELD, Buckets, Duty, Held
from estero.spark.row_patterns.work import RowPatternWork
from estero.spark.streams.bucket import FORMAT, refuse_other
from estero.spark.streams.packing import GUARD, Packing, batch_of, blob_of
from estero.spark.streams.stages import arrived, packing_tasks
from estero.spark.streams.streaming import BUCKETS, METRICS, packed_schema
from estero.spark.streams.watermark import DELAY
from estero.spark.work import Batches, spark_schema
from estero.spark.workers import spare_collector

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.state import GroupState
    from pyspark.sql.types import StructField

    Frames = Iterator[pd.DataFrame]

_COUNTS: Final = ("late", "waiting", "recognized", "state_bytes")
_TURNED: Final = ", ".join([*(f"{name} BIGINT" for name in _COUNTS), "answers BINARY"])
_SALT: Final = 1
_ROWS: Final = 1 << 16
"""The number of rows of a blob of answers."""


def refuse_another(clause: RowPatternClause) -> NoReturn:
    """Raises the error for a second clause in a statement over a stream.

    Spark's planner accepts one ``applyInPandasWithState`` in a query, and cannot number rows beside it.
    """
    raise _at_pattern(
        clause,
        "a statement over a stream can have one MATCH_RECOGNIZE, and this is another one",
        hint="write a statement for each; what one writes to files or a table, the next one reads",
    )


def _at_pattern(clause: RowPatternClause, message: str, *, hint: str) -> QueryError:
    """An error with its caret under PATTERN."""
    span = clause.pattern_span
    written = clause.text[span.start : span.end]
    return QueryError(message, text=clause.text, span=span, found=written, hint=hint)


def check_stream(clause: RowPatternClause, df: DataFrame, order: list[Key]) -> None:
    """Raises an error if matches on a stream would never be decided, or not in bounded state."""
    if clause.within is None:
        raise _at_pattern(
            clause,
            "on a stream MATCH_RECOGNIZE needs WITHIN: without it no row could ever be forgotten",
            hint="add it behind PATTERN (…), as in WITHIN INTERVAL '1' HOUR",
        )
    if ends_with_partition(clause):
        raise _at_pattern(
            clause, "$ is the end of a partition, which a stream does not have", hint="leave $ out"
        )
    scalar = clause.order_by[0] if clause.order_by else clause.within
    if not order or order[0].column is None or order[0].descending:
        raise QueryError(
            "on a stream ORDER BY begins with the column of the time, ascending",
            text=clause.text,
            span=scalar.span,
            found=scalar.text,
            hint="name the column that has the watermark",
        )
    field = df.schema.fields[order[0].column]
    if DELAY not in (field.metadata or {}):
        raise DataError(
            "on a stream the first column of ORDER BY needs a watermark",
            column=order[0].name,
            hint=f"df.withWatermark({order[0].name!r}, '10 seconds') says how late rows may come",
        )


def stream_frame(
    rows: DataFrame, work: RowPatternWork, time: str, keys: list[Column], order: list[str], number: int
) -> DataFrame:
    """The rows of the result, of columns r0, r1, …; `rows` have the columns of `Relation`.

    `time` is the column of the watermark, `order` SQL of further entries of ORDER BY, and `number` that of
    the clause in its statement.
    """
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    zoned = rows.schema[time].dataType.typeName() == "timestamp"
    halves = [F.xxhash64(*keys), F.xxhash64(F.lit(_SALT), *keys)] if keys else [F.lit(0).cast("long")] * 2
    names = list(dict.fromkeys([*work.crossing.names, *(entry.partition(" ")[0] for entry in order)]))
    hashed = [half.alias(name) for half, name in zip(halves, KEYS, strict=True)]
    crossing = rows.select(F.expr(_ticks(time, zoned=zoned)).alias(TIME), *hashed, *names)
    packed = pa.schema([(field.name, _arrow_type(field, work)) for field in crossing.schema.fields])
    buckets = BUCKETS if keys else 1
    duty = Duty(work, _header(work, packed, buckets), packed, tuple(order), zoned, buckets)
    stages = RowPatternStages(duty)
    turned = (
        crossing.mapInArrow(stages.pack(), packed_schema())
        .groupBy("bucket")
        .applyInPandasWithState(stages.turn(), _TURNED, HELD, "append", "EventTimeTimeout")
    )
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _COUNTS]
    turned = turned.observe(METRICS if number == 1 else f"{METRICS}_{number}", *sums)
    return turned.mapInArrow(stages.unpack(), spark_schema(work.result))


def _ticks(time: str, *, zoned: bool) -> str:
    """SQL of a time in microseconds, or of the error for a time that is NULL."""
    since = f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01 00:00:00', {time})"
    ticks = f"unix_micros({time})" if zoned else since
    return f"IF({time} IS NULL, CAST(raise_error('{NULL_TIME}') AS BIGINT), {ticks})"


def _arrow_type(field: StructField, work: RowPatternWork) -> pa.DataType:
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(field.dataType, timezone=work.zone)


def _header(work: RowPatternWork, packed: pa.Schema, buckets: int) -> str:
    """The identity of the state; another statement cannot use it."""
    clause = work.clause.text[work.clause.span.start : work.clause.span.end]
    about = {"format": FORMAT, "query": clause, "plan": f"{work.columns} {packed}", "buckets": buckets}
    return json.dumps(about)


@dataclass(frozen=True)
class RowPatternStages:
    """The functions that workers run."""

    duty: Duty

    def pack(self) -> Callable[[Batches], Batches]:
        """The function for ``mapInArrow`` over rows as they come."""
        return packing_tasks(Packing(self.duty.buckets, self.duty.packed))

    def turn(self) -> Callable[[tuple[int], Iterable[pd.DataFrame], GroupState], Frames]:
        """The function for ``applyInPandasWithState``, grouped by buckets."""
        opened: list[Buckets] = []

        def turn(key: tuple[int], frames: Iterable[pd.DataFrame], state: GroupState) -> Frames:
            spare_collector()
            held = Held(*state.get) if state.exists else Held(self.duty.header)
            refuse_other(held.header, self.duty.header)
            if key[0] == GUARD:
                state.update(held)  # keeps the header, even if nothing else is kept
                return
            if not opened:
                opened.append(Buckets(self.duty))
            yield from self._turn(opened[0], held, frames, state)

        return turn

    def _turn(
        self, buckets: Buckets, held: Held, frames: Iterable[pd.DataFrame], state: GroupState
    ) -> Frames:
        blobs = [] if state.hasTimedOut else arrived(frames)[0]
        watermark = state.getCurrentWatermarkMs()
        turned = buckets.turn(held, blobs, watermark if watermark > 0 else None)
        for batch in turned.result.to_batches(_ROWS):
            yield _row(answers=blob_of(batch))
        if turned.held is not None:
            state.update(turned.held)
            state.setTimeoutTimestamp(max(watermark, 0) + 1)  # when the watermark has moved on
        elif state.exists:
            state.remove()
        size = 0 if turned.held is None else turned.held.size
        yield _row((turned.late, turned.waiting, turned.passed, size))

    def unpack(self) -> Callable[[Batches], Batches]:
        """The function for ``mapInArrow`` from the rows of turns to those of the result."""
        result = self.duty.work.result

        def unpack(batches: Batches) -> Batches:
            for batch in batches:
                for blob in batch.column("answers"):
                    if blob.is_valid:
                        yield batch_of(blob.as_buffer(), result)

        return unpack


def _row(counts: tuple[int, ...] | None = None, answers: bytes | None = None) -> pd.DataFrame:
    import pandas as pd

    values = [*(counts or [None] * len(_COUNTS)), answers]
    columns = zip((*_COUNTS, "answers"), values, strict=True)
    return pd.DataFrame({name: pd.Series([value], dtype=object) for name, value in columns})
