"""What is open in a recognizer as a few dense arrays, and back: the engine's part of a snapshot.

Only what an event to come can still reach is kept: runs that have left the window, nodes that only they
reach, free places of pools and empty partitions are not. Events are numbered anew, 0, 1, 2, …, as far as some
node names them, so that a run that waits for ever holds one event and not all that came after it. Orders of
lists stay as they are, and so does everything that is found later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.snapshots.columns import NODES, Arrays
from estero.engine.store.arena import PREFER, UNION, Arena, grown, mark_live, move_live, new_arena


class Snapshot(NamedTuple):
    """What is open.

    events int64[n]: the sequence numbers, ascending, of the events that are still needed; in `arrays` they
    are 0 … n - 1. states int32[k]: the numbers of the automaton's states that runs are in; in `arrays` they
    are 0 … k - 1.
    """

    events: NDArray[np.int64]
    states: NDArray[np.int32]
    arrays: Arrays


def live_nodes(
    arena: Arena, roots: NDArray[np.int32], oldest: int
) -> tuple[Arrays, NDArray[np.int32], NDArray[np.int64]]:
    """The nodes that `roots` reach inside the window, the roots among them, and the events that they name.

    `arena` stays as it is; events are numbered anew.
    """
    size = int(arena.size[0])
    copy = grown(arena, new_arena(size))
    live, moved = np.zeros(size, np.int8), np.empty(size, np.int32)
    mark_live(copy, roots, oldest, live)
    move_live(copy, live, moved)
    kind, event = copy.kind[: copy.size[0]], copy.event[: copy.size[0]]
    events = distinct(event[(kind > PREFER) & (kind != UNION)])
    if (kind <= PREFER).any():
        events = np.union1d(events, event[kind <= PREFER])
    arrays = NODES.written(copy, int(copy.size[0]), events)
    arrays["event"][arrays["kind"] == UNION] = 0
    return arrays, moved[roots], events


def distinct(ascending: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each value of an array that does not fall, once."""
    new = np.ones(ascending.size, np.bool_)
    new[1:] = ascending[1:] != ascending[:-1]
    return np.array(ascending[new], np.int64)


def arena_of(arrays: Arrays, room: int) -> Arena:
    """The nodes of `live_nodes`, with room for `room` and for as many again."""
    size = NODES.count(arrays)
    arena = NODES.put(arrays, new_arena(max(room, 2 * size)))
    arena.size[0] = size
    return arena


def numbered_states(states: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The distinct states, ascending, and the place of each of `states` among them."""
    known, places = np.unique(states, return_inverse=True)
    return known.astype(np.int32), places.reshape(states.shape).astype(np.int32)
