"""``python -m benchmarks.shared``: one heavy position, enumerated by one task and shared by several.

`A ; A ; B` over n events A and one B, without a window: all n (n - 1) / 2 complex events end at the last
event, so neither keys nor ranges of time divide the work. Shares are compared with the whole answer first, on
a shorter stream, and every run has to give the right number of complex events; in processes also the right
sum of the positions that are in them. Timed: processes of this machine, each from the text of the query to
its last record batch, and Spark, from the DataFrame to the last row written nowhere. Beside that stand a
query that has no answer over a long stream, where each task reads a copy of all events for nothing, how many
tasks `recognize` chooses by itself, and the time to the first complex event of a last share. Prints what it
measures, and writes it as JSON to ``--out``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import estero

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Figures = dict[str, Any]
Best = dict[int | None, float]
"""Seconds by how many share; None is as many as the events say."""

HEAVY = "SELECT x, y, z WHERE A AS x ; A AS y ; B AS z"
EMPTY = "SELECT x, y, z WHERE A AS x ; A AS y ; C AS z"
CHECKED = 60
SPEED_UP_TARGET = 1.7
EMPTY_EVENTS = 2_000_000


class Wrong(Exception):
    """An answer is not what it must be: nothing is timed."""


def stream(events: int) -> pa.Table:
    """So many events A and one B."""
    return pa.table({"type": ["A"] * events + ["B"], "t": range(events + 1)})


def expected(events: int) -> tuple[int, int]:
    """How many complex events there are over `stream`, and the sum of all positions of A in them."""
    pairs = events * (events - 1) // 2
    return pairs, pairs * (events - 1)


def measured(tables: Any) -> tuple[int, int]:
    """The same two numbers of tables that show positions."""
    count = total = 0
    for table in tables:
        count += table.num_rows
        for label in ("x", "y"):
            positions = pc.struct_field(pc.list_flatten(table.column(label)), "position")
            total += pc.sum(positions).as_py() or 0
    return count, total


def listed_by(number: int, of: int, events: int) -> tuple[int, int, float]:
    """What one share has: how many complex events, the sum of their positions, and seconds."""
    table = stream(events)
    begun = time.perf_counter()
    answer = estero.query(HEAVY).run(table, type="type", time="t")
    batches = answer.batches() if of == 1 else answer.share(number, of).batches()
    count, total = measured(batches)
    return count, total, time.perf_counter() - begun


def check_shares(spark: SparkSession) -> None:
    """Compares shares with the whole, as sets of rows, in-process and on Spark; raises `Wrong`."""
    answer = estero.query(HEAVY).run(stream(CHECKED), type="type", time="t")
    whole = sorted(map(repr, answer.to_arrow().to_pylist()))
    if (len(whole), len(set(whole))) != (expected(CHECKED)[0],) * 2:
        raise Wrong(f"{len(whole)} complex events over {CHECKED} events")
    for of in (2, 3, 7):
        shares = [answer.share(number, of).to_arrow().to_pylist() for number in range(of)]
        if sorted(repr(row) for share in shares for row in share) != whole:
            raise Wrong(f"{of} shares are not the answer")
        rows = shared(spark.createDataFrame(stream(CHECKED)), HEAVY, of, positions=True).toArrow().to_pylist()
        if sorted(map(repr, rows)) != whole:
            raise Wrong(f"{of} shares on Spark are not the answer")


def shared(df: DataFrame, query: str, of: int | None, *, positions: bool = False) -> DataFrame:
    """The complex events on Spark, listed by so many tasks; None: by as many as the events say."""
    from estero.spark import recognize

    return recognize(df, query, type="type", time="t", share=of, positions=positions)


def processes(events: int, repeats: int, counts: tuple[int, ...]) -> Figures:
    """Seconds until the last of some processes has listed its share; the best of a few runs."""
    best: Best = dict.fromkeys(counts, math.inf)
    with ProcessPoolExecutor(max(counts), get_context("spawn")) as pool:
        list(pool.map(listed_by, range(max(counts)), [max(counts)] * max(counts), [CHECKED] * max(counts)))
        for _ in range(repeats):
            for of in counts:
                parts = list(pool.map(listed_by, range(of), [of] * of, [events] * of))
                numbers = sum(count for count, _, _ in parts), sum(total for _, total, _ in parts)
                if numbers != expected(events):
                    raise Wrong(f"{of} processes found {numbers}, not {expected(events)}")
                best[of] = min(best[of], max(seconds for _, _, seconds in parts))
    return figures("processes", expected(events)[0], best)


def on_spark(
    spark: SparkSession, query: str, table: pa.Table, answers: int, repeats: int, counts: tuple[int, ...]
) -> Figures:
    """Seconds from the DataFrame until the last row of the answer has been written nowhere."""
    df = spark.createDataFrame(table).cache()
    df.count()
    best: Best = dict.fromkeys((*counts, None), math.inf)
    for of in best:
        if (counted := shared(df, query, of).count()) != answers:
            raise Wrong(f"{of} tasks found {counted}, not {answers}")
    for _ in range(repeats):
        for of in best:
            best[of] = min(best[of], seconds(partial(written_nowhere, shared(df, query, of))))
    df.unpersist()
    return figures("Spark", answers, best) | {"query": query, "events": table.num_rows}


def written_nowhere(df: DataFrame) -> None:
    """Makes every row."""
    df.write.format("noop").mode("overwrite").save()


def first_of_last_share(events: int) -> Figures:
    """Seconds to the first batch of the last of two shares, and to that of the whole."""
    answer = estero.query(HEAVY).run(stream(events), type="type", time="t")
    seconds_of = {
        "whole": seconds(lambda: next(answer.batches())),
        "last of 2": seconds(lambda: next(answer.share(1, 2).batches())),
    }
    print(
        f"first batch: {seconds_of['whole']:.3f} s, of the last of 2 shares {seconds_of['last of 2']:.3f} s",
        flush=True,
    )
    return seconds_of


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def figures(where: str, answers: int, best: Best) -> Figures:
    """A line of the results, and printed."""
    named = {"as events say" if of is None else str(of): took for of, took in best.items()}
    for name, took in named.items():
        rate = f"{answers / took / 1e6:.2f} M complex events/s, " if answers else ""
        faster = f"{named['1'] / took:.2f} times as fast as one"
        print(f"{where}: {name}: {took:.2f} s, {rate}{faster}", flush=True)
    return {
        "where": where,
        "answers": answers,
        "seconds": {name: round(took, 3) for name, took in named.items()},
        "speed-up": {name: round(named["1"] / took, 2) for name, took in named.items()},
    }


def main() -> None:
    """Checks, then times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shared", description=__doc__)
    parser.add_argument(
        "--answers", type=int, default=10_000_000, help="complex events of the heavy position"
    )
    parser.add_argument(
        "--events", type=int, default=EMPTY_EVENTS, help="events of the stream without answers"
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the best one counts")
    parser.add_argument("--tasks", type=int, default=2, help="how many share the work")
    parser.add_argument("--out", type=Path, help="a file for the figures")
    asked = parser.parse_args()
    from estero.spark import local_session

    spark = local_session(f"local[{asked.tasks}]", shuffle_partitions=asked.tasks)
    check_shares(spark)
    events = math.isqrt(2 * asked.answers) + 1
    counts = (1, asked.tasks)
    lines = [
        on_spark(spark, HEAVY, stream(events), expected(events)[0], asked.repeats, counts),
        on_spark(spark, EMPTY, stream(asked.events), 0, asked.repeats, counts),
    ]
    spark.stop()
    lines.append(processes(events, asked.repeats, counts) | {"query": HEAVY, "events": events + 1})
    results = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {name: version(name) for name in ("pyspark", "pyarrow", "numpy", "numba")},
        "target: speed-up": SPEED_UP_TARGET,
        "results": lines,
        "seconds to the first batch": first_of_last_share(events),
    }
    if asked.out is not None:
        asked.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
