"""A streaming DataFrame of complex events → an address, with a checkpoint."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from estero.addresses import Address
from estero.answers.answer_ids import ID
from estero.arguments import checked
from estero.errors import DataError
from estero.spark.connectors import postgresql
from estero.spark.connectors.address import located, sink_address, trigger_of
from estero.spark.connectors.packages import connecting
from estero.spark.frames import check_frame, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructField

ANSWERS = "estero_answers"
"""The name under which a query's progress reports the number of complex events of each batch."""

_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
}
"""The options for JSON, with the microseconds that Spark's own formats leave out."""

_JSON = _TIMES | {"ignoreNullFields": "false"}
_OF_FILES = {"json": _JSON, "csv": _TIMES | {"header": "true", "escape": '"'}}

_FILES = ("parquet", "json", "csv")
_NOTES = "_spark_metadata"
_OWN = "a stream with a new checkpoint needs a directory of its own"


@checked
def write_stream(
    matches: DataFrame, sink: str, *, checkpoint: str | PathLike[str], trigger: str | None = None
) -> StreamingQuery:
    """Starts writing a streaming DataFrame to an address, and returns the query, which runs until stopped.

    `sink` is as in `estero.spark.read_stream`, or ``postgresql://USER@HOST:PORT/DATABASE/TABLE``, or
    ``console``. The directory `checkpoint` keeps what has been read and recognized: started with the same
    one, a query resumes where it was. `trigger` is an interval ("10 seconds") or "available-now", which ends
    when everything available has been read; without it a batch begins when the last one has ended. Files,
    Delta and PostgreSQL receive each complex event exactly once, even after failures; Kafka and the console
    may receive those of the last batch twice, with the same ``answer_id`` (`recognize`).

    Raises `DataError` for an invalid address or trigger, for a directory that is not a checkpoint or that
    something else has written to, and for a database that does not answer, and `EnvironmentProblem` where a
    connector is missing.
    """
    from pyspark.sql import functions as F  # noqa: N812

    check_frame(matches)
    if not matches.isStreaming:
        raise DataError(
            "only a stream is written to an address, but this is a batch",
            hint="write it with matches.write, or read the events with read_stream",
        )
    place, when = sink_address(sink), trigger_of(trigger)
    _check_directories(fspath(checkpoint), place)
    counted = matches.observe(ANSWERS, F.count(F.lit(1)).alias("answers"))
    with connecting(place):
        if place.scheme == "console":
            writer = counted.writeStream.foreachBatch(_printed(sys.stdout.buffer))
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
    """One message for each complex event: its columns as JSON; the option ``key`` names one as its key.

    The id of an answer, if there is one, is also a header, as with the local engine.
    """
    from pyspark.sql import functions as F  # noqa: N812

    options = dict(address.options)
    key = options.pop("key", None)
    if key is not None and key not in matches.columns:
        known = ", ".join(matches.columns)
        raise DataError(f"{address}: there is no column {key!r} to use as the key; the columns are {known}")
    columns: list[Column] = [] if key is None else [F.col(quoted(key)).cast("string").alias("key")]
    columns.append(F.to_json(F.struct(*map(quoted, matches.columns)), _JSON).alias("value"))
    if ID in matches.columns:
        header = F.struct(F.lit(ID).alias("key"), F.col(ID).cast("binary").alias("value"))
        columns.append(F.array(header).alias("headers"))
    servers = {"kafka.bootstrap.servers": address.place, "topic": address.name}
    return matches.select(*columns).writeStream.format("kafka").options(**options, **servers)


def _postgresql(matches: DataFrame, address: Address) -> DataStreamWriter:
    nested = tuple(field.name for field in matches.schema if _is_nested(field))
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
    """Lists of events as JSON text, for sinks without nested columns."""
    from pyspark.sql import functions as F  # noqa: N812

    return matches.select(
        *(
            F.to_json(quoted(field.name), _JSON).alias(field.name, metadata=field.metadata)
            if _is_nested(field)
            else F.col(quoted(field.name))
            for field in matches.schema
        )
    )


def _is_nested(column: StructField) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    return isinstance(column.dataType, ArrayType | MapType | StructType)


_WRITERS = {"kafka": _kafka, "postgresql": _postgresql}


# ---------------------------------------------------------------------------------- directories


def _check_directories(checkpoint: str, sink: Address) -> None:
    """Raises `DataError` if a directory is not a checkpoint, or if something else has written to it.

    Spark notes in a directory of answers which batches it has. It skips a batch whose number is noted there,
    even if another stream has written it; and readers that use Spark see only what is noted. Directories in
    stores such as ``s3a://`` are not checked.
    """
    if not checkpoint.strip():
        raise DataError("the checkpoint has no name", hint="name a directory, a new one for a new query")
    kept = _local(checkpoint)
    if kept is not None:
        _check_checkpoint(kept)
    directory = _local(sink.place) if sink.scheme in _FILES else None
    if kept is not None and directory is not None:
        _check_directory(directory, _newest(kept / "offsets"))


def _check_checkpoint(place: Path) -> None:
    if place.exists() and not place.is_dir():
        raise DataError("the checkpoint is not a directory", file=str(place))
    metadata = place / "metadata"
    if metadata.is_file():
        try:
            json.loads(metadata.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DataError(
                "this is not a checkpoint, or it is damaged: its file 'metadata' is not what Spark writes "
                "there",
                file=str(place),
                hint="start with a new one, and everything is read from the beginning",
            ) from error


def _check_directory(place: Path, reached: int) -> None:
    """Raises `DataError` unless a checkpoint whose last batch is `reached` (-1: none) may write there."""
    if place.exists() and not place.is_dir():
        raise DataError("there is a file where the directory to write to should be", file=str(place))
    noted = _newest(place / _NOTES)
    if noted > reached:
        raise DataError(
            f"another stream has written here, up to batch {noted}: batches up to that one would be left out",
            file=str(place),
            hint=f"{_OWN}, or resumes with the checkpoint of the stream that has written here",
        )
    if reached < 0 and noted < 0 and place.is_dir():
        others = [file.name for file in sorted(place.iterdir()) if not file.name.startswith((".", "_"))]
        if others:
            raise DataError(
                f"the directory contains files that no stream has written, such as {others[0]}: Spark would "
                "no longer see them once a stream writes here",
                file=str(place),
                hint=_OWN,
            )


def _local(path: str) -> Path | None:
    path = path.removeprefix("file://")
    return None if "://" in path else Path(path)


def _newest(log: Path) -> int:
    """The greatest number of a batch in a log of Spark's, -1 for none."""
    names = (file.name.removesuffix(".compact") for file in log.iterdir()) if log.is_dir() else ()
    return max((int(name) for name in names if name.isdigit()), default=-1)
