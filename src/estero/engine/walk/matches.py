"""Batches of complex events, as arrays: allocating, choosing and joining them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import pool
from estero.engine.store import schema
from estero.engine.store.schema import EVENTS, new, ref


@pool
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

    start: NDArray[np.int64] = ref(EVENTS)
    end: NDArray[np.int64] = ref(EVENTS)
    offsets: NDArray[np.int64] = schema.offsets("items")
    event: NDArray[np.int64] = ref(EVENTS, length="items")
    marks: NDArray[np.int32] = ref("marks", length="items")


def new_matches(capacity: int, items: int) -> Matches:
    """Empty arrays for `capacity` complex events with `items` marked events together."""
    return new(Matches, capacity, items=items)


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


def offsets_of(sizes: NDArray[np.int64] | NDArray[np.bool_]) -> NDArray[np.int64]:
    """The beginnings of n concatenated lists of these sizes, and the end of the last one."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def places_of(first: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers first[i] … first[i] + sizes[i] - 1 of each i, concatenated."""
    offsets = offsets_of(sizes)
    return np.repeat(first - offsets[:-1], sizes) + np.arange(offsets[-1])


def items_of(matches: Matches, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The items of the complex events in these rows."""
    return places_of(matches.offsets[rows], np.diff(matches.offsets)[rows])


def taken(matches: Matches, rows: NDArray[np.int64]) -> Matches:
    """The complex events in these rows, in the order of the rows."""
    items = items_of(matches, rows)
    return Matches(
        matches.start[rows],
        matches.end[rows],
        offsets_of(np.diff(matches.offsets)[rows]),
        matches.event[items],
        matches.marks[items],
    )


def chosen(matches: Matches, rows: NDArray[np.int64]) -> Matches:
    """The complex events in these ascending rows."""
    return matches if len(rows) == len(matches.start) else taken(matches, rows)


def sliced(matches: Matches, first: int, last: int) -> Matches:
    """The complex events in rows first … last - 1; only offsets are copied."""
    low, high = matches.offsets[[first, last]].tolist()
    return Matches(
        matches.start[first:last],
        matches.end[first:last],
        matches.offsets[first : last + 1] - low,
        matches.event[low:high],
        matches.marks[low:high],
    )


def joined(parts: Sequence[Matches]) -> Matches:
    """The concatenation of batches, of which there is at least one."""
    if len(parts) == 1:
        return parts[0]
    start, end, event, marks = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("start", "end", "event", "marks")
    )
    offsets = offsets_of(np.concatenate([np.diff(part.offsets) for part in parts]))
    return Matches(start, end, offsets, event, marks)
