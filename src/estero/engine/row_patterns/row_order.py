"""Sorting rows by keys of integers: the rows are distributed by digits, from the last key to the first.

The order is stable. A pass over ten million rows takes a tenth of a second as long as the places that it
writes to, one for each digit, stay in the processor's cache: so digits have at most 16 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT64S, UINT32S, kernel

Order = NDArray[np.uint32]
"""Row numbers in some order."""
_BITS: Final = 16
_PIECE: Final = 1 << 16
"""The number of rows that are compared with those before them at a time."""


@kernel(UINT32S, INT64S)
def count_digits(digits, counts):  # type: ignore[no-untyped-def]
    """Counts the digits uint32[rows] in counts int64[greatest digit + 1]."""
    for row in range(digits.size):
        counts[np.int64(digits[row])] += 1


@kernel(UINT32S, INT64S, UINT32S)
def distribute_all(digits, places, order):  # type: ignore[no-untyped-def]
    """Sorts all rows by digits uint32[rows]: order uint32[rows].

    places int64[greatest digit + 1] says where the rows of a digit begin, and afterwards where they end.
    """
    for row in range(digits.size):
        digit = np.int64(digits[row])
        order[places[digit]] = row
        places[digit] += 1


@kernel(UINT32S, UINT32S, INT64S, UINT32S)
def distribute(digits, given, places, order):  # type: ignore[no-untyped-def]
    """Sorts the rows of the order `given` by their digits, with arrays as in `distribute_all`."""
    for place in range(given.size):
        row = given[place]
        digit = np.int64(digits[row])
        order[places[digit]] = row
        places[digit] += 1


def counts_of(digits: NDArray[np.uint32], size: int) -> NDArray[np.int64]:
    """The number of occurrences of each digit below `size`."""
    counts = np.zeros(size, np.int64)
    count_digits(digits, counts)
    return counts


def order_by(digits: NDArray[np.uint32], counts: NDArray[np.int64], given: Order | None = None) -> Order:
    """All rows sorted by their digits, equal ones as in `given`; digit d occurs counts[d] times."""
    places = np.cumsum(counts) - counts
    order = np.empty(digits.size, np.uint32)
    if given is None:
        distribute_all(digits, places, order)
    else:
        distribute(digits, given, places, order)
    return order


def lexicographic_order(keys: Sequence[NDArray[np.uint64]]) -> Order | None:
    """The rows sorted by these keys, the first one first; None if they are already in order.

    >>> import numpy as np
    >>> lexicographic_order([np.array([1, 0, 0], np.uint64), np.array([5, 7, 6], np.uint64)]).tolist()
    [2, 1, 0]
    """
    for done in range(len(keys) + 1):  # streams are in order of time, so that only other keys are left
        if is_ordered(keys[done:]):
            break
    order = None
    for key in reversed(keys[:done]):
        bits = int(key.max(initial=0)).bit_length()
        width = -(-bits // max(1, -(-bits // _BITS)))
        for shift in range(0, bits, width or 1):
            digits = (key >> np.uint64(shift) & np.uint64((1 << width) - 1)).astype(np.uint32)
            order = order_by(digits, counts_of(digits, 1 << width), order)
    return order


def is_ordered(keys: Sequence[NDArray[np.unsignedinteger[Any]]]) -> bool:
    """Whether rows are sorted by these keys, the first one first."""
    rows = keys[0].size if keys else 0
    for start in range(0, rows - 1, _PIECE):
        end = min(start + _PIECE, rows - 1)
        undecided = np.ones(end - start, np.bool_)
        for key in keys:
            before, behind = key[start:end], key[start + 1 : end + 1]
            if (undecided & (before > behind)).any():
                return False
            undecided &= before == behind
    return True
