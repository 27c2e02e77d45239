"""The conditions that hold in each row, from the rows of each condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, INT32S, INT64S, kernel, pool
from estero.engine.pairs import in_order

_AT_ONCE: Final = 1 << 15
"""Pairs of a row and a condition that are placed at once, so that they fit a cache."""


@pool
class HeldConditions(NamedTuple):
    """Conditions ``numbers[ends[row] : ends[row + 1]]`` hold in a row; int64[rows + 1], int32[pairs]."""

    ends: NDArray[np.int64]
    numbers: NDArray[np.int32]


def held_conditions(segments: Sequence[NDArray[np.int64]], size: int) -> HeldConditions:
    """The numbers of the conditions that hold in each of `size` rows, ascending.

    Segment i has the distinct rows in which condition i holds, in any order.
    """
    rows, heads, ends = in_order(segments)
    by_row = HeldConditions(np.zeros(size + 1, np.int64), np.empty(rows.size, np.int32))
    height = max(1, min(size, size * _AT_ONCE // max(1, rows.size)))
    _place(rows, heads, ends, np.empty(height, np.int64), height, by_row)
    return by_row


@kernel(INT64S, INT64S, INT64S, INT64S, INT, HeldConditions)
def _place(rows, heads, ends, places, height, by_row):  # type: ignore[no-untyped-def]
    """Fills `by_row`, block by block of `height` rows, and advances the heads of segments to their ends."""
    before = np.int64(0)
    first = np.int64(0)
    while first < by_row.ends.size - 1:
        bound = min(first + height, by_row.ends.size - 1)
        for row in range(height):
            places[row] = 0
        for segment in range(heads.size):
            at = heads[segment]
            while at < ends[segment] and rows[at] < bound:
                places[rows[at] - first] += 1
                at += 1
        for row in range(first, bound):
            number = places[row - first]
            places[row - first] = before
            before += number
            by_row.ends[row + 1] = before
        for segment in range(heads.size):
            at = heads[segment]
            while at < ends[segment] and rows[at] < bound:
                place = places[rows[at] - first]
                by_row.numbers[place] = segment
                places[rows[at] - first] = place + 1
                at += 1
            heads[segment] = at
        first = bound
    return 0
