"""NOT of many equalities: planned in the time of their number, whatever is NULL."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import estero
from estero.automata.chain import Chain

COUNT = 7
ROWS = 30


def asked(clauses: str, count: int = COUNT) -> estero.Query:
    equal = " AND ".join(f"a.k{number} = b.k{number}" for number in range(count))
    return estero.query(f"SELECT * WHERE A AS a ; B AS b FILTER NOT ({equal}){clauses}")


def rows() -> list[dict[str, Any]]:
    draw = random.Random(3)
    values = [1, 1, 1, 2, None]
    return [
        {"type": draw.choice("AB"), **{f"k{number}": draw.choice(values) for number in range(COUNT)}}
        for _ in range(ROWS)
    ]


def differ(one: dict[str, Any], other: dict[str, Any]) -> bool:
    pairs = [(one[name], other[name]) for name in one if name != "type"]
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


@pytest.mark.parametrize(("clauses", "most"), [("", ROWS), (" WITHIN 9 EVENTS", 9)])
def test_pairs_that_differ_somewhere_are_found_once(clauses: str, most: int) -> None:
    events = rows()
    found = asked(clauses).run(pa.Table.from_pylist(events), type="type")
    expected = [
        (start, end)
        for end in range(ROWS)
        for start in range(max(0, end - most), end)
        if (events[start]["type"], events[end]["type"]) == ("A", "B") and differ(events[start], events[end])
    ]
    assert sorted((each.start, each.end) for each in found) == sorted(expected) != []


def test_alternatives_that_null_multiplies_are_not_told_apart() -> None:
    """Told apart they are (3^n + 1) / 2; so they find pairs more than once, which explain says."""
    value = asked("").automaton(pa.Table.from_pylist(rows()), type="type")
    assert isinstance(value.machine, Chain)
    assert len(value.machine.transitions) == 2 * COUNT
    text = str(asked("").explain(pa.Table.from_pylist(rows()), type="type"))
    assert "more than 256 cases of values that are NULL" in text
    assert "duplicates are removed, so the delay is unbounded" in text
