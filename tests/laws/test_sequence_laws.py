"""Sequences by stages are what the reference says: whole, pushed in any sizes, cut and restored anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.answers.complex_event import ComplexEvent
from estero.reference.event_sequences import Places
from laws.test_kernel_laws import interpreted
from strategies.staged import COLUMNS, Row, Staged, rows, staged, table_of

MOST = settings.default.max_examples if settings.default else 10
SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def places(found: Iterable[ComplexEvent]) -> list[Places]:
    return [event.all_positions for event in found]


def in_order(found: Sequence[Places], asked: Staged) -> list[Places]:
    """The same where what ends with one event is put in order: of several keys none comes first."""
    last = max(number for number, stage in enumerate(asked.stages) if not stage.missing)
    ends = [places[last] or 0 for places in found]
    assert ends == sorted(ends), "results come in the order of their ends"
    return [of for _, _, of in sorted((end, repr(of), of) for end, of in zip(ends, found, strict=True))]


def agree(found: Iterable[ComplexEvent], asked: Staged, events: Sequence[Row]) -> None:
    assert in_order(places(found), asked) == in_order(asked.meant(events), asked)


def pushed(events: Sequence[Row], sizes: Sequence[int]) -> Iterable[pa.Table]:
    number = 0
    while events:
        size = sizes[number % len(sizes)]
        yield table_of(events[:size])
        events, number = events[size:], number + 1


@settings(max_examples=10 * MOST)
@given(staged(), rows())
def test_the_engine_finds_what_the_reference_says(asked: Staged, events: list[Row]) -> None:
    agree(asked.query.run(table_of(events), time="t", time_unit="s"), asked, events)


@settings(max_examples=4 * MOST)
@given(staged(), rows(), SIZES, st.booleans())
def test_pushes_of_any_size_find_the_same(
    asked: Staged, events: list[Row], sizes: list[int], advances: bool
) -> None:
    recognizer = asked.query.recognizer(COLUMNS, time="t", time_unit="s")
    found: list[ComplexEvent] = []
    for batch in pushed(events, sizes):
        if advances:
            found += recognizer.advance(batch["t"][0].as_py())
        found += recognizer.push(batch)
    found += recognizer.close()
    agree(found, asked, events)


@settings(max_examples=4 * MOST)
@given(staged(), rows(), SIZES)
def test_a_restart_at_every_cut_changes_nothing(asked: Staged, events: list[Row], sizes: list[int]) -> None:
    query = asked.query
    recognizer = query.recognizer(COLUMNS, time="t", time_unit="s")
    found: list[ComplexEvent] = []
    for batch in pushed(events, sizes):
        found += recognizer.push(batch)
        state = recognizer.snapshot()
        recognizer = estero.restore(query, state)
        assert recognizer.snapshot() == state, "a state is read and written without change"
    found += recognizer.close()
    agree(found, asked, events)


@settings(max_examples=MOST)
@given(staged(), rows(max_size=12), SIZES)
def test_single_events_find_the_same(asked: Staged, events: list[Row], sizes: list[int]) -> None:
    recognizer = asked.query.recognizer(COLUMNS, time="t", time_unit="s")
    found = [event for row in events for event in recognizer.push(row)]
    agree([*found, *recognizer.close()], asked, events)


@settings(max_examples=2 * MOST)
@given(staged(), rows(max_size=14), SIZES)
def test_machine_code_and_python_have_equal_states(
    asked: Staged, events: list[Row], sizes: list[int]
) -> None:
    def states() -> list[object]:
        recognizer = asked.query.recognizer(COLUMNS, time="t", time_unit="s")
        return [
            part
            for batch in pushed(events, sizes)
            for part in (places(recognizer.push(batch)), recognizer.snapshot())
        ]

    with interpreted():
        expected = states()
    assert states() == expected


@settings(max_examples=2 * MOST)
@given(staged(), rows())
def test_what_is_counted_is_what_is_listed(asked: Staged, events: list[Row]) -> None:
    answer = asked.query.run(table_of(events), time="t", time_unit="s")
    listed = places(answer)
    assert answer.count() == len(listed)
    assert [answer[number].all_positions for number in range(len(listed))] == listed
