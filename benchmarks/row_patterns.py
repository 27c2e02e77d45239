"""MATCH_RECOGNIZE in process: rows a second, and memory beside that of the sorted input.

``python -m benchmarks.row_patterns``: V shapes over ten million rows of ten thousand partitions, in order of
time (as streams are), in order of partitions, and in no order; and ``A+ B`` and ``(A+)+ B``, which match
nothing, over a million rows of one partition. Results are checked before they are timed. ``--rows`` sets how
many; ``--memory`` measures the resident memory of one evaluation (Linux).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

import estero

PER_PARTITION = 1000
V_SHAPES = """
    SELECT * FROM trades MATCH_RECOGNIZE (
        PARTITION BY symbol ORDER BY time
        MEASURES FIRST(time) AS since, LAST(down.price) AS bottom, LAST(up.time) AS until, count(*) AS rows
        ONE ROW PER MATCH
        PATTERN (strt down+ up+)
        DEFINE down AS price < PREV(price), up AS price > PREV(price)
    )"""
NEVER = """
    SELECT * FROM numbers MATCH_RECOGNIZE (
        ORDER BY i MEASURES count(*) AS rows PATTERN ({}) DEFINE a AS v = 0, b AS v = 1
    )"""
CHECKED = 200
"""Partitions whose matches are compared with a loop's."""


def trades(rows: int, order: str) -> pa.Table:
    """Trades of so many rows in one of the orders `time`, `partition` or `none`."""
    random = np.random.default_rng(1)
    partitions = max(1, rows // PER_PARTITION)
    symbol = random.integers(0, partitions, rows)
    time_of = np.arange(rows)
    if order == "partition":
        symbol = np.sort(symbol)
    if order == "none":
        time_of = random.permutation(rows)
    price = random.integers(1, 10_000, rows) / 100
    return pa.table({"symbol": symbol, "time": time_of, "price": price})


def v_shapes(rows: Sequence[tuple[int, float]]) -> Iterator[tuple[int, float, int, int]]:
    """The V shapes of one partition, by a loop over its times and prices in order."""
    start = 0
    while start < len(rows):
        bottom = start
        while bottom + 1 < len(rows) and rows[bottom + 1][1] < rows[bottom][1]:
            bottom += 1
        top = bottom
        while top + 1 < len(rows) and rows[top + 1][1] > rows[top][1]:
            top += 1
        if start < bottom < top:
            yield rows[start][0], rows[bottom][1], rows[top][0], top - start + 1
            start = top + 1
        else:
            start += 1


def check(table: pa.Table, rows: pa.Table) -> None:
    """Compares the matches of the first partitions with the loop's."""
    mine = table.filter(pa.compute.less(table["symbol"], CHECKED)).sort_by(
        [("symbol", "ascending"), ("time", "ascending")]
    )
    wanted = []
    symbols = mine["symbol"].to_numpy()
    for symbol in np.unique(symbols).tolist():
        begin, end = np.searchsorted(symbols, [symbol, symbol + 1]).tolist()
        part = mine.slice(begin, end - begin)
        rows = list(zip(part["time"].to_pylist(), part["price"].to_pylist(), strict=True))
        wanted += [(symbol, *shape) for shape in v_shapes(rows)]
    first = rows.filter(pa.compute.less(rows["symbol"], CHECKED))
    if list(zip(*first.to_pydict().values(), strict=True)) != wanted:
        raise SystemExit("wrong: the V shapes are not those of a loop")


def timed(text: str, runs: int = 3, **tables: pa.Table) -> tuple[float, float]:
    """The wall-clock and CPU seconds of the fastest of some runs."""
    best = (float("inf"), 0.0)
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        estero.sql(text, **tables).to_arrow()
        best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
    return best


def resident() -> tuple[int, int]:
    """The resident memory of this process now, and its peak, in bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    values = dict(line.split(":", 1) for line in status.splitlines())
    now, peak = (int(values[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return now, peak


def memory(rows: int, order: str) -> None:
    """Prints the peak of resident memory that one evaluation adds, beside the bytes of the input."""
    table = trades(rows, order)
    estero.sql(V_SHAPES, trades=table.slice(0, PER_PARTITION)).to_arrow()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak is what is resident now
    before, _ = resident()
    shapes = estero.sql(V_SHAPES, trades=table).to_arrow()
    added = resident()[1] - before
    print(
        f"{order}: {rows:,} rows, {table.nbytes / 1e6:.0f} MB as a sorted table would have; the evaluation "
        f"adds {added / 1e6:.0f} MB at its peak, {added / table.nbytes:.2f} times that "
        f"({shapes.nbytes / 1e6:.0f} MB are the result)"
    )


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.row_patterns", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--order", choices=("time", "partition", "none"), action="append")
    parser.add_argument("--memory", action="store_true", help="measure memory in place of time")
    said = parser.parse_args()
    orders = said.order or ["time", "partition", "none"]
    if said.memory:
        for order in orders[:1]:  # a second one would begin with what the first has left
            memory(said.rows, order)
        return
    for order in orders:
        table = trades(said.rows, order)
        rows = estero.sql(V_SHAPES, trades=table).to_arrow()
        check(table, rows)
        wall, cpu = timed(V_SHAPES, trades=table)
        print(
            f"V shapes, in order of {order}: {said.rows / wall / 1e6:.1f} million rows a second "
            f"({wall:.2f} s, {cpu:.2f} s of CPU, {rows.num_rows:,} matches)"
        )
    numbers = pa.table({"i": np.arange(said.rows // 10), "v": np.zeros(said.rows // 10, np.int64)})
    for pattern in ("a+ b", "(a+)+ b"):
        if estero.sql(NEVER.format(pattern), numbers=numbers).to_arrow().num_rows:
            raise SystemExit(f"wrong: {pattern} has matches")
        wall, cpu = timed(NEVER.format(pattern), numbers=numbers)
        print(f"{pattern}, {len(numbers):,} rows of one partition: {wall:.2f} s ({cpu:.2f} s of CPU)")


if __name__ == "__main__":
    main()
