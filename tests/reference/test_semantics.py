"""Whole queries on the reference: partitions, windows, strategies, limits and consumption, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given

from estero.errors import DataError
from estero.language.tree.distances import AttributeWindow, DurationWindow, EventWindow, Window
from estero.language.tree.durations import TimeUnit
from estero.language.tree.literals import Value
from estero.language.tree.pattern import All, As, Iteration, Keep, Start
from estero.language.tree.query import Consume, KeyBracket, QueryTree, SelectItem, Strategy
from estero.reference.queries import Event, evaluate_query, is_answer
from reference.notation import A, B, C, seq, shown, stream, then
from strategies.patterns import TICK, queries, streams

BY_K = (KeyBracket(("k",)),)


def answers(tree: QueryTree, events: list[Event], tick: int = 1) -> list[str]:
    answer = evaluate_query(tree, events, tick=tick)
    assert all(one.end == end for end, group in answer.items() for one in group)
    assert all(answer.values())
    return shown(one for group in answer.values() for one in group)


def test_answers_stand_at_their_end_positions() -> None:
    answer = evaluate_query(QueryTree(seq(A, B)), stream("A B A B"))
    assert {end: shown(group) for end, group in answer.items()} == {
        1: ["[0, 1] {A: [0], B: [1]}"],
        3: ["[0, 3] {A: [0], B: [3]}", "[2, 3] {A: [2], B: [3]}"],
    }
    assert evaluate_query(QueryTree(A), []) == {}


def test_select_merges_nothing() -> None:
    tree = QueryTree(seq(A, B), select=(SelectItem("B"),))
    assert answers(tree, stream("A A B")) == answers(replace(tree, select=None), stream("A A B"))


def test_from_names_the_streams_of_types() -> None:
    assert answers(QueryTree(A, streams=("S",)), stream("S>A A")) == ["[0, 0] {A: [0]}", "[1, 1] {A: [1]}"]


# --------------------------------------------------------------------------------------- partitions


def test_partitions_are_substreams_with_global_positions() -> None:
    tree = QueryTree(then(A, B), partition_by=BY_K)
    assert answers(tree, stream("A A B B", k=[1, 2, 1, 2])) == [
        "[0, 2] {A: [0], B: [2]}",
        "[1, 3] {A: [1], B: [3]}",
    ]


def test_an_event_without_a_key_is_in_no_partition() -> None:
    tree = QueryTree(then(A, B), partition_by=BY_K)
    events = [Event("A", {"k": 1}), Event("C", {"k": None}), Event("C", {}), Event("B", {"k": 1})]
    assert answers(tree, events) == ["[0, 3] {A: [0], B: [3]}"]
    assert answers(QueryTree(A, partition_by=BY_K), stream("A A", k=[None, None])) == []


def test_each_bracket_is_a_key() -> None:
    tree = QueryTree(seq(A, B), partition_by=(KeyBracket(("k",)), KeyBracket(("m",))))
    events = stream("A B B B", k=[1, 1, 2, 1], m=[1, 2, 1, 1])
    assert answers(tree, events) == ["[0, 3] {A: [0], B: [3]}"]


def test_alternatives_are_the_first_that_the_event_has() -> None:
    tree = QueryTree(seq(A, B), partition_by=(KeyBracket(("ticker", "symbol")),))
    events = [
        Event("A", {"ticker": "X", "symbol": "Y"}),
        Event("B", {"symbol": "X"}),
        Event("B", {"symbol": "Y"}),
        Event("B", {"ticker": None, "symbol": "X"}),
    ]
    assert answers(tree, events) == ["[0, 1] {A: [0], B: [1]}"]


@pytest.mark.parametrize(
    ("left", "right", "together"),
    [(1, 1.0, True), (math.nan, float("nan"), True), (0.0, -0.0, True), ("a", "A", False), (True, 1, False)],
)
def test_keys_agree_when_they_are_equal(left: Value, right: Value, together: bool) -> None:
    tree = QueryTree(seq(A, B), partition_by=BY_K)
    assert bool(answers(tree, stream("A B", k=[left, right]))) is together


def test_start_is_the_first_position_of_the_substream() -> None:
    tree = QueryTree(Start(A), partition_by=BY_K)
    assert answers(tree, stream("A B A A", k=[1, 2, 2, 1])) == ["[0, 0] {A: [0]}"]


# ------------------------------------------------------------------------------------------ windows


@pytest.mark.parametrize(
    ("window", "ends"),
    [
        (EventWindow(1), [1]),
        (EventWindow(2), [1, 2]),
        (AttributeWindow(4, "time"), []),
        (AttributeWindow(5, "time"), [1]),
        (AttributeWindow(14, "time"), [1]),
        (AttributeWindow(15, "time"), [1, 2]),
        (DurationWindow(((5, TimeUnit.MILLISECONDS),)), [1]),
        (DurationWindow(((14, TimeUnit.MILLISECONDS), (999, TimeUnit.MICROSECONDS))), [1]),
        (DurationWindow(((1, TimeUnit.SECONDS),)), [1, 2]),
    ],
)
def test_windows_are_inclusive(window: Window, ends: list[int]) -> None:
    tree = QueryTree(seq(A, B), window=window)
    events = stream("A B B", time=[10, 15, 25])
    assert sorted(evaluate_query(tree, events, tick=1_000_000)) == ends


def test_an_event_window_counts_positions_of_the_whole_stream() -> None:
    tree = QueryTree(seq(A, B), partition_by=BY_K, window=EventWindow(2))
    assert answers(tree, stream("A C B", k=[1, 2, 1])) == ["[0, 2] {A: [0], B: [2]}"]
    assert answers(tree, stream("A C C B", k=[1, 2, 2, 1])) == []


def test_a_window_begins_at_the_first_position_read() -> None:
    tree = QueryTree(Keep(seq(A, B, C), ("C",)), window=EventWindow(1))
    assert answers(tree, stream("A B C")) == []


def test_a_window_of_time_needs_the_time_of_each_event() -> None:
    tree = QueryTree(seq(A, B), window=AttributeWindow(1, "time"))
    with pytest.raises(DataError, match="time of each event"):
        evaluate_query(tree, stream("A B"))


# --------------------------------------------------------------------------------------- strategies


def supports(strategy: Strategy, events: list[Event], by_key: bool = False) -> dict[int, list[list[int]]]:
    tree = QueryTree(seq(Iteration(A), B), strategy=strategy, partition_by=BY_K if by_key else ())
    answer = evaluate_query(tree, events)
    return {end: sorted(sorted(one.support) for one in group) for end, group in answer.items()}


def test_strategies_choose_by_marked_positions() -> None:
    events = stream("A A C A B")
    assert len(supports(Strategy.ALL, events)[4]) == 7
    assert supports(Strategy.STRICT, events) == {4: [[3, 4]]}
    assert supports(Strategy.MAX, events) == {4: [[0, 1, 3, 4]]}
    assert supports(Strategy.NEXT, events) == {4: [[0, 1, 3, 4]]}
    assert supports(Strategy.LAST, events) == {4: [[0, 1, 3, 4]]}


def test_next_prefers_the_earliest_and_last_the_latest_difference() -> None:
    tree = QueryTree(seq(A, B, C))
    events = stream("A B A B C")
    chosen = {
        strategy: answers(replace(tree, strategy=strategy), events)
        for strategy in (Strategy.NEXT, Strategy.LAST)
    }
    assert chosen[Strategy.NEXT] == ["[0, 4] {A: [0], B: [1], C: [4]}"]
    assert chosen[Strategy.LAST] == ["[2, 4] {A: [2], B: [3], C: [4]}"]
    assert len(answers(replace(tree, strategy=Strategy.MAX), events)) == 3


def test_strategies_keep_every_labelling_of_the_chosen_positions() -> None:
    tree = QueryTree(All((As(A, "x"), As(A, "y"))), strategy=Strategy.LAST)
    assert answers(tree, stream("A A")) == [
        "[0, 0] {A: [0], x: [0], y: [0]}",
        "[0, 1] {A: [0, 1], x: [0], y: [1]}",
        "[0, 1] {A: [0, 1], x: [1], y: [0]}",
    ]


def test_strategies_choose_after_the_window_and_inside_the_partition() -> None:
    tree = QueryTree(seq(Iteration(A), B), strategy=Strategy.MAX, window=EventWindow(2))
    assert answers(tree, stream("A A A B")) == ["[1, 3] {A: [1, 2], B: [3]}"]
    events = stream("A C A B", k=[1, 2, 1, 1])
    assert supports(Strategy.STRICT, events, by_key=True) == {3: [[0, 2, 3], [2, 3]]}


# ------------------------------------------------------------------------------- limit, consumption


def test_limit_leaves_any_n_at_each_end() -> None:
    tree = QueryTree(Iteration(A), limit=2)
    events = stream("A A A")
    answer = evaluate_query(tree, events)
    assert {end: len(group) for end, group in answer.items()} == {0: 1, 1: 2, 2: 2}
    everything = evaluate_query(replace(tree, limit=None), events)
    other = {end: set(sorted(group, key=str)[-2:]) for end, group in everything.items()}
    assert other != answer
    assert is_answer(tree, events, answer)
    assert is_answer(tree, events, other)
    assert not is_answer(tree, events, everything)
    assert not is_answer(tree, events, {end: group for end, group in answer.items() if end})
    assert not is_answer(tree, events, {**answer, 2: answer[1]})
    assert not is_answer(replace(tree, limit=None), events, answer)


def test_consuming_any_forgets_everything_after_an_answer() -> None:
    tree = QueryTree(seq(A, B), consume=Consume.ANY)
    assert answers(tree, stream("A A B B A B")) == [
        "[0, 2] {A: [0], B: [2]}",
        "[1, 2] {A: [1], B: [2]}",
        "[4, 5] {A: [4], B: [5]}",
    ]


def test_consuming_any_forgets_other_partitions_and_consuming_partition_does_not() -> None:
    events = stream("A A B B", k=[1, 2, 1, 2])
    tree = QueryTree(seq(A, B), partition_by=BY_K)
    first, second = "[0, 2] {A: [0], B: [2]}", "[1, 3] {A: [1], B: [3]}"
    assert answers(replace(tree, consume=Consume.ANY), events) == [first]
    assert answers(replace(tree, consume=Consume.PARTITION), events) == [first, second]
    events = stream("A A B B B", k=[1, 2, 1, 1, 2])
    assert answers(replace(tree, consume=Consume.PARTITION), events) == [first, "[1, 4] {A: [1], B: [4]}"]


def test_only_an_answer_consumes() -> None:
    tree = QueryTree(seq(A, B), window=EventWindow(1), consume=Consume.ANY)
    assert answers(tree, stream("A C B A B")) == ["[3, 4] {A: [3], B: [4]}"]


def test_an_event_ends_an_answer_and_is_forgotten_with_it() -> None:
    tree = QueryTree(seq(A, A), consume=Consume.ANY)
    assert [one[:6] for one in answers(tree, stream("A A A A"))] == ["[0, 1]", "[2, 3]"]


@given(queries(), streams())
def test_what_evaluate_query_says_is_an_answer(tree: QueryTree, events: list[Event]) -> None:
    assert is_answer(tree, events, evaluate_query(tree, events, tick=TICK), tick=TICK)
