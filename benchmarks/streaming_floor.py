"""``python -m benchmarks.streaming_floor``: how long a small micro-batch takes with less in it than Estero.

The stream, the settings and the stages are those of the last row of `benchmarks.streaming --small`: 1,000
events from Parquet to Parquet, one task, state in RocksDB, no checksum files. What is done with the events
grows from nothing to a recognized query, each in a process of its own. Prints median milliseconds by stage.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.streaming import CASES, SCHEMA, SETTINGS, SMALL, STAGES, TIMED_SMALL, WARM_SMALL, write_stream
from estero.spark import local_session, recognize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ONE_BUCKET = f"{SCHEMA}, bucket INT"


def copied(events: DataFrame) -> DataFrame:
    """The events as they are."""
    return events


def through_python(events: DataFrame) -> DataFrame:
    """The same, through one Python worker."""
    return events.mapInArrow(lambda batches: batches, events.schema)


def state_in_java(events: DataFrame) -> DataFrame:
    """State that no Python sees."""
    return events.withWatermark("ts", "1 second").dropDuplicatesWithinWatermark(["key", "ts"])


def state_in_pandas(events: DataFrame) -> DataFrame:
    """One number as the state of one bucket, and the events as they are: `applyInPandasWithState`."""
    from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)
    from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

    def turn(_: object, frames: Iterator[Any], state: GroupState) -> Iterator[Any]:
        state.update((1,))
        yield from frames

    grouped = events.withColumn("bucket", F.lit(0)).groupBy("bucket")
    return grouped.applyInPandasWithState(turn, ONE_BUCKET, "n INT", "append", GroupStateTimeout.NoTimeout)


def state_by_processor(events: DataFrame) -> DataFrame:
    """The same by `transformWithStateInPandas`."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Number(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.number = handle.getValueState("number", "n INT")

        def handleInputRows(self, key: object, rows: Iterator[Any], timerValues: object) -> Iterator[Any]:  # noqa: ARG002, N802, N803
            self.number.update((1,))
            yield from rows

        def close(self) -> None:
            pass

    grouped = events.withColumn("bucket", F.lit(0)).groupBy("bucket")
    return grouped.transformWithStateInPandas(Number(), ONE_BUCKET, "append", "None")


def recognized(events: DataFrame) -> DataFrame:
    """What `benchmarks.streaming` measures."""
    return recognize(events, CASES[0].query, type="type", time="ts", partitions=1)


WAYS = (copied, through_python, state_in_java, state_in_pandas, state_by_processor, recognized)


def measured(way: Callable[[DataFrame], DataFrame]) -> dict[str, float]:
    """Median milliseconds of a micro-batch, in all and by stage."""
    setting = SETTINGS[-1]
    spark = local_session(
        "local[2]", shuffle_partitions=1, java_options=setting.java_options, config=setting.config
    )
    with tempfile.TemporaryDirectory(prefix="estero-streaming-") as directory:
        place = Path(directory)
        write_stream(CASES[0], place / "events", WARM_SMALL + TIMED_SMALL, SMALL)
        events = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        written = way(events.parquet((place / "events").as_uri())).writeStream.format("parquet")
        written = written.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True)
        query = written.start(str(place / "answers"))
        query.awaitTermination()
        reports = [json.loads(report.json) for report in query.recentProgress]
        spark.stop()
    steady = [report["durationMs"] for report in reports if report["numInputRows"]][WARM_SMALL:]
    names = ("triggerExecution", *STAGES)
    return {name: float(np.median([report.get(name, 0) for report in steady])) for name in names}


def main() -> None:
    """Measures each way in a process of its own."""
    for way in WAYS:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            sys.stdout.write(f"{way.__name__}: {pool.submit(measured, way).result()}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
