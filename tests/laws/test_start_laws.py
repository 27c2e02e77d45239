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
from estero.language.tree.query import QueryTree, Strategy
from estero.language.tree.schema import EventLayout
from estero.plan.rules import plan_of
from estero.recognize.recognizers.continuous import ContinuousRecognizer
from estero.recognize.state_bytes import read
from estero.reference.queries import Event, evaluate_query, is_answer
from estero.testing import events as short_events
from laws.evaluators import by_end, planned
from laws.test_plans_agree import layout_of
from laws.test_restart_laws import begun
from laws.test_stream_laws import cut as stretches
from strategies.full import full_queries
from strategies.patterns import TABLE, TICK, queries, queries_by_start, streams, to_table
from strategies.steps import stepped_queries

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
        pushed = list(recognizer.push(to_table(events[first:last])).batches())
        assert list(by_end(pushed)) == sorted(by_end(pushed))
        answers += pushed
        if data.draw(st.booleans()):
            state = recognizer.snapshot()
            recognizer = ContinuousRecognizer(plan, layout, layout.source(), state=read(state))
            assert recognizer.snapshot() == state
        first = last
        given = by_end(answers)
        known = _known_events(events, first, lateness)
        assert sum(len(found) for found in given.values()) == sum(each.num_rows for each in answers)
        for end, found in right.items():
            passed = {each for each in found if _has_passed(tree.window, events, each.start, first, lateness)}
            early = tree.strategy is Strategy.SHORTEST and end < known
            least = found if early and not tree.disjoint else passed
            most = found if early else passed
            assert least <= given.get(end, set()) <= most
        assert set(given) <= set(right)
    answers += recognizer.close().batches()
    assert by_end(answers) == right


APART = [
    "A+[<= 2 SECONDS]",
    "A ;[<= 2 SECONDS] B+[<= 3 SECONDS]",
    "(A ; B)+[<= 3 SECONDS]",
    "A ; B+[<= 2 SECONDS] ; C?",
    "(A ; C) OR (B+[<= 2 SECONDS])",
    "(A ;[<= 5 SECONDS] (B ; C)) OR (B ;[<= 2 SECONDS] A) OR (C+[<= 1 SECOND])",
    "A{2,}[<= 2 EVENTS] UNLESS C",
    "A AS x ; B+ AS y ; C FILTER x.n = y.n",
]
"""What recognition drops of these follows from the oldest start, which may end after others, or never."""


@pytest.mark.parametrize("pattern", APART)
@settings(max_examples=min(12, MOST))
@given(
    strategy=st.sampled_from(["LONGEST", "LONGEST", "SHORTEST"]),
    clauses=st.sampled_from(["WITHIN 9 [time]", "PARTITION BY [k] WITHIN 40 [time]", "WITHIN 12 EVENTS"]),
    events=streams(max_size=20),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
)
def test_what_the_oldest_start_excludes_is_not_followed(
    pattern: str, strategy: str, clauses: str, events: list[Event], sizes: list[int]
) -> None:
    query = estero.query(f"SELECT {strategy} DISJOINT * WHERE {pattern} {clauses}")
    table = to_table(events)
    right = evaluate_query(query.tree, events, tick=TICK)
    assert by_end(Answer(planned(query.tree, table)).batches()) == right
    recognizer = query.recognizer(table.schema, type="type", time="time", time_unit="s")
    found, first, number = list[pa.RecordBatch](), 0, 0
    while first < len(events):
        size = sizes[number % len(sizes)]
        found += recognizer.push(table.slice(first, size)).batches()
        recognizer = estero.restore(query, recognizer.snapshot()) if number % 2 else recognizer
        first, number = first + size, number + 1
    found += recognizer.close().batches()
    assert by_end(found) == right


@pytest.mark.parametrize("keyed", ["", "PARTITION BY [k]"])
@pytest.mark.parametrize("strategy", ["LONGEST", "SHORTEST"])
def test_a_session_holds_one_start(strategy: str, keyed: str) -> None:
    clicks = [*range(150), *range(200, 350)]  # two sessions in one window
    events = [Event("A", {"time": at, "n": 0, "x": 0.5, "s": "a", "k": 1}, at) for at in clicks]
    pattern = "A+[<= 30 SECONDS]" if strategy == "LONGEST" else "A{3,}[<= 30 SECONDS]"
    tree = estero.query(f"SELECT {strategy} DISJOINT * WHERE {pattern} {keyed} WITHIN 1 HOUR").tree
    run = planned(tree, to_table(events))
    recognition = begun(run, None)
    for batch in stretches(run, [40]):
        list(recognition.push(batch))
    # Each start beside the first would take a node at each of its clicks: 22,500 in all.
    assert recognition.recognizer.size < 10 * len(events)
    spans = [(each.start, end) for end, found in by_end(Answer(run).batches()).items() for each in found]
    triples = [(first, first + 2) for first in range(0, 300, 3)]
    assert spans == ([(0, 149), (150, 299)] if strategy == "LONGEST" else triples)


def _known_events(events: list[Event], pushed: int, lateness: int) -> int:
    """How many events are not held back when so many were pushed."""
    times = [event.time or 0 for event in events[:pushed]]
    return sum(time <= times[-1] - lateness for time in times)


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


def _pushed(text: str, events: pa.Table, sizes: list[int]) -> list[list[tuple[int, int]]]:
    """Start and end of what each push gives, and `close`."""
    recognizer = estero.query(text).recognizer(events.schema, type="type", time="time")
    found, first = [], 0
    for size in sizes:
        pushed = recognizer.push(events.slice(first, size))
        found.append([(each.start, each.end) for each in pushed])
        recognizer = estero.restore(estero.query(text), recognizer.snapshot())
        first += size
    return [*found, [(each.start, each.end) for each in recognizer.close()]]


@pytest.mark.parametrize("window", ["WITHIN 1 HOUR", "WITHIN 1000 EVENTS"])
@pytest.mark.parametrize("compared", ["", "FILTER a.k <= b.k"])
def test_the_first_end_of_a_start_is_given_at_once(window: str, compared: str) -> None:
    events = short_events("a(k=1)@0s b(k=1)@1s a(k=1)@2s a(k=1)@3s b(k=1)@4s b(k=1)@5s")
    text = f"SELECT SHORTEST * WHERE a ; b {compared} {window}"
    assert _pushed(text, events, [1] * 6) == [[], [(0, 1)], [], [], [(2, 4), (3, 4)], [], []]
    assert _pushed(text, events, [4, 2]) == [[(0, 1)], [(2, 4), (3, 4)], []]


def test_disjoint_waits_for_earlier_starts_that_are_open() -> None:
    # The first start needs a c; the second one has its b at once, and would be excluded by the first.
    events = short_events("a(k=1)@0s x(k=1)@1s b(k=1)@2s c(k=1)@3s x(k=1)@4s b(k=1)@5s x(k=2)@6s b(k=2)@7s")
    text = "SELECT SHORTEST DISJOINT * WHERE (a ; c) OR (x ; b) WITHIN 1 HOUR"
    assert _pushed(text, events, [1] * 8) == [[], [], [], [(0, 3)], [], [(4, 5)], [], [(6, 7)], []]
    open_events = short_events("a(k=1)@0s x(k=2)@1s b(k=2)@2s x(k=1)@3s b(k=1)@4s y(k=2)@2h")
    by_key = text.replace("WITHIN", "PARTITION BY k WITHIN")
    assert _pushed(text, open_events, [1] * 6) == [[], [], [], [], [], [(1, 2), (3, 4)], []]
    assert _pushed(by_key, open_events, [1] * 6) == [[], [], [(1, 2)], [], [], [(3, 4)], []]


def test_a_start_that_cannot_end_any_more_holds_nothing_back() -> None:
    events = short_events("a(k=1)@0s x(k=1)@1s b(k=1)@2s")
    text = "SELECT SHORTEST DISJOINT * WHERE (a : c) OR (x ; b) WITHIN 1 HOUR"
    assert _pushed(text, events, [1, 1, 1]) == [[], [], [(1, 2)], []]


def test_limits_count_what_is_given_at_once() -> None:
    events = short_events("a(k=1)@0s a(k=1)@1s b(k=1)@2s a(k=2)@3s b(k=2)@4s a(k=1)@5s b(k=1)@6s")
    text = "SELECT SHORTEST * WHERE a ; b PARTITION BY k WITHIN 1 HOUR LIMIT 1"
    assert _pushed(text, events, [1] * 7) == [[], [], [(0, 2)], [], [(3, 4)], [], [(5, 6)], []]
    assert _pushed(f"{text} PER 1 MINUTE", events, [1] * 7) == [[], [], [(0, 2)], [], [(3, 4)], [], [], []]


def _many(size: int) -> pa.Table:
    """A stream of many keys."""
    draw = np.random.default_rng(3)
    kinds = np.array(["A", "A", "A", "B", "C"])[draw.integers(0, 5, size)]
    return pa.table({"type": kinds, "time": np.arange(size) // 3, "k": draw.integers(0, 40, size)})


@pytest.mark.parametrize("text", ["LONGEST DISJOINT", "SHORTEST", "LONGEST", "SHORTEST DISJOINT"])
@pytest.mark.long
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


@pytest.mark.long
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
