"""Late events where types have tables of their own, and the key that joins them under names of their own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import estero

PLACE = pa.struct([("id", pa.int64())])
SCHEMAS = {
    "A": pa.schema([("t", pa.int64()), ("k", pa.int32()), ("p", PLACE), ("n", pa.int64())]),
    "B": pa.schema([("t", pa.int64()), ("m", pa.int64()), ("q", PLACE), ("n", pa.int64())]),
    "C": pa.schema([("t", pa.int64()), ("o", pa.float64())]),
}
LATE: dict[str, list[dict[str, Any]]] = {
    "A": [{"t": 5, "k": 1, "p": {"id": 1}, "n": 5}],
    "B": [{"t": 3, "m": 1, "q": {"id": 1}, "n": 6}],
    "C": [{"t": 2, "o": 2.5}],
}
PUSHES: list[dict[str, list[dict[str, Any]]]] = [
    {"A": [{"t": 10, "k": 1, "p": {"id": 1}, "n": 5}], "B": [{"t": 20, "m": 1, "q": {"id": 1}, "n": 5}]},
    LATE,
    {"C": [{"t": 25, "o": 1.0}], "A": [{"t": 90, "k": 1, "p": None, "n": 5}]},
]
PAIRS = "SELECT a, b WHERE A AS a ; B AS b {} WITHIN 50 [t]"
QUERIES = [
    "SELECT a, b WHERE A AS a ALL B AS b FILTER a.k = b.m WITHIN 50 [t]",
    PAIRS.format("FILTER a.k = b.m"),
    PAIRS.format("FILTER a.k = b.m AND a.n <= b.n"),
    PAIRS.format("FILTER a.p.id = b.q.id"),
    PAIRS.format("PARTITION BY [k, m]"),
    PAIRS.format("PARTITION BY [p.id, q.id]"),
    "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.k = b.m AND b.m = c.o WITHIN 50 [t]",
    "SELECT * WHERE (A AS a ALL B AS b) ; C AS c FILTER a.k = b.m AND b.m = c.o WITHIN 50 [t]",
]


def _of_types(events: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Late events by type, each with the attributes of its own type; the others are NULL."""
    by_type: dict[str, list[dict[str, Any]]] = {}
    for each in events:
        own = SCHEMAS[each["__type"]].names
        assert all(each[name] is None for name in each if name not in (*own, "__type"))
        by_type.setdefault(each["__type"], []).append({name: each[name] for name in own})
    return by_type


@pytest.mark.parametrize(
    ("text", "partials"),
    [(text, said) for text in QUERIES for said in (False, True) if " ; " in text or not said],
)
@pytest.mark.parametrize("one_by_one", [False, True])
def test_late_events_are_whole_and_join_nothing(text: str, *, one_by_one: bool, partials: bool) -> None:
    query = estero.query(text)
    recognizer = query.recognizer(SCHEMAS, time="t", lateness=3, partials=partials)
    late: list[dict[str, Any]] = []
    found: list[tuple[int, int]] = []
    for push in PUSHES:
        singles = [{name: [each]} for name, events in push.items() for each in events]
        for each in singles if one_by_one else [push]:
            answer = recognizer.push(each)
            found += [(row.start_time, row.end_time) for row in answer if row.complete]
            late += recognizer.late_events().to_pylist()
        recognizer = estero.restore(query, recognizer.snapshot(), partials=partials)
    found += [(row.start_time, row.end_time) for row in recognizer.close() if row.complete]
    assert _of_types(late) == LATE
    assert (found, recognizer.late) == ([(10, 25 if "C AS c" in text else 20)], 3)


@pytest.mark.parametrize("text", ["Q(x, y) <- A(k: x, n: y), B(m: x, n: y)", "Q(x) <- A(k: x), B(m: x)"])
def test_late_events_of_conjunctive_queries(text: str) -> None:
    recognizer = estero.conjunctive(text).recognizer(SCHEMAS, time="t", lateness=3)
    late = []
    for push in PUSHES[:2]:
        recognizer.push(push).count()
        late += recognizer.late_events().to_pylist()
    assert _of_types(late) == LATE
    assert recognizer.close().count() == 1
