"""Queries that ask less find what the reference says, and what is said of them adds up."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from estero.language.check.queries import check_query
from estero.language.tree import pattern as p
from estero.language.tree.query import Consume, QueryTree, Strategy
from estero.language.tree.relaxations import (
    conditions_on,
    in_single_conjuncts,
    relaxations,
    with_conditions,
    without_structure,
)
from estero.language.tree.selection import label_types
from estero.plan.rules import plan_of
from estero.recognize.budget import Budget
from estero.recognize.in_process import InProcessRun
from estero.recognize.why_not import WhyNotSearch, why_not
from estero.reference.queries import Event, evaluate_query
from laws.test_plans_agree import layout_of, source_of
from laws.test_restart_laws import MOST
from strategies.absences import absent_queries
from strategies.full import full_queries
from strategies.patterns import SCHEMA, TICK, streams

_asked = st.one_of(absent_queries(), absent_queries(), full_queries(3)).map(
    lambda tree: replace(
        tree,
        pattern=p.unshared(in_single_conjuncts(tree.pattern)),
        select=None,
        strategy=Strategy.ALL,
        disjoint=False,
        consume=Consume.NONE,
        limit=None,
        per=None,
    )
)


def asking_less(tree: QueryTree) -> list[QueryTree]:
    """The query without each of its conditions, and without several of them."""
    labels = set(label_types(tree.pattern))
    conditions = [None, *conditions_on(tree.pattern, labels)]
    less = [replace(tree, pattern=with_conditions(tree.pattern, labels, each)) for each in conditions]
    less += [each.tree for each in relaxations(tree, 0)]
    less += [each.tree for each in relaxations(replace(less[0], pattern=p.unshared(less[0].pattern)), 1)]
    return [*less, without_structure(tree)]


@settings(max_examples=max(40, MOST))
@given(_asked, streams(max_size=8))
def test_what_asks_less_ends_where_the_reference_says(tree: QueryTree, events: list[Event]) -> None:
    search = WhyNotSearch(
        InProcessRun(plan_of(tree, layout_of()), source_of(events)), layout_of(), 100, Budget(math.inf)
    )
    for less in asking_less(tree):
        assert not check_query(less, SCHEMA), str(less)
        wanted = set(evaluate_query(less, events, tick=TICK, until=math.inf))
        assert set(search.ends(less).tolist()) == wanted, str(less)


@settings(max_examples=max(40, MOST))
@given(st.one_of(absent_queries(), full_queries(3)), streams(max_size=8))
def test_what_is_said_adds_up(tree: QueryTree, events: list[Event]) -> None:
    run = InProcessRun(plan_of(tree, layout_of()), source_of(events))
    said = why_not(run, seconds=math.inf)
    assert said.found == run.count()
    assert said.undecided == run.undecided().count()
    assert said.came is not None
    assert said.passed is not None
    assert not said.unanswered
    assert 0 <= said.passed <= said.came
    assert all(each.events <= said.came for each in said.reasons if each.kind in ("condition", "choice"))
    assert all(each.events > 0 for each in said.reasons if each.kind not in ("condition", "type", "order"))
    assert all(each.events for each in said.steps[:-1])
    if not (said.found or said.undecided):
        assert said.reasons
    assert len(str(said).splitlines()) >= 2
