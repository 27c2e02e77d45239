"""Every plan that can serve a query, forced in turn, gives the answer of the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from estero.answers.answer import Answer
from estero.events.sources import Source, open_source
from estero.language.check.queries import check_query
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import EventLayout
from estero.plan.joins import JoinPlan
from estero.plan.plan import Layout, Plan
from estero.plan.rules import PLANS, NotServedError, PlanName, plan_of
from estero.queries.texts import query
from estero.recognize.in_process import InProcessRun
from estero.reference.queries import Event, evaluate_query, is_answer
from laws.evaluators import ByEnd, by_end
from strategies.full import full_queries
from strategies.gathered import dense_streams, gathered_queries
from strategies.joined import any_joined_queries, joined_queries
from strategies.patterns import SCHEMA, TICK, streams, to_table
from strategies.steps import stepped_queries


def source_of(events: list[Event]) -> Source:
    """The events as a table."""
    return open_source(
        to_table(events), EventLayout.of(type="type", time="time", time_unit="s", only_type="A")
    )


@cache
def layout_of() -> Layout:
    """How it is laid out."""
    return replace(source_of([]).layout, schema=SCHEMA)


def served(tree: QueryTree, events: list[Event]) -> Iterator[tuple[PlanName | None, InProcessRun]]:
    """The runs of a query by each plan that can serve it, and by the one that is picked; all labels shown.

    The one that is picked is mostly one of the others, which is not run again.
    """
    source = source_of(events)
    layout = layout_of()
    plans: list[Plan] = []
    for name in (*PLANS, None):
        try:
            plan = plan_of(tree, layout, only=name)
        except NotServedError:
            continue
        if plan not in plans:
            plans.append(plan)
            yield name, InProcessRun(plan, source)


def check(tree: QueryTree, events: list[Event], found: ByEnd) -> None:
    if tree.limit is None:
        assert found == evaluate_query(tree, events, tick=TICK)
    else:
        assert is_answer(tree, events, found, tick=TICK)


@given(joined_queries(), streams(max_size=10))
def test_joins_of_all_have_equal_answers_by_every_plan(tree: QueryTree, events: list[Event]) -> None:
    assert not check_query(tree, SCHEMA)
    for name, run in served(tree, events):
        event(f"plan: {name}")
        found = by_end(Answer(run).batches())
        check(tree, events, found)
        assert dict(run.counts()) == {end: len(complex_events) for end, complex_events in found.items()}


@given(st.one_of(any_joined_queries(), stepped_queries(full=True), full_queries()), streams(max_size=10))
def test_any_query_has_equal_answers_by_every_plan(tree: QueryTree, events: list[Event]) -> None:
    assert not check_query(tree, SCHEMA)
    tree = replace(tree, select=None)
    for name, run in served(tree, events):
        event(f"plan: {name}")
        check(tree, events, by_end(Answer(run).batches()))


@given(gathered_queries(), dense_streams())
def test_parts_in_any_order_have_equal_answers_by_every_plan(tree: QueryTree, events: list[Event]) -> None:
    """Also inside ;, OR and +, with windows, partitions and what is consumed."""
    assume(not check_query(tree, SCHEMA))
    try:
        plan_of(tree, layout_of(), only="PCEA")
    except NotServedError:
        event("not joined")
        return
    for name, run in served(tree, events):
        event(f"plan: {name}")
        check(tree, events, by_end(Answer(run).batches()))


@pytest.mark.parametrize(
    "pattern",
    [
        "(A AS u FILTER u.k = B.k) ALL B",
        "(A ALL B) AS w ALL C FILTER w.k = C.k",
        "(A AS u ALL A AS v FILTER A.k = B.k) ALL B",
        "((A AS u ALL B) AS w ALL C AS v FILTER w.n = v.n) PARTITION BY [k] FILTER u[n > 0]",
        "A AS u ALL A AS v ALL B FILTER A.n = A.n AND A.k = B.k",
        "A AS u ALL A AS v ALL A AS w FILTER u.k = v.n AND v.k = w.n AND u.k = w.k AND NOT u[n = 1]",
        "A ALL B ALL C FILTER A.s = B.s AND A.x = B.n AND A.s = C.s AND (B[k = 0] OR NOT B[n < 2])",
        "(A AS u) AS v ALL (B AS w) AS v FILTER u.k = w.k AND v.n = w.n",
    ],
)
@given(events=streams(max_size=10))
def test_filters_where_they_may_stand(pattern: str, events: list[Event]) -> None:
    tree = query(f"SELECT * WHERE ({pattern}) WITHIN 8 EVENTS").tree
    assert not check_query(tree, SCHEMA)
    assert isinstance(plan_of(tree, layout_of(), only="PCEA"), JoinPlan)
    for _, run in served(tree, events):
        check(tree, events, by_end(Answer(run).batches()))
