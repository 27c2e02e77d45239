"""What is open in a recognizer as a few dense arrays, and back: the engine's part of a snapshot.

Only what an event to come can still reach is kept: runs that have left the window, nodes that only they
reach, free places of pools and empty partitions are not. Events are numbered anew, 0, 1, 2, …, as far as some
node names them, so that a run that waits for ever holds one event and not all that came after it. Orders of
lists stay as they are, and so does everything that is found later.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.jit import kernel
from estero.engine.snapshots.columns import NODES, Arrays
from estero.engine.store.arena import NONE, UNION, Arena, grown, mark_live, move_live, new_arena
from estero.engine.store.pools import lists_of
from estero.engine.store.tecs import Cells, new_cells


class Snapshot(NamedTuple):
    """What is open.

    events int64[n]: the sequence numbers, ascending, of the events that are still needed; in `arrays` they
    are 0 … n - 1. states int32[k]: the numbers of the automaton's states that runs are in; in `arrays` they
    are 0 … k - 1.
    """

    events: NDArray[np.int64]
    states: NDArray[np.int32]
    arrays: Arrays


@kernel
def list_plain_runs(plain, used, generation, oldest, opened, state, length, node):  # type: ignore[no-untyped-def]
    """Lists the runs of partitions 0 … used - 1 that are inside the window; changes nothing.

    opened int32[used]: the entries of each partition; state, length int32: of each entry, how many cells;
    node int32: of each cell. Partitions of another generation (unless it is NONE) are forgotten ones.
    Returns the numbers of entries and cells.
    """
    arena, cells, entries, partitions, _ = plain
    count = 0
    listed = 0
    for partition in range(used):
        opened[partition] = 0
        if generation != NONE and partitions.generation[partition] != generation:
            continue
        entry = partitions.first[partition]
        while entry != NONE:
            cell = entries.head[entry]
            before = listed
            while cell != NONE and arena.start[cells.node[cell]] >= oldest:
                node[listed] = cells.node[cell]
                listed += 1
                cell = cells.next[cell]
            if listed > before:
                state[count] = entries.state[entry]
                length[count] = listed - before
                count += 1
                opened[partition] += 1
            entry = entries.next[entry]
    return count, listed


@kernel
def list_split_runs(  # type: ignore[no-untyped-def]
    split, used, generation, oldest, opened, sizes, state, group_keys, key, key_elements, element, length,
    node,
):  # fmt: skip
    """As `list_plain_runs`; fills sizes int64[4] with the numbers of groups, keys, elements and cells.

    state, group_keys int32: of each group, how many keys; key, key_elements int32: each key, how many
    elements; element, length int32: each element, how many cells.
    """
    arena, cells, elements, keys, groups, partitions, _ = split
    sizes[:] = 0
    for partition in range(used):
        opened[partition] = 0
        if generation != NONE and partitions.generation[partition] != generation:
            continue
        group = partitions.first[partition]
        while group != NONE:
            keys_before = sizes[1]
            each = groups.first[group]
            while each != NONE:
                elements_before = sizes[2]
                one = keys.first[each]
                while one != NONE:
                    cells_before = sizes[3]
                    cell = elements.head[one]
                    while cell != NONE and arena.start[cells.node[cell]] >= oldest:
                        node[sizes[3]] = cells.node[cell]
                        sizes[3] += 1
                        cell = cells.next[cell]
                    if sizes[3] > cells_before:
                        element[sizes[2]] = one
                        length[sizes[2]] = sizes[3] - cells_before
                        sizes[2] += 1
                    one = elements.next[one]
                if sizes[2] > elements_before:
                    key[sizes[1]] = each
                    key_elements[sizes[1]] = sizes[2] - elements_before
                    sizes[1] += 1
                each = keys.next[each]
            if sizes[1] > keys_before:
                state[sizes[0]] = groups.state[group]
                group_keys[sizes[0]] = sizes[1] - keys_before
                sizes[0] += 1
                opened[partition] += 1
            group = groups.next[group]


def live_nodes(
    arena: Arena, roots: NDArray[np.int32], oldest: int
) -> tuple[Arrays, NDArray[np.int32], NDArray[np.int64]]:
    """The nodes that `roots` reach inside the window, the roots among them, and the events that they name.

    `arena` stays as it is; events are numbered anew.
    """
    size = int(arena.size[0])
    copy = grown(arena, size)
    live, moved = np.zeros(size, np.int8), np.empty(size, np.int32)
    mark_live(copy, roots, oldest, live)
    move_live(copy, live, moved)
    events = distinct(copy.event[: copy.size[0]][copy.kind[: copy.size[0]] != UNION])
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


def cells_of(nodes: NDArray[Any], lengths: NDArray[Any], room: int) -> tuple[Cells, NDArray[np.int32]]:
    """Union-lists of `lengths` cells one after the other, and their heads."""
    cells = new_cells(max(room, 2 * nodes.size))
    cells.node[: nodes.size] = nodes
    return cells, lists_of(cells.next, cells.free, lengths)
