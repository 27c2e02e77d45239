"""The conditions that hold in each row, from the values of a column and the rows of other conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT64S, inlined, kernel, pool
from estero.engine.pairs import in_order

_AT_ONCE: Final = 1 << 15
"""Pairs of a row and a condition that are placed at once, so that they fit a cache."""


@pool
class HeldConditions(NamedTuple):
    """Conditions ``numbers[ends[row] : ends[row + 1]]`` hold in a row; int64[rows + 1], int32[pairs]."""

    ends: NDArray[np.int64]
    numbers: NDArray[np.int32]


@pool
class AskedCodes(NamedTuple):
    """A value by row, int32[rows], and the conditions that ask for it: ``firsts[code] : firsts[code + 1]``.

    `numbers` int32 are theirs, and `types` int64 the bits of the types of the events that they ask for.
    Values without a first condition are asked by none.
    """

    codes: NDArray[np.int32]
    firsts: NDArray[np.int64]
    numbers: NDArray[np.int32]
    types: NDArray[np.int64]


_NO_NUMBERS, _NO_PLACES = np.empty(0, np.int32), np.empty(0, np.int64)
NO_CODES: Final = AskedCodes(_NO_NUMBERS, _NO_PLACES, _NO_NUMBERS, _NO_PLACES)


def held_conditions(
    types: NDArray[np.int64],
    asked: AskedCodes,
    segments: Sequence[NDArray[np.int64]],
    numbers: Sequence[int],
) -> HeldConditions:
    """The conditions that hold in each row, in any order; each row has one of `types` int64[rows].

    Segment i has the distinct rows in which condition ``numbers[i]`` holds, in any order.
    """
    rows, heads, ends = in_order(segments)
    by_row = HeldConditions(np.zeros(types.size + 1, np.int64), _NO_NUMBERS)
    size = _count_asked(types, asked, by_row) + rows.size
    by_row = by_row._replace(numbers=np.empty(size, np.int32))
    height = max(1, min(types.size, types.size * _AT_ONCE // max(1, size)))
    _place(types, asked, rows, heads, ends, np.array(numbers, np.int64), np.empty(height, np.int64), by_row)
    return by_row


@inlined
def _asking(asked, row):  # type: ignore[no-untyped-def]
    """The first condition that asks for the value of a row, and the one behind the last."""
    code = np.int64(asked.codes[row])
    if code + 1 >= asked.firsts.size:
        return np.int64(0), np.int64(0)
    return asked.firsts[code], asked.firsts[code + 1]


@kernel(INT64S, AskedCodes, HeldConditions)
def _count_asked(types, asked, by_row):  # type: ignore[no-untyped-def]
    """Fills ``ends[row + 1]`` with how many conditions ask for the value of a row; returns their sum."""
    number = np.int64(0)
    for row in range(asked.codes.size):
        first, last = _asking(asked, row)
        here = np.int64(0)
        for place in range(first, last):
            here += np.int64(asked.types[place] & types[row] != 0)
        by_row.ends[row + 1] = here
        number += here
    return number


@kernel(INT64S, AskedCodes, INT64S, INT64S, INT64S, INT64S, INT64S, HeldConditions)
def _place(types, asked, rows, heads, ends, numbers, places, by_row):  # type: ignore[no-untyped-def]
    """Fills `by_row`, as many rows at once as there are `places`, and advances the heads of segments."""
    before = np.int64(0)
    first = np.int64(0)
    while first < types.size:
        bound = min(first + places.size, types.size)
        for row in range(first, bound):
            places[row - first] = by_row.ends[row + 1]
        for segment in range(heads.size):
            at = heads[segment]
            while at < ends[segment] and rows[at] < bound:
                places[rows[at] - first] += 1
                at += 1
        for row in range(first, bound):
            place = before
            before += places[row - first]
            by_row.ends[row + 1] = before
            if asked.codes.size > 0:
                asking, last = _asking(asked, row)
                while asking < last:
                    if asked.types[asking] & types[row] != 0:
                        by_row.numbers[place] = asked.numbers[asking]
                        place += 1
                    asking += 1
            places[row - first] = place
        for segment in range(heads.size):
            at = heads[segment]
            while at < ends[segment] and rows[at] < bound:
                place = places[rows[at] - first]
                by_row.numbers[place] = numbers[segment]
                places[rows[at] - first] = place + 1
                at += 1
            heads[segment] = at
        first = bound
    return 0
