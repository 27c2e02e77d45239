"""Steps between parts and rounds: distances and absences, found as the reference semantics say."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estero.answers.answer import Answer
from estero.engine.runs import cea_runs
from estero.language.syntax.parser import parse_pattern, parse_query
from estero.language.tree.literals import Value
from estero.language.tree.query import KeyBracket, QueryTree
from estero.plan import automaton as plans
from estero.plan.automaton import AutomatonPlan
from estero.reference.queries import Event, evaluate_query
from laws.evaluators import by_end, in_process, planned
from laws.test_restart_laws import SIZES, restarted
from laws.test_stream_laws import cut, recognized
from strategies.patterns import TICK, streams, to_table
from strategies.steps import stepped_queries

STEPPED = [
    "A ;[<= 3 SECONDS] B",
    "A ;[< 3 SECONDS, NOT C] B",
    "A ;[>= 2 SECONDS] B ;[NOT C] A",
    "A ;[1 SECOND .. 4 SECONDS] B",
    "A ;[<= 2 EVENTS] B ;[> 1 [time]] C",
    "A :[<= 1 SECOND] B",
    "A+[<= 2 SECONDS] ; B",
    "A{3,}[NOT A] AS v",
    "A{2,3}[<= 3 SECONDS, NOT B]",
    "A :+[<= 1 [time]] ; B",
    "(A ; B)+[<= 2 SECONDS] ;[NOT A] C",
    "(A ;[<= 2 SECONDS] B?)+[<= 4 EVENTS]",
    "A ;[<= 2 SECONDS] B? ;[<= 5 SECONDS] C",
    "A* ;[<= 2 SECONDS] B",
    "A*[<= 2 SECONDS] ; B",
    "(A ; B KEEP [A]) ;[<= 2 SECONDS] C",
    "A ;[<= 3 SECONDS] (B ; C KEEP [C])",
    "(A ALL B) ;[<= 2 SECONDS] C",
    "(A ;[<= 2 SECONDS] B) ALL C",
    "(A ;[<= 2 SECONDS] B) AND (A ;[<= 3 EVENTS] B)",
    "(A ;[<= 3 SECONDS] B) UNLESS C",
    "A ; C UNLESS (A ;[NOT B] A)",
    "STRICT(A ;[<= 3 SECONDS] B)",
    "START(A ;[<= 3 SECONDS] B)",
    "A AS x ;[NOT (C AS c FILTER c.n = x.n)] B",
    "(A AS x)+[NOT (C AS c FILTER c.n = x.n)] ; B",
    "A AS x ;[<= 3 SECONDS] B AS y FILTER x.n = y.n",
    "A AS x ;[<= 3 SECONDS] B AS y FILTER x.n < y.n",
    "(A OR B) ;[<= 3 SECONDS] (A ; C OR C)",
]
"""A step in each place."""


@pytest.mark.parametrize("text", STEPPED)
@given(events=streams(max_size=9), keyed=st.booleans())
@settings(max_examples=25)
def test_a_step_is_what_the_reference_says(text: str, events: list[Event], keyed: bool) -> None:
    tree = QueryTree(parse_pattern(text))
    if keyed and "START" not in text:
        tree = replace(tree, partition_by=(KeyBracket(("k",)),))
    assert in_process(tree, events) == evaluate_query(tree, events, tick=TICK)


@given(st.one_of(stepped_queries(), stepped_queries(full=True)), streams(max_size=9))
def test_random_steps_are_what_the_reference_says(tree: QueryTree, events: list[Event]) -> None:
    tree = replace(tree, limit=None)
    assert in_process(tree, events) == evaluate_query(tree, events, tick=TICK)


@settings(max_examples=60)
@given(st.one_of(stepped_queries(), stepped_queries(full=True)), streams(max_size=14), SIZES)
def test_a_restart_at_every_cut_changes_no_answer(
    tree: QueryTree, events: list[Event], sizes: list[int]
) -> None:
    tree = replace(tree, limit=None)
    found = by_end(restarted(planned(tree, to_table(events)), sizes))
    assert found == evaluate_query(tree, events, tick=TICK)


DENSE = [
    "A ;[<= 8 SECONDS] B ;[NOT C] A",
    "A ;[3 SECONDS .. 12 SECONDS] B",
    "A ;[>= 6 EVENTS, <= 9 [time]] B",
    "(A OR B)+[<= 2 SECONDS, NOT C] WITHIN 7 SECONDS",
    "A ;[<= 9 SECONDS] B UNLESS (C ; C)",
    "(A ; B)+[2 SECONDS .. 5 SECONDS] ; C WITHIN 14 SECONDS",
    "A ;[<= 6 SECONDS] (B OR C)? ;[<= 4 SECONDS] A PARTITION BY [k]",
    "A :[<= 1 SECOND] B ;[<= 12 EVENTS, > 2 SECONDS] C",
]
"""Steps in which many runs wait at once."""


@pytest.mark.parametrize("text", DENSE)
@pytest.mark.parametrize("capacity", [256, 2])
@given(st.integers(0, 2**32), SIZES)
@settings(max_examples=3)
def test_ages_find_what_a_filter_leaves(text: str, capacity: int, seed: int, sizes: list[int]) -> None:
    tree, events = parse_query(f"SELECT * WHERE {text}"), long_stream(seed)
    with patch.object(plans, "by_age", lambda *_: "not asked"):
        filtered = planned(tree, to_table(events))
    assert isinstance(filtered.plan, AutomatonPlan)
    assert filtered.plan.residuals
    aged = planned(tree, to_table(events))
    assert isinstance(aged.plan, AutomatonPlan)
    assert aged.plan.ages is not None
    assert not aged.plan.sieved
    expected = by_end(Answer(filtered).batches())
    assert expected
    with (
        patch.object(cea_runs, "_SMALLEST_ARENA", 64 if capacity == 2 else 1 << 16),
        patch.object(cea_runs, "CAPACITY", capacity),
    ):
        assert recognized(aged, cut(aged, [50 * each for each in sizes])) == expected
        assert dict(aged.counts()) == {end: len(found) for end, found in expected.items()}


def long_stream(seed: int) -> list[Event]:
    """Three hundred events, close to each other mostly."""
    draw = Random(seed)
    events, time = [], 0
    for _ in range(300):
        time += draw.choice([0, 0, 0, 1, 1, 2, 5])
        attributes: dict[str, Value] = {
            "time": time,
            "n": draw.randint(0, 3),
            "x": 0.5,
            "s": "a",
            "k": draw.randint(0, 1),
        }
        events.append(Event(draw.choice("AABBC"), attributes, time))
    return events
