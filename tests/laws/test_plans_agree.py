"""Every plan that can serve a query, forced in turn, gives the answer of the reference."""

from __future__ import annotations

from typing import Final

from hypothesis import event, given

from estero.automata.all_joins import joined_all
from estero.language.check import check_query
from estero.language.query import QueryTree
from estero.pipeline.answer import Answer
from estero.pipeline.in_process import InProcessRun
from estero.pipeline.sources import open_source
from estero.plan import Layout
from estero.planner import PlanName, plan_of
from estero.semantics import Event, evaluate_query, is_answer
from joined_strategies import any_joined_queries, joined_queries
from laws.evaluators import ByEnd, by_end
from strategies import SCHEMA, TICK, streams, to_table

PLANS: Final[tuple[PlanName, ...]] = ("CEA", "PCEA")


def run_by(name: PlanName | None, tree: QueryTree, events: list[Event]) -> InProcessRun:
    source = open_source(to_table(events), type="type", time="time", time_unit="s", only_type="A")
    layout = Layout(SCHEMA, source.type_column, source.only_type, source.order, source.time_tick_ns)
    return InProcessRun(plan_of(tree, layout, only=name), source)


def check(tree: QueryTree, events: list[Event], found: ByEnd) -> None:
    if tree.limit is None:
        assert found == evaluate_query(tree, events, tick=TICK)
    else:
        assert is_answer(tree, events, found, tick=TICK)


@given(joined_queries(), streams(max_size=10))
def test_joins_of_all_have_equal_answers_by_every_plan(tree: QueryTree, events: list[Event]) -> None:
    assert not check_query(tree, SCHEMA)
    served = not isinstance(joined_all(tree, SCHEMA), str)
    event(f"joined: {served}")
    for name in PLANS if served else PLANS[:1]:
        run = run_by(name, tree, events)
        found = by_end(Answer(run).batches())
        check(tree, events, found)
        assert dict(run.counts()) == {end: len(complex_events) for end, complex_events in found.items()}


@given(any_joined_queries(), streams(max_size=10))
def test_the_plan_that_is_chosen_answers_any_equalities(tree: QueryTree, events: list[Event]) -> None:
    assert not check_query(tree, SCHEMA)
    reason = joined_all(tree, SCHEMA)
    event(reason.split(" ")[0] if isinstance(reason, str) else "joined")
    for name in (None, *PLANS[:1]):
        check(tree, events, by_end(Answer(run_by(name, tree, events)).batches()))
