"""Rows that each of many rules wants → one stream of pairs in order of rows (docs/architecture.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT32S, INT64S, kernel


def pairs_by_row(
    rows: Sequence[NDArray[np.int64]], rules: Sequence[int], bits: Sequence[int], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of a row and a rule, ascending by row and at one row by rule, each once, with its bits.

    Segment i has the `rows` of one condition, in any order and each once: they are of rule ``rules[i]`` and
    set bit ``bits[i]``. Rules ascend. Rows are below `size`. All results are [pairs].

    It takes two passes over the segments, 4 to 6 ns a pair where the places fit the cache.
    """
    lengths = np.array([segment.size for segment in rows], np.int64)
    together = np.concatenate([np.empty(0, np.int64), *rows])
    places = np.empty(size + 1, np.int64)
    last = np.full(size, -1, np.int32)
    of_rules, of_bits = np.array(rules, np.int64), np.array(bits, np.int64)
    number = _count_pairs(together, lengths, of_rules, places, last)
    last.fill(-1)
    result = np.empty(number, np.int64), np.empty(number, np.int64), np.empty(number, np.int64)
    _place_pairs(together, lengths, of_rules, of_bits, places, last, *result)
    return result


@kernel(INT64S, INT64S, INT64S, INT64S, INT32S)
def _count_pairs(rows, lengths, rules, places, last):  # type: ignore[no-untyped-def]
    """Fills places int64[size + 1] with where pairs of rows begin; last int32[size] is -1. Their number."""
    for row in range(places.size):
        places[row] = 0
    at = 0
    for segment in range(lengths.size):
        rule = rules[segment]
        for _ in range(lengths[segment]):
            row = rows[at]
            at += 1
            if last[row] != rule:
                last[row] = rule
                places[row] += 1
    before = 0
    for row in range(places.size):
        here = places[row]
        places[row] = before
        before += here
    return before


@kernel(INT64S, INT64S, INT64S, INT64S, INT64S, INT32S, INT64S, INT64S, INT64S)
def _place_pairs(rows, lengths, rules, bits, places, last, of_rows, of_rules, of_bits):  # type: ignore[no-untyped-def]
    """Fills the pairs, and moves `places` behind those of their rows; last int32[size] is -1."""
    at = 0
    for segment in range(lengths.size):
        rule = rules[segment]
        bit = np.int64(1) << bits[segment]
        for _ in range(lengths[segment]):
            row = rows[at]
            at += 1
            place = places[row]
            if last[row] == rule:
                of_bits[place - 1] |= bit
            else:
                last[row] = rule
                of_rows[place] = row
                of_rules[place] = rule
                of_bits[place] = bit
                places[row] = place + 1
    return 0
