"""Complex events out of a compact set of paths, in batches, with output-linear delay (distributed-cea, 4).

Iterative: a stack of right children still to visit, each with the depth of the path above it. Children
whose max_start has left the window are not visited, so every visited node leads to an output.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.jit import kernel
from estero.engine.store.arena import BOTTOM, NONE, UNION, Arena
from estero.engine.walk.count import Counter, NodeCounts
from estero.engine.walk.enumerate import DONE, FULL, GROW, Enumeration, Matches
from estero.engine.walk.roots import Roots
from estero.engine.walk.seek_cea import seek_path
from estero.engine.walk.share import Part

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


class Ranges(NamedTuple):
    """Ranges of roots: of root i the complex events from number skip[i] on, take[i] of them.

    Both int64[r], or of no length where everything is wanted; skip is -1 where it passes a word. `counts`,
    `order` and `stack` are those of a `Counter`, and root i goes by its stamp number `stamp` + i.
    """

    skip: NDArray[np.int64]
    take: NDArray[np.int64]
    counts: NodeCounts
    order: NDArray[np.int32]
    stack: NDArray[np.int32]
    stamp: int


class PathEnumeration(Enumeration[Walk]):
    """Complex events of roots of an arena, which `counter` counts; see `Enumeration`."""

    def __init__(
        self,
        arena: Arena,
        counter: Counter,
        roots: Roots,
        *,
        limit: int | None = None,
        part: Part | None = None,
        first_batch: int = 256,
    ) -> None:
        super().__init__(new_walk, roots, limit=limit, part=part, first_batch=first_batch)
        self._arena = arena
        self._counter = counter

    def ranges(self) -> Ranges:
        """What the walk is told of ranges and counts."""
        known = self._counter.known if self._part is None else self._counter.kept_up(self._arena)
        counts, order, stack = known
        skip, take = self._ranges
        return Ranges(skip, take, counts, order, stack, self._counter.stamps(skip.size))

    def _fill(self, matches: Matches, sizes: NDArray[np.int64]) -> int:
        read = self._arena, *self._roots, self._limit
        with np.errstate(over="ignore"):  # words wrap around and are not used where they do
            code: int = walk_roots(*read, self.ranges(), self._walk, matches, sizes)
        return code

    def _seek(self, place: int, index: int) -> None:
        root, oldest = int(self._roots.root[place]), int(self._roots.oldest[place])
        at = self._counter.seek(self._arena, root, oldest, index)
        walk = self._made_room(max(len(at.items), len(at.rest)))
        for depth, (event, marks) in enumerate(at.items):
            walk.path_event[depth], walk.path_marks[depth] = event, marks
        for height, (node, depth) in enumerate(at.rest):
            walk.stack_node[height], walk.stack_depth[height] = node, depth
        walk.cursor[:] = place + 1, at.node, len(at.items), len(at.rest), 0


@kernel
def walk_roots(arena, ends, roots, oldests, limit, ranges, walk, matches, sizes):  # type: ignore[no-untyped-def]
    """Fills `matches` with complex events of the roots, at most `limit` for each end (0: all).

    sizes[0] counts complex events and sizes[1] items. Returns DONE, GROW (path or stack is full), FULL
    (matches are) or SEEK (the next root's range begins beyond a word).
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
    in_ranges = ranges.take.size > 0
    if in_ranges and root > 0:
        limit = ranges.take[root - 1]
    while True:
        if node == NONE:
            if height > 0:
                height -= 1
                node = walk.stack_node[height]
                depth = walk.stack_depth[height]
            elif root < roots.size and in_ranges:
                limit = ranges.take[root]
                taken = 0
                code, node, depth, height = seek_path(
                    arena,
                    ranges.counts,
                    roots[root],
                    oldests[root],
                    ranges.skip[root],
                    ranges.stamp + root,
                    ranges.order,
                    ranges.stack,
                    walk,
                )
                if code != DONE:
                    node = NONE
                    height = 0
                    break
                root += 1
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
