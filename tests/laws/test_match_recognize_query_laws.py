"""The query that a statement with MATCH_RECOGNIZE becomes has all matches of its pattern, and no others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import estero
from estero import QueryError
from estero.language.row_patterns.tree import RowPattern, Skip, variables_of
from estero.reference.row_patterns import Labelled, Matcher
from laws.test_row_pattern_laws import EVERYONE, can_be_said
from strategies.row_patterns import FAR, NAMES, NEAR, Condition, Row, partitions, row_patterns

SAID = (
    *(condition for condition in NEAR if "NEXT" not in condition.sql and "PREV(w, 2)" not in condition.sql),
    Condition("v > PREV(v)", NEAR[4].holds),
    Condition(
        "w > 0 AND v > PREV(v)",
        lambda rows, row, labels, start: rows[row].w > 0 and bool(NEAR[4].holds(rows, row, labels, start)),
    ),
    Condition(
        "w >= LAST(B.w)",
        lambda rows, row, labels, start: (
            "b" in labels and rows[row].w >= rows[start + max(i for i, x in enumerate(labels) if x == "b")].w
        ),
    ),
    Condition(
        "w > FIRST(A.w) OR w = 0",
        lambda rows, row, labels, start: (
            rows[row].w == 0 or ("a" in labels and rows[row].w > rows[start + labels.index("a")].w)
        ),
    ),
)
DEFINES = st.fixed_dictionaries({}, optional={name: st.sampled_from(SAID) for name in NAMES})


def statement(pattern: RowPattern, define: Mapping[str, Condition], within: int | None) -> str:
    used = [variable.name for variable in variables_of(pattern).values()]
    defined = {name: condition.sql for name, condition in define.items() if name in used}
    defined = defined or {used[0]: "TRUE"}
    return f"""
        SELECT * FROM events MATCH_RECOGNIZE (
            PARTITION BY g ORDER BY i MEASURES count(*) AS n
            PATTERN ({pattern}) {"" if within is None else f"WITHIN {within}"}
            DEFINE {", ".join(f"{name} AS {sql}" for name, sql in defined.items())}
        )"""


def functions_of(define: Mapping[str, Condition], part: Sequence[Row]) -> dict[str, Any]:
    return {
        name.lower(): lambda row, labels, start, condition=condition: bool(
            condition.holds(part, row, labels, start)
        )
        for name, condition in define.items()
    }


Marked = tuple[int, frozenset[tuple[int, str]]]
"""A match: its partition, and its rows with their variables."""


def marked(g: int, start: int, labels: Sequence[Labelled]) -> Marked:
    return g, frozenset((start + place, label.variable.upper()) for place, label in enumerate(labels))


@given(
    row_patterns,
    DEFINES,
    st.lists(partitions, min_size=1, max_size=2),
    st.one_of(st.none(), st.integers(0, 3)),
)
def test_the_answer_of_the_query_is_all_matches_of_the_pattern(
    pattern: RowPattern, define: Mapping[str, Condition], parts: Sequence[Sequence[Row]], within: int | None
) -> None:
    assume(can_be_said(pattern, define, Skip()))
    try:
        query = estero.from_match_recognize(statement(pattern, define, within))
    except QueryError:
        assume(False)
        raise
    rows = sorted((place, g, row) for g, part in enumerate(parts) for place, row in enumerate(part))
    schema = pa.schema([("g", pa.int64()), ("i", pa.int64()), ("v", pa.int64()), ("w", pa.int64())])
    events = pa.Table.from_pylist([{"g": g, "i": i, "v": row.v, "w": row.w} for i, g, row in rows], schema)
    found: set[Marked] = set()
    first: dict[int, int] = defaultdict(lambda: len(rows))
    for complex_event in query.run(events, time="i", order=["g"]):
        g = rows[complex_event.start][1]
        first[g] = min(first[g], rows[complex_event.start][0])
        marks = {(rows[at][0], label) for label, places in complex_event.positions.items() for at in places}
        found.add((g, frozenset((i, label) for i, label in marks if label in NAMES)))
    wanted: set[Marked] = set()
    for g, part in enumerate(parts):
        until = None if within is None else [min(start + within + 1, len(part)) for start in range(len(part))]
        matcher = Matcher(pattern, functions_of(define, part), len(part), until)
        for start in range(len(part)):
            wanted |= {marked(g, start, path) for path in matcher.all_at(start)}
        matches = list(matcher.matches(Skip(), EVERYONE))
        assert {marked(g, match.start, match.labels) for match in matches} <= found
        assert [match.start for match in matches[:1]] == ([first[g]] if g in first else [])
    assert found == wanted


@pytest.mark.parametrize("condition", FAR, ids=str)
def test_conditions_on_the_match_so_far_are_refused_and_not_lost(condition: Condition) -> None:
    names = " ".join(sorted({"C", *condition.names}))
    text = f"""
        SELECT * FROM events MATCH_RECOGNIZE (
            ORDER BY i MEASURES count(*) AS n PATTERN (C? {names}) DEFINE C AS {condition.sql})"""
    with pytest.raises(QueryError, match="has no counterpart in CEQL"):
        estero.from_match_recognize(text)
