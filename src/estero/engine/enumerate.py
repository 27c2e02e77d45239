"""Reading complex events out of a compact set, in batches, with output-linear delay (distributed-cea, 4).

Iterative: a stack of right children still to visit, each with the depth of the path above it. Children
whose max_start has left the window are not visited, so every visited node leads to an output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.arena import BOTTOM, NONE, UNION, Arena, copy_columns
from estero.engine.jit import kernel

DONE, GROW, FULL = 0, 1, 2
_LARGEST_BATCH = 1 << 16
ROOT, NODE, DEPTH, STACK, TAKEN = range(5)
"""Places in a walk's cursor: next root, node at hand (NONE: take one), depth of the path, height of the
stack, complex events already given for the end at hand."""


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


class Walk(NamedTuple):
    """Where an enumeration stands: cursor, the stack (node, depth), the path from the end backwards."""

    cursor: NDArray[np.int64]
    stack_node: NDArray[np.int32]
    stack_depth: NDArray[np.int32]
    path_event: NDArray[np.int64]
    path_marks: NDArray[np.int32]


def new_walk(depth: int = 256) -> Walk:
    """A walk before the first root, with room for complex events of `depth` marked events."""
    return Walk(
        np.array([0, NONE, 0, 0, 0], np.int64),
        np.empty(depth, np.int32),
        np.empty(depth, np.int32),
        np.empty(depth, np.int64),
        np.empty(depth, np.int32),
    )


def deeper(walk: Walk) -> Walk:
    """The same walk with twice the room."""
    bigger = new_walk(2 * walk.path_event.size)
    bigger.cursor[:] = walk.cursor
    copy_columns(walk[1:], bigger[1:], walk.path_event.size)
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


class Enumeration:
    """The complex events of roots in batches that grow from `first_batch`, at most `limit` for each end.

    roots int32[r], ends int64[r], oldests int64[r] as in `Roots`. Each batch is read off when it is asked
    for. To be iterated once.
    """

    def __init__(
        self,
        arena: Arena,
        roots: NDArray[np.int32],
        ends: NDArray[np.int64],
        oldests: NDArray[np.int64],
        limit: int | None = None,
        first_batch: int = 256,
    ) -> None:
        self._arena = arena
        self._roots, self._ends, self._oldests = roots, ends, oldests
        self._limit = limit or 0
        self._room = first_batch
        self._walk = new_walk()

    def __iter__(self) -> Iterator[Matches]:
        matches, sizes = new_matches(self._room, 8 * self._room), np.zeros(2, np.int64)
        while True:
            code = walk_roots(
                self._arena, self._roots, self._ends, self._oldests, self._limit, self._walk, matches, sizes
            )
            if code == GROW:
                self._walk = deeper(self._walk)
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

    def skip_end(self, end: int) -> None:
        """Leaves out what has not been given of the complex events that end at `end`."""
        cursor = self._walk.cursor
        root = int(cursor[ROOT])
        if root > 0 and self._ends[root - 1] == end:
            cursor[NODE] = NONE
            cursor[STACK] = 0
            cursor[ROOT] = np.searchsorted(self._ends, end, side="right")


@kernel
def walk_roots(arena, roots, ends, oldests, limit, walk, matches, sizes):  # type: ignore[no-untyped-def]
    """Fills `matches` with complex events of the roots, at most `limit` for each end (0: all).

    sizes[0] counts complex events and sizes[1] items. Returns DONE, GROW (path or stack is full) or FULL
    (matches are).
    """
    cursor = walk.cursor
    root = cursor[ROOT]
    node = cursor[NODE]
    depth = cursor[DEPTH]
    height = cursor[STACK]
    taken = cursor[TAKEN]
    count = sizes[0]
    items = sizes[1]
    room = matches.start.size
    item_room = matches.event.size
    depth_room = walk.path_event.size
    code = DONE
    while True:
        if node == NONE:
            if height > 0:
                height -= 1
                node = walk.stack_node[height]
                depth = walk.stack_depth[height]
            elif root < roots.size:
                if root > 0 and ends[root] != ends[root - 1]:
                    taken = 0
                node = roots[root]
                depth = 0
                root += 1
            else:
                break
        if limit > 0 and taken >= limit:
            height = 0
            node = NONE
            continue
        oldest = oldests[root - 1]
        while arena.kind[node] == UNION:
            if height == depth_room:
                code = GROW
                break
            right = arena.right[node]
            if arena.start[right] >= oldest:
                walk.stack_node[height] = right
                walk.stack_depth[height] = depth
                height += 1
            node = arena.left[node]
        if code == GROW:
            break
        kind = arena.kind[node]
        length = depth
        if kind != BOTTOM:
            if depth == depth_room:
                code = GROW
                break
            walk.path_event[depth] = arena.event[node]
            walk.path_marks[depth] = kind
            if arena.left[node] != NONE:
                depth += 1
                node = arena.left[node]
                continue
            length = depth + 1
        if count == room or items + length > item_room:
            code = FULL
            break
        matches.start[count] = arena.event[node]
        matches.end[count] = ends[root - 1]
        for back in range(length - 1, -1, -1):
            matches.event[items] = walk.path_event[back]
            matches.marks[items] = walk.path_marks[back]
            items += 1
        count += 1
        matches.offsets[count] = items
        taken += 1
        node = NONE
    cursor[ROOT] = root
    cursor[NODE] = node
    cursor[DEPTH] = depth
    cursor[STACK] = height
    cursor[TAKEN] = taken
    sizes[0] = count
    sizes[1] = items
    return code
