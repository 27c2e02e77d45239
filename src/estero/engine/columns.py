"""The events of one label, picked out of matches in one pass (algorithms.md, "Report")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.engine.jit import kernel


def select_label(
    offsets: NDArray[np.int64],
    marks: NDArray[np.int32],
    events: NDArray[np.int64],
    lookup: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The list offsets int32[m + 1] of one label, and those of `events` int64[items] that have it.

    Complex event i has items offsets[i] … offsets[i + 1] - 1; `lookup[id]` says whether the label is in
    label set `id`. A batch may mark at most 2^31 - 1 events.
    """
    starts = np.empty(offsets.size, np.int32)
    chosen = np.empty(events.size, np.int64)
    count = _select(offsets, marks, events, lookup, starts, chosen)
    return starts, chosen[:count]


@kernel
def _select(offsets, marks, events, lookup, starts, chosen):  # type: ignore[no-untyped-def]
    """Fills starts int32[m + 1] and chosen int64[items]; returns how many were chosen."""
    count = 0
    starts[0] = 0
    for match in range(offsets.size - 1):
        for item in range(offsets[match], offsets[match + 1]):
            if lookup[marks[item]]:
                chosen[count] = events[item]
                count += 1
        starts[match + 1] = count
    return count
