"""A thousand rules over one stream: events per second, beside one rule, and the time to load ten thousand.

    python -m benchmarks.rules [--events 10000000] [--rules 1000] [--parquet]

Each rule is a sequence of three events with its own names, inside a window; names are so many that five rules
want an event. The numbers of complex events of twenty rules are compared with those of their queries alone
before anything is timed. With ``--parquet`` one rule and the set also read the events from a file of Parquet,
types and names as dictionaries, which is written for that and removed.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import estero

T = TypeVar("T")

WANTED = 5
"""How many rules want an event."""
LAYOUT: dict[str, Any] = {"type": "type"}


def rule_texts(rules: int, seed: int = 7) -> dict[str, str]:
    """The texts of so many rules, by name."""
    names = number_of_names(rules)
    drawn = np.random.default_rng(seed).permuted(np.tile(np.arange(rules) % names, (3, 1)), axis=1)
    return {
        f"rule{number}": (
            "SELECT a, b, c WHERE A AS a ; B AS b ; C AS c "
            f"FILTER a[name = 'n{one}'] AND b[name = 'n{two}'] AND c[name = 'n{three}'] WITHIN 300 EVENTS"
        )
        for number, (one, two, three) in enumerate(drawn.T.tolist())
    }


def number_of_names(rules: int) -> int:
    """How many names there are, so that `WANTED` rules want an event."""
    return max(1, rules // WANTED)


def stream(events: int, rules: int, seed: int = 3) -> pa.Table:
    """Events with a type and a name, both dictionaries, and a value."""
    random = np.random.default_rng(seed)
    names = number_of_names(rules)
    kinds = random.integers(0, 3, events).astype(np.int8)
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(kinds, list("ABC")),
            "name": pa.DictionaryArray.from_arrays(
                random.integers(0, names, events).astype(np.int32), [f"n{number}" for number in range(names)]
            ),
            "value": random.integers(0, 100, events),
        }
    )


def timed(question: Callable[[], T]) -> tuple[float, T]:
    """How long a call takes, in seconds, and what it gives."""
    begun = time.perf_counter()
    result = question()
    return time.perf_counter() - begun, result


def time_from_file(texts: dict[str, str], rules: estero.RuleSet, events: pa.Table) -> None:
    """Prints how long one rule and the set take that read the events from a file."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "events.parquet")
        pq.write_table(events, file)
        one, _ = timed(lambda: estero.query(texts["rule0"]).run(file, **LAYOUT).count())
        took, total = timed(lambda: rules.run(file, **LAYOUT).count())
    print(
        f"from a file of Parquet: one rule {one:.2f} s, {len(rules):,} rules {took:.2f} s, "
        f"{took / one:.1f} times one rule, {total:,} complex events"
    )


def main() -> None:
    """Compares, then prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rules", type=int, default=1_000)
    parser.add_argument("--load", type=int, default=10_000)
    parser.add_argument("--parquet", action="store_true")
    asked = parser.parse_args()
    events = stream(asked.events, asked.rules)
    texts = rule_texts(asked.rules)
    rules = estero.rules(texts)
    some = events.slice(0, min(asked.events, 200_000))
    counts = rules.run(some, **LAYOUT).counts()
    for name in list(texts)[:: max(1, len(texts) // 20)]:
        alone = estero.query(texts[name]).run(some, **LAYOUT).count()
        if counts[name] != alone:
            raise SystemExit(f"{name} has {counts[name]} complex events in the set, and {alone} alone")
    one, _ = timed(lambda: estero.query(texts["rule0"]).run(events, **LAYOUT, threads=1).count())
    print(f"one rule: {one:.2f} s, {asked.events / one / 1e6:.2f} M events/s")
    took, total = timed(lambda: rules.run(events, **LAYOUT).count())
    print(
        f"{asked.rules:,} rules: {took:.2f} s, {asked.events / took / 1e6:.2f} M events/s, "
        f"{took / one:.1f} times one rule, {total:,} complex events"
    )
    if asked.parquet:
        time_from_file(texts, rules, events)
    if asked.load:
        more = rule_texts(asked.load)
        took, loaded = timed(lambda: estero.rules(more))
        begun, _ = timed(lambda: loaded.run(some.slice(0, 1000), **LAYOUT).counts())
        print(f"{asked.load:,} rules: read in {took:.1f} s, started in {begun:.1f} s")
    print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main()
