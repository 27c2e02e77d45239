"""The times in a table of Parquet files, read from the footers of the files without a job.

Each row group gives its number of rows and the range of its times. That is enough to cut a stream into ranges
with about equally many events, and costs milliseconds, while reading the events costs a scan. Spark's own
Java reads the footers, because it can read files wherever they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from estero.engine.int64 import saturated
from estero.errors import DataError
from estero.plan.plan import Window
from estero.spark.batch.ranges import SMALLEST_TASK, Cut, Ranges, parallelism
from estero.spark.failures import NO_PARQUET

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame

LEAST_WINDOWS = 8
"""A range is at least this many windows long, because its halo is read twice."""
MOST_ROWS = 30_000_000
"""The largest number of rows of a range, relevant or not.

Tasks then come in several rounds; if relevant events are spread unevenly, a task that is done leaves its core
to the next. A round costs 0.1 s.
"""
_FILES, _GROUPS = 8, 24
"""The largest number of files and row groups that are read, evenly spread."""
_POINTS = 16
"""The number of times, from first to last, over which the rows of a group are assumed to be spread evenly."""
_TICKS = {"milliseconds": 1000.0, "microseconds": 1.0, "nanoseconds": 0.001}
_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
_END = 8
"""The size of the end of a Parquet file: the length of its footer, and four letters."""
_AT_ONCE = 6_000
"""The bytes that Java returns in one packet. If it needs two, the second waits 40 ms for an answer."""


Item = TypeVar("Item")


class Group(NamedTuple):
    """A row group, or several like it: `rows` events from tick `first` to tick `last`."""

    rows: float
    first: float
    last: float


def ranges_by_footers(
    df: DataFrame, time: str, window: Window, count: int | None, *, by_key: bool
) -> Ranges | None:
    """About equally large ranges of the events of `df`, in ticks of its column `time`.

    `count` is the number of ranges; without it there is one for each task that runs at once, or several if
    there are many rows. None if ranges have to be found in another way: `df` is not simply (columns of) a
    table of Parquet files, their footers do not give the times (Spark's own writer makes INT96 of timestamps,
    unless ``spark.sql.parquet.outputTimestampType`` says otherwise), or the stream is too short for several
    tasks, or for ranges that are much longer than the window; that does not matter if `count` is given and
    events cannot be divided by a key.
    """
    relation = _relation(df, time)
    if relation is None:
        return None
    groups = _groups(df, relation, time)
    if not groups:
        return None
    length = max(group.last for group in groups) - min(group.first for group in groups)
    most = length / (LEAST_WINDOWS * max(1, window.length))
    if count is None:
        count = _number(sum(group.rows for group in groups), parallelism(df.sparkSession), most)
    elif by_key and count > most:
        return None
    return None if count is None else Ranges((Cut(_starts(groups, count)),))


def _number(rows: float, running: int, most: float) -> int | None:
    """The number of ranges that pay, at most `most`; None if too few for the tasks that run at once."""
    rounds = math.ceil(rows / (running * MOST_ROWS))
    paying = min(rounds * running, rows / SMALLEST_TASK, most)
    return int(paying) if paying >= running else None


def _starts(groups: Sequence[Group], count: int) -> tuple[int, ...]:
    """The times at which ranges with equal shares of the rows begin, without the first; ascending."""
    times = np.concatenate([np.linspace(group.first, group.last, _POINTS) for group in groups])
    order = np.argsort(times, kind="stable")
    shares = np.cumsum(np.repeat([group.rows / _POINTS for group in groups], _POINTS)[order])
    places = np.searchsorted(shares, shares[-1] * np.arange(1, count) / count, side="right")
    cuts = {saturated(int(times[order[place]])) for place in places}
    return tuple(sorted(cuts - {int(times[order[0]])}))


def _relation(df: DataFrame, time: str) -> Any | None:
    """The Java object of the table of Parquet files whose rows, all of them and unchanged, `df` has."""
    frame: Any = getattr(df, "_jdf", None)  # Spark Connect has none
    if frame is None:
        return None
    plan = frame.queryExecution().optimizedPlan()
    wanted = _attribute(plan, time)
    while plan.nodeName() == "Project":
        plan = plan.child()
    if plan.nodeName() != "LogicalRelation" or wanted is None or _attribute(plan, time) != wanted:
        return None
    relation = plan.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    return relation if relation.fileFormat().toString() == "Parquet" else None


def _attribute(plan: Any, name: str) -> str | None:
    """The column of a plan with this name, as Spark numbers it: ``ts#1``."""
    outputs = str(plan.output().mkString("\n")).split("\n")
    return next((output for output in outputs if output.rpartition("#")[0] == name), None)


def _groups(df: DataFrame, relation: Any, time: str) -> list[Group]:
    """Row groups of the files, evenly chosen; none if a footer does not give the range of its times."""
    files = _spread(list(relation.inputFiles()), _FILES)
    groups: list[Group] = []
    for file in files:
        footer = _footer(df, file)
        if footer is None:
            return []
        chosen = _spread(range(footer.num_row_groups), max(1, _GROUPS // len(files)))
        if not chosen:
            continue
        place, tick = _column(footer.schema, time)
        for number in chosen:
            group = _group(footer.row_group(number), place, tick, footer.num_row_groups / len(chosen))
            if group is None:
                return []
            groups.append(group)
    return groups


def _footer(df: DataFrame, file: str) -> pq.FileMetaData | None:
    """The content of the footer of a Parquet file; None if it is encrypted.

    Raises `DataError` if it is not a footer, and Hadoop's error if there is no such file.
    """
    import pyarrow.parquet as pq

    with _opened(df, file) as (stream, size):
        end = _read(stream, size - _END, _END)
        if end.endswith(_ENCRYPTED):
            return None
        length = int.from_bytes(end[:-4], "little") if end.endswith(_MAGIC) else 0
        length = min(length, size - _END)
        footer = _read(stream, size - _END - length, length)
    try:
        return pq.read_metadata(pa.BufferReader(_MAGIC + footer + end))
    except pa.ArrowInvalid as error:
        raise DataError(NO_PARQUET, file=file) from error


@contextmanager
def _opened(df: DataFrame, file: str) -> Iterator[tuple[Any, int]]:
    """A Java stream over the bytes of a file, and their number."""
    java: Any = df.sparkSession._jvm  # noqa: SLF001 (there is no public way)
    settings = df._jdf.sparkSession().sessionState().newHadoopConf()  # noqa: SLF001
    path = java.org.apache.hadoop.fs.Path(java.java.net.URI(file))  # Spark gives names encoded
    system = path.getFileSystem(settings)
    size = system.getFileStatus(path).getLen()
    stream = system.open(path)
    try:
        yield stream, size
    finally:
        stream.close()


def _read(stream: Any, begin: int, size: int) -> bytes:
    """The bytes of a Java stream from an offset, or from its beginning."""
    stream.seek(max(0, begin))
    parts = range(0, size, _AT_ONCE)
    return b"".join(bytes(stream.readNBytes(min(_AT_ONCE, size - part))) for part in parts)


def _column(schema: pq.ParquetSchema, name: str) -> tuple[int, float | None]:
    """The index of this column in the schema of a file (0 without it), and the ticks of its unit."""
    for place in range(len(schema)):
        column = schema.column(place)
        if column.path == name:
            return place, _tick(json.loads(column.logical_type.to_json()))
    return 0, None


def _tick(logical: Mapping[str, Any]) -> float | None:
    """The number of ticks in the unit of an integer column; None if it is not one of times or numbers."""
    kind = logical["Type"]
    if kind == "Timestamp":
        return _TICKS[logical["timeUnit"]]
    return 1.0 if kind in ("None", "Int") else None


def _group(group: pq.RowGroupMetaData, place: int, tick: float | None, like: float) -> Group | None:
    """The times of a row group that represents `like` groups; None if its footer does not give them."""
    times = group.column(place).statistics
    if tick is None or times is None or not times.has_min_max or not isinstance(times.min_raw, int):
        return None
    return Group(group.num_rows * like, times.min_raw * tick, times.max_raw * tick)


def _spread(items: Sequence[Item], most: int) -> list[Item]:
    """A bounded number of the items, evenly spread."""
    chosen = min(most, len(items))
    return [items[place * len(items) // chosen] for place in range(chosen)]
