"""A limit of the memory that the state of a recognizer takes: no answer is lost by it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import estero
from estero.recognize.recognizers.memory_limit import bytes_of
from estero.recognize.recognizers.stream_recognizer import StreamRecognizer

LAYOUT: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s"}
SCHEMA = pa.schema([("type", pa.string()), ("time", pa.int64()), ("k", pa.int64())])
WAITING = "SELECT * WHERE A ; B PARTITION BY [k]"
WINDOW = f"{WAITING} WITHIN 100 SECONDS"
BATCHES = [
    pa.table({"type": ["A"] * 100, "time": range(at, at + 100), "k": range(at, at + 100)}, schema=SCHEMA)
    for at in range(0, 5000, 100)
]


def push_all(recognizer: StreamRecognizer) -> None:
    for batch in BATCHES:
        recognizer.push(batch)


@pytest.mark.parametrize("partials", [False, True])
def test_with_a_window_it_is_kept(partials: bool) -> None:
    recognizer = estero.query(WINDOW).recognizer(SCHEMA, **LAYOUT, memory_limit="60 KB", partials=partials)
    push_all(recognizer)
    assert 0 < recognizer.metrics()["state_bytes"] <= 60_000


def test_what_waits_for_ever_exceeds_it_and_nothing_is_lost() -> None:
    query = estero.query(WAITING)
    recognizer = query.recognizer(SCHEMA, **LAYOUT, memory_limit=60_000)
    said = r"takes [\d,]+ bytes, and it may take 60,000: .*WITHIN"
    with pytest.raises(estero.LimitExceeded, match=said) as it:
        push_all(recognizer)
    assert isinstance(it.value.answer, estero.Answer)
    assert it.value.answer.count() == 0
    assert recognizer.metrics()["state_bytes"] > 60_000
    other = estero.restore(query, recognizer.snapshot())
    end = {"type": "B", "time": 9999, "k": 0}
    assert other.push(end).count() == 1
    with pytest.raises(estero.LimitExceeded) as again:
        recognizer.push(end)
    assert isinstance(again.value.answer, estero.Answer)
    assert again.value.answer.count() == 1


def test_of_a_set_of_rules_and_of_what_is_held_back() -> None:
    rules = estero.rules({"near": WINDOW, "far": WAITING})
    recognizer = rules.recognizer(SCHEMA, **LAYOUT, memory_limit="2 KB")
    with pytest.raises(estero.LimitExceeded) as it:
        recognizer.push(BATCHES[0])
    assert isinstance(it.value.answer, estero.RuleAnswers)
    held = estero.query(WINDOW).recognizer(SCHEMA, **LAYOUT, lateness="1 day", memory_limit="1 KB")
    with pytest.raises(estero.LimitExceeded, match="a lower lateness"):
        held.push(BATCHES[0])


def test_sizes_in_words() -> None:
    sizes = ["17", "1 B", "1.5 kB", "2MiB", "500 MB", "1 TB"]
    assert [bytes_of(int(size) if size.isdigit() else size) for size in sizes] == [
        *(17, 1, 1500, 2 << 20, 500_000_000, 10**12)
    ]


@pytest.mark.parametrize("limit", ["", "many", "5", f"{10**400} MB", "-1 MB", "1 EB", 0, -3])
def test_what_is_no_size(limit: int | str) -> None:
    with pytest.raises(ValueError, match="a memory limit is"):
        estero.query(WINDOW).recognizer(SCHEMA, **LAYOUT, memory_limit=limit)
