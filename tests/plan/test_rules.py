"""Which plan a query gets, what is said of the others, and that its pattern is compiled once for all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from estero.automata.compile.compile_pattern import compile_pattern
from estero.errors import LimitExceeded
from estero.language.syntax.parser import parse_query
from estero.language.tree.schema import Kind, Schema
from estero.plan import draft, outline
from estero.plan.automaton import AutomatonPlan
from estero.plan.chains import ChainPlan
from estero.plan.joins import JoinPlan
from estero.plan.plan import Layout, Limit, Plan, Window
from estero.plan.rules import PLANS, NotServedError, PlanName, plan_of

ATTRIBUTES = {"k": Kind.INT, "n": Kind.INT, "s": Kind.STRING, "t": Kind.INT}
LAYOUT = Layout(Schema(dict.fromkeys("ABC", ATTRIBUTES), time="t"), "type", tick_ns=1_000)
TITLES = ["PCEA + heap", "a chain automaton", "a CEA in partitions"]


def plan_for(text: str, **how: Any) -> Plan:
    return plan_of(parse_query(text), LAYOUT, **how)


@pytest.mark.parametrize(
    ("text", "kind", "refused"),
    [
        ("SELECT * WHERE A AS a ALL B AS b FILTER a.k = b.k", JoinPlan, 0),
        (
            "SELECT * WHERE (A AS a ALL B AS b) ; C AS c FILTER a.k = c.k AND b.k = c.k AND b.n = c.n",
            JoinPlan,
            0,
        ),
        ("SELECT * WHERE (A ; B PARTITION BY [k]) ALL C", JoinPlan, 0),
        ("SELECT * WHERE ((A ALL B PARTITION BY [k]) ; C)+", ChainPlan, 1),
        ("SELECT * WHERE (A ; B) ALL C FILTER A.k = B.k AND C.k = B.k", AutomatonPlan, 2),
        ("SELECT * WHERE A AS a ; B AS b FILTER a.n < b.n", ChainPlan, 1),
        ("SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k", AutomatonPlan, 2),
        ("SELECT * WHERE A AS a ; B AS b", AutomatonPlan, 3),
        ("SELECT MAX * WHERE A AS a ; B AS b FILTER a.n + b.n > 3", AutomatonPlan, 3),
    ],
)
def test_the_rules_above_say_in_their_order_why_they_do_not_serve(
    text: str, kind: type[Plan], refused: int
) -> None:
    plan = plan_for(text)
    assert type(plan) is kind
    assert [title for title, _ in plan.refused] == TITLES[:refused]
    assert all(reason for _, reason in plan.refused)


def test_equalities_that_make_partitions_are_not_compared_by_a_chain() -> None:
    plan = plan_for("SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k")
    assert plan.classification.keys == (("k",),)
    assert dict(plan.refused)["a chain automaton"] == (
        "equalities define partitions, in which nothing else is compared"
    )
    forced = plan_for("SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k", only="chain")
    assert isinstance(forced, ChainPlan)


def test_what_was_refused_is_no_part_of_what_a_plan_is() -> None:
    plan = plan_for("SELECT * WHERE A ; B")
    assert replace(plan, refused=()) == plan


@pytest.mark.parametrize("name", PLANS[:-1])
def test_a_plan_that_cannot_serve_says_why(name: PlanName) -> None:
    with pytest.raises(NotServedError, match=r"this query is not served by .*: no "):
        plan_for("SELECT * WHERE A ; B", only=name)


@pytest.mark.parametrize(
    ("pattern", "clauses"),
    [
        ("(A ; B PARTITION BY [k]) ALL C", "PARTITION BY [s]"),
        ("(A ; B PARTITION BY [k]) ALL C", "WITHIN 5 EVENTS CONSUME BY ANY"),
        ("A ALL B FILTER A.k = B.k", "PARTITION BY [s] CONSUME BY PARTITION"),
    ],
)
def test_parts_are_joined_in_partitions_and_where_events_are_consumed(pattern: str, clauses: str) -> None:
    plan = plan_for(f"SELECT * WHERE ({pattern}) {clauses}")
    assert isinstance(plan, JoinPlan)
    assert plan.classification.keys == ((("s",),) if "BY [s]" in clauses else ())
    assert plan.shared == {}


def test_what_no_key_tells_is_left_to_a_filter_behind_the_join() -> None:
    where = "(A AS a ALL B AS b) ; C AS c FILTER a.k = c.k AND b.k = c.k AND b.n = c.n"
    plan = plan_for(f"SELECT * WHERE {where} AND a.n + b.n > c.k")
    assert isinstance(plan, JoinPlan)
    assert [str(each.condition) for each in plan.residuals] == ["a.n + b.n > c.k"]
    assert next(plan.lines()).startswith("residual filter over PCEA + heap")
    by_registers = plan_for(f"SELECT * WHERE {where} AND a.n < b.n")
    assert isinstance(by_registers, AutomatonPlan)
    assert by_registers.refused[0] == (
        "PCEA + heap",
        "it would leave a.n < b.n to a filter; registers drop runs that violate it",
    )


def test_all_names_of_plans_have_a_rule() -> None:
    assert set(PLANS) == set(get_args(PlanName))


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("SELECT * WHERE A AS a ALL B AS b FILTER a.k = b.k", 0),
        ("SELECT * WHERE A AS a ; B AS b", 1),
        ("SELECT * WHERE A AS a ; B AS b FILTER a.n < b.n", 1),
        ("SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.k = b.k AND b.k = c.k AND a.n < c.n", 2),
    ],
)
def test_a_pattern_is_compiled_once_and_what_its_partitions_leave_once(
    monkeypatch: pytest.MonkeyPatch, text: str, most: int
) -> None:
    asked = 0

    def counted(*arguments: Any, **how: Any) -> Any:
        nonlocal asked
        asked += 1
        return compile_pattern(*arguments, **how)

    monkeypatch.setattr(draft, "compile_pattern", counted)
    monkeypatch.setattr(outline, "_LAST", [outline._Last()])  # nothing was planned before
    plan_for(text)
    assert asked == most


def test_a_window_is_in_positions_or_in_ticks() -> None:
    windows = {
        "9 EVENTS": Window(9, in_positions=True),
        "9 [t]": Window(9, in_positions=False),
        "3 MICROSECONDS": Window(3, in_positions=False),
    }
    for text, window in windows.items():
        plan = plan_for(f"SELECT * WHERE A ; B WITHIN {text}")
        assert plan.window == window
        assert plan.by_position is plan.needs_positions is window.in_positions
    assert plan_for("SELECT * WHERE A ; B").window is None


def test_a_limit_is_of_each_end() -> None:
    assert plan_for("SELECT * WHERE A ; B LIMIT 3").limit == Limit(most=3)
    assert plan_for("SELECT * WHERE A ; B").limit is None


def test_a_duration_needs_the_length_of_a_tick() -> None:
    with pytest.raises(ValueError, match="a duration needs the length of a tick: check the query first"):
        plan_of(parse_query("SELECT * WHERE A ; B WITHIN 3 SECONDS"), replace(LAYOUT, tick_ns=None))


def test_an_automaton_that_joins_and_gets_too_big_is_a_reason_not_an_error() -> None:
    parts = " ALL ".join(f"A AS x{number}" for number in range(15))
    same = " AND ".join(f"x{number}.k = x{number + 1}.k" for number in range(14))
    with pytest.raises(NotServedError, match="this query needs an automaton of more than"):
        plan_for(f"SELECT * WHERE {parts} FILTER {same}", only="PCEA")
    with pytest.raises(LimitExceeded):
        plan_for(f"SELECT * WHERE {parts} FILTER {same}", only="CEA")
