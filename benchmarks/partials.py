"""How far it came: funnels, the number of partial matches, and their rows, beside the count of an answer.

    python -m benchmarks.partials [events]

Processor time, so that other processes do not count. Over the first 3,000 events the number of starts at each
level must be that of a plain program.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

import estero

WINDOW = 20_000
QUERY = "SELECT * WHERE a ; b ; c PARTITION BY [k] WITHIN {} [time]"
KEYS = (1, 1_000, 100_000)
CHECKED = 3_000


def stream(events: int, keys: int) -> pa.Table:
    """Five types, so many keys, one time unit between events."""
    draw = np.random.default_rng(1)
    kinds = np.array(list("abcde"))[draw.integers(0, 5, events)]
    return pa.table({"type": kinds, "time": np.arange(events), "k": draw.integers(0, keys, events)})


def by_hand(table: pa.Table, window: int) -> Counter[int]:
    """How many starts whose windows have passed are at each level."""
    rows = list(zip(table["type"].to_pylist(), table["k"].to_pylist(), strict=True))
    counts: Counter[int] = Counter()
    for start, (kind, key) in enumerate(rows):
        if kind != "a" or start + window >= len(rows) - 1:
            continue
        level, wanted = 1, iter("bc")
        following = next(wanted)
        for other, other_key in rows[start + 1 : start + window + 1]:
            if other_key == key and other == following:
                level += 1
                following = next(wanted, "")
        counts[level] += 1
    return counts


def check(keys: int) -> None:
    """Raises AssertionError unless the partial matches are those of a plain program."""
    table, window = stream(CHECKED, keys), 300
    answer = estero.query(QUERY.format(window)).run(table, type="type", time="time")
    rows = Counter(answer.partials().to_arrow()["steps"].to_pylist())
    wanted = by_hand(table, window)
    del wanted[3]
    if rows != wanted or answer.partials().count() != wanted.total():
        raise AssertionError(f"{rows} and not {wanted}")


def seconds(what: Callable[[], object]) -> float:
    """Processor time, the best of three."""
    taken = []
    for _ in range(3):
        begun = time.process_time()
        what()
        taken.append(time.process_time() - begun)
    return min(taken)


def answer(query: estero.Query, table: pa.Table) -> estero.Answer:
    """A new answer: one that was asked before remembers its count."""
    return query.run(table, type="type", time="time")


ASKED: dict[str, Callable[[estero.Query, pa.Table], object]] = {
    "count": lambda query, table: answer(query, table).count(),
    "funnel": lambda query, table: answer(query, table).funnel(),
    "partials counted": lambda query, table: answer(query, table).partials().count(),
    "listed": lambda query, table: answer(query, table).partials().to_arrow(),
}


def main(events: int) -> None:
    """Prints a line for each number of keys."""
    for keys in KEYS:
        check(keys)
        table = stream(events, keys)
        query = estero.query(QUERY.format(WINDOW))
        taken = {name: seconds(partial(ask, query, table)) for name, ask in ASKED.items()}
        said = ", ".join(
            f"{name} {number:.2f} s ({number / taken['count']:.1f})" for name, number in taken.items()
        )
        print(f"{keys:,} keys, {ASKED['partials counted'](query, table):,} partial matches: {said}")


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000)
