"""Many events, keys that come and go, rules that change: what is held does not grow with the stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import estero

PUSHES, EVENTS, KEYS = 40, 20_000, 100_000
LAYOUT: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s"}
SCHEMA = pa.schema([("type", pa.string()), ("time", pa.int64()), ("k", pa.int64()), ("n", pa.int64())])
RULES = {
    "followed": "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 20 SECONDS",
    "bounded": "SELECT * WHERE A ; B ; C FILTER A[n > 40] PARTITION BY [k] WITHIN 30 SECONDS",
    "missing": "SELECT * WHERE A ; NOT(B) FOR 5 SECONDS PARTITION BY [k]",
    "joined": "SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k AND a.n < b.n WITHIN 10 SECONDS",
    "longest": "SELECT LONGEST * WHERE A ; C+ PARTITION BY [k] WITHIN 20 SECONDS",
    "counted": "SELECT NEXT * WHERE A ; A ; C FILTER A[n < 5] WITHIN 10 SECONDS",
}
SIZES = ("open_events", "partitions", "nodes", "states", "state_bytes", "waiting")


def batch(number: int, random: np.random.Generator) -> pa.Table:
    """Events of 100 seconds, whose keys move on with time."""
    first = number * EVENTS
    keys = (first + np.arange(EVENTS)) // 8 + random.integers(0, 200, EVENTS)
    columns = {
        "type": random.choice(np.array(["A", "B", "C", "D"]), EVENTS),
        "time": (first + np.arange(EVENTS)) // 200,
        "k": keys,
        "n": random.integers(0, 50, EVENTS),
    }
    return pa.table({name: pa.array(columns[name]) for name in SCHEMA.names}, schema=SCHEMA)


def sizes_of(recognizer: Any) -> dict[str, int]:
    """What is held, as metrics and a snapshot say it."""
    metrics = recognizer.metrics()
    held = sum(reading.size for reading in recognizer._readings)
    classes = sum(
        int(group.recognition.recognizer.runs._classes.size[0])
        for reading in recognizer._readings
        for group in reading.groups
        if hasattr(group.recognition.recognizer.runs, "_classes")
    )
    own = {"snapshot": len(recognizer.snapshot()), "held": held, "classes": classes}
    own["groups"] = sum(len(reading.groups) for reading in recognizer._readings)
    own["places"] = sum(len(group.names) for reading in recognizer._readings for group in reading.groups)
    own["dispatched"] = sum(len(reading._dispatch.places) for reading in recognizer._readings)
    return {**{name: metrics[name] for name in SIZES}, **own}


@pytest.mark.long
def test_nothing_grows_with_the_stream() -> None:
    random = np.random.default_rng(7)
    recognizer = estero.rules(RULES).recognizer(SCHEMA, **LAYOUT)
    seen: dict[int, dict[str, int]] = {}
    for number in range(PUSHES):
        recognizer.push(batch(number, random))
        if number >= 2:
            recognizer.remove(f"added {number - 2}")
        recognizer.add(
            f"added {number}",
            f"SELECT * WHERE A ; C FILTER A[n > {number}] PARTITION BY [k] WITHIN 10 SECONDS",
        )
        if number + 1 in (PUSHES // 2, PUSHES):
            seen[number + 1] = sizes_of(recognizer)
    half, end = seen.values()
    assert PUSHES * EVENTS // 8 >= KEYS
    assert min(half["partitions"], half["nodes"], half["open_events"]) > 100
    grown = {name: (half[name], end[name]) for name in end if end[name] > 1.2 * half[name]}
    assert not grown


def test_the_place_of_a_rule_that_is_gone_is_used_again_when_nothing_is_left_of_it() -> None:
    text = "SELECT * WHERE A ; C FILTER A[n > {}] PARTITION BY [k] WITHIN 10 SECONDS"
    recognizer = estero.rules({"kept": text.format(0), "gone": text.format(1)}).recognizer(SCHEMA, **LAYOUT)

    def pushed(kind: str, time: int) -> dict[str, int]:
        row = {"type": kind, "time": time, "k": 1, "n": 9}
        return recognizer.push(pa.Table.from_pylist([row], SCHEMA)).counts()

    pushed("A", 0)
    recognizer.remove("gone")
    recognizer.add("other", text.format(2))
    (group,) = recognizer._readings[0].groups
    assert group.names == ("kept", "gone", "other"), "something of it is open"
    assert pushed("C", 1) == {"kept": 1, "other": 0}
    assert pushed("D", 100) == {"kept": 0, "other": 0}
    pushed("A", 101)
    pushed("A", 120)
    recognizer.add("third", text.format(3))
    assert group.names == ("kept", "third", "other")
    assert pushed("C", 121) == {"kept": 1, "other": 1, "third": 0}
