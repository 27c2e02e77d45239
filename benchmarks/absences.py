"""What did not happen: events that are not followed by another one of their key in an hour.

``python -m benchmarks.absences [events] [keys]``. Counts are compared with those that NumPy finds by
searching in sorted times, before anything is timed. ``python -m benchmarks.absences --long [events] [keys]``
pushes a long stream to a recognizer, a million events at a time, and prints how much memory it takes; what
the first pushes have given is compared in the same way.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import estero

HOUR = 3600 * 10**6
QUERIES = {
    "SELECT * WHERE a ; NOT(b) FOR 1 HOURS PARTITION BY [k]": "after",
    "SELECT * WHERE NOT(b) FOR 1 HOURS ; a PARTITION BY [k]": "before",
}
"""Each query, and where no b may be."""


def events(size: int, keys: int, *, hours: int = 100, block: int = 0) -> pa.Table:
    """Events of the kinds a, b and c, in so many hours, each of one of so many keys; those of a block."""
    draw = np.random.default_rng(1 + block)
    kinds = pa.DictionaryArray.from_arrays(draw.integers(0, 3, size, np.int8), [*"abc"])
    times = np.sort(draw.integers(0, hours * HOUR, size)) + block * hours * HOUR
    columns = {"kind": kinds, "time": times.astype("datetime64[us]"), "k": draw.integers(0, keys, size)}
    return pa.table(columns)


def expected(table: pa.Table, where: str) -> int:
    """How many complex events there are, by searching among the events of each key in order."""
    kinds = table.column("kind").combine_chunks().indices.to_numpy()
    times = table.column("time").to_numpy().astype(np.int64)
    keys = table.column("k").to_numpy()
    order = np.lexsort((np.arange(keys.size), keys))
    kinds, times, keys = kinds[order], times[order], keys[order]
    a, b = np.flatnonzero(kinds == 0), np.flatnonzero(kinds == 1)
    place = np.searchsorted(b, a)
    near = np.append(b, 0)[place] if where == "after" else np.append(0, b)[place]
    there = place < b.size if where == "after" else place > 0
    close = there & (keys[near] == keys[a]) & (np.abs(times[near] - times[a]) <= HOUR)
    decided = times[a] + HOUR < times.max() if where == "after" else np.True_
    return int((~close & decided).sum())


def best_of(runs: int, measured: Callable[[], object]) -> float:
    """The fewest seconds of processor time."""
    taken = []
    for _ in range(runs):
        began = time.process_time()
        measured()
        taken.append(time.process_time() - began)
    return min(taken)


def main(size: int, keys: int) -> None:
    """Compares and measures each query, listing complex events and counting them."""
    table = events(size, keys)
    for text, where in QUERIES.items():
        query = estero.query(text)

        def count(query: estero.Query = query) -> int:
            return query.run(table, type="kind", time="time").count()

        def listed(query: estero.Query = query) -> int:
            return sum(batch.num_rows for batch in query.run(table, type="kind", time="time").batches())

        counted, wanted = listed(), expected(table, where)
        if not counted == wanted == count():
            raise AssertionError(f"{text}: {counted} complex events, and not {wanted}")
        rates = [size / best_of(3, form) / 1e6 for form in (listed, count)]
        print(
            f"{rates[0]:5.1f} million events/s of processor time listed, {rates[1]:5.1f} counted"
            f"  {counted:>12,} found  {text}"
        )


def long(size: int, keys: int) -> None:
    """Pushes blocks of a million events; prints memory and speed ten times."""
    text = next(iter(QUERIES))
    blocks = size // BLOCK
    hours = BLOCK // keys  # each key has an event in an hour, as with 10^7 events of 10^5 keys
    recognizer = estero.query(text).recognizer(events(1, keys).schema, type="kind", time="time")
    total, taken, first = 0, 0.0, []
    for number in range(blocks):
        table = events(BLOCK, keys, hours=hours, block=number)
        began = time.process_time()
        total += recognizer.push(table).count()
        taken += time.process_time() - began
        if number < CHECKED:
            first.append(table)
        if number == CHECKED - 1 and total != expected(together(first), "after"):
            raise AssertionError(f"{total} complex events, and not {expected(together(first), 'after')}")
        if (number + 1) % max(1, blocks // 10) == 0:
            speed = (number + 1) * BLOCK / taken / 1e6
            print(
                f"{(number + 1) * BLOCK:>13,} events, {total:>12,} found, {speed:4.1f} million events/s of "
                f"processor time, {memory():6.0f} MB, open: {recognizer.progress().waiting:,} events"
            )


BLOCK, CHECKED = 1_000_000, 5


def together(tables: list[pa.Table]) -> pa.Table:
    """All rows, the kinds with one dictionary."""
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def memory() -> float:
    """Megabytes that the process has in memory now."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


if __name__ == "__main__":
    given = [int(float(word)) for word in sys.argv[1:] if word != "--long"]
    if "--long" in sys.argv:
        long(*given, *(100_000_000, 100_000)[len(given) :])
    else:
        main(*given, *(1_000_000, 10_000)[len(given) :])
