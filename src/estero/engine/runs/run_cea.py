"""Recognition: event by event, union-lists are moved between states (CORE, Algorithm 1).

The paper rebuilds its table of states at every event. Here a state that only waits is not touched, so the
cost of an event is that of its changes. Lists stay sorted because two of them are merged by their heads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, GROW, Reported, automaton_cursor_of, report
from estero.engine.kernels import FLAG, INT, Grid, inlined, kernel, pool, step
from estero.engine.runs.reading import missing, read_events, within_bound
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.lists import give_back, take_row
from estero.engine.store.schema import STATES, data, derived, free_rows, heads, own, ref, scratch
from estero.engine.store.tecs import Cells, bottom, free_list, insert_behind, merge, new_cell, output

MISSING = -1
IDLE = -2
DEAD = -1
ANY_FAR = -1

Cursor: Any = automaton_cursor_of("need_cells", "need_entries", "need_pending")


@pool
class Tables(NamedTuple):
    """The part of the deterministic automaton that is known so far.

    row_of int32[states, classes]: a row, IDLE (stays, marks nothing, accepts nothing) or MISSING. Row r has
    skip[r] (state or DEAD) and edges first[r] … first[r+1]-1 in edge_marks (label-set id), edge_target.
    accepts, continues int8[states]. live int8[states, registers]: whether a check can still read a register.
    reach int64[states, registers]: how far a register may be below its clock before the run is hopeless, or
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
    """The active states of partitions, with their union-lists; `merged` is a list's one node, else NONE."""

    state: NDArray[np.int32] = ref(STATES, once=True)
    head: NDArray[np.int32] = heads("cells")
    length: NDArray[np.int32] = derived(counts="cells")
    merged: NDArray[np.int32] = derived(NONE)
    next: NDArray[np.int32] = own()
    free: NDArray[np.int64] = free_rows()


@pool
class Partitions(NamedTuple):
    """The partitions: first entry or group int32; ordinal of the last event and generation int64.

    `step` int64 is the amount that the next mark adds to a rank, `blocked` int64 an event at or before which
    a start may overlap what ended earlier (see `run_split`).
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
    end. values int64[n, V] are NULL unless valid bool[n, V] is true.
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

    Touched entries and their rows; the targets of nodes and of whole lists (by cell and length); where[state]
    is that state's entry while one step writes.
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
    """The arrays that the kernels below work on: nodes, union-lists, entries, partitions, scratch."""

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
        give_back(entries, entry)
        entry = following
    partitions.first[partition] = NONE


@inlined
def unlink(entries, partitions, partition, before, entry):  # type: ignore[no-untyped-def]
    """Removes an entry, which is linked from `before` (NONE: it is the first), from the partition."""
    if before == NONE:
        partitions.first[partition] = entries.next[entry]
    else:
        entries.next[before] = entries.next[entry]
    give_back(entries, entry)


@step
def unlink_dropped(entries, partitions, partition):  # type: ignore[no-untyped-def]
    """Removes the entries whose list is gone (head NONE) from the partition."""
    entry = partitions.first[partition]
    before = NONE
    while entry != NONE:
        following = entries.next[entry]
        if entries.head[entry] == NONE:
            unlink(entries, partitions, partition, before, entry)
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
    """Makes an entry for `state` with the list at `head`, first in its partition."""
    entry = take_row(entries)
    entries.state[entry] = state
    entries.head[entry] = head
    entries.length[entry] = length
    entries.merged[entry] = NONE
    entries.next[entry] = partitions.first[partition]
    partitions.first[partition] = entry
    return entry


@inlined
def add_node(arena, cells, entries, entry, node, oldest, scratch):  # type: ignore[no-untyped-def]
    """Adds a node that is not a union to an entry's list.

    A newer start becomes the head, and the previous list collapses into one node behind it; this bounds the
    list by the number of states.
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
def look_up(tables, pools, cursor, here, make_ready):  # type: ignore[no-untyped-def]
    """Notes in `pending` the entries of a partition that the current event affects, and their rows.

    Returns a code, the most fills to be written, and with what: how many entries are touched, the row of runs
    that begin, and how many cells there are, one more for each entry. ``make_ready(pools, cursor, entry)``
    says whether a touched entry can be read.

    A fill is written for the runs of an edge, for an entry that moves or is reported, and for unmarked new
    runs.
    """
    entries, partitions, pending = pools.entries, pools.partitions, pools.pending
    touched = 0
    visited = 0
    lengths = np.int64(0)
    fills = np.int64(0)
    entry = partitions.first[here.partition]
    while entry != NONE:
        row = tables.row_of[entries.state[entry], here.event_class]
        lengths += entries.length[entry]
        visited += 1
        if row != IDLE:
            if row == MISSING:
                return (
                    missing(cursor, entries.state[entry], here.event_class),
                    fills,
                    0,
                    row,
                    visited,
                    lengths,
                )
            if not make_ready(pools, cursor, entry):
                return GROW, fills, 0, row, visited, lengths
            if touched == pending.entry.size:
                cursor.need_pending = 2 * touched + 2
                return GROW, fills, 0, row, visited, lengths
            pending.entry[touched] = entry
            pending.row[touched] = row
            touched += 1
            fills += tables.first[row + 1] - tables.first[row] + 2
        entry = entries.next[entry]
    first_row = IDLE
    if not here.in_gap:
        first_row = tables.row_of[0, here.event_class]
        if first_row == MISSING:
            return missing(cursor, 0, here.event_class), fills, 0, first_row, visited, lengths
        if first_row != IDLE:
            fills += tables.first[first_row + 1] - tables.first[first_row] + 1
    return DONE, fills, touched, first_row, visited, lengths


@inlined
def lacks(pools, cursor, nodes, cells, entries, scratch):  # type: ignore[no-untyped-def]
    """Whether fewer nodes, cells, entries or places of scratch are free than these; notes the lack."""
    if pools.arena.size[0] + nodes > pools.arena.kind.size:
        cursor.need_nodes = nodes
        return True
    if cells > pools.cells.free[1] or entries > pools.entries.free[1] or scratch > pools.pending.entry.size:
        cursor.need_cells = cells
        cursor.need_entries = entries
        cursor.need_pending = scratch
        return True
    return False


@inlined
def capacity_for(pools, reported, cursor, nodes, fills, lengths):  # type: ignore[no-untyped-def]
    """DONE if `nodes` nodes and `fills` fills fit; else FULL or GROW, and notes the lack.

    A fill takes at most two cells, where its node becomes a head, one entry, and one root. No list becomes
    longer than all there are (`lengths`) and one cell for each fill: merging it takes that much scratch.
    """
    if lacks(pools, cursor, nodes, 2 * fills, fills, lengths + fills):
        return GROW
    return FULL if reported.size[0] + fills > reported.event.size else DONE


@inlined
def fill(pending, filled, target, node):  # type: ignore[no-untyped-def]
    """Notes that a node goes to a state; returns how many are noted."""
    pending.target[filled] = target
    pending.node[filled] = node
    pending.cell[filled] = NONE
    pending.length[filled] = 0
    return filled + 1


@inlined
def mark(tables, arena, pending, row, event, rest, filled):  # type: ignore[no-untyped-def]
    """Notes the effect of a row's edges on the runs in `rest` (NONE: on those that begin)."""
    for edge in range(tables.first[row], tables.first[row + 1]):
        node = output(arena, tables.edge_marks[edge], event, rest)
        filled = fill(pending, filled, tables.edge_target[edge], node)
    return filled


@inlined
def begin(tables, arena, pending, first_row, event):  # type: ignore[no-untyped-def]
    """Notes the runs that begin; returns how many nodes are noted."""
    filled = 0
    if first_row != IDLE:
        filled = mark(tables, arena, pending, first_row, event, NONE, filled)
        if tables.skip[first_row] != DEAD:
            filled = fill(pending, filled, tables.skip[first_row], bottom(arena, event))
    return filled


@inlined
def is_ready(plain, cursor, entry):  # type: ignore[no-untyped-def]  # noqa: ARG001 - see `look_up`
    """Whether an entry can be read: always true here."""
    return True


@inlined
def most_nodes(lengths, fills):  # type: ignore[no-untyped-def]
    """An upper bound on the nodes of a step that writes `fills` over lists of `lengths` cells in all.

    One for each fill, for marked or new runs. A list is merged at most once to be read, once more if it moves
    and is reported, and once to be collapsed into one cell, or two: over the cells that were there 3 *
    lengths, and over those that came behind them 2 * fills. Putting a fill into its place behind a head takes
    at most one `unite`, of three.
    """
    return 3 * lengths + 6 * fills


@inlined
def look(tables, plain, reported, events, cursor, here):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Looks up every row; see `read_events`."""
    code, fills, touched, first_row, _, lengths = look_up(tables, plain, cursor, here, is_ready)
    if code == DONE and fills > 0:
        code = capacity_for(plain, reported, cursor, most_nodes(lengths, fills), fills, lengths)
    return code, fills, (touched, first_row, lengths)


@inlined
def write(tables, plain, reported, events, cursor, here, fills, plan):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Writes the changes of an event; see `read_events`."""
    write_by(tables, plain, reported, here, fills, plan, merged_node, merge, add_node, add_list)


@inlined
def write_by(tables, plain, reported, here, fills, plan, read, united, put, put_list):  # type: ignore[no-untyped-def]
    """Writes the changes of an event: each kernel has its own way to keep lists (see `run_first`).

    - ``read(arena, cells, entries, entry, oldest, scratch)``: the union of an entry's list as one node;
    - ``united(arena, cells, head, oldest, scratch)``: the same for a list that is no entry's;
    - ``put(arena, cells, entries, entry, node, oldest, scratch)``: adds a node to an entry's list;
    - ``put_list(arena, cells, entries, entry, cell, length, oldest, scratch)``: adds a whole list to it.
    """
    arena, cells, entries, partitions, pending = plain
    _, event, _, partition, oldest, _ = here
    touched, first_row, lengths = plan
    nodes_before = arena.size[0]
    cells_before = cells.free[1]
    entries_before = entries.free[1]
    reported_before = reported.size[0]

    # 1. Read the old lists: new runs, marks, moves.
    filled = begin(tables, arena, pending, first_row, event)
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
            rest = read(arena, cells, entries, entry, oldest, pending.merging)
            filled = mark(tables, arena, pending, row, event, rest, filled)
        skip = tables.skip[row]
        if skip == state:
            if tables.accepts[state]:
                node = read(arena, cells, entries, entry, oldest, pending.merging)
                report(reported, event, node, oldest)
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
    within_bound(filled, fills)

    # 2. Write the new ones.
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
                report(reported, event, united(arena, cells, cell, oldest, pending.merging), oldest)
            else:
                report(reported, event, node, oldest)
        if not tables.continues[state]:
            if cell != NONE:
                free_list(cells, cell)
            continue
        entry = pending.where[state] if mapped else find_entry(entries, partitions, partition, state)
        if entry == NONE:
            if cell == NONE:
                entry = new_entry(entries, partitions, partition, state, new_cell(cells, node, NONE), 1)
            else:
                entry = new_entry(entries, partitions, partition, state, cell, pending.length[number])
            if mapped:
                pending.where[state] = entry
        elif cell == NONE:
            put(arena, cells, entries, entry, node, oldest, pending.merging)
        else:
            put_list(arena, cells, entries, entry, cell, pending.length[number], oldest, pending.merging)
        within_bound(entries.length[entry], lengths + fills)
        within_bound(cells_before - cells.free[1], 2 * fills)
        within_bound(entries_before - entries.free[1], fills)
    if mapped:
        entry = partitions.first[partition]
        while entry != NONE:
            pending.where[entries.state[entry]] = NONE
            entry = entries.next[entry]
    within_bound(arena.size[0] - nodes_before, most_nodes(lengths, fills))
    within_bound(reported.size[0] - reported_before, fills)


@inlined
def drop(tables, plain, partition):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Forgets every run of a partition; see `read_events`."""
    drop_all(plain.cells, plain.entries, plain.partitions, partition)


@kernel(Tables, Plain, Reported, Events, Cursor, FLAG, INT)
def advance(tables, plain, reported, events, cursor, gaps, consume):  # type: ignore[no-untyped-def]
    """Reads events; see `read_events`.

    Loop invariant: at the top, the entries of every partition have pairwise different states.
    """
    return read_events(tables, plain, reported, events, cursor, gaps, consume, look, write, drop)
