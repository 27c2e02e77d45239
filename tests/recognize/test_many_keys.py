"""Keys of which nothing is open are let go of between the events of a stream, and may come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import estero
from estero.engine import recognizer
from estero.engine.runs import cea_runs

EVENTS, WINDOW = 3_000, 40
TEXT = f"SELECT * WHERE A AS a ; B AS b PARTITION BY [k] WITHIN {WINDOW} EVENTS"


@pytest.fixture(autouse=True)
def _few_keys_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cea_runs, "_FEW_KEYS", 4)
    monkeypatch.setattr(cea_runs, "_MANY_KEYS", 16)
    monkeypatch.setattr(recognizer, "_KEYED_AT_ONCE", 24)


def stream() -> pa.Table:
    """Each key has some events close together; every third event has one that was there before."""
    draw = np.random.default_rng(5)
    place = np.arange(EVENTS)
    key = np.where(place % 3 == 0, draw.integers(0, 1 + place), place) // 8
    return pa.table({"type": np.array(["A", "B"])[draw.integers(0, 2, EVENTS)], "k": key})


def pairs(table: pa.Table) -> Iterator[tuple[int, int]]:
    """Each A with each later B of its key in the window, one by one."""
    rows = list(zip(table["type"].to_pylist(), table["k"].to_pylist(), strict=True))
    for end, (kind, key) in enumerate(rows):
        if kind == "B":
            first = max(0, end - WINDOW)
            yield from ((place, end) for place in range(first, end) if rows[place] == ("A", key))


@pytest.mark.parametrize("batch", [1, 7, 500, EVENTS])
def test_keys_that_are_let_go_of_change_no_answer(batch: int) -> None:
    table = stream()
    expected = Counter(pairs(table))
    assert len(expected) > EVENTS // 3
    pushing = estero.query(TEXT).recognizer(table.schema, type="type")
    found: Counter[tuple[int, int]] = Counter()
    for first in range(0, EVENTS, batch):
        found.update((each.start, each.end) for each in pushing.push(table.slice(first, batch)))
    assert found == expected


def test_keys_are_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    table, sizes = stream(), []
    load = cea_runs.CeaRuns.load

    def measured(self: cea_runs.CeaRuns, *loaded: object) -> None:
        load(self, *loaded)  # type: ignore[arg-type]
        sizes.append(self.size - int(self.arena.size[0]))

    monkeypatch.setattr(cea_runs.CeaRuns, "load", measured)
    assert estero.query(TEXT).run(table, type="type").count() == sum(1 for _ in pairs(table))
    assert max(sizes) < 200 < len(set(table["k"].to_pylist()))


@pytest.mark.parametrize("strategy", ["LONGEST", "SHORTEST", "LONGEST DISJOINT"])
def test_a_large_push_gives_of_each_start_what_a_run_gives(strategy: str) -> None:
    query = estero.query(f"SELECT {strategy} * WHERE A+ ; B PARTITION BY [k] WITHIN {WINDOW} EVENTS")
    table = stream()
    recognizer = query.recognizer(table.schema, type="type")
    found = [recognizer.push(table).to_arrow(), recognizer.close().to_arrow()]
    in_order = [("end", "ascending"), ("start", "ascending")]
    assert pa.concat_tables(found).sort_by(in_order) == query.run(table, type="type").to_arrow().sort_by(
        in_order
    )
