"""LONGEST and SHORTEST with filters that stay true as more is marked: they are asked of one for each end."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero import testing
from estero.answers.answer import Answer
from estero.events.streams.stream_layout import StreamLayout
from estero.language.syntax.parser import parse_query
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import EventLayout
from estero.plan.automaton import AutomatonPlan
from estero.plan.rules import plan_of
from estero.recognize.recognizers.continuous import ContinuousRecognizer
from estero.reference.queries import Event, evaluate_query, is_answer
from laws.evaluators import by_end, in_process, planned
from laws.test_plans_agree import layout_of
from strategies.patterns import TABLE, TICK, streams, to_table

MOST = settings.default.max_examples if settings.default else 10

LARGEST = [
    *("A+ AS v ; B", "A{2,} AS v ; B", "A ; B+ AS v ; C", "(A OR B)+ AS v ; C"),
    *("A+ AS v", "A+ AS v : B", "A ; (A OR B)+ AS v", "A+ AS v ; A"),
]
"""Patterns of which one complex event marks all that others with its start and its end do."""
OTHERS = ["A+ AS v ; B+", "(A ; B)+ AS v", "(A+ OR (A ; B)) AS v", "A{1,2} AS v ; B?"]
GROWING = [
    "count(v) >= 2",
    "1 < count(DISTINCT v.k)",
    "NOT (count(v.n) < 2 OR max(v.x) <= 0.0)",
    "min(v.n) < 0",
    "max(v.n) - 1 >= min(v.k) OR count(v) - 2 > 0",
    "sum(abs(v.n)) > 2 AND duration <= 6",
    "2 * count(v) + max(v.n) > 4",
    "v[n >= 0] AND sum(v.n) > 2",
    "max(v.s) > 'a' OR NOT count(v) <= 2",
]
ON_ENDS = ["duration >= 3", "duration < 3 OR k = 1", "end_time > 2 * start_time"]
COUNTS = ["count(v) <= 2", "count(v) = 3", "2 > count(v) OR NOT (count(v) BETWEEN 1 AND 3)", "count(v) != 1"]
NOT_GROWING = ["count(v.n) <= 2", "sum(v.n) > 1", "avg(v.n) >= 0.5", "first(v.n) < last(v.n)", "max(v.n) = 1"]


@st.composite
def queries(draw: st.DrawFn, *, windowed: bool = False) -> QueryTree:
    """One for each start, of patterns and filters of all kinds."""
    pattern = draw(st.sampled_from([*LARGEST, *LARGEST, *OTHERS]))
    condition = draw(st.sampled_from([*GROWING, *GROWING, *ON_ENDS, *COUNTS, *NOT_GROWING]))
    strategy = draw(st.sampled_from(["LONGEST", "SHORTEST", "LONGEST DISJOINT", "SHORTEST DISJOINT"]))
    by_k = "k = 1" in condition or draw(st.integers(0, 3)) == 0
    window = draw(st.sampled_from(["WITHIN 5 EVENTS", "WITHIN 4 SECONDS", *([] if windowed else [""] * 3)]))
    limit = draw(st.sampled_from(["", "", "LIMIT 1"]))
    keys = "PARTITION BY [k]" if by_k else ""
    return parse_query(f"SELECT {strategy} * WHERE {pattern} FILTER {condition} {keys} {window} {limit}")


@settings(max_examples=3 * MOST)
@given(queries(), streams(max_size=10))
def test_one_is_chosen_for_each_start(tree: QueryTree, events: list[Event]) -> None:
    run = planned(tree, to_table(events))
    found = by_end(Answer(run).batches())
    assert is_answer(tree, events, found, tick=TICK)
    assert run.count() == sum(map(len, found.values()))


@given(queries(windowed=True), streams(max_size=10), st.integers(1, 4))
def test_streams_give_the_same(tree: QueryTree, events: list[Event], size: int) -> None:
    tree = replace(tree, select=None, limit=None)
    layout = StreamLayout({"": TABLE}, EventLayout.of("type", "time", time_unit="s", only_type="A"), 0)
    recognizer = ContinuousRecognizer(plan_of(tree, layout_of()), layout, layout.source())
    answers: list[pa.RecordBatch] = []
    for first in range(0, len(events), size):
        answers += recognizer.push(to_table(events[first : first + size])).batches()
    answers += recognizer.close().batches()
    assert by_end(answers) == evaluate_query(tree, events, tick=TICK)


@given(
    st.sampled_from([*LARGEST, *OTHERS]),
    st.sampled_from(COUNTS),
    st.sampled_from(["NEXT", "LAST", "MAX"]),
    streams(max_size=9),
)
def test_counts_are_asked_before_others_choose(
    pattern: str, condition: str, strategy: str, events: list[Event]
) -> None:
    tree = parse_query(f"SELECT {strategy} * WHERE {pattern} FILTER {condition}")
    assert in_process(tree, events) == evaluate_query(tree, events, tick=TICK)


def asks_greatest(pattern: str, condition: str) -> bool:
    tree = parse_query(f"SELECT SHORTEST * WHERE {pattern} FILTER {condition} PARTITION BY [k]")
    plan = plan_of(tree, layout_of())
    assert isinstance(plan, AutomatonPlan)
    return plan.selects_in_kernel or not plan.residuals


@pytest.mark.parametrize("strategy", ["NEXT", "LAST", "MAX", "LONGEST", "SHORTEST"])
@pytest.mark.parametrize("condition", [*COUNTS[:2], "count(v) BETWEEN 1 AND 3"])
def test_states_count(strategy: str, condition: str) -> None:
    plan = plan_of(parse_query(f"SELECT {strategy} * WHERE A+ AS v ; B FILTER {condition}"), layout_of())
    assert plan.residuals == ()
    assert f"by states of the automaton that count events:\n  {condition}" in "\n".join(plan.filter_lines())
    many = plan_of(parse_query(f"SELECT {strategy} * WHERE A+ AS v FILTER count(v) <= 5000"), layout_of())
    assert len(many.residuals) == 1


def test_what_grows_is_told_from_what_may_not() -> None:
    pattern = LARGEST[0]
    assert [each for each in (*GROWING, *ON_ENDS) if not asks_greatest(pattern, each)] == []
    assert [each for each in NOT_GROWING if asks_greatest(pattern, each)] == []
    assert [each for each in LARGEST if not asks_greatest(each, GROWING[1])] == []
    assert [each for each in OTHERS if asks_greatest(each, GROWING[1])] == []
    assert all(asks_greatest(each, ON_ENDS[0]) for each in OTHERS)


@pytest.mark.parametrize("strategy", ["SHORTEST", "LONGEST", "SHORTEST DISJOINT", "LONGEST DISJOINT"])
def test_what_2_to_the_150_complex_events_would_pass_is_asked_of_few(strategy: str) -> None:
    size = 150
    text = " ".join(f"fail(user={place % 7})@{place}s" for place in range(size))
    events = testing.events(f"{text} ok(user=1)@{size}s ok(user=1)@{size + 1}s")
    query = estero.query(
        f"SELECT {strategy} * WHERE fail{{10,}} AS f ; ok FILTER count(DISTINCT f.user) >= 5"
    )
    table = query.run(events, type="type", time="time").to_arrow()
    starts = [0] if "DISJOINT" in strategy else list(range(size - 9))
    end = size + ("LONGEST" in strategy)
    assert sorted(table.column("start").to_pylist()) == starts
    assert set(table.column("end").to_pylist()) == {end}
    assert [len(each) for each in table.column("f").to_pylist()] == [size - start for start in starts]
