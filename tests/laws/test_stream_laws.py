"""Laws that always hold: how a stream is cut, how much memory there is, what nobody wants: all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from estero.automata.marking import has_contiguity
from estero.engine import recognizer
from estero.engine.runs import cea_runs
from estero.language.tree.distances import EventWindow
from estero.language.tree.query import Consume, KeyBracket, QueryTree
from estero.plan.automaton import AutomatonPlan
from estero.recognize.in_process import InProcessRun
from estero.recognize.recognition import Recognition
from estero.recognize.source_run import time_type
from estero.reference.queries import ComplexEvent, Event
from laws.evaluators import ByEnd, by_end, in_process, planned
from strategies.full import full_queries
from strategies.patterns import queries, streams, to_table


def cut(run: InProcessRun, sizes: list[int]) -> Iterator[pa.RecordBatch]:
    """The classified stream in batches of these sizes, over and over, with empty ones between."""
    table = pa.Table.from_batches(
        run.source.read(run.plan.classification), run.source.classified_schema(run.plan.classification)
    ).combine_chunks()
    start, turn = 0, 0
    while start < table.num_rows:
        size = sizes[turn % len(sizes)]
        yield from table.slice(start, size).to_batches()
        yield pa.RecordBatch.from_pylist([], schema=table.schema)
        start += size
        turn += 1


def recognized(run: InProcessRun, batches: Iterator[pa.RecordBatch]) -> ByEnd:
    events = run.source.classified_schema(run.plan.classification)
    recognition = Recognition(run.plan, events, time=time_type(run.source))
    return by_end(answer for batch in batches for answer in recognition.push(batch))


def unlimited() -> st.SearchStrategy[QueryTree]:
    """Queries whose answer is one set: LIMIT may take any."""
    return st.one_of(queries(), full_queries()).map(lambda tree: replace(tree, limit=None))


def plain() -> st.SearchStrategy[QueryTree]:
    """Those of them that cannot tell neighbours: without START, STRICT and the strategy of that name."""
    return queries().map(lambda tree: replace(tree, limit=None))


def moved(each: ComplexEvent, place_of: dict[int, int]) -> ComplexEvent:
    """The complex event with every position replaced."""
    labels = frozenset((label, frozenset(place_of[p] for p in marked)) for label, marked in each.labels)
    return ComplexEvent(place_of[each.start], place_of[each.end], labels)


@given(unlimited(), streams(), st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_a_stream_may_be_cut_anywhere(tree: QueryTree, events: list[Event], sizes: list[int]) -> None:
    run = planned(tree, to_table(events))
    assert recognized(run, cut(run, sizes)) == in_process(tree, events)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=unlimited(), events=streams(max_size=14))
def test_little_memory_is_enough(
    monkeypatch: pytest.MonkeyPatch, tree: QueryTree, events: list[Event]
) -> None:
    expected = in_process(tree, events)
    monkeypatch.setattr(cea_runs, "_SMALLEST_ARENA", 8)
    monkeypatch.setattr(cea_runs, "_FEW_KEYS", 1)
    monkeypatch.setattr(cea_runs, "_MANY_KEYS", 2)
    monkeypatch.setattr(recognizer, "_REPORTED_AT_ONCE", 1)
    monkeypatch.setattr(recognizer, "_KEYED_AT_ONCE", 3)
    assert in_process(tree, events) == expected


@given(plain(), streams(), st.lists(st.integers(0, 14), max_size=6))
def test_events_that_no_predicate_wants_change_nothing(
    tree: QueryTree, events: list[Event], places: list[int]
) -> None:
    assume(not isinstance(tree.window, EventWindow))
    plan = planned(tree, to_table([])).plan
    assume(isinstance(plan, AutomatonPlan) and not has_contiguity(plan.automaton))
    mixed, kept = list(events), list(range(len(events)))
    for place in sorted((min(place, len(events)) for place in places), reverse=True):
        time = events[place].time if place < len(events) else events[-1].time if events else 0
        mixed.insert(place, Event("Z", {"time": time, "n": 1, "x": 1.0, "s": "a", "k": 1}, time))
        kept = [position + (position >= place) for position in kept]
    renamed = {position: place for place, position in enumerate(kept)}
    found = in_process(tree, mixed)
    assert {
        renamed[end]: {moved(each, renamed) for each in complex_events}
        for end, complex_events in found.items()
    } == in_process(tree, events)


@given(unlimited(), streams())
def test_partitions_are_evaluated_alone(tree: QueryTree, events: list[Event]) -> None:
    keyed = tree.partition_by or (KeyBracket(("k",)),)
    assume(all(bracket.alternatives == ("k",) for bracket in keyed))
    assume(tree.consume is not Consume.ANY and not isinstance(tree.window, EventWindow))
    tree = replace(tree, partition_by=keyed)
    together = in_process(tree, events)
    alone: ByEnd = {}
    for key in {event.attributes["k"] for event in events} - {None}:
        places = [place for place, event in enumerate(events) if event.attributes["k"] == key]
        part = in_process(replace(tree, partition_by=()), [events[place] for place in places])
        for end, complex_events in part.items():
            alone[places[end]] = {moved(each, dict(enumerate(places))) for each in complex_events}
    assert together == alone
