"""Exact counts without enumerating, and the complex event with a given index (algorithms.md, "Report").

Every node gets the number of its full paths once, in id order. Inside a window only nodes on the
*rim* (some start below has expired, some has not) need a count of their own; the others keep theirs.
Counts are 64-bit words while a float beside them says that they fit, and Python integers beyond.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.jit import inlined, kernel
from estero.engine.store.arena import BOTTOM, NONE, UNION, Arena, copy_columns

FITS = 2.0**62
"""Float counts below this are known to fit a signed 64-bit word in spite of their rounding."""


class NodeCounts(NamedTuple):
    """What is known of each node.

    exact uint64: number of paths modulo 2**64; rough float64: the same, rounded; earliest int64: the
    first start below. rim_exact and rim_rough are the counts inside the window of one root, valid where
    `stamp` is that root's.
    """

    exact: NDArray[np.uint64]
    rough: NDArray[np.float64]
    earliest: NDArray[np.int64]
    rim_exact: NDArray[np.uint64]
    rim_rough: NDArray[np.float64]
    stamp: NDArray[np.int64]


@kernel
def count_nodes(arena, counts, first):  # type: ignore[no-untyped-def]
    """Fills exact, rough and earliest of the nodes from `first` on; those before are done."""
    for node in range(first, arena.size[0]):
        left = arena.left[node]
        if arena.kind[node] == UNION:
            right = arena.right[node]
            counts.exact[node] = counts.exact[left] + counts.exact[right]
            counts.rough[node] = counts.rough[left] + counts.rough[right]
            counts.earliest[node] = min(counts.earliest[left], counts.earliest[right])
        elif left == NONE:
            counts.exact[node] = np.uint64(1)
            counts.rough[node] = 1.0
            counts.earliest[node] = arena.event[node]
        else:
            counts.exact[node] = counts.exact[left]
            counts.rough[node] = counts.rough[left]
            counts.earliest[node] = counts.earliest[left]
        counts.stamp[node] = 0


@kernel
def rim_of(arena, counts, root, oldest, stamp, order, stack):  # type: ignore[no-untyped-def]
    """Writes the rim below `root` to `order`, children first, and its counts; returns how many.

    order, stack int32[nodes]. A node is on the rim if its earliest start is before `oldest` and its
    max_start is not. Each is entered once: `stamp` marks it, with the sign telling whether it is done.
    """
    size = 0
    if counts.earliest[root] >= oldest:
        return size
    height = 1
    stack[0] = root
    while height > 0:
        node = stack[height - 1]
        if counts.stamp[node] == stamp:
            height -= 1
            continue
        waiting = height
        left = arena.left[node]
        union = arena.kind[node] == UNION
        if counts.earliest[left] < oldest and counts.stamp[left] != stamp:
            stack[height] = left
            height += 1
        if union:
            right = arena.right[node]
            if (
                arena.start[right] >= oldest
                and counts.earliest[right] < oldest
                and counts.stamp[right] != stamp
            ):
                stack[height] = right
                height += 1
        if height > waiting:
            continue
        exact, rough = inside(arena, counts, left, oldest)
        if union:
            more_exact, more_rough = inside(arena, counts, arena.right[node], oldest)
            exact += more_exact
            rough += more_rough
        counts.rim_exact[node] = exact
        counts.rim_rough[node] = rough
        counts.stamp[node] = stamp
        order[size] = node
        size += 1
        height -= 1
    return size


@inlined
def inside(arena, counts, node, oldest):  # type: ignore[no-untyped-def]
    """Number of paths below `node` that start inside the window; its rim must be done."""
    if counts.earliest[node] >= oldest:
        return counts.exact[node], counts.rough[node]
    if arena.start[node] < oldest:
        return np.uint64(0), 0.0
    return counts.rim_exact[node], counts.rim_rough[node]


@kernel
def count_roots(arena, counts, roots, oldests, stamp, order, stack, exact, rough):  # type: ignore[no-untyped-def]
    """Fills exact uint64 and rough float64 with the number of complex events of each root.

    Root i uses stamp + i. `exact` is right where `rough` is below FITS. Returns the length of all rims.
    """
    steps = 0
    for place in range(roots.size):
        root = roots[place]
        steps += rim_of(arena, counts, root, oldests[place], stamp + place, order, stack)
        exact[place], rough[place] = inside(arena, counts, root, oldests[place])
    return steps


class PathPlace(NamedTuple):
    """A complex event below a root, and what comes after it.

    `node` is where it starts, `items` its other (event, label-set id) pairs from the end backwards, `rest`
    the right sides that were left for later, each with the number of items above it.
    """

    node: int
    items: list[tuple[int, int]]
    rest: list[tuple[int, int]]


class Counter:
    """Counts of one arena, kept up as it grows; `forget` after a compaction.

    `steps` is how many nodes on rims were looked at, so far.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._counts = _new_counts(0)
        self._done = 0
        self._stamp = 1
        self._order = np.empty(0, np.int32)
        self._stack = np.empty(0, np.int32)
        self._large: dict[int, int] = {}

    def forget(self) -> None:
        """Node ids have changed: start again."""
        self._done = 0
        self._large.clear()

    def of_roots(
        self,
        arena: Arena,
        roots: NDArray[np.int32],
        oldests: NDArray[np.int64],
        enough: int | None = None,
    ) -> list[int]:
        """The exact number of complex events below each root that start at or after its `oldest`.

        Where there are more than `enough`, that number will do.
        """
        self._catch_up(arena)
        exact, rough = np.zeros(roots.size, np.uint64), np.zeros(roots.size)
        with np.errstate(over="ignore"):  # words wrap around and are not used where they do
            self.steps += count_roots(
                arena, self._counts, roots, oldests, self._stamp, self._order, self._stack, exact, rough
            )
        self._stamp += roots.size
        numbers: list[int] = exact.tolist()
        for place in np.flatnonzero(~(rough < FITS)).tolist():
            if enough is not None and enough < FITS:
                numbers[place] = enough
            else:
                root, oldest = int(roots[place]), int(oldests[place])
                numbers[place] = self._path_counts(arena, root, oldest)[root]
        return numbers

    def path(self, arena: Arena, root: int, oldest: int, index: int) -> tuple[int, list[tuple[int, int]]]:
        """The complex event number `index` below `root`, in the order of enumeration.

        Returns its start and its (event, label-set id) pairs, ascending. No other one is visited.
        """
        at = self.seek(arena, root, oldest, index)
        first, kind = int(arena.event[at.node]), int(arena.kind[at.node])
        items = at.items if kind == BOTTOM else [*at.items, (first, kind)]
        return first, items[::-1]

    def seek(self, arena: Arena, root: int, oldest: int, index: int) -> PathPlace:
        """Where the complex event number `index` below `root` is."""
        self._catch_up(arena)
        numbers = self._path_counts(arena, root, oldest)
        items: list[tuple[int, int]] = []
        rest: list[tuple[int, int]] = []
        node = root
        while (left := int(arena.left[node])) != NONE:
            if arena.kind[node] != UNION:
                items.append((int(arena.event[node]), int(arena.kind[node])))
                node = left
                continue
            before, right = self._inside(arena, numbers, left, oldest), int(arena.right[node])
            if index >= before:
                index -= before
                node = right
                continue
            if arena.start[right] >= oldest:
                rest.append((right, len(items)))
            node = left
        return PathPlace(node, items, rest)

    def kept_up(self, arena: Arena) -> tuple[NodeCounts, NDArray[np.int32], NDArray[np.int32]]:
        """The counts of all nodes, and the scratch of `rim_of`: order and stack."""
        self._catch_up(arena)
        return self.known

    @property
    def known(self) -> tuple[NodeCounts, NDArray[np.int32], NDArray[np.int32]]:
        """The same for the nodes that were there when something was counted last."""
        return self._counts, self._order, self._stack

    def stamps(self, number: int) -> int:
        """The first of so many stamps that nobody else has."""
        first = self._stamp
        self._stamp += number
        return first

    def _path_counts(self, arena: Arena, root: int, oldest: int) -> dict[int, int]:
        """Exact counts of the rim below `root`, and of `root`, by node."""
        with np.errstate(over="ignore"):
            size = rim_of(arena, self._counts, root, oldest, self._stamp, self._order, self._stack)
        self._stamp += 1
        numbers: dict[int, int] = {}
        for node in self._order[:size].tolist():
            number = self._inside(arena, numbers, int(arena.left[node]), oldest)
            if arena.kind[node] == UNION:
                number += self._inside(arena, numbers, int(arena.right[node]), oldest)
            numbers[node] = number
        numbers.setdefault(root, self._inside(arena, numbers, root, oldest))
        return numbers

    def _inside(self, arena: Arena, numbers: dict[int, int], node: int, oldest: int) -> int:
        if self._counts.earliest[node] >= oldest:
            return self._large[node] if node in self._large else int(self._counts.exact[node])
        return 0 if arena.start[node] < oldest else numbers[node]

    def _catch_up(self, arena: Arena) -> None:
        size = int(arena.size[0])
        if self._counts.exact.size < size:
            capacity = arena.kind.size
            bigger = _new_counts(capacity)
            copy_columns(self._counts, bigger, self._counts.exact.size)
            self._counts = bigger
            self._order, self._stack = np.empty(capacity, np.int32), np.empty(2 * capacity + 2, np.int32)
        with np.errstate(over="ignore"):
            count_nodes(arena, self._counts, self._done)
        fresh = self._counts.rough[self._done : size]
        for node in (np.flatnonzero(~(fresh < FITS)) + self._done).tolist():
            children = (
                [arena.left[node]] if arena.kind[node] != UNION else [arena.left[node], arena.right[node]]
            )
            self._large[node] = sum(
                self._large[int(child)] if int(child) in self._large else int(self._counts.exact[child])
                for child in children
            )
        self._done = size


def _new_counts(capacity: int) -> NodeCounts:
    return NodeCounts(
        np.zeros(capacity, np.uint64),
        np.zeros(capacity),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.uint64),
        np.zeros(capacity),
        np.zeros(capacity, np.int64),
    )
