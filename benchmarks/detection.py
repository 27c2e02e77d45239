"""Thousands of detection rules over events that look like Sysmon's, beside SQLite and DuckDB with the same.

    python -m benchmarks.detection RULES [--events 10000000] [--peer-events 100000]

RULES is a directory of rules in Sigma, such as those of SigmaHQ for Windows. Estero reads, plans and runs
them as one set, by one thread of one process (taskset -c 0 leaves it one core). The peers run one statement
for each rule, as tools for triage do, made by pySigma with its pipelines for Sysmon and Windows (pip install
pySigma-backend-sqlite pySigma-pipeline-sysmon pySigma-pipeline-windows); they get fewer events. The numbers
of events by rule are compared first.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import sqlite3
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

import estero
from benchmarks.sysmon_events import batches, write

T = TypeVar("T")

LAYOUT: dict[str, Any] = {"time": "UtcTime"}


def timed(question: Callable[[], T]) -> tuple[float, T]:
    """The seconds that a question takes, and its answer."""
    begin = time.perf_counter()
    answer = question()
    return time.perf_counter() - begin, answer


def main() -> None:
    """Compares and times."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rules", type=Path)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--peer-events", type=int, default=100_000, help="0: without peers")
    asked = parser.parse_args()
    os.environ["ESTERO_THREADS"] = "1"
    seconds, rules = timed(lambda: estero.rules(str(asked.rules)))
    print(f"{len(rules):,} rules: read in {seconds:.1f} s")
    if asked.peer_events:
        few = next(batches(asked.peer_events))
        seconds, first = timed(lambda: rules.run(few, **LAYOUT).counts())
        print(f"planned, and run over {few.num_rows:,} events, in {seconds:.1f} s")
        _peers(asked.rules, few, first)
    with TemporaryDirectory() as place:
        write(Path(place), asked.events)
        seconds, counts = timed(lambda: rules.run(place, **LAYOUT).counts())
    rate, alerts = asked.events / seconds / 1e3, sum(counts.values())
    print(f"{asked.events:,} events of Parquet files: {seconds:.1f} s with planning, {alerts:,} alerts")
    print(f"{rate:,.0f} thousand events/s")
    print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


def _peers(directory: Path, events: pa.Table, counts: dict[str, int]) -> None:
    """SQLite and DuckDB, one statement for each rule; says which rules have other numbers of events."""
    try:
        statements = dict(_statements(directory))
    except ImportError as missing:
        print(f"no peers: {missing}")
        return
    plain = pa.table(
        {
            name: column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            for name, column in zip(events.column_names, events.columns, strict=True)
        }
    )
    lite = sqlite3.connect(":memory:")
    lite.create_function(
        "REGEXP", 2, lambda regex, text: text is not None and re.search(regex, str(text)) is not None
    )
    names = plain.column_names
    lite.execute(f"CREATE TABLE logs ({', '.join(names)})")
    rows = zip(
        *(
            column.cast(pa.int64()).to_pylist() if pa.types.is_timestamp(column.type) else column.to_pylist()
            for column in plain.columns
        ),
        strict=True,
    )
    lite.executemany(f"INSERT INTO logs VALUES ({', '.join('?' * len(names))})", rows)
    duck = duckdb.connect()
    duck.register("given", plain)
    duck.execute("CREATE TABLE logs AS SELECT * FROM given")
    duck.execute("SET threads = 1")
    _peer("SQLite", statements, counts, events.num_rows, lambda text: lite.execute(text).fetchone()[0])
    _peer(
        "DuckDB",
        statements,
        counts,
        events.num_rows,
        lambda text: duck.execute(_for_duckdb(text)).fetchall()[0][0],
    )


def _statements(directory: Path) -> Iterable[tuple[str, str]]:
    """The statement that counts the events of each rule, by its id."""
    collections, errors = import_module("sigma.collection"), import_module("sigma.exceptions")
    pipelines = [
        import_module("sigma.pipelines.sysmon").sysmon_pipeline(),
        import_module("sigma.pipelines.windows").windows_logsource_pipeline(),
    ]
    backend = import_module("sigma.backends.sqlite").sqliteBackend(sum(pipelines[1:], pipelines[0]))
    for file in sorted(directory.rglob("*.yml")):
        collection = collections.SigmaCollection.from_yaml(file.read_text(encoding="utf-8"))
        try:
            (statement,) = backend.convert(collection)
        except errors.SigmaError:
            continue  # it has no search in all columns
        yield str(collection.rules[0].id), statement.replace("SELECT *", "SELECT count(*)", 1)


def _for_duckdb(statement: str) -> str:
    """The same for DuckDB, whose LIKE looks at the case of letters, and which has no REGEXP."""
    text = re.sub(r"\bLIKE\b", "ILIKE", statement)
    text = re.sub(r"(\w+) REGEXP ('(?:[^']|'')*')", r"regexp_matches(\1, \2)", text)
    return re.sub(r"COALESCE\((.*?), 0\)", r"COALESCE(\1, FALSE)", text)


def _peer(
    name: str, statements: dict[str, str], counts: dict[str, int], events: int, run: Callable[[str], int]
) -> None:
    equal, other, refused = 0, [], 0
    begin = time.perf_counter()
    for rule, statement in statements.items():
        try:
            number = run(statement)
        except (sqlite3.Error, duckdb.Error, re.error):
            refused += 1  # most ask for columns that these events do not have
            continue
        if number == counts.get(rule):
            equal += 1
        elif rule in counts:
            other.append(rule)
    seconds = time.perf_counter() - begin
    ran = len(statements) - refused
    print(
        f"{name}: {ran:,} rules in {seconds:.1f} s, {events / seconds / 1e3:,.1f} thousand events/s; "
        f"{equal:,} with the same numbers, {len(other):,} with others {other[:3]}, {refused:,} refused by it"
    )


if __name__ == "__main__":
    main()
