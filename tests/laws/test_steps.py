"""Steps between parts and rounds: distances and absences, found as the reference semantics say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estero.language.syntax.parser import parse_pattern
from estero.language.tree.query import KeyBracket, QueryTree
from estero.reference.queries import Event, evaluate_query
from laws.evaluators import in_process
from step_strategies import stepped_queries
from strategies import TICK, streams

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
