"""The active runs of a recognizer as dense arrays, and back (`snapshot`): for each kernel its own pools.

======= ======= ==================================================================================
array   dtype   meaning
======= ======= ==================================================================================
opened  int32   of each partition: how many entries, or groups
state   int32   of each entry or group: its state
node    int32   of each cell: its node
length  int32   of each entry or element: how many cells its union-list has
keys    int32   of each group: how many keys
parts   int32   of each key: how many elements; registers int64[keys, R], status int8[keys, R]
rank    int64   of each element
======= ======= ==================================================================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.engine.runs.fronts import Elements, Groups, Keys, link_all, new_elements, new_groups, new_keys
from estero.engine.runs.run_cea import Entries, Partitions, new_entries
from estero.engine.runs.run_split import SplitPartitions
from estero.engine.snapshots.snapshot import (
    Arrays,
    cells_of,
    fill_links,
    firsts,
    list_plain_runs,
    list_split_runs,
)
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.tecs import Cells


def plain_arrays(
    arena: Arena,
    cells: Cells,
    entries: Entries,
    partitions: Partitions,
    used: int,
    generation: int,
    oldest: int,
) -> Arrays:
    """The runs of partitions 0 … used - 1 that are inside the window."""
    count, total = (int(pool.next.size - pool.free[1]) for pool in (entries, cells))
    opened, node = np.zeros(used, np.int32), np.empty(total, np.int32)
    state, length = np.empty(count, np.int32), np.empty(count, np.int32)
    count, total = list_plain_runs(
        arena, cells, entries, partitions, used, generation, oldest, opened, state, length, node
    )
    return {"opened": opened, "state": state[:count], "length": length[:count], "node": node[:total]}


def plain_pools(arrays: Arrays, room: int) -> tuple[Cells, Entries, NDArray[np.int32]]:
    """The pools of such runs, with free places as well, and the first entry of each partition."""
    state, length, opened = arrays["state"], arrays["length"], arrays["opened"]
    cells = cells_of(arrays["node"], length, room)
    entries = new_entries(max(room, 2 * state.size))
    entries.state[: state.size] = state
    entries.head[: state.size] = firsts(length)
    entries.length[: state.size] = length
    entries.merged[: state.size] = NONE
    fill_links(entries.next, entries.free, opened)
    return cells, entries, firsts(opened)


def split_arrays(
    arena: Arena,
    cells: Cells,
    elements: Elements,
    keys: Keys,
    groups: Groups,
    partitions: SplitPartitions,
    used: int,
    generation: int,
    oldest: int,
) -> Arrays:
    """The runs of partitions 0 … used - 1 that are inside the window, told apart by registers and rank."""
    group_room, key_room, element_room, cell_room = (
        int(pool.next.size - pool.free[1]) for pool in (groups, keys, elements, cells)
    )
    opened, sizes = np.zeros(used, np.int32), np.zeros(4, np.int64)
    state, group_keys = np.empty(group_room, np.int32), np.empty(group_room, np.int32)
    key, key_elements = np.empty(key_room, np.int32), np.empty(key_room, np.int32)
    element, length = np.empty(element_room, np.int32), np.empty(element_room, np.int32)
    node = np.empty(cell_room, np.int32)
    list_split_runs(
        arena, cells, elements, keys, groups, partitions, used, generation, oldest, opened, sizes,
        state, group_keys, key, key_elements, element, length, node,
    )  # fmt: skip
    in_groups, in_keys, in_elements, in_cells = sizes.tolist()
    return {
        "opened": opened,
        "state": state[:in_groups],
        "keys": group_keys[:in_groups],
        "registers": keys.registers[key[:in_keys]],
        "status": keys.status[key[:in_keys]],
        "parts": key_elements[:in_keys],
        "rank": elements.rank[element[:in_elements]],
        "length": length[:in_elements],
        "node": node[:in_cells],
    }


def split_pools(
    arrays: Arrays, arena: Arena, joins: NDArray[np.int32], room: int
) -> tuple[Cells, Elements, Keys, Groups, NDArray[np.int32]]:
    """The pools of such runs, with free places as well, and the first group of each partition."""
    cells = cells_of(arrays["node"], arrays["length"], room)
    elements = _elements_of(arrays, room)
    groups = new_groups(max(room, 2 * arrays["state"].size))
    groups.state[: arrays["state"].size] = arrays["state"]
    groups.first[: arrays["state"].size] = firsts(arrays["keys"])
    fill_links(groups.next, groups.free, arrays["opened"])
    keys = _keys_of(arrays, joins, room)
    used = arrays["parts"].size
    heads = elements.head[keys.last[:used]]
    keys.newest[:used] = arena.start[cells.node[heads]]
    link_all(keys, joins)
    return cells, elements, keys, groups, firsts(arrays["opened"])


def _elements_of(arrays: Arrays, room: int) -> Elements:
    length = arrays["length"]
    elements = new_elements(max(room, 2 * length.size))
    elements.head[: length.size] = firsts(length)
    elements.length[: length.size] = length
    elements.merged[: length.size] = NONE
    elements.rank[: length.size] = arrays["rank"]
    fill_links(elements.next, elements.free, arrays["parts"])
    elements.free[2] = max(1, int(length.max(initial=1)))
    return elements


def _keys_of(arrays: Arrays, joins: NDArray[np.int32], room: int) -> Keys:
    """The keys, not yet in the hash tables; the list of a group begins with -1 - group."""
    registers, parts, per_group = arrays["registers"], arrays["parts"], arrays["keys"]
    used = parts.size
    keys = new_keys(max(room, 2 * used), registers.shape[1], joins.size)
    keys.registers[:used] = registers
    keys.status[:used] = arrays["status"]
    keys.group[:used] = np.repeat(np.arange(per_group.size), per_group)
    keys.first[:used] = firsts(parts)
    keys.last[:used] = keys.first[:used] + parts - 1
    fill_links(keys.next, keys.free, per_group)
    keys.before[:used] = np.arange(-1, used - 1)
    begins = firsts(per_group)
    keys.before[begins] = -1 - np.arange(per_group.size)
    return keys
