"""The watermark of a streaming DataFrame, the user's own or one that follows its times, and its ticks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from estero.classify.classify import Clauses
from estero.classify.column_names import CLOCK
from estero.classify.spark_dialect import SPARK
from estero.engine.int64 import GREATEST
from estero.errors import DataError
from estero.events.streams.stream_layout import Lateness, ticks_of
from estero.plan.plan import Classification
from estero.spark.frames import positional, positional_columns
from estero.spark.streams.ticks import MS, Ticks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELAY = "spark.watermarkDelayMs"
"""The key in a column's metadata of its watermark's delay behind the greatest value, in milliseconds."""

_TOO_LARGE = "estero: a time is too large for a timestamp: say its time_unit, or another one"


@dataclass(frozen=True, slots=True)
class Clock:
    """A DataFrame, `positional` (frames.py), with a watermark on `column`.

    It is `lateness` ticks behind, None if it is the user's own.
    """

    df: DataFrame
    column: str
    ticks: Ticks
    lateness: int | None


def clock_of(
    df: DataFrame, classification: Classification, tick_ns: int | None, lateness: Lateness | None
) -> Clock:
    """The watermark that `df` has on its time column, else a new one, `lateness` behind the greatest time.

    `lateness` is a duration such as "5 seconds", or a number of ticks; none by default. Raises `DataError`
    without a time column, for a watermark on another column, and for a lateness beside the user's watermark;
    ValueError for a lateness that is not a duration.
    """
    time = classification.schema.time
    if time is None:
        raise DataError(
            "a stream needs a time column: events of a micro-batch come in no order",
            hint="name it, as in recognize(df, query, time='ts')",
        )
    ticks = Ticks(MS if tick_ns is None else tick_ns)
    followed = [field.name for field in df.schema.fields if DELAY in (field.metadata or {})]
    if not followed:
        return _new_clock(df, classification, ticks, _delay_ms(lateness, tick_ns))
    if time not in followed:
        raise DataError(
            f"the watermark is on another column: {followed[0]}",
            column=time,
            hint=f"use withWatermark({time!r}, …), or leave it to recognize(…, lateness=…)",
        )
    if lateness is not None:
        raise DataError(
            "the time column already has a watermark, so no lateness can be given",
            column=time,
            hint="leave one of them out",
        )
    return Clock(positional(df), positional(df).columns[df.columns.index(time)], ticks, None)


def _new_clock(df: DataFrame, classification: Classification, ticks: Ticks, delay: int) -> Clock:
    """The DataFrame with a column of timestamps that Spark follows, this many milliseconds behind."""
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    text = f"({Clauses(classification, SPARK, positional_columns(df.schema)).time()})"
    clock = F.expr(clock_sql(text, ticks))
    followed = positional(df).withColumn(CLOCK, clock).withWatermark(CLOCK, f"{delay} milliseconds")
    return Clock(followed, CLOCK, ticks, ticks.from_ms(delay))


def clock_sql(text: str, ticks: Ticks) -> str:
    """SQL of the timestamp in which a time begins, or of the error for an invalid time."""
    limit = GREATEST // max(1, ticks.nanoseconds // 1000)
    beyond = f"{text} NOT BETWEEN -{limit}L AND {limit}L"  # abs() of the least integer is none
    return ticks.clock(f"IF({beyond}, CAST(raise_error('{_TOO_LARGE}') AS BIGINT), {text})")


def _delay_ms(lateness: Lateness | None, tick_ns: int | None) -> int:
    """The lateness in milliseconds, as Spark requires it."""
    ticks = 0 if lateness is None else ticks_of(lateness, tick_ns)
    nanoseconds = ticks * (MS if tick_ns is None else tick_ns)
    if nanoseconds > GREATEST:
        raise ValueError(f"a lateness is less than 292 years, not {lateness}")
    return -(-nanoseconds // MS)
