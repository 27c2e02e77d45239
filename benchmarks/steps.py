"""Steps over dense events: distances checked by the age of runs, and what must not lie between.

``python -m benchmarks.steps [events]``. Counts are compared with those that NumPy finds by searching sorted
times, before anything is timed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import estero

MINUTE = 60
QUERIES = {
    "SELECT NONE WHERE a ;[<= 5 MINUTES] b ;[NOT c] d": (5 * MINUTE, None),
    "SELECT NONE WHERE a ;[<= 5 MINUTES] b ;[NOT c] d WITHIN 1 HOURS": (5 * MINUTE, 60 * MINUTE),
    "SELECT NONE WHERE a ;[<= 500 MINUTES] b ;[NOT c] d": (500 * MINUTE, None),
}
"""Each query, how many seconds lie between a and b at most, and how long it may take in all."""


def events(size: int) -> pa.Table:
    """One event in each second; half of them are of the kinds a, b, c and d, the others of a kind x."""
    draw = np.random.default_rng(1)
    kinds = pa.DictionaryArray.from_arrays(np.minimum(draw.integers(0, 8, size, np.int8), 4), [*"abcdx"])
    return pa.table({"kind": kinds, "time": (np.arange(size) * 10**6).astype("datetime64[us]")})


def expected(kinds: NDArray[np.int8], most: int, window: int | None) -> int:
    """How many complex events there are, by searching; times are places."""
    a, b, c, d = (np.flatnonzero(kinds == code) for code in range(4))
    nearest = np.append(c, kinds.size)[np.searchsorted(c, b)]
    if window is None:
        before = np.searchsorted(a, b) - np.searchsorted(a, b - most)
        after = np.searchsorted(d, nearest) - np.searchsorted(d, b)
        return int((before * after).sum())
    total = 0
    for one, end in zip(b.tolist(), nearest.tolist(), strict=True):
        lasts = d[np.searchsorted(d, one) : np.searchsorted(d, end)]
        oldest = np.maximum(one - most, lasts - window)
        total += int((np.searchsorted(a, one) - np.searchsorted(a, oldest)).clip(0).sum())
    return total


def best_of(runs: int, measured: Callable[[], object]) -> float:
    """The fewest seconds of processor time."""
    taken = []
    for _ in range(runs):
        began = time.process_time()
        measured()
        taken.append(time.process_time() - began)
    return min(taken)


def main(size: int) -> None:
    """Compares and measures each query."""
    table = events(size)
    kinds = table.column("kind").combine_chunks().indices.to_numpy()
    for text, (most, window) in QUERIES.items():
        query = estero.query(text)

        def count(query: estero.Query = query) -> int:
            return query.run(table, type="kind", time="time").count()

        counted, wanted = count(), expected(kinds, most, window)
        if counted != wanted:
            raise AssertionError(f"{text}: {counted} complex events, and not {wanted}")
        seconds = best_of(3, count)
        print(f"{size / seconds / 1e6:6.1f} million events/s of processor time  {counted:>14,} found  {text}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
