"""Counts of paths, and the node that stands for another in a window where some nodes are choices.

A choice stands for its child for the window. A node with only outputs and choices above another one has the
same count of paths, so it needs no rim of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, inlined, kernel, pool
from estero.engine.store.arena import NONE, PREFER, Arena
from estero.engine.store.schema import derived, scratch
from estero.engine.walk.counter import Counts


@pool
class PathCounts(NamedTuple):
    """The counts of all nodes; stack int32[2 × capacity + 2] is scratch.

    Where there are choices, they form chains: behind one comes the first one below its older side that only
    outputs are above of. Windows get older along them. int32[capacity], else empty: below (what is below the
    outputs from a node on), and of choices place (in the chain, from its end) and jump (a later one).
    """

    of_nodes: Counts
    stack: NDArray[np.int32] = scratch(length="stack")
    below: NDArray[np.int32] = derived(length="links")
    place: NDArray[np.int32] = derived(length="links")
    jump: NDArray[np.int32] = derived(length="links")


@inlined
def link(arena, counts, node):  # type: ignore[no-untyped-def]
    """Enters a node into its chain; jumps are such that any place is a logarithmic number of steps away.

    Myers, An applicative random-access stack (Information Processing Letters 17, 1983).
    """
    left = arena.left[node]
    counts.below[node] = counts.below[left] if arena.kind[node] >= 0 and left != NONE else node
    if arena.kind[node] <= PREFER:
        following = counts.below[arena.right[node]]
        counts.place[node] = 0
        counts.jump[node] = node
        if arena.kind[following] <= PREFER:
            one = counts.jump[following]
            two = counts.jump[one]
            counts.place[node] = counts.place[following] + 1
            even = counts.place[following] - counts.place[one] == counts.place[one] - counts.place[two]
            counts.jump[node] = two if even else following


@kernel(Arena, PathCounts, INT, INT)
@inlined
def resolved(arena, counts, node, oldest):  # type: ignore[no-untyped-def]
    """The union or end that counts as many as `node` does in a window: past outputs and choices."""
    if counts.below.size > 0:
        node = counts.below[node]
        while arena.kind[node] <= PREFER:
            if oldest > arena.event[node]:
                node = counts.below[arena.left[node]]
                continue
            following = counts.below[arena.right[node]]
            while arena.kind[following] <= PREFER and oldest <= arena.event[following]:
                far = counts.jump[node]
                node = far if oldest <= arena.event[far] and far != node else following
                following = counts.below[arena.right[node]]
            node = following
    return node
