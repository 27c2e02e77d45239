"""Files of events as a DataFrame, read by Spark with the names and types that the in-process engine sees.

DuckDB looks at the first rows and says how the files are written; Spark then reads all of it, strictly.
So both engines see the same events, and a value that does not fit is an error, never a NULL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from estero.errors import DataError
from estero.pipeline.csv_files import options_of, with_dialect
from estero.pipeline.inputs import files_of, format_of, open_input, opening
from estero.pipeline.reading_errors import reading
from estero.pipeline.report import plain_type
from estero.pipeline.spark.failures import jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

OF_GLOBS = re.compile(r"[*?{}\[\]\\]")
"""The letters that mean something in a glob of Spark's."""

_ROWS = 65_536
_NOTHING = "(empty)"
"""How DuckDB writes that a CSV file has no quotes, or no escapes."""

_CODES = {"Y": "yyyy", "m": "MM", "d": "dd", "H": "HH", "M": "mm", "S": "ss", "f": "SSSSSS", "%": "%"}


def read_events(
    spark: SparkSession, path: str | PathLike[str], *, csv_options: Mapping[str, object] | None = None
) -> DataFrame:
    """The events in a file, glob or directory of Parquet, CSV, JSON lines or Arrow files.

    `csv_options` are those of DuckDB that say how a CSV file is written: delim, header, names, types,
    timestampformat, nullstr, quote, escape. Arrow files are read by this process and sent to Spark.
    Raises `DataError` where the files cannot be read; a malformed row is found by the job that meets it.
    """
    name = fspath(path)
    found = open_input(name, csv_options)
    files = files_of(name)
    form = format_of(files[0], csv_options)
    if form == "parquet":
        with jobs():
            return spark.read.parquet(*map(as_named, files))
    if found.stream is not None:
        with reading(name):
            return spark.createDataFrame(_plain(found.stream().read_all()))
    schema, options = text_layout(name, files[0], form, csv_options)
    reader = spark.read.schema(schema).options(mode="FAILFAST", **options).format(form)
    return reader.load([as_named(file) for file in files])


def text_layout(
    path: str, file: str, form: str, csv_options: Mapping[str, object] | None = None
) -> tuple[StructType, dict[str, Any]]:
    """The columns of the JSON or CSV files at `path`, and options with which Spark reads them as DuckDB does.

    `file` is one of them. Raises `DataError` where they cannot be read.
    """
    found = open_input(path, csv_options)
    connection = duckdb.connect()
    with opening(found, connection):
        schema = connection.sql(f"{found.query} LIMIT 0").to_arrow_table().schema
    return _spark_schema(schema), {} if form == "json" else _csv_dialect(file, csv_options or {})


def check_rows(path: str | PathLike[str], csv_options: Mapping[str, object] | None = None) -> None:
    """Reads every row of text files in this process; a malformed one is a `DataError` with file and line.

    Spark says that a row is malformed, and not which one.
    """
    name = fspath(path)
    found = open_input(name, csv_options)
    if found.query is not None:
        connection = duckdb.connect()
        with opening(found, connection):
            for _ in connection.sql(found.query).to_arrow_reader(_ROWS):
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
    """The same for what is named, and found already: no letter of it means more than itself.

    >>> as_named("/data/[a].csv")
    'file:///data/\\\\[a\\\\].csv'
    """
    return path if "://" in path else OF_GLOBS.sub(r"\\\g<0>", located(path))


def _plain(table: pa.Table) -> pa.Table:
    """The table without the dictionaries and views that Spark does not take."""
    return table.cast(pa.schema([field.with_type(plain_type(field.type)) for field in table.schema]))


def _spark_schema(schema: pa.Schema) -> StructType:
    """The schema for Spark; what it has no type for is read as text."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StringType, StructField, StructType

    fields = []
    for field in schema:
        try:
            spark_type = from_arrow_type(field.type, prefer_timestamp_ntz=True)
        except PySparkException:
            spark_type = StringType()
        fields.append(StructField(field.name, spark_type))
    return StructType(fields)


def _csv_dialect(file: str, options: Mapping[str, object]) -> dict[str, Any]:
    """Options of Spark's CSV reader for a file that DuckDB reads with `options`."""
    given = "".join(f", {name} = {value}" for name, value in options_of(with_dialect(file, options)))
    with reading(file):
        sniffed = duckdb.connect().sql(f"FROM sniff_csv(?{given})", params=[file])
        found = dict(zip(sniffed.columns, sniffed.fetchall()[0], strict=True))
    if found["SkipRows"]:
        raise DataError(
            f"the header is below {found['SkipRows']} other lines, which Spark cannot skip",
            file=file,
            hint="remove them",
        )
    dialect = {
        "sep": found["Delimiter"],
        "quote": _or_nothing(found["Quote"]),
        "escape": _or_nothing(found["Escape"]),
        "header": bool(found["HasHeader"]),
        "nullValue": str(options.get("nullstr", "")),
        # A row with too few values is an error even where the query needs only those that are there.
        "columnPruning": False,
    }
    if found["TimestampFormat"]:
        dialect["timestampNTZFormat"] = dialect["timestampFormat"] = _java_format(found["TimestampFormat"])
    return dialect


def _or_nothing(text: str) -> str:
    return "" if text == _NOTHING else text


def _java_format(strptime: str) -> str:
    """A format such as ``%Y%m%d%H%M`` in Java's letters.

    >>> _java_format("%d/%m/%YT%H:%M")
    "dd/MM/yyyy'T'HH:mm"
    """
    unknown = [code for code in re.findall(r"%(.)", strptime) if code not in _CODES]
    if unknown:
        raise DataError(f"Spark reads no timestamps with %{unknown[0]}: the format is {strptime}")
    quoted = re.sub(r"(?<![%A-Za-z])([A-Za-z]+)|(?<=%[A-Za-z])([A-Za-z]+)", r"'\1\2'", strptime)
    return re.sub(r"%(.)", lambda found: _CODES[found[1]], quoted)
