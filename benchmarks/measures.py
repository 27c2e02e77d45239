"""What SELECT computes, beside SELECT NONE: CPU seconds for an answer of 1.5 million rows, which is checked.

``python -m benchmarks.measures``; it runs both in turns, three times.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import estero

EVENTS = 1_000_000
PATTERN = "WHERE A AS a ; B AS b ; A AS c WITHIN 4 EVENTS"
MEASURES = (
    "count(b) AS n, sum(b.volume) AS volume, max(c.price) AS most, first(a.price) AS opened, "
    "sum(b.price * b.volume) AS turnover"
)


def events() -> pa.Table:
    """Events of two types in turn, with a price and a volume."""
    random = np.random.default_rng(1)
    numbers = np.arange(EVENTS)
    return pa.table(
        {
            "kind": np.where(numbers % 2 == 0, "A", "B"),
            "price": random.random(EVENTS) * 100,
            "volume": random.integers(1, 1000, EVENTS),
            "ts": numbers,
        }
    )


def main() -> None:
    """Prints the CPU seconds of each run, and how many times as long the measures take."""
    table = events()
    answers = {
        select: estero.query(f"SELECT {select} {PATTERN}").run(table, type="kind", time="ts")
        for select in ("NONE", MEASURES)
    }
    _check(table, answers[MEASURES].to_arrow())
    for _ in range(3):
        taken = {}
        for select, answer in answers.items():
            began = time.process_time()
            rows = sum(batch.num_rows for batch in answer.batches())
            taken[select] = time.process_time() - began
        none, measured = taken.values()
        print(f"{rows:,} rows: NONE {none:.2f} s, measures {measured:.2f} s, {measured / none:.1f} times")


def _check(table: pa.Table, answer: pa.Table) -> None:
    """Compares sums over the answer with sums over the events: b is in up to three complex events."""
    volumes = table["volume"].to_numpy()
    b = np.arange(1, EVENTS, 2)
    times = np.zeros(len(b), np.int64)
    for before in (1, 3):
        for after in (1, 3):
            times += (before + after <= 4) & (b - before >= 0) & (b + after < EVENTS)
    totals = len(answer), pc.sum(answer["n"]).as_py(), pc.sum(answer["volume"]).as_py()
    if totals != (int(times.sum()), int(times.sum()), int((volumes[b] * times).sum())):
        raise SystemExit(f"wrong: {totals}")


if __name__ == "__main__":
    main()
