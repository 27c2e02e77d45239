"""Files of events as a DataFrame, read by Spark with the names and types that the in-process engine sees.

The layout of text files is decided in this process, from all rows; Spark then reads by it, strictly. So
both engines see the same events, and a value that does not fit is an error, never a NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.arguments import checked
from estero.errors import DataError
from estero.events.database import lent_cursor
from estero.events.files.paths import in_store
from estero.events.files.temporary_files import is_pipe
from estero.events.inputs import Input, open_inputs
from estero.events.reading_errors import reading
from estero.events.tables.shown_types import plain_type
from estero.spark.connectors.address import located
from estero.spark.connectors.packages import session_with
from estero.spark.connectors.stores import store_address, store_frame
from estero.spark.failures import jobs
from estero.spark.files.parquet_files import parquet_frame
from estero.spark.files.partitions import finding, typed
from estero.spark.files.text_files import TextReading
from estero.spark.sessions.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OF_GLOBS = re.compile(r"[*?{}\[\]\\]")
"""The characters that have a meaning in globs of Spark."""

_ROWS = 65_536


Paths = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A file, directory or glob, or a list of these."""


@checked
def read_events(
    path: Paths,
    *,
    csv_options: Mapping[str, object] | None = None,
    master: str = "local[*]",
) -> DataFrame:
    """The events in a file, glob or directory (Parquet, CSV, JSON lines, Arrow) as a DataFrame.

    A path may also lead to a store that this Spark reads (``s3a://bucket/events.parquet``, ``hdfs://…``),
    with the suffix of its format or the format in front (``csv:s3a://…``), or to a Delta table
    (``delta:DIR``); Spark alone reads these, and options of its reader follow a ``?``. A list of paths, in
    any formats, is read as one table. Uses the running session, else starts one on `master`. Columns have
    the names and types that `Query.run` sees, with those that directories name (``year=2024``).
    `csv_options` are the same as there: DuckDB's delim, header, names, types, timestampformat, nullstr,
    quote, escape. Arrow files are read by this process and sent to Spark.

    Raises `DataError` where the files cannot be read, and `EnvironmentProblem` where Spark cannot start; a
    malformed row is found by the job that meets it.
    """
    several = _several(path)
    stores = {one: store_address(one) for one in several if in_store(one)}
    here = [one for one in several if one not in stores]
    if csv_options and not here:
        raise DataError(
            "csv_options are for files on this machine, but only Spark reads these",
            hint="write options of Spark's reader behind the path: csv:s3a://bucket/events?sep=;",
        )
    # Reports problems with files before waiting for a session.
    opened = _opened(here, csv_options) if here or not stores else []
    spark = session_with(stores.values(), master=master) if stores else local_session(master)
    frames = [store_frame(spark, store) for store in stores.values()]
    frames += [_without_kinds(_frame(spark, source, csv_options), source) for source in opened]
    return _together(frames)


def _opened(path: Paths, csv_options: Mapping[str, object] | None) -> list[Input]:
    """The input at a path, or those at several; raises `DataError` for anything else."""
    several = _several(path)
    if not several:
        raise DataError("the list of paths is empty")
    return list(open_inputs(several, csv_options).values())


def _several(path: Paths) -> list[str]:
    """The paths, one or more."""
    several = [path] if isinstance(path, str | PathLike) else path
    return [fspath(one) for one in several]


def _frame(spark: SparkSession, source: Input, csv_options: Mapping[str, object] | None) -> DataFrame:
    """The events of one input as a DataFrame."""
    if source.stream is not None:
        with reading(source.file):
            return spark.createDataFrame(_plain(source.stream(None).read_all()))
    _check_colons(source.files)
    if source.layout is not None:
        options = (csv_options or {}) if source.layout.form == "csv" else {}
        parts = TextReading.of(source.layout, options)
        named = () if source.partitions is None else source.partitions.names
        with jobs(), finding(spark, source.partitions) as reader:
            frames = [
                replace(part, beside=named).load(reader(), [as_named(file) for file in part.files])
                for part in parts
            ]
        return typed(_together(frames), source.partitions)
    with jobs():
        return parquet_frame(spark, source.files, list(map(as_named, source.files)), source.partitions)


def _without_kinds(frame: DataFrame, source: Input) -> DataFrame:
    """The frame with columns of NULLs where a Parquet file has no type for them; Spark reads integers."""
    from pyspark.sql.functions import lit

    untyped = [field.name for field in source.written or () if pa.types.is_null(field.type)]
    return frame.withColumns({name: lit(None) for name in untyped}) if untyped else frame


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows; a column that a frame does not have is NULL in its rows."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def check_rows(path: Paths, csv_options: Mapping[str, object] | None = None) -> None:
    """Reads every row of text files in this process; a malformed one raises `DataError` with file and line.

    Spark reports that a row is malformed, but not which one. The content of a pipe is already consumed, and
    stores are only read by Spark.
    """
    here = [one for one in _several(path) if not in_store(one)]
    if not here or any(map(is_pipe, here)):
        return
    for source in _opened(here, csv_options):
        if source.layout is not None:
            with lent_cursor() as connection, reading(source.file):
                for _ in connection.sql(source.layout.query).to_arrow_reader(_ROWS):
                    pass


def as_named(path: str) -> str:
    """The path of an existing file with this name, in which no character is part of a glob.

    >>> as_named("/data/[a].csv")
    'file:///data/\\\\[a\\\\].csv'
    """
    return path if "://" in path else OF_GLOBS.sub(r"\\\g<0>", located(path))


def _check_colons(paths: Iterable[str]) -> None:
    """Raises `DataError` for a file with a colon in its name: Hadoop takes the part before for a scheme."""
    for path in paths:
        if ":" in Path(path).name:
            raise DataError("Spark cannot read a file with a colon in its name", file=path, hint="rename it")


def _plain(table: pa.Table) -> pa.Table:
    """The table without dictionaries and views, which Spark does not accept."""
    return table.cast(pa.schema([field.with_type(plain_type(field.type)) for field in table.schema]))
