"""Look-ups of masks for every row of some columns of indices, in one pass (docs/architecture.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import FLAG, FLAGS, INT64S, UINT32S, column, inlined, kernel

_UINT8S = column(np.uint8)


def rows_with_bits(
    indices: Sequence[NDArray[np.integer[Any]]], masks: Sequence[NDArray[np.int64]], *, keep_all: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows [m] with some bit set, ascending, or all rows; and their bits [words, m].

    ========= ================ ======================================================================
    array     shape            meaning
    ========= ================ ======================================================================
    indices   [rows]           one for each column, of integers: each row's place in its masks (not checked)
    masks     [values, words]  one for each column: the bits that a value keeps; columns are combined by AND
    ========= ================ ======================================================================

    Measured with two columns of int32 and one word, of which 5 % pass: 0.9 ns a row (1.5 with signed
    indices, which may count from the end), where NumPy, column by column, takes 4 to 6 for the rows alone.
    """
    rows, words = indices[0].size, masks[0].shape[1]
    chosen = np.empty(rows, np.int64)
    bits = np.empty((words, rows), np.int64)
    if words == 1 and len(indices) <= 2:
        one, other = _unsigned(indices[0]), _unsigned(indices[-1])
        tables = [table[:, 0] for table in (masks[0], masks[-1])]  # a single column is passed twice
        count = _of_two(one, other, *tables, keep_all, chosen, bits[0])
    else:
        places = np.empty((len(indices), rows), np.uint32)
        first = 0
        for row, own, table in zip(places, indices, masks, strict=True):
            np.add(own, first, out=row, casting="unsafe")
            first += table.shape[0]
        count = _of_many(places, np.concatenate(masks), keep_all, chosen, bits)
    return chosen[:count], bits[:, :count]


def marked_rows(marked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rows that are marked, ascending.

    Measured with 8 % of 131,072 rows marked: 0.6 ns a row, 1.7 by `numpy.flatnonzero`.
    """
    chosen = np.empty(marked.size, np.int64)
    return chosen[: _marked(marked, chosen)]


def rows_of_one(
    indices: NDArray[np.integer[Any]], masks: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ascending rows of one column, with masks int64[values], that have some bit, and their bits."""
    chosen, bits = np.empty(indices.size, np.int64), np.empty(indices.size, np.int64)
    if indices.dtype.itemsize == 1:
        number = _of_one_byte(np.ascontiguousarray(indices).view(np.uint8), masks, chosen, bits)
    else:
        number = _of_one(_unsigned(indices), masks, chosen, bits)
    return chosen[:number], bits[:number]


def rows_among(
    indices: NDArray[np.integer[Any]],
    masks: NDArray[np.int64],
    rows: NDArray[np.int64],
    bits: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Those of some rows that keep some of their bits in another column; both arrays are overwritten."""
    if indices.dtype.itemsize == 1:
        number = _of_chosen_bytes(np.ascontiguousarray(indices).view(np.uint8), masks, rows, bits)
    else:
        number = _of_chosen(_unsigned(indices), masks, rows, bits)
    return rows[:number], bits[:number]


def _unsigned(indices: NDArray[np.integer[Any]]) -> NDArray[np.uint32]:
    """The indices in 32 bits, without a copy if they are already."""
    return np.ascontiguousarray(indices, np.int32).view(np.uint32)


@kernel(UINT32S, UINT32S, INT64S, INT64S, FLAG, INT64S, INT64S)
def _of_two(one, other, one_masks, other_masks, keep_all, chosen, bits):  # type: ignore[no-untyped-def]
    """Selects by two columns uint32[rows]; fills chosen int64[rows], bits int64[rows]; returns how many."""
    count = 0
    for row in range(one.size):
        left = one_masks[one[row]] & other_masks[other[row]]
        chosen[count] = row
        bits[count] = left
        count += left != 0 or keep_all
    return count


@kernel(FLAGS, INT64S)
def _marked(marked, chosen):  # type: ignore[no-untyped-def]
    """Fills chosen int64[rows] with the rows of marked bool[rows]; returns how many."""
    number = 0
    for row in range(marked.size):
        chosen[number] = row
        number += marked[row] != 0
    return number


@inlined
def _choose(indices, masks, chosen, bits):  # type: ignore[no-untyped-def]
    """Selects by one column, indices [rows]; fills chosen int64[rows], bits int64[rows]; returns how many."""
    number = 0
    for row in range(indices.size):
        left = masks[indices[row]]
        chosen[number] = row
        bits[number] = left
        number += left != 0
    return number


@kernel(UINT32S, INT64S, INT64S, INT64S)
def _of_one(indices, masks, chosen, bits):  # type: ignore[no-untyped-def]
    """See `_choose`."""
    return _choose(indices, masks, chosen, bits)


@kernel(_UINT8S, INT64S, INT64S, INT64S)
def _of_one_byte(indices, masks, chosen, bits):  # type: ignore[no-untyped-def]
    """See `_choose`."""
    return _choose(indices, masks, chosen, bits)


@inlined
def _choose_among(indices, masks, chosen, bits):  # type: ignore[no-untyped-def]
    """Keeps those of chosen int64[number] that keep some of their bits; returns how many."""
    number = 0
    for place in range(chosen.size):
        row = chosen[place]
        left = bits[place] & masks[indices[row]]
        chosen[number] = row
        bits[number] = left
        number += left != 0
    return number


@kernel(UINT32S, INT64S, INT64S, INT64S)
def _of_chosen(indices, masks, chosen, bits):  # type: ignore[no-untyped-def]
    """See `_choose_among`."""
    return _choose_among(indices, masks, chosen, bits)


@kernel(_UINT8S, INT64S, INT64S, INT64S)
def _of_chosen_bytes(indices, masks, chosen, bits):  # type: ignore[no-untyped-def]
    """See `_choose_among`."""
    return _choose_among(indices, masks, chosen, bits)


@kernel(column(np.uint32, 2), column(np.int64, 2), FLAG, INT64S, column(np.int64, 2))
def _of_many(places, masks, keep_all, chosen, bits):  # type: ignore[no-untyped-def]
    """Selects by places uint32[columns, rows], masks int64[values, words]; fills bits int64[words, rows]."""
    count = 0
    for row in range(places.shape[1]):
        some = keep_all
        for word in range(masks.shape[1]):
            left = masks[places[0, row], word]
            for other in range(1, places.shape[0]):
                left &= masks[places[other, row], word]
            bits[word, count] = left
            some |= left != 0
        chosen[count] = row
        count += some
    return count
