"""Queries whose filters compare neighbours: by a chain automaton and by every other plan the same answer."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from automata.test_chain import CHAINS, chained
from estero.language.check import check_query
from estero.pipeline.answer import Answer
from estero.plan_chains import ChainPlan, plan_chain
from estero.queries import query
from estero.semantics import Event, evaluate_query
from laws.evaluators import by_end
from laws.test_plans_agree import layout_of, served
from strategies import SCHEMA, TICK, streams

PARTITIONS = ("", "", "", " PARTITION BY [k]", " PARTITION BY [n], [s]")
WINDOWS = ("", " WITHIN 5 EVENTS", " WITHIN 3 [time]")


@pytest.mark.parametrize("pattern", CHAINS)
@settings(max_examples=12)
@given(
    keys=st.sampled_from(PARTITIONS), window=st.sampled_from(WINDOWS), events=streams(min_size=3, max_size=9)
)
def test_neighbours_are_compared_alike_by_every_plan(
    pattern: str, keys: str, window: str, events: list[Event]
) -> None:
    tree = query(f"SELECT * WHERE ({pattern}){keys}{window}").tree
    assert not check_query(tree, SCHEMA)
    expected = evaluate_query(tree, events, tick=TICK)
    for _, run in served(tree, events):
        found = by_end(Answer(run).batches())
        assert found == expected
        assert dict(run.counts()) == {end: len(complex_events) for end, complex_events in found.items()}


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(pattern=chained(), window=st.sampled_from(WINDOWS), events=streams(max_size=7))
def test_random_chains_are_compared_alike_by_every_plan(
    pattern: str, window: str, events: list[Event]
) -> None:
    """Sequences, iterations, nested PARTITION BY, with comparisons that are mostly between neighbours."""
    tree = query(f"SELECT * WHERE {pattern}{window}").tree
    assume(not check_query(tree, SCHEMA))
    expected = evaluate_query(tree, events, tick=TICK)
    for name, run in served(tree, events):
        event(f"plan: {name or type(run.plan).__name__}")
        found = by_end(Answer(run).batches())
        assert found == expected
        assert dict(run.counts()) == {end: len(complex_events) for end, complex_events in found.items()}


@pytest.mark.parametrize("window", WINDOWS)
def test_enough_of_them_have_a_chain(window: str) -> None:
    plans = [plan_chain(query(f"SELECT * WHERE {each}{window}").tree, layout_of()) for each in CHAINS]
    chains = [plan for plan in plans if isinstance(plan, ChainPlan)]
    assert len(chains) >= 20
    assert any(any(plan.orders) for plan in chains)
    assert any(plan.steps for plan in chains) is (window == "")
