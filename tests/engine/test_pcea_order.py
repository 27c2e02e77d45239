"""Parallelised automata whose sources compare by order: against all runs tried one by one, and bounds."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.pcea_runs import (
    COMPARED,
    LEAST,
    MOST,
    Event,
    Items,
    Pcea,
    all_runs,
    batch_of,
    enumerated,
    events_of,
    pceas,
    recognized,
    rising,
    rising_iteration,
    rising_pair,
    rising_star,
    streams,
)
from engine.test_pcea_bounds import steps_and_items
from estero.engine.cursor import CONSUME_ANY
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.pcea_runs import PceaRuns
from estero.engine.runs.joined.run_pcea import Transition, pcea_tables

WINDOWS = st.none() | st.integers(0, 8)
ROOMS = st.sampled_from((1, 3, 4096))
SHAPES = {
    "chain": rising(3),
    "iteration": rising_iteration(),
    "pair": rising_pair(),
    "star": rising_star(),
}


@given(pceas(ordered=True), streams(), WINDOWS, ROOMS, st.lists(st.integers(0, 9), max_size=3))
def test_every_run_is_found_once_however_the_stream_is_cut(
    pcea: Pcea, events: list[Event], window: int | None, capacity: int, cuts: list[int]
) -> None:
    expected = all_runs(pcea, events, window)
    recognizer = Recognizer(PceaRuns(pcea.tables, window, capacity=capacity))
    bounds = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    found = [run for low, high in pairwise(bounds) for run in recognized(recognizer, events[low:high])]
    assert Counter(found) == Counter(expected)
    assert [end for end, _ in found] == sorted(end for end, _ in found)


@given(
    st.sampled_from(list(SHAPES.values())),
    st.lists(
        st.tuples(st.sampled_from("AABBCD"), st.integers(0, 1), st.none() | st.integers(0, 5)), max_size=60
    ),
    st.integers(1, 12),
    ROOMS,
)
def test_runs_of_long_streams_are_found_while_others_expire(
    pcea: Pcea, letters: list[tuple[str, int, int | None]], window: int, capacity: int
) -> None:
    text = "".join(letter for letter, _, _ in letters)
    keys, values = [key for _, key, _ in letters], [value for _, _, value in letters]
    events = events_of(text, keys=keys, values=values)
    expected = Counter(all_runs(pcea, events, window))
    recognizer = Recognizer(PceaRuns(pcea.tables, window, capacity=capacity))
    found: Counter[tuple[int, Items]] = Counter()
    for roots in recognizer.push(batch_of(events)):
        runs = Counter(enumerated(recognizer, roots))
        assert sum(recognizer.counts(roots)) == runs.total()
        found += runs
    assert found == expected


@given(pceas(ordered=True), streams(), WINDOWS, ROOMS)
def test_picks_agree_with_what_is_enumerated(
    pcea: Pcea, events: list[Event], window: int | None, capacity: int
) -> None:
    all_runs(pcea, events, window)
    recognizer = Recognizer(PceaRuns(pcea.tables, window, capacity=capacity))
    for roots in recognizer.push(batch_of(events)):
        picked = [
            tuple(zip(match.event.tolist(), match.marks.tolist(), strict=True))
            for place, count in enumerate(recognizer.counts(roots))
            for match in (recognizer.match_at(roots, place, index) for index in range(count))
        ]
        assert picked == [items for _, items in enumerated(recognizer, roots)]


@pytest.mark.parametrize("operator", COMPARED)
def test_an_operator_compares_what_waits_with_the_event_at_hand(operator: str) -> None:
    values = [3, 1, 2, 2, LEAST, MOST, None, LEAST + 1, MOST - 1]
    for asked in (*values, 4):
        events = events_of("A" * len(values) + "B", values=[*values, asked])
        found = list(recognized(Recognizer(PceaRuns(rising(2, operator).tables)), events))
        assert sorted(items[0][0] for _, items in found) == [
            event
            for event, value in enumerate(values)
            if value is not None and asked is not None and COMPARED[operator](value, asked)
        ]


def test_a_null_key_matches_nothing_whatever_its_value() -> None:
    events = events_of("ABAB", keys=[None, None, 1, None], values=[1, 2, 1, 2])
    assert list(recognized(Recognizer(PceaRuns(rising(2).tables)), events)) == []


def test_a_run_without_a_value_waits_for_those_who_do_not_ask_for_it() -> None:
    asks_or_not = (
        Transition([], 0, 0, 0),
        Transition([(0, 0, 0, "<", 0, 0)], 1, 1, 1),
        Transition([(0, 0, 0)], 1, 2, 1),
    )
    events = events_of("AAB", values=[None, 1, 2])
    found = recognized(Recognizer(PceaRuns(Pcea(2, asks_or_not, (1,)).tables)), events)
    assert set(found) == {(2, ((0, 0), (2, 2))), (2, ((1, 0), (2, 2))), (2, ((1, 0), (2, 1)))}


def test_an_iteration_has_all_rising_subsequences() -> None:
    events = events_of("AAAAB", values=[2, 1, 2, 3, 0])
    found = {
        tuple(event for event, _ in items[:-1])
        for _, items in recognized(Recognizer(PceaRuns(rising_iteration().tables)), events)
    }
    assert found == {(0,), (1,), (2,), (3,), (0, 3), (1, 2), (1, 3), (2, 3), (1, 2, 3)}


def test_huge_numbers_of_rising_subsequences_are_counted() -> None:
    recognizer = Recognizer(PceaRuns(rising_iteration().tables, capacity=1))
    events = events_of("A" * 80 + "B", values=list(range(81)))
    counts = [count for roots in recognizer.push(batch_of(events)) for count in recognizer.counts(roots)]
    assert counts == [2**80 - 1]


@pytest.mark.parametrize("capacity", [1, 4096])
def test_consuming_forgets_what_waits_with_a_value_too(capacity: int) -> None:
    recognizer = Recognizer(PceaRuns(rising(2).tables, consume=CONSUME_ANY, capacity=capacity))
    found = [items for _, items in recognized(recognizer, events_of("AABBAB", values=[1, 2, 3, 4, 5, 6]))]
    assert sorted(found) == [((0, 0), (2, 1)), ((1, 0), (2, 1)), ((4, 0), (5, 1))]


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ValueError, match="transition 0 compares by =, none of <, <=, >, >=, !="):
        pcea_tables(1, [Transition([(0, 0, 0, "=", 0, 0)], 0, 0, 0)], [0])


def test_an_unknown_range_is_refused() -> None:
    with pytest.raises(ValueError, match="transition 0 compares by <, none of >= <=, > <=, >= <, > <"):
        pcea_tables(1, [Transition([(0, 0, 0, "<", 0, 0, 0)], 0, 0, 0)], [0])


def test_a_batch_with_too_few_values_is_refused() -> None:
    recognizer = Recognizer(PceaRuns(rising_pair().tables))
    batch = batch_of(events_of("AB"))
    with pytest.raises(ValueError, match="the automaton reads 2 value columns, the batch has fewer"):
        list(recognizer.push(batch._replace(values=batch.values[:, :1])))


def adverse_values(length: int) -> dict[str, list[int]]:
    """Orders that would hurt if a tree were not balanced."""
    random = np.random.default_rng(7)
    return {
        "increasing": list(range(length)),
        "decreasing": list(range(length, 0, -1)),
        "equal": [5] * length,
        "from both ends": [event if event % 2 else -event for event in range(length)],
        "random": random.integers(-1_000_000, 1_000_000, length).tolist(),
    }


ORDERS = list(adverse_values(1))


def letters_of(pcea: Pcea, length: int) -> str:
    """Predicates of an automaton, one after the other."""
    letters = sorted({chr(ord("A") + transition.predicate) for transition in pcea.transitions})
    return "".join(letters[event % len(letters)] for event in range(length))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("window", [None, 60])
def test_an_event_makes_logarithm_squared_many_nodes(shape: str, order: str, window: int | None) -> None:
    """In a window of w events a tree has a height of log w to the base 4/3, two spines have 2 log w nodes."""
    pcea, length = SHAPES[shape], 500
    tables = pcea.tables
    recognizer = Recognizer(PceaRuns(tables, window, capacity=1 << 18))
    events = events_of(letters_of(pcea, length), values=adverse_values(length)[order])
    total = 0
    for number, event in enumerate(events):
        before = int(recognizer.runs.nodes.size[0])
        for _ in recognizer.push(batch_of([event])):
            pass
        made = int(recognizer.runs.nodes.size[0]) - before
        waiting = min(number + 2, window or length)
        height, spines = math.log(waiting) / math.log(4 / 3) + 1, 2 * math.log2(number + 2)
        assert made <= (tables.ordered_steps + len(tables.place_key)) * 2 * height * (1 + spines)
        total += made
    assert total <= 3 * tables.ordered_steps * math.log2(window or length) ** 2 * length


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("window", [None, 40])
def test_the_delay_is_linear_in_the_answer(shape: str, order: str, window: int | None) -> None:
    pcea, length = SHAPES[shape], 160
    recognizer = Recognizer(PceaRuns(pcea.tables, window, capacity=8))
    events = events_of(letters_of(pcea, length), values=adverse_values(length)[order])
    for roots in recognizer.push(batch_of(events)):
        found = steps_and_items(recognizer, roots, 200)
        assert all(steps <= 2 * items for steps, items in found)


def endless(name: str, length: int, turn: int) -> list[Event]:
    """The next events of a stream without end."""
    random = np.random.default_rng(turn)
    first = turn * length
    keys = {"new keys": range(first // 4, (first + length) // 4 + 1), "one key": [0] * length}
    return events_of(
        "".join(random.choice(list("ABCD"), length)),
        keys=[keys[name][event // 4] for event in range(length)],
        stamps=range(first, first + length),
        values=random.integers(0, 9, length).tolist(),
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["new keys", "one key"])
def test_compaction_changes_nothing_that_is_found(shape: str, name: str) -> None:
    large, tight = (
        Recognizer(PceaRuns(SHAPES[shape].tables, window=12, capacity=capacity)) for capacity in (1 << 18, 1)
    )
    for turn in range(6):
        events = endless(name, 120, turn)
        expected = Counter(recognized(large, events))
        assert Counter(recognized(tight, events)) == expected
    assert large.runs.nodes.product.size == 1 << 18
    assert tight.runs.products.mark.size < 500


def test_an_event_that_is_tried_again_looks_again() -> None:
    """Room runs out after another node in each turn, so also between the two queries of a C."""
    values = np.random.default_rng(3).integers(0, 30, 160).tolist()
    batch = batch_of(events_of("ABDC" * 40, values=values))

    def counts(recognizer: Recognizer[PceaRuns]) -> list[int]:
        return [count for roots in recognizer.push(batch) for count in recognizer.counts(roots)]

    expected = counts(Recognizer(PceaRuns(rising_star().tables, 40, capacity=1 << 18)))
    for capacity in range(1_800, 1_840):
        recognizer = Recognizer(PceaRuns(rising_star().tables, 40, capacity=capacity))
        assert counts(recognizer) == expected
        assert recognizer.runs.nodes.product.size > capacity


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["new keys", "one key"])
def test_memory_follows_the_window(shape: str, name: str) -> None:
    recognizer = Recognizer(PceaRuns(SHAPES[shape].tables, window=40, capacity=64))
    capacity = []
    for turn in range(40):
        for _ in recognizer.push(batch_of(endless(name, 400, turn))):
            pass
        ordered = recognizer.runs.ordered
        arrays = (
            recognizer.runs.nodes.product,
            recognizer.runs.products.mark,
            ordered.rows,
            ordered.trees.words,
        )
        capacity.append([array.shape[0] for array in arrays])
    assert np.max(capacity[20:], axis=0).max() <= 1.5 * np.max(capacity[:20], axis=0).max()
    assert np.max(capacity, axis=0)[1:].max() <= 40 * 32
