"""Reading complex events out of compact sets, in batches: what is the same for every kind of compact set.

Enumerations are iterative. A *walk* says where one stands: a cursor, and columns that hold what is still to
be visited and the complex event at hand, all with the same room.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.store.arena import copy_columns
from estero.engine.walk.roots import Roots
from estero.engine.walk.share import NO_RANGES, Part, for_kernels

DONE, GROW, FULL, SEEK = range(4)
"""What a walk stops for: it is done, it wants room for itself, or for complex events, or to be put where the
next root's range begins."""
ROOT = 0
"""The first place in every walk's cursor: the next root."""
_LARGEST_BATCH = 1 << 16


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


W = TypeVar("W", bound=tuple[NDArray[Any], ...])
"""A walk: a named tuple of its cursor and its columns."""


def deeper(walk: W, new_walk: Callable[[int], W]) -> W:
    """The same walk with twice the room."""
    room = walk[1].size
    bigger = new_walk(2 * room)
    bigger[0][:] = walk[0]
    copy_columns(walk[1:], bigger[1:], room)
    return bigger


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


def one_match(start: int, end: int, items: Sequence[tuple[int, int]]) -> Matches:
    """One complex event; `items` are its marked events with their label-set ids, ascending."""
    return Matches(
        np.array([start], np.int64),
        np.array([end], np.int64),
        np.array([0, len(items)], np.int64),
        np.array([event for event, _ in items], np.int64),
        np.array([marks for _, marks in items], np.int32),
    )


class Enumeration(ABC, Generic[W]):
    """Complex events of roots in batches that grow from `first_batch`: at most `limit` for each end.

    With a `part` they are those, and what is before them is not visited. Each batch is read off when it is
    asked for. To be iterated once. `new_walk` makes a walk before the first root, with so much room.
    """

    def __init__(
        self,
        new_walk: Callable[[int], W],
        roots: Roots,
        *,
        limit: int | None = None,
        part: Part | None = None,
        first_batch: int = 256,
    ) -> None:
        self._new_walk = new_walk
        self._walk = new_walk(256)
        self._roots = roots if part is None else roots.chosen(part.place)
        self._limit = 0 if limit is None or part is not None else limit
        self._part = part
        self._ranges = NO_RANGES if part is None else for_kernels(part)
        self._room = first_batch

    @abstractmethod
    def _fill(self, matches: Matches, sizes: NDArray[np.int64]) -> int:
        """Goes on: fills `matches` after the sizes[0] complex events, sizes[1] items that are there.

        Returns what it stops for: DONE, GROW, FULL or SEEK.
        """

    @abstractmethod
    def _seek(self, place: int, index: int) -> None:
        """Puts the walk at complex event number `index` of root number `place`."""

    def __iter__(self) -> Iterator[Matches]:
        matches, sizes = new_matches(self._room, 8 * self._room), np.zeros(2, np.int64)
        while True:
            code = self._fill(matches, sizes)
            if code == GROW:
                self._walk = deeper(self._walk, self._new_walk)
            elif code == SEEK and self._part is not None:
                place = int(self._walk[0][ROOT])
                self._seek(place, int(self._part.first[place]))
            elif code == FULL and sizes[0] == 0:
                matches = new_matches(self._room, 4 * matches.event.size)
            else:
                if sizes[0]:
                    yield filled(matches, sizes)
                if code == DONE:
                    return
                self._room = min(4 * self._room, _LARGEST_BATCH)
                matches = new_matches(self._room, max(8 * self._room, matches.event.size))
                sizes = np.zeros(2, np.int64)

    def _made_room(self, room: int) -> W:
        """The walk, with room for so much."""
        while self._walk[1].size < room:
            self._walk = deeper(self._walk, self._new_walk)
        return self._walk

    def skip_end(self, end: int) -> None:
        """Leaves out what has not been given of the complex events that end at `end`."""
        cursor, ends = self._walk[0], self._roots.event
        root = int(cursor[ROOT])
        if root > 0 and ends[root - 1] == end:
            cursor[:] = self._new_walk(1)[0]
            cursor[ROOT] = np.searchsorted(ends, end, side="right")
