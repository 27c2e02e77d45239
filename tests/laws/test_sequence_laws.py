"""Sequences by stages are what the reference says: whole, pushed in any sizes, cut and restored anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.answers.complex_event import ComplexEvent
from estero.engine.runs.sequences.stage_runs import StageRuns
from estero.plan.stages import KeyField
from estero.recognize.rules.conditions import dispatch
from estero.recognize.threads import ranges
from estero.reference.event_sequences import Places, Sample, may_be_given, sample_keys
from laws.test_kernel_laws import interpreted
from laws.test_thread_laws import divided
from strategies.staged import (
    COLUMNS,
    LETTERS,
    Drawn,
    Row,
    Staged,
    dense_samples,
    rows,
    samples,
    staged,
    table_of,
)

MOST = settings.default.max_examples if settings.default else 10
ASKED = st.one_of(staged(), staged(), samples())
FEWEST = dispatch.FEWEST
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
    if not asked.ordered:
        agree_on_samples(list(found), asked, events)
        return
    assert in_order(places(found), asked) == in_order(asked.meant(events), asked)


def agree_on_samples(found: Sequence[ComplexEvent], asked: Staged, events: Sequence[Row]) -> None:
    """Each key has its samples as events complete them; of those completed first any is the first."""
    conditions = [stage.meant(events) for stage in asked.stages]
    given = [tuple(_known(event)) for event in found]
    assert [event.end for event in found] == [max(sample) for sample in given]
    assert [event.end for event in found] == sorted(event.end for event in found)
    of_keys = [may_be_given(conditions, key, asked.most) for key in sample_keys(conditions)]
    assert are_those_of_keys(given, of_keys)


def are_those_of_keys(given: list[Sample], of_keys: Sequence[list[list[Sample]]]) -> bool:
    """Whether samples are, in their order, one of the possible answers of each key, and no others."""
    if not of_keys:
        return not given
    rests = (without(given, answer) for answer in of_keys[0])
    return any(rest is not None and are_those_of_keys(rest, of_keys[1:]) for rest in rests)


def without(given: Sequence[Sample], answer: Sequence[Sample]) -> list[Sample] | None:
    """The others, where those of an answer are there in this order."""
    rest: list[Sample] = []
    place = 0
    for sample in given:
        if place < len(answer) and sample == answer[place]:
            place += 1
        else:
            rest.append(sample)
    return rest if place == len(answer) else None


def _known(event: ComplexEvent) -> list[int]:
    return [place for place in event.all_positions if place is not None]


def pushed(events: Sequence[Row], sizes: Sequence[int]) -> Iterable[pa.Table]:
    number = 0
    while events:
        size = sizes[number % len(sizes)]
        yield table_of(events[:size])
        events, number = events[size:], number + 1


@settings(max_examples=10 * MOST)
@given(ASKED, rows())
def test_the_engine_finds_what_the_reference_says(asked: Staged, events: list[Row]) -> None:
    agree(asked.query.run(table_of(events), time="t", time_unit="s"), asked, events)


@settings(max_examples=4 * MOST)
@given(ASKED, rows(), SIZES, st.booleans())
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


@settings(max_examples=2 * MOST)
@given(ASKED, rows(), SIZES, st.lists(st.booleans(), min_size=1, max_size=4))
def test_a_restart_at_any_cut_changes_nothing(
    asked: Staged, events: list[Row], sizes: list[int], restarts: list[bool]
) -> None:
    query = asked.query
    recognizer = query.recognizer(COLUMNS, time="t", time_unit="s")
    found: list[ComplexEvent] = []
    for number, batch in enumerate(pushed(events, sizes)):
        found += recognizer.push(batch)
        if restarts[number % len(restarts)]:
            state = recognizer.snapshot()
            recognizer = estero.restore(query, state)
            assert recognizer.snapshot() == state, "a state is read and written without change"
    found += recognizer.close()
    agree(found, asked, events)


@settings(max_examples=3 * MOST)
@given(dense_samples(), SIZES)
def test_many_samples_of_few_keys_go_on_after_restarts(
    drawn: tuple[Staged, list[Row]], sizes: list[int]
) -> None:
    asked, events = drawn
    recognizer = asked.query.recognizer(COLUMNS, time="t", time_unit="s")
    found: list[ComplexEvent] = []
    for batch in pushed(events, sizes):
        found += recognizer.push(batch)
        recognizer = estero.restore(asked.query, recognizer.snapshot())
    agree([*found, *recognizer.close()], asked, events)


def test_a_restart_keeps_what_is_decided_and_waits_for_an_earlier_end() -> None:
    """Of two keys the first that ends waits for longer, and the start of the other has left the window."""
    key = (KeyField("k"),)
    stages = (Drawn(("A",), key), Drawn(("B",), key), Drawn(("D",), key, missing=True))
    asked = Staged(stages, span=10)
    marks = [(1, "A", "x"), (5, "A", "y"), (6, "B", "y"), (7, "B", "x"), (12, "A", "x"), (13, "C", "x")]
    marks += [(14, "A", "x"), (15, "A", "y")]
    events: list[Row] = [
        {"t": time, "c": letter, "k": key, "m": None, "l": None} for time, letter, key in marks
    ]
    recognizer = asked.query.recognizer(COLUMNS, time="t", time_unit="s")
    found = [event for batch in pushed(events, [4, 2, 1, 1]) for event in recognizer.push(batch)]
    recognizer = estero.restore(asked.query, recognizer.snapshot())
    assert found == []
    assert places(recognizer.advance(16)) == [(1, 2, None), (0, 3, None)]


@settings(max_examples=2 * MOST)
@given(ASKED, rows(max_size=60), st.integers(1, 30))
def test_pools_grow_and_are_compacted(asked: Staged, events: list[Row], size: int) -> None:
    with patch.object(StageRuns, "capacity", 1):
        agree(asked.query.run(table_of(events), time="t", time_unit="s"), asked, events)
        recognizer = asked.query.recognizer(COLUMNS, time="t", time_unit="s")
        found = [event for batch in pushed(events, [size]) for event in recognizer.push(batch)]
        agree([*found, *recognizer.close()], asked, events)


@settings(max_examples=2 * MOST)
@given(ASKED, rows(), st.sampled_from([2, 3]), st.integers(1, 4), st.integers(1, 4))
def test_threads_find_the_same(
    asked: Staged, events: list[Row], threads: int, shortest: int, batch: int
) -> None:
    one = asked.query.run(table_of(events), time="t", time_unit="s", threads=1).to_arrow()
    with divided(shortest, batch):
        several = asked.query.run(table_of(events), time="t", time_unit="s", threads=threads)
        assert several.to_arrow() == one
        assert several.count() == one.num_rows


@settings(max_examples=2 * MOST)
@given(ASKED, rows(), st.lists(st.integers(1, 12), min_size=1, max_size=4), st.sampled_from([2, 3]))
def test_a_divided_push_finds_the_same(
    asked: Staged, events: list[Row], sizes: list[int], threads: int
) -> None:
    recognizer = asked.query.recognizer(COLUMNS, time="t", time_unit="s", threads=threads)
    found: list[ComplexEvent] = []
    with patch.object(ranges, "SHORTEST", 1), patch.object(ranges, "HALOS", 1):
        for batch in pushed(events, sizes):
            found += recognizer.push(batch)
    found += recognizer.close()
    agree(found, asked, events)


@settings(max_examples=MOST)
@given(ASKED, rows(max_size=12), SIZES)
def test_single_events_find_the_same(asked: Staged, events: list[Row], sizes: list[int]) -> None:
    recognizer = asked.query.recognizer(COLUMNS, time="t", time_unit="s")
    found = [event for row in events for event in recognizer.push(row)]
    agree([*found, *recognizer.close()], asked, events)


@settings(max_examples=MOST)
@given(ASKED, rows(max_size=14), SIZES)
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
@given(ASKED, rows())
def test_what_is_counted_is_what_is_listed(asked: Staged, events: list[Row]) -> None:
    answer = asked.query.run(table_of(events), time="t", time_unit="s")
    listed = places(answer)
    assert answer.count() == len(listed)
    assert [answer[number].all_positions for number in range(len(listed))] == listed


@settings(max_examples=2 * MOST)
@given(
    ASKED,
    rows(),
    st.lists(st.permutations(LETTERS), min_size=1, max_size=3),
    st.sampled_from([1, FEWEST]),
    SIZES,
    st.lists(st.booleans(), min_size=1, max_size=4),
)
def test_rules_of_one_shape_share_a_recognition(
    asked: Staged,
    events: list[Row],
    others: list[list[str]],
    fewest: int,
    sizes: list[int],
    restarts: list[bool],
) -> None:
    """Rules that differ in their letters alone have each the answer of its own, pushed and restored, too."""
    queries = [asked, *(asked.with_letters(dict(zip(LETTERS, other, strict=True))) for other in others)]
    rules = estero.rules({f"rule {number}": one.query for number, one in enumerate(queries)})
    with patch.object(dispatch, "FEWEST", fewest):
        together = list(rules.run(table_of(events), time="t", time_unit="s"))
        recognizer = rules.recognizer(COLUMNS, time="t", time_unit="s")
        pieces: list[ComplexEvent] = []
        for number, batch in enumerate(pushed(events, sizes)):
            pieces += recognizer.push(batch)
            if restarts[number % len(restarts)]:
                recognizer = estero.restore(rules, recognizer.snapshot())
        pieces += recognizer.close()
    for number, one in enumerate(queries):
        for found in (together, pieces):
            agree([event for event in found if event.rule == f"rule {number}"], one, events)


@settings(max_examples=2 * MOST)
@given(
    staged(listed=False).filter(lambda asked: not asked.stages[-1].missing),
    rows(),
    SIZES,
    st.lists(st.booleans(), min_size=1, max_size=4),
)
def test_events_before_a_rule_begins_are_not_missed(
    asked: Staged, events: list[Row], sizes: list[int], restarts: list[bool]
) -> None:
    """Two rules, whose events a dispatcher leaves out as long as they have not begun."""
    asked = replace(asked, stages=tuple(replace(stage, keys=()) for stage in asked.stages))
    asked = asked if asked.until is None else replace(asked, until=replace(asked.until, keys=()))
    queries = [asked, asked.with_letters(dict(zip(LETTERS, LETTERS[::-1], strict=True)))]
    rules = estero.rules({f"rule {number}": one.query for number, one in enumerate(queries)})
    with patch.object(dispatch, "FEWEST", 1):
        recognizer = rules.recognizer(COLUMNS, time="t", time_unit="s")
        found: list[ComplexEvent] = []
        for number, batch in enumerate(pushed(events, sizes)):
            found += recognizer.push(batch)
            if restarts[number % len(restarts)]:
                recognizer = estero.restore(rules, recognizer.snapshot())
        found += recognizer.close()
    for number, one in enumerate(queries):
        agree([event for event in found if event.rule == f"rule {number}"], one, events)
