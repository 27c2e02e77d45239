"""An address → a streaming DataFrame of events."""

from __future__ import annotations

import json
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estero.addresses import Address
from estero.arguments import checked
from estero.errors import DataError
from estero.events.files.paths import files_of, names_file
from estero.events.inputs import open_input
from estero.spark.connectors.address import located, source_address
from estero.spark.connectors.packages import connecting, stream_session
from estero.spark.failures import first_sentence, jobs
from estero.spark.files import files
from estero.spark.files.text_files import TextReading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

_SCHEMA_HINT = "a schema is written as column TYPE, …: kind STRING, time TIMESTAMP, price DOUBLE"
_EVENTS = (".parquet", ".csv", ".jsonl", ".ndjson", ".arrow", ".feather")
_OF_JSON = {
    "mode",
    "timestampFormat",
    "timestampNTZFormat",
    "dateFormat",
    "primitivesAsString",
    "allowNumericLeadingZeros",
    "allowNonNumericNumbers",
    "allowSingleQuotes",
}
"""The options for reading a message, which are not for Kafka's reader."""


@checked
def read_stream(source: str, *, schema: str | PathLike[str] | StructType | None = None) -> DataFrame:
    """The events at an address, present and future, as a streaming DataFrame.

    `source` is ``parquet:DIR``, ``json:DIR`` or ``csv:DIR``, a directory or glob in which files appear;
    ``kafka://HOST:PORT/TOPIC``, messages of JSON; or ``delta:DIR``. Options of Spark's reader follow a ``?``,
    as in ``parquet:DIR?maxFilesPerTrigger=10``. `schema` is that of the events: a schema in Spark's syntax
    ("kind STRING, time TIMESTAMP"), a file with one, or a file with events; by default that of files that
    exist already. Uses the running session, else `stream_session`.

    Raises `DataError` for a text that is not an address or a schema, and `EnvironmentProblem` where a
    connector is missing. A value that does not fit the schema fails the query that meets it; with the option
    ``mode=PERMISSIVE`` it is NULL.
    """
    spark, place = stream_session(source), source_address(source)
    stated = None if schema is None else schema_of(schema)
    with connecting(place):
        if place.scheme == "kafka":
            return _kafka(spark, place, stated)
        if place.scheme == "delta":
            return _reader(spark, "delta", place.options).load(located(place.place))
        return _files(spark, place, stated)


def schema_of(schema: str | PathLike[str] | StructType) -> StructType:
    """A schema from its DDL, from a file with that or with Spark's JSON, or from a file of events.

    Raises `DataError` if it cannot be read.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    if isinstance(schema, StructType):
        return schema
    text = fspath(schema).strip()
    if names_file(text):
        if Path(text).suffix.lower() in _EVENTS:
            return files.read_events(text).schema
        text = Path(text).read_text(encoding="utf-8").strip()
    try:
        columns = StructType.fromJson(json.loads(text)) if text.startswith("{") else StructType.fromDDL(text)
    except (PySparkException, ValueError, KeyError, TypeError) as error:
        reason = first_sentence(str(error))
        raise DataError(f"the schema cannot be read: {reason}", hint=_SCHEMA_HINT) from error
    if not isinstance(columns, StructType):
        raise DataError(f"the schema is one type without columns: {text}", hint=_SCHEMA_HINT)
    return columns


def _kafka(spark: SparkSession, address: Address, schema: StructType | None) -> DataFrame:
    """The JSON in the values of a topic's messages; a message without a value is left out."""
    from pyspark.sql import functions as F  # noqa: N812

    if schema is None:
        raise DataError(
            f"{address}: messages do not say what columns they have: name a schema", hint=_SCHEMA_HINT
        )
    passed_on = {name: value for name, value in address.options.items() if name not in _OF_JSON}
    reading = {"mode": "FAILFAST"} | {
        name: value for name, value in address.options.items() if name in _OF_JSON
    }
    asked = {"startingOffsets": "earliest"} | passed_on
    servers = {"kafka.bootstrap.servers": address.place, "subscribe": address.name}
    messages = _reader(spark, "kafka", asked | servers).load()
    value = F.from_json(F.col("value").cast("string"), schema, reading)
    return messages.where("value IS NOT NULL").select(value.alias("event")).select("event.*")


def _files(spark: SparkSession, address: Address, schema: StructType | None) -> DataFrame:
    options: dict[str, Any] = {} if address.scheme == "parquet" else {"mode": "FAILFAST"}
    if address.scheme == "csv" and schema is not None:
        options["header"] = True
    if schema is None:
        known = _columns_of_files(spark, address)
        if isinstance(known, TextReading):
            return known.follow(spark.readStream, _watched(address.place), address.options)
        schema = known
    reader = _reader(spark, address.scheme, options | address.options)
    return reader.schema(schema).load(_watched(address.place))


def _columns_of_files(spark: SparkSession, address: Address) -> StructType | TextReading:
    """The columns of the files that exist: their schema, and for text how it is read."""
    if "://" in address.place:
        reader = spark.read.format(address.scheme).options(**address.options)
        return reader.load(address.place).schema
    try:
        present = files_of(address.place)
    except DataError as error:
        raise DataError(
            error.message,
            file=address.place,
            hint=f"name a schema, and the files can come later; {_SCHEMA_HINT}",
        ) from error
    if len(present) > 1:
        for file in present:
            _check_letters(file)
    if address.scheme == "parquet":
        with jobs():
            return spark.read.parquet(*map(files.as_named, present)).schema
    layout = open_input(address.place).layout
    if layout is None or layout.form != address.scheme:
        raise DataError(f"these are not {address.scheme.upper()} files", file=address.place)
    readings = TextReading.of(layout, {})
    if len(readings) > 1:
        raise DataError(
            "the columns are in another order than in the first file, and Spark goes by their places",
            file=readings[1].files[0],
        )
    return readings[0]


def _watched(path: str) -> str:
    """The path of a directory or glob; for a file, a glob for it alone, since Spark cannot watch a file.

    Raises `DataError` for a directory that Spark cannot follow.
    """
    place = Path(path)
    if "://" in path or not place.exists():
        return located(path)
    if place.is_dir():
        _check_letters(path)
        return located(path)
    if files.OF_GLOBS.search(str(place.absolute())):
        return files.as_named(path)
    return located(str(place.with_name(f"[{place.name[0]}]{place.name[1:]}")))


def _check_letters(path: str) -> None:
    """Raises `DataError` for a path with characters of globs.

    If one file of a micro-batch has them, Spark takes all files for globs and reads them again.
    """
    if odd := files.OF_GLOBS.search(str(Path(path).absolute())):
        raise DataError(
            f"Spark does not follow files with {odd[0]} in their names", file=path, hint="rename it"
        )


def _reader(spark: SparkSession, form: str, options: dict[str, Any]) -> DataStreamReader:
    return spark.readStream.format(form).options(**options)
