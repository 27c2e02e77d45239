"""Compact sets of paths (tECS): counting, seeking and enumerating (distributed-cea, 4).

A complex event is a path from a root downwards, from its end backwards. At a union the left side comes first
and the right side is left for later, unless its max_start has left the window; so every visited node leads to
an output. A choice stands for its child for the window, as if it were not there itself. Seeking skips a left
side as a whole, by its count: it costs the length of one path, and the rim below the root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, GROW, SEEK
from estero.engine.kernels import (
    FLAGS,
    FLOATS,
    INT,
    INT32S,
    INT64S,
    UINT64S,
    Maybe,
    column,
    inlined,
    kernel,
    step,
)
from estero.engine.store.arena import NONE, PREFER, UNION, Arena
from estero.engine.store.schema import grown, new
from estero.engine.walk.choices import PathCounts, link, resolved
from estero.engine.walk.counter import (
    FITS,
    SHORT,
    SURE,
    Counter,
    Place,
    enter,
    grown_counts,
    is_done,
    known,
    new_counts,
    set_count,
    set_rim_count,
    waits,
)
from estero.engine.walk.enumeration import STEPS, Asked, Walk, go_on, write_back
from estero.engine.walk.long_paths import LongPaths, Turns
from estero.engine.walk.matches import Matches
from estero.engine.walk.roots import Roots

_NO_NODE = np.iinfo(np.int32).max
"""Greater than all nodes."""


@kernel(Arena, PathCounts, INT)
def count_nodes(arena, counts, first):  # type: ignore[no-untyped-def]
    """Counts the nodes from `first` on; those before are done."""
    of_nodes = counts.of_nodes
    for node in range(first, arena.size[0]):
        if counts.below.size > 0:
            link(arena, counts, node)
        left = arena.left[node]
        if left == NONE:
            set_count(of_nodes, node, np.uint64(1), 1.0, arena.event[node])
            continue
        if arena.kind[node] <= PREFER:
            right = arena.right[node]
            earliest = min(arena.event[node], of_nodes.earliest[right])
            set_count(of_nodes, node, of_nodes.exact[right], of_nodes.rough[right], earliest)
            continue
        exact = of_nodes.exact[left]
        rough = of_nodes.rough[left]
        earliest = of_nodes.earliest[left]
        if arena.kind[node] == UNION:
            right = arena.right[node]
            exact += of_nodes.exact[right]
            rough += of_nodes.rough[right]
            earliest = min(earliest, of_nodes.earliest[right])
        set_count(of_nodes, node, exact, rough, earliest)


@step
def count_rim(arena, counts, root, oldest):  # type: ignore[no-untyped-def]
    """Counts the rim below `root`, which is resolved; returns the number of nodes counted."""
    of_nodes = counts.of_nodes
    stack = counts.stack
    enter(of_nodes, oldest)
    if not waits(of_nodes, root, arena.start[root], oldest):
        return 0
    steps = 0
    height = 1
    stack[0] = root
    while height > 0:
        node = stack[height - 1]
        if is_done(of_nodes, node):
            height -= 1
            continue
        exact = np.uint64(0)
        rough = 0.0
        waiting = height
        for side in range(2 if arena.kind[node] == UNION else 1):
            child = resolved(arena, counts, arena.left[node] if side == 0 else arena.right[node], oldest)
            if waits(of_nodes, child, arena.start[child], oldest):
                stack[height] = child
                height += 1
            else:
                more_exact, more_rough = known(of_nodes, child, arena.start[child], oldest)
                exact += more_exact
                rough += more_rough
        if height == waiting:
            set_rim_count(of_nodes, node, exact, rough)
            steps += 1
            height -= 1
    return steps


@inlined
def count_few(arena, counts, root, oldest):  # type: ignore[no-untyped-def]
    """The count of a resolved root, exact and rough, and how many nodes of its rim were looked at.

    The rim is visited path by path, with nothing noted. If it is long, these are more than SHORT.
    """
    of_nodes = counts.of_nodes
    stack = counts.stack
    exact = np.uint64(0)
    rough = 0.0
    looked = 0
    height = 1
    stack[0] = root
    while height > 0 and looked <= SHORT:
        height -= 1
        node = stack[height]
        while arena.start[node] >= oldest and looked <= SHORT:
            if of_nodes.earliest[node] >= oldest:
                exact += of_nodes.exact[node]
                rough += of_nodes.rough[node]
                break
            looked += 1
            if arena.kind[node] == UNION:
                stack[height] = resolved(arena, counts, arena.right[node], oldest)
                height += 1
            node = resolved(arena, counts, arena.left[node], oldest)
    return exact, rough, looked


@kernel(Arena, PathCounts, Roots, UINT64S, FLOATS, FLOATS)
def count_paths(arena, counts, roots, exact, rough, least):  # type: ignore[no-untyped-def]
    """See `Counter.count`."""
    steps = 0
    for place in range(roots.root.size):
        oldest = roots.oldest[place]
        root = resolved(arena, counts, roots.root[place], oldest)
        exact[place], rough[place], looked = count_few(arena, counts, root, oldest)
        if looked > SHORT or not rough[place] < FITS:  # long numbers are computed from the rim
            looked = count_rim(arena, counts, root, oldest)
            exact[place], rough[place] = known(counts.of_nodes, root, arena.start[root], oldest)
        steps += looked
        least[place] = min(rough[place], SURE)
    return steps


@inlined
def leave(walk, choices, node, depth):  # type: ignore[no-untyped-def]
    """Pushes a choice: a node, and the number of items above it. Returns the number of choices."""
    walk.choice[4 * choices] = node
    walk.choice[4 * choices + 1] = depth
    return choices + 1


@inlined
def descend_path(arena, oldest, walk, choices, most):  # type: ignore[no-untyped-def]
    """Goes down a path from the top choice; see `enumeration.go_on`."""
    choices -= 1
    node = walk.choice[4 * choices]
    depth = walk.choice[4 * choices + 1]
    capacity = walk.event.size
    longest = min(capacity, most)
    steps = 0
    code = FULL if depth > most else DONE
    while code == DONE:
        steps += 1
        left = arena.left[node]
        if arena.kind[node] == UNION:
            if choices == capacity:
                code = GROW
                break
            right = arena.right[node]
            if arena.start[right] >= oldest:
                choices = leave(walk, choices, right, depth)
        elif arena.kind[node] <= PREFER:
            if oldest <= arena.event[node]:
                left = arena.right[node]
        elif arena.kind[node] >= 0:
            if depth >= longest:
                code = GROW if depth == capacity else FULL
                break
            walk.event[depth] = arena.event[node]
            walk.marks[depth] = arena.kind[node]
            depth += 1
        if left == NONE:
            break
        node = left
    if code != DONE:
        choices = leave(walk, choices, node, depth)
    walk.cursor[STEPS] += steps
    return code, choices, depth, arena.event[node]


@inlined
def seek_path(arena, counts, root, oldest, skip, walk):  # type: ignore[no-untyped-def]
    """Goes to the complex event number `skip` of a root, leaving choices for those after it."""
    if counts is None:
        return DONE, leave(walk, 0, root, 0)
    node = root
    depth = 0
    choices = 0
    code = SEEK if skip < 0 else DONE
    if skip > 0:
        count_rim(arena, counts, resolved(arena, counts, root, oldest), oldest)
    while skip > 0:
        if max(depth, choices) == walk.event.size:
            code = GROW
            break
        left = arena.left[node]
        if arena.kind[node] == UNION:
            right = arena.right[node]
            counted = resolved(arena, counts, left, oldest)
            exact, rough = known(counts.of_nodes, counted, arena.start[counted], oldest)
            if rough < FITS and np.int64(exact) <= skip:
                skip -= np.int64(exact)
                node = right
                continue
            if arena.start[right] >= oldest:
                choices = leave(walk, choices, right, depth)
        elif arena.kind[node] <= PREFER:
            if oldest <= arena.event[node]:
                left = arena.right[node]
        else:
            walk.event[depth] = arena.event[node]
            walk.marks[depth] = arena.kind[node]
            depth += 1
        node = left
    return code, leave(walk, choices, node, depth)


@kernel(
    Arena, PathCounts, FLAGS, INT32S, INT, INT, INT, INT, column(np.int64, 2), column(np.int64, 2), INT64S
)
def put_path(arena, counts, turned, place, last, root, oldest, skip, choices, items, sizes):  # type: ignore[no-untyped-def]
    """Fills the choices int64[., 2] and items int64[., 2] of a `Place` as far as they fit.

    The path turns right where turned[place[node]] says so, down to the union `last`, and then goes to number
    `skip` below it; the rim below the root must be done. Fills sizes int64[2] with how many choices and items
    there are.
    """
    node = root
    depth = 0
    height = 0
    while skip > 0 or node >= last:
        left = arena.left[node]
        if arena.kind[node] == UNION:
            right = arena.right[node]
            if arena.start[right] >= oldest:
                turns = False
                if node >= last:
                    turns = turned[place[node]]
                else:
                    counted = resolved(arena, counts, left, oldest)
                    exact, rough = known(counts.of_nodes, counted, arena.start[counted], oldest)
                    if rough < FITS and np.int64(exact) <= skip:
                        turns = True
                        skip -= np.int64(exact)
                if turns:
                    node = right
                    continue
                if height < choices.shape[0]:
                    choices[height, 0] = right
                    choices[height, 1] = depth
                height += 1
        elif arena.kind[node] <= PREFER:
            if oldest <= arena.event[node]:
                left = arena.right[node]
        else:
            if depth < items.shape[0]:
                items[depth, 0] = arena.event[node]
                items[depth, 1] = arena.kind[node]
            depth += 1
        node = left
    if height < choices.shape[0]:
        choices[height, 0] = node
        choices[height, 1] = depth
    sizes[0] = height + 1
    sizes[1] = depth


@kernel(Arena, Maybe(PathCounts), Asked, Walk, Matches, INT64S)
def walk_paths(arena, counts, asked, walk, matches, sizes):  # type: ignore[no-untyped-def]
    """The walk over paths; see `enumeration.go_on`."""
    return go_on(arena, counts, asked, walk, matches, sizes, seek_path, descend_path, write_back)


class PathCounter(Counter[Arena]):
    """Counts of the nodes of an arena, which may have `choices`."""

    walk: ClassVar[Callable[..., int]] = staticmethod(walk_paths)
    count: ClassVar[Callable[..., int]] = staticmethod(count_paths)

    def __init__(self, *, choices: bool = False) -> None:
        super().__init__()
        self._choices = choices
        self.counts: Any = new(PathCounts, stack=0, links=0)._replace(of_nodes=new_counts(self._window))
        self._done = 0
        self._long: LongPaths | None = None

    def forget(self) -> None:
        """Discards all counts, after nodes have been renumbered."""
        super().forget()
        self._done = 0
        self._long = None

    def catch_up(self, arena: Arena) -> None:
        """Counts the nodes that are new."""
        size = int(arena.size[0])
        if size == self._done:
            return
        if self.counts.of_nodes.exact.size < size:
            capacity = arena.kind.size
            links = grown(self.counts, stack=2 * capacity + 2, links=capacity if self._choices else 0)
            self.counts = links._replace(of_nodes=grown_counts(self.counts.of_nodes, capacity))
        count_nodes(arena, self.counts, self._done)
        self._done = size

    def numbers(self, compact: Arena, roots: NDArray[np.int32], oldest: int) -> list[int]:
        """See `Counter`."""
        known = self._long
        if known is None or known.oldest != oldest or not set(roots.tolist()) <= known.totals.keys():
            none = np.zeros(roots.size, np.int64)
            self._counted(compact, Roots(none, roots, none + oldest))  # other rims have been counted since
            known = self._long = LongPaths(compact, self.counts, roots, oldest)
        return [known.totals[root] for root in roots.tolist()]

    def seek(self, compact: Arena, root: int, oldest: int, index: int) -> Place:
        """See `Counter`."""
        known = self._long
        if known is None or known.oldest != oldest or root not in known.totals:
            turns, place = Turns(np.empty(0, np.bool_), _NO_NODE, index), np.empty(0, np.int32)
        else:
            turns, place = known.turns(root, index), known.place
        choices, items = np.empty((0, 2), np.int64), np.empty((0, 2), np.int64)
        asked = turns.right, place, turns.last, root, oldest, turns.rest
        sizes = np.empty(2, np.int64)
        put_path(compact, self.counts, *asked, choices, items, sizes)
        height, depth = sizes.tolist()
        choices, items = np.empty((height, 2), np.int64), np.empty((depth, 2), np.int64)
        put_path(compact, self.counts, *asked, choices, items, sizes)
        return Place(choices, items)
