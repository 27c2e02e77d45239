"""The kernel that matches row patterns: what it finds, how it grows, where it cannot go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero import LimitExceeded
from estero.automata.row_patterns.positions import PositionAutomaton
from estero.engine.row_patterns import row_matcher, run_rows
from estero.engine.row_patterns.row_matcher import (
    Extent,
    MatchTable,
    RowMarks,
    SkipFailure,
    find_matches,
    moves_of,
)
from estero.language.row_patterns.patterns import parse_row_pattern
from estero.language.row_patterns.tree import RowPattern, Skip
from estero.reference.row_patterns import Matcher
from strategies.row_patterns import row_patterns

PARTITIONS = st.lists(
    st.lists(st.sets(st.sampled_from("abc")), min_size=1, max_size=5), min_size=1, max_size=3
)


def moves(pattern: RowPattern, longest: int, skipped: str = "") -> tuple[run_rows.Moves, PositionAutomaton]:
    automaton = PositionAutomaton(pattern, longest)
    assert automaton.explore(10_000)
    states = range(len(automaton.states))
    numbers = ["abc".find(state.variable) if state.variable else -1 for state in automaton.states]
    own = [[(max(move.target, 0), move.asked) for move in automaton.moves(state)] for state in states]
    return moves_of(own, numbers, [state.variable in list(skipped) for state in automaton.states]), automaton


def bits(rows: Sequence[set[str]]) -> Any:
    return np.array([[sum(1 << "abc".index(name) for name in row)] for row in rows], np.uint64).reshape(-1, 1)


def first_rows(partitions: Sequence[Sequence[object]]) -> Any:
    return np.cumsum([0, *map(len, partitions)]).astype(np.int64)


def listed(found: MatchTable, automaton: PositionAutomaton) -> list[tuple[int, int, list[str]]]:
    ends = np.cumsum(found.length)
    return [
        (
            int(partition),
            int(start),
            [automaton.states[state].variable for state in found.states[end - length : end]],
        )
        for partition, start, length, end in zip(
            found.partition, found.start, found.length, ends, strict=True
        )
    ]


def wanted(pattern: RowPattern, partitions: Sequence[Sequence[set[str]]], skip: Skip) -> list[Any]:
    matches: list[Any] = []
    before = 0
    for number, rows in enumerate(partitions):
        define = {name: lambda row, _l, _s, name=name, rows=rows: name in rows[row] for name in "abc"}
        matches += [
            (number, before + match.start, [label.variable for label in match.labels])
            for match in Matcher(pattern, define, len(rows)).matches(skip, {})
        ]
        before += len(rows)
    return matches


@given(row_patterns, PARTITIONS, st.booleans(), st.booleans())
def test_the_kernel_finds_what_the_reference_finds(
    pattern: RowPattern, partitions: list[list[set[str]]], to_next: bool, windowed: bool
) -> None:
    longest = max(map(len, partitions))
    table, automaton = moves(pattern, longest)
    if automaton.never:
        return
    first = first_rows(partitions)
    until = np.repeat(first[1:], np.diff(first)) if windowed else None
    skip = run_rows.TO_NEXT if to_next else run_rows.PAST_LAST
    found = find_matches(bits([row for rows in partitions for row in rows]), first, table, skip, until)
    assert listed(found, automaton) == wanted(pattern, partitions, Skip("next") if to_next else Skip())


def parsed(text: str) -> RowPattern:
    return parse_row_pattern(text, 0, len(text))


def test_states_beyond_a_word_are_matched_too() -> None:
    table, automaton = moves(parsed("(a{70} b)"), 200)
    rows = [{"a"}] * 75 + [{"b"}] + [{"a"}] * 3
    found = find_matches(bits(rows), np.array([0, len(rows)]), table, run_rows.PAST_LAST)
    assert listed(found, automaton) == [(0, 5, ["a"] * 70 + ["b"])]


def test_room_grows_where_matches_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_matcher, "_FEWEST", 1)
    table, _ = moves(parsed("(a+)"), 60)
    found = find_matches(bits([{"a"}] * 60), np.array([0, 60]), table, run_rows.TO_NEXT)
    assert found.length.tolist() == list(range(60, 0, -1))
    assert found.states.size == 60 * 61 // 2


def test_matches_that_overlap_too_much_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_matcher, "MOST_LABELS", 100)
    monkeypatch.setattr(row_matcher, "_FEWEST", 1)
    table, _ = moves(parsed("(a+)"), 60)
    with pytest.raises(LimitExceeded, match="more than 100 rows together"):
        find_matches(bits([{"a"}] * 60), np.array([0, 60]), table, run_rows.TO_NEXT)


@pytest.mark.parametrize(("skipped", "to", "no_row"), [("a", "FIRST", False), ("c", "LAST", True)])
def test_a_search_that_cannot_go_on_says_so(skipped: str, to: str, no_row: bool) -> None:
    table, _ = moves(parsed("(a b c?)"), 4, skipped)
    rows = [{"b"}, {"a"}, {"b"}]
    with pytest.raises(SkipFailure) as raised:
        find_matches(bits(rows), np.array([0, 3]), table, getattr(run_rows, f"TO_{to}"))
    assert (raised.value.start, raised.value.partition, raised.value.no_row) == (1, 0, no_row)


def test_marks_are_the_rows_from_which_a_match_can_end() -> None:
    table, automaton = moves(parsed("(a b)"), 3)
    rows = [{"a"}, {"a"}, {"b"}]
    marks = RowMarks(bits(rows), np.array([0, 3]), table)
    marks.go_to(0)
    of_a = next(state for state, known in enumerate(automaton.states) if known.variable == "a")
    assert [marks.has(of_a, row) for row in range(3)] == [False, True, False]


@given(row_patterns, PARTITIONS, st.booleans(), st.sets(st.integers(0, 4)))
def test_several_searches_find_what_each_of_them_finds(
    pattern: RowPattern, partitions: list[list[set[str]]], windowed: bool, places: set[int]
) -> None:
    table, automaton = moves(pattern, max(map(len, partitions)))
    if automaton.never:
        return
    rows = [row for part in partitions for row in part]
    first = np.array([0, len(rows)], np.int64)
    until = np.full(len(rows), len(rows), np.int64) if windowed else None
    entries = [place for place in sorted(places) if place < len(rows)]
    reached = np.zeros(len(rows) + 1, np.bool_)
    reached[entries] = True
    found = find_matches(bits(rows), first, table, run_rows.PAST_LAST, until, reached=reached)
    expected: dict[int, Any] = {}
    stands = set(entries)
    for entry in entries:
        extent = Extent(np.array([entry]), first[1:], first[:-1])
        alone = listed(find_matches(bits(rows), first, table, run_rows.PAST_LAST, until, extent), automaton)
        expected |= {start: (partition, start, labels) for partition, start, labels in alone}
        row = entry
        while row < len(rows):
            stands.add(row)
            row += max(1, len(expected[row][2])) if row in expected else 1
    assert listed(found, automaton) == [expected[start] for start in sorted(expected)]
    assert {row for row in np.flatnonzero(reached).tolist() if row < len(rows)} == stands
