"""``python -m benchmarks.rules_on_streams``: events per second of a hundred rules on a stream of Spark.

A thousand keys, and a name in each event of which five rules want one; from Parquet files to Parquet files,
with a checkpoint. Rows are first compared, as multisets, with those of this process. The first micro-batches
are not counted. Tasks share the keys, and events are shown by their times; with ``--positions`` one task
numbers all events. Seconds of CPU are those of Java and of all workers.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import estero
from benchmarks.rules import number_of_names, rule_texts
from estero.spark import local_session, recognize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    spark: SparkSession, rules: estero.RuleSet, place: Path, batches: int, size: int, **how: Any
) -> tuple[list[dict[str, Any]], list[float]]:
    """Recognizes files that it writes, one in each micro-batch: what Spark says of each, and CPU seconds.

    These are the seconds that had passed when a micro-batch had been written. `how` is what `recognize` takes
    besides.
    """
    (place / "events").mkdir(parents=True)
    for number in range(batches):
        file = place / "events" / f"{number:05}.parquet"
        table = events(number * size, size, len(rules))
        pa.parquet.write_table(table, file, row_group_size=max(1, size // 4))
        os.utime(file, (START // 1_000_000 + number,) * 2)
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{place}/events")
    seconds: list[float] = []

    def write(rows: DataFrame, number: int) -> None:
        rows.write.parquet(f"{place}/answers/batch={number}")
        seconds.append(cpu_seconds())

    sink = recognize(df, rules, type="type", time="ts", **how).writeStream.foreachBatch(write)
    running = sink.option("checkpointLocation", f"{place}/state").trigger(availableNow=True).start()
    running.awaitTermination()
    return [json.loads(progress.json) for progress in running.recentProgress], seconds


def cpu_seconds() -> float:
    """The seconds of CPU of this process and all that it has started, also of those that have ended."""
    ticks, parents = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # a process that has just ended
            values = file.read_text().rpartition(")")[2].split()
            pid = int(file.parent.name)
            parents[pid], ticks[pid] = int(values[1]), sum(map(int, values[11:15]))
    own = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    return sum(ticks[pid] for pid in own) / os.sysconf("SC_CLK_TCK")


def check(spark: SparkSession, rules: estero.RuleSet, place: Path, **how: Any) -> int:
    """Compares the rows with those of this process; how many there are. Raises where they differ."""
    stream(spark, rules, place, 3, 100_000, **how)
    rows = spark.read.parquet(f"{place}/answers").drop("batch").toArrow()
    files = f"{place}/events/*.parquet"
    right = rules.run(files, type="type", time="ts").to_arrow()
    if "events" in rows.column_names:
        times = pa.parquet.read_table(f"{place}/events", columns=["ts"]).column("ts").combine_chunks()
        right = _with_times(right, times)
    if not right.num_rows or _counted(rows) != _counted(right):
        raise ValueError(f"{rows.num_rows} rows, and {right.num_rows} are expected")
    return int(right.num_rows)


def _with_times(rows: pa.Table, times: pa.Array) -> pa.Table:
    """Rows with the times of events in the place of their positions."""
    shown = [
        [(label, [{"ts": times[place].as_py()} for place in places]) for label, places in row]
        for row in rows.column("positions").to_pylist()
    ]
    kind = pa.map_(pa.string(), pa.list_(pa.struct([("ts", times.type)])))
    return rows.drop_columns(["start", "end", "positions"]).append_column("events", pa.array(shown, kind))


def _counted(rows: pa.Table) -> Counter[str]:
    return Counter(repr(list(row.values())) for row in rows.to_pylist())


def main() -> None:
    """Checks, then times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", type=int, default=100)
    parser.add_argument("--size", type=int, default=500_000, help="events of a micro-batch")
    parser.add_argument("--batches", type=int, default=6, help="timed micro-batches")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--positions", action="store_true", help="one task numbers all events")
    parser.add_argument("--partitions", type=int, help="buckets that share the keys")
    asked = parser.parse_args()
    rules, how = rules_of(asked.rules), {"positions": asked.positions, "partitions": asked.partitions}
    spark = local_session(f"local[{asked.cores}]", shuffle_partitions=asked.cores)
    with tempfile.TemporaryDirectory(prefix="estero-rules-") as directory:
        place = Path(directory)
        print(f"{check(spark, rules, place / 'check', **how):,} rows are right", flush=True)
        number = WARM + asked.batches
        reports, seconds = stream(spark, rules, place / "timed", number, asked.size, **how)
        answers = spark.read.parquet(f"{place}/timed/answers").count()
        spark.stop()
    steady = [report for report in reports if report["numInputRows"]][WARM:]
    times = [report["durationMs"]["triggerExecution"] for report in steady]
    cpu = (seconds[number - 1] - seconds[WARM - 1]) / asked.batches
    state = max(report["observedMetrics"]["estero"]["state_bytes"] for report in steady)
    print(
        f"{asked.rules} rules: {asked.size * len(times) / sum(times) * 1000:,.0f} events/s, micro-batches of "
        f"{asked.size:,} in {np.median(times):,.0f} ms (median) and {cpu:.2f} s of CPU, {answers:,} rows, "
        f"{state / 1e6:.1f} MB of state"
    )


if __name__ == "__main__":
    main()
