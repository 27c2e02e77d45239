"""Where the times of a table of Parquet files lie, as the footers of the files tell: without a job.

Each row group says how many rows it has, and between which times. That is enough to cut a stream into ranges
with about equally many events, and costs milliseconds where asking the events costs a scan. It is asked
through Spark's own Java, which reads the files wherever they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from estero.pipeline.spark.halo import SMALLEST_TASK, Ranges, Window, parallelism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEAST_WINDOWS = 8
"""A range is at least so many windows long, because its halo is read twice."""
MOST_ROWS = 30_000_000
"""A range has no more rows than that, whether they are relevant or not.

Tasks then come in several rounds, and where relevant events lie unevenly, who is ready takes the next. A
round costs 0.1 s.
"""
_FILES, _GROUPS = 8, 24
"""So many files and row groups are looked at, evenly spread."""
_POINTS = 16
"""The rows of a group are taken to be spread evenly over so many times from its first to its last."""
_TICKS = {"MILLIS": 1000.0, "MICROS": 1.0, "NANOS": 0.001}


Item = TypeVar("Item")


class Group(NamedTuple):
    """A row group, or several like it: `rows` events from tick `first` to tick `last`."""

    rows: float
    first: float
    last: float


def ranges_by_footers(
    df: DataFrame, time: str, window: Window, count: int | None, *, by_key: bool
) -> Ranges | None:
    """About equally large ranges of the events of `df`, of ticks of its column `time`.

    `count` is the number of ranges; without it there is one for each task that runs at once, or several where
    there are many rows. None where that has to be found out in another way: `df` is not simply (columns of) a
    table of Parquet files, their footers say nothing of the times (Spark's own writer makes INT96 of
    timestamps, unless ``spark.sql.parquet.outputTimestampType`` says otherwise), or the stream is too short
    for several tasks, or for ranges that are much longer than the window; that does not matter where `count`
    is given and events cannot be divided by a key.
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
    return None if count is None else Ranges(_cuts(groups, count))


def _number(rows: float, running: int, most: float) -> int | None:
    """How many ranges pay, at most `most`; None where they are too few for the tasks that run at once."""
    rounds = math.ceil(rows / (running * MOST_ROWS))
    paying = min(rounds * running, rows / SMALLEST_TASK, most)
    return int(paying) if paying >= running else None


def _cuts(groups: Sequence[Group], count: int) -> tuple[int, ...]:
    """The times at which ranges with equal shares of the rows begin, the first one left out; ascending."""
    times = np.concatenate([np.linspace(group.first, group.last, _POINTS) for group in groups])
    order = np.argsort(times, kind="stable")
    shares = np.cumsum(np.repeat([group.rows / _POINTS for group in groups], _POINTS)[order])
    places = np.searchsorted(shares, shares[-1] * np.arange(1, count) / count, side="right")
    cuts = {int(times[order[place]]) for place in places}
    return tuple(sorted(cuts - {int(times[order[0]])}))


def _relation(df: DataFrame, time: str) -> Any | None:
    """The table of Parquet files in Java whose rows `df` has, all of them and with their own times."""
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
    return next((each for each in outputs if each.rpartition("#")[0] == name), None)


def _groups(df: DataFrame, relation: Any, time: str) -> list[Group]:
    """Row groups of the files, evenly chosen; none where a footer does not say between which times it is."""
    files = _spread(list(relation.inputFiles()), _FILES)
    groups: list[Group] = []
    for file in files:
        with _row_groups(df, file) as every:
            chosen = _spread(range(every.size()), max(1, _GROUPS // len(files)))
            if not chosen:
                continue
            place, tick = _column(every.get(0).getColumns(), time)
            for number in chosen:
                told = every.get(number).getColumns().get(place)
                group = _group(told, tick, every.size() / len(chosen))
                if group is None:
                    return []
                groups.append(group)
    return groups


@contextmanager
def _row_groups(df: DataFrame, file: str) -> Iterator[Any]:
    """What the footer of a Parquet file says of its row groups, in Java."""
    java: Any = df.sparkSession._jvm  # noqa: SLF001 (there is no public way)
    settings = df._jdf.sparkSession().sessionState().newHadoopConf()  # noqa: SLF001
    path = java.org.apache.hadoop.fs.Path(java.java.net.URI(file))  # Spark gives names encoded
    opened = java.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, settings)
    reader = java.org.apache.parquet.hadoop.ParquetFileReader.open(opened)
    try:
        yield reader.getFooter().getBlocks()
    finally:
        reader.close()


def _column(columns: Any, name: str) -> tuple[int, float | None]:
    """Where the columns of a row group have this one (0 without it), and how many ticks its unit is."""
    for place in range(columns.size()):
        column = columns.get(place)
        if column.getPath().toDotString() == name:
            return place, _tick(column.getPrimitiveType().getLogicalTypeAnnotation())
    return 0, None


def _group(column: Any, tick: float | None, like: float) -> Group | None:
    """What a row group tells of its times, standing for `like` groups; None where it does not."""
    told = column.getStatistics()
    first, last = told.genericGetMin(), told.genericGetMax()
    if tick is None or not (told.hasNonNullValue() and isinstance(first, int) and isinstance(last, int)):
        return None
    return Group(column.getValueCount() * like, first * tick, last * tick)


def _tick(annotation: Any) -> float | None:
    """How many ticks the unit of an integer column is; None where it is not one of times or numbers."""
    said = "" if annotation is None else str(annotation.toString())
    if said.startswith("TIMESTAMP("):
        return _TICKS[annotation.getUnit().toString()]
    return None if said and not said.startswith("INTEGER(") else 1.0


def _spread(items: Sequence[Item], most: int) -> list[Item]:
    """At most so many of the items, evenly spread."""
    chosen = min(most, len(items))
    return [items[place * len(items) // chosen] for place in range(chosen)]
