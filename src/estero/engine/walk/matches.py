"""Batches of complex events, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Matches(NamedTuple):
    """A batch of m complex events.

    ========= ===== ========== ===================================================================
    array     dtype shape      meaning
    ========= ===== ========== ===================================================================
    start     int64 [m]        sequence number of the event where the run began
    end       int64 [m]        sequence number of the event where it accepted
    offsets   int64 [m + 1]    complex event i has items offsets[i] … offsets[i + 1] - 1
    event     int64 [items]    marked events by sequence number, ascending in each complex event
    marks     int32 [items]    label-set id of each
    ========= ===== ========== ===================================================================
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    offsets: NDArray[np.int64]
    event: NDArray[np.int64]
    marks: NDArray[np.int32]


def new_matches(room: int, items: int) -> Matches:
    """Room for `room` complex events with `items` marked events together."""
    return Matches(
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.zeros(room + 1, np.int64),
        np.empty(items, np.int64),
        np.empty(items, np.int32),
    )


def filled(matches: Matches, sizes: NDArray[np.int64]) -> Matches:
    """The part that holds complex events: sizes[0] of them, with sizes[1] items."""
    count, items = sizes.tolist()
    return Matches(
        matches.start[:count],
        matches.end[:count],
        matches.offsets[: count + 1],
        matches.event[:items],
        matches.marks[:items],
    )
