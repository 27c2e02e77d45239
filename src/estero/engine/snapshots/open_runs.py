"""The active runs of a recognizer as dense arrays, and back (`snapshot`): for each kernel its own pools.

======= ======= ==================================================================================
array   dtype   meaning
======= ======= ==================================================================================
opened  int32   of each partition: how many entries, or groups, or spans
state   int32   of each entry, group or member: its state
node    int32   of each cell: its node; or of each span: its last event's, and then of each member
length  int32   of each entry or element: how many cells its union-list has
keys    int32   of each group: how many keys
parts   int32   of each key: how many elements; registers int64[keys, R], status int8[keys, R]
members int32   of each span: how many members
rank    int64   of each element; int32 of each member
======= ======= ==================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, INT32S, INT64S, kernel
from estero.engine.runs.run_cea import Entries, Plain, new_entries
from estero.engine.runs.spans.run_spans import Spanned
from estero.engine.runs.spans.spans import Members, Spans, new_members, new_spans
from estero.engine.runs.split.fronts import (
    Elements,
    Groups,
    Keys,
    link_all,
    new_elements,
    new_groups,
    new_keys,
)
from estero.engine.runs.split.run_split import Split
from estero.engine.snapshots.columns import Arrays
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.pools import lists_of
from estero.engine.store.tecs import Cells, new_cells


@kernel(Plain, INT, INT, INT, INT64S, INT32S, INT32S, INT32S, INT32S)
def list_plain_runs(plain, used, generation, oldest, sizes, opened, state, length, node):  # type: ignore[no-untyped-def]
    """Lists the runs of partitions 0 … used - 1 that are inside the window; changes nothing.

    sizes int64[2]: the numbers of entries and cells; opened int32[used]: the entries of each partition;
    state, length int32: of each entry, how many cells; node int32: of each cell. Partitions of another
    generation (unless it is NONE) are forgotten ones.
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
    sizes[0] = count
    sizes[1] = listed


@kernel(Split, INT, INT, INT, INT32S, INT64S, INT32S, INT32S, INT32S, INT32S, INT32S, INT32S, INT32S)
def list_split_runs(  # type: ignore[no-untyped-def]
    split, used, generation, oldest, opened, sizes, state, group_keys, key, key_elements, element, length,
    node,
):  # fmt: skip
    """As `list_plain_runs`; adds the numbers of groups, keys, elements and cells to sizes int64[4].

    state, group_keys int32: of each group, how many keys; key, key_elements int32: each key, how many
    elements; element, length int32: each element, how many cells.
    """
    arena, cells, elements, keys, groups, partitions, _ = split
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


def plain_arrays(plain: Plain, used: int, generation: int, oldest: int) -> Arrays:
    """The runs of partitions 0 … used - 1 that are inside the window."""
    count, total = (int(pool.next.size - pool.free[1]) for pool in (plain.entries, plain.cells))
    opened, node = np.zeros(used, np.int32), np.empty(total, np.int32)
    state, length = np.empty(count, np.int32), np.empty(count, np.int32)
    sizes = np.zeros(2, np.int64)
    list_plain_runs(plain, used, generation, oldest, sizes, opened, state, length, node)
    count, total = sizes.tolist()
    return {"opened": opened, "state": state[:count], "length": length[:count], "node": node[:total]}


def plain_pools(arrays: Arrays, rooms: Sequence[int]) -> tuple[Cells, Entries, NDArray[np.int32]]:
    """The pools of such runs, of at least these sizes, and the first entry of each partition.

    At least half of each is free.
    """
    state, length, opened = arrays["state"], arrays["length"], arrays["opened"]
    cells, head = _cells_of(arrays["node"], length, rooms[0])
    entries = new_entries(max(rooms[1], 2 * state.size))
    entries.state[: state.size] = state
    entries.head[: state.size] = head
    entries.length[: state.size] = length
    entries.merged[: state.size] = NONE
    return cells, entries, lists_of(entries.next, entries.free, opened)


def split_arrays(split: Split, used: int, generation: int, oldest: int) -> Arrays:
    """The runs of partitions 0 … used - 1 that are inside the window, told apart by registers and rank."""
    keys, elements = split.keys, split.elements
    group_room, key_room, element_room, cell_room = (
        int(pool.next.size - pool.free[1]) for pool in (split.groups, keys, elements, split.cells)
    )
    opened, sizes = np.zeros(used, np.int32), np.zeros(4, np.int64)
    state, group_keys = np.empty(group_room, np.int32), np.empty(group_room, np.int32)
    key, key_elements = np.empty(key_room, np.int32), np.empty(key_room, np.int32)
    element, length = np.empty(element_room, np.int32), np.empty(element_room, np.int32)
    node = np.empty(cell_room, np.int32)
    list_split_runs(
        split, used, generation, oldest, opened, sizes, state, group_keys,
        key, key_elements, element, length, node,
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
    arrays: Arrays, arena: Arena, joins: NDArray[np.int32], rooms: Sequence[int]
) -> tuple[Cells, Elements, Keys, Groups, NDArray[np.int32]]:
    """The pools of such runs, of at least these sizes, and the first group of each partition."""
    cells, head = _cells_of(arrays["node"], arrays["length"], rooms[0])
    elements, first_element = _elements_of(arrays, head, rooms[1])
    keys, first_key = _keys_of(arrays, first_element, joins, rooms[2])
    groups = new_groups(max(rooms[3], 2 * arrays["state"].size))
    groups.state[: arrays["state"].size] = arrays["state"]
    groups.first[: arrays["state"].size] = first_key
    used = arrays["parts"].size
    heads = elements.head[keys.last[:used]]
    keys.newest[:used] = arena.start[cells.node[heads]]
    link_all(keys, joins)
    return cells, elements, keys, groups, lists_of(groups.next, groups.free, arrays["opened"])


@kernel(Spanned, INT, INT, INT, INT64S, INT32S, INT32S, INT32S, INT32S, INT32S, INT32S)
def list_span_runs(spanned, used, generation, oldest, sizes, opened, last, members_of, state, rank, node):  # type: ignore[no-untyped-def]
    """As `list_plain_runs`; sizes are the numbers of spans and members.

    last, members_of int32: of each span, its node and how many members; state, rank, node int32: of each
    member.
    """
    arena, members, spans, partitions, _ = spanned
    count = 0
    listed = 0
    for partition in range(used):
        opened[partition] = 0
        if generation != NONE and partitions.generation[partition] != generation:
            continue
        span = partitions.first[partition]
        while span != NONE and arena.event[spans.last[span]] >= oldest:
            last[count] = spans.last[span]
            members_of[count] = 0
            member = spans.first[span]
            while member != NONE:
                state[listed] = members.state[member]
                rank[listed] = members.rank[member]
                node[listed] = members.node[member]
                listed += 1
                members_of[count] += 1
                member = members.next[member]
            count += 1
            opened[partition] += 1
            span = spans.next[span]
    sizes[0] = count
    sizes[1] = listed


def span_arrays(spanned: Spanned, used: int, generation: int, oldest: int) -> Arrays:
    """The spans of partitions 0 … used - 1 that are inside the window."""
    count, total = (int(pool.next.size - pool.free[1]) for pool in (spanned.spans, spanned.members))
    opened = np.zeros(used, np.int32)
    last, members_of = np.empty(count, np.int32), np.empty(count, np.int32)
    state, rank, node = (np.empty(total, np.int32) for _ in range(3))
    sizes = np.zeros(2, np.int64)
    list_span_runs(spanned, used, generation, oldest, sizes, opened, last, members_of, state, rank, node)
    count, total = sizes.tolist()
    return {
        "opened": opened,
        "members": members_of[:count],
        "state": state[:total],
        "rank": rank[:total],
        "node": np.concatenate((last[:count], node[:total])),
    }


def span_pools(arrays: Arrays, rooms: Sequence[int]) -> tuple[Members, Spans, NDArray[np.int32]]:
    """The pools of such spans, of at least these sizes, and the first span of each partition."""
    state, sizes, node = arrays["state"], arrays["members"], arrays["node"]
    members = new_members(max(rooms[0], 2 * state.size))
    members.state[: state.size] = state
    members.rank[: state.size] = arrays["rank"]
    members.node[: state.size] = node[sizes.size :]
    spans = new_spans(max(rooms[1], 2 * sizes.size))
    spans.last[: sizes.size] = node[: sizes.size]
    spans.first[: sizes.size] = lists_of(members.next, members.free, sizes)
    return members, spans, lists_of(spans.next, spans.free, arrays["opened"])


def _cells_of(nodes: NDArray[Any], lengths: NDArray[Any], room: int) -> tuple[Cells, NDArray[np.int32]]:
    """Union-lists of `lengths` cells one after the other, and their heads."""
    cells = new_cells(max(room, 2 * nodes.size))
    cells.node[: nodes.size] = nodes
    return cells, lists_of(cells.next, cells.free, lengths)


def _elements_of(arrays: Arrays, head: NDArray[np.int32], room: int) -> tuple[Elements, NDArray[np.int32]]:
    """The elements, and the first one of each key."""
    length = arrays["length"]
    elements = new_elements(max(room, 2 * length.size))
    elements.head[: length.size] = head
    elements.length[: length.size] = length
    elements.merged[: length.size] = NONE
    elements.rank[: length.size] = arrays["rank"]
    elements.free[2] = max(1, int(length.max(initial=1)))
    return elements, lists_of(elements.next, elements.free, arrays["parts"])


def _keys_of(
    arrays: Arrays, first: NDArray[np.int32], joins: NDArray[np.int32], room: int
) -> tuple[Keys, NDArray[np.int32]]:
    """The keys, not yet in the hash tables, and the first one of each group, before which is -1 - group."""
    registers, parts, per_group = arrays["registers"], arrays["parts"], arrays["keys"]
    used = parts.size
    keys = new_keys(max(room, 2 * used), registers.shape[1], joins.size)
    keys.registers[:used] = registers
    keys.status[:used] = arrays["status"]
    keys.group[:used] = np.repeat(np.arange(per_group.size), per_group)
    keys.first[:used] = first
    keys.last[:used] = keys.first[:used] + parts - 1
    begins = lists_of(keys.next, keys.free, per_group)
    keys.before[:used] = np.arange(-1, used - 1)
    keys.before[begins] = -1 - np.arange(per_group.size)
    return keys, begins
