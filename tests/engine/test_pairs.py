"""Rows that rules want become pairs in order of rows and rules, each once with all of its bits."""

from __future__ import annotations

import numpy as np
import pytest

from estero.engine.pairs import Pairs, pairs_by_row


def test_a_pair_has_the_bits_of_all_segments_of_its_rule() -> None:
    rows = [np.array([4, 0, 2]), np.array([2, 4]), np.array([2])]
    (pairs,) = pairs_by_row(rows, [3, 3, 7], [0, 5, 1], 6)
    assert [column.tolist() for column in pairs] == [[0, 2, 2, 4], [3, 3, 7, 3], [1, 33, 2, 33]]


def test_without_segments_there_are_no_pairs() -> None:
    assert list(pairs_by_row([], [], [], 5)) == []
    assert list(pairs_by_row([np.empty(0, np.int64)], [0], [0], 0)) == []


@pytest.mark.parametrize("at_once", [7, 100, 1 << 17])
@pytest.mark.parametrize("seed", range(5))
def test_random_segments_are_what_a_dict_makes_of_them(seed: int, at_once: int) -> None:
    random = np.random.default_rng(seed)
    size = 200
    wanted: dict[tuple[int, int], int] = {}
    rules = np.sort(random.integers(0, 12, 30)).tolist()
    bits = random.integers(0, 63, 30).tolist()
    rows = [random.permutation(size)[: random.integers(0, size)] for _ in rules]
    for segment, rule, bit in zip(rows, rules, bits, strict=True):
        for row in segment.tolist():
            wanted[row, rule] = wanted.get((row, rule), 0) | 1 << bit
    blocks = list(pairs_by_row(rows, rules, bits, size, at_once))
    assert (len(blocks) > 1) == (at_once < 1000)
    of_rows, of_rules, words = Pairs(*map(np.concatenate, zip(*blocks, strict=True)))
    told = dict(zip(zip(of_rows.tolist(), of_rules.tolist(), strict=True), words.tolist(), strict=True))
    assert list(told) == sorted(wanted)
    assert told == wanted
