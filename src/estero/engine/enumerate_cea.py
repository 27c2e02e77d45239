"""Complex events out of a compact set of paths, in batches, with output-linear delay (distributed-cea, 4).

Iterative: a stack of right children still to visit, each with the depth of the path above it. Children
whose max_start has left the window are not visited, so every visited node leads to an output.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.arena import BOTTOM, NONE, UNION, Arena
from estero.engine.enumerate import DONE, FULL, GROW, Enumeration, Matches
from estero.engine.jit import kernel
from estero.engine.roots import Roots

ROOT, NODE, DEPTH, STACK, TAKEN = range(5)
"""Places in a walk's cursor: next root, node at hand (NONE: take one), depth of the path, height of the
stack, complex events already given for the end at hand."""


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


class PathEnumeration(Enumeration[Walk]):
    """The complex events of roots of an arena, at most `limit` for each end."""

    def __init__(self, arena: Arena, roots: Roots, limit: int | None = None, first_batch: int = 256) -> None:
        super().__init__(new_walk, roots.event, first_batch)
        self._arena = arena
        self._roots = roots
        self._limit = limit or 0

    def _fill(self, matches: Matches, sizes: NDArray[np.int64]) -> int:
        roots = self._roots
        code: int = walk_roots(
            self._arena, roots.root, roots.event, roots.oldest, self._limit, self._walk, matches, sizes
        )
        return code


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
