"""``python -m benchmarks.streaming``: events per second of streams on Spark, from Parquet to Parquet files.

A stream of files is recognized with a checkpoint, its state in RocksDB. Answers are first compared, as
multisets, with those that this process finds in the same files; then a longer stream is timed, without the
micro-batches at its begin, where Python workers start. Small micro-batches are timed by stage, in a process
for each of several settings, once Java has compiled what they need (``--small`` times nothing else).
Prints what it measures; ``--out`` writes it as JSON, and ``--write`` makes STREAMING.md of it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import estero
from estero.spark import local_session, recognize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent
SCHEMA = "type STRING, ts TIMESTAMP, key BIGINT, price DOUBLE"
START = 1_700_000_000_000_000
GAPS = 4
"""The window of a key has so many of its relevant events, on average."""


@dataclass(frozen=True, slots=True)
class Case:
    """A stream with an event for each microsecond: of `keys` keys, one in `relevant` of a type asked for.

    `wanted` events per second are to be reached, `batch` are in a micro-batch.
    """

    name: str
    keys: int
    relevant: int
    wanted: int
    batch: int

    @property
    def query(self) -> str:
        """Three events of a key in order; the last one is rare, so that answers are fewer than events."""
        window = GAPS * self.keys * self.relevant
        return (
            "SELECT a[ts, price], b[ts, price], c[ts, price] WHERE A AS a ; B AS b ; C AS c "
            f"PARTITION BY [key] WITHIN {window} MICROSECONDS"
        )

    def events(self, first: int, count: int) -> pa.Table:
        """Events number `first` to `first + count - 1`; blocks that begin anywhere are drawn anew."""
        draw = np.random.default_rng([first, self.keys, self.relevant])
        kinds = np.array(["A", "B", "C", "X", "Y", "Z"])
        asked = np.array([0.49, 0.49, 0.02]) / self.relevant
        others = np.full(3, (1 - 1 / self.relevant) / 3)
        kind = kinds[draw.choice(6, count, p=[*asked, *others])]
        return pa.table(
            {
                "type": pa.array(kind),
                "ts": pa.array(START + np.arange(first, first + count), pa.timestamp("us", "UTC")),
                "key": pa.array(draw.integers(0, self.keys, count)),
                "price": pa.array(draw.integers(0, 10_000, count) / 100),
            }
        )


CASES = (
    Case("1,000 keys, every event relevant", 1_000, 1, 200_000, 1_000_000),
    Case("100,000 keys, every event relevant", 100_000, 1, 50_000, 500_000),
    Case("1,000 keys, one event in twenty relevant", 1_000, 20, 1_000_000, 4_000_000),
)
LATENCIES = (1_000, 10_000, 100_000, 1_000_000)
"""Events of a micro-batch whose time is measured, of the first case."""
WARM = 3
"""Micro-batches at the begin that are not timed."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How streams of small micro-batches run; `tasks` are as many as cores unless they are given."""

    name: str
    partitions: int | None = None
    java_options: str = ""
    raw: bool = False
    tasks: int | None = None

    @property
    def config(self) -> dict[str, str]:
        """The settings of Spark: with `raw`, checkpoints on a local disk have no checksum files."""
        return {CHECKPOINT_FILES: "org.apache.hadoop.fs.local.RawLocalFs"} if self.raw else {}


CHECKPOINT_FILES = "spark.hadoop.fs.AbstractFileSystem.file.impl"
VFORK = "-Djdk.lang.Process.launchMechanism=VFORK"
SETTINGS = (
    Setting("16 buckets, as by default"),
    Setting("2 buckets", 2),
    Setting("2 buckets, processes by `VFORK`", 2, VFORK),
    Setting("the same, no checksum files", 2, VFORK, raw=True),
    Setting("the same, 1 bucket, 1 task", 1, VFORK, raw=True, tasks=1),
)
SMALL = 1_000
"""Events of a small micro-batch."""
WARM_SMALL, TIMED_SMALL = 30, 30
"""Small micro-batches that are not timed, and that are."""
WANTED_MS = 250
STAGES = ("latestOffset", "walCommit", "queryPlanning", "addBatch", "commitOffsets")
"""Parts of a micro-batch, as Spark calls them, in which it is anywhere near a millisecond."""


def write_stream(case: Case, place: Path, batches: int, size: int) -> None:
    """A file for each micro-batch, in the order of their names and of their times of change."""
    place.mkdir(parents=True)
    for number in range(batches):
        file = place / f"{number:05}.parquet"
        pa.parquet.write_table(case.events(number * size, size), file, row_group_size=max(1, size // 4))
        os.utime(file, (START // 1_000_000 + number,) * 2)


def stream(
    spark: SparkSession, case: Case, events: Path, out: Path, partitions: int | None = None
) -> list[dict[str, Any]]:
    """Recognizes all files, one in each micro-batch; what Spark says of each micro-batch."""
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(events.as_uri())
    answers = recognize(df, case.query, type="type", time="ts", partitions=partitions)
    sink = answers.writeStream.format("parquet").option("checkpointLocation", str(out / "checkpoint"))
    query = sink.trigger(availableNow=True).start(str(out / "answers"))
    query.awaitTermination()
    return [json.loads(progress.json) for progress in query.recentProgress]


def check(spark: SparkSession, case: Case, place: Path) -> int:
    """Compares the answers with those of this process; how many there are. Raises where they differ."""
    size = 40 * case.keys * case.relevant // 10 + 20_000
    write_stream(case, place / "events", 5, size)
    stream(spark, case, place / "events", place)
    rows = spark.read.parquet(str(place / "answers")).toArrow().to_pylist()
    answer = estero.query(case.query).run(str(place / "events" / "*.parquet"), type="type", time="ts")
    expected = answer.to_arrow().drop_columns(["start", "end"]).to_pylist()
    for row in expected:
        for label in "abc":
            row[label] = [{"ts": event["ts"], "price": event["price"]} for event in row[label]]
    if not expected or Counter(map(repr, rows)) != Counter(map(repr, expected)):
        raise ValueError(f"{case.name}: {len(rows)} answers, and {len(expected)} are expected")
    return len(expected)


def timed(spark: SparkSession, case: Case, place: Path, batches: int, size: int) -> dict[str, Any]:
    """Events per second, milliseconds of a micro-batch, and the state."""
    write_stream(case, place / "events", batches, size)
    reports = [report for report in stream(spark, case, place / "events", place) if report["numInputRows"]]
    steady = reports[WARM:]
    times = [report["durationMs"]["triggerExecution"] for report in steady]
    state = max(report["observedMetrics"]["estero"]["state_bytes"] for report in steady)
    return {
        "events/s": round(size * len(steady) / sum(times) * 1000),
        "events": size * batches,
        "events of a micro-batch": size,
        "answers": spark.read.parquet(str(place / "answers")).count(),
        "median ms": float(np.median(times)),
        "longest ms": max(times),
        "state bytes": state,
        "state bytes per key": round(state / case.keys, 1),
        "commit ms": float(np.median([report["stateOperators"][0]["commitTimeMs"] for report in steady])),
    }


def small(setting: Setting, cores: int) -> dict[str, float]:
    """Median milliseconds of a small micro-batch of the first case, in all and by stage; in a new session."""
    case = CASES[0]
    spark = local_session(
        f"local[{cores}]",
        shuffle_partitions=setting.tasks or cores,
        java_options=setting.java_options,
        config=setting.config,
    )
    with tempfile.TemporaryDirectory(prefix="estero-streaming-") as directory:
        place = Path(directory)
        write_stream(case, place / "events", WARM_SMALL + TIMED_SMALL, SMALL)
        reports = stream(spark, case, place / "events", place, setting.partitions)
        spark.stop()  # it looks after the files of state while it runs
    steady = [report for report in reports if report["numInputRows"]][WARM_SMALL:]
    stages = {
        name: float(np.median([report["durationMs"].get(name, 0) for report in steady]))
        for name in ("triggerExecution", *STAGES)
    }
    commits = [report["stateOperators"][0]["commitTimeMs"] for report in steady]
    return stages | {"commit of state": float(np.median(commits))}


def small_ones(cores: int) -> dict[str, dict[str, float]]:
    """The same for each of the settings, in a process of its own, which has one Java process."""
    times = {}
    for setting in SETTINGS:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            times[setting.name] = pool.submit(small, setting, cores).result()
        print(f"{setting.name}: {times[setting.name]}", flush=True)
    return times


def page_of_small(times: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The table of small micro-batches."""
    lines = [
        "",
        f"Micro-batches of {SMALL:,} events, by stage, in median milliseconds after {WARM_SMALL} of them; at",
        f"most {WANTED_MS} are wanted with the last settings, which",
        "[Streams on Spark](../docs/streaming.md#small-micro-batches) explains. State is committed, once for",
        "each task, inside `addBatch`.",
        "",
        f"| settings | in all | {' | '.join(f'`{name}`' for name in STAGES)} | commit of state |",
        "|---|" + "---:|" * (len(STAGES) + 2),
    ]
    for name, got in times.items():
        cells = [f"{got[stage]:,.0f}" for stage in ("triggerExecution", *STAGES, "commit of state")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def page(figures: dict[str, Any]) -> str:
    """STREAMING.md."""
    setting, cases, latency = figures["setting"], figures["cases"], figures["latency"]
    head = f"""\
# Streams on Spark

Made by `python -m benchmarks.streaming --write`: Parquet files to Parquet files, with a checkpoint, state in
RocksDB, on {setting["machine"]}, {setting["versions"]}. Answers are compared with those of the
in-process engine first. The first {WARM} micro-batches are not counted. A key has {GAPS} relevant events in
its window, on average; the state has them, and the partial matches.

| stream | wanted events/s | events/s | micro-batch | median ms | answers | state | bytes per key |
|---|---|---|---|---|---|---|---|"""
    lines = [head]
    for case in CASES:
        got = cases[case.name]
        speed = f"{case.wanted:,} | **{got['events/s']:,}** | {got['events of a micro-batch']:,}"
        state = f"{got['state bytes'] / 1e6:,.1f} MB | {got['state bytes per key']:,}"
        lines.append(f"| {case.name} | {speed} | {got['median ms']:,.0f} | {got['answers']:,} | {state} |")
    lines += [
        "",
        f"The time of a micro-batch by its size ({CASES[0].name}): from trigger to answers.",
        "",
        "| events of a micro-batch | median ms | longest ms | events/s |",
        "|---|---|---|---|",
    ]
    for size in LATENCIES:
        got = latency[str(size)]
        lines.append(f"| {size:,} | {got['median ms']:,.0f} | {got['longest ms']:,} | {got['events/s']:,} |")
    return "\n".join([*lines, *page_of_small(figures["small"])]) + "\n"


def measured(spark: SparkSession, place: Path, batches: int, scale: float) -> dict[str, Any]:
    """All figures; answers are checked first."""
    for number, case in enumerate(CASES):
        print(f"{case.name}: {check(spark, case, place / f'check{number}'):,} answers are right", flush=True)
    cases, latency = {}, {}
    for number, case in enumerate(CASES):
        cases[case.name] = timed(
            spark, case, place / f"case{number}", WARM + batches, int(case.batch * scale)
        )
        print(f"{case.name}: {cases[case.name]}", flush=True)
        shutil.rmtree(place / f"case{number}")
    for size in LATENCIES:
        latency[str(size)] = timed(spark, CASES[0], place / f"latency{size}", WARM + batches, size)
        print(f"micro-batches of {size:,}: {latency[str(size)]}", flush=True)
    return {"cases": cases, "latency": latency}


def main() -> None:
    """Checks, then times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming", description=__doc__)
    parser.add_argument("--batches", type=int, default=10, help="timed micro-batches of each stream")
    parser.add_argument("--scale", type=float, default=1.0, help="for smaller micro-batches")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="small micro-batches only; nothing is written")
    parser.add_argument("--out", type=Path, help="a file for the figures")
    parser.add_argument("--write", action="store_true", help="write STREAMING.md and results/streaming.json")
    asked = parser.parse_args()
    if asked.small:
        print("\n".join(page_of_small(small_ones(asked.cores))))
        return
    spark = local_session(f"local[{asked.cores}]", shuffle_partitions=asked.cores)
    with tempfile.TemporaryDirectory(prefix="estero-streaming-") as directory:
        figures = measured(spark, Path(directory), asked.batches, asked.scale)
    setting = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": ", ".join(f"{name} {version(name)}" for name in ("pyspark", "pyarrow", "numba")),
    }
    spark.stop()
    figures = {"setting": setting, **figures, "small": small_ones(asked.cores)}
    text = json.dumps(figures, indent=1) + "\n"
    if asked.out is not None:
        asked.out.write_text(text, encoding="utf-8")
    if asked.write:
        (HERE / "results" / "streaming.json").write_text(text, encoding="utf-8")
        (HERE / "STREAMING.md").write_text(page(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
