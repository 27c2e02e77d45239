"""Dense numbers for keys and bit words: open addressing over flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import FLAG, INT, INT32S, Grid, column, kernel, pool
from estero.engine.store.schema import counters, data, new

EMPTY = -1
MOST_AHEAD = 1 << 13
"""The most further items for which capacity is added at once, so that it is added rarely."""


@pool
class KeyTable(NamedTuple):
    """Numbers of distinct rows of words.

    slot int32[power of two] holds a number or EMPTY; words uint64[capacity, width] holds row after row;
    size[0] counts them.
    """

    slot: NDArray[np.int32] = data(EMPTY, length="slots")
    words: Grid[np.uint64] = data(axes=("width",))
    size: NDArray[np.int64] = counters()


def new_table(capacity: int, width: int) -> KeyTable:
    """An empty table for `capacity` rows of `width` words."""
    return new(KeyTable, capacity, width=width, slots=2 << max(3, int(capacity - 1).bit_length()))


def table_of(words: NDArray[np.uint64], capacity: int) -> KeyTable:
    """A table for `capacity` rows in which row i of `words` has number i."""
    table = new_table(capacity, words.shape[1])
    numbers = np.empty(words.shape[0], np.int32)
    number_rows(table, words, numbers, insert=True)
    return table


def number_rows(
    table: KeyTable, words: NDArray[np.uint64], numbers: NDArray[np.int32], first: int = 0, *, insert: bool
) -> int:
    """Fills numbers[i] with the number of row i of `words`, from row `first` on; returns where it stopped.

    A new row gets the next number if `insert`, otherwise the scan stops there; it also stops when the table
    is full. words uint64[n, width], numbers int32[n].
    """
    return int(_number_rows(table, np.ascontiguousarray(words, np.uint64), numbers, first, insert))


def numbered(table: KeyTable, words: NDArray[np.uint64]) -> tuple[KeyTable, NDArray[np.int32]]:
    """The numbers int32[n] of rows uint64[n, width] of words, and the table that includes the new ones.

    It is another table if they did not fit.
    """
    numbers = np.empty(words.shape[0], np.int32)
    row = number_rows(table, words, numbers, insert=True)
    while row < words.shape[0]:
        used = int(table.size[0])
        table = table_of(table.words[:used], max(2 * used, min(words.shape[0] - row, MOST_AHEAD)))
        row = number_rows(table, words, numbers, row, insert=True)
    return table, numbers


@kernel(KeyTable, column(np.uint64, 2), INT32S, INT, FLAG)
def _number_rows(table, words, numbers, first, insert):  # type: ignore[no-untyped-def]
    """See `number_rows`. Invariant: no more than half of the slots are taken, so every probe ends."""
    mask = table.slot.size - 1
    width = words.shape[1]
    for row in range(first, words.shape[0]):
        mixed = np.uint64(0x9E3779B97F4A7C15)
        for place in range(width):
            mixed = (mixed ^ words[row, place]) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(29)
        slot = np.int64(mixed & np.uint64(mask))
        while True:
            number = table.slot[slot]
            if number == EMPTY:
                if not insert or table.size[0] == table.words.shape[0]:
                    return row
                number = table.size[0]
                table.slot[slot] = number
                for place in range(width):
                    table.words[number, place] = words[row, place]
                table.size[0] += 1
                break
            same = True
            for place in range(width):
                same &= table.words[number, place] == words[row, place]
            if same:
                break
            slot = (slot + 1) & mask
        numbers[row] = number
    return words.shape[0]
