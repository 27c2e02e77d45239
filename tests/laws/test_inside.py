"""Fields of structs and elements of lists are attributes as others are: what is inside changes no answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.answers.answer import Answer
from estero.language.check.queries import check_query
from estero.language.syntax.parser import parse_query
from estero.language.tree.query import QueryTree
from estero.reference.queries import Event, evaluate_query, is_answer
from laws.evaluators import by_end
from laws.test_restart_laws import SIZES, restarted
from laws.test_whole_queries import MOST, check
from strategies.joined import joined_queries
from strategies.nested import nested_event, nested_layout, nested_run, nested_tree
from strategies.patterns import TICK, streams
from strategies.whole import whole_queries

QUERIES = st.one_of(whole_queries(), whole_queries(), joined_queries())


@given(QUERIES, streams(max_size=9))
def test_the_reference_reads_what_is_inside(tree: QueryTree, events: list[Event]) -> None:
    tree = replace(tree, limit=None, per=None)  # any that LIMIT lets through are as right as others
    nested = list(map(nested_event, events))
    assert evaluate_query(nested_tree(tree), nested, tick=TICK) == evaluate_query(tree, events, tick=TICK)


@given(QUERIES)
def test_such_a_query_fits_its_events_and_survives_its_text(tree: QueryTree) -> None:
    inside = nested_tree(tree)
    assert parse_query(str(inside)) == inside
    assert len(check_query(inside, nested_layout().schema)) == 0


@settings(max_examples=2 * MOST)
@given(QUERIES, streams(max_size=9))
def test_the_engine_finds_what_the_reference_says(tree: QueryTree, events: list[Event]) -> None:
    inside, nested = nested_tree(tree), list(map(nested_event, events))
    check(inside, nested, Answer(nested_run(inside, nested)).batches())


@given(QUERIES, streams(max_size=9), SIZES)
def test_a_restart_at_every_cut_changes_no_answer(
    tree: QueryTree, events: list[Event], sizes: list[int]
) -> None:
    inside, nested = nested_tree(tree), list(map(nested_event, events))
    if not inside.strategy.one_for_each_start:
        found = by_end(restarted(nested_run(inside, nested), sizes))
        assert is_answer(inside, nested, found, tick=TICK)


@given(
    st.sampled_from(
        [
            "A AS x FILTER contains(x.ns, 2)",
            "A AS x FILTER NOT contains(x.ns, 7.0)",
            'A AS x ; B AS y FILTER contains(x.ns, y."a struct".n)',
            'A AS x ; B AS y FILTER NOT contains(y."a struct".xs, x.ns[1])',
            'A+ AS x FILTER x[contains("a struct".xs, "a struct"."In Side".x) OR contains(ns, 1)]',
            "A AS x FILTER some(x.ns AS n, n > 2 AND n % 2 = 1)",
            'A AS x ; B AS y FILTER some(x.ns AS n, n = y."a struct".n)',
            'A+ AS x FILTER x[NOT some("a struct".xs AS t, t < "a struct"."In Side".x)]',
            "A AS x FILTER some(x.ns AS n, n IS NULL)",
        ]
    ),
    streams(max_size=9),
)
def test_contains_looks_at_the_elements_of_a_list(pattern: str, events: list[Event]) -> None:
    tree, nested = parse_query(f"SELECT * WHERE {pattern}"), list(map(nested_event, events))
    assert by_end(Answer(nested_run(tree, nested)).batches()) == evaluate_query(tree, nested, tick=TICK)


ROWS: list[dict[str, Any]] = [
    {"s": [{"x": "a", "n": [1, None]}, {"x": None, "n": None}]},
    {"s": [{"x": "b", "n": []}, {"x": "a", "n": [2]}]},
    {"s": []},
    {"s": None},
    {"s": [None, {"x": "c", "n": [3, 1]}]},
]


@pytest.mark.parametrize(
    "condition",
    [
        "some(s.x AS t, t = 'a')",
        "NOT some(s.x AS t, t = 'a')",
        "some(s.x AS t, t IS NULL)",
        "contains(s.x, 'c')",
        "some(s.n AS n, n > 1)",
        "NOT some(s.n AS n, n = 1)",
        "s.n[1] = 1",
        "s.x[2] = 'a'",
    ],
)
def test_a_field_of_structs_in_a_list_is_the_list_of_its_values(condition: str) -> None:
    tree = parse_query(f"SELECT * WHERE A FILTER A[{condition}]")
    due = {place for place, row in enumerate(ROWS) for _ in evaluate_query(tree, [Event("A", row)])}
    query = estero.query(tree)
    assert {found.start for found in query.run([{"kind": "A", **row} for row in ROWS], type="kind")} == due
