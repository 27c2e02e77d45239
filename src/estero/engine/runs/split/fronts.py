"""Active states split by registers, and fronts of partial matches: the arrays and their small steps.

A *key* is a state with registers. Its runs are in *elements*: one, or under NEXT and LAST one for each
support that can still be the best (the *front*), best first. An element has a union-list. The keys of one
state of one partition are a *group*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT32S, Grid, inlined, kernel, pool, step
from estero.engine.runs.run_cea import add_list
from estero.engine.store.arena import NONE
from estero.engine.store.lists import give_back, take_row
from estero.engine.store.schema import (
    STATES,
    data,
    derived,
    free_rows,
    heads,
    own,
    ref,
    scratch,
)
from estero.engine.store.tecs import free_list, length, new_cell


@pool
class Elements(NamedTuple):
    """Union-lists of equal support, as in `Entries`, linked to fronts; free[2] is no less than any length."""

    head: NDArray[np.int32] = heads("cells")
    length: NDArray[np.int32] = derived(counts="cells")
    merged: NDArray[np.int32] = derived(NONE)
    next: NDArray[np.int32] = own()
    rank: NDArray[np.int64] = data()
    free: NDArray[np.int64] = free_rows("longest")


@pool
class Keys(NamedTuple):
    """States with registers.

    group: NONE where the key is free; first and last element; newest: max_start of all; next, before: the
    list of the group (`enter_list`). link_next, link_before [(1 + J) × keys] and slot [(1 + J) × a power of
    two]: keys by hash of group and all registers, then by group and each of the J registers that are compared
    for equality.
    """

    group: NDArray[np.int32] = derived(NONE)
    first: NDArray[np.int32] = heads("elements")
    last: NDArray[np.int32] = derived(NONE)
    newest: NDArray[np.int64] = derived(0)
    registers: Grid[np.int64] = data(axes=("registers",))
    status: Grid[np.int8] = ref("statuses", axes=("registers",))
    next: NDArray[np.int32] = own()
    before: NDArray[np.int32] = derived(NONE)
    link_next: NDArray[np.int32] = scratch(NONE, length="links")
    link_before: NDArray[np.int32] = scratch(NONE, length="links")
    slot: NDArray[np.int32] = scratch(NONE, length="slots")
    free: NDArray[np.int64] = free_rows()


@pool
class Groups(NamedTuple):
    """Active states of partitions, with their keys, which may all be gone."""

    state: NDArray[np.int32] = ref(STATES)
    first: NDArray[np.int32] = heads("keys")
    next: NDArray[np.int32] = own()
    free: NDArray[np.int64] = free_rows()


def table_sizes(capacity: int, joins: int) -> dict[str, int]:
    """The sizes of hash tables for `capacity` keys, with `joins` registers compared for equality."""
    slots = 1 << max(3, int(capacity - 1).bit_length())
    return {"links": (1 + joins) * capacity, "slots": (1 + joins) * slots}


@inlined
def enter_list(heads, following, before, slot, link):  # type: ignore[no-untyped-def]
    """Links `link` first into the list heads[slot]; the first one's `before` is -1 - slot."""
    first = heads[slot]
    following[link] = first
    before[link] = -1 - slot
    if first != NONE:
        before[first] = link
    heads[slot] = link


@inlined
def leave_list(heads, following, before, link):  # type: ignore[no-untyped-def]
    """Removes `link` from its list."""
    after = following[link]
    previous = before[link]
    if previous < 0:
        heads[-1 - previous] = after
    else:
        following[previous] = after
    if after != NONE:
        before[after] = previous


@inlined
def mixed(seed, value, status):  # type: ignore[no-untyped-def]
    """A hash uint64 of `seed` uint64 and one register."""
    word = (seed ^ np.uint64(value) ^ (np.uint64(status) << np.uint64(61))) * np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(29)
    return word * np.uint64(0x94D049BB133111EB)


@inlined
def slot_of(keys, joins, word, table):  # type: ignore[no-untyped-def]
    """The slot of a hash in table `table`: 0 for all registers, 1 + j for register joins[j]."""
    slots = keys.slot.size // (1 + joins.size)
    return table * slots + np.int64((word >> np.uint64(20)) & np.uint64(slots - 1))


@inlined
def slot_of_join(keys, joins, group, table, value, status):  # type: ignore[no-untyped-def]
    """The slot of the keys of a group with this value in one register."""
    return slot_of(keys, joins, mixed(np.uint64(group + 1), value, status), table)


@inlined
def slot_of_all(keys, joins, group, registers, status, row):  # type: ignore[no-untyped-def]
    """The slot of the key of a group with the registers in `row`."""
    word = np.uint64(group + 1)
    for register in range(registers.shape[1]):
        word = mixed(word, registers[row, register], status[row, register])
    return slot_of(keys, joins, word * np.uint64(0x9E3779B97F4A7C15), 0)


@inlined
def link_key(keys, joins, key):  # type: ignore[no-untyped-def]
    """Enters a key into the hash tables."""
    group = keys.group[key]
    capacity = keys.group.size
    slot = slot_of_all(keys, joins, group, keys.registers, keys.status, key)
    enter_list(keys.slot, keys.link_next, keys.link_before, slot, key)
    for join in range(joins.size):
        register = joins[join]
        value = keys.registers[key, register]
        slot = slot_of_join(keys, joins, group, 1 + join, value, keys.status[key, register])
        enter_list(keys.slot, keys.link_next, keys.link_before, slot, (1 + join) * capacity + key)


@kernel(Keys, INT32S)
def link_all(keys, joins):  # type: ignore[no-untyped-def]
    """Enters all keys in use into empty hash tables."""
    for key in range(keys.group.size):
        if keys.group[key] != NONE:
            link_key(keys, joins, key)


@inlined
def find_key(keys, joins, group, registers, status, row):  # type: ignore[no-untyped-def]
    """The key of a group with the registers in `row`, or NONE."""
    key = keys.slot[slot_of_all(keys, joins, group, registers, status, row)]
    while key != NONE:
        same = keys.group[key] == group
        for register in range(registers.shape[1]):
            same &= keys.registers[key, register] == registers[row, register]
            same &= keys.status[key, register] == status[row, register]
        if same:
            break
        key = keys.link_next[key]
    return key


@step
def new_key(keys, groups, joins, group, registers, status, row):  # type: ignore[no-untyped-def]
    """Makes a key of a group with the registers in `row` and no elements yet."""
    key = take_row(keys)
    keys.group[key] = group
    keys.first[key] = NONE
    keys.last[key] = NONE
    for register in range(registers.shape[1]):
        keys.registers[key, register] = registers[row, register]
        keys.status[key, register] = status[row, register]
    enter_list(groups.first, keys.next, keys.before, group, key)
    link_key(keys, joins, key)
    return key


@step
def drop_elements(cells, elements, element):  # type: ignore[no-untyped-def]
    """Drops an element and those after it."""
    while element != NONE:
        following = elements.next[element]
        free_list(cells, elements.head[element])
        give_back(elements, element)
        element = following


@step
def drop_key(cells, elements, keys, groups, joins, key):  # type: ignore[no-untyped-def]
    """Drops a key and its elements; its group stays, perhaps empty."""
    drop_elements(cells, elements, keys.first[key])
    leave_list(groups.first, keys.next, keys.before, key)
    for table in range(1 + joins.size):
        leave_list(keys.slot, keys.link_next, keys.link_before, table * keys.group.size + key)
    keys.group[key] = NONE
    give_back(keys, key)


@step
def drop_later(arena, cells, elements, keys, groups, joins, key, start):  # type: ignore[no-untyped-def]
    """Drops the elements of a key that start after event `start`, and the key if none is left.

    Its front has rising starts.
    """
    last = NONE
    element = keys.first[key]
    while element != NONE and arena.start[cells.node[elements.head[element]]] <= start:
        last = element
        element = elements.next[element]
    if last == NONE:
        drop_key(cells, elements, keys, groups, joins, key)
    elif element != NONE:
        drop_elements(cells, elements, element)
        elements.next[last] = NONE
        keys.last[key] = last
        keys.newest[key] = arena.start[cells.node[elements.head[last]]]


@step
def drop_hopeless(arena, cells, elements, keys, groups, joins, group):  # type: ignore[no-untyped-def]
    """Drops elements of a group for which the newest key has better ones, where larger registers are better.

    A register that is only compared by distance (NEAR) is the better the larger it is. Fronts have rising
    starts, and those of better rank are compared with those of one start.
    """
    best = groups.first[group]
    key = keys.next[best] if best != NONE else NONE
    while key != NONE:
        following = keys.next[key]
        better = True
        for register in range(keys.registers.shape[1]):
            better &= keys.status[best, register] == keys.status[key, register]
            better &= keys.registers[best, register] >= keys.registers[key, register]
        if better:
            rival = keys.first[best]
            element = keys.first[key]
            before = NONE
            keys.newest[key] = -1
            while element != NONE:
                after = elements.next[element]
                start = arena.start[cells.node[elements.head[element]]]
                while rival != NONE and arena.start[cells.node[elements.head[rival]]] < start:
                    rival = elements.next[rival]
                hopeless = rival != NONE and arena.start[cells.node[elements.head[rival]]] == start
                if hopeless and elements.rank[rival] > elements.rank[element]:
                    if before == NONE:
                        keys.first[key] = after
                    else:
                        elements.next[before] = after
                    elements.next[element] = NONE
                    drop_elements(cells, elements, element)
                else:
                    before = element
                    keys.newest[key] = start
                element = after
            keys.last[key] = before
            if before == NONE:
                drop_key(cells, elements, keys, groups, joins, key)
        key = following


@step
def drop_empty_groups(groups, partitions, partition):  # type: ignore[no-untyped-def]
    """Removes groups without keys from a partition."""
    before = NONE
    group = partitions.first[partition]
    while group != NONE:
        following = groups.next[group]
        if groups.first[group] == NONE:
            if before == NONE:
                partitions.first[partition] = following
            else:
                groups.next[before] = following
            give_back(groups, group)
        else:
            before = group
        group = following


@inlined
def new_group(groups, partitions, partition, state):  # type: ignore[no-untyped-def]
    """Makes an empty group for a state of a partition."""
    group = take_row(groups)
    groups.state[group] = state
    groups.first[group] = NONE
    groups.next[group] = partitions.first[partition]
    partitions.first[partition] = group
    return group


@inlined
def new_element(cells, elements, node, rank):  # type: ignore[no-untyped-def]
    """Makes an element with a list of one node that is not a union."""
    element = take_row(elements)
    elements.head[element] = new_cell(cells, node, NONE)
    elements.length[element] = 1
    elements.merged[element] = node
    elements.next[element] = NONE
    elements.rank[element] = rank
    return element


@step
def unite_elements(arena, cells, elements, element, other, oldest, scratch):  # type: ignore[no-untyped-def]
    """Adds the list of `other`, of the same support, to that of `element`; `other` is freed."""
    add_list(arena, cells, elements, element, elements.head[other], elements.length[other], oldest, scratch)
    give_back(elements, other)
    if elements.length[element] > 8:
        elements.length[element] = length(cells, elements.head[element])
    elements.free[2] = max(elements.free[2], elements.length[element])


@step
def merge_front(arena, cells, elements, keys, key, new, windowed, oldest, scratch):  # type: ignore[no-untyped-def]
    """Merges the front that begins with `new` into that of `key`.

    Both have falling ranks and, `windowed`, rising max_starts; so has the result: an element stays unless
    one of greater rank starts no earlier. Without a window only the best stays.
    """
    old = keys.first[key]
    first = NONE
    last = NONE
    newest = np.int64(-1)
    tail = keys.last[key]
    if windowed and tail != NONE and elements.rank[new] < elements.rank[tail]:
        first = old
        last = tail
        newest = keys.newest[key]
        old = NONE
    while old != NONE or new != NONE:
        if new == NONE or (old != NONE and elements.rank[old] >= elements.rank[new]):
            taken = old
            old = elements.next[old]
            if new != NONE and elements.rank[taken] == elements.rank[new]:
                other = new
                new = elements.next[new]
                unite_elements(arena, cells, elements, taken, other, oldest, scratch)
        else:
            taken = new
            new = elements.next[new]
        start = arena.start[cells.node[elements.head[taken]]]
        elements.next[taken] = NONE
        if first == NONE:
            first = taken
        elif windowed and start > newest:
            elements.next[last] = taken
        else:
            drop_elements(cells, elements, taken)
            continue
        last = taken
        newest = start
    keys.first[key] = first
    keys.last[key] = last
    keys.newest[key] = newest
