"""Nodes of the compact set in flat arrays: layout, growth, compaction (docs/papers.md).

A node is an id into parallel arrays. Children have smaller ids than their parents, so one backward pass
marks what is live and one forward pass moves it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, INT8S, INT32S, kernel, pool
from estero.engine.store import schema
from estero.engine.store.schema import EVENTS, counters, earlier, ref

UNION = -1
BOTTOM = -2
PREFER = -3
"""`PREFER` - h is a choice, too: h > 0 means that it is the top of a tree of that height (`tecs.newer`)."""
NONE = schema.NONE

_HIGHEST = 32
"""The most levels of a tree of choices; each has twice as many nodes as the one below."""


@pool
class Arena(NamedTuple):
    """The tECS, column by column; `kind.size` is the capacity, `size[0]` what is in use.

    ======= ===== ==============================================================================
    array   dtype meaning for node i
    ======= ===== ==============================================================================
    kind    int32 UNION, BOTTOM, PREFER or less, or the label-set id of an output node
    left    int32 union, choice: left child; output: the rest, NONE if the complex event starts here
    right   int32 union, choice: right child
    event   int64 output, bottom: sequence number of the event; choice: see below; union: 0
    start   int64 max_start: the latest start below, as a sequence number; choice: that of its left child
    ======= ===== ==============================================================================

    A choice stands for its right child in windows that begin at or before its event, and for its left child
    in others.
    """

    kind: NDArray[np.int32] = ref("marks", PREFER - _HIGHEST)
    left: NDArray[np.int32] = earlier()
    right: NDArray[np.int32] = earlier()
    event: NDArray[np.int64] = ref(EVENTS)
    start: NDArray[np.int64] = ref(EVENTS)
    size: NDArray[np.int64] = counters()


@kernel(Arena, INT32S, INT, INT8S)
def mark_live(arena, roots, oldest, live):  # type: ignore[no-untyped-def]
    """Sets live[i] = 1 for each node that a root reaches by starts >= oldest.

    roots int32 ids; oldest int64; live int8[size], zeros on entry. Invariant: when node i is visited, all
    its parents have been, because ids fall from parent to child.
    """
    for number in range(roots.size):
        live[roots[number]] = 1
    for node in range(arena.size[0] - 1, -1, -1):
        if live[node] == 0:
            continue
        kind = arena.kind[node]
        if kind == UNION or kind <= PREFER:
            live[arena.left[node]] = 1
            right = arena.right[node]
            if (arena.start[right] if kind == UNION else arena.event[node]) >= oldest:
                live[right] = 1
        elif arena.left[node] != NONE:
            live[arena.left[node]] = 1


@kernel(Arena, INT8S, INT32S)
def move_live(arena, live, moved):  # type: ignore[no-untyped-def]
    """Compacts live nodes, in order, and fills moved[old id] = new id.

    A union or choice whose right child has expired, and so is not live, is replaced by its left child (the
    `start` of that child may be overwritten by then). moved int32[size].
    """
    size = 0
    for node in range(arena.size[0]):
        if live[node] == 0:
            continue
        kind = arena.kind[node]
        left = arena.left[node]
        forks = kind == UNION or kind <= PREFER
        if forks and live[arena.right[node]] == 0:
            moved[node] = moved[left]
            continue
        moved[node] = size
        arena.kind[size] = kind
        arena.left[size] = moved[left] if left != NONE else NONE
        arena.right[size] = moved[arena.right[node]] if forks else NONE
        arena.event[size] = arena.event[node]
        arena.start[size] = arena.start[node]
        size += 1
    arena.size[0] = size
