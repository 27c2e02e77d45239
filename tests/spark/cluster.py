"""A program of its own: recognition with executors that are processes; prints one line of JSON.

It runs beside the tests, because a process has one Spark session and theirs is local. The directory given as
argument becomes Spark's home, linked to that of the installed package, so that what Spark's standalone
workers write does not land beside the package.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet
import pyspark

import estero
from estero.engine.compiled.kernel_files import DIRECTORY
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
    """What each query finds, in one process and on the cluster, and how often kernels were compiled."""
    _link_home(home)
    os.environ[DIRECTORY] = str(home / "kernels of the driver")
    spark = _session(home, 2)
    try:
        found = {
            "keyed": _found(spark, KEYED),
            "global": _found(spark, GLOBAL),
            "after an executor was killed": _found(spark, KEYED, kill=home / "killed"),
            "killed": (home / "killed").exists(),
            "a stream whose executor was killed": _streamed(spark, KEYED, home),
            "killed on a stream": (home / "killed-stream").exists(),
        }
    finally:
        spark.stop()
    found["executors"], found["compilations"] = _logged(home / "work")
    found |= _sent(home / "later")
    sys.stdout.write(json.dumps(found) + "\n")


def _session(home: Path, executors: int) -> SparkSession:
    """A session whose executors have a directory of kernels of their own."""
    return local_session(
        f"local-cluster[{executors},1,1024]",
        shuffle_partitions=4,
        java_options=QUICK_JAVA,
        config={
            "spark.executor.extraJavaOptions": QUICK_JAVA,
            f"spark.executorEnv.{DIRECTORY}": str(home / "kernels"),
            "spark.executorEnv.TMPDIR": str(home / "tmp"),
        },
    )


def _sent(home: Path) -> dict[str, object]:
    """What a new executor finds and compiles, now that the driver has run the query itself."""
    home.mkdir()
    before = os.environ["SPARK_HOME"]
    _link_home(home)
    program = [sys.executable, __file__, "sent", str(home)]
    ran = subprocess.run(program, capture_output=True, text=True, check=True)
    os.environ["SPARK_HOME"] = before
    executors, compilations = _logged(home / "work")
    return {
        "with sent kernels": json.loads(ran.stdout.splitlines()[-1]),
        "executors with sent kernels": executors,
        "compilations with sent kernels": compilations,
        "sent kernels": len(list((home / "kernels").rglob("*.nbc"))),
    }


def _run_with_sent(home: Path) -> None:
    spark = _session(home, 1)
    try:
        found = _found(spark, KEYED)
    finally:
        spark.stop()
    sys.stdout.write(json.dumps(found) + "\n")


def _logged(work: Path) -> tuple[int, int]:
    """How many executors there were, and how many times kernels were compiled there."""
    logs = [log.read_text(errors="replace") for log in work.glob("*/*/stderr")]
    return len(logs), sum(log.count("estero: compiling kernels") for log in logs)


def _link_home(home: Path) -> None:
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
    if sys.argv[1] == "sent":
        _run_with_sent(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]))
