"""``python stopped_stream.py DIRECTORY``: a stream that kills its own Java process, once.

The files of DIRECTORY/events are recognized into DIRECTORY/answers. In the middle of the first micro-batch
that has an answer with event number `FATAL`, when turns have been taken and nothing is committed, the process
of driver and executor is killed, unless DIRECTORY/killed is there.
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

SCHEMA = "type STRING, ts TIMESTAMP, k BIGINT, n BIGINT"
QUERY = "SELECT a[n], b[n] WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 40 SECONDS"
FATAL = 100

Batches = Iterator[pa.RecordBatch]


def recognized(spark: SparkSession, place: Path, **how: object) -> DataFrame:
    """The stream of all files, one in each micro-batch."""
    from estero.spark import recognize

    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet((place / "events").as_uri())
    return recognize(df, QUERY, type="type", time="ts", **how)  # type: ignore[arg-type]


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


def written(found: DataFrame, place: Path) -> None:
    """Runs a stream until all files are recognized."""
    sink = found.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    sink.trigger(availableNow=True).start(str(place / "answers")).awaitTermination()


def main(place: Path) -> None:
    """Starts or goes on."""
    from estero.pipeline.spark.session import local_session

    spark = local_session("local[2]", shuffle_partitions=2, java_options="-XX:TieredStopAtLevel=1")
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    written(once(recognized(spark, place), place / "killed", lambda: os.kill(java, signal.SIGKILL)), place)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
