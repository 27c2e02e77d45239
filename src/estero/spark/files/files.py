"""Files of events as a DataFrame, read by Spark with the names and types that the in-process engine sees.

The layout of text files is decided in this process, from all rows; Spark then reads by it, strictly. So
both engines see the same events, and a value that does not fit is an error, never a NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import reduce
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.errors import DataError
from estero.events.database import connect
from estero.events.files.temporary_files import is_pipe
from estero.events.inputs import open_input
from estero.events.reading_errors import reading
from estero.events.tables.shown_types import plain_type
from estero.spark.failures import jobs
from estero.spark.files.parquet_files import parquet_frame
from estero.spark.files.text_files import TextReading
from estero.spark.sessions.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OF_GLOBS = re.compile(r"[*?{}\[\]\\]")
"""The characters that have a meaning in globs of Spark."""

_ROWS = 65_536


def read_events(
    path: str | PathLike[str],
    *,
    csv_options: Mapping[str, object] | None = None,
    master: str = "local[*]",
) -> DataFrame:
    """The events in a file, glob or directory (Parquet, CSV, JSON lines, Arrow) as a DataFrame.

    Uses the session that is running, else starts one on `master`. Names and types of columns are those that
    `Query.run` sees in the same files. `csv_options` mean the same, too: those of DuckDB that say how
    a CSV file is written: delim, header, names, types, timestampformat, nullstr, quote, escape. Arrow files
    are read by this process and sent to Spark.

    Raises `DataError` where the files cannot be read, and `EnvironmentProblem` where Spark cannot start; a
    malformed row is found by the job that meets it.
    """
    found = open_input(fspath(path), csv_options)  # says what is wrong before a session is waited for
    spark = local_session(master)
    if found.stream is None:
        _check_colons(found.files)
    if found.layout is not None:
        parts = TextReading.of(found.layout, csv_options or {})
        frames = [part.load(spark.read, [as_named(file) for file in part.files]) for part in parts]
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    if found.stream is not None:
        with reading(found.file):
            return spark.createDataFrame(_plain(found.stream(None).read_all()))
    with jobs():
        return parquet_frame(spark, found.files, list(map(as_named, found.files)))


def check_rows(path: str | PathLike[str], csv_options: Mapping[str, object] | None = None) -> None:
    """Reads every row of text files in this process; a malformed one is a `DataError` with file and line.

    Spark says that a row is malformed, and not which one. What comes through a pipe has gone by.
    """
    name = fspath(path)
    if is_pipe(name):
        return
    found = open_input(name, csv_options)
    if found.layout is not None:
        with connect() as connection, reading(found.file):
            for _ in connection.sql(found.layout.query).to_arrow_reader(_ROWS):
                pass


def located(path: str) -> str:
    """A local path with a scheme, so that Spark's default file system does not matter; nothing is encoded.

    >>> located("s3a://bucket/events")
    's3a://bucket/events'
    >>> located("/data/100% here")
    'file:///data/100% here'
    """
    return path if "://" in path else f"file://{Path(path).absolute()}"


def as_named(path: str) -> str:
    """The same for a file that was found by this name: none of its characters is part of a glob.

    >>> as_named("/data/[a].csv")
    'file:///data/\\\\[a\\\\].csv'
    """
    return path if "://" in path else OF_GLOBS.sub(r"\\\g<0>", located(path))


def _check_colons(paths: Iterable[str]) -> None:
    """Raises `DataError` for a file with a colon in its name: Hadoop takes what is before it for a scheme."""
    for path in paths:
        if ":" in Path(path).name:
            raise DataError("Spark cannot read a file with a colon in its name", file=path, hint="rename it")


def _plain(table: pa.Table) -> pa.Table:
    """The table without the dictionaries and views that Spark does not take."""
    return table.cast(pa.schema([field.with_type(plain_type(field.type)) for field in table.schema]))
