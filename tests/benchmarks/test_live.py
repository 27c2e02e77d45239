"""The benchmark of the local engine: its events and rules are what its page says."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

sys.path.append(str(Path(__file__).parents[2]))

import estero
from benchmarks.live import rows_of, rules_of


def test_rules_have_names_of_their_own_and_events_have_all_of_them() -> None:
    rules = estero.rules(rules_of(3))
    rows = rows_of(3_000, 3)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    times = pa.array(columns["time"]).cast(pa.timestamp("us", "UTC"))
    assert rules.run(pa.table({**columns, "time": times}), time="time").names == ("r0", "r1", "r2")
    assert {f"n{number}" for number in range(9)} <= set(columns["name"])
    assert times.to_pylist() == sorted(times.to_pylist())


def test_a_small_stream_has_answers_to_compare() -> None:
    rows = rows_of(20_000, 1)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    times = pa.array(columns["time"]).cast(pa.timestamp("us", "UTC"))
    assert estero.rules(rules_of(10)).run(pa.table({**columns, "time": times}), time="time").count() > 10
