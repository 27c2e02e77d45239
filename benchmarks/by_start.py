"""``python -m benchmarks.by_start``: one complex event for each incident, LONGEST DISJOINT of ``A+ ; B``.

Whole answers over streams of two lengths, from an Arrow table to the rows; the longer one should take ten
times as long. Then sessions, LONGEST DISJOINT of ``click+[<= 30 …]``, where runs are told apart by their
distances, too. Starts, ends and numbers of marked events are checked against a plain program before anything
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

CHECKED = 3_000
LENGTHS = (100_000, 1_000_000)
WINDOWS = (100, 10_000, None)
SHARE_OF_ENDS = 0.1
TIMES = 5

Span = tuple[int, int, int]
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


def plainly(kinds: Sequence[str], window: int | None) -> list[Span]:
    """What a plain program finds: from each A on, the last B in the window, and all that is A before it."""
    spans = []
    start = 0
    while start < len(kinds):
        last = len(kinds) - 1 if window is None else min(start + window, len(kinds) - 1)
        ends = [end for end in range(start + 1, last + 1) if kinds[end] == "B"] if kinds[start] == "A" else []
        if not ends:
            start += 1
            continue
        spans.append((start, ends[-1], kinds[start : ends[-1]].count("A")))
        start = ends[-1] + 1
    return spans


def check(window: int | None) -> None:
    """Compares with a plain program; raises `Wrong` where they differ."""
    events = stream(CHECKED)
    answer = query(window).run(events, type="type", time="time")
    spans = [(match.start, match.end, len(match["A"])) for match in answer]
    if spans != plainly(events["type"].to_pylist(), window):
        raise Wrong(f"window {window}: {spans[:3]} …")


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
        "seconds": [round(time, 3) for time, _ in taken],
        "ratio": round(long / short, 1),
        "events a second": round(LENGTHS[1] / long),
        "rows": rows,
    }


def clicks(events: int, keys: int) -> pa.Table:
    """Seeded clicks of so many users, a fifth of the gaps of each longer than that between sessions."""
    draw = np.random.default_rng(2)
    user = draw.integers(0, keys, events)
    time_ = np.cumsum(draw.choice([0, 1, 2, 60 * keys], events, p=[0.4, 0.3, 0.2999, 0.0001])) // keys
    return pa.table({"type": pa.array(["click"] * events).dictionary_encode(), "time": time_, "user": user})


SESSIONS = "SELECT LONGEST DISJOINT click WHERE click+[<= 30 [time]] PARTITION BY [user] WITHIN 200 [time]"
KEYS = (1, 100, 10_000)


def sessions_plainly(events: pa.Table) -> list[Span]:
    """What a plain program finds: a session ends before a gap, or where it gets longer than the window."""
    spans: list[Span] = []
    users, times = events["user"].to_numpy(), events["time"].to_numpy()
    for user in np.unique(users).tolist():
        places = np.flatnonzero(users == user).tolist()
        first, count = places[0], 0
        for place, after in zip(places, [*places[1:], -1], strict=True):
            count += 1
            if after < 0 or times[after] - times[place] > 30 or times[after] - times[first] > 200:
                spans.append((first, place, count))
                first, count = after, 0
    return sorted(spans)


def check_sessions(keys: int) -> None:
    """Compares with a plain program; raises `Wrong` where they differ."""
    events = clicks(CHECKED, keys)
    answer = estero.query(SESSIONS).run(events, type="type", time="time")
    spans = sorted((match.start, match.end, len(match["click"])) for match in answer)
    if spans != sessions_plainly(events):
        raise Wrong(f"{keys} keys: {spans[:3]} …")


def measured_sessions(keys: int) -> dict[str, Any]:
    """The time of 10^5 clicks of so many users, and how many clicks a window has."""
    events, least, rows = clicks(LENGTHS[0], keys), float("inf"), 0
    for _ in range(TIMES):
        began = time.process_time()
        answer = estero.query(SESSIONS).run(events, type="type", time="time")
        rows = sum(batch.num_rows for batch in answer.batches())
        least = min(least, time.process_time() - began)
    return {
        "keys": keys,
        "seconds": round(least, 3),
        "events a second": round(LENGTHS[0] / least),
        "rows": rows,
    }


def main() -> None:
    """Checks, then times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.by_start", description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="where to write the figures, as JSON")
    asked = parser.parse_args()
    for window in WINDOWS:
        check(window)
    for keys in KEYS:
        check_sessions(keys)
    rows = []
    for keys in KEYS:
        rows.append(measured_sessions(keys))
        print(json.dumps(rows[-1]), flush=True)
    for window in WINDOWS:
        for shown in ("*", "NONE"):
            rows.append(measured(window, shown))
            print(json.dumps(rows[-1]), flush=True)
    if asked.out is not None:
        asked.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
