"""``python -m benchmarks.limits``: what an event costs at each stage, and what threads gain.

For each workload, in nanoseconds of the wall for an event of the stream: reading and classifying alone;
recognizing alone, of events that are classified; the whole, from the query's text to the count or to the last
table, with one thread and with several. Answers of one and of several threads are compared before anything
is timed: rows one by one, counts as numbers. Beside these stands how fast this machine reads and writes
memory, and how many bytes of a classified event the kernels read.

The model says what more cores would give: what threads share shrinks with their number, what one thread does
(taking batches, handing on tables) does not, and ranges read their halo twice. It is fitted to one thread and
to two, and printed for 16 and 64. Prints the page; ``--write`` writes LIMITS.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import estero
from benchmarks.correlated import cases
from benchmarks.workloads import DENSE, STOCK
from estero.events.sources import open_source
from estero.language.tree.schema import EventLayout
from estero.recognize.recognition import Recognition
from estero.recognize.threads.ranges import SHORTEST

PAGE = Path(__file__).with_name("LIMITS.md")
KEYED = "SELECT * WHERE A ; B ; C PARTITION BY [k]"
CORES = 1, 2, 16, 64
TRIED = "\n## What was tried\n"
"""The heading of what is written by hand: steps that were measured one by one, when they were taken."""


@dataclass(frozen=True, slots=True)
class Case:
    """A query over a table, and what is asked of it; `target` is how much faster two threads should be."""

    name: str
    text: str
    table: pa.Table
    target: float
    listed: bool = False
    time: str | None = None

    def answer(self, threads: int) -> estero.Answer:
        """The answer of so many threads."""
        return estero.query(self.text).run(self.table, type="type", time=self.time, threads=threads)

    def asked(self, threads: int) -> int:
        """The number of complex events, counted or listed."""
        answer = self.answer(threads)
        if not self.listed:
            return answer.count()
        return sum(batch.num_rows for batch in answer.batches())


def all_cases(events: int) -> Iterator[Case]:
    """What is measured."""
    keys = cases()[0].table(events)
    star = next(case for case in cases() if case.name.startswith("star of 3"))
    dense = pa.Table.from_batches(list(DENSE.batches(events)))
    stock = pa.Table.from_batches(list(STOCK.batches(5 * events, dictionary=True)))
    yield Case("keys, no window", KEYED, keys, 1.8)
    yield Case("keys, a window", "SELECT * WHERE A ; B+ ; C PARTITION BY [k] WITHIN 1000 EVENTS", keys, 1.8)
    yield Case("a window, no keys", "SELECT * WHERE A ; B ; C WITHIN 100 EVENTS", keys, 1.7)
    yield Case("a star", star.text, star.table(events), 1.7)
    yield Case("dense, counted", DENSE.queries[0].text, dense, 1.7)
    yield Case("dense, listed", DENSE.queries[0].text, dense, 1.7, listed=True)
    yield Case("rows", "SELECT * WHERE A ; B WITHIN 10 EVENTS", keys, 1.7, listed=True)
    yield Case(
        "NEXT, listed",
        "SELECT NEXT * WHERE A ; B ; C PARTITION BY [k] WITHIN 10000 EVENTS",
        keys,
        1.7,
        listed=True,
    )
    yield Case("selective", STOCK.queries[0].text, stock, 1.0, time=STOCK.time)


def check(case: Case, threads: int) -> None:
    """Raises ValueError where several threads do not give what one gives."""
    several, one = case.answer(threads), case.answer(1)
    if several.count() != one.count():
        raise ValueError(f"{case.name}: {threads} threads count otherwise than one")
    if case.listed and several.to_arrow() != one.to_arrow():
        raise ValueError(f"{case.name}: {threads} threads give other rows than one")


def best_of(runs: int, act: Callable[[], object]) -> float:
    """The fewest seconds of the wall."""
    taken = []
    for _ in range(runs):
        begun = time.perf_counter()
        act()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def stages(case: Case, runs: int) -> dict[str, float]:
    """Nanoseconds for an event of the stream, by stage, and the bytes of a classified event."""
    source = open_source(case.table, EventLayout.of(type="type", time=case.time))
    plan = estero.query(case.text).plan(source.layout)
    plan = plan if case.listed else plan.showing_nothing()
    batches = list(source.read(plan.classification))
    relevant = sum(batch.num_rows for batch in batches)
    schema = source.classified_schema(plan.classification)

    def recognize() -> None:
        recognition = Recognition(plan, schema, counting=not case.listed, total=not case.listed)
        for batch in batches:
            for ended in recognition.recognize(batch):
                if case.listed:
                    for _ in recognition.reader.tables(ended):
                        pass
                else:
                    recognition.reader.add(ended)
        recognition.reader.rest()

    events = case.table.num_rows / 1e9
    return {
        "read": best_of(runs, lambda: list(source.read(plan.classification))) / events,
        "recognize": best_of(runs, recognize) / events,
        "relevant": relevant / case.table.num_rows,
        "bytes": sum(batch.nbytes for batch in batches) / max(relevant, 1),
    }


def bandwidth() -> tuple[float, float]:
    """Gigabytes a second that one core reads (a sum), and copies, of arrays larger than its caches."""
    numbers = np.ones(1 << 26)
    other = np.empty_like(numbers)
    read = best_of(5, numbers.sum)
    copied = best_of(5, lambda: np.copyto(other, numbers))
    return numbers.nbytes / read / 1e9, 2 * numbers.nbytes / copied / 1e9


def modelled(one: float, two: float, cores: int) -> float:
    """Nanoseconds with so many cores: what is shared shrinks, what two threads did not halve stays."""
    serial = max(0.0, 2 * two - one)
    return serial + (one - serial) / cores


def measured(case: Case, threads: int, runs: int) -> dict[str, Any]:
    """The figures of one case."""
    check(case, threads)
    events = case.table.num_rows / 1e9
    one = best_of(runs, lambda: case.asked(1)) / events
    several = best_of(runs, lambda: case.asked(threads)) / events
    return {"case": case, "one": one, "several": several, **stages(case, runs)}


def page(figures: list[dict[str, Any]], threads: int, memory: tuple[float, float], note: str) -> str:
    """The page."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "duckdb", "pyarrow"))
    lines = [
        "# What an event costs, and what limits it",
        "",
        "Written by `python -m benchmarks.limits --write`; [README.md](README.md) says how.",
        "Nanoseconds of elapsed time per event of the stream. Rows and counts of one and of several threads",
        "are compared first.",
        "",
        f"- machine: {platform.machine()}, {os.cpu_count()} cores; {versions}",
        f"- one core reads {memory[0]:.1f} GB/s of memory, and copies at {memory[1]:.1f} GB/s",
        *([f"- {note}"] if note else []),
        "",
        f"| workload | relevant | bytes | read | recognize | one thread | {threads} threads | gain | asked |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in figures:
        case = row["case"]
        lines.append(
            f"| {case.name} | {row['relevant']:.0%} | {row['bytes']:.0f} | {row['read']:.0f} "
            f"| {row['recognize']:.0f} | {row['one']:.0f} | {row['several']:.0f} "
            f"| {row['one'] / row['several']:.2f} | {case.target} |"
        )
    lines += [
        "",
        "`bytes` are those of a classified event, which kernels read: that takes less than ten nanoseconds.",
        "So recognition is not limited by bandwidth, but by loads that depend on each other: the state of a",
        "partition, its entries, and the nodes below them.",
        "",
        "## More cores",
        "",
        "The part that two threads did not halve is assumed to be serial. Nanoseconds, and how many times as",
        "fast:",
        "",
        "| workload | " + " | ".join(f"{cores} core{'s' * (cores > 1)}" for cores in CORES) + " |",
        "|---|" + "---:|" * len(CORES),
    ]
    for row in figures:
        times = [modelled(row["one"], row["several"], cores) for cores in CORES]
        cells = " | ".join(f"{took:.0f} ({row['one'] / took:.1f})" for took in times)
        lines.append(f"| {row['case'].name} | {cells} |")
    lines += [
        "",
        f"Ranges have {SHORTEST:,} rows, or four windows: with w events in a window and ranges of r, a",
        "thread reads w + r for r, at most a quarter more, however many threads there are. n threads hold n",
        "ranges, their halos, and the tables that wait in their channels.",
    ]
    _, _, tried = PAGE.read_text(encoding="utf-8").partition(TRIED)
    return "\n".join(lines) + "\n" + TRIED + tried


def main() -> None:
    """Checks each case, then times it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=__doc__)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the best one counts")
    parser.add_argument("--only", default="", help="a word in the name of the workloads to run")
    parser.add_argument("--note", default="", help="what the page says of the machine")
    parser.add_argument("--write", action="store_true", help="write LIMITS.md")
    asked = parser.parse_args()
    chosen = [case for case in all_cases(asked.events) if asked.only in case.name]
    figures = [measured(case, asked.threads, asked.repeats) for case in chosen]
    text = page(figures, asked.threads, bandwidth(), asked.note)
    print(text)
    if asked.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
