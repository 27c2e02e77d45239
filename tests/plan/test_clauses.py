"""What plans make of clauses: intervals, distances, deadlines, values that answers share, and steps."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import estero
from estero.automata.cea import CEA, EventPredicate, Guard, Transition
from estero.language.syntax.parser import parse_query
from estero.language.tree.schema import Kind, Schema
from estero.plan.automaton import AutomatonPlan
from estero.plan.chains import ChainPlan
from estero.plan.plan import Layout
from estero.plan.rules import plan_of
from estero.plan.steps import steps_of_states
from estero.reference.queries import Event, evaluate_query
from laws.evaluators import in_process

TYPES = {name: {"k": Kind.INT, "t": Kind.INT} for name in "ABC"}
TIMED = Layout(Schema(TYPES, time="t"), tick_ns=None)


@pytest.mark.parametrize(
    ("interval", "given"), [("5 SECONDS", [0, 5, 12]), ("5 MILLISECONDS", [0, 1, 4, 5, 6, 12])]
)
def test_an_interval_is_as_long_as_it_says(interval: str, given: list[int]) -> None:
    times = pa.array([second * 1_000_000 for second in (0, 1, 4, 5, 6, 12)], pa.timestamp("us"))
    events = pa.table({"kind": ["A"] * 6, "t": times})
    query = estero.query(f"SELECT * WHERE A LIMIT 1 PER {interval}")
    found = query.run(events, type="kind", time="t").to_arrow().column("start_time")
    assert [time.value // 1_000_000 for time in found] == given


@pytest.mark.parametrize("word", ["NEXT", "LAST", "MAX", "LONGEST", "SHORTEST"])
@pytest.mark.parametrize("distance", [">= 3 EVENTS", "2 EVENTS .. 4 EVENTS"])
def test_a_least_distance_holds_beside_a_comparison(word: str, distance: str) -> None:
    tree = parse_query(f"SELECT {word} * WHERE A AS a ;[{distance}] B AS b FILTER a.n < b.n WITHIN 9 EVENTS")
    draw = random.Random(word)
    events = [Event(draw.choice("AB"), {"n": draw.randrange(4), "time": place}, place) for place in range(24)]
    meant = evaluate_query(tree, events)
    assert any(meant.values())
    assert in_process(tree, events) == {end: ended for end, ended in meant.items() if ended}


@pytest.mark.parametrize(
    ("pattern", "bits"),
    [("A ; NOT(B) FOR 3 [t]", 1), ("B ; A ; NOT(B) FOR 3 [t]", 0)],
)
def test_what_only_deadlines_ask_for_is_forgotten_by_those_who_wait(pattern: str, bits: int) -> None:
    plan = plan_of(parse_query(f"SELECT * WHERE {pattern}"), TIMED)
    assert isinstance(plan, AutomatonPlan)
    assert len(plan.bits_for_deadlines) == bits


@pytest.mark.parametrize(
    ("clauses", "shared"),
    [("", {"A": "k", "B": "k"}), (" WITHIN 9 [t]", {"A": "k", "B": "k"}), (" CONSUME BY ANY", {})],
)
def test_a_chain_shares_a_value_unless_what_it_forgets_is_told_otherwise(
    clauses: str, shared: dict[str, str]
) -> None:
    text = f"SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k AND a.t != b.t{clauses}"
    plan = plan_of(parse_query(text), TIMED)
    assert isinstance(plan, ChainPlan)
    assert plan.shared == shared


def test_a_state_that_no_run_is_in_has_done_no_step() -> None:
    step = Transition(0, Guard(frozenset({0})), frozenset({"A"}), 1)
    automaton = CEA(3, frozenset({0}), frozenset({1}), (step,), (EventPredicate(("A",)),))
    assert steps_of_states(automaton, (frozenset({"A"}),)) == (0, 1, 0)
