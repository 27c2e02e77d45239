"""A program of its own: recognition with executors that are processes; prints one line of JSON.

It runs beside the tests, because a process has one Spark session and theirs is local. The directory given as
argument becomes Spark's home, linked to that of the installed package, so that what Spark's standalone
workers write does not land beside the package.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet
import pyspark

import estero
from estero.spark import local_session, recognize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUICK_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
EVENTS = 20_000
KEYED = """
    SELECT a, b WHERE A AS a ; B AS b FILTER a[id % 7 = 0] AND b[id % 5 = 0]
    PARTITION BY [key] WITHIN 400 [ts]
"""
GLOBAL = "SELECT a, b WHERE A AS a ; B AS b FILTER a[id % 700 = 0] AND b[id % 5 = 0] WITHIN 90 [ts]"


def main(home: Path) -> None:
    """What each query finds, in one process and on the cluster, and how many executors there were."""
    link_home(home)
    spark = _session(home, 2)
    try:
        found = {
            "global": _found(spark, GLOBAL),
            "after an executor was killed": _found(spark, KEYED, kill=home / "killed"),
            "killed": (home / "killed").exists(),
            "a stream whose executor was killed": _streamed(spark, KEYED, home),
            "killed on a stream": (home / "killed-stream").exists(),
        }
    finally:
        spark.stop()
    found["executors"] = len(list((home / "work").glob("*/*/stderr")))
    sys.stdout.write(json.dumps(found) + "\n")


def _session(home: Path, executors: int) -> SparkSession:
    """A session whose executors are processes with a temporary folder of their own."""
    return local_session(
        f"local-cluster[{executors},1,1024]",
        shuffle_partitions=4,
        java_options=QUICK_JAVA,
        config={
            "spark.executor.extraJavaOptions": QUICK_JAVA,
            "spark.executorEnv.TMPDIR": str(home / "tmp"),
        },
    )


def link_home(home: Path) -> None:
    """Makes a directory Spark's home, linked to that of the installed package."""
    for each in Path(pyspark.__file__).parent.iterdir():
        if each.name != "work":
            (home / each.name).symlink_to(each)
    (home / "tmp").mkdir()
    os.environ["SPARK_HOME"] = str(home)


def _found(spark: SparkSession, query: str, kill: Path | None = None) -> list[list[list[int]]]:
    """[what one process finds, what the cluster finds], as sorted ids."""
    events = spark.createDataFrame(_rows().to_pandas()).repartition(4)
    if kill is not None:
        events = _one_executor_dies(events, kill)
    shared = recognize(events, query, type="kind", time="ts", partitions=4).toArrow()
    return [_alone(query), _ids(shared)]


def _rows() -> pa.Table:
    numbers = range(EVENTS)
    return pa.table(
        {
            "id": list(numbers),
            "kind": ["A" if n % 3 == 0 else "B" for n in numbers],
            "key": [n * n % 11 for n in numbers],
            "ts": list(numbers),
        }
    )


def _alone(query: str) -> list[list[int]]:
    return _ids(estero.query(query).run(_rows(), type="kind", time="ts").to_arrow())


def _streamed(spark: SparkSession, query: str, home: Path) -> list[list[list[int]]]:
    """[what one process finds, what three micro-batches find, an executor being killed in the second]."""
    rows = _rows()
    (home / "events").mkdir()
    for part, first in enumerate(range(0, EVENTS, EVENTS // 3 + 1)):
        some = rows.slice(first, EVENTS // 3 + 1)
        pa.parquet.write_table(some, home / "events" / f"{part}.parquet")
        os.utime(home / "events" / f"{part}.parquet", (part + 1, part + 1))
    schema = "id BIGINT, kind STRING, key BIGINT, ts BIGINT"
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(home / "events"))
    dying = _one_executor_dies(stream, home / "killed-stream", after=EVENTS // 3 + 1)
    found = recognize(dying, query, type="kind", time="ts", partitions=4)
    writer = found.writeStream.format("parquet").option("checkpointLocation", str(home / "checkpoint"))
    running = writer.trigger(availableNow=True).start(str(home / "matches"))
    running.awaitTermination()
    return [_alone(query), _ids(spark.read.parquet(str(home / "matches")).toArrow())]


def _one_executor_dies(events: DataFrame, note: Path, after: int = 0) -> DataFrame:
    """The same events, but the first task that reads one with this id or a greater one kills its executor."""

    def deadly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if max(batch.column("id").to_pylist(), default=-1) < after:
                yield batch
                continue
            try:
                note.touch(exist_ok=False)
            except FileExistsError:
                yield batch
            else:
                daemon = os.getppid()
                status = Path(f"/proc/{daemon}/status").read_text()
                (executor,) = (
                    int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid")
                )
                os.kill(executor, 9)

    return events.mapInArrow(deadly, events.schema)


def _ids(answer: pa.Table) -> list[list[int]]:
    pairs = zip(answer["a"].to_pylist(), answer["b"].to_pylist(), strict=True)
    return sorted([[event["id"] for event in events] for a, b in pairs for events in [a + b]])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
