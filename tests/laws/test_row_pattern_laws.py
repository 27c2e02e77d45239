"""MATCH_RECOGNIZE finds what the reference semantics say, whatever the pattern, the rows and DEFINE are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import estero
from estero import DataError, QueryError
from estero.language.row_patterns.statements import placed_clauses
from estero.language.row_patterns.tree import (
    Choice,
    Excluded,
    Repetition,
    RowPattern,
    Skip,
    Variable,
    nodes_of,
    variables_of,
)
from estero.language.row_patterns.tree import Sequence as PatternSequence
from estero.reference.row_patterns import Match, Matcher, row_at
from strategies.row_patterns import (
    NAMES,
    Condition,
    Row,
    conditions,
    near_conditions,
    partitions,
    row_patterns,
    skips,
)

pytestmark = pytest.mark.filterwarnings("ignore:the alternative")  # patterns are drawn

EVERYONE = {name.lower(): frozenset([name.lower()]) for name in NAMES}
SCHEMA = pa.schema([("g", pa.int64()), ("i", pa.int64()), ("v", pa.int64()), ("w", pa.int64())])


def table_of(parts: Sequence[Sequence[Row]]) -> pa.Table:
    """The partitions as one table, whose rows are not in order."""
    rows = [
        {"g": number, "i": place, "v": row.v, "w": row.w}
        for number, part in enumerate(parts)
        for place, row in enumerate(part)
    ]
    return pa.Table.from_pylist(rows[::-1], SCHEMA)


def expected(
    pattern: RowPattern,
    define: Mapping[str, Condition],
    skip: Skip,
    part: Sequence[Row],
    within: int | None = None,
) -> list[Match]:
    """The matches of a partition by the reference."""
    functions = {
        name.lower(): lambda row, labels, start, condition=condition: bool(
            condition.holds(part, row, labels, start)
        )
        for name, condition in define.items()
    }
    until = None if within is None else [min(start + within + 1, len(part)) for start in range(len(part))]
    return list(Matcher(pattern, functions, len(part), until).matches(skip, EVERYONE))


def clause_of(
    pattern: RowPattern,
    define: Mapping[str, Condition],
    skip: Skip,
    measures: str,
    rows: str,
    within: int | None = None,
) -> str:
    """The statement; every pattern has a condition, as SQL asks for one."""
    used = [variable.name for variable in variables_of(pattern).values()]
    defined = {name: condition.sql for name, condition in define.items() if name in used}
    defined = defined or {used[0]: "TRUE"}
    window = "" if within is None else f"WITHIN {within}"
    return f"""
        SELECT * FROM events MATCH_RECOGNIZE (
            PARTITION BY g ORDER BY i
            MEASURES {measures} {rows}
            AFTER MATCH SKIP {skip}
            PATTERN ({pattern}) {window}
            DEFINE {", ".join(f"{name} AS {sql}" for name, sql in defined.items())}
        ) ORDER BY g, number, first, i"""


def can_be_said(pattern: RowPattern, define: Mapping[str, Condition], skip: Skip) -> bool:
    """Whether a statement can say it: some variable, and those of SKIP and DEFINE among them."""
    names = set(variables_of(pattern))
    read = {
        name
        for variable, condition in define.items()
        if variable.lower() in names
        for name in condition.names
    }
    return bool(names) and read <= names and (skip.variable is None or skip.variable.key in names)


def is_accepted(text: str) -> bool:
    """Whether a statement is not refused."""
    try:
        placed_clauses(text)
    except QueryError:
        return False
    return True


ONE = """
    MATCH_NUMBER() AS number, FIRST(i) AS first, array_agg(i) AS rows, array_agg(CLASSIFIER()) AS labels,
    0 AS i"""


def one_row_each(parts: Sequence[Sequence[Match]]) -> list[dict[str, Any]]:
    """What ONE ROW PER MATCH gives for matches of partitions."""
    return [
        {
            "g": g,
            "number": number,
            "first": found.start if found.labels else None,
            "rows": [found.start + place for place in range(len(found.labels))] or None,
            "labels": [label.variable.upper() for label in found.labels] or None,
            "i": 0,
        }
        for g, matches in enumerate(parts)
        for number, found in enumerate(matches, 1)
    ]


def check_one_row(
    pattern: RowPattern,
    define: Mapping[str, Condition],
    skip: Skip,
    parts: Sequence[Sequence[Row]],
    within: int | None = None,
) -> None:
    """Holds the evaluation of one statement against the reference."""
    assume(can_be_said(pattern, define, skip))
    statement = estero.sql(clause_of(pattern, define, skip, ONE, "", within), events=table_of(parts))
    try:
        wanted = [expected(pattern, define, skip, part, within) for part in parts]
    except DataError:
        with pytest.raises(DataError, match="SKIP"):
            statement.to_arrow()
        return
    assert statement.to_arrow().to_pylist() == one_row_each(wanted)


@given(row_patterns, near_conditions, skips, st.lists(partitions, min_size=1, max_size=3))
def test_conditions_on_rows_are_matched_as_the_reference_says(
    pattern: RowPattern, define: Mapping[str, Condition], skip: Skip, parts: Sequence[Sequence[Row]]
) -> None:
    check_one_row(pattern, define, skip, parts)


@given(row_patterns, conditions, skips, st.lists(partitions, min_size=1, max_size=2))
def test_conditions_on_the_match_so_far_are_matched_as_the_reference_says(
    pattern: RowPattern, define: Mapping[str, Condition], skip: Skip, parts: Sequence[Sequence[Row]]
) -> None:
    check_one_row(pattern, define, skip, parts)


@given(row_patterns, conditions, skips, st.lists(partitions, min_size=1, max_size=2), st.integers(0, 3))
def test_windows_limit_the_search_as_the_reference_says(
    pattern: RowPattern,
    define: Mapping[str, Condition],
    skip: Skip,
    parts: Sequence[Sequence[Row]],
    within: int,
) -> None:
    check_one_row(pattern, define, skip, parts, within)


ALL = """
    MATCH_NUMBER() AS number, FIRST(i) AS first, CLASSIFIER() AS label, sum(v) AS total, count(B.*) AS bs,
    FINAL count(*) AS size, LAST(A.v, 1) AS before, PREV(LAST(B.v)) AS left_of, NEXT(FIRST(A.w)) AS right_of,
    FINAL LAST(C.w) AS last_c, FINAL max(A.v) AS most"""


def running(found: Match, current: int, part: Sequence[Row]) -> dict[str, Any]:
    """The measures at a row of a match; `current` is -1 in an empty one."""

    def value(column: str, variables: str | None, *, final: bool = False, **address: Any) -> Any:
        wanted = None if variables is None else frozenset(variables)
        at = len(found.labels) - 1 if final else current
        row = row_at(found, at, wanted, rows=len(part), **address)
        return None if row is None else getattr(part[row], column)

    labels = [label.variable for label in found.labels]
    so_far = [part[found.start + place].v for place in range(current + 1)]
    total = [v for v in so_far if v is not None]
    of_a = [part[found.start + place].v for place, label in enumerate(labels) if label == "a"]
    return {
        "first": found.start if current >= 0 else None,
        "label": labels[current].upper() if current >= 0 else None,
        "total": sum(total) if total else None,
        "bs": labels[: current + 1].count("b"),
        "size": len(labels),
        "before": value("v", "a", offset=1),
        "left_of": value("v", "b", shift=-1),
        "right_of": value("w", "a", last=False, shift=1),
        "last_c": value("w", "c", final=True),
        "most": max((v for v in of_a if v is not None), default=None),
    }


def all_rows(parts: Sequence[Sequence[Row]], matches: Sequence[Sequence[Match]]) -> list[dict[str, Any]]:
    """What ALL ROWS PER MATCH gives for matches of partitions."""
    rows = []
    for g, (part, mine) in enumerate(zip(parts, matches, strict=True)):
        for number, found in enumerate(mine, 1):
            places = [place for place, label in enumerate(found.labels) if not label.excluded]
            for place in places if found.labels else [-1]:
                i = found.start + max(place, 0)
                beside = {"g": g, "i": i, "number": number, "v": part[i].v, "w": part[i].w}
                rows.append({**beside, **running(found, place, part)})
    return rows


@given(row_patterns, conditions, skips, st.lists(partitions, min_size=1, max_size=2))
def test_measures_of_all_rows_are_those_of_the_reference(
    pattern: RowPattern, define: Mapping[str, Condition], skip: Skip, parts: Sequence[Sequence[Row]]
) -> None:
    pattern = PatternSequence((pattern, Repetition(Choice(tuple(map(Variable, NAMES))), 0, 2)))
    statement = estero.sql(
        clause_of(pattern, define, skip, ALL, "ALL ROWS PER MATCH"), events=table_of(parts)
    )
    try:
        wanted = [expected(pattern, define, skip, part) for part in parts]
    except DataError:
        with pytest.raises(DataError, match="SKIP"):
            statement.to_arrow()
        return
    rows = [
        {**row, "total": None if row["total"] is None else int(row["total"])}
        for row in statement.to_arrow().to_pylist()
    ]
    assert rows == all_rows(parts, wanted)


@given(row_patterns, near_conditions, st.lists(partitions, min_size=1, max_size=2))
def test_unmatched_rows_are_all_others(
    pattern: RowPattern, define: Mapping[str, Condition], parts: Sequence[Sequence[Row]]
) -> None:
    assume(
        can_be_said(pattern, define, Skip())
        and not any(isinstance(node, Excluded) for node in nodes_of(pattern))
    )
    measures = "MATCH_NUMBER() AS number, FIRST(i) AS first"
    text = clause_of(pattern, define, Skip(), measures, "ALL ROWS PER MATCH WITH UNMATCHED ROWS")
    rows = estero.sql(text, events=table_of(parts)).to_arrow().to_pylist()
    for g, part in enumerate(parts):
        matched = set()
        for found in expected(pattern, define, Skip(), part):
            matched |= {found.start + place for place in range(max(len(found.labels), 1))}
        assert [row["i"] for row in rows if row["g"] == g and row["number"] is None] == sorted(
            set(range(len(part))) - matched
        )
