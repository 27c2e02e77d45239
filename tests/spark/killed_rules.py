"""``python -m spark.killed_rules PLACE``: rules on a stream, while they change and processes are killed.

A driver of its own recognizes the files of PLACE/events, one in each micro-batch, by the rules of the
directory PLACE/rules, which change, and by a fixed set whose keys tasks share. This process writes the files
and the rules, kills workers of Python, executors and the driver at moments that a seed draws, and starts the
driver again. At last, rows are compared with what this process finds: which rules a micro-batch had is in
the log of its checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

import estero
from estero.queries.rules.rule_texts import version_of
from repository import REPOSITORY
from spark.cluster import link_home
from spark.frames import in_any_order, with_events
from waiting import FAR_OFF

LAYOUT: dict[str, Any] = {"type": "kind", "time": "t", "time_unit": "s", "order": ["id"]}
SCHEMA = "kind STRING, t BIGINT, n BIGINT, x BIGINT, id BIGINT"
PAIR = "SELECT * WHERE {} AS one ; {} AS two FILTER two[x > {}] PARTITION BY n WITHIN {} SECONDS"
KINDS = {
    "worker": "pyspark.worker",
    "source": "python_streaming_source_runner",
    "executor": "CoarseGrainedExecutorBackend",
    "driver": "SparkSubmit",
}
"""The victims, and words of their command lines; the source is that of rules, and its end is the driver's."""
LOT = 40
"""Events of a file."""
_MOST_STARTS = 8
"""Starts of a driver that nobody has killed: on a busy machine Spark gives up a worker that starts slowly."""


def drawn_rule(draw: random.Random) -> str:
    """The text of a rule."""
    one, two = draw.choice("ABC"), draw.choice("ABC")
    return PAIR.format(one, two, draw.randrange(6), draw.choice([4, 9, 15]))


FIXED = {f"fixed {number}": drawn_rule(random.Random(number)) for number in range(12)}


# ---------------------------------------------------------------------------------------- the driver


def stream(place: Path, master: str) -> None:
    """Runs both streams until PLACE/done is there and all that was there before is recognized."""
    from estero.spark import local_session, recognize

    if master.startswith("local-cluster"):
        link_home(Path(tempfile.mkdtemp(dir=place)))
    spark = local_session(
        master,
        shuffle_partitions=2,
        java_options="-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        config={"spark.sql.streaming.minBatchesToRetain": "10000", "spark.task.maxFailures": "20"},
    )
    events = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{place}/events")
    answers = {
        "changing": recognize(events, place / "rules", **LAYOUT),
        "fixed": recognize(events, estero.rules(FIXED), **LAYOUT, positions=False, partitions=3),
    }
    running = []
    for name, rows in answers.items():
        sink = rows.writeStream.format("parquet").option("checkpointLocation", f"{place}/checkpoint/{name}")
        running.append(sink.start(f"{place}/answers/{name}"))
    done = False
    while not done:
        done = (place / "done").exists()
        for query in running:
            query.processAllAvailable()
    for query in running:
        query.stop()
    spark.stop()


# ------------------------------------------------------------------------------------------ the soak


@dataclass(slots=True)
class Soak:
    """Two streams in `place` on a `master`; `draw` says what comes, changes and dies, and when."""

    place: Path
    master: str
    draw: random.Random
    killed: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    _time: int = 0
    _files: int = 0
    _done: int = -1
    _driver: subprocess.Popen[bytes] | None = None

    def run(self, kills: Mapping[str, int], lots: int) -> None:
        """Kills so many of each kind while at least so many files come, and waits for the end."""
        try:
            self._run(kills, lots)
        finally:
            if self._driver is not None and self._driver.poll() is None:
                os.killpg(self._driver.pid, signal.SIGKILL)
                self._driver.wait(FAR_OFF)

    def _run(self, kills: Mapping[str, int], lots: int) -> None:
        (self.place / "events").mkdir(parents=True)
        (self.place / "rules").mkdir()
        self._change()
        victims = [kind for kind, number in kills.items() for _ in range(number)]
        self.draw.shuffle(victims)
        pauses = max(1, lots // max(1, len(victims)))
        for kind in victims:
            for _ in range(pauses):
                self._arrive()
                if self.draw.random() < 0.5:
                    self._change()
            self._kill(kind)
        self._arrive()
        (self.place / "done").touch()
        while self._running().wait(FAR_OFF) != 0:
            pass

    def _running(self) -> subprocess.Popen[bytes]:
        """The driver, started again where it has died."""
        if self._driver is None or self._driver.poll() not in (None, 0):
            self.starts += 1
            if self.starts > _MOST_STARTS + 2 * sum(self.killed.values()):
                raise RuntimeError(f"the driver ends by itself: see {self.place}/driver{self.starts - 1}.log")
            place = str(self.place.absolute())
            command = [sys.executable, "-m", "spark.killed_rules", place, "--driver", self.master]
            tests = os.pathsep.join([str(REPOSITORY / "tests"), os.environ.get("PYTHONPATH", "")])
            environment = {**os.environ, "PYTHONPATH": tests.strip(os.pathsep)}
            with (self.place / f"driver{self.starts}.log").open("wb") as log:
                self._driver = subprocess.Popen(
                    command, stdout=log, stderr=log, start_new_session=True, env=environment
                )
        return self._driver

    def _arrive(self) -> None:
        """One more file of events."""
        rows: list[dict[str, Any]] = []
        for _ in range(LOT):
            self._time += self.draw.choice([0, 1, 1, 3])
            numbers = {"n": self.draw.randrange(5), "x": self.draw.randrange(9)}
            number = self._files * LOT + len(rows)
            rows.append({"kind": self.draw.choice("ABCD"), "t": self._time, **numbers, "id": number})
        file = self.place / "events" / f"{self._files:05}.parquet"
        hidden = file.with_name(f".{file.name}")
        pa.parquet.write_table(pa.Table.from_pylist(rows), hidden)
        os.utime(hidden, (1_000_000_000 + self._files,) * 2)
        hidden.rename(file)
        self._files += 1

    def _change(self) -> None:
        """Another rule comes, changes or goes."""
        directory = self.place / "rules"
        names = [f"rule{number}" for number in range(6)]
        there = sorted(directory.glob("*.ceql"))
        if len(there) > 2 and self.draw.random() < 0.3:
            self.draw.choice(there).unlink()
            return
        file = directory / f"{self.draw.choice(names)}.ceql"
        hidden = file.with_suffix(".new")
        hidden.write_text(drawn_rule(self.draw), encoding="utf-8")
        hidden.rename(file)

    def _kill(self, kind: str) -> None:
        """Kills a process of a kind at some moment after further micro-batches are done."""
        until = time.monotonic() + FAR_OFF
        while time.monotonic() < until:
            driver = self._running()
            pids = victims_of(driver.pid, KINDS[kind])
            done = len(list(self.place.glob("checkpoint/*/commits/[0-9]*")))
            if pids and done > self._done:
                time.sleep(self.draw.random() * 3)
                self._done = done
                with suppress(ProcessLookupError):
                    os.kill(self.draw.choice(pids), signal.SIGKILL)
                    self.killed[kind] += 1
                    return
            time.sleep(0.1)
        raise TimeoutError(f"there is no {kind} to kill")


def victims_of(root: int, word: str) -> list[int]:
    """The processes below `root` with a word in their command lines; of workers, those that work."""
    parents, words = {}, {}
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # a process that has just ended
            status = (directory / "stat").read_text().rpartition(")")[2].split()
            parents[int(directory.name)] = int(status[1])
            words[int(directory.name)] = (directory / "cmdline").read_bytes().decode(errors="replace")
    own = {root}
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    named = {pid for pid in own - {root} if word in words.get(pid, "")}
    if word in (KINDS["worker"], KINDS["source"]):
        return sorted(pid for pid in named if parents[pid] in named)  # what the daemon has forked
    return sorted(named)


# ------------------------------------------------------------------------------------------ the check


def check(place: Path) -> dict[str, int]:
    """How many rows each stream has; raises where they are not those of this process, each once."""
    files = sorted((place / "events").glob("*.parquet"))
    table = pa.concat_tables(map(pa.parquet.read_table, files))
    right = estero.rules(FIXED).run(table, **LAYOUT).to_arrow().to_pylist()
    fixed = [with_events(row, table.to_pylist(), ("t", "id")) for row in right]
    expected = {"changing": list(changed(place, table.schema)), "fixed": fixed}
    for name, rows in expected.items():
        found = in_any_order(written(place / "answers" / name))
        if found != in_any_order(rows):
            raise AssertionError(f"{name}: {len(found)} rows, and {len(rows)} are expected")
    return {name: len(rows) for name, rows in expected.items()}


def written(sink: Path) -> list[dict[str, Any]]:
    """The rows of the files that the log of a sink names."""
    names = {Path(entry["path"]).name: None for entry in logged(sink / "_spark_metadata")}
    tables = [pa.parquet.read_table(sink / name) for name in names]
    return [row for part in tables for row in part.to_pylist()]


def logged(log: Path) -> Iterator[dict[str, Any]]:
    """The entries of a log of Spark, those of compacted files, too, in order."""
    seen: dict[str, dict[str, Any]] = {}
    for file in sorted(log.iterdir(), key=lambda file: file.name):
        if not file.name.startswith("."):
            for line in file.read_text(encoding="utf-8").splitlines()[1:]:
                entry = json.loads(line)
                seen.setdefault(entry["path"], entry)
    yield from seen.values()


def changed(place: Path, schema: pa.Schema) -> Iterator[dict[str, Any]]:
    """What the stream of changing rules should give: micro-batch by micro-batch, as its log says."""
    checkpoint = place / "checkpoint" / "changing"
    of_batch: dict[int, list[str]] = {}
    for entry in logged(next(iter(sorted((checkpoint / "sources").iterdir())))):
        of_batch.setdefault(entry["batchId"], []).append(Path(entry["path"].rpartition("/")[2]).name)
    recognizer, rules, seen, newest = None, dict[str, str](), -1, None
    for offsets in sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name)):
        _, _, events, versions = offsets.read_text(encoding="utf-8").splitlines()
        texts = json.loads(json.loads(versions)["rules"]) if versions != "-" else rules
        if recognizer is None:
            recognizer = estero.rules(texts).recognizer(schema, **LAYOUT)
        for name in rules.keys() - texts.keys() if rules else ():
            recognizer.remove(name)
        for name, text in texts.items() if rules else ():
            if name not in rules:
                recognizer.add(name, text)
            elif rules[name] != text:
                recognizer.replace(name, text)
        rules, version = texts, version_of(texts)
        last = json.loads(events)["logOffset"] if events != "-" else seen
        for number in range(seen + 1, last + 1):
            rows = [pa.parquet.read_table(place / "events" / name) for name in of_batch.get(number, ())]
            for part in rows:
                newest = part.column("t")[-1].as_py()
                yield from _with_version(recognizer.push(part).to_arrow(), version)
        if newest is not None:
            yield from _with_version(recognizer.advance(newest).to_arrow(), version)
        seen = max(seen, last)


def _with_version(rows: pa.Table, version: str) -> Iterator[dict[str, Any]]:
    yield from ({**row, "version": version} for row in rows.to_pylist())


def main() -> None:
    """Soaks, or is the driver."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", type=Path)
    parser.add_argument("--driver", help="be the driver, on this master")
    parser.add_argument("--master", default="local[2,20]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lots", type=int, default=60, help="files of events, about")
    for kind in KINDS:
        parser.add_argument(f"--{kind}s", type=int, default=0, help="how many to kill")
    asked = parser.parse_args()
    if asked.driver:
        stream(asked.place, asked.driver)
        return
    soak = Soak(asked.place, asked.master, random.Random(asked.seed))
    soak.run({kind: getattr(asked, f"{kind}s") for kind in KINDS}, asked.lots)
    said = f"killed: {dict(soak.killed)}, starts: {soak.starts}, rows: {check(asked.place)}"
    sys.stdout.write(f"{said}\n")


if __name__ == "__main__":
    main()
