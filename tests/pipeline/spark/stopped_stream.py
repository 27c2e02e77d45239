"""``python stopped_stream.py DIRECTORY [delta JARS]``: a stream that kills its own Java process, once.

The files of DIRECTORY/events are recognized into DIRECTORY/answers. With Delta, its connector in JARS, both
are tables, and the first is given what is in DIRECTORY/files, file by file. In the middle of the first
micro-batch that has an answer with event number `FATAL`, when turns have been taken and nothing is committed,
the process of driver and executor is killed, unless DIRECTORY/killed is there.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERY = "SELECT a[n], b[n] WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 40 SECONDS"
FATAL = 100

Batches = Iterator[pa.RecordBatch]


def recognized(place: Path, form: str = "parquet") -> DataFrame:
    """The stream of all files, one in each micro-batch."""
    from estero.spark import read_stream, recognize

    df = read_stream(f"{form}:{place}/events?maxFilesPerTrigger=1")
    return recognize(df, QUERY, type="type", time="ts")


def once(found: DataFrame, mark: Path, stop: Callable[[], None]) -> DataFrame:
    """The same rows; the first time that there is event number `FATAL`, `stop` is called."""

    def watch(batches: Batches) -> Batches:
        for batch in batches:
            numbers = {event["n"] for row in batch.to_pylist() for event in row["a"]}
            if FATAL in numbers and not mark.exists():
                mark.touch()
                stop()
            yield batch

    return found.mapInArrow(watch, found.schema)


def written(found: DataFrame, place: Path, form: str = "parquet") -> None:
    """Runs a stream until all files are recognized."""
    from estero.spark import write_stream

    answers, state = f"{form}:{place}/answers", place / "checkpoint"
    write_stream(found, answers, checkpoint=state, trigger="available-now").awaitTermination()


def main(place: Path, form: str = "parquet", jars: str = "") -> None:
    """Starts or goes on."""
    spark = session(form, jars)
    if form == "delta" and not (place / "events").exists():
        for file in sorted((place / "files").iterdir()):
            spark.read.parquet(file.as_uri()).write.format(form).mode("append").save(str(place / "events"))
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    found = recognized(place, form)
    written(once(found, place / "killed", lambda: os.kill(java, signal.SIGKILL)), place, form)


def session(form: str, jars: str) -> SparkSession:
    """A small one, with the connector of Delta where that is the form."""
    if form == "delta":
        from estero.spark import stream_session

        small = {"spark.sql.shuffle.partitions": "2", "spark.databricks.delta.snapshotPartitions": "2"}
        files = [str(jar) for jar in sorted(Path(jars).glob("*.jar"))]
        return stream_session("delta:events", "delta:answers", master="local[2]", jars=files, config=small)
    from estero.pipeline.spark.session import local_session

    return local_session("local[2]", shuffle_partitions=2, java_options="-XX:TieredStopAtLevel=1")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
