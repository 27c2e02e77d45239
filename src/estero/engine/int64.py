"""64-bit integers up to their limits: comparisons and sums that neither wrap around nor round.

A time less a window, or a window after a time, may lie outside of 64 bits. Here it is a Python integer, with
which 64-bit times are compared. The engine's own distances are in engine/stamps.py.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

LEAST: Final = -(2**63)
GREATEST: Final = 2**63 - 1


def saturated(value: int) -> int:
    """The 64-bit integer nearest to `value`.

    >>> saturated(2**64) == GREATEST
    True
    """
    return min(max(value, LEAST), GREATEST)


def count_before(times: NDArray[np.int64], limit: int) -> int:
    """The number of times that are less than `limit`, an integer of any size; times are ascending.

    >>> count_before(np.array([LEAST, 0, GREATEST]), GREATEST + 1)
    3
    """
    if not LEAST <= limit <= GREATEST:
        return 0 if limit < LEAST else times.size
    return int(np.searchsorted(times, np.int64(limit)))


def are_before(times: NDArray[np.int64], limit: int) -> NDArray[np.bool_]:
    """Whether each of the times, in any order, is less than `limit`, an integer of any size.

    >>> are_before(np.array([5, LEAST]), LEAST - 1).tolist()
    [False, False]
    """
    if not LEAST <= limit <= GREATEST:
        return np.full(times.size, limit > GREATEST)
    return times < np.int64(limit)


def fall(times: NDArray[np.int64]) -> bool:
    """Whether a time is less than the one before it.

    >>> fall(np.array([LEAST, GREATEST]))
    False
    """
    return bool((times[1:] < times[:-1]).any())


def added(times: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Times plus a length that is not negative; the greatest integer where the sum exceeds 64 bits.

    >>> added(np.array([5, GREATEST - 1]), 10).tolist() == [15, GREATEST]
    True
    """
    unsigned = np.ascontiguousarray(times).view(np.uint64)
    if length >= 2**64:
        return np.full(times.shape, GREATEST)
    late = np.uint64(GREATEST) - unsigned < np.uint64(length)
    return np.where(late, np.int64(GREATEST), (unsigned + np.uint64(length)).view(np.int64))
