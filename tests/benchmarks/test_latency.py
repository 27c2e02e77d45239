"""Pushes: what is timed is right."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks import latency
from benchmarks.latency import CLOCKS, Wrong, check, measured


def test_the_answers_of_all_forms_are_compared() -> None:
    assert check(events=300, keys=3) > 100


def test_a_wrong_answer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def shortened(table: pa.Table) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = table.to_pylist()
        return rows[: table.num_rows // 2]

    monkeypatch.setitem(latency.FORMS, "dict", shortened)
    with pytest.raises(Wrong, match="dict"):
        check(events=300, keys=3)


def test_each_form_has_its_percentiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "KEYS", 20)
    monkeypatch.setattr(latency, "BATCH", 50)
    *pushed, whole = measured(100, 1, CLOCKS["wall"])
    assert [row["pushes"] for row in pushed[:3]] == [100, 100, 100]
    assert all(0 < row["p50"] <= row["p99"] <= row["p99.9"] for row in pushed)
    assert whole["ns an event"] > 0
