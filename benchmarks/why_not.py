"""Why not: the time that it takes to say what keeps a million events away, beside that of a count.

    python -m benchmarks.why_not [events]

Processor time, so that other processes do not count. What is said of the first condition is compared with
what NumPy counts.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import pyarrow as pa

import estero

QUERIES = [
    "SELECT * WHERE a ; b ; c FILTER c.v > 60 AND b.v < 20 PARTITION BY [k] WITHIN 20000 [time]",
    "SELECT * WHERE a ;[<= 5 [time]] b ; c : d FILTER c.v > 60 WITHIN 100 [time]",
    "SELECT * WHERE a ;[<= 5 [time]] b ; c : d FILTER c.v > 60 AND c.v > a.v AND c.k = a.k WITHIN 100 [time]",
    "SELECT * WHERE a ; b+ ; c FILTER c.v > 60 PARTITION BY [k]",
]
"""`c.v > 60` is true of no event."""


def stream(events: int) -> pa.Table:
    """Five types, a thousand keys, values below 59, one time unit between events."""
    draw = np.random.default_rng(1)
    return pa.table(
        {
            "type": np.array(list("abcde"))[draw.integers(0, 5, events)],
            "time": np.arange(events),
            "k": draw.integers(0, 1000, events),
            "v": draw.random(events) * 59,
        }
    )


def check(table: pa.Table) -> None:
    """Raises AssertionError unless a condition on one event rejects all of its type, the largest nearest."""
    answer = estero.query("SELECT * WHERE c FILTER c.v > 60").run(table, type="type", time="time")
    (reason,) = answer.why_not(sample=table.num_rows).reasons
    values = table["v"].to_numpy()[table["type"].to_numpy(zero_copy_only=False) == "c"]
    if reason.events != values.size or f"c.v is {values.max():.12g} " not in reason.nearest:
        raise AssertionError(f"{reason}, and there are {values.size} events, at most {values.max()}")


def main(events: int) -> None:
    """Prints a line for each query."""
    warnings.simplefilter("ignore")
    table = stream(events)
    check(table)
    for text in QUERIES:
        taken = []
        for _ in range(3):
            answer = estero.query(text).run(table, type="type", time="time")
            begun = time.process_time()
            answer.count()
            counted = time.process_time()
            said = answer.why_not()
            taken.append((time.process_time() - counted, counted - begun))
        seconds, count = min(taken)
        print(f"{seconds:5.2f} s, count {count:5.2f} s, {len(said.reasons)} reasons  {text}")


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000)
