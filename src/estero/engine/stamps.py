"""How far stamps are apart, and which ones a window reaches: the one place where the engine subtracts them.

Stamps are times or positions, 64-bit integers that do not fall. The distance of two is less than 2^64, so
that as an unsigned integer it is exact: two's complement wraps around to just that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.engine.int64 import count_before
from estero.engine.jit import kernel


def window_starts(stamps: NDArray[np.int64], first: int, width: int) -> NDArray[np.int64]:
    """For each stamp from place `first` on, the place of the earliest one that is at most `width` before.

    stamps int64, not falling; 0 <= width < 2^64. Returns int64[stamps.size - first].
    """
    starts = np.empty(stamps.size - first, np.int64)
    unsigned = np.ascontiguousarray(stamps, np.int64).view(np.uint64)
    with np.errstate(over="ignore"):  # distances wrap around; NumPy would say so where the JIT is off
        _window_starts(unsigned, first, np.uint64(width), starts)
    return starts


@kernel
def _window_starts(stamps, first, width, starts):  # type: ignore[no-untyped-def]
    """See `window_starts`. stamps uint64: the bits of the signed ones, so that differences are distances."""
    oldest = 0
    for place in range(first, stamps.size):
        while stamps[place] - stamps[oldest] > width:
            oldest += 1
        starts[place - first] = oldest


def out_of_reach(stamps: NDArray[np.int64], stamp: int, width: int) -> int:
    """How many of the stamps, which do not fall, are more than `width` before `stamp`."""
    return count_before(stamps, stamp - width)
