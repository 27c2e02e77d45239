"""The automaton of positions: its moves in preference order lead to the match of the reference."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero import LimitExceeded
from estero.automata.row_patterns.positions import ACCEPT, START, PositionAutomaton
from estero.language.row_patterns.patterns import parse_row_pattern
from estero.language.row_patterns.tree import RowPattern
from estero.reference.row_patterns import Labelled, Matcher
from strategies.row_patterns import row_patterns

ROWS = st.lists(st.sets(st.sampled_from("abc")), max_size=6)


def automaton(text: str, longest: int) -> PositionAutomaton:
    return PositionAutomaton(parse_row_pattern(text, 0, len(text)), longest)


def searched(
    moves: PositionAutomaton, rows: Sequence[set[str]], at: int, state: int = START
) -> list[Labelled] | None:
    """The first way to the end, by trying the moves one after the other."""
    border = (at == 0) | (at == len(rows)) << 1
    for target, asked in moves.moves(state):
        if asked & ~border:
            continue
        if target == ACCEPT:
            return []
        reached = moves.states[target]
        if at < len(rows) and reached.variable in rows[at]:
            rest = searched(moves, rows, at + 1, target)
            if rest is not None:
                return [Labelled(reached.variable, reached.excluded), *rest]
    return None


@given(row_patterns, ROWS)
def test_the_first_way_through_the_automaton_is_the_preferred_match(
    pattern: RowPattern, rows: list[set[str]]
) -> None:
    moves = PositionAutomaton(pattern, len(rows))
    define = {name: lambda row, _labels, _start, name=name: name in rows[row] for name in "abc"}
    for start in range(len(rows)):
        found = Matcher(pattern, define, len(rows)).at(start)
        wanted = None if found is None else list(found.labels)
        assert (None if moves.never else searched(moves, rows, start)) == wanted


def test_states_are_made_when_they_are_asked_for() -> None:
    large = automaton("((a{700}){700} b)", 10**6)
    assert [large.states[target].variable for target, _ in large.moves(START)] == ["a"]
    assert len(large.states) == 2


@pytest.mark.parametrize(
    ("text", "longest"), [("(a{5})", 4), ("((a b){2} c | a{9})", 4), ("(a{2000000000})", 10)]
)
def test_what_is_longer_than_all_partitions_never_matches(text: str, longest: int) -> None:
    assert automaton(text, longest).never


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("(a+ b)", 3),
        ("((a+)+ b)", 3),
        ("(a{3} b?)", 5),
        ("(a{,50})", 2),
        ("((a?){700})", 2),
        ("(PERMUTE(a, b, c))", 13),
    ],
)
def test_equal_futures_are_one_state(text: str, states: int) -> None:
    moves = automaton(text, 20)
    assert moves.explore(100)
    assert len(moves.states) == states


def test_repetitions_of_what_may_be_empty_have_a_limit() -> None:
    nested = automaton("((((a? b?){900}){900}){900})", 10**9)
    with pytest.raises(LimitExceeded, match="nests too many repetitions of parts that may be empty"):
        nested.moves(START)


def test_orders_of_parts_with_choices_have_a_limit() -> None:
    with pytest.raises(LimitExceeded, match="PERMUTE of 8 parts that leave a choice"):
        automaton("(PERMUTE(a+, b, c, d, e, f, g, h))", 20)
