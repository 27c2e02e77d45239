"""``python -m benchmarks.long_run``: a stream without an end, in small; its memory stays the same.

A set of rules with windows is pushed events whose partitions come and go: each key is in use for a while and
never again, so that after 10^7 events there were 10^6 of them. A rule is replaced now and then, and the
recognizer is now and then written as a snapshot and restored from it. Printed are, a hundredth of the events
after another, the resident memory of the process, the bytes of the state, and CPU seconds for a million
events; the run fails if the largest memory of the last half is more than a tenth above that of the first
half behind its warm-up. First, answers of a small stream are compared with those of one run over it.

    python -m benchmarks.long_run                       # 10^7 events, some minutes
    python -m benchmarks.long_run --events 1e9 --batch 1e5
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import estero

KINDS = ("open", "fail", "close", "other")
EVENTS_OF_KEY = 10
KEYS_AT_ONCE = 1_000
LAYOUT: dict[str, Any] = {"type": "kind", "time": "time"}
CHECKED = 100_000
WARM_UP = 0.1
MOST = 1.1
"""How much larger memory may be in the last half."""


class Wrong(Exception):
    """Answers are not what they must be, or memory grows."""


def rules_of(round_: int) -> dict[str, str]:
    """Rules with windows, an absence and a condition that is another one each time."""
    return {
        "failed": "SELECT * WHERE open ; fail ; fail ; close PARTITION BY [key] WITHIN 20 SECONDS",
        "silent": "SELECT * WHERE open ; NOT(close) FOR 10 SECONDS PARTITION BY [key]",
        "longest": "SELECT LONGEST * WHERE fail+ PARTITION BY [key] WITHIN 5 SECONDS",
        "changing": f"SELECT * WHERE open AS o ; close AS c FILTER o[value > {90 + round_ % 10}] "
        "PARTITION BY [key] WITHIN 30 SECONDS",
    }


def batches(events: int, size: int) -> Iterator[pa.Table]:
    """Batches of events a millisecond apart, drawn; a key is one of a thousand that move on with them."""
    for first in range(0, events, size):
        draw = np.random.default_rng(first)
        place = np.arange(first, min(first + size, events))
        keys = place // EVENTS_OF_KEY + draw.integers(0, KEYS_AT_ONCE, place.size)
        kinds = np.array(KINDS)[draw.integers(0, len(KINDS), place.size)]
        yield pa.table(
            {
                "kind": kinds,
                "time": pa.array(place * 1_000, pa.timestamp("us")),
                "key": keys,
                "value": draw.integers(0, 100, place.size),
            }
        )


def check() -> int:
    """Compares a stream in batches, with snapshots between, with one run; how many answers there are."""
    rules = estero.rules(rules_of(0))
    tables = list(batches(CHECKED, 10_000))
    recognizer = rules.recognizer(tables[0].schema, **LAYOUT)
    counts = dict.fromkeys(rules, 0)
    for table in tables:
        counts = {name: counts[name] + number for name, number in recognizer.push(table).counts().items()}
        recognizer = estero.restore(rules, recognizer.snapshot())
    counts = {name: counts[name] + number for name, number in recognizer.close().counts().items()}
    expected = rules.run(pa.concat_tables(tables), **LAYOUT).counts()
    if counts != expected or not all(counts.values()):
        raise Wrong(f"{counts}, not {expected}")
    return sum(counts.values())


def resident() -> int:
    """The bytes of this process in memory (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(events: int, size: int) -> list[dict[str, Any]]:
    """Pushes the events in batches of this size, and gives what was measured."""
    every = max(1, events // size // 100)
    rows: list[dict[str, Any]] = []
    recognizer: Any = None
    answers, worked = 0, time.process_time()
    for number, table in enumerate(batches(events, size), 1):
        if recognizer is None:
            recognizer = estero.rules(rules_of(0)).recognizer(table.schema, **LAYOUT)
        answers += recognizer.push(table).count()
        if number % every:
            continue
        round_ = number // every
        recognizer.replace("changing", rules_of(round_)["changing"])
        if round_ % 10 == 0:
            recognizer = estero.restore(estero.rules(rules_of(round_)), recognizer.snapshot())
        now = recognizer.metrics()
        rows.append(
            {
                "events": number * size,
                "resident MB": round(resident() / 1e6, 1),
                "state MB": round(now["state_bytes"] / 1e6, 2),
                "partitions": now["partitions"],
                "answers": answers,
                "CPU s of a million events": round((time.process_time() - worked) / (every * size) * 1e6, 2),
            }
        )
        worked = time.process_time()
        if round_ % 10 == 0:
            print(rows[-1], flush=True)
    return rows


def check_memory(rows: list[dict[str, Any]]) -> float:
    """How much larger the memory of the last half is at most; raises `Wrong` where it grows."""
    sizes = [row["resident MB"] for row in rows]
    half = len(sizes) // 2
    ratio = max(sizes[half:]) / max(sizes[int(len(sizes) * WARM_UP) : half])
    if ratio > MOST:
        raise Wrong(f"the last half takes {ratio:.2f} times the memory of the first one")
    return float(ratio)


def main() -> None:
    """Checks, then runs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_run", description=__doc__)
    parser.add_argument("--events", type=float, default=1e7)
    parser.add_argument("--batch", type=float, default=1e4)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    print(f"{check():,} answers are those of one run")
    rows = run(int(given.events), int(given.batch))
    if given.out is not None:
        given.out.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"the last half takes at most {check_memory(rows):.3f} times the memory of the first one")


if __name__ == "__main__":
    main()
