"""Numbers of paths that words do not hold, of the nodes below some roots, oldest first.

The numbers of w nodes have up to w bits each, too much to be held at once. But at any time newer nodes refer
to the few older ones that lists of runs held then. So the nodes are cut into about √w pieces of √w; what is
kept is what goes from one piece to the next, and a piece is worked out again by who looks into it. A path
goes downwards, so seeking looks into each piece once.
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.jit import inlined, kernel
from estero.engine.store.arena import NONE, UNION, Arena
from estero.engine.walk.choices import PathCounts, resolved
from estero.engine.walk.counter import FITS, known

_SHORTEST = 1 << 12
"""Nodes in a piece at least."""


class Unions(NamedTuple):
    """The unions below some roots whose numbers are long, ascending, and what is on each side.

    node int32; left, right int32: the place of such a union, the first one below that side, or NONE where
    left_word, right_word uint64 are the number of that side.
    """

    node: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    left_word: NDArray[np.uint64]
    right_word: NDArray[np.uint64]


@inlined
def union_below(arena, node):  # type: ignore[no-untyped-def]
    """The first union below a long node that is resolved; only outputs are between."""
    while arena.kind[node] != UNION:
        node = arena.left[node]
    return node


@kernel
def mark_long(arena, counts, roots, oldest, place):  # type: ignore[no-untyped-def]
    """Sets `place` int32[nodes] to 1 at the unions below some long roots that are long, too, and 0 before.

    Returns how many these are, and the first one. Children have smaller numbers than their parents.
    """
    waiting = 0
    node = 0
    for number in range(roots.size):
        root = union_below(arena, resolved(arena, counts, roots[number], oldest))
        node = max(node, root)
        waiting += 1 - place[root]
        place[root] = 1
    size = 0
    while True:
        if place[node] == 1:
            size += 1
            waiting -= 1
            for side in range(2):
                child = resolved(arena, counts, arena.left[node] if side == 0 else arena.right[node], oldest)
                _, rough = known(counts.of_nodes, child, arena.start[child], oldest)
                if not rough < FITS:
                    child = union_below(arena, child)
                    waiting += 1 - place[child]
                    place[child] = 1
            if waiting == 0:
                return size, node
        node -= 1


@kernel
def list_long(arena, counts, oldest, place, first, unions):  # type: ignore[no-untyped-def]
    """Fills `unions` with what is marked, from the node `first` on, and `place` with where it is there."""
    node = first
    for number in range(unions.node.size):
        while place[node] == 0:
            node += 1
        unions.node[number] = node
        place[node] = number
        for side in range(2):
            child = resolved(arena, counts, arena.left[node] if side == 0 else arena.right[node], oldest)
            exact, rough = known(counts.of_nodes, child, arena.start[child], oldest)
            where = NONE if rough < FITS else place[union_below(arena, child)]
            if side == 0:
                unions.left[number] = where
                unions.left_word[number] = exact
            else:
                unions.right[number] = where
                unions.right_word[number] = exact
        node += 1


class LongPaths:
    """The numbers of paths inside the window from `oldest` on, below roots that have more than words hold.

    The rims below the roots must be done.
    """

    def __init__(self, arena: Arena, counts: PathCounts, roots: NDArray[np.int32], oldest: int) -> None:
        place = np.zeros(int(roots.max()) + 1, np.int32)
        size, first = mark_long(arena, counts, roots, oldest, place)
        node, left, right = np.empty((3, size), np.int32)
        self.unions = Unions(node, left, right, *np.empty((2, size), np.uint64))
        list_long(arena, counts, oldest, place, first, self.unions)
        self.oldest = oldest
        self._place = place
        self._length = max(_SHORTEST, isqrt(size))
        until = _last_readers(self.unions)
        ends = [
            int(place[int(union_below(arena, resolved(arena, counts, root, oldest)))])
            for root in roots.tolist()
        ]
        until[ends] = size
        self._carried: list[dict[int, int]] = [{}]
        for low in range(0, size, self._length):
            numbers = self._worked_out(low)
            high = low + len(numbers)
            carried = {where: number for where, number in self._carried[-1].items() if until[where] >= high}
            fresh = np.flatnonzero(until[low:high] >= high).tolist()
            self._carried.append(carried | {low + offset: numbers[offset] for offset in fresh})
        self.totals = {root: self._carried[-1][end] for root, end in zip(roots.tolist(), ends, strict=True)}
        self._low, self._numbers = low, numbers

    def has(self, node: int) -> bool:
        """Whether a node is one of the unions."""
        return bool(node < self._place.size and self.unions.node[self._place[node]] == node)

    def left_of(self, union: int) -> int:
        """The number on the left side of one of these unions; what is asked about goes downwards."""
        place = int(self._place[union])
        where = int(self.unions.left[place])
        if where == NONE:
            return int(self.unions.left_word[place])
        if not self._low <= place < self._low + self._length:
            self._low = place - place % self._length
            self._numbers = self._worked_out(self._low)
        offset = where - self._low
        return self._numbers[offset] if offset >= 0 else self._carried[self._low // self._length][where]

    def _worked_out(self, low: int) -> list[int]:
        """The numbers of the piece that begins at place `low`."""
        before = self._carried[low // self._length]
        numbers: list[int] = []
        columns = (column[low : low + self._length].tolist() for column in self.unions[1:])
        for left, right, left_word, right_word in zip(*columns, strict=True):
            one = left_word if left < 0 else numbers[left - low] if left >= low else before[left]
            two = right_word if right < 0 else numbers[right - low] if right >= low else before[right]
            numbers.append(one + two)
        return numbers


def _last_readers(unions: Unions) -> NDArray[np.int64]:
    """Of each union the place of the last one that has it on a side, int64; 0 if there is none."""
    places = np.arange(unions.node.size)
    last = np.zeros((2, unions.node.size), np.int64)
    for row, side in zip(last, (unions.left, unions.right), strict=True):
        row[side[side >= 0]] = places[side >= 0]  # they ascend, and the last one stays
    latest: NDArray[np.int64] = np.maximum(*last)
    return latest
