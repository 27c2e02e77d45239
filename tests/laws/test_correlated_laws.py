"""Equalities of events, joined by AND, OR and NOT: a chain automaton finds what the reference says."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from estero.answers.answer import Answer
from estero.language.check.queries import check_query
from estero.language.tree.query import QueryTree
from estero.plan.chains import ChainPlan
from estero.plan.rules import NotServedError, plan_of
from estero.queries.texts import query
from estero.recognize.in_process import InProcessRun
from estero.reference.queries import Event, evaluate_query
from laws.evaluators import by_end
from laws.test_plans_agree import layout_of, source_of
from strategies.correlated import correlated
from strategies.patterns import SCHEMA, TICK, streams

WINDOWS = ("", "", " WITHIN 4 EVENTS", " WITHIN 3 [time]")
SERVED = (
    "(A+ PARTITION BY [k])+",
    "(A+ PARTITION BY [k]) ; (A+ PARTITION BY [n])",
    "((A ; B PARTITION BY [k]) ; C) OR (A ; (B ; C PARTITION BY [k]))",
    "C+ ; A AS a ; B AS b FILTER NOT a.k = b.k",
    "A AS a ; B AS b FILTER a.k = b.k OR a.n = b.n",
    "A AS a ; B AS b FILTER NOT (a.k = b.k AND a.n != b.n)",
    "A AS a ; B AS b FILTER a.k = b.k + 1",
    "A AS a ; B AS b FILTER a.n / 2 = b.k / 2 OR a.x = b.n",
    "(A AS a ; B AS b ; C AS c FILTER (a.k = b.k OR a.n = b.n) AND NOT (b.k = c.k OR b.s = c.s))+",
)
"""Queries that a chain finds each complex event of once, without a window."""


def chain_plan(tree: QueryTree) -> ChainPlan:
    """The plan by a chain; such queries have one."""
    plan = plan_of(tree, layout_of(), only="chain")
    assert isinstance(plan, ChainPlan)
    return plan


@pytest.mark.parametrize("pattern", SERVED)
def test_such_queries_are_picked_for_a_chain_that_checks_all_of_them(pattern: str) -> None:
    picked = plan_of(query(f"SELECT * WHERE {pattern}").tree, layout_of())
    assert isinstance(picked, ChainPlan)
    assert not picked.sieved
    assert picked.steps


@pytest.mark.parametrize("pattern", SERVED)
@settings(max_examples=10)
@given(window=st.sampled_from(WINDOWS), events=streams(min_size=3, max_size=9))
def test_they_find_what_the_reference_says(pattern: str, window: str, events: list[Event]) -> None:
    agrees(query(f"SELECT * WHERE {pattern}{window}").tree, events)


@settings(max_examples=10)
@given(window=st.sampled_from(WINDOWS), events=streams(min_size=2, max_size=7))
def test_events_alone_are_found_though_they_have_no_neighbours(window: str, events: list[Event]) -> None:
    agrees(query(f"SELECT * WHERE (A PARTITION BY [k]){window}").tree, events)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(pattern=correlated(), window=st.sampled_from(WINDOWS), events=streams(min_size=2, max_size=7))
def test_random_ones_find_what_the_reference_says(pattern: str, window: str, events: list[Event]) -> None:
    tree = query(f"SELECT * WHERE {pattern}{window}").tree
    assume(not check_query(tree, SCHEMA))
    try:
        agrees(tree, events)
    except NotServedError:
        event("not served")


def agrees(tree: QueryTree, events: list[Event]) -> None:
    """Complex events and counts of the chain are those of the reference."""
    plan = chain_plan(tree)
    event(f"{plan.kernels}{', sieved' if plan.sieved else ''}")
    run = InProcessRun(plan, source_of(events))
    found = by_end(Answer(run).batches())
    assert found == evaluate_query(tree, events, tick=TICK)
    assert dict(run.counts()) == {end: len(complex_events) for end, complex_events in found.items()}
