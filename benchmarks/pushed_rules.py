"""One large push to a set's recognizer beside a run over the same events, in CPU time.

    python -m benchmarks.pushed_rules [--events 1000000] [--rules 200]

Rules are sequences of three events with constants of their own, by one key or by two.
The numbers of answers are compared.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pyarrow as pa

import estero

LAYOUT: dict[str, Any] = {"type": "type", "time": "time"}


def events(number: int) -> pa.Table:
    """Events of four types, users, hosts and paths."""
    random = np.random.default_rng(1)

    def some(texts: list[str]) -> pa.Array:
        return pa.array(texts).take(pa.array(random.integers(0, len(texts), number)))

    return pa.table(
        {
            "type": some(["A", "B", "C", "D"]),
            "time": pa.array(np.arange(number) * 1000, pa.timestamp("us")),
            "user": some([f"user{user}" for user in range(5000)]),
            "host": pa.array(random.integers(0, 100, number)),
            "path": some([f"/p{path}/x" for path in range(2000)]),
            "size": pa.array(random.integers(0, 10**6, number)),
            "note": some([f"some longer text {note}" for note in range(1000)]),
        }
    )


def rule(number: int, keys: str) -> str:
    """The text of one of the rules."""
    return (
        f"SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a[path = '/p{number}/x'] "
        f"AND b[size > {900_000 - number}] AND c[size < {1000 + number}] PARTITION BY {keys} WITHIN 1 HOUR"
    )


def main() -> None:
    """Compares and times."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rules", type=int, default=200)
    asked = parser.parse_args()
    table = events(asked.events)
    for keys in ("[user]", "[user], [host]"):
        rules = estero.rules({f"rule{number}": rule(number, keys) for number in range(asked.rules)})
        rules.run(table.slice(0, 1000), threads=1, **LAYOUT).count()
        recognizer = rules.recognizer(table.schema, **LAYOUT)
        begin = time.process_time()
        answers = rules.run(table, threads=1, **LAYOUT).count()
        between = time.process_time()
        pushed = recognizer.push(table).count()
        end = time.process_time()
        if pushed != answers:
            raise SystemExit("a push has another number of answers than a run")
        print(f"{keys}: run {between - begin:.2f} s, push {end - between:.2f} s of CPU; {answers:,} answers")


if __name__ == "__main__":
    main()
