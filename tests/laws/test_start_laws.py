"""LONGEST, SHORTEST and DISJOINT: the engine chooses for each start what the reference semantics choose."""

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
from estero.language.tree.distances import DurationWindow, EventWindow, Window
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import EventLayout
from estero.plan.rules import plan_of
from estero.recognize.continuous import ContinuousRecognizer
from estero.recognize.state_bytes import read
from estero.reference.queries import Event, evaluate_query, is_answer
from full_strategies import full_queries
from laws.evaluators import by_end, planned
from laws.test_plans_agree import layout_of
from step_strategies import stepped_queries
from strategies import TABLE, TICK, queries, queries_by_start, streams, to_table

ANY = st.one_of(queries(), full_queries(), stepped_queries(), stepped_queries(full=True))
"""Queries that compare events and measure distances, too."""

MOST = settings.default.max_examples if settings.default else 10


@settings(max_examples=2 * MOST)
@given(queries_by_start(among=ANY), streams(max_size=10))
def test_one_is_chosen_for_each_start(tree: QueryTree, events: list[Event]) -> None:
    run = planned(tree, to_table(events))
    found = by_end(Answer(run).batches())
    assert is_answer(tree, events, found, tick=TICK)
    assert list(found) == sorted(found)
    assert run.count() == sum(map(len, found.values()))
    assert dict(run.counts()) == {end: len(complex_events) for end, complex_events in found.items()}


@given(queries_by_start(among=ANY), streams(max_size=10), st.integers(2, 3))
def test_any_part_can_be_asked_for(tree: QueryTree, events: list[Event], of: int) -> None:
    answer = Answer(planned(tree, to_table(events)))
    rows = list(map(repr, answer.to_arrow().to_pylist()))
    for index in range(0, len(rows), 3):
        assert repr(answer[index : index + 1].to_arrow().to_pylist()[0]) == rows[index]
    last = len(rows) - 1
    assert not rows or answer[last] == list(answer)[last]
    shares = [answer.share(number, of).to_arrow().to_pylist() for number in range(of)]
    assert sorted(map(repr, (row for share in shares for row in share))) == sorted(rows)


@settings(max_examples=min(60, MOST))
@given(queries_by_start(windowed=True, among=ANY), streams(max_size=10), st.data(), st.integers(0, 4))
def test_streams_give_what_is_decided_as_soon_as_it_is(
    tree: QueryTree, events: list[Event], data: st.DataObject, lateness: int
) -> None:
    tree = replace(tree, select=None, limit=None)
    layout = StreamLayout({"": TABLE}, EventLayout.of("type", "time", time_unit="s", only_type="A"), lateness)
    plan = plan_of(tree, layout_of())
    recognizer = ContinuousRecognizer(plan, layout, layout.source())
    answers: list[pa.RecordBatch] = []
    right = evaluate_query(tree, events, tick=TICK)
    first = 0
    while first < len(events):
        last = first + data.draw(st.integers(1, 4))
        answers += recognizer.push(to_table(events[first:last])).batches()
        if data.draw(st.booleans()):
            state = recognizer.snapshot()
            recognizer = ContinuousRecognizer(plan, layout, layout.source(), state=read(state))
            assert recognizer.snapshot() == state
        first = last
        decided = {
            end: {each for each in found if _has_passed(tree.window, events, each.start, first, lateness)}
            for end, found in right.items()
        }
        assert by_end(answers) == {end: found for end, found in decided.items() if found}
    answers += recognizer.close().batches()
    assert by_end(answers) == right


def _has_passed(window: Window | None, events: list[Event], start: int, pushed: int, lateness: int) -> bool:
    """Whether the window of a start has passed when so many events were pushed."""
    times = [event.time or 0 for event in events]
    known = times[pushed - 1 if pushed < len(events) else -1] - lateness
    if isinstance(window, EventWindow):
        position = sum(time <= known for time in times[:pushed]) - 1
        return position > start + window.events
    assert window is not None
    length = window.nanoseconds if isinstance(window, DurationWindow) else window.ticks * TICK
    return (known - times[start]) * TICK > length


def _many(size: int) -> pa.Table:
    """A stream of many keys."""
    draw = np.random.default_rng(3)
    kinds = np.array(["A", "A", "A", "B", "C"])[draw.integers(0, 5, size)]
    return pa.table({"type": kinds, "time": np.arange(size) // 3, "k": draw.integers(0, 40, size)})


@pytest.mark.parametrize("text", ["LONGEST DISJOINT", "SHORTEST", "LONGEST", "SHORTEST DISJOINT"])
def test_long_streams_with_keys_are_forgotten_and_remembered(text: str) -> None:
    events = _many(30_000)
    query = estero.query(f"SELECT {text} * WHERE A+ ; B PARTITION BY k WITHIN 60 [time]")
    wanted = sorted(map(repr, query.run(events, type="type", time="time").to_arrow().to_pylist()))
    recognizer = query.recognizer(events.schema, type="type", time="time")
    found: list[object] = []
    for number, piece in enumerate(cut(events, seed=5, most=4_000)):
        found += recognizer.push(piece).to_arrow().to_pylist()
        if number % 3 == 0:
            recognizer = estero.restore(query, recognizer.snapshot())
    found += recognizer.close().to_arrow().to_pylist()
    assert sorted(map(repr, found)) == wanted
    assert len(wanted) > 1_000


def test_batches_that_are_longer_than_what_is_remembered() -> None:
    size = 200_000
    events = pa.table({"type": np.where(np.arange(size) % 10 == 9, "B", "A"), "time": np.arange(size)})
    pieces = pa.RecordBatchReader.from_batches(events.schema, events.to_batches(max_chunksize=10_000))
    found = estero.query("SELECT LONGEST DISJOINT * WHERE A+ ; B WITHIN 25 EVENTS").run(pieces, type="type")
    table = found.to_arrow()
    start, end = (table.column(name).to_numpy() for name in ("start", "end"))
    # A start at 30 · i ends at 30 · i + 19, and the next one kept is the first after that.
    expected = []
    at = 0
    while at < size:
        if at % 10 == 9:
            at += 1
            continue
        last = min(at + 25, size - 1)
        last -= (last + 1) % 10
        if last <= at:
            break
        expected.append((at, last))
        at = last + 1
    assert list(zip(start.tolist(), end.tolist(), strict=True)) == expected


def test_a_stream_needs_a_window() -> None:
    schema = pa.schema([("type", pa.string()), ("time", pa.int64())])
    with pytest.raises(estero.QueryError, match="needs a window on a stream") as error:
        estero.query("SELECT LONGEST * WHERE A+ ; B").recognizer(schema, type="type", time="time")
    assert "WITHIN" in str(error.value)
    assert "^^^^^^^" in str(error.value)


SESSIONS = "SELECT LONGEST DISJOINT click WHERE click+[<= 30 [time]] PARTITION BY user WITHIN 1000 [time]"


def test_sessions_by_gaps() -> None:
    draw = np.random.default_rng(4)
    size = 20_000
    time, user = np.cumsum(draw.integers(0, 9, size)), draw.integers(0, 9, size)
    events = pa.table({"type": ["click"] * size, "time": time, "user": user})
    found = estero.query(SESSIONS).run(events, type="type", time="time").to_arrow()
    expected: list[tuple[int, int]] = []
    for each in range(9):
        places = np.flatnonzero(user == each).tolist()
        first = places[0]
        for before, here in zip(places, [*places[1:], -1], strict=True):
            if here < 0 or time[here] - time[before] > 30 or time[here] - time[first] > 1000:
                expected.append((first, before))
                first = here
    shown = zip(found.column("start").to_pylist(), found.column("end").to_pylist(), strict=True)
    assert sorted(shown) == sorted(expected)
    assert sum(map(len, found.column("click").to_pylist())) == size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT LONGEST * WHERE A ; B FILTER A.k < B.k", [(0, 5), (2, 5), (4, 5)]),
        ("SELECT SHORTEST * WHERE A ; B FILTER A.k < B.k", [(0, 1), (2, 3), (4, 5)]),
        ("SELECT LONGEST DISJOINT * WHERE A ; B FILTER A.k < B.k", [(0, 5)]),
        ("SELECT SHORTEST DISJOINT * WHERE A ; B FILTER A.k < B.k", [(0, 1), (2, 3), (4, 5)]),
        ("SELECT LONGEST * WHERE A ; B FILTER A.k = B.k", []),
        ("SELECT LONGEST * WHERE A ;[<= 1 EVENTS] B", [(0, 1), (2, 3), (4, 5)]),
        ("SELECT LONGEST * WHERE A+ ; B FILTER sum(A.k) < 6", [(0, 5), (2, 5), (4, 5)]),
    ],
)
def test_events_may_be_compared(text: str, expected: list[tuple[int, int]]) -> None:
    events = pa.table({"type": ["A", "B"] * 3, "k": [1, 2, 3, 4, 5, 6]})
    found = list(estero.query(text).run(events, type="type"))
    assert [(each.start, each.end) for each in found] == expected


def test_labels_may_have_the_names_of_its_words() -> None:
    events = pa.table({"type": ["LONGEST", "DISJOINT"]})
    query = estero.query("SELECT LONGEST DISJOINT LONGEST, DISJOINT WHERE LONGEST ; DISJOINT")
    assert [each.labels for each in query.run(events, type="type")] == [("LONGEST", "DISJOINT")]
