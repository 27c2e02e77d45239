"""The open state of a recognizer as a few dense arrays, and back: the engine's part of a snapshot.

Only what a future event can still reach is kept: not runs that have left the window, nodes that only they
reach, free rows of pools and empty partitions. The events that some node names are renumbered 0, 1, 2, …, so
that a run that waits for ever holds one event and not all that came after it. The orders of lists are
preserved, and so is everything that is recognized later.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.store.arena import PREFER, UNION, Arena, mark_live, move_live
from estero.engine.store.checks import Arrays
from estero.engine.store.schema import grown, written

_OF_NODES = ("arena.kind", "products.mark", "nodes.mark")
"""Arrays with a row for each node of a compact set: of paths, of products, of lists."""


class Snapshot(NamedTuple):
    """The open state of runs.

    events int64[n]: the sequence numbers, ascending, of the events that are still needed; in `arrays` they
    are 0 … n - 1. states int32[k]: the numbers of the automaton's states that runs are in; in `arrays` they
    are 0 … k - 1.
    """

    events: NDArray[np.int64]
    states: NDArray[np.int32]
    arrays: Arrays

    @property
    def state(self) -> NDArray[np.int32]:
        """The states of those runs that are in one; empty if runs wait by keys."""
        columns = [array for name, array in self.arrays.items() if name.endswith(".state")]
        return np.concatenate([*columns, np.empty(0, np.int32)])

    @property
    def nodes(self) -> int:
        """The number of nodes of a compact set that are kept."""
        return sum(self.arrays[name].shape[0] for name in _OF_NODES if name in self.arrays)

    @property
    def partitions(self) -> int:
        """The number of partitions, or of keys, for which runs are kept; 1 without either."""
        partitions = [self.arrays[name].shape[0] for name in ("partition", "index") if name in self.arrays]
        return partitions[0] if partitions else 1

    @property
    def size(self) -> int:
        """The size of the arrays in bytes, without those of the events."""
        arrays: list[NDArray[Any]] = [self.events, self.states, *self.arrays.values()]
        return sum(array.nbytes for array in arrays)


def live_nodes(
    arena: Arena, roots: NDArray[np.int32], oldest: int
) -> tuple[Arrays, NDArray[np.int32], NDArray[np.int64]]:
    """The nodes that `roots` reach inside the window, the new number of each, and the events they name.

    `arena` is unchanged; events are renumbered.
    """
    size = int(arena.size[0])
    copy = grown(arena, rows=size)
    moved = moved_live(copy, roots, oldest)
    kind, event = copy.kind[: copy.size[0]], copy.event[: copy.size[0]]
    events = distinct(event[(kind > PREFER) & (kind != UNION)])
    if (kind <= PREFER).any():
        events = np.union1d(events, event[kind <= PREFER])
    arrays = written(copy, "arena", events)
    arrays["arena.event"][arrays["arena.kind"] == UNION] = 0
    return arrays, moved, events


def moved_live(arena: Arena, roots: NDArray[np.int32], oldest: int) -> NDArray[np.int32]:
    """Compacts an arena to what `roots` reach inside the window; returns the new number of each kept node."""
    size = int(arena.size[0])
    live, moved = np.zeros(size, np.int8), np.empty(size, np.int32)
    mark_live(arena, roots, oldest, live)
    move_live(arena, live, moved)
    return moved


def distinct(ascending: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct values of an ascending array."""
    new = np.ones(ascending.size, np.bool_)
    new[1:] = ascending[1:] != ascending[:-1]
    return np.array(ascending[new], np.int64)
