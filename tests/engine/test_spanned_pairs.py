"""Pairs of events and rules stay where a run of the rule's automaton has the event, inside the window."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from estero.engine.held_conditions import NO_CODES, AskedCodes, HeldConditions, held_conditions
from estero.engine.spanned_pairs import NO_STEPS, OUTSIDE, Asking, SpannedPairs, Steps

A, B, C = 1, 2, 4
ORDERED = Steps.of([(1, OUTSIDE, C, 0), (0, 1, B, 0), (OUTSIDE, 0, A, 0)], 2)
"""A ; B ; C, whose bits are 0, 1 and 2."""
EITHER = Steps.of([(0, OUTSIDE, C, 0), (0, OUTSIDE, A, B), (OUTSIDE, 0, A, 0)], 1)
"""A ; (C OR A without B)."""


def held_in(bits: NDArray[np.bool_]) -> HeldConditions:
    """The conditions of a table [rows, conditions]."""
    rows, conditions = bits.shape
    segments = [np.flatnonzero(bits[:, number])[::-1] for number in range(conditions)]
    return held_conditions(np.ones(rows, np.int64), NO_CODES, segments, range(conditions))


def words_of(bits: NDArray[np.bool_], rule: list[int]) -> list[int]:
    """The word of each row for a rule with these conditions, bit by bit."""
    return [sum(int(row[condition]) << bit for bit, condition in enumerate(rule)) for row in bits]


def spanned(steps: Steps, words: list[int], stamps: list[int], window: int) -> set[int]:
    """The rows of all runs, tried one by one."""

    def takes(step: int, word: int) -> bool:
        present, absent = int(steps.present[step]), int(steps.absent[step])
        return word & present == present and not word & absent

    rows: set[int] = set()
    for length in (2, 3):
        for chosen in combinations(range(len(words)), length):
            states = {OUTSIDE}
            for place, row in enumerate(chosen):
                states = {
                    int(steps.target[step])
                    for step in range(steps.source.size)
                    if int(steps.source[step]) in states
                    and takes(step, words[row])
                    and (int(steps.target[step]) == OUTSIDE) == (place == length - 1)
                }
            if states and stamps[chosen[-1]] - stamps[chosen[0]] <= window:
                rows.update(chosen)
    return rows


@pytest.mark.parametrize("steps", [ORDERED, EITHER], ids=["in order", "either"])
@pytest.mark.parametrize("several", [False, True], ids=["one condition", "several"])
@pytest.mark.parametrize("seed", range(6))
def test_the_events_of_runs_stay(steps: Steps, several: bool, seed: int) -> None:
    """And no others, if one condition holds in a row, and it is far enough from the end."""
    random = np.random.default_rng(seed)
    chosen = random.integers(0, 9, (20, 1)) == np.arange(6)
    bits = random.random((20, 6)) < random.choice([0.1, 0.3]) if several else chosen
    stamps = np.cumsum(random.integers(0, 3, 20)) + random.integers(-9, 9)
    rules = [random.permutation(6)[:3].tolist() for _ in range(4)]
    window = int(random.integers(0, 12))
    asking = Asking.of(
        (condition, rule, bit) for rule, own in enumerate(rules) for bit, condition in enumerate(own)
    )
    kept = SpannedPairs(asking, 4, steps, window)
    found = {
        (row, rule): word
        for pairs in kept.of(held_in(bits), stamps)
        for row, rule, word in zip(*(column.tolist() for column in pairs), strict=True)
    }
    assert list(found) == sorted(found, key=lambda pair: pair[0])
    wanted = {
        (row, rule): words[row]
        for rule, own in enumerate(rules)
        for words in [words_of(bits, own)]
        for row in spanned(steps, words, stamps.tolist(), window)
    }
    assert found.items() >= wanted.items()
    if not several:
        assert {row for row, _ in found.keys() - wanted} <= set(np.flatnonzero(stamps >= stamps[-1] - window))


@pytest.mark.parametrize("at_once", [1, 30])
@pytest.mark.parametrize("seed", range(6))
def test_in_batches_and_few_pairs_at_once_all_of_them_stay_and_more(seed: int, at_once: int) -> None:
    random = np.random.default_rng(seed)
    bits = random.random((40, 3)) < 0.2
    stamps = np.cumsum(random.integers(0, 3, 40))
    kept = SpannedPairs(Asking.of([(0, 0, 0), (1, 0, 1), (2, 0, 2)]), 1, ORDERED, 9, at_once)
    found: set[int] = set()
    for first in range(0, 40, 8):
        here = slice(first, first + 8)
        for pairs in kept.of(held_in(bits[here]), stamps[here]):
            found.update((pairs.rows + first).tolist())
    words = words_of(bits, [0, 1, 2])
    assert spanned(ORDERED, words, stamps.tolist(), 9) <= found <= {row for row in range(40) if words[row]}


@pytest.mark.parametrize(
    ("steps", "stamps", "window"),
    [
        (NO_STEPS, [0, 1, 2], 0),
        (ORDERED, [0, 9, 5], 1),
        (ORDERED, [-(2**62), 0, 2**62], 1),
        (ORDERED, [0, 1, 2], 2**63),
    ],
    ids=["no steps", "out of order", "far apart", "long window"],
)
def test_all_stay_where_nothing_is_known(steps: Steps, stamps: list[int], window: int) -> None:
    bits = np.array([[False, True], [True, True], [False, False]])
    kept = SpannedPairs(Asking.of([(0, 1, 0), (1, 0, 2), (1, 1, 2)]), 2, steps, window)
    (pairs,) = kept.of(held_in(bits), np.array(stamps))
    found = zip(*(column.tolist() for column in pairs), strict=True)
    assert sorted(found) == [(0, 0, 4), (0, 1, 4), (1, 0, 4), (1, 1, 5)]


def test_once_order_is_lost_all_stay() -> None:
    kept = SpannedPairs(Asking.of([(0, 0, 2)]), 1, ORDERED, 1)
    held = held_in(np.array([[True]]))
    assert [len(list(kept.of(held, np.array([stamp])))) for stamp in (5, 6, 4, 9)] == [0, 0, 1, 1]


def test_values_say_which_conditions_hold_beside_rows() -> None:
    asked = AskedCodes(
        np.array([0, 1, 2, 1, 0], np.int32),
        np.array([0, 1, 3]),
        np.array([4, 1, 3], np.int32),
        np.array([1, 1, 2]),
    )
    held = held_conditions(np.array([1, 1, 1, 2, 2]), asked, [np.array([3, 1])], [9])
    rows = np.split(held.numbers, held.ends[1:-1])
    assert [row.tolist() for row in rows] == [[4], [1, 9], [], [3, 9], []]
