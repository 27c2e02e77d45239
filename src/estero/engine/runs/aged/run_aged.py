"""Recognition where the age of runs counts: as `run_cea`, but runs move on by themselves as time goes by.

In a state that compares ages, runs wait in a queue (queues.py), from which those leave whose age passes the
next length that makes a difference. Everywhere else they are in union-lists as ever.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import CONSUME_ANY_ASKED, DONE, FULL, GROW, Found, automaton_cursor_of, report
from estero.engine.kernels import FLAG, INT, Grid, inlined, kernel, pool, step
from estero.engine.runs.aged.queues import (
    MOST_TREES,
    Queues,
    Waiting,
    free_run,
    free_runs,
    is_unmade,
    latest_start,
    merge_queues,
    no_queue,
    pop,
    push,
    turn,
    union_of,
)
from estero.engine.runs.run_cea import (
    DEAD,
    IDLE,
    MISSING,
    Entries,
    Events,
    Partitions,
    Pending,
    Tables,
    add_list,
    add_node,
    find_entry,
    is_behind,
    is_consumed,
    is_forgotten,
    is_read,
    missing,
    new_entry,
)
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.schema import STATES, data, scratch
from estero.engine.store.tecs import Cells, bottom, free_list, new_cell, output

Cursor = automaton_cursor_of("need_waiting", "need_cells", "need_entries", "need_pending")
"""`need_waiting` is runs in queues."""

NEVER = -1


@pool
class Ages(NamedTuple):
    """At which ages runs move on: length int64[states, clocks] (NEVER: at none), and later int32 alike.

    `later` is the state after that, or DEAD. queued int8[states]: whether there is any such age.
    """

    length: Grid[np.int64] = data(NEVER, length=STATES, axes=("clocks",))
    later: Grid[np.int32] = data(DEAD, length=STATES, axes=("clocks",))
    queued: NDArray[np.int8] = data(0, length=STATES)


@pool
class Aged(NamedTuple):
    """What the kernels below work on; `pending` and `trees` are scratch."""

    arena: Arena
    cells: Cells
    entries: Entries
    queues: Queues
    waiting: Waiting
    partitions: Partitions
    pending: Pending
    trees: Grid[np.int32] = scratch(length="levels", axes=(MOST_TREES,))


@kernel(Cells, Entries, Queues, Waiting, Partitions, INT)
def drop_partition(cells, entries, queues, waiting, partitions, partition):  # type: ignore[no-untyped-def]
    """Forgets every run of a partition."""
    entry = partitions.first[partition]
    while entry != NONE:
        following = entries.next[entry]
        free_runs(cells, entries, queues, waiting, entry)
        entries.next[entry] = entries.free[0]
        entries.free[0] = entry
        entries.free[1] += 1
        entry = following
    partitions.first[partition] = NONE


@step
def unlink_empty(entries, queues, partitions, partition):  # type: ignore[no-untyped-def]
    """Takes the entries that hold nothing out of the partition."""
    entry = partitions.first[partition]
    before = NONE
    while entry != NONE:
        following = entries.next[entry]
        if entries.head[entry] == NONE and queues.oldest[entry] == NONE:
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
def entry_of(entries, queues, partitions, partition, state):  # type: ignore[no-untyped-def]
    """An entry for `state` that holds nothing yet."""
    entry = new_entry(entries, partitions, partition, state, NONE, 0)
    no_queue(queues, entry)
    return entry


@inlined
def passed(ages, state, waiting, run, events, place):  # type: ignore[no-untyped-def]
    """A clock by which a run in `state` is so old at the event at `place` that it moves on, or NONE."""
    for clock in range(ages.length.shape[1]):
        length = ages.length[state, clock]
        if length != NEVER:
            # What comes later is not smaller: the difference fits into 64 bits without a sign.
            age = np.uint64(events.values[place, clock]) - np.uint64(waiting.clock[run, clock])
            if age >= np.uint64(length):
                return np.int64(clock)
    return np.int64(NONE)


@inlined
def lacks(aged, cursor, nodes, scratch):  # type: ignore[no-untyped-def]
    """Whether there is no room for so many nodes, for scratch, and for a few cells and an entry; notes it."""
    if aged.arena.size[0] + nodes > aged.arena.kind.size:
        cursor.need_nodes = nodes
        return True
    few = 4
    if few > aged.cells.free[1] or few > aged.entries.free[1] or scratch > aged.pending.entry.size:
        cursor.need_cells = few
        cursor.need_entries = few
        cursor.need_pending = scratch
        return True
    return False


@inlined
def settle(aged, entry, node):  # type: ignore[no-untyped-def]
    """Puts the union of all runs of an entry in the place of its queue."""
    free_runs(aged.cells, aged.entries, aged.queues, aged.waiting, entry)
    aged.entries.head[entry] = new_cell(aged.cells, node, NONE)
    aged.entries.length[entry] = 1


@step
def attach(ages, aged, partition, entry, state, node, oldest):  # type: ignore[no-untyped-def]
    """Moves the queue of an entry to `state`, where `node`, its union, takes its place if no age counts."""
    entries, queues, waiting = aged.entries, aged.queues, aged.waiting
    other = find_entry(entries, aged.partitions, partition, state)
    if not ages.queued[state]:
        if other == NONE:
            settle(aged, entry, node)
            entries.state[entry] = state
            return
        free_runs(aged.cells, entries, queues, waiting, entry)
        cell = new_cell(aged.cells, node, NONE)
        add_list(aged.arena, aged.cells, entries, other, cell, 1, oldest, aged.pending.merging)
    elif other == NONE:
        entries.state[entry] = state
    else:
        first = queues.oldest[entry]
        count = queues.ahead[entry] + queues.after[entry]
        no_queue(queues, entry)
        free_list(aged.cells, entries.head[entry])
        entries.head[entry] = NONE
        merge_queues(aged.arena, aged.cells, entries, queues, waiting, other, first, count)


@step
def grow_older(ages, aged, events, cursor, place, partition, oldest):  # type: ignore[no-untyped-def]
    """Moves on the runs of a partition that are old enough at an event; DONE, or GROW to be called again."""
    arena, entries, queues, waiting = aged.arena, aged.entries, aged.queues, aged.waiting
    changed = True
    emptied = False
    while changed:
        changed = False
        entry = aged.partitions.first[partition]
        while entry != NONE:
            following = entries.next[entry]
            while queues.oldest[entry] != NONE:
                state = entries.state[entry]
                clock = passed(ages, state, waiting, queues.oldest[entry], events, place)
                if clock == NONE:
                    break
                target = ages.later[state, clock]
                count = np.int64(queues.ahead[entry]) + queues.after[entry]
                length = entries.length[entry]
                room = 3 * count + 2 * length + 24
                other = NONE if target == DEAD else find_entry(entries, aged.partitions, partition, target)
                if other != NONE:
                    room += 2 * entries.length[other]
                    length = max(length, entries.length[other])
                changed = True
                # All of them at once, or one.
                if passed(ages, state, waiting, queues.newest[entry], events, place) == clock:
                    if target == DEAD:
                        free_runs(aged.cells, entries, queues, waiting, entry)
                        emptied = True
                        break
                    if lacks(aged, cursor, room, count + length + 2):
                        unlink_empty(entries, queues, aged.partitions, partition)
                        return GROW
                    node = NONE
                    if not ages.queued[target]:
                        if is_unmade(entries, queues, entry):
                            turn(
                                arena, aged.cells, entries, queues, waiting, entry, aged.pending.merging,
                                aged.trees,
                            )  # fmt: skip
                        node = union_of(
                            arena, aged.cells, entries, queues, waiting, entry, oldest, aged.pending.merging
                        )
                    attach(ages, aged, partition, entry, target, node, oldest)
                    emptied = True
                    continue
                if queues.ahead[entry] == 0:
                    if lacks(aged, cursor, room, count + length + 2):
                        unlink_empty(entries, queues, aged.partitions, partition)
                        return GROW
                    turn(arena, aged.cells, entries, queues, waiting, entry, aged.pending.merging, aged.trees)
                if target == DEAD:
                    free_run(waiting, pop(queues, waiting, entry))
                    continue
                if lacks(aged, cursor, 2 * length + 24, length + 2):
                    unlink_empty(entries, queues, aged.partitions, partition)
                    return GROW
                run = pop(queues, waiting, entry)
                if other == NONE:
                    other = entry_of(entries, queues, aged.partitions, partition, target)
                node = waiting.node[run]
                if not ages.queued[target]:
                    free_run(waiting, run)
                    if entries.head[other] == NONE:
                        entries.head[other] = new_cell(aged.cells, node, NONE)
                        entries.length[other] = 1
                    else:
                        add_node(arena, aged.cells, entries, other, node, oldest, aged.pending.merging)
                    continue
                last = queues.newest[other]
                if last == NONE or arena.event[waiting.node[last]] <= arena.event[node]:
                    push(
                        arena, aged.cells, entries, queues, waiting, other, run, oldest, aged.pending.merging
                    )
                else:
                    waiting.next[run] = NONE
                    merge_queues(arena, aged.cells, entries, queues, waiting, other, run, 1)
            entry = following
    if emptied:
        unlink_empty(entries, queues, aged.partitions, partition)
    return DONE


@kernel(Tables, Ages, Aged, Found, Events, Cursor, FLAG, INT)
def advance(tables, ages, aged, found, events, cursor, gaps, consume):  # type: ignore[no-untyped-def]
    """Processes events from cursor.at on, until one of the codes; resumable with more room.

    Loop invariant: as that of `run_cea.advance`. Runs have moved on by age before an event is read.
    """
    arena, cells, entries, queues, waiting, partitions, pending, trees = aged
    while cursor.at < cursor.last:
        if consume >= CONSUME_ANY_ASKED and found.size[0] > 0:
            return FULL
        place = cursor.at
        event = cursor.first + place
        partition = events.partition[place]
        oldest = events.oldest[place]
        event_class = events.event_class[place]
        if is_forgotten(partitions, partition, cursor, consume):
            drop_partition(cells, entries, queues, waiting, partitions, partition)
        in_gap = is_behind(partitions, partition, events, place, gaps)
        if in_gap:
            event_class = 0
        elif grow_older(ages, aged, events, cursor, place, partition, oldest) == GROW:
            return GROW

        # 1. Look up every row; count the room.
        touched = 0
        lengths = np.int64(0)
        fills = np.int64(0)
        entry = partitions.first[partition]
        while entry != NONE:
            row = tables.row_of[entries.state[entry], event_class]
            lengths += entries.length[entry] + 1
            if row != IDLE:
                if row == MISSING:
                    return missing(cursor, entries.state[entry], event_class)
                if is_unmade(entries, queues, entry):
                    count = queues.after[entry]
                    if lacks(aged, cursor, 3 * count + 8, count):
                        return GROW
                    turn(arena, cells, entries, queues, waiting, entry, pending.merging, trees)
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
            if (
                2 * fills > cells.free[1]
                or fills > entries.free[1]
                or fills > waiting.free[1]
                or lengths + fills > pending.entry.size
            ):
                cursor.need_cells = 2 * fills
                cursor.need_entries = fills
                cursor.need_waiting = fills
                cursor.need_pending = lengths + fills
                return GROW
            if found.size[0] + fills > found.event.size:
                return FULL
            seen = found.size[0]

            # 2. Read the old lists: new runs, marks, moves. A queue that moves stays where it is, stateless.
            filled = 0
            if first_row != IDLE:
                for edge in range(tables.first[first_row], tables.first[first_row + 1]):
                    pending.target[filled] = tables.edge_target[edge]
                    pending.node[filled] = output(arena, tables.edge_marks[edge], event, NONE)
                    pending.cell[filled] = NONE
                    pending.length[filled] = 0
                    filled += 1
                if tables.skip[first_row] != DEAD:
                    pending.target[filled] = tables.skip[first_row]
                    pending.node[filled] = bottom(arena, event)
                    pending.cell[filled] = NONE
                    pending.length[filled] = 0
                    filled += 1
            dropped = False
            for number in range(touched):
                entry = pending.entry[number]
                row = pending.row[number]
                state = entries.state[entry]
                if latest_start(arena, cells, entries, queues, waiting, entry) < oldest:
                    free_runs(cells, entries, queues, waiting, entry)
                    dropped = True
                    continue
                skip = tables.skip[row]
                rest = NONE
                stays_silently = skip == state and not tables.accepts[state]
                if tables.first[row] != tables.first[row + 1] or not (stays_silently or skip == DEAD):
                    rest = union_of(arena, cells, entries, queues, waiting, entry, oldest, pending.merging)
                for edge in range(tables.first[row], tables.first[row + 1]):
                    pending.target[filled] = tables.edge_target[edge]
                    pending.node[filled] = output(arena, tables.edge_marks[edge], event, rest)
                    pending.cell[filled] = NONE
                    pending.length[filled] = 0
                    filled += 1
                if skip == state:
                    if tables.accepts[state]:
                        report(found, event, rest, oldest)
                    continue
                dropped = True
                if skip == DEAD:
                    free_runs(cells, entries, queues, waiting, entry)
                    continue
                pending.target[filled] = skip
                pending.node[filled] = rest
                if queues.oldest[entry] != NONE:
                    pending.cell[filled] = entry
                    pending.length[filled] = NONE
                    entries.state[entry] = DEAD
                else:
                    pending.cell[filled] = entries.head[entry]
                    pending.length[filled] = entries.length[entry]
                    entries.head[entry] = NONE
                filled += 1
            if dropped:
                unlink_empty(entries, queues, partitions, partition)

            # 3. Write the new ones.
            emptied = False
            for number in range(filled):
                state = pending.target[number]
                cell = pending.cell[number]
                node = pending.node[number]
                length = pending.length[number]
                if tables.accepts[state]:
                    report(found, event, node, oldest)
                if length == NONE:
                    if tables.continues[state]:
                        attach(ages, aged, partition, cell, state, node, oldest)
                    else:
                        free_runs(cells, entries, queues, waiting, cell)
                    emptied = True
                    continue
                if not tables.continues[state]:
                    if length > 0:
                        free_list(cells, cell)
                    continue
                entry = find_entry(entries, partitions, partition, state)
                if entry == NONE:
                    entry = entry_of(entries, queues, partitions, partition, state)
                if length > 0:
                    if entries.head[entry] == NONE:
                        entries.head[entry] = cell
                        entries.length[entry] = length
                    else:
                        add_list(arena, cells, entries, entry, cell, length, oldest, pending.merging)
                elif ages.queued[state]:
                    run = waiting.free[0]
                    waiting.free[0] = waiting.next[run]
                    waiting.free[1] -= 1
                    waiting.node[run] = node
                    for clock in range(ages.length.shape[1]):
                        waiting.clock[run, clock] = events.values[place, clock]
                    push(arena, cells, entries, queues, waiting, entry, run, oldest, pending.merging)
                elif entries.head[entry] == NONE:
                    entries.head[entry] = new_cell(cells, node, NONE)
                    entries.length[entry] = 1
                else:
                    add_node(arena, cells, entries, entry, node, oldest, pending.merging)
            if emptied:
                unlink_empty(entries, queues, partitions, partition)
            if is_consumed(partitions, partition, cursor, consume, found.size[0] > seen):
                drop_partition(cells, entries, queues, waiting, partitions, partition)
        is_read(partitions, partition, events, place, cursor, in_gap, touched)
    return DONE
