"""``python stopped_stream.py DIRECTORY [delta JARS]``: streams that kill their own Java process, once.

The files of DIRECTORY/events are recognized into DIRECTORY/answers/NAME by each of the queries at once. With
Delta, its connector in JARS, events and answers are tables, the first is given what is in DIRECTORY/files,
file by file, and only the first query runs. In the middle of the first micro-batch that has an answer with
event number `FATAL`, when turns have been taken and nothing is committed, the process of driver and executor
is killed, unless DIRECTORY/killed is there; the other queries are then wherever they are.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PAIRS = "SELECT a[n], b[n] WHERE A AS a ; B AS b"
QUERIES = {
    "keys": f"{PAIRS} PARTITION BY [k] WITHIN 40 SECONDS",
    "forgotten": f"{PAIRS} WITHIN 9 SECONDS CONSUME BY ANY",
    "not followed": "SELECT a[n] WHERE A AS a ; NOT(B) FOR 25 SECONDS PARTITION BY [k]",
    "how far": "SELECT a[n], b[n] WHERE A AS a ; B AS b ; A AS c PARTITION BY [k] WITHIN 45 SECONDS",
}
WITH_PARTIALS = "how far"
"""Of this query partial matches are given, too."""
FATAL = 100

Batches = Iterator[pa.RecordBatch]


def recognized(place: Path, form: str = "parquet", name: str = "keys") -> DataFrame:
    """The answers of a query over the stream of all files, one in each micro-batch."""
    from estero.spark import read_stream, recognize

    df = read_stream(f"{form}:{place}/events?maxFilesPerTrigger=1")
    partials = name == WITH_PARTIALS
    return recognize(df, QUERIES[name], type="type", time="ts", partitions=4, partials=partials)


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


def started(found: DataFrame, place: Path, form: str = "parquet", name: str = "keys") -> StreamingQuery:
    """A stream that ends when all files are recognized."""
    from estero.spark import write_stream

    answers, state = f"{form}:{place}/answers/{name}", place / "checkpoint" / name
    return write_stream(found, answers, checkpoint=state, trigger="available-now")


def written(found: DataFrame, place: Path, form: str = "parquet") -> None:
    """Runs the first query until all files are recognized."""
    started(found, place, form).awaitTermination()


def main(place: Path, form: str = "parquet", jars: str = "") -> None:
    """Starts or goes on."""
    spark = session(form, jars)
    if form == "delta" and not (place / "events").exists():
        for file in sorted((place / "files").iterdir()):
            spark.read.parquet(file.as_uri()).write.format(form).mode("append").save(str(place / "events"))
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    stop = partial(once, mark=place / "killed", stop=lambda: os.kill(java, signal.SIGKILL))
    run(place, form, QUERIES if form == "parquet" else ["keys"], stop)


def run(
    place: Path,
    form: str = "parquet",
    names: Iterable[str] = QUERIES,
    watched: Callable[[DataFrame], DataFrame] = lambda found: found,
) -> None:
    """Runs queries side by side until all files are recognized; their answers are `watched`."""
    running = [started(watched(recognized(place, form, name)), place, form, name) for name in names]
    for query in running:
        query.awaitTermination()


def session(form: str, jars: str) -> SparkSession:
    """A small one, with the connector of Delta where that is the form."""
    if form == "delta":
        from estero.spark import stream_session

        small = {"spark.sql.shuffle.partitions": "2", "spark.databricks.delta.snapshotPartitions": "2"}
        files = [str(jar) for jar in sorted(Path(jars).glob("*.jar"))]
        return stream_session("delta:events", "delta:answers", master="local[2]", jars=files, config=small)
    from estero.spark import local_session

    quick_java = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    return local_session("local[2]", shuffle_partitions=2, java_options=quick_java)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
