"""Which pass serves a query, and that what opens the plan runs the kernels of that pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from estero.engine.runs.aged.aged_runs import AgedRuns
from estero.engine.runs.joined.chain_runs import ChainRuns
from estero.engine.runs.plain_runs import PlainRuns
from estero.engine.runs.spans.span_runs import SpanRuns
from estero.engine.runs.split.split_runs import SplitRuns
from estero.engine.runs.starts.start_runs import StartRuns
from estero.language.syntax.parser import parse_query
from estero.language.tree.schema import Kind, Schema
from estero.plan.automaton import AutomatonPlan
from estero.plan.levels import partials_plan
from estero.plan.passes import AtEnd, Compared, Listed, Pass, PerStart
from estero.plan.plan import Layout, Plan
from estero.plan.rules import plan_of

ATTRIBUTES = {"k": Kind.INT, "n": Kind.INT}
LAYOUT = Layout(Schema(dict.fromkeys("ABC", ATTRIBUTES), time="t"), "type", tick_ns=1)
KERNELS = {
    "cea": PlainRuns,
    "cea-aged": AgedRuns,
    "cea-spans": SpanRuns,
    "cea-split": SplitRuns,
    "cea-starts": StartRuns,
    "chain-ed-index": ChainRuns,
}
REGISTERS = "A AS x ; B ; C AS y FILTER x.n + 1 < y.n"
GROWING = "A AS x ; B+ AS y FILTER count(DISTINCT y.n) > 2"
AVERAGE = "A AS x ; B+ AS y FILTER avg(y.n) > 2"
NEAR = "A ;[<= 3 EVENTS] B+ ; C"


def plan_for(text: str) -> Plan:
    return plan_of(parse_query(text), LAYOUT)


@pytest.mark.parametrize(
    ("text", "serves", "kernels"),
    [
        ("SELECT * WHERE A ; B", AtEnd(tallied=True), "cea"),
        ("SELECT STRICT * WHERE A ; B", AtEnd(), "cea"),
        ("SELECT * WHERE A : B", AtEnd(), "cea"),
        ("SELECT * WHERE A ; B CONSUME BY ANY", AtEnd(), "cea"),
        (f"SELECT * WHERE {REGISTERS}", AtEnd(), "cea-split"),
        (f"SELECT * WHERE {NEAR}", AtEnd(), "cea-aged"),
        (f"SELECT * WHERE {AVERAGE}", AtEnd(sieved=True), "cea"),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.n = y.k", AtEnd(), "chain-ed-index"),
        ("SELECT MAX * WHERE A ; B+", Compared(), "cea-spans"),
        ("SELECT NEXT * WHERE A ; B+", Compared(), "cea-spans"),
        (f"SELECT LAST * WHERE {REGISTERS}", Compared(), "cea-split"),
        (f"SELECT NEXT * WHERE {NEAR}", Compared(sieved=True), "cea-split"),
        (f"SELECT MAX * WHERE {REGISTERS}", AtEnd(sieved=True), "cea-split"),
        (f"SELECT MAX * WHERE {NEAR}", AtEnd(sieved=True), "cea-aged"),
        (f"SELECT NEXT * WHERE {AVERAGE}", AtEnd(sieved=True), "cea"),
        ("SELECT LONGEST * WHERE A ; B+", PerStart(Listed.NOTHING), "cea-starts"),
        (f"SELECT SHORTEST * WHERE {REGISTERS}", PerStart(Listed.BEST), "cea-split"),
        (
            f"SELECT SHORTEST DISJOINT * WHERE {REGISTERS}",
            PerStart(Listed.BEST, drops_overlaps=True),
            "cea-split",
        ),
        (f"SELECT LONGEST * WHERE {GROWING}", PerStart(Listed.BEST, sieved=True), "cea-split"),
        (f"SELECT LONGEST DISJOINT * WHERE {GROWING}", PerStart(Listed.BEST, sieved=True), "cea-split"),
        (f"SELECT LONGEST * WHERE {AVERAGE}", PerStart(Listed.ALL, sieved=True), "cea"),
    ],
)
def test_a_query_is_served_by_one_pass_which_runs_its_kernels(text: str, serves: Pass, kernels: str) -> None:
    plan = plan_for(text)
    assert plan.served_by == serves
    assert plan.kernels == kernels
    assert type(plan.opened(1, ordinals=False, counting=False, total=False).runs) is KERNELS[kernels]


def test_a_changed_plan_decides_anew() -> None:
    plan = plan_for("SELECT LONGEST * WHERE A ; B+ WITHIN 9 EVENTS")
    assert isinstance(plan, AutomatonPlan)
    assert replace(plan, best_per_start=True).served_by == PerStart(Listed.BEST)
    assert plan.showing_nothing().served_by == PerStart(Listed.NOTHING)


def test_levels_of_partial_matches_keep_the_best_run_of_each_start() -> None:
    tree = parse_query("SELECT * WHERE A ; B+ ; C WITHIN 9 EVENTS")
    served = [level.served_by for level in partials_plan(tree, LAYOUT).by_level]
    assert served == [AtEnd(tallied=True), PerStart(Listed.BEST)]
