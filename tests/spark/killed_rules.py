"""``python -m spark.killed_rules PLACE``: rules on streams, while they change and processes are killed.

A driver of its own runs the streams of `spark.rule_streams` in PLACE: rules of a directory to all sinks that
are asked for, side by side, and a fixed set to files. This process writes the files and the rules, kills
workers of Python, executors and the driver (SIGKILL) at moments that a seed draws, one after the other, and
starts the driver again where it has died. At last the rows of each sink are compared with what this process
finds, and have to be there once; Kafka may have a message twice, with the same id.

    python -m spark.killed_rules /tmp/soak --to files --to kafka --to postgresql --workers 100 --drivers 20
    python -m spark.killed_rules /tmp/soak --to files --executors 20 --master 'local-cluster[2,1,1024]'
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from repository import REPOSITORY
from spark.cluster import QUICK_JAVA, link_home
from spark.rule_streams import FIXED, RuleStreams, drawn_rule, told, written
from waiting import FAR_OFF

KINDS = {
    "worker": "pyspark.daemon",
    "executor": "CoarseGrainedExecutorBackend",
    "driver": "SparkSubmit",
}
"""The victims, and words of their command lines; workers are what the daemon has forked."""
SIZE = 40
"""Events of a file."""
_MOST_FILES = 3
"""Files that wait for the slowest stream."""
_MOST_AT_ONCE = 3
"""Kills without a micro-batch that is done between them; none behind that of a driver."""
_LAZY_STARTS = 10
"""Starts of a driver, one after the other, that end by themselves with nothing done."""


@dataclass(slots=True)
class Soak:
    """Streams whose driver is a process; `draw` says what comes, changes and dies, and when.

    `lost` are drivers that have ended by themselves, because a machine was too slow for Spark.
    """

    streams: RuleStreams
    draw: random.Random
    killed: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    _time: int = 0
    _files: int = 0
    _done: int = -1
    _starts: int = 0
    _lazy: int = 0
    _unseen: int = 0
    _killed_driver: bool = False
    _driver: subprocess.Popen[bytes] | None = None

    def run(self, kills: Mapping[str, int], seconds: float = FAR_OFF) -> None:
        """Kills so many of each kind, in as many seconds at most, and waits for the end."""
        victims = [kind for kind, number in kills.items() for _ in range(number)]
        self.draw.shuffle(victims)
        with self.killing(victims, seconds):
            (self.streams.place / "done").touch()
            while self._running().wait(FAR_OFF) != 0:
                pass

    @contextmanager
    def killing(self, victims: Sequence[str], seconds: float = FAR_OFF) -> Iterator[None]:
        """Kills one of each of these kinds, in order; a driver that is left ends with the block."""
        try:
            self._begin()
            self._kill_all(victims, time.monotonic() + seconds)
            yield
        finally:
            if self._driver is not None and self._driver.poll() is None:
                os.killpg(self._driver.pid, signal.SIGKILL)
                self._driver.wait(FAR_OFF)

    def _begin(self) -> None:
        place = self.streams.place
        (place / "events").mkdir(parents=True)
        (place / "rules").mkdir()
        self.streams.write()
        if self.streams.master.startswith("local-cluster"):
            (place / "home").mkdir()
            link_home(place / "home")
        self._change()

    def _kill_all(self, victims: Sequence[str], end: float) -> None:
        for kind in victims:
            if self._files - min(self.streams.batches()) < _MOST_FILES:
                self._arrive()
            if self.draw.random() < 0.5:
                self._change()
            if time.monotonic() > end:
                break
            self._kill(kind)
        self._arrive()

    def _running(self) -> subprocess.Popen[bytes]:
        """The driver, started again where it has died."""
        if self._driver is not None and self._driver.poll() in (None, 0):
            return self._driver
        if self._driver is not None and not self._killed_driver:
            self.lost += 1
            self._lazy += 1
            if self._lazy > _LAZY_STARTS:
                last = self.streams.place / f"driver{self._starts}.log"
                raise RuntimeError(f"the driver ends by itself: see {last}")
        self._killed_driver = False
        self._starts += 1
        command = [sys.executable, "-m", "spark.rule_streams", str(self.streams.place)]
        tests = os.pathsep.join([str(REPOSITORY / "tests"), os.environ.get("PYTHONPATH", "")])
        environment = {
            "SPARK_SUBMIT_OPTS": QUICK_JAVA,
            **os.environ,
            "PYTHONPATH": tests.strip(os.pathsep),
        }
        with (self.streams.place / f"driver{self._starts}.log").open("wb") as log:
            self._driver = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env=environment
            )
        return self._driver

    def _arrive(self) -> None:
        """One more file of events."""
        rows: list[dict[str, Any]] = []
        for _ in range(SIZE):
            self._time += self.draw.choice([0, 1, 1, 3])
            numbers = {"n": self.draw.randrange(5), "x": self.draw.randrange(9)}
            number = self._files * SIZE + len(rows)
            rows.append({"kind": self.draw.choice("ABCD"), "t": self._time, **numbers, "id": number})
        file = self.streams.place / "events" / f"{self._files:05}.parquet"
        hidden = file.with_name(f".{file.name}")
        pa.parquet.write_table(pa.Table.from_pylist(rows), hidden)
        os.utime(hidden, (1_000_000_000 + self._files,) * 2)
        hidden.rename(file)
        self._files += 1

    def _change(self) -> None:
        """Another rule comes, changes or goes."""
        directory = self.streams.place / "rules"
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
        """Kills a process of a kind at some moment, some of them before a further micro-batch is done."""
        until = time.monotonic() + FAR_OFF
        moment = time.monotonic() + self.draw.random() * 2
        while time.monotonic() < until:
            driver, batches = self._running(), self.streams.batches()
            if (done := sum(batches)) > self._done:
                self._done, self._lazy, self._unseen = done, 0, 0
            may = all(batches) and self._unseen < _MOST_AT_ONCE
            if may and time.monotonic() > moment and self._killed_one(kind, driver):
                return
            time.sleep(0.05)
        raise TimeoutError(f"there is no {kind} to kill")

    def _killed_one(self, kind: str, driver: subprocess.Popen[bytes]) -> bool:
        """Whether there was one of a kind below a driver to kill."""
        with suppress(IndexError, ProcessLookupError):
            os.kill(self.draw.choice(victims_of(driver.pid, KINDS[kind])), signal.SIGKILL)
            self.killed[kind] += 1
            self._unseen += 1
            if kind == "driver":
                self._killed_driver, self._unseen = True, _MOST_AT_ONCE
                driver.wait(FAR_OFF)
            return True
        return False


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
    if word == KINDS["worker"]:
        return sorted(pid for pid in named if parents[pid] in named)
    return sorted(named)


# ------------------------------------------------------------------------------------------ the sinks


@dataclass(frozen=True, slots=True)
class Target:
    """A sink: its address, and how its rows are read. `twice` says whether one may be there again."""

    address: str
    rows: Callable[[], list[dict[str, Any]]]
    twice: bool = False


def files_target(place: Path) -> Target:
    """Files of Parquet."""
    return Target(f"parquet:{place}/answers/files", lambda: written(place / "answers" / "files"))


@contextmanager
def target(kind: str, place: Path) -> Iterator[Target]:
    """A sink with what it needs."""
    from connectors.servers import PASSWORD, kafka, postgresql, run_sql
    from connectors.tables import delta_rows
    from connectors.topics import make_topic, receive

    match kind:
        case "files":
            yield files_target(place)
        case "delta":
            yield Target(f"delta:{place}/answers/delta", lambda: delta_rows(place / "answers" / "delta"))
        case "kafka":
            (place / "kafka").mkdir(parents=True)
            with kafka(place / "kafka") as broker:
                make_topic(broker, "answers", 2)
                yield Target(f"kafka://{broker}/answers", lambda: receive(broker, "answers"), twice=True)
        case _:
            os.environ["PGPASSWORD"] = PASSWORD
            with postgresql() as server:
                rows = "SELECT to_json(a) FROM answers a"
                yield Target(
                    f"postgresql://estero@{server}/weather/answers",
                    lambda: [json.loads(row) for row in run_sql(server, rows)],
                )


def check(streams: RuleStreams, targets: Mapping[str, Target]) -> dict[str, str]:
    """How many rows each stream has; raises where they are not those of this process, each once."""
    counts = {}
    for name, sink in targets.items():
        rows, expected = sink.rows(), told(streams.changing_rows(name))
        by_id = {row["answer_id"]: row for row in rows}
        again = len(rows) - len(by_id)
        if told(by_id.values()) != expected or (again and not sink.twice):
            raise AssertionError(f"{name}: {len(rows)} rows, {again} again; expected are {len(expected)}")
        if told(rows) != told(by_id[row["answer_id"]] for row in rows):
            raise AssertionError(f"{name}: rows with one id differ")
        counts[name] = f"{len(expected)}" + (f" (and {again} again)" if sink.twice else "")
    if streams.fixed:
        rows, expected = written(streams.place / "answers" / FIXED), told(streams.fixed_rows())
        if told(rows) != expected:
            raise AssertionError(f"{FIXED}: {len(rows)} rows, and {len(expected)} are expected")
        counts[FIXED] = f"{len(expected)}"
    return counts


def main() -> None:
    """Kills what is asked for, and checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", type=Path)
    parser.add_argument("--to", action="append", choices=("files", "kafka", "postgresql", "delta"))
    parser.add_argument("--master", default="local[2,100]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60, help="how long to kill, at most")
    parser.add_argument("--only-changing", action="store_true", help="without the stream of a fixed set")
    for kind in KINDS:
        parser.add_argument(f"--{kind}s", type=int, default=0, help="how many to kill")
    asked = parser.parse_args()
    place = asked.place.absolute()
    with ExitStack() as things:
        kinds = asked.to or ["files"]
        targets = {kind: things.enter_context(target(kind, place)) for kind in kinds}
        jars: tuple[str, ...] = ()
        if set(kinds) != {"files"}:
            from connectors.servers import spark_jars

            jars = tuple(map(str, sorted(spark_jars().glob("*.jar"))))
        sinks = {kind: sink.address for kind, sink in targets.items()}
        streams = RuleStreams(place, asked.master, sinks, jars, fixed=not asked.only_changing)
        soak, begun = Soak(streams, random.Random(asked.seed)), time.monotonic()
        soak.run({kind: getattr(asked, f"{kind}s") for kind in KINDS}, asked.minutes * 60)
        said = {
            "to": kinds,
            "killed": dict(soak.killed),
            "drivers lost": soak.lost,
            "micro-batches": sum(streams.batches()),
            "seconds": round(time.monotonic() - begun),
            "rows": check(streams, targets),
        }
        sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
