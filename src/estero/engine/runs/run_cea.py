"""Recognition: one event after the other moves union-lists between states (CORE, Algorithm 1).

The paper rebuilds its table of states at every event. Here a state that only waits is not touched, so
an event costs what it changes. Lists stay sorted because two of them are merged by their heads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import (
    CONSUME_ANY,
    CONSUME_ANY_ASKED,
    CONSUME_PARTITION,
    DONE,
    FULL,
    GROW,
    MISS,
    Found,
    automaton_cursor_of,
    report,
)
from estero.engine.kernels import FLAG, INT, Grid, inlined, kernel, pool, step
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.schema import STATES, data, derived, free_rows, heads, own, ref, scratch
from estero.engine.store.tecs import Cells, bottom, free_list, insert_behind, merge, new_cell, output

MISSING = -1
IDLE = -2
DEAD = -1
ANY_FAR = -1

Cursor = automaton_cursor_of("need_cells", "need_entries", "need_pending")


@pool
class Tables(NamedTuple):
    """The deterministic automaton as far as it is known.

    row_of int32[states, classes]: a row, IDLE (stays, marks nothing, accepts nothing) or MISSING. Row r
    has skip[r] (state or DEAD) and edges first[r] … first[r+1]-1 in edge_marks (label-set id), edge_target.
    accepts, continues int8[states]. live int8[states, registers]: whether a check can still read a register.
    reach int64[states, registers]: how far below its clock a register may be before nothing can follow, or
    ANY_FAR.
    """

    row_of: Grid[np.int32] = data(MISSING, length=STATES, axes=("classes",))
    skip: NDArray[np.int32] = data()
    first: NDArray[np.int32] = data(0, longer=1)
    edge_marks: NDArray[np.int32] = data(length="edges")
    edge_target: NDArray[np.int32] = data(length="edges")
    accepts: NDArray[np.int8] = data(0, length=STATES)
    continues: NDArray[np.int8] = data(0, length=STATES)
    live: Grid[np.int8] = data(1, length=STATES, axes=("registers",))
    reach: Grid[np.int64] = data(ANY_FAR, length=STATES, axes=("registers",))


@pool
class Entries(NamedTuple):
    """Active states of partitions, with a union-list; `merged` is its one node, NONE if changed since."""

    state: NDArray[np.int32] = ref(STATES, once=True)
    head: NDArray[np.int32] = heads("cells")
    length: NDArray[np.int32] = derived(counts="cells")
    merged: NDArray[np.int32] = derived(NONE)
    next: NDArray[np.int32] = own()
    free: NDArray[np.int64] = free_rows()


@pool
class Partitions(NamedTuple):
    """Of each partition its first entry or group int32; the ordinal of its last event, its generation, int64.

    `step` int64 is what the next mark adds to a rank, `blocked` int64 an event at or before which a start may
    not be clear of what ended earlier (see `run_split`).
    """

    first: NDArray[np.int32] = heads()
    ordinal: NDArray[np.int64] = data(-1)
    generation: NDArray[np.int64] = data(0)
    step: NDArray[np.int64] = data(0)
    blocked: NDArray[np.int64] = data(-1)


@pool
class Events(NamedTuple):
    """A batch for the kernels: class int32, partition int32, ordinal int64, oldest int64.

    `oldest` is the sequence number of the earliest start that is inside the window when this event is the
    end. values int64[n, V], of which those that are valid bool[n, V] are not NULL.
    """

    event_class: NDArray[np.int32]
    partition: NDArray[np.int32]
    ordinal: NDArray[np.int64]
    oldest: NDArray[np.int64]
    values: Grid[np.int64]
    valid: Grid[np.bool_]


_NO_NUMBERS, _NO_PLACES = np.empty(0, np.int32), np.empty(0, np.int64)
NO_EVENTS = Events(
    *(_NO_NUMBERS, _NO_NUMBERS, _NO_PLACES, _NO_PLACES),
    *(np.empty((0, 0), np.int64), np.empty((0, 0), np.bool_)),
)


@pool
class Pending(NamedTuple):
    """Scratch of one step, int32.

    Touched entries and their rows; what goes to which state (a node, or a whole list by its cell and
    length); where[state] is that state's entry while one step writes.
    """

    entry: NDArray[np.int32] = scratch()
    row: NDArray[np.int32] = scratch()
    target: NDArray[np.int32] = scratch()
    node: NDArray[np.int32] = scratch()
    cell: NDArray[np.int32] = scratch()
    length: NDArray[np.int32] = scratch()
    merging: NDArray[np.int32] = scratch()
    where: NDArray[np.int32] = scratch(NONE, length=STATES)


@pool
class Plain(NamedTuple):
    """What the kernels below work on: nodes, union-lists, entries, partitions, scratch."""

    arena: Arena
    cells: Cells
    entries: Entries
    partitions: Partitions
    pending: Pending


@kernel(Cells, Entries, Partitions, INT)
def drop_all(cells, entries, partitions, partition):  # type: ignore[no-untyped-def]
    """Forgets every run of a partition."""
    entry = partitions.first[partition]
    while entry != NONE:
        following = entries.next[entry]
        free_list(cells, entries.head[entry])
        entries.next[entry] = entries.free[0]
        entries.free[0] = entry
        entries.free[1] += 1
        entry = following
    partitions.first[partition] = NONE


@step
def unlink_dropped(entries, partitions, partition):  # type: ignore[no-untyped-def]
    """Takes the entries whose list is gone (head NONE) out of the partition."""
    entry = partitions.first[partition]
    before = NONE
    while entry != NONE:
        following = entries.next[entry]
        if entries.head[entry] == NONE:
            if before == NONE:
                partitions.first[partition] = following
            else:
                entries.next[before] = following
            entries.next[entry] = entries.free[0]
            entries.free[0] = entry
            entries.free[1] += 1
        else:
            before = entry
        entry = following


@inlined
def merged_node(arena, cells, entries, entry, oldest, scratch):  # type: ignore[no-untyped-def]
    """The union of an entry's list as one safe node, made at most once per change of the list."""
    node = entries.merged[entry]
    if node == NONE:
        head = entries.head[entry]
        alone = cells.next[head] == NONE
        node = cells.node[head] if alone else merge(arena, cells, head, oldest, scratch)
        entries.merged[entry] = node
    return node


@inlined
def find_entry(entries, partitions, partition, state):  # type: ignore[no-untyped-def]
    """The entry of `state` in a partition, or NONE."""
    entry = partitions.first[partition]
    while entry != NONE and entries.state[entry] != state:
        entry = entries.next[entry]
    return entry


@inlined
def new_entry(entries, partitions, partition, state, head, length):  # type: ignore[no-untyped-def]
    """An entry for `state` with the list at `head`, put first in its partition."""
    entry = entries.free[0]
    entries.free[0] = entries.next[entry]
    entries.free[1] -= 1
    entries.state[entry] = state
    entries.head[entry] = head
    entries.length[entry] = length
    entries.merged[entry] = NONE
    entries.next[entry] = partitions.first[partition]
    partitions.first[partition] = entry
    return entry


@inlined
def add_node(arena, cells, entries, entry, node, oldest, scratch):  # type: ignore[no-untyped-def]
    """Adds a node that is no union to an entry's list.

    A newer start becomes the head and what was there collapses into one node behind it; that is what
    bounds the list by the number of states.
    """
    head = entries.head[entry]
    if arena.start[node] > arena.start[cells.node[head]]:
        rest = merged_node(arena, cells, entries, entry, oldest, scratch)
        free_list(cells, head)
        entries.head[entry] = new_cell(cells, node, new_cell(cells, rest, NONE))
        entries.length[entry] = 2
    else:
        insert_behind(arena, cells, head, node)
        entries.length[entry] += 1
    entries.merged[entry] = NONE


@step
def add_list(arena, cells, entries, entry, cell, length, oldest, scratch):  # type: ignore[no-untyped-def]
    """Adds a whole list to an entry's: the one with the newer head stays, the other becomes one node."""
    head = entries.head[entry]
    if arena.start[cells.node[cell]] > arena.start[cells.node[head]]:
        rest = merged_node(arena, cells, entries, entry, oldest, scratch)
        free_list(cells, head)
        entries.head[entry] = cell
        entries.length[entry] = length + 1
        insert_behind(arena, cells, cell, rest)
    else:
        rest = merge(arena, cells, cell, oldest, scratch)
        free_list(cells, cell)
        entries.length[entry] += 1
        insert_behind(arena, cells, head, rest)
    entries.merged[entry] = NONE


@inlined
def missing(cursor, state, event_class):  # type: ignore[no-untyped-def]
    """Says which row is missing."""
    cursor.miss_state = state
    cursor.miss_class = event_class
    return MISS


@inlined
def is_forgotten(partitions, partition, cursor, consume):  # type: ignore[no-untyped-def]
    """Whether everything was forgotten since an event of this partition was read; asked once."""
    forgetful = consume in (CONSUME_ANY, CONSUME_ANY_ASKED)
    if not forgetful or partitions.generation[partition] == cursor.generation:
        return False
    partitions.generation[partition] = cursor.generation
    return True


@inlined
def is_consumed(partitions, partition, cursor, consume, ended):  # type: ignore[no-untyped-def]
    """Whether the runs of a partition, in which something `ended`, are forgotten for that; asked once."""
    if not ended or consume not in (CONSUME_ANY, CONSUME_PARTITION):
        return False
    cursor.generation += 1
    partitions.generation[partition] = cursor.generation
    return True


@inlined
def is_behind(partitions, partition, events, place, gaps):  # type: ignore[no-untyped-def]
    """Whether a partition with runs has to read an event that was dropped before it reads that at `place`."""
    open_ = partitions.first[partition] != NONE
    return gaps and open_ and events.ordinal[place] - partitions.ordinal[partition] > 1


@inlined
def is_read(partitions, partition, events, place, cursor, in_gap, touched):  # type: ignore[no-untyped-def]
    """The event at `place` is read, or one before it that was dropped; where these touch nothing, all are."""
    if not in_gap:
        partitions.ordinal[partition] = events.ordinal[place]
        cursor.at = place + 1
    elif touched == 0:
        partitions.ordinal[partition] = events.ordinal[place] - 1
    else:
        partitions.ordinal[partition] += 1


@kernel(Tables, Plain, Found, Events, Cursor, FLAG, INT)
def advance(tables, plain, found, events, cursor, gaps, consume):  # type: ignore[no-untyped-def]
    """Processes events from cursor.at on, until one of the codes above; resumable with more room.

    Loop invariant: at the top every partition's entries have pairwise different states and describe
    all its events before cursor.at (with `gaps`, also the unseen ones up to its ordinal). Nothing is
    written for an event before all its rows are known and all room it can need is there.
    """
    arena, cells, entries, partitions, pending = plain
    while cursor.at < cursor.last:
        if consume >= CONSUME_ANY_ASKED and found.size[0] > 0:
            return FULL
        place = cursor.at
        event = cursor.first + place
        partition = events.partition[place]
        oldest = events.oldest[place]
        event_class = events.event_class[place]
        if is_forgotten(partitions, partition, cursor, consume):
            drop_all(cells, entries, partitions, partition)
        in_gap = is_behind(partitions, partition, events, place, gaps)
        if in_gap:
            event_class = 0

        # 1. Look up every row; count the room.
        touched = 0
        lengths = np.int64(0)
        fills = np.int64(0)
        entry = partitions.first[partition]
        while entry != NONE:
            row = tables.row_of[entries.state[entry], event_class]
            lengths += entries.length[entry]
            if row != IDLE:
                if row == MISSING:
                    return missing(cursor, entries.state[entry], event_class)
                if touched == pending.entry.size:
                    cursor.need_pending = 2 * touched + 2
                    return GROW
                pending.entry[touched] = entry
                pending.row[touched] = row
                touched += 1
                fills += tables.first[row + 1] - tables.first[row] + 2
            entry = entries.next[entry]
        first_row = IDLE
        if not in_gap:
            first_row = tables.row_of[0, event_class]
            if first_row == MISSING:
                return missing(cursor, 0, event_class)
            if first_row != IDLE:
                fills += tables.first[first_row + 1] - tables.first[first_row] + 1
        if fills > 0:
            if arena.size[0] + 2 * lengths + 8 * fills + 8 > arena.kind.size:
                cursor.need_nodes = 2 * lengths + 8 * fills + 8
                return GROW
            if 2 * fills > cells.free[1] or fills > entries.free[1] or lengths + fills > pending.entry.size:
                cursor.need_cells = 2 * fills
                cursor.need_entries = fills
                cursor.need_pending = lengths + fills
                return GROW
            if found.size[0] + fills > found.event.size:
                return FULL
            seen = found.size[0]

            # 2. Read the old lists: new runs, marks, moves.
            filled = 0
            if first_row != IDLE:
                for edge in range(tables.first[first_row], tables.first[first_row + 1]):
                    pending.target[filled] = tables.edge_target[edge]
                    pending.node[filled] = output(arena, tables.edge_marks[edge], event, NONE)
                    pending.cell[filled] = NONE
                    filled += 1
                if tables.skip[first_row] != DEAD:
                    pending.target[filled] = tables.skip[first_row]
                    pending.node[filled] = bottom(arena, event)
                    pending.cell[filled] = NONE
                    filled += 1
            dropped = False
            for number in range(touched):
                entry = pending.entry[number]
                row = pending.row[number]
                state = entries.state[entry]
                head = entries.head[entry]
                if arena.start[cells.node[head]] < oldest:
                    free_list(cells, head)
                    entries.head[entry] = NONE
                    dropped = True
                    continue
                if tables.first[row] != tables.first[row + 1]:
                    rest = merged_node(arena, cells, entries, entry, oldest, pending.merging)
                    for edge in range(tables.first[row], tables.first[row + 1]):
                        pending.target[filled] = tables.edge_target[edge]
                        pending.node[filled] = output(arena, tables.edge_marks[edge], event, rest)
                        pending.cell[filled] = NONE
                        filled += 1
                skip = tables.skip[row]
                if skip == state:
                    if tables.accepts[state]:
                        report(
                            found,
                            event,
                            merged_node(arena, cells, entries, entry, oldest, pending.merging),
                            oldest,
                        )
                    continue
                dropped = True
                if skip == DEAD:
                    free_list(cells, head)
                else:
                    pending.target[filled] = skip
                    pending.cell[filled] = head
                    pending.length[filled] = entries.length[entry]
                    pending.node[filled] = NONE
                    filled += 1
                entries.head[entry] = NONE
            if dropped:
                unlink_dropped(entries, partitions, partition)

            # 3. Write the new ones.
            mapped = filled > 2
            if mapped:
                entry = partitions.first[partition]
                while entry != NONE:
                    pending.where[entries.state[entry]] = entry
                    entry = entries.next[entry]
            for number in range(filled):
                state = pending.target[number]
                cell = pending.cell[number]
                node = pending.node[number]
                if tables.accepts[state]:
                    if cell != NONE:
                        report(found, event, merge(arena, cells, cell, oldest, pending.merging), oldest)
                    else:
                        report(found, event, node, oldest)
                if not tables.continues[state]:
                    if cell != NONE:
                        free_list(cells, cell)
                    continue
                entry = pending.where[state] if mapped else find_entry(entries, partitions, partition, state)
                if entry == NONE:
                    if cell == NONE:
                        entry = new_entry(
                            entries, partitions, partition, state, new_cell(cells, node, NONE), 1
                        )
                    else:
                        entry = new_entry(entries, partitions, partition, state, cell, pending.length[number])
                    if mapped:
                        pending.where[state] = entry
                elif cell == NONE:
                    add_node(arena, cells, entries, entry, node, oldest, pending.merging)
                else:
                    add_list(
                        arena, cells, entries, entry, cell, pending.length[number], oldest, pending.merging
                    )
            if mapped:
                entry = partitions.first[partition]
                while entry != NONE:
                    pending.where[entries.state[entry]] = NONE
                    entry = entries.next[entry]
            if is_consumed(partitions, partition, cursor, consume, found.size[0] > seen):
                drop_all(cells, entries, partitions, partition)
        is_read(partitions, partition, events, place, cursor, in_gap, touched)
    return DONE
