"""``python -m benchmarks.spark_batch``: recognition of a Parquet file on Spark, beside its own scan of it.

The scan filters the same rows by the same conditions, takes the columns that the query reads, and throws
them away, as it is done with the answers. It is run with one core and with two: Java with all its threads,
Python workers and whatever else they start are held to so many. Before anything is timed, the number of
answers and sums over their times are compared with those of this process over the same file.
Prints what it measures; ``--out`` writes it as JSON, ``--write`` makes SPARK.md and results/spark.json of it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.compute as pc

import estero
from estero.language.tree.schema import EventLayout
from estero.spark import count, local_session, recognize, register
from estero.spark.batch.distribute import distribute
from estero.spark.work import Work, layout_of_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HERE = Path(__file__).resolve().parent
PAGE, RESULTS = HERE / "SPARK.md", HERE / "results" / "spark.json"
ABOVE = 95
"""Prices are drawn from 0 to 100, and every query asks for higher ones of three of eight types."""
SCAN = f"type IN ('A', 'B', 'C') AND price > {ABOVE}"
COLLECTOR, MEMORY = "-XX:+UseParallelGC", "4g"
"""Of Java, for the scan as well: made for throughput, where there is memory enough."""
MOST_OVER_SCAN, LEAST_SPEED_UP = 2.0, 1.7
Sums = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Case:
    """A query over the file; `key` is the column of its partitions.

    `target` says whether the targets have to be met. With `part` it sees one in so many of the rows.
    """

    name: str
    key: str | None
    window: str
    target: bool = False
    how: str = "recognize"
    part: int = 1

    @property
    def text(self) -> str:
        """Three events in order, each one with a condition."""
        filters = " AND ".join(f"{label}[price > {ABOVE}]" for label in "abc")
        by = "" if self.key is None else f" PARTITION BY [{self.key}]"
        return (
            "SELECT a[price], b[price], c[price] WHERE A AS a ; B AS b ; C AS c "
            f"FILTER {filters}{by} WITHIN {self.window}"
        )


CASES = [
    Case("1,000 keys", "k", "60 SECONDS", target=True),
    Case("one order", None, "300 MILLISECONDS", target=True),
    Case("a key with 80 % of the events", "hot", "300 MILLISECONDS"),
    Case("1,000 keys, counted", "k", "60 SECONDS", how="count"),
    Case("one order, counted", None, "300 MILLISECONDS", how="count"),
    Case("1,000 keys, table function of SQL", "k", "60 SECONDS", how="sql", part=25),
]


def file_of(case: Case, directory: Path) -> Path:
    """Where its events are."""
    return directory / f"events-{case.part}.parquet"


def _same(case: Case) -> tuple[str, int]:
    """What cases with the same answers have in common."""
    return case.text, case.part


def write_events(rows: int, path: Path) -> None:
    """An event for each millisecond, in row groups of a million: types and keys by a hash of its number."""
    if path.exists():
        return
    types = "('ABCDEFGH')[1 + (hash(i) % 8)::INT] AS type"
    hot = "CASE WHEN hash(i * 17 + 5) % 10 < 8 THEN 7 ELSE 8 + hash(i * 7 + 1) % 1000 END"
    duckdb.connect().execute(
        f"COPY (SELECT {types}, make_timestamp(1700000000000000 + i * 1000) AS ts, "
        f"(hash(i * 7 + 1) % 1000)::BIGINT AS k, ({hot})::BIGINT AS hot, "
        "(hash(i * 13 + 5) % 10000) / 100.0 AS price, (hash(i * 31 + 3) % 1000)::INT AS volume "
        f"FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 1000000)"
    )


# -------------------------------------------------------------------------------------------- checks


def sums_in_process(case: Case, path: Path) -> Sums:
    """The number of answers, and sums of what their times are modulo a prime and of how long they take."""
    count, starts, lengths = 0, 0, 0
    for batch in estero.query(case.text).run(path, type="type", time="ts").batches():
        start, end = (pc.cast(batch.column(name), "int64") for name in ("start_time", "end_time"))
        count += batch.num_rows
        starts += sum(start_time % 1_000_003 for start_time in start.to_pylist())
        lengths += pc.sum(pc.subtract(end, start)).as_py() or 0
    return count, starts, lengths


def sums_of_spark(case: Case, df: DataFrame) -> Sums:
    """The same of what Spark finds."""
    if case.how == "count":
        return count(df, case.text, type="type", time="ts"), 0, 0
    (row,) = (
        answers_of(case, df)
        .selectExpr(
            "count(1) AS count",
            "coalesce(sum(unix_micros(start_time) % 1000003), 0) AS starts",
            "coalesce(sum(unix_micros(end_time) - unix_micros(start_time)), 0) AS lengths",
        )
        .collect()
    )
    return row["count"], row.starts, row.lengths


def check(case: Case, df: DataFrame, expected: Sums) -> None:
    """Raises where Spark finds something else."""
    wanted = (expected[0], 0, 0) if case.how == "count" else expected
    sums = sums_of_spark(case, df)
    if sums != wanted or not wanted[0]:
        raise ValueError(f"{case.name}: Spark finds {sums}, this process {wanted}")


# -------------------------------------------------------------------------------------------- timing


def answers_of(case: Case, df: DataFrame) -> DataFrame:
    """The answers, in the way that the case asks for."""
    if case.how == "sql":
        call = f"recognize(TABLE(events), '{case.text}', type => 'type', time => 'ts')"
        return df.sparkSession.sql(f"SELECT * FROM {call}")
    return recognize(df, case.text, type="type", time="ts")


def scanned(case: Case, df: DataFrame) -> DataFrame:
    """The rows that the query wants, with what it reads of them."""
    columns = ["type", "ts", "price", *([] if case.key is None else [case.key])]
    return df.where(SCAN).select(*columns)


def thrown_away(rows: DataFrame) -> None:
    """Computes all rows."""
    rows.write.format("noop").mode("overwrite").save()


def seconds(run: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def crossing(case: Case, df: DataFrame) -> int:
    """The rows that reach Python."""
    if case.how == "sql":
        return scanned(case, df).count()
    plan = estero.query(case.text).plan(layout_of_schema(df.schema, EventLayout.of(type="type", time="ts")))
    work = Work.of(df.schema, plan, positions=False)
    distributed = distribute(df, work.plan, work.division, None)
    number = distributed.rows.count()
    distributed.release()
    return number


def recognized(case: Case, df: DataFrame) -> None:
    """Finds all answers and throws them away, or counts them."""
    if case.how == "count":
        count(df, case.text, type="type", time="ts")
    else:
        thrown_away(answers_of(case, df))


def turns(
    connection: Connection, directory: Path, cores: int, cases: list[Case], expected: list[Sums]
) -> None:
    """A process with so many cores, and no other for what it starts (on Linux): answers each message.

    First it sends the rows that reach Python, by case, once it has checked the answers; then for each True
    that it receives the seconds of one turn, in which every case has its scan and its recognition.
    """
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    spark: SparkSession = local_session(
        f"local[{cores}]", java_options=COLLECTOR, config={"spark.driver.memory": MEMORY}
    )
    register(spark)
    frames = [spark.read.parquet(file_of(case, directory).as_uri()) for case in cases]
    for case, df, sums in zip(cases, frames, expected, strict=True):
        df.createOrReplaceTempView("events")
        check(case, df, sums)
    connection.send([crossing(case, df) for case, df in zip(cases, frames, strict=True)])
    while connection.recv():
        times = []
        for case, df in zip(cases, frames, strict=True):
            df.createOrReplaceTempView("events")
            took = seconds(partial(thrown_away, scanned(case, df))), seconds(partial(recognized, case, df))
            times.append(took)
            print(f"{cores}, {case.name}: {took[0]:.2f} s, {took[1]:.2f} s", flush=True)
        connection.send(times)
    spark.stop()


def taken(
    directory: Path, cases: list[Case], expected: list[Sums], repeats: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The lines of the process with one core, and of that with two; a process each, because it has one Java.

    They take turns, so that what else the machine does meets both; the best turn counts. In every turn each
    case has one, so that none has only those in which Java is still compiling.
    """
    with ExitStack() as stack:
        both = [stack.enter_context(_process(directory, cores, cases, expected)) for cores in (1, 2)]
        crossed = [connection.recv() for connection in both]
        times: list[list[list[tuple[float, float]]]] = [[], []]
        for _ in range(repeats):
            for connection, round_times in zip(both, times, strict=True):
                connection.send(True)
                round_times.append(connection.recv())
    one, two = (
        [_line(rows, seconds) for rows, seconds in zip(crossing, zip(*round_times, strict=True), strict=True)]
        for crossing, round_times in zip(crossed, times, strict=True)
    )
    return one, two


@contextmanager
def _process(directory: Path, cores: int, cases: list[Case], expected: list[Sums]) -> Iterator[Connection]:
    """The connection to a process that runs `turns`; it ends with the block."""
    context = get_context("spawn")
    own, its = context.Pipe()
    process = context.Process(target=turns, args=(its, directory, cores, cases, expected))
    process.start()
    its.close()
    try:
        yield own
        own.send(False)
    finally:
        own.close()
        process.join()


def _line(crossing: int, times: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """The best of all turns, of the scan and of recognition."""
    scan, estero_s = (min(seconds) for seconds in zip(*times, strict=True))
    return {"scan s": round(scan, 3), "estero s": round(estero_s, 3), "crossing": crossing}


# -------------------------------------------------------------------------------------------- page


def page(figures: dict[str, Any]) -> str:
    """The figures as Markdown."""
    return "\n".join(_page_lines(figures)) + "\n"


def _page_lines(figures: dict[str, Any]) -> Iterator[str]:
    yield "# Batches on Spark"
    yield ""
    yield "Written by `python -m benchmarks.spark_batch --write`. From a Parquet file, planning included, to"
    yield "answers that are thrown away; beside it Spark's own scan and filter of the same rows. The table"
    yield "function has one in 25 of the rows: so few that planning and starting tasks count."
    yield "With one core, all threads of Java and all Python workers have that one."
    yield "How: [README.md](README.md)."
    yield ""
    yield from (f"- {name}: {value}" for name, value in figures["setting"].items())
    yield ""
    columns = [
        *("query", "answers", "rows to Python", "scan, 2 cores", "Estero, 2 cores"),
        *("over the scan (at most 2)", "Estero, 1 core", "1 → 2 cores (at least 1.7)", "scan, 1 → 2 cores"),
    ]
    yield f"| {' | '.join(columns)} |"
    yield f"|---|{'---:|' * (len(columns) - 1)}"
    for line in figures["lines"]:
        over, faster = line["over scan"], line["speed-up"]
        met = (_met(over <= MOST_OVER_SCAN), _met(faster >= LEAST_SPEED_UP)) if line["target"] else ("", "")
        yield (
            f"| {line['query']} | {line['answers']:,} | {line['crossing']:,} | {line['scan s']:.2f} s "
            f"| {line['estero s']:.2f} s | {over:.2f}{met[0]} | {line['estero s, 1 core']:.2f} s "
            f"| {faster:.2f}{met[1]} | {line['speed-up of the scan']:.2f} |"
        )


def _met(met: bool) -> str:
    return " ✓" if met else " **no**"


def figures_of(rows: int, repeats: int, cases: list[Case]) -> dict[str, Any]:
    """Everything that is measured."""
    with tempfile.TemporaryDirectory(prefix="estero-") as name:
        directory = Path(name)
        for case in cases:
            write_events(rows // case.part, file_of(case, directory))
        known = {_same(case): sums_in_process(case, file_of(case, directory)) for case in cases}
        expected = [known[_same(case)] for case in cases]
        one, two = taken(directory, cases, expected, repeats)
    lines = [
        {
            "query": case.name,
            "text": case.text,
            "answers": sums[0],
            "target": case.target,
            "part": case.part,
            **with_two,
            "scan s, 1 core": with_one["scan s"],
            "estero s, 1 core": with_one["estero s"],
            "over scan": round(with_two["estero s"] / with_two["scan s"], 2),
            "speed-up": round(with_one["estero s"] / with_two["estero s"], 2),
            "speed-up of the scan": round(with_one["scan s"] / with_two["scan s"], 2),
        }
        for case, sums, with_one, with_two in zip(cases, expected, one, two, strict=True)
    ]
    return {
        "setting": {
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "versions": ", ".join(f"{name} {version(name)}" for name in ("pyspark", "pyarrow", "numba")),
            "rows": f"{rows:,}",
            "Java": f"{COLLECTOR}, {MEMORY}",
            "best of": repeats,
        },
        "lines": lines,
    }


def main() -> None:
    """Checks each query, then times it with one core and with two."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_batch", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--repeats", type=int, default=8, help="turns of each case; the best one counts")
    parser.add_argument("--only", help="a word in the name of the queries to run")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--write", action="store_true", help="write SPARK.md and results/spark.json")
    asked = parser.parse_args()
    chosen = [case for case in CASES if asked.only is None or asked.only in case.name]
    figures = figures_of(asked.rows, asked.repeats, chosen)
    text = json.dumps(figures, indent=1) + "\n"
    print(text)
    for file in ([RESULTS] if asked.write else []) + ([asked.out] if asked.out else []):
        file.write_text(text, encoding="utf-8")
    if asked.write:
        PAGE.write_text(page(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
