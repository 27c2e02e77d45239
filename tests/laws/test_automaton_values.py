"""The automaton of a query, given back as its transitions and clauses, has the answers of the query."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import estero
from estero.answers.answer import Answer
from estero.language.check.queries import check_query
from estero.language.syntax.parser import parse_query
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.language.tree.query import QueryTree
from estero.plan.rules import PLANS, NotServedError, plan_of
from estero.queries.automaton_value import Automaton
from estero.recognize.in_process import InProcessRun
from estero.reference.queries import Event, evaluate_query
from estero.theory import ambiguity
from laws.evaluators import by_end
from laws.test_plans_agree import check, layout_of, source_of
from recognize.test_joining import table_of
from strategies.conjunctive import hierarchical_queries
from strategies.conjunctive import streams as conjunctive_streams
from strategies.correlated import correlated
from strategies.full import full_queries
from strategies.gathered import dense_streams, gathered_queries
from strategies.joined import any_joined_queries, joined_queries
from strategies.patterns import SCHEMA, TICK, queries, streams
from strategies.steps import stepped_queries

MOST = settings.default.max_examples if settings.default else 10


NOTHING = ("cannot be reached", "no run", "at least one transition", "reads no event")
"""Why automata are refused that accept nothing."""


def given_back(value: Automaton) -> estero.Query | str:
    """The query of what its transitions and clauses say, or why there is none."""
    try:
        with patch.object(ambiguity, "MOST_STREAMS", 0):  # to try streams takes seconds
            return estero.automaton(value.transitions, **value.clauses)
    except ValueError as error:
        return str(error)


def check_each_plan(tree: QueryTree, events: list[Event]) -> None:
    tree = replace(tree, select=None)
    source = source_of(events)
    for name in PLANS:
        try:
            plan = plan_of(tree, layout_of(), only=name)
        except NotServedError:
            continue
        again = given_back(Automaton.of(plan))
        if isinstance(again, estero.Query):
            event(f"plan: {name}, {plan.kernels}")
            run = InProcessRun(again.statement.plan(layout_of()), source)
            check(tree, events, by_end(Answer(run).batches()))
        elif any(why in again for why in NOTHING):
            assert not any(evaluate_query(tree, events, tick=TICK).values())
        else:
            event(f"{name}: {again.split(':')[0]}")
            assert "transitions cannot say all" in again, again


@settings(max_examples=MOST)
@given(
    st.one_of(full_queries(), stepped_queries(full=True), stepped_queries(), queries()), streams(max_size=9)
)
def test_any_automaton_given_back_has_the_same_answers(tree: QueryTree, events: list[Event]) -> None:
    assume(not check_query(tree, SCHEMA))
    check_each_plan(tree, events)


@given(correlated(), st.sampled_from(["", " WITHIN 4 EVENTS", " WITHIN 3 [time]"]), streams(max_size=9))
def test_what_compares_neighbours_given_back_has_the_same_answers(
    pattern: str, window: str, events: list[Event]
) -> None:
    tree = parse_query(f"SELECT * WHERE ({pattern}){window}")
    assume(not check_query(tree, SCHEMA))
    check_each_plan(tree, events)


@given(st.one_of(joined_queries(), any_joined_queries(), gathered_queries()), dense_streams())
def test_what_gathers_given_back_has_the_same_answers(tree: QueryTree, events: list[Event]) -> None:
    assume(not check_query(tree, SCHEMA))
    check_each_plan(tree, events)


@given(hierarchical_queries(), conjunctive_streams())
def test_a_conjunctive_query_given_back_has_the_same_answers(
    tree: ConjunctiveTree, events: list[Event]
) -> None:
    """Also where one type has a key in other attributes than another has."""
    table = table_of(events)
    layout: dict[str, Any] = {"type": "type", "types": ("T", "S", "R")}
    query = estero.conjunctive(str(tree))
    again = given_back(query.automaton(table, **layout))
    assert isinstance(again, estero.Query), again
    found = [by_end(each.run(table, **layout).batches()) for each in (query, again)]
    assert found[0] == found[1]
