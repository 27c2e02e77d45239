"""Every engine that runs a query, behind one interface: a table of events in, the rows of the answer out.

The fixture `engine` (conftest.py) is each of them in turn. All but the first cut the table somewhere: into
pieces that are pushed, with a restart from a snapshot between two of them, into single events, into the tasks
of a job on Spark, and into the files that a stream on Spark reads one after the other. `make interpreted`
runs those in this process with the kernels as plain Python.
"""

from __future__ import annotations

import os
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

import estero

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from estero import ContinuousRecognizer as Recognizer
    from estero import Query

Row = dict[str, Any]
Layout = Mapping[str, Any]
"""The keyword arguments that say where the parts of an event stand."""

MOST_IN_A_PIECE = 30


class Engine(ABC):
    """What finds the complex events of a query in a table whose rows are in stream order."""

    @abstractmethod
    def rows(self, query: str, events: pa.Table, layout: Layout) -> list[Row]:
        """The rows of the answer, with positions only where the engine knows them without being asked."""


class InProcess(Engine):
    """The whole table at once, in this process."""

    def rows(self, query: str, events: pa.Table, layout: Layout) -> list[Row]:
        """The rows of the answer; as many as are counted."""
        answer = estero.query(query).run(events, **layout)
        rows: list[Row] = answer.to_arrow().to_pylist()
        assert answer.count() == len(rows)
        return rows


class Pushed(Engine):
    """A recognizer to which the table is pushed in random pieces."""

    def rows(self, query: str, events: pa.Table, layout: Layout) -> list[Row]:
        """The rows of the answers of all pushes."""
        asked = estero.query(query)
        recognizer = asked.recognizer(events.schema, **layout)
        rows: list[Row] = []
        for piece in cut(events, seed=1, most=MOST_IN_A_PIECE):
            rows += recognizer.push(piece).to_arrow().to_pylist()
            recognizer = self.gone_on(asked, recognizer)
        rows += recognizer.close().to_arrow().to_pylist()
        assert recognizer.late == 0
        return rows

    def gone_on(self, _query: Query, recognizer: Recognizer) -> Recognizer:
        """What the next piece is pushed to."""
        return recognizer


class PushedOneByOne(Engine):
    """A recognizer to which events are pushed alone, in every form, and some as a table of two."""

    def rows(self, query: str, events: pa.Table, layout: Layout) -> list[Row]:
        """The rows of the answers of all pushes."""
        recognizer = estero.query(query).recognizer(events.schema, **layout)
        rows: list[Row] = []
        for piece in cut(events, seed=3, most=2):
            for each in (piece,) if piece.num_rows > 1 else _in_some_form(piece, recognizer.position):
                rows += recognizer.push(each).to_arrow().to_pylist()
        return rows


def _in_some_form(one: pa.Table, number: int) -> Iterator[object]:
    (row,) = one.to_pylist()
    yield (row, tuple(row.values()), one, one.to_batches()[0])[number % 4]


class Restored(Pushed):
    """A recognizer that is restored from its snapshot after each piece."""

    def gone_on(self, query: Query, recognizer: Recognizer) -> Recognizer:
        """A recognizer from the snapshot."""
        return estero.restore(query, recognizer.snapshot())


class SparkBatch(Engine):
    """A job on Spark over a DataFrame that arrives from `tasks` tasks."""

    def __init__(self, spark: SparkSession, tasks: int) -> None:
        self.spark = spark
        self.tasks = tasks

    def rows(self, query: str, events: pa.Table, layout: Layout) -> list[Row]:
        """The rows of the answer."""
        from estero.spark import recognize

        frame = self.frame(events)
        rows: list[Row] = recognize(frame, query, **layout, partitions=self.tasks).toArrow().to_pylist()
        return rows

    def frame(self, events: pa.Table) -> DataFrame:
        """The events, which arrive from so many tasks in the order that they have."""
        if _has_structs(events):
            return self.spark.createDataFrame(events).coalesce(self.tasks)
        numbers = self.spark.range(0, events.num_rows, 1, self.tasks)
        columns = (f"{_value(events, name)} AS {name}" for name in events.column_names)
        return numbers.selectExpr(*columns)


class SparkStream(Engine):
    """A stream on Spark, with a micro-batch for each of a few files."""

    def __init__(self, spark: SparkSession, place: Path) -> None:
        self.spark = spark
        self.place = place

    def rows(self, query: str | Query, events: pa.Table, layout: Layout) -> list[Row]:
        """The rows of the answers of all micro-batches."""
        from estero.spark import recognize

        files(_in_three(events), self.place / "events")
        schema = self.spark.createDataFrame(events).schema
        stream = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        few = 2  # buckets: each takes its time in each micro-batch
        found = recognize(stream.parquet(str(self.place / "events")), query, **layout, partitions=few)
        writer = found.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(self.place / "checkpoint"))
        running = writer.start(str(self.place / "answers"))
        running.awaitTermination()
        assert sum(report.observedMetrics["estero"].late for report in running.recentProgress) == 0
        rows: list[Row] = self.spark.read.parquet(str(self.place / "answers")).toArrow().to_pylist()
        return rows


def _has_structs(events: pa.Table) -> bool:
    return any(map(pa.types.is_nested, events.schema.types))


_SQL_TYPES = {pa.string(): "STRING", pa.int64(): "BIGINT", pa.float64(): "DOUBLE"}


def _value(events: pa.Table, name: str) -> str:
    """The value of a column in row number `id`, in SQL."""
    column = events[name]
    if pa.types.is_null(column.type):
        return "NULL"
    values = ", ".join("NULL" if value is None else repr(value) for value in column.to_pylist())
    return f"CAST(array({values}) AS ARRAY<{_SQL_TYPES[column.type]}>)[int(id)]"


def cut(table: pa.Table, seed: int, most: int) -> Sequence[pa.Table]:
    """The table in pieces of 1 to `most` events."""
    draw, pieces, begin = random.Random(seed), [], 0
    while begin < table.num_rows:
        size = draw.randint(1, most)
        pieces.append(table.slice(begin, size))
        begin += size
    return pieces


def _in_three(table: pa.Table) -> Sequence[pa.Table]:
    """The table in three pieces, or as many as it has events."""
    places = range(1, table.num_rows)
    ends = sorted(random.Random(8).sample(places, min(2, len(places))))
    return [table.slice(begin, end - begin) for begin, end in pairwise([0, *ends, table.num_rows])]


def files(pieces: Sequence[pa.Table], place: Path) -> None:
    """A Parquet file for each piece; Spark takes them by their times."""
    place.mkdir(parents=True)
    for number, piece in enumerate(pieces):
        file = place / f"{number:03}.parquet"
        pa.parquet.write_table(piece, file)
        os.utime(file, (1_000_000_000 + number,) * 2)
