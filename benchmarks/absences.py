"""What did not happen: events that are not followed by another one of their key in an hour.

``python -m benchmarks.absences [events] [keys]``. Counts are compared with those that NumPy finds by
searching in sorted times, before anything is timed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import estero

HOUR = 3600 * 10**6
QUERIES = {
    "SELECT * WHERE a ; NOT(b) FOR 1 HOURS PARTITION BY [k]": "after",
    "SELECT * WHERE NOT(b) FOR 1 HOURS ; a PARTITION BY [k]": "before",
}
"""Each query, and where no b may be."""


def events(size: int, keys: int) -> pa.Table:
    """Events of the kinds a, b and c, in 100 hours, each of one of so many keys."""
    draw = np.random.default_rng(1)
    kinds = pa.DictionaryArray.from_arrays(draw.integers(0, 3, size, np.int8), [*"abc"])
    times = np.sort(draw.integers(0, 100 * HOUR, size))
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

        found, wanted = listed(), expected(table, where)
        if not found == wanted == count():
            raise AssertionError(f"{text}: {found} complex events, and not {wanted}")
        rates = [size / best_of(3, each) / 1e6 for each in (listed, count)]
        print(
            f"{rates[0]:5.1f} million events/s of processor time listed, {rates[1]:5.1f} counted"
            f"  {found:>12,} found  {text}"
        )


if __name__ == "__main__":
    given = [int(float(each)) for each in sys.argv[1:]]
    main(*given, *(1_000_000, 10_000)[len(given) :])
