"""A streaming DataFrame of complex events → an address, with a checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, BinaryIO

from estero.errors import DataError
from estero.spark.connectors import postgresql
from estero.spark.connectors.address import Address, sink_address
from estero.spark.connectors.kept import check_kept
from estero.spark.connectors.packages import connecting
from estero.spark.connectors.trigger import trigger_of
from estero.spark.files.files import located
from estero.spark.frames import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructField

ANSWERS = "estero_answers"
"""The name under which a query's progress says how many complex events each batch has."""

_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
}
"""With the microseconds that Spark's own formats leave out."""

_JSON = _TIMES | {"ignoreNullFields": "false"}
_OF_FILES = {"json": _JSON, "csv": _TIMES | {"header": "true", "escape": '"'}}


def start_stream(
    matches: DataFrame,
    address: str | Address,
    *,
    checkpoint: str | PathLike[str],
    trigger: str | None = None,
    output: BinaryIO | None = None,
) -> StreamingQuery:
    """Starts to write `matches` to `address`; the query, which goes on until it is stopped.

    What was read and found is kept in the directory `checkpoint`: a query with the same one goes on where
    it stopped. `trigger` is an interval ("10 seconds"), or "available-now" to end when everything that
    is there has been read; without it a batch begins when the last one ends. Files, Delta and PostgreSQL
    have each complex event once, whatever breaks in between; Kafka and the console may have those of the
    last batch again. `output` is what the console writes to, else standard output.

    Raises `DataError` where the address or trigger is none, for a checkpoint that is none and a directory
    that something else has written to, and `EnvironmentProblem` where a connector is missing.
    """
    from pyspark.sql import functions as F  # noqa: N812

    place = sink_address(address) if isinstance(address, str) else address
    when = trigger_of(trigger)
    check_kept(fspath(checkpoint), place)
    counted = matches.observe(ANSWERS, F.count(F.lit(1)).alias("answers"))
    with connecting(place):
        if place.scheme == "console":
            writer = counted.writeStream.foreachBatch(_printed(output or sys.stdout.buffer))
        else:
            writer = _WRITERS.get(place.scheme, _files)(counted, place)
        writer = writer.option("checkpointLocation", located(fspath(checkpoint)))
        return writer.trigger(**when).start()


def _files(matches: DataFrame, address: Address) -> DataStreamWriter:
    given: Mapping[str, Any] = _OF_FILES.get(address.scheme, {})
    frame = _flat(matches) if address.scheme == "csv" else matches
    writer = frame.writeStream.format(address.scheme).options(**{**given, **address.options})
    return writer.option("path", located(address.place)).outputMode("append")


def _kafka(matches: DataFrame, address: Address) -> DataStreamWriter:
    """One message for each complex event: its columns as JSON; the option ``key`` names one to be its key."""
    from pyspark.sql import functions as F  # noqa: N812

    options = dict(address.options)
    key = options.pop("key", None)
    if key is not None and key not in matches.columns:
        known = ", ".join(matches.columns)
        raise DataError(f"{address}: there is no column {key!r} to be the key; there are {known}")
    columns: list[Column] = [] if key is None else [F.col(quoted(key)).cast("string").alias("key")]
    columns.append(F.to_json(F.struct(*map(quoted, matches.columns)), _JSON).alias("value"))
    servers = {"kafka.bootstrap.servers": address.place, "topic": address.name}
    return matches.select(*columns).writeStream.format("kafka").options(**options, **servers)


def _postgresql(matches: DataFrame, address: Address) -> DataStreamWriter:
    nested = tuple(each.name for each in matches.schema if _is_nested(each))
    table = postgresql.table_of(address, nested)
    table.prepare(matches.sparkSession)
    return _flat(matches).writeStream.foreachBatch(table.write_batch)


def _printed(output: BinaryIO) -> Callable[[DataFrame, int], None]:
    """Writes a batch as JSON lines, in order of ends."""
    from estero.spark.batch.collected import Collected

    def write(batch: DataFrame, _number: int) -> None:
        Collected(batch).write(output, format="jsonl")
        output.flush()

    return write


def _flat(matches: DataFrame) -> DataFrame:
    """Lists of events as JSON text, for what has no nested columns."""
    from pyspark.sql import functions as F  # noqa: N812

    return matches.select(
        *(
            F.to_json(quoted(each.name), _JSON).alias(each.name, metadata=each.metadata)
            if _is_nested(each)
            else F.col(quoted(each.name))
            for each in matches.schema
        )
    )


def _is_nested(column: StructField) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    return isinstance(column.dataType, ArrayType | MapType | StructType)


_WRITERS = {"kafka": _kafka, "postgresql": _postgresql}
