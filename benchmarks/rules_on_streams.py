"""``python -m benchmarks.rules_on_streams``: events per second of a hundred rules on a stream of Spark.

A thousand keys, and a name in each event of which five rules want one; from Parquet files to Parquet files,
with a checkpoint. Rows are first compared, as multisets, with those of this process. The first micro-batches
are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import estero
from benchmarks.rules import number_of_names, rule_texts
from estero.spark import local_session, recognize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = 1_000
SCHEMA = "type STRING, name STRING, ts TIMESTAMP, key BIGINT"
START = 1_700_000_000_000_000
WARM = 3
"""Micro-batches at the begin that are not timed."""


def rules_of(number: int) -> estero.RuleSet:
    """So many sequences of three events of a key, with names, in a window of 40 events of the key."""
    window = f"PARTITION BY [key] WITHIN {40 * KEYS} MICROSECONDS"
    texts = rule_texts(number)
    return estero.rules({name: text.replace("WITHIN 300 EVENTS", window) for name, text in texts.items()})


def events(first: int, count: int, rules: int) -> pa.Table:
    """Events number `first` to `first + count - 1`, one for each microsecond."""
    draw = np.random.default_rng([first, rules])
    kinds = pa.DictionaryArray.from_arrays(draw.integers(0, 3, count).astype(np.int8), list("ABC"))
    names = [f"n{number}" for number in range(number_of_names(rules))]
    of_names = pa.DictionaryArray.from_arrays(draw.integers(0, len(names), count).astype(np.int32), names)
    return pa.table(
        {
            "type": kinds.cast(pa.string()),
            "name": of_names.cast(pa.string()),
            "ts": pa.array(START + np.arange(first, first + count), pa.timestamp("us", "UTC")),
            "key": draw.integers(0, KEYS, count),
        }
    )


def stream(
    spark: SparkSession, rules: estero.RuleSet, place: Path, batches: int, size: int
) -> list[dict[str, Any]]:
    """Recognizes files that it writes, one in each micro-batch; what Spark says of each micro-batch."""
    (place / "events").mkdir(parents=True)
    for number in range(batches):
        file = place / "events" / f"{number:05}.parquet"
        table = events(number * size, size, len(rules))
        pa.parquet.write_table(table, file, row_group_size=max(1, size // 4))
        os.utime(file, (START // 1_000_000 + number,) * 2)
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{place}/events")
    sink = recognize(df, rules, type="type", time="ts").writeStream.format("parquet")
    query = sink.option("checkpointLocation", f"{place}/state").trigger(availableNow=True)
    running = query.start(f"{place}/answers")
    running.awaitTermination()
    return [json.loads(progress.json) for progress in running.recentProgress]


def check(spark: SparkSession, rules: estero.RuleSet, place: Path) -> int:
    """Compares the rows with those of this process; how many there are. Raises where they differ."""
    stream(spark, rules, place, 3, 100_000)
    rows = spark.read.parquet(f"{place}/answers").toArrow()
    right = rules.run(f"{place}/events/*.parquet", type="type", time="ts").to_arrow()
    if not right.num_rows or _counted(rows) != _counted(right):
        raise ValueError(f"{rows.num_rows} rows, and {right.num_rows} are expected")
    return int(right.num_rows)


def _counted(rows: pa.Table) -> Counter[str]:
    return Counter(repr(list(row.values())) for row in rows.to_pylist())


def main() -> None:
    """Checks, then times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", type=int, default=100)
    parser.add_argument("--size", type=int, default=500_000, help="events of a micro-batch")
    parser.add_argument("--batches", type=int, default=6, help="timed micro-batches")
    parser.add_argument("--cores", type=int, default=2)
    asked = parser.parse_args()
    rules = rules_of(asked.rules)
    spark = local_session(f"local[{asked.cores}]", shuffle_partitions=asked.cores)
    with tempfile.TemporaryDirectory(prefix="estero-rules-") as directory:
        place = Path(directory)
        print(f"{check(spark, rules, place / 'check'):,} rows are right", flush=True)
        reports = stream(spark, rules, place / "timed", WARM + asked.batches, asked.size)
        answers = spark.read.parquet(f"{place}/timed/answers").count()
        spark.stop()
    steady = [report for report in reports if report["numInputRows"]][WARM:]
    times = [report["durationMs"]["triggerExecution"] for report in steady]
    state = max(report["observedMetrics"]["estero"]["state_bytes"] for report in steady)
    print(
        f"{asked.rules} rules: {asked.size * len(times) / sum(times) * 1000:,.0f} events/s, micro-batches of "
        f"{asked.size:,} in {np.median(times):,.0f} ms (median), {answers:,} rows, "
        f"{state / 1e6:.1f} MB of state"
    )


if __name__ == "__main__":
    main()
