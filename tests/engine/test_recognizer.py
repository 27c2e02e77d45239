"""The recognizer alone: what it finds, what it counts, and how much memory it takes for that."""

from __future__ import annotations

import random
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.streams import batch_of, recognizer_of, supports
from estero.automata.compile.compile_pattern import compile_pattern
from estero.automata.determinize import LazyAutomaton
from estero.engine.store.arena import NONE, UNION, Arena
from estero.errors import LimitExceeded
from estero.language.syntax.parser import parse_pattern

PATTERNS = ("A", "A ; B", "A ; B ; C", "A ; B+ ; C", "(A OR B)+ ; C", "(A ; B)+", "A : B+ ; (C OR A)")


def test_complex_events_come_by_end_and_newest_start_first() -> None:
    recognizer, bits = recognizer_of("A ; B")
    assert supports(recognizer, batch_of("AABAB", bits)) == [(1, 2), (0, 2), (3, 4), (1, 4), (0, 4)]


def test_a_window_reaches_back_to_its_edge_and_no_further() -> None:
    recognizer, bits = recognizer_of("A ; B", window=2)
    assert supports(recognizer, batch_of("AxxBxAxB", bits)) == [(5, 7)]


def test_a_limit_holds_for_each_end() -> None:
    recognizer, bits = recognizer_of("A ; B+")
    found = supports(recognizer, batch_of("AABBB", bits), limit=2)
    assert [support[-1] for support in found] == [2, 2, 3, 3, 4, 4]


def test_keys_are_kept_apart() -> None:
    recognizer, bits = recognizer_of("A ; B", keyed=True)
    assert supports(recognizer, batch_of("AABB", bits, keys=[7, 8, 8, 7])) == [(1, 2), (0, 3)]


def test_unseen_events_break_contiguity() -> None:
    recognizer, bits = recognizer_of("A : B", gaps=True)
    batch = batch_of("ABAB", bits)._replace(ordinal=np.array([0, 1, 5, 7]))
    assert supports(recognizer, batch) == [(0, 1)]


@pytest.mark.parametrize("events", [65, 1_000])
def test_counts_are_exact_beyond_64_bits(events: int) -> None:
    recognizer, bits = recognizer_of("A+")
    for roots in recognizer.push(batch_of("A" * events, bits)):
        _, counts = recognizer.counts_by_end(roots)
        assert counts == [2**place for place in range(events)]


@pytest.mark.long
def test_counts_in_a_window_are_exact_beyond_64_bits() -> None:
    recognizer, bits = recognizer_of("A+", window=99, counting=True)
    for roots in recognizer.push(batch_of("A" * 300, bits)):
        _, counts = recognizer.counts_by_end(roots)
        assert counts == [2 ** min(place, 99) for place in range(300)]


def test_the_first_of_a_huge_set_come_without_the_rest() -> None:
    recognizer, bits = recognizer_of("A+ ; B")
    roots = next(recognizer.push(batch_of("A" * 2_000 + "B", bits)))
    assert recognizer.counts(roots) == [2**2000 - 1]
    first = next(iter(recognizer.matches(roots)))
    assert first.event[first.offsets[0] : first.offsets[1]].tolist() == [1999, 2000]
    last = recognizer.match_at(roots, 0, 2**2000 - 2)
    assert last.start.tolist() == [0]
    assert last.event[-1] == 2000


def test_any_complex_event_can_be_picked_by_its_index() -> None:
    recognizer, bits = recognizer_of("(A ; B)+", window=6)
    for roots in recognizer.push(batch_of("ABABBAB", bits)):
        enumerated = [
            matches.event[a:b].tolist()
            for matches in recognizer.matches(roots)
            for a, b in zip(matches.offsets[:-1], matches.offsets[1:], strict=True)
        ]
        picked = [
            recognizer.match_at(roots, place, index).event.tolist()
            for place, count in enumerate(recognizer.counts(roots))
            for index in range(count)
        ]
        assert picked == enumerated


def output_depths(arena: Arena) -> list[int]:
    depths: list[int] = []
    for node in range(int(arena.size[0])):
        depths.append(0 if arena.kind[node] != UNION else depths[arena.left[node]] + 1)
    return depths


@given(st.sampled_from(PATTERNS), st.text("ABC", max_size=30), st.integers(1, 40))
def test_the_compact_set_is_time_ordered_and_3_bounded(pattern: str, letters: str, window: int) -> None:
    recognizer, bits = recognizer_of(pattern, window=window)
    for _ in recognizer.push(batch_of(letters, bits)):
        pass
    arena = recognizer.runs.arena
    used = int(arena.size[0])
    unions = np.flatnonzero(arena.kind[:used] == UNION)
    assert (arena.start[arena.left[unions]] >= arena.start[arena.right[unions]]).all()
    assert (arena.start[unions] == arena.start[arena.left[unions]]).all()
    linked = [node for node in range(used) if arena.left[node] != NONE]
    assert all(arena.left[node] < node for node in linked)
    assert max(output_depths(arena), default=0) <= 3


@pytest.mark.parametrize("pattern", PATTERNS)
def test_an_event_makes_few_nodes_whatever_the_window(pattern: str) -> None:
    letters = "".join(random.Random(5).choices("ABC", k=3_000))
    made = []
    for window in (100, 1_000, 3_000):
        recognizer, bits = recognizer_of(pattern, window=window)
        for _ in recognizer.push(batch_of(letters, bits)):
            pass
        made.append(int(recognizer.runs.arena.size[0]))
    assert max(made) <= 6 * len(letters)
    assert max(made) <= 1.2 * min(made) + 100


def test_memory_follows_the_window() -> None:
    recognizer, bits = recognizer_of("A ; B ; C", window=50)
    letters = "".join(random.Random(7).choices("ABC", k=2_000))
    capacity = recognizer.runs.arena.kind.size
    for turn in range(40):
        for _ in recognizer.push(batch_of(letters, bits, first=turn * len(letters))):
            pass
    assert recognizer.runs.arena.kind.size == capacity


@pytest.mark.long
def test_keys_that_do_not_come_back_are_forgotten() -> None:
    recognizer, bits = recognizer_of("A ; B ; C", window=100, keyed=True)
    for turn in range(30):
        first = turn * 3_000
        for _ in recognizer.push(
            batch_of("A" * 3_000, bits, first=first, keys=list(range(first, first + 3_000)))
        ):
            pass
    assert recognizer.runs._keys.words.shape[0] < 70_000


def test_breaking_off_an_enumeration_leaves_the_recognizer_usable() -> None:
    recognizer, bits = recognizer_of("A+ ; B")
    for roots in recognizer.push(batch_of("A" * 50 + "B", bits)):
        list(islice(recognizer.matches(roots), 1))
    assert supports(recognizer, batch_of("", bits)) == []
    assert len(supports(recognizer, batch_of("B", bits, first=51), limit=3)) == 3


def test_too_many_states_end_in_a_clear_error() -> None:
    automaton = LazyAutomaton(compile_pattern(parse_pattern("A ; B ; C")).automaton, state_cap=2)
    automaton.row(0, automaton.class_of(1))
    with pytest.raises(LimitExceeded) as caught:
        automaton.row(1, automaton.class_of(2))
    assert str(caught.value) == (
        "the pattern needs more than 2 automaton states; what grows is A: "
        "bound its iterations or make its predicates exclude one another"
    )
