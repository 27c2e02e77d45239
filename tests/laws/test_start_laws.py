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
from laws.evaluators import by_end, planned
from laws.test_plans_agree import layout_of
from strategies import TABLE, TICK, queries_by_start, streams, to_table

MOST = settings.default.max_examples if settings.default else 10


@given(queries_by_start(), streams())
def test_one_is_chosen_for_each_start(tree: QueryTree, events: list[Event]) -> None:
    run = planned(tree, to_table(events))
    found = by_end(Answer(run).batches())
    assert is_answer(tree, events, found, tick=TICK)
    assert list(found) == sorted(found)
    assert run.count() == sum(map(len, found.values()))
    assert dict(run.counts()) == {end: len(complex_events) for end, complex_events in found.items()}


@given(queries_by_start(), streams(), st.integers(2, 3))
def test_any_part_can_be_asked_for(tree: QueryTree, events: list[Event], of: int) -> None:
    answer = Answer(planned(tree, to_table(events)))
    rows = list(map(repr, answer.to_arrow().to_pylist()))
    for index in range(0, len(rows), 3):
        assert repr(answer[index : index + 1].to_arrow().to_pylist()[0]) == rows[index]
    last = len(rows) - 1
    assert not rows or answer[last] == list(answer)[last]
    shares = [answer.share(number, of).to_arrow().to_pylist() for number in range(of)]
    assert sorted(map(repr, (row for share in shares for row in share))) == sorted(rows)


@settings(max_examples=min(30, MOST))
@given(queries_by_start(windowed=True), streams(), st.data(), st.integers(0, 4))
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


def test_comparisons_of_events_are_refused_unless_they_are_keys() -> None:
    events = pa.table({"type": ["A", "B"], "k": [1, 1]})
    with pytest.raises(estero.QueryError, match="not served for patterns that compare events"):
        estero.query("SELECT LONGEST * WHERE A ; B FILTER A.k < B.k").run(events, type="type")
    found = estero.query("SELECT LONGEST * WHERE A ; B FILTER A.k = B.k").run(events, type="type")
    assert [(each.start, each.end) for each in found] == [(0, 1)]


def test_labels_may_have_the_names_of_its_words() -> None:
    events = pa.table({"type": ["LONGEST", "DISJOINT"]})
    query = estero.query("SELECT LONGEST DISJOINT LONGEST, DISJOINT WHERE LONGEST ; DISJOINT")
    assert [each.labels for each in query.run(events, type="type")] == [("LONGEST", "DISJOINT")]
