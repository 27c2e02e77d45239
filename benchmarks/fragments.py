"""``python -m benchmarks.fragments``: queries of the papers' fragments, on streams of up to 1,000,000 events.

For each query the time for an event as the stream grows (A, B and C at random, keys k and m at random, all
events in memory), from reading the columns to the last partial match; and, where it is asked for, that of
counting. What is found on short streams is compared with the reference first. Prints a table; ``--write``
writes FRAGMENTS.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa

import estero
from estero.reference.queries import Event, evaluate_query

HERE = Path(__file__).parent
SIZES = (1_000, 10_000, 100_000, 1_000_000)
SHORT = 14
"""Events of the streams on which answers are compared with the reference."""
BUDGET = 60.0
"""Seconds that a size may take, told from the size before; larger ones are left out."""


@dataclass(frozen=True, slots=True)
class Row:
    """A query; `keys` are how many values k and m have, 0 for as many as there are events."""

    query: str
    keys: int = 0
    types: str = "ABC"
    counted: bool = False
    """Whether the answer is counted, too; else the answer is only begun."""


WINDOWED = "A ; B+ ; C"
ROWS = (
    Row("SELECT * WHERE (A+ PARTITION BY [k])+", types="A"),
    Row("SELECT * WHERE (A+ PARTITION BY [k]) ; (A+ PARTITION BY [m])", types="A"),
    Row("SELECT * WHERE ((A ; B PARTITION BY [k]) ; C) OR (A ; (B ; C PARTITION BY [k]))"),
    Row("SELECT * WHERE C+ ; A AS a ; B AS b FILTER NOT a.k = b.k"),
    Row("SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k OR a.m = b.m"),
    Row("SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k + 1"),
    Row("SELECT * WHERE (A AS t ALL B AS s) ; C AS r FILTER t.k = r.k AND s.k = r.k AND s.m = r.m"),
    Row("SELECT * WHERE (A ; B PARTITION BY [k]) ALL C"),
    *(Row(f"SELECT * WHERE {WINDOWED} WITHIN {10**power} EVENTS", counted=True) for power in (2, 3, 4)),
    *(Row(f"SELECT * WHERE A ; B ; C WITHIN {10**power} EVENTS", counted=True) for power in (2, 4, 6)),
    Row("SELECT MAX * WHERE A+ ; B", types="AB"),
    Row("SELECT MAX * WHERE A ; B+ ; C"),
    Row("SELECT NEXT * WHERE A ; B+ ; C"),
    Row("SELECT NEXT * WHERE A ; B+ ; C WITHIN 1000 EVENTS"),
    Row("SELECT LAST * WHERE A ; B+ ; C WITHIN 1000 EVENTS"),
    # ten more
    Row("SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.k != b.k AND b.k != c.k", keys=1000),
    Row("SELECT * WHERE A AS a ; B AS b FILTER NOT (a.k = b.k AND a.m = b.m)", keys=1000),
    Row("SELECT * WHERE (A ; B PARTITION BY [k]) ; (A ; B PARTITION BY [m])"),
    Row("SELECT * WHERE ((A ; B PARTITION BY [k])+ ; C PARTITION BY [m])"),
    Row("SELECT * WHERE A AS a ALL B AS b ALL C AS c FILTER a.k = b.k AND b.k = c.k", keys=1000),
    Row("SELECT * WHERE (A AS a ; B AS b) ALL C AS c FILTER b.k = c.k"),
    Row("SELECT * WHERE ((A AS a ALL B AS b) ; C AS c FILTER a.k = c.k AND b.k = c.k)+"),
    Row(
        "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.k = b.k AND b.m < c.m WITHIN 10000 EVENTS",
        keys=1000,
    ),
    Row("SELECT MAX * WHERE A+ ; B+ ; C+ WITHIN 1000 EVENTS"),
    Row("SELECT * WHERE A AS a ; B AS b FILTER abs(a.k) = abs(b.k) WITHIN 10000 EVENTS"),
)


def stream(row: Row, size: int, seed: int = 1) -> pa.Table:
    """Events of the types of a row, in this order: ``kind``, ``k``, ``m``."""
    draw = np.random.default_rng(seed)
    most = row.keys or max(size, 2)
    return pa.table(
        {
            "kind": pa.array(np.array(list(row.types))[draw.integers(0, len(row.types), size)]),
            "k": draw.integers(0, most, size),
            "m": draw.integers(0, most, size),
        }
    )


def check(row: Row) -> None:
    """Compares what is found on short streams with the reference."""
    query = estero.query(row.query)
    for seed in range(3):
        table = stream(Row(row.query, 3, row.types), SHORT, seed)
        events = [Event(each["kind"], {"k": each["k"], "m": each["m"]}) for each in table.to_pylist()]
        expected = {
            (each.start, each.end, each.labels)
            for found in evaluate_query(query.tree, events).values()
            for each in found
        }
        found = [
            (
                each.start,
                each.end,
                frozenset((label, frozenset(at)) for label, at in each.positions.items() if at),
            )
            for each in query.run(table, type="kind")
        ]
        if len(found) != len(set(found)) or set(found) != expected:
            raise ValueError(
                f"{row.query}: {len(found)} complex events, and the reference has {len(expected)}"
            )


def seconds(row: Row, size: int) -> float:
    """How long the recognition of a stream takes, without listing what was found."""
    table = stream(row, size)
    query = estero.query(row.query)
    began = time.perf_counter()
    answer = query.run(table, type="kind")
    if row.counted:
        answer.count()
    else:
        recognizer = query.recognizer(table, type="kind")
        for batch in table.to_batches(max_chunksize=1 << 16):
            recognizer.push(batch)
    return time.perf_counter() - began


def measured(row: Row, largest: int) -> Iterator[tuple[int, float]]:
    """Pairs of a size and the nanoseconds for an event."""
    check(row)
    seconds(row, SIZES[0])  # compiles
    took = 0.0
    for before, size in zip((SIZES[0], *SIZES), SIZES, strict=False):
        if size > largest or took * (size / before) ** 2 > BUDGET * 10 or took > BUDGET:
            return
        took = seconds(row, size)
        yield size, took / size * 1e9


def lines(rows: Sequence[Row], largest: int) -> Iterator[str]:
    """The table as Markdown, a line at a time."""
    yield f"| query | plan | {' | '.join(f'{size:,}' for size in SIZES)} | events/s |"
    yield f"|---|---|{'--:|' * (len(SIZES) + 1)}"
    for row in rows:
        points = dict(measured(row, largest))
        sections = dict(estero.query(row.query).explain(stream(row, 10), type="kind").sections())
        plan = sections["Plan"].splitlines()[0].partition(":")[0]
        cells = [f"{points[size]:,.0f}" if size in points else "–" for size in SIZES]
        last = 1e9 / points[max(points)]
        query = row.query.removeprefix("SELECT ")
        yield f"| `{query}` | {plan} | {' | '.join(cells)} | {last:,.0f} |"


def main() -> None:
    """Checks, then measures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fragments", description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="no longer streams")
    parser.add_argument("--only", default="", help="a part of the queries to run")
    parser.add_argument("--write", action="store_true", help="write FRAGMENTS.md")
    asked = parser.parse_args()
    table = []
    for line in lines([row for row in ROWS if asked.only in row.query], asked.largest):
        print(line, flush=True)
        table.append(line)
    if asked.write:
        head = [
            "# Fragments",
            "",
            "Written by `python -m benchmarks.fragments --write`. Nanoseconds for an event as the stream",
            "grows, with classification and, for the queries with a window in events, with the count; keys",
            "are drawn from as many values as there are events, or from 1,000. The last column is of the",
            "longest stream. Short streams show what a call costs by itself: 30 to 90 ms.",
            f"{platform.machine()}, {os.cpu_count()} cores, numba {version('numba')}.",
            "",
        ]
        (HERE / "FRAGMENTS.md").write_text("\n".join([*head, *table]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
