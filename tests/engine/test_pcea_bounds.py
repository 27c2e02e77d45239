"""Parallelised automata on hard streams: nodes of an event, steps of an answer, memory, huge answers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from math import prod

import numpy as np
import pytest

from engine.pcea_runs import (
    Event,
    Pcea,
    batch_of,
    by_key_then_all,
    chain,
    enumerated,
    events_of,
    iteration,
    nested,
    recognized,
    star,
)
from estero.engine.cursor import FULL
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.pcea_runs import PceaRuns
from estero.engine.runs.joined.run_pcea import Transition
from estero.engine.walk.matches import new_matches
from estero.engine.walk.roots import Roots


def crossing(atoms: int) -> Pcea:
    """One event of each predicate 0 … atoms - 1 with any key, in any order, and then the last predicate."""
    leaves = [Transition([], k, k, k) for k in range(atoms)]
    gathers = Transition([(k, 1, 1) for k in range(atoms)], atoms, atoms, atoms)
    return Pcea(atoms + 1, (*leaves, gathers), (atoms,))


def adverse_streams(length: int) -> dict[str, tuple[Pcea, list[Event]]]:
    """Streams that would hurt if a bound did not hold, each with an automaton."""
    third = length // 3
    falling = [*range(third), *range(third - 1, -1, -1), *([0] * third)]
    hot = [0 if place % 4 else place for place in range(3 * third)]
    return {
        "all keys equal": (chain(3), events_of("ABC" * third)),
        "all keys distinct": (chain(3), events_of("ABC" * third, keys=list(range(3 * third)))),
        "falling starts": (
            by_key_then_all(),
            events_of("A" * third + "B" * third + "C" * third, keys=falling),
        ),
        "a hot key": (star(3), events_of("ABC" * third, keys=hot)),
        "everything in one heap": (iteration(), events_of("A" * length)),
    }


STREAMS = list(adverse_streams(3))
SHAPES = ["chain", "star", "falling", "nested"]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("window", [None, 30, 400])
def test_an_event_makes_logarithmically_many_nodes_for_each_transition(name: str, window: int | None) -> None:
    pcea, events = adverse_streams(900)[name]
    tables = pcea.tables
    places = int(np.diff(tables.first_place).max())
    recognizer = Recognizer(PceaRuns(tables, window, capacity=1 << 16))
    for number, event in enumerate(events):
        made = int(recognizer.runs.products.size[0]), int(recognizer.runs.nodes.size[0])
        for _ in recognizer.push(batch_of([event])):
            pass
        products = int(recognizer.runs.products.size[0]) - made[0]
        nodes = int(recognizer.runs.nodes.size[0]) - made[1]
        assert 0 <= products <= len(pcea.transitions)
        assert 0 <= nodes <= products * places * (2 + (number + 1).bit_length())


def test_newer_starts_make_one_node_each() -> None:
    recognizer = Recognizer(PceaRuns(chain(2).tables, capacity=1 << 12))
    for _ in recognizer.push(batch_of(events_of("A" * 1_000))):
        pass
    assert recognizer.runs.nodes.size[0] == 1_000


def steps_and_items(recognizer: Recognizer[PceaRuns], roots: Roots, most: int) -> list[tuple[int, int]]:
    """The steps taken before each of the first complex events, and its items."""
    found: list[tuple[int, int]] = []
    enumeration, code = recognizer.matches(roots), FULL
    while code == FULL and len(found) < most:
        before, sizes = enumeration.steps, np.zeros(2, np.int64)
        code = enumeration.fill(new_matches(1, 2_000), sizes)
        if sizes[0]:
            found.append((enumeration.steps - before, int(sizes[1])))
    return found


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("window", [None, 10, 200])
def test_the_delay_is_linear_in_the_answer_whatever_the_window(name: str, window: int | None) -> None:
    pcea, events = adverse_streams(240)[name]
    recognizer = Recognizer(PceaRuns(pcea.tables, window, capacity=8))
    for roots in recognizer.push(batch_of(events)):
        found = steps_and_items(recognizer, roots, 300)
        assert all(steps <= 2 * items for steps, items in found)


@pytest.mark.parametrize("capacity", [1, 4096])
def test_2_to_the_80_runs_of_an_iteration_are_counted_and_started(capacity: int) -> None:
    recognizer = Recognizer(PceaRuns(iteration().tables, capacity=capacity))
    counts: dict[int, int] = {}
    for roots in recognizer.push(batch_of(events_of("A" * 81))):
        ends, numbers = recognizer.counts_by_end(roots)
        counts.update(zip(ends.tolist(), numbers, strict=True))
        last = Roots(*(column[roots.event == 80] for column in roots))
        found = [items for _, items in islice(enumerated(recognizer, last), 1_000)]
    assert counts == {end: 2**end for end in range(81)}
    assert len(set(found)) == 1_000
    assert recognizer.counts(last) == [1, 2**80 - 1]
    assert recognizer.match_at(last, 1, 2**80 - 2).event.tolist() == [0, 80]


def test_2_to_the_80_answers_of_a_cross_product_are_counted_and_started() -> None:
    each = 1 << 10
    letters = "".join(letter * each for letter in "ABCDEFGH")
    recognizer = Recognizer(PceaRuns(crossing(8).tables))
    for roots in recognizer.push(batch_of(events_of(letters + "I"))):
        assert recognizer.counts(roots) == [2**80]
        assert recognizer.counts(roots, enough=10) == [10]
        found = [items for _, items in islice(enumerated(recognizer, roots), 1_000)]
        assert len(set(found)) == 1_000
        assert all([mark for _, mark in items] == list(range(9)) for items in found)
        assert recognizer.match_at(roots, 0, 999).event.tolist() == [event for event, _ in found[-1]]
        last = recognizer.match_at(roots, 0, 2**80 - 1)
        assert last.event.tolist() == [*range(0, 8 * each, each), 8 * each]


@pytest.mark.parametrize("window", [3, 60, 150, 700])
@pytest.mark.parametrize("atoms", [3, 5])
def test_lists_of_any_length_are_counted_up_to_the_edge_of_the_window(atoms: int, window: int) -> None:
    letters = "".join(random.Random(1).choices("ABCDE"[:atoms], k=900))
    recognizer = Recognizer(PceaRuns(star(atoms).tables, window, capacity=64))
    found: dict[int, int] = {}
    for roots in recognizer.push(batch_of(events_of(letters))):
        ends, numbers = recognizer.counts_by_end(roots)
        found.update(zip(ends.tolist(), numbers, strict=True))
    for end, letter in enumerate(letters):
        inside = Counter(letters[max(0, end - window) : end])
        expected = prod(inside[other] for other in "ABCDE"[:atoms] if other != letter)
        assert found.get(end, 0) == expected


def test_large_counts_inside_a_window_are_exact() -> None:
    each = 300
    letters = "ABCDEFGHIJ" * each + "K" * 4
    window = 10 * each // 2
    recognizer = Recognizer(PceaRuns(crossing(10).tables, window=window))
    found = []
    for roots in recognizer.push(batch_of(events_of(letters))):
        found += recognizer.counts(roots)
    expected = []
    for end in range(10 * each, 10 * each + 4):
        inside = letters[end - window : 10 * each]
        expected.append(int(np.prod([inside.count(letter) for letter in "ABCDEFGHIJ"], dtype=object)))
    assert min(expected) > 2**64
    assert found == expected


def test_when_everything_has_expired_nothing_is_found_and_little_is_kept() -> None:
    events = events_of(
        "A" * 2_000 + "B" * 2_000 + "C" * 2_000, stamps=[0] * 2_000 + [1] * 2_000 + [9] * 2_000
    )
    recognizer = Recognizer(PceaRuns(chain(3).tables, window=5, capacity=64))
    assert list(recognized(recognizer, events)) == []
    assert recognizer.oldest == 4_000
    assert recognizer.runs.products.size[0] <= 4_000


def endless(name: str, length: int, turn: int) -> Sequence[Event]:
    """The next events of a stream without end."""
    rng = np.random.default_rng(turn)
    letters = "".join(rng.choice(list("ABC"), length))
    first = turn * length
    keys = {
        "new keys": range(first, first + length),
        "one key": [0] * length,
        "many keys": rng.integers(0, 50, length).tolist(),
    }[name]
    return events_of(letters, keys=list(keys), stamps=range(first, first + length))


@pytest.mark.parametrize("pcea", [chain(3), star(3), by_key_then_all(), nested()], ids=SHAPES)
@pytest.mark.parametrize("name", ["new keys", "one key", "many keys"])
def test_compaction_changes_nothing_that_is_found(pcea: Pcea, name: str) -> None:
    window = 9 if name == "one key" else 15  # each event completes up to window**3 complex events there
    large, tight = (
        Recognizer(PceaRuns(pcea.tables, window=window, capacity=capacity)) for capacity in (1 << 18, 1)
    )
    for turn in range(6):
        events = endless(name, 150, turn)
        expected = Counter(recognized(large, events))
        assert Counter(recognized(tight, events)) == expected
    assert large.runs.nodes.product.size == 1 << 18
    assert tight.runs.nodes.product.size < 1_000


@pytest.mark.parametrize("pcea", [chain(3), star(3), by_key_then_all()], ids=SHAPES[:3])
@pytest.mark.parametrize("name", ["new keys", "one key", "many keys"])
def test_memory_follows_the_window(pcea: Pcea, name: str) -> None:
    recognizer = Recognizer(PceaRuns(pcea.tables, window=40, capacity=64))
    capacity = []
    for turn in range(30):
        for _ in recognizer.push(batch_of(endless(name, 500, turn))):
            pass
        arrays = recognizer.runs.products.mark, recognizer.runs.nodes.product, recognizer.runs.index.words
        capacity.append([array.shape[0] for array in arrays])
    assert np.max(capacity, axis=0).max() <= 40 * 16
    assert np.max(capacity[15:], axis=0).max() <= 1.5 * np.max(capacity[:15], axis=0).max()
