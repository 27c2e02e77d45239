"""Events that have a marked one near them, found in one pass over their stamps (docs/architecture.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import FLAG, FLAGS, INT, INT64S, kernel


def near_marked(
    stamps: NDArray[np.int64], marked: NDArray[np.bool_], length: int, *, before: bool, behind: bool
) -> NDArray[np.bool_]:
    """Whether each event [n] has a marked one at most `length` `before` it, or `behind` it, as requested.

    stamps int64[n]: ascending, and none is closer to the limits of 64 bits than `length`; marked bool[n].
    Events before the first and after the last one are not known, and may be marked.
    """
    near = np.empty(stamps.size, np.bool_)
    _fill_near(stamps, marked, length, before, behind, near)
    return near


@kernel(INT64S, FLAGS, INT, FLAG, FLAG, FLAGS)
def _fill_near(stamps, marked, length, before, behind, near):  # type: ignore[no-untyped-def]
    """Fills near bool[n]; see `near_marked`."""
    last = stamps[0]
    for row in range(stamps.size):
        stamp = stamps[row]
        last = stamp if marked[row] else last
        near[row] = before and stamp - last <= length
    if behind:
        following = stamps[stamps.size - 1]
        for row in range(stamps.size - 1, -1, -1):
            stamp = stamps[row]
            following = stamp if marked[row] else following
            near[row] = near[row] or following - stamp <= length
    return 0
