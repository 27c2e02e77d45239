"""LIMIT n PER d: the engine gives as many as the reference semantics, and counts those that it leaves out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from engines import cut
from estero.answers.answer import Answer
from estero.events.streams.stream_layout import StreamLayout
from estero.language.tree.query import Consume, QueryTree
from estero.language.tree.schema import EventLayout
from estero.plan.rules import plan_of
from estero.recognize.recognizers.continuous import ContinuousRecognizer
from estero.recognize.state_bytes import read
from estero.reference.queries import Event, evaluate_query, given_at, is_answer
from laws.evaluators import by_end, planned
from laws.test_plans_agree import layout_of
from strategies.full import full_queries
from strategies.patterns import TABLE, TICK, intervals, queries, queries_by_start, streams, to_table

MOST = settings.default.max_examples if settings.default else 10


@st.composite
def limited_queries(draw: st.DrawFn, *, windowed: bool = False) -> QueryTree:
    """Queries with LIMIT n PER d; if `windowed`, those that choose for each start have a window."""
    kinds = [queries(), full_queries(max_operators=3), queries_by_start(windowed=windowed)]
    tree: QueryTree = replace(draw(st.one_of(*kinds)), consume=Consume.NONE)
    limited: QueryTree = replace(tree, limit=draw(st.sampled_from([1, 1, 2, 3])), per=draw(intervals()))
    return limited


def suppressed_at(batches: list[pa.RecordBatch]) -> dict[int, tuple[int, int]]:
    """Of the rows of an answer, how many each end has, and how many were left out before its first."""
    found: dict[int, tuple[int, int]] = {}
    for batch in batches:
        for end, before in zip(
            *(batch.column(name).to_pylist() for name in ("end", "suppressed")), strict=True
        ):
            number, first = found.get(end, (0, before))
            assert number == 0 or before == 0
            found[end] = (number + 1, first)
    return found


def wanted(tree: QueryTree, events: list[Event]) -> dict[int, tuple[int, int]]:
    """The same as the reference has it."""
    everything = evaluate_query(replace(tree, limit=None, per=None), events, tick=TICK)
    return given_at(tree, events, everything, tick=TICK)


@given(limited_queries(), streams(max_size=14))
def test_as_many_are_given_in_an_interval(tree: QueryTree, events: list[Event]) -> None:
    tree = replace(tree, select=None)
    run = planned(tree, to_table(events))
    batches = list(Answer(run).batches())
    assert is_answer(tree, events, by_end(batches), tick=TICK)
    found = suppressed_at(batches)
    assert found == wanted(tree, events)
    assert run.count() == sum(number for number, _ in found.values())
    assert dict(run.counts()) == {end: number for end, (number, _) in found.items()}


@given(limited_queries(), streams(max_size=14), st.integers(2, 3))
def test_any_part_can_be_asked_for(tree: QueryTree, events: list[Event], of: int) -> None:
    answer = Answer(planned(tree, to_table(events)))
    rows = list(map(repr, answer.to_arrow().to_pylist()))
    assert [repr(answer[place : place + 1].to_arrow().to_pylist()[0]) for place in range(len(rows))] == rows
    shares = [answer.share(number, of).to_arrow().to_pylist() for number in range(of)]
    assert sorted(map(repr, (row for share in shares for row in share))) == sorted(rows)


@settings(max_examples=min(30, MOST))
@given(limited_queries(windowed=True), streams(), st.data())
def test_streams_remember_what_they_gave(tree: QueryTree, events: list[Event], data: st.DataObject) -> None:
    tree = replace(tree, select=None)
    layout = StreamLayout({"": TABLE}, EventLayout.of("type", "time", time_unit="s", only_type="A"), 0)
    plan = plan_of(tree, layout_of())
    recognizer = ContinuousRecognizer(plan, layout, layout.source())
    answers: list[pa.RecordBatch] = []
    first = 0
    while first < len(events):
        last = first + data.draw(st.integers(1, 4))
        answers += recognizer.push(to_table(events[first:last])).batches()
        if data.draw(st.booleans()):
            state = recognizer.snapshot()
            recognizer = ContinuousRecognizer(plan, layout, layout.source(), state=read(state))
            assert recognizer.snapshot() == state
        first = last
    answers += recognizer.close().batches()
    assert suppressed_at(answers) == wanted(tree, events)


def test_what_is_left_out_is_counted_and_not_listed() -> None:
    events = pa.table({"type": ["A"] * 100 + ["B", "B"], "time": [*range(100), 100, 200]})
    found = estero.query("SELECT * WHERE A+ ; B LIMIT 2 PER 50 [time]").run(events, type="type", time="time")
    assert [(each.end, each.suppressed) for each in found] == [
        (100, 0),
        (100, 0),
        (101, (1 << 62) - 1),  # of 2 ** 100 - 3: more than that is not told
        (101, 0),
    ]


def test_one_alert_for_each_key_in_an_hour() -> None:
    minutes = [0, 10, 20, 59, 60, 61, 130]
    times = pa.array([60 * each for each in minutes for _ in range(2)], pa.timestamp("s"))
    events = pa.table({"type": ["A"] * 14, "time": times, "k": [0, 1] * 7})
    found = estero.query("SELECT NONE WHERE A PARTITION BY k LIMIT 1 PER 1 HOUR").run(
        events, type="type", time="time"
    )
    assert [(each.start, each.partition["k"], each.suppressed) for each in found] == [
        (0, 0, 0),
        (1, 1, 0),
        (8, 0, 3),
        (9, 1, 3),
        (12, 0, 1),
        (13, 1, 1),
    ]


def test_many_keys_are_told_apart_in_pieces_and_from_snapshots() -> None:
    draw = np.random.default_rng(2)
    size = 20_000
    events = pa.table({"type": ["A"] * size, "time": np.arange(size), "k": draw.integers(0, 500, size)})
    query = estero.query("SELECT NONE WHERE A PARTITION BY k LIMIT 2 PER 3000 [time]")
    right = query.run(events, type="type", time="time").to_arrow().to_pylist()
    recognizer = query.recognizer(events.schema, type="type", time="time")
    rows = []
    for piece in cut(events, seed=5, most=3_000):
        rows += recognizer.push(piece).to_arrow().to_pylist()
        recognizer = estero.restore(query, recognizer.snapshot())
    assert rows == right
    assert sum(row["suppressed"] for row in rows) > 10_000


def test_other_columns_of_that_name_get_an_underscore() -> None:
    events = pa.table({"type": ["A"], "time": [1], "suppressed": ["x"]})
    with pytest.warns(estero.EsteroWarning, match="suppressed_"):
        found = estero.query("SELECT * WHERE A PARTITION BY suppressed LIMIT 1 PER 1 [time]").run(
            events, type="type", time="time"
        )
    assert found.schema.names == ["start", "end", "start_time", "end_time", "suppressed_", "suppressed", "A"]
    assert next(iter(found)).partition == {"suppressed_": "x"}


def test_an_interval_needs_a_time() -> None:
    events = pa.table({"type": ["A"], "time": [1]})
    with pytest.raises(estero.QueryError, match="needs a time column"):
        estero.query("SELECT * WHERE A LIMIT 1 PER 5 [time]").run(events, type="type")
    with pytest.raises(estero.QueryError, match="the length of a tick is unknown"):
        estero.query("SELECT * WHERE A LIMIT 1 PER 5 SECONDS").run(events, type="type", time="time")
