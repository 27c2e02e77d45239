"""``python -m benchmarks.by_hand``: Estero beside what one writes by hand, in seconds of the wall.

The seven queries of the page of peers over ten million events: Estero with one thread and with two, over
plain strings and over a dictionary, beside SQL in DuckDB on all cores, and beside pandas with NumPy, which
has its types as categories. Numbers of answers and the sums of their positions are compared first.
Estero reads in a thread of its own while another recognizes; ``taskset -c 0`` in front leaves it one core.
Prints the page; ``--write`` writes BY_HAND.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa

from benchmarks.peers import duckdb_engine, estero_engine, pandas_engine
from benchmarks.peers.child import sum_of
from benchmarks.peers.events import TYPES, load, save
from benchmarks.peers.queries import DUCKDB, ESTERO, QUERIES, Said, Unsaid

PAGE = Path(__file__).with_name("BY_HAND.md")
WAYS = ("plain, 1 thread", "plain, 2 threads", "dictionary, 1 thread", "dictionary, 2 threads")


def timed(tables: Callable[[], Iterable[pa.Table]], runs: int) -> tuple[float, tuple[int, int]]:
    """The fewest seconds of some runs, and how many answers there are, with the sum of their positions."""
    best, said = float("inf"), (0, 0)
    for _ in range(runs):
        begun = time.perf_counter()
        made = list(tables())
        best = min(best, time.perf_counter() - begun)
        said = sum(table.num_rows for table in made), sum(map(sum_of, made))
    return best, said


def row_of(name: str, folder: Path, events: int, runs: int) -> list[float]:
    """The seconds of one query: of each of Estero's ways, of DuckDB, of pandas."""
    text = _text(ESTERO[name])
    plain = estero_engine.engine(folder, name, text)
    codes = pa.array(load(folder)["type"].astype("i1"))
    encoded = plain.stream.set_column(0, "type", pa.DictionaryArray.from_arrays(codes, pa.array(TYPES)))
    seconds, answers = [], set()
    for way in WAYS:
        os.environ["ESTERO_THREADS"] = way.split()[1]
        stream = plain.stream if way.startswith("plain") else encoded
        engine = estero_engine.Estero(text, stream, plain.version)
        best, said = timed(lambda engine=engine: engine.tables(events), runs)  # type: ignore[misc]
        seconds.append(best)
        answers.add(said)
    for other in (
        duckdb_engine.engine(folder, name, _text(DUCKDB[name])),
        pandas_engine.engine(folder, name, ""),
    ):
        best, said = timed(lambda other=other: other.tables(events), runs)  # type: ignore[misc]
        seconds.append(best)
        answers.add(said)
    if len(answers) > 1:
        raise ValueError(f"{name}: the engines disagree: {answers}")
    return seconds


def _text(said: Said) -> str:
    if isinstance(said, Unsaid):
        raise TypeError(said.reason)
    return said


def page(rows: dict[str, list[float]], events: int) -> str:
    """The page in Markdown."""
    names = ("duckdb", "pandas", "numpy", "pyarrow")
    versions = ", ".join(f"{package} {version(package)}" for package in names)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    head = " | ".join([*WAYS, "DuckDB", "pandas, NumPy", "DuckDB ÷ Estero", "Estero ÷ pandas"])
    lines = [
        "# Beside what one writes by hand",
        "",
        "Written by `python -m benchmarks.by_hand --write`; [README.md](README.md) says how.",
        f"Seconds of the wall for {events:,} events, from the text of a query to the last Arrow table.",
        "Answers are compared first. The last two columns are of Estero over plain strings, with two threads",
        "beside DuckDB, and over a dictionary with one thread beside pandas, whose types are categories.",
        "",
        f"- machine: {platform.machine()}, {cores} cores; {versions}",
        "",
        f"| query | {head} |",
        "|---|" + "--:|" * (len(WAYS) + 4),
    ]
    for name, seconds in rows.items():
        shown = " | ".join(f"{second:.3f}" for second in seconds)
        lines.append(f"| {name} | {shown} | {seconds[4] / seconds[1]:.1f} | {seconds[2] / seconds[5]:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.by_hand", description=__doc__)
    parser.add_argument("--events", type=int, default=10**7)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[query.name for query in QUERIES])
    parser.add_argument("--write", action="store_true", help="write BY_HAND.md")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder), asked.events)
        rows = {name: row_of(name, Path(folder), asked.events, asked.runs) for name in asked.only}
    print(page(rows, asked.events))
    if asked.write:
        PAGE.write_text(page(rows, asked.events), encoding="utf-8")


if __name__ == "__main__":
    main()
