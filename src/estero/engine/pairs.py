"""Pairs of rows and rules as one stream in order of rows, from the rows of each rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import FLAGS, INT, INT32S, INT64S, kernel

_AT_ONCE: Final = 1 << 17
"""Pairs that fit a cache; more are first dealt to blocks of rows."""
_FEW: Final = 32
"""So many rows are dealt by Python sooner than by kernels."""


class Pairs(NamedTuple):
    """Distinct pairs of a row and a rule, ascending by row and then by rule; arrays [pairs].

    `words` has a bit for each condition of the rule that holds in the row.
    """

    rows: NDArray[np.int64]
    rules: NDArray[np.int64]
    words: NDArray[np.int64]


def pairs_by_row(
    rows: Sequence[NDArray[np.int64]],
    rules: Sequence[int],
    bits: Sequence[int],
    size: int,
    at_once: int = _AT_ONCE,
) -> Iterator[Pairs]:
    """Pairs of a row and a rule in order, one block of rows after the other, about `at_once` at a time.

    Segment i has the distinct `rows` of one condition in any order: they are of rule ``rules[i]`` and set bit
    ``bits[i]``. Rules ascend. Rows are below `size`.

    Of long segments only the rows of one block are read at a time, so that the output fits a cache.
    """
    number = sum(segment.size for segment in rows)
    if number <= min(_FEW, at_once):
        if number:
            yield _few_pairs(rows, rules, bits)
        return
    together, heads, ends = in_order(rows)
    of_rules, of_bits = np.array(rules, np.int64), np.array(bits, np.int64)
    height = max(1, min(size, size * at_once // max(1, together.size)))
    places, last = np.empty(height, np.int64), np.empty(height, np.int32)
    for first in range(0, size, height):
        number = _count_pairs(together, heads, ends, of_rules, first, places, last)
        if number:
            pairs = Pairs(*(np.empty(number, np.int64) for _ in Pairs._fields))
            _place_pairs(together, heads, ends, of_rules, of_bits, first, places, last, *pairs)
            yield pairs


def in_order(
    segments: Sequence[NDArray[np.int64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All rows in one array, those of each segment ascending; where segments begin, and where they end."""
    lengths = np.array([segment.size for segment in segments], np.int64)
    rows = np.concatenate([np.empty(0, np.int64), *segments])
    heads = np.cumsum(lengths) - lengths
    ends = heads + lengths
    for fallen in _falling(rows, heads, ends):
        rows[heads[fallen] : ends[fallen]].sort()
    return rows, heads, ends


def _few_pairs(rows: Sequence[NDArray[np.int64]], rules: Sequence[int], bits: Sequence[int]) -> Pairs:
    """All pairs of a few rows, for which the arrays of kernels take longer than all else."""
    words: dict[tuple[int, int], int] = {}
    for segment, rule, bit in zip(rows, rules, bits, strict=True):
        for row in segment.tolist():
            words[row, rule] = words.get((row, rule), 0) | 1 << bit
    pairs = sorted(words)
    of_pairs = np.array(pairs, np.int64).T
    return Pairs(of_pairs[0].copy(), of_pairs[1].copy(), np.array([words[pair] for pair in pairs], np.int64))


def _falling(rows: NDArray[np.int64], heads: NDArray[np.int64], ends: NDArray[np.int64]) -> list[int]:
    """The segments whose rows are not in order."""
    fallen = np.empty(heads.size, np.bool_)
    _mark_falling(rows, heads, ends, fallen)
    return np.flatnonzero(fallen).tolist()


@kernel(INT64S, INT64S, INT64S, FLAGS)
def _mark_falling(rows, heads, ends, fallen):  # type: ignore[no-untyped-def]
    """Marks the segments that have a row after a greater one; fallen bool[segments]."""
    for segment in range(heads.size):
        falls = False
        for at in range(heads[segment] + 1, ends[segment]):
            falls |= rows[at] < rows[at - 1]
        fallen[segment] = falls
    return 0


@kernel(INT64S, INT64S, INT64S, INT64S, INT, INT64S, INT32S)
def _count_pairs(rows, heads, ends, rules, first, places, last):  # type: ignore[no-untyped-def]
    """Fills places int64[height] with the first pair of each row from `first` on; returns how many there are.

    Segments are read from their `heads` to the end of the block.
    """
    for row in range(places.size):
        places[row] = 0
        last[row] = -1
    bound = first + places.size
    for segment in range(heads.size):
        rule = rules[segment]
        at = heads[segment]
        while at < ends[segment] and rows[at] < bound:
            row = rows[at] - first
            at += 1
            if last[row] != rule:
                last[row] = rule
                places[row] += 1
    before = 0
    for row in range(places.size):
        here = places[row]
        places[row] = before
        last[row] = -1
        before += here
    return before


@kernel(INT64S, INT64S, INT64S, INT64S, INT64S, INT, INT64S, INT32S, INT64S, INT64S, INT64S)
def _place_pairs(rows, heads, ends, rules, bits, first, places, last, of_rows, of_rules, words):  # type: ignore[no-untyped-def]
    """Fills the pairs of a block, and advances its `places` and heads; last int32[height] is -1 on entry."""
    bound = first + places.size
    for segment in range(heads.size):
        rule = rules[segment]
        bit = np.int64(1) << bits[segment]
        at = heads[segment]
        while at < ends[segment] and rows[at] < bound:
            row = rows[at]
            at += 1
            place = places[row - first]
            if last[row - first] == rule:
                words[place - 1] |= bit
            else:
                last[row - first] = rule
                of_rows[place] = row
                of_rules[place] = rule
                words[place] = bit
                places[row - first] = place + 1
        heads[segment] = at
    return 0
