"""``python -m spark.rule_streams PLACE``: rules that change on streams to several sinks, and their answers.

PLACE/streams.json says the master and the sinks. The files of PLACE/events, one in each micro-batch, are
recognized by the rules of the directory PLACE/rules into each of these sinks, and by a fixed set, whose keys
tasks share, into files, until PLACE/done is there and all that was there before is recognized. Which rules a
micro-batch had is in the log of its checkpoint: by it one process finds what each sink has to have.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

import estero
from estero.queries.rules.rule_texts import version_of
from spark.cluster import QUICK_JAVA
from spark.frames import with_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LAYOUT: dict[str, Any] = {"type": "kind", "time": "t", "time_unit": "s", "order": ["id"]}
SCHEMA = "kind STRING, t BIGINT, n BIGINT, x BIGINT, id BIGINT"
PAIR = "SELECT * WHERE {} AS one ; {} AS two FILTER two[x > {}] PARTITION BY n WITHIN {} SECONDS"
FIXED = "fixed"
"""The stream of a fixed set of rules; the others have the names of their sinks."""
_HOUR = "3600s"
_PATIENT = {
    "spark.network.timeout": _HOUR,
    "spark.worker.timeout": "3600",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.task.maxFailures": "100",
    "spark.stage.maxConsecutiveAttempts": "100",
    "spark.shuffle.io.retryWait": "200ms",
}
"""A slow machine is no failure, and whoever has been killed is started again, however often."""

_SLOW = "Python worker failed to connect back"

Row = dict[str, Any]


def drawn_rule(draw: random.Random) -> str:
    """The text of a rule."""
    one, two = draw.choice("ABC"), draw.choice("ABC")
    return PAIR.format(one, two, draw.randrange(6), draw.choice([4, 9, 15]))


RULES = {f"fixed {number}": drawn_rule(random.Random(number)) for number in range(12)}


@dataclass(frozen=True, slots=True)
class RuleStreams:
    """Streams in `place` on a `master`: of rules that change to each of `sinks`, addresses by name.

    `jars` are the files of connectors, `fixed` says whether there is the stream of a fixed set.
    """

    place: Path
    master: str
    sinks: Mapping[str, str] = field(default_factory=dict)
    jars: tuple[str, ...] = ()
    fixed: bool = True

    @classmethod
    def read(cls, place: Path) -> RuleStreams:
        """What `write` has written."""
        kept = json.loads((place / "streams.json").read_text(encoding="utf-8"))
        return cls(place, kept["master"], kept["sinks"], tuple(kept["jars"]), kept["fixed"])

    def write(self) -> None:
        """Keeps this for a driver."""
        kept = {**asdict(self), "place": None}
        (self.place / "streams.json").write_text(json.dumps(kept), encoding="utf-8")

    @property
    def names(self) -> list[str]:
        """The names of the streams."""
        return [*self.sinks, *([FIXED] if self.fixed else [])]

    def checkpoint(self, name: str) -> Path:
        """The checkpoint of a stream."""
        return self.place / "checkpoint" / name

    def session(self) -> SparkSession:
        """A session with the connectors of the sinks."""
        from estero.spark import sink_address
        from estero.spark.connectors.packages import session_with

        config = _PATIENT | {
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.minBatchesToRetain": "100000",
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.executor.extraJavaOptions": QUICK_JAVA,
        }
        places = map(sink_address, self.sinks.values())
        return session_with(places, master=self.master, jars=self.jars, config=config)

    def start(self, spark: SparkSession, name: str) -> StreamingQuery:
        """Starts or goes on with a stream."""
        from estero.spark import recognize, write_stream

        files = f"{self.place}/events"
        events = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(files)
        if name == FIXED:
            rows = recognize(events, estero.rules(RULES), **LAYOUT, positions=False, partitions=3)
            sink = f"parquet:{self.place}/answers/{FIXED}"
        else:
            rows = recognize(events, self.place / "rules", **LAYOUT, answer_ids=True)
            sink = self.sinks[name]
        return write_stream(rows, sink, checkpoint=self.checkpoint(name))

    def run(self, spark: SparkSession) -> None:
        """Recognizes until all is there.

        Spark waits for ten seconds until the Python process of the source of rules answers, and a stream ends
        where a busy machine takes longer: it is started again, as whoever looks after it would do.
        """
        from pyspark.errors import StreamingQueryException

        running: dict[str, StreamingQuery] = {}
        done = False
        while not done:
            done = (self.place / "done").exists()
            for name in self.names:  # one after the other, so that they do not wait for each other's start
                try:
                    running[name] = running.get(name) or self.start(spark, name)
                    running[name].processAllAvailable()
                except StreamingQueryException as error:
                    if _SLOW not in str(error):
                        raise
                    sys.stderr.write(f"{name}: {_SLOW}\n")
                    del running[name]
                    done = False
        for query in running.values():
            query.stop()

    def batches(self) -> list[int]:
        """How many micro-batches of each stream are done."""
        return [len(list(self.checkpoint(name).glob("commits/[0-9]*"))) for name in self.names]

    def events(self) -> pa.Table:
        """All events."""
        files = sorted((self.place / "events").glob("*.parquet"))
        return pa.concat_tables(map(pa.parquet.read_table, files))

    def fixed_rows(self) -> list[Row]:
        """What the stream of the fixed set has to give."""
        table = self.events()
        right = estero.rules(RULES).run(table, **LAYOUT).to_arrow().to_pylist()
        return [with_events(row, table.to_pylist(), ("t", "id")) for row in right]

    def changing_rows(self, name: str) -> Iterator[Row]:
        """What a stream of changing rules has to give, micro-batch by micro-batch, as its log says."""
        checkpoint = self.checkpoint(name)
        of_batch: dict[int, list[str]] = {}
        for entry in logged(next(iter(sorted((checkpoint / "sources").iterdir())))):
            of_batch.setdefault(entry["batchId"], []).append(Path(entry["path"].rpartition("/")[2]).name)
        schema = self.events().schema
        recognizer, rules, seen, newest = None, dict[str, str](), -1, None
        for offsets in sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name)):
            _, _, events, versions = offsets.read_text(encoding="utf-8").splitlines()
            texts = json.loads(json.loads(versions)["rules"]) if versions != "-" else rules
            if recognizer is None:
                recognizer = estero.rules(texts).recognizer(schema, **LAYOUT)
            elif texts != rules:
                _change(recognizer, rules, texts)
            rules, version = texts, version_of(texts)
            last = json.loads(events)["logOffset"] if events != "-" else seen
            for number in range(seen + 1, last + 1):
                for file in of_batch.get(number, ()):
                    part = pa.parquet.read_table(self.place / "events" / file)
                    newest = part.column("t")[-1].as_py()
                    yield from _with_version(recognizer.push(part).to_arrow(), version)
            if newest is not None:
                yield from _with_version(recognizer.advance(newest).to_arrow(), version)
            seen = max(seen, last)


def _change(recognizer: Any, rules: Mapping[str, str], texts: Mapping[str, str]) -> None:
    """Has a recognizer with some rules have others."""
    for name in rules.keys() - texts.keys():
        recognizer.remove(name)
    for name, text in texts.items():
        if name not in rules:
            recognizer.add(name, text)
        elif rules[name] != text:
            recognizer.replace(name, text)


def _with_version(rows: pa.Table, version: str) -> Iterator[Row]:
    yield from ({**row, "version": version} for row in rows.to_pylist())


# ------------------------------------------------------------------------------- what sinks have


def written(sink: Path) -> list[Row]:
    """The rows of the files that the log of a sink names."""
    names = {Path(entry["path"]).name: None for entry in logged(sink / "_spark_metadata")}
    tables = [pa.parquet.read_table(sink / name) for name in names]
    return [row for part in tables for row in part.to_pylist()]


def logged(log: Path) -> Iterator[Row]:
    """The entries of a log of Spark, those of compacted files, too, in order."""
    seen: dict[str, Row] = {}
    for file in sorted(log.iterdir(), key=lambda file: file.name):
        if not file.name.startswith("."):
            for line in file.read_text(encoding="utf-8").splitlines()[1:]:
                entry = json.loads(line)
                seen.setdefault(entry["path"], entry)
    yield from seen.values()


def told(rows: Iterable[Row]) -> list[str]:
    """Rows out of any sink in one form, in order, without their ids."""
    return sorted(
        json.dumps({key: _plain(value) for key, value in row.items() if key != "answer_id"}, sort_keys=True)
        for row in rows
    )


def _plain(value: Any) -> Any:
    """A map as a dict, whether it is one or a list of pairs."""
    pairs = isinstance(value, list) and value and all(isinstance(pair, tuple) for pair in value)
    return dict(value) if pairs else {} if value == [] else value


def main() -> None:
    """Runs the streams of a place."""
    streams = RuleStreams.read(Path(sys.argv[1]))
    spark = streams.session()
    streams.run(spark)
    spark.stop()


if __name__ == "__main__":
    main()
