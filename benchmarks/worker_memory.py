"""The memory of a Python worker on Spark, by the number of events and by what the window holds.

    python -m benchmarks.worker_memory

One task reads all events, so one worker holds whatever has to be held. Its peak is sampled from /proc.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from estero.spark import local_session, recognize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERY = "SELECT a, b WHERE A AS a ; B AS b FILTER b[v = 999] PARTITION BY [k] WITHIN {window} [ts] LIMIT 1"


@dataclass(frozen=True, slots=True)
class Case:
    """A stream of `events` over `keys` partitions, two of three open a match; one event has each time."""

    events: int
    keys: int
    window: int


CASES = (
    Case(1_000_000, 1, 1_000),
    Case(10_000_000, 1, 1_000),
    Case(10_000_000, 1_000, 1_000),
    Case(10_000_000, 1_000_000, 1_000),
    Case(10_000_000, 1, 100_000),
    Case(10_000_000, 1, 1_000_000),
)


def main() -> None:
    """Prints one line for each case; each has a worker of its own."""
    print(f"{'events':>12} {'keys':>10} {'window':>10} {'peak MB':>8}")
    for case in CASES:
        spark = local_session("local[1]", shuffle_partitions=1, config={"spark.driver.memory": "2g"})
        with Peak() as peak:
            recognize(_events(spark, case), QUERY.format(window=case.window), type="kind", time="ts").count()
        spark.stop()
        print(f"{case.events:>12,} {case.keys:>10,} {case.window:>10,} {peak.kilobytes // 1024:>8,}")


def _events(spark: SparkSession, case: Case) -> DataFrame:
    return spark.range(0, case.events, numPartitions=1).selectExpr(
        f"id % {case.keys} AS k",
        "IF(id % 3 = 0, 'B', 'A') AS kind",
        "id AS ts",
        "concat('some text ', id) AS text",
        "id % 1000 AS v",
    )


class Peak:
    """The largest resident set of a Python process below this one while the block runs, in kilobytes."""

    kilobytes = 0

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            processes = dict(filter(None, map(_status, Path("/proc").glob("[0-9]*/status"))))
            own = {os.getpid()}
            for _ in range(4):  # this process, Java, the daemon of workers, workers
                own |= {pid for pid, (parent, _, _) in processes.items() if parent in own}
            for pid in own - {os.getpid()}:
                _, peak, name = processes.get(pid, (0, 0, ""))
                if name.startswith("python"):
                    self.kilobytes = max(self.kilobytes, peak)


def _status(file: Path) -> tuple[int, tuple[int, int, str]] | None:
    """Process, (its parent, its largest resident set in kilobytes, its name); None where it has ended."""
    try:
        text = file.read_text()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    peak = int(fields.get("VmHWM", "0 kB").split()[0])
    return int(fields["Pid"]), (int(fields["PPid"]), peak, fields["Name"].strip())


if __name__ == "__main__":
    main()
