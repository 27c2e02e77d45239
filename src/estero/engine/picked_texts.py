"""The texts of selected rows, copied eight bytes at a time (docs/architecture.md)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT32S, INT64S, column, inlined, kernel
from estero.engine.texts import eight_bytes, few_bytes

_UINT8S = column(np.uint8)
_WORD: Final = 8
_MOST: Final = int(np.iinfo(np.int32).max)


def picked_texts(
    ends: NDArray[np.int32], letters: NDArray[np.uint8], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.uint8]] | None:
    """The texts of these rows in the same form; None if they have 2 GiB of letters or more.

    Text k is ``letters[ends[k] : ends[k + 1]]``, which is not checked. The returned letters are followed by
    eight more bytes. If all texts are the same, as types often are under one label, this is noticed by
    looking at each one once.
    """
    if rows.size and _alike(ends, letters, rows):
        start, stop = ends[rows[0]].item(), ends[rows[0] + 1].item()
        length = stop - start
        if length * rows.size <= _MOST:
            text = letters[start:stop].tobytes()
            made = np.arange(0, length * rows.size + 1, length, dtype=np.int32)
            return made, np.frombuffer(text * rows.size + bytes(_WORD), np.uint8)
    made = np.empty(rows.size + 1, np.int32)
    total = _measure(ends, rows, made)
    if total > _MOST:
        return None
    picked = np.empty(total + _WORD, np.uint8)
    _copy(ends, letters, rows, made, picked)
    return made, picked


@kernel(INT32S, _UINT8S, INT64S)
def _alike(ends, letters, rows):  # type: ignore[no-untyped-def]
    """Whether all these texts equal that of the first row, which has one letter to eight; 1 or 0."""
    start = np.int64(ends[rows[0]])
    length = np.int64(ends[rows[0] + 1]) - start
    if length == 0 or length > _WORD:
        return 0
    last = letters.size - _WORD
    rest = np.uint64(8 * (_WORD - length))
    first = few_bytes(letters, start, length)
    for place in range(rows.size):
        row = rows[place]
        start = np.int64(ends[row])
        if np.int64(ends[row + 1]) - start != length:
            return 0
        word = eight_bytes(letters, start) if start <= last else few_bytes(letters, start, length)
        if word << rest != first << rest:
            return 0
    return 1


@kernel(INT32S, INT64S, INT32S)
def _measure(ends, rows, made):  # type: ignore[no-untyped-def]
    """Fills made int32[rows + 1] with the ends of the texts of these rows; returns their total length."""
    total = np.int64(0)
    made[0] = 0
    for place in range(rows.size):
        row = rows[place]
        total += np.int64(ends[row + 1]) - np.int64(ends[row])
        made[place + 1] = np.int32(total & _MOST)
    return total


@inlined
def put_eight(letters, start, word):  # type: ignore[no-untyped-def]
    """Writes a number as the eight bytes from a place on, in one store."""
    for place in range(_WORD):
        letters[start + place] = np.uint8((word >> np.uint64(8 * place)) & np.uint64(255))


@kernel(INT32S, _UINT8S, INT64S, INT32S, _UINT8S)
def _copy(ends, letters, rows, made, picked):  # type: ignore[no-untyped-def]
    """Fills `picked`, eight bytes longer than the texts: the next text overwrites what is copied too far."""
    last = letters.size - _WORD
    for place in range(rows.size):
        row = rows[place]
        start = np.int64(ends[row])
        stop = np.int64(ends[row + 1])
        to = np.int64(made[place])
        while start < stop:
            word = eight_bytes(letters, start) if start <= last else few_bytes(letters, start, stop - start)
            put_eight(picked, to, word)
            start += _WORD
            to += _WORD
