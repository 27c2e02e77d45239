"""Queries whose filters compare neighbours: by a chain automaton and by every other plan the same answer."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from automata.test_chain import CHAINS, chained
from estero.answers.answer import Answer
from estero.language.check.queries import check_query
from estero.plan.automaton import AutomatonPlan
from estero.plan.chains import ChainPlan
from estero.plan.chains import chained as plan_chained
from estero.plan.draft import Draft
from estero.plan.rules import plan_of
from estero.queries.texts import query
from estero.reference.queries import Event, evaluate_query
from laws.evaluators import by_end
from laws.test_plans_agree import check, layout_of, served
from strategies.patterns import SCHEMA, TICK, streams

WINDOWS = ("", " WITHIN 5 EVENTS", " WITHIN 3 [time]")
PARTITIONS = ("", "", "", " PARTITION BY [k]", " PARTITION BY [n], [s]")
FORGETTING = (("", ""), ("", " CONSUME BY ANY"), (" PARTITION BY [k]", " CONSUME BY PARTITION"))
FILTERED = (
    "A AS x ; B AS y FILTER x.n < y.n AND x.x > y.x",
    "A AS x ; B AS y FILTER x.s != y.s AND x.n != y.n",
    "(A AS x ; B AS y FILTER x.n < y.n AND x.k >= y.k)+",
    "A AS x ; B AS y ; C AS z FILTER x.n = y.n AND x.x < z.x AND y.k = z.k",
    "((A AS x ; B+ AS y) FILTER x.k = y.k AND max(y.n) > x.n)+",
    "A AS x ; B AS y FILTER x.n <= y.n AND x.k * y.k > 0",
)
"""Chains that leave something to a filter, with hidden labels as well."""


@pytest.mark.parametrize("pattern", CHAINS)
@settings(max_examples=8)
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


@pytest.mark.parametrize(
    "pattern", [*FILTERED, "A AS x ; B AS y FILTER x.n < y.n", "A+ AS x FILTER increasing(x.x)"]
)
@settings(max_examples=8)
@given(
    forgetting=st.sampled_from(FORGETTING),
    window=st.sampled_from(WINDOWS),
    limit=st.sampled_from(("", "", " LIMIT 1")),
    events=streams(min_size=3, max_size=9),
)
def test_what_is_left_to_a_filter_is_forgotten_and_limited_alike_by_every_plan(
    pattern: str, forgetting: tuple[str, str], window: str, limit: str, events: list[Event]
) -> None:
    keys, consume = forgetting
    tree = query(f"SELECT * WHERE {pattern}{keys}{window}{consume}{limit}").tree
    assert not check_query(tree, SCHEMA)
    plans = []
    for name, run in served(tree, events):
        plans.append(name)
        found = by_end(Answer(run).batches())
        check(tree, events, found)
        assert dict(run.counts()) == {end: len(complex_events) for end, complex_events in found.items()}
        rows = [row for table in Answer(run).batches() for row in table.to_pylist()]
        picked = [row for table in run.at(range(len(rows))) for row in table.to_pylist()]
        assert list(map(str, picked)) == list(map(str, rows))  # NaN is what it is
    assert "chain" in plans


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
    trees = [query(f"SELECT * WHERE {each}{window}").tree for each in CHAINS]
    plans = [plan_chained(Draft(tree, layout_of(), by_name=True)) for tree in trees]
    chains = [plan for plan in plans if isinstance(plan, ChainPlan)]
    assert len(chains) >= 20
    assert any(any(plan.orders) for plan in chains)
    assert any(plan.steps for plan in chains) is (window == "")


@pytest.mark.parametrize("pattern", FILTERED)
def test_pairs_and_what_registers_cannot_check_are_chains_with_a_filter(pattern: str) -> None:
    tree = query(f"SELECT * WHERE {pattern} WITHIN 5 EVENTS").tree
    chained = plan_chained(Draft(tree, layout_of(), by_name=True))
    assert isinstance(chained, ChainPlan)
    assert chained.residuals
    better = {FILTERED[2]: "x.k >= y.k", FILTERED[3]: "x.x < z.x"}
    picked = plan_of(tree, layout_of())
    if pattern in better:
        why = f"it would leave {better[pattern]}"
        assert isinstance(picked, AutomatonPlan)
        assert dict(picked.refused)["a chain automaton"].startswith(why)
    else:
        assert isinstance(picked, ChainPlan)


@pytest.mark.parametrize("pattern", ["{} PARTITION BY [n]", "{} AND x.s = y.s"])
def test_inside_partitions_registers_check_pairs(pattern: str) -> None:
    tree = query(f"SELECT * WHERE {pattern.format(FILTERED[0])} WITHIN 5 EVENTS").tree
    picked = plan_of(tree, layout_of())
    assert isinstance(picked, AutomatonPlan)
    assert dict(picked.refused)["a chain automaton"] == (
        "it would leave x.x > y.x to a filter; within partitions, registers have few runs to check"
    )
