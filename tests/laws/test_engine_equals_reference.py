"""The engine finds what the reference semantics say, however it is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estero.answers.answer import Answer
from estero.language.syntax.parser import parse_pattern
from estero.language.tree.query import QueryTree
from estero.reference.queries import Event, evaluate_query, is_answer
from laws.evaluators import by_end, in_process, planned
from strategies.full import full_queries
from strategies.patterns import TICK, queries, streams, to_table

ANY = st.one_of(queries(), full_queries(), full_queries())
"""Queries of the plain operators, and of the whole language."""


@given(ANY, streams())
def test_every_complex_event_is_found_once(tree: QueryTree, events: list[Event]) -> None:
    found = in_process(tree, events)
    if tree.limit is None:
        assert found == evaluate_query(tree, events, tick=TICK)
    else:
        assert is_answer(tree, events, found, tick=TICK)


@given(full_queries(max_operators=8), streams(min_size=3, max_size=7))
def test_deep_patterns_are_evaluated_as_shallow_ones(tree: QueryTree, events: list[Event]) -> None:
    tree = replace(tree, limit=None)
    assert in_process(tree, events) == evaluate_query(tree, events, tick=TICK)


SMALLER = [
    "A++",
    "(A:+)+ ; B",
    "(A+):+ : B",
    "(A AS x){2,}{2,}",
    "(A:{2,})+",
    "(A{2,}):+ ; B",
    "((A ; B)+ AS x:+ AS y){2,}",
    "((A FILTER A[n > 1])+ FILTER A[n < 9])+",
    "A ; A? ; B? ; A? ; B? ; A?",
    "A? ; B? ; A : B? : A? ; B?",
    "(A AS x)? ; (B AS y)? ; A ; (B AS z)? ; (A AS u)? : (B AS w)? FILTER x.n < z.n",
    "(A AS x)? : B ; (A AS y)? FILTER x.n = y.n",
    "(A? ; B ; (A ; B?)?)+",
    "A ALL A ALL A",
    "A ALL B ALL A ALL B",
    "(A FILTER A[n > 1]) ALL (A FILTER A[n > 1]) ALL A",
    "(A AS x ALL A AS x FILTER x[n > 1]) ; B",
    "(A AS x) ALL (A AS x) ALL (A AS y) FILTER x.n = y.n",
]
"""Patterns whose automata are smaller than their operators one by one would make them."""


@pytest.mark.parametrize("text", SMALLER)
@given(events=streams(max_size=8))
@settings(max_examples=15)
def test_patterns_whose_automata_are_made_smaller(text: str, events: list[Event]) -> None:
    tree = QueryTree(parse_pattern(text))
    assert in_process(tree, events) == evaluate_query(tree, events, tick=TICK)


@given(ANY, streams())
def test_counts_are_those_of_enumeration(tree: QueryTree, events: list[Event]) -> None:
    run = planned(tree, to_table(events))
    found = by_end(Answer(run).batches())
    assert dict(run.counts()) == {end: len(complex_events) for end, complex_events in found.items()}
    assert run.count() == sum(map(len, found.values()))


@given(ANY, streams(), st.integers(0, 40))
def test_picking_by_index_is_enumeration(tree: QueryTree, events: list[Event], index: int) -> None:
    run = planned(tree, to_table(events))
    rows = [repr(row) for row in Answer(run).to_arrow().to_pylist()]
    picked = [repr(row) for batch in run.at([index]) for row in batch.to_pylist()]
    assert picked == rows[index : index + 1]
