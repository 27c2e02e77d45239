"""Estero on Spark: a DataFrame of events in, a DataFrame of complex events out.

>>> from estero.spark import recognize
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from pyspark.sql import DataFrame

    from estero.language.pattern import Pattern
    from estero.language.query import QueryTree
    from estero.pipeline.spark.collected import Collected
    from estero.queries import Query

__all__ = ["collect", "match_count", "read_events", "recognize"]


def recognize(  # noqa: PLR0913 (each says one thing that a user may have to say)
    df: DataFrame,
    query: Query | QueryTree | Pattern | str,
    *,
    type: str | None = None,
    time: str | None = None,
    order: Sequence[str] = (),
    time_unit: str | None = None,
    positions: bool = False,
    partitions: int | None = None,
    split_keys: bool = True,
    lateness: str | int | None = None,
    late_events: bool = False,
) -> DataFrame:
    """The complex events of `query` in `df`, one row each: a batch or a streaming DataFrame, as `df` is.

    `query` is a query or its text. `type` is the column with the event type (without it there is one
    type, named after FROM, or ``Event``), `time` the time column, `order` columns that break ties of time,
    `time_unit` the length of a tick of an integer time column ("ns", "us", "ms", "s", "min", "h", "d").

    The columns: ``start_time`` and ``end_time`` where there is a time, the partition columns, then for
    each selected label an array of structs of its events' attributes. With ``positions=True`` also
    ``start`` and ``end``, in front, and in each struct the ``position``: places in the whole stream, for
    which all events are moved and sorted, so they are left out unless asked for. Rows come in no order.

    A query with PARTITION BY runs in parallel, `partitions` tasks sharing its keys (default: as many as
    Spark's shuffles have). One with a window and a time, but without keys, is cut into `partitions` ranges
    of time, each with the window before it, so that every answer is found by the task where it ends (default:
    as many as run at once, fewer where events are few). Others, and those with CONSUME BY ANY, run in one
    task. Spark itself classifies the events, and relevant ones only reach Python.

    With a window in time, a key that has more than 1.5 even shares of the events is cut into ranges, too.
    ``split_keys=False`` leaves all keys whole, and saves the job that looks for such keys.

    On a stream, events wait until the watermark has passed them: that of the time column, if it has one, else
    one that is made `lateness` behind the greatest time ("5 seconds", or a number of ticks; none by default).
    Late events are left out and counted: progress reports have ``late`` in ``observedMetrics["estero"]``.
    With `late_events` the columns are ``match``, a struct of those above, and ``late``, a struct of those of
    `df`, one of which is NULL in each row. `partitions` buckets share the keys (default: 16); a checkpoint
    keeps its number. Positions, and windows of so many events, put all keys into one bucket.

    It is lazy, except that cutting, and looking for what to cut, reads the events once, and for positions
    their times twice. What has been read, Spark keeps while this DataFrame is held. Errors in single events,
    such as a relevant event without a time, are raised by whatever reads them first: cutting, or an action.

    The stream order is that of `time`, then `order`, then arrival: of the partitions of `df` and of the
    rows in them. Spark orders the partitions of several files by size, so give `order` where it matters.

    Raises `QueryError` where the query is wrong or does not fit the columns, and `DataError` for a column
    that is missing or of a wrong kind.
    """
    from estero.pipeline.spark.batch import layout_of_frame, recognize_frame
    from estero.pipeline.spark.streaming import recognize_stream
    from estero.queries import Query

    asked = query if isinstance(query, Query) else Query(query)
    layout = layout_of_frame(
        df, type=type, time=time, order=order, time_unit=time_unit, only_type=asked.only_type
    )
    plan = asked.plan(layout)
    if df.isStreaming:
        return recognize_stream(
            df,
            plan,
            tick_ns=layout.tick_ns,
            positions=positions,
            partitions=partitions,
            lateness=lateness,
            late_events=late_events,
        )
    if lateness is not None or late_events:
        raise ValueError("lateness and late_events are for streaming DataFrames: a batch has all events")
    return recognize_frame(df, plan, positions=positions, partitions=partitions, split_keys=split_keys)


def match_count(
    df: DataFrame,
    query: Query | QueryTree | Pattern | str,
    *,
    type: str | None = None,
    time: str | None = None,
    order: Sequence[str] = (),
    time_unit: str | None = None,
    partitions: int | None = None,
    split_keys: bool = True,
) -> int:
    """How many complex events `query` has in the batch DataFrame `df`: exact, of any size.

    The arguments and errors are those of `recognize`, and tasks share the work in the same way. Complex
    events are counted on the compact set, not enumerated, so 2^1000 of them take no longer than their
    events; only filters that are checked one complex event at a time (`Query.explain` names them) need
    each of them. ``recognize(…).count()`` enumerates.
    """
    from estero.errors import DataError
    from estero.pipeline.spark.batch import layout_of_frame
    from estero.pipeline.spark.counting import count_frame
    from estero.queries import Query

    if df.isStreaming:
        raise DataError(
            "this is a streaming DataFrame, and only batch DataFrames are counted",
            hint="recognize it, and count what its sink has got",
        )
    asked = query if isinstance(query, Query) else Query(query)
    layout = layout_of_frame(
        df, type=type, time=time, order=order, time_unit=time_unit, only_type=asked.only_type
    )
    return count_frame(df, asked.plan(layout), partitions=partitions, split_keys=split_keys)


def read_events(
    path: str | PathLike[str],
    *,
    csv_options: Mapping[str, object] | None = None,
    master: str = "local[*]",
) -> DataFrame:
    """The events in a file, glob or directory (Parquet, CSV, JSON lines, Arrow) as a DataFrame.

    Uses the session that runs, else starts one on `master`. Names and types of columns are those that
    `Query.run` sees in the same files; `csv_options` mean the same, too. Raises `DataError` where the
    files cannot be read and `EnvironmentProblem` where Spark cannot start.
    """
    from estero.pipeline.inputs import open_input
    from estero.pipeline.spark import files
    from estero.pipeline.spark.session import local_session

    open_input(path, csv_options)  # says what is wrong before a session is waited for
    return files.read_events(local_session(master), path, csv_options=csv_options)


def collect(
    matches: DataFrame,
    *,
    events: str | PathLike[str] | None = None,
    csv_options: Mapping[str, object] | None = None,
) -> Collected:
    """What `recognize` found, in this process: counted, limited, written, or read batch by batch.

    With the path that `events` were read from, an error about a malformed row names file and line.
    """
    from estero.pipeline.spark.collected import Collected
    from estero.pipeline.spark.files import check_rows

    return Collected(matches, recheck=None if events is None else lambda: check_rows(events, csv_options))
