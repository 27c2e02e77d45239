"""``python -m benchmarks.by_start``: one complex event for each incident, LONGEST DISJOINT of ``A+ ; B``.

Whole answers over streams of two lengths, from an Arrow table to the rows; the longer one should take ten
times as long. Starts, ends and numbers of marked events are checked against a plain program before anything
is timed. Prints JSON, or writes it to ``--out``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import estero
from estero.engine.patience import patience

CHECKED = 3_000
LENGTHS = (100_000, 1_000_000)
WINDOWS = (100, 10_000, None)
SHARE_OF_ENDS = 0.1
TIMES = 5

Found = tuple[int, int, int]
"""Start, end, and how many events are marked A."""


class Wrong(Exception):
    """What was found is not what a plain program finds."""


def stream(events: int) -> pa.Table:
    """Seeded events, of which one in ten is a B."""
    ends = np.random.default_rng(1).random(events) < SHARE_OF_ENDS
    kinds = pa.array(np.where(ends, "B", "A")).dictionary_encode()
    return pa.table({"type": kinds, "time": np.arange(events)})


def query(window: int | None, *, shown: str = "*") -> estero.Query:
    """The query with a window of so many events."""
    within = "" if window is None else f" WITHIN {window} EVENTS"
    return estero.query(f"SELECT LONGEST DISJOINT {shown} WHERE A+ ; B{within}")


def plainly(kinds: Sequence[str], window: int | None) -> list[Found]:
    """What a plain program finds: from each A on, the last B in the window, and all that is A before it."""
    found = []
    start = 0
    while start < len(kinds):
        last = len(kinds) - 1 if window is None else min(start + window, len(kinds) - 1)
        ends = [end for end in range(start + 1, last + 1) if kinds[end] == "B"] if kinds[start] == "A" else []
        if not ends:
            start += 1
            continue
        found.append((start, ends[-1], kinds[start : ends[-1]].count("A")))
        start = ends[-1] + 1
    return found


def check(window: int | None) -> None:
    """Compares with a plain program; raises `Wrong` where they differ."""
    events = stream(CHECKED)
    answer = query(window).run(events, type="type", time="time")
    found = [(each.start, each.end, len(each["A"])) for each in answer]
    if found != plainly(events["type"].to_pylist(), window):
        raise Wrong(f"window {window}: {found[:3]} …")


def seconds(window: int | None, events: pa.Table, shown: str) -> tuple[float, int]:
    """Processor time of the whole answer, the least of a few, and how many rows it has."""
    asked = query(window, shown=shown)
    least, rows = float("inf"), 0
    for _ in range(TIMES):
        began = time.process_time()
        rows = sum(batch.num_rows for batch in asked.run(events, type="type", time="time").batches())
        least = min(least, time.process_time() - began)
    return least, rows


def measured(window: int | None, shown: str) -> dict[str, Any]:
    """The time of both lengths, their ratio, and events a second of the longer one."""
    taken = [seconds(window, stream(events), shown) for events in LENGTHS]
    (short, _), (long, rows) = taken
    return {
        "window": window,
        "shown": shown,
        "seconds": [round(each, 3) for each, _ in taken],
        "ratio": round(long / short, 1),
        "events a second": round(LENGTHS[1] / long),
        "rows": rows,
    }


def main() -> None:
    """Checks, then times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.by_start", description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="where to write the figures, as JSON")
    asked = parser.parse_args()
    patience.compile_first()
    for window in WINDOWS:
        check(window)
    rows = []
    for window in WINDOWS:
        for shown in ("*", "NONE"):
            rows.append(measured(window, shown))
            print(json.dumps(rows[-1]), flush=True)
    if asked.out is not None:
        asked.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
