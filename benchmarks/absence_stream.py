"""What did not happen, on streams of Spark, and partial matches there: from Parquet to Parquet files.

``python -m benchmarks.absence_stream [--batches N]``. As `benchmarks.streaming`, of which it takes events and
timing: answers are first compared with those of this process, then events per second are printed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import estero
from benchmarks.streaming import GAPS, SCHEMA, WARM, Case, write_stream
from estero.spark import local_session, recognize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Asked(Case):
    """A stream with what is asked of it: `text`, in which ``{window}`` stands for microseconds."""

    text: str = ""
    partials: bool = False

    @property
    def query(self) -> str:
        """The query; in its window a key has some relevant events."""
        return self.text.format(window=GAPS * self.keys * self.relevant)


ABSENT = "SELECT a[ts] WHERE A AS a ; NOT(B) FOR {window} MICROSECONDS PARTITION BY [key]"
FUNNEL = (
    "SELECT a[ts], b[ts], c[ts] WHERE A AS a ; B AS b ; C AS c "
    "PARTITION BY [key] WITHIN {window} MICROSECONDS"
)
CASES = (
    Asked("not followed, 1,000 keys", 1_000, 1, 150_000, 1_000_000, ABSENT),
    Asked("not followed, 100,000 keys", 100_000, 1, 50_000, 500_000, ABSENT),
    Asked("with partial matches, 1,000 keys", 1_000, 1, 50_000, 500_000, FUNNEL, partials=True),
)


def run(spark: SparkSession, case: Asked, events: Path, out: Path) -> list[dict[str, Any]]:
    """Recognizes all files, one in each micro-batch; what Spark says of each micro-batch."""
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(events.as_uri())
    answers = recognize(df, case.query, type="type", time="ts", partials=case.partials)
    sink = answers.writeStream.format("parquet").option("checkpointLocation", str(out / "checkpoint"))
    query = sink.trigger(availableNow=True).start(str(out / "answers"))
    query.awaitTermination()
    return [json.loads(progress.json) for progress in query.recentProgress]


def check(spark: SparkSession, case: Asked, place: Path) -> int:
    """Compares the rows with those of this process; how many there are. Raises where they differ."""
    write_stream(case, place / "events", 5, 40 * case.keys // 10 + 20_000)
    run(spark, case, place / "events", place)
    rows = spark.read.parquet(str(place / "answers")).toArrow().to_pylist()
    answer = estero.query(case.query).run(str(place / "events" / "*.parquet"), type="type", time="ts")
    expected = answer.to_arrow().to_pylist()
    if case.partials:
        expected += answer.partials().to_arrow().to_pylist()
    if not expected or _told(rows) != _told(expected):
        raise ValueError(f"{case.name}: {len(rows)} rows, and {len(expected)} are expected")
    return len(expected)


def _told(rows: list[dict[str, Any]]) -> Counter[str]:
    """Times and keys of rows, and the times of what they mark."""
    return Counter(
        repr(
            [
                *(row[name] for name in ("start_time", "end_time", "key")),
                *([event["ts"] for event in row[label]] for label in "abc" if label in row),
            ]
        )
        for row in rows
    )


def main() -> None:
    """Checks, then times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.absence_stream", description=__doc__)
    parser.add_argument("--batches", type=int, default=8, help="timed micro-batches of each stream")
    parser.add_argument("--cores", type=int, default=2)
    asked = parser.parse_args()
    spark = local_session(f"local[{asked.cores}]", shuffle_partitions=asked.cores)
    with tempfile.TemporaryDirectory(prefix="estero-absence-stream-") as directory:
        for number, case in enumerate(CASES):
            place = Path(directory, str(number))
            rows = check(spark, case, place / "check")
            write_stream(case, place / "events", WARM + asked.batches, case.batch)
            reports = run(spark, case, place / "events", place)
            reports = [report for report in reports if report["numInputRows"]]
            seconds = sum(report["durationMs"]["triggerExecution"] for report in reports[WARM:]) / 1000
            speed = case.batch * len(reports[WARM:]) / seconds
            state = max(report["observedMetrics"]["estero"]["state_bytes"] for report in reports[WARM:])
            print(
                f"{case.name}: {rows:,} rows are right; {speed:,.0f} events/s, {case.wanted:,} wanted; "
                f"state {state / 1e6:.1f} MB",
                flush=True,
            )
    spark.stop()


if __name__ == "__main__":
    main()
