"""The other side of `session` for engines that Python drives: ``python -m benchmarks.peers.child …``."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc


class Engine(Protocol):
    """An engine with events in its own form."""

    version: str

    def tables(self, events: int) -> Iterable[pa.Table]:
        """The answers over the first `events` events: a column for each position, or list of positions."""


def main() -> None:
    """Serves requests until the input ends. What an engine prints goes to standard error."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    name, folder, query, text = sys.argv[1:]
    engine: Engine = importlib.import_module(f"benchmarks.peers.{name}").engine(Path(folder), query, text)
    print(json.dumps({"version": engine.version}), file=replies)
    for line in sys.stdin:
        events, path = line.split()
        begun = time.perf_counter(), time.process_time()
        tables = list(engine.tables(int(events)))
        answers, total = sum(table.num_rows for table in tables), sum(map(sum_of, tables))
        wall, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
        if path != "-":
            lines = (" ".join(map(str, row)) + "\n" for table in tables for row in positions(table))
            Path(path).write_text("".join(lines), encoding="utf-8")
        print(json.dumps({"wall": wall, "cpu": cpu, "answers": answers, "sum": total}), file=replies)


def flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The positions of a column, of all its lists."""
    return pc.list_flatten(column) if pa.types.is_nested(column.type) else column


def sum_of(table: pa.Table) -> int:
    """The sum of all positions."""
    return sum(pc.sum(flat(column)).as_py() or 0 for column in table.columns)


def positions(table: pa.Table) -> Iterator[list[int]]:
    """All positions of each answer."""
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        yield [position for value in row for position in (value if isinstance(value, list) else [value])]


if __name__ == "__main__":
    main()
