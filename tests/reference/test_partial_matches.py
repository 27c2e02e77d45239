"""Levels, funnels and partial matches on the reference, by hand and by laws."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from estero.errors import QueryError
from estero.language.syntax.parser import parse_pattern, parse_query
from estero.language.tree.distances import EventWindow
from estero.language.tree.levels import levels_of, prefix_query
from estero.language.tree.query import QueryTree
from estero.reference.partial_matches import evaluate_funnel, evaluate_levels, evaluate_partials
from estero.reference.queries import Event, evaluate_query
from reference.notation import A, seq, shown, stream
from strategies.patterns import TICK, queries, streams

FUNNEL = parse_query("SELECT * WHERE A ; B ; C WITHIN 3 EVENTS")


@pytest.mark.parametrize(
    ("pattern", "levels"),
    [
        ("a ; b ; c", (1, 2, 3)),
        ("a : b+", (1, 2)),
        ("a ; b? ; c ; d? ; e?", (1, 5)),
        ("a? ; b ; c FILTER a[n > 1] PARTITION BY [k]", (2, 3)),
        ("a ; b?", ()),
        ("a+", ()),
        ("(a ; b) OR c", ()),
        ("((a ; b) ; c)", (1, 2)),
    ],
)
def test_a_sequence_has_as_many_levels_as_parts_that_must_be_there(pattern: str, levels: tuple[int]) -> None:
    assert levels_of(parse_pattern(pattern)) == levels


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (1, "SELECT * WHERE A AS x FILTER x[n > 1] WITHIN 9 EVENTS"),
        (2, "SELECT * WHERE A AS x ; B FILTER x[n > 1] AND x.n = B.n PARTITION BY [k, x.k] WITHIN 9 EVENTS"),
        (3, "SELECT * WHERE A AS x ; B : C AS y FILTER x[n > 1] AND x.n = B.n AND y.n < x.n WITHIN 9 EVENTS"),
    ],
)
def test_a_prefix_is_asked_for_what_speaks_of_it_alone(parts: int, text: str) -> None:
    tail = " PARTITION BY [k, x.k]" if parts == 2 else ""
    pattern = f"A AS x ; B : C AS y ; D FILTER x[n > 1] AND x.n = B.n AND y.n < x.n AND D.n > 1{tail}"
    whole = parse_query(f"SELECT NEXT y WHERE {pattern} WITHIN 9 EVENTS CONSUME BY ANY LIMIT 3")
    assert prefix_query(whole, parts) == parse_query(text)


def test_each_start_has_the_level_that_it_reaches() -> None:
    #                 0 1 2 3 4 5 6
    events = stream("A A B C A B A")
    assert evaluate_levels(FUNNEL, events) == {0: 3, 1: 3, 4: 2, 6: 1}
    assert evaluate_funnel(FUNNEL, events) == [4, 3, 2]


def test_a_window_bounds_every_level() -> None:
    events = stream("A C C C B C")
    assert evaluate_levels(FUNNEL, events) == {0: 1}


def test_partial_matches_are_given_once_their_window_has_passed() -> None:
    events = stream("A A B B A B A")
    assert {
        start: (level, shown(found)) for start, (level, found) in evaluate_partials(FUNNEL, events).items()
    } == {
        0: (2, ["[0, 2] {A: [0], B: [2]}"]),
        1: (2, ["[1, 2] {A: [1], B: [2]}"]),
    }


def test_what_is_known_decides_which_windows_have_passed() -> None:
    tree = parse_query("SELECT * WHERE A ; B WITHIN 10 [time]")
    events = stream("A A", time=[0, 5])
    assert evaluate_partials(tree, events) == {}
    assert list(evaluate_partials(tree, events, known=10)) == []
    assert list(evaluate_partials(tree, events, known=11)) == [0]


def test_keys_are_funnels_of_their_own() -> None:
    tree = parse_query("SELECT * WHERE A ; B PARTITION BY [k] WITHIN 9 EVENTS")
    assert evaluate_levels(tree, stream("A A B", k=[1, 2, 2])) == {0: 1, 1: 2}


def test_only_sequences_with_windows_have_levels() -> None:
    with pytest.raises(QueryError, match="partial matches need a window"):
        evaluate_levels(replace(FUNNEL, window=None), [])
    with pytest.raises(QueryError, match="only a sequence"):
        evaluate_levels(parse_query("SELECT * WHERE A+ WITHIN 3 EVENTS"), [])


@st.composite
def sequences(draw: st.DrawFn) -> QueryTree:
    """Queries with levels."""
    tree = draw(queries())
    pattern = tree.pattern if levels_of(tree.pattern) else seq(tree.pattern, A)
    window = tree.window or EventWindow(3)
    return QueryTree(pattern, window=window, partition_by=tree.partition_by)


@given(sequences(), streams())
def test_the_last_level_is_that_of_the_starts_of_complex_events(tree: QueryTree, events: list[Event]) -> None:
    found = evaluate_query(tree, events, tick=TICK).values()
    starts = {each.start for group in found for each in group}
    last = len(levels_of(tree.pattern))
    levels = evaluate_levels(tree, events, tick=TICK)
    assert {start for start, level in levels.items() if level == last} == starts
    funnel = evaluate_funnel(tree, events, tick=TICK)
    assert funnel == sorted(funnel, reverse=True)
    assert funnel[-1] == len(starts)


@given(sequences(), streams())
def test_partial_matches_are_complex_events_of_their_prefix(tree: QueryTree, events: list[Event]) -> None:
    assume(events)
    levels = levels_of(tree.pattern)
    for start, (level, found) in evaluate_partials(tree, events, tick=TICK).items():
        assert level < len(levels)
        answer = evaluate_query(prefix_query(tree, levels[level - 1]), events, tick=TICK)
        assert all(each.start == start and each in answer[each.end] for each in found)
