"""Row patterns, tables and conditions that laws of MATCH_RECOGNIZE draw."""

# ruff: noqa: ARG005 (all conditions are called with the same arguments)

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from estero.language.row_patterns.tree import (
    Anchor,
    Choice,
    Excluded,
    Nothing,
    Permutation,
    Repetition,
    RowPattern,
    Skip,
    Variable,
)
from estero.language.row_patterns.tree import (
    Sequence as PatternSequence,
)

NAMES = ("A", "B", "C")
_BOUNDS = ((0, None), (1, None), (0, 1), (2, 3), (0, 2), (2, None), (1, 3), (2, 2))
_SIMPLE = st.sampled_from(NAMES).map(Variable)
_RARE = st.sampled_from((Nothing(), Anchor("start"), Anchor("end")))


def _larger(parts: st.SearchStrategy[RowPattern]) -> st.SearchStrategy[RowPattern]:
    several = st.lists(parts, min_size=2, max_size=3).map(tuple)
    repeated = st.tuples(parts, st.sampled_from(_BOUNDS), st.booleans())
    return st.one_of(
        several.map(PatternSequence),
        several.map(Choice),
        repeated.map(lambda drawn: Repetition(drawn[0], *drawn[1], drawn[2])),
        several.map(Permutation),
        parts.map(Excluded),
    )


row_patterns: st.SearchStrategy[RowPattern] = st.recursive(
    st.one_of(_SIMPLE, _SIMPLE, _SIMPLE, _RARE), _larger, max_leaves=6
)

skips = st.one_of(
    st.sampled_from((Skip(), Skip("next"))),
    st.builds(Skip, st.sampled_from(("first", "last")), _SIMPLE),
)


@dataclass(frozen=True)
class Row:
    """A row of a partition."""

    v: int | None
    w: int


partitions = st.lists(st.builds(Row, st.one_of(st.none(), st.integers(0, 4)), st.integers(0, 3)), max_size=6)


@dataclass(frozen=True)
class Condition:
    """A condition as SQL writes it, and as a function of the rows, the labels so far and the start."""

    sql: str
    holds: Callable[[Sequence[Row], int, Sequence[str], int], bool | None]

    @property
    def names(self) -> set[str]:
        """The variables that it reads, by key."""
        return {name.lower() for name in re.findall(r"\b([ABC])\.", self.sql)}

    def __repr__(self) -> str:
        return self.sql


def _less(a: int | None, b: int | None) -> bool | None:
    return None if a is None or b is None else a < b


def _value(rows: Sequence[Row], row: int) -> int | None:
    return rows[row].v if 0 <= row < len(rows) else None


def _of(rows: Sequence[Row], labels: Sequence[str], start: int, variable: str) -> list[int | None]:
    return [rows[start + place].v for place, label in enumerate(labels) if label == variable.lower()]


def _sum(values: Sequence[int | None]) -> int | None:
    there = [value for value in values if value is not None]
    return sum(there) if there else None


NEAR = (
    Condition("TRUE", lambda *_: True),
    Condition("v > 1", lambda rows, row, *_: _less(1, rows[row].v)),
    Condition("v <= 2 OR v IS NULL", lambda rows, row, *_: (rows[row].v or 0) <= 2),
    Condition("w = 1 OR w = 2", lambda rows, row, *_: rows[row].w in (1, 2)),
    Condition("v > PREV(v)", lambda rows, row, *_: _less(_value(rows, row - 1), rows[row].v)),
    Condition("v < NEXT(v)", lambda rows, row, *_: _less(rows[row].v, _value(rows, row + 1))),
    Condition("PREV(w, 2) IS NOT NULL", lambda rows, row, *_: row >= 2),
)


def _last(values: Sequence[int | None], before: int = 0) -> int | None:
    return values[-1 - before] if before < len(values) else None


FAR = (
    Condition("count(*) <= 3", lambda rows, row, labels, start: len(labels) <= 3),
    Condition("v >= FIRST(v)", lambda rows, row, labels, start: _not(_less(rows[row].v, rows[start].v))),
    Condition("sum(A.v) < 5", lambda rows, row, labels, start: _less(_sum(_of(rows, labels, start, "A")), 5)),
    Condition(
        "sum(A.v) < 5 OR sum(A.v) IS NULL",
        lambda rows, row, labels, start: (_sum(_of(rows, labels, start, "A")) or 0) < 5,
    ),
    Condition("count(B.*) < 2", lambda rows, row, labels, start: labels.count("b") < 2),
    Condition(
        "v > LAST(B.v, 1)",
        lambda rows, row, labels, start: _less(_last(_of(rows, labels, start, "B"), 1), rows[row].v),
    ),
    Condition(
        "w > 0 AND LAST(A.v) IS NOT NULL",
        lambda rows, row, labels, start: rows[row].w > 0 and _last(_of(rows, labels, start, "A")) is not None,
    ),
    Condition(
        "PREV(CLASSIFIER()) = 'A' OR count(*) = 1",
        lambda rows, row, labels, start: len(labels) == 1 or labels[-2] == "a",
    ),
    Condition(
        "LAST(w, 1) + 1 > w",
        lambda rows, row, labels, start: len(labels) > 1 and rows[row - 1].w + 1 > rows[row].w,
    ),
    Condition("array_agg(CLASSIFIER())[1] = 'B'", lambda rows, row, labels, start: labels[0] == "b"),
)


SUBSET = "U = (A, B)"
OF_SUBSETS = (
    Condition("count(U.*) < 3", lambda rows, row, labels, start: _of_u(labels) < 3),
    Condition(
        "v <= LAST(U.v, 1) OR LAST(U.v, 1) IS NULL",
        lambda rows, row, labels, start: (
            (last := _last_of_u(rows, labels, start)) is None or _not(_less(last, rows[row].v))
        ),
    ),
    Condition("max(U.w) < 3", lambda rows, row, labels, start: _less(_most_of_u(rows, labels, start), 3)),
    Condition(
        "NEXT(v) IS NOT NULL AND count(*) < 5",
        lambda rows, row, labels, start: _value(rows, row + 1) is not None and len(labels) < 5,
    ),
    Condition(
        "CLASSIFIER(U) = 'A'",
        lambda rows, row, labels, start: [label for label in labels if label in "ab"][-1:] == ["a"],
    ),
)
"""Conditions that read the subset U."""


def _of_u(labels: Sequence[str]) -> int:
    return sum(label in "ab" for label in labels)


def _rows_of_u(rows: Sequence[Row], labels: Sequence[str], start: int) -> list[Row]:
    return [rows[start + place] for place, label in enumerate(labels) if label in "ab"]


def _last_of_u(rows: Sequence[Row], labels: Sequence[str], start: int) -> int | None:
    return _last([row.v for row in _rows_of_u(rows, labels, start)], 1)


def _most_of_u(rows: Sequence[Row], labels: Sequence[str], start: int) -> int | None:
    return max((row.w for row in _rows_of_u(rows, labels, start)), default=None)


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


near_conditions = st.fixed_dictionaries({}, optional={name: st.sampled_from(NEAR) for name in NAMES})
conditions = st.fixed_dictionaries(
    {}, optional={name: st.one_of(st.sampled_from(NEAR), st.sampled_from(FAR)) for name in NAMES}
)
all_conditions = st.fixed_dictionaries(
    {},
    optional={
        name: st.one_of(st.sampled_from(NEAR), st.sampled_from(FAR), st.sampled_from(OF_SUBSETS))
        for name in NAMES
    },
)
