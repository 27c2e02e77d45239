"""Recognition where the age of runs matters: as `run_cea`, but runs change states by themselves with time.

In a state that compares ages, runs wait in a queue (queues.py), which they leave when their age passes the
next length that makes a difference. In all other states they are in union-lists as usual.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, GROW, Reported, automaton_cursor_of, report
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
from estero.engine.runs.reading import read_events, within_bound
from estero.engine.runs.run_cea import (
    DEAD,
    Entries,
    Events,
    Partitions,
    Pending,
    Tables,
    add_list,
    add_node,
    begin,
    capacity_for,
    find_entry,
    lacks,
    look_up,
    mark,
    new_entry,
    unlink,
)
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.lists import give_back, take_row
from estero.engine.store.schema import STATES, data, scratch
from estero.engine.store.tecs import Cells, free_list, new_cell

Cursor: Any = automaton_cursor_of("need_waiting", "need_cells", "need_entries", "need_pending")
"""`need_waiting` is the missing capacity for runs in queues."""

NEVER = -1


@pool
class Ages(NamedTuple):
    """The ages at which runs change states: length int64[states, clocks] (NEVER: at none), later int32 alike.

    `later` is the state after that, or DEAD. queued int8[states]: whether there is any such age.
    """

    length: Grid[np.int64] = data(NEVER, length=STATES, axes=("clocks",))
    later: Grid[np.int32] = data(DEAD, length=STATES, axes=("clocks",))
    queued: NDArray[np.int8] = data(0, length=STATES)


@pool
class Aged(NamedTuple):
    """The arrays that the kernels below work on; `pending` and `trees` are scratch."""

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
        give_back(entries, entry)
        entry = following
    partitions.first[partition] = NONE


@step
def unlink_empty(entries, queues, partitions, partition):  # type: ignore[no-untyped-def]
    """Removes the entries that hold nothing from the partition."""
    entry = partitions.first[partition]
    before = NONE
    while entry != NONE:
        following = entries.next[entry]
        if entries.head[entry] == NONE and queues.oldest[entry] == NONE:
            unlink(entries, partitions, partition, before, entry)
        else:
            before = entry
        entry = following


@inlined
def entry_of(entries, queues, partitions, partition, state):  # type: ignore[no-untyped-def]
    """Makes an entry for `state` that holds nothing yet."""
    entry = new_entry(entries, partitions, partition, state, NONE, 0)
    no_queue(queues, entry)
    return entry


@inlined
def new_run(waiting, node, events, place):  # type: ignore[no-untyped-def]
    """Makes a waiting run, which has marked the event at `place` last."""
    run = take_row(waiting)
    waiting.node[run] = node
    for clock in range(waiting.clock.shape[1]):
        waiting.clock[run, clock] = events.values[place, clock]
    return run


@inlined
def passed(ages, state, waiting, run, events, place):  # type: ignore[no-untyped-def]
    """A clock by which a run in `state` is old enough to leave it at the event at `place`, or NONE."""
    for clock in range(ages.length.shape[1]):
        length = ages.length[state, clock]
        if length != NEVER:
            # Later values are not smaller: the difference fits into 64 bits without a sign.
            age = np.uint64(events.values[place, clock]) - np.uint64(waiting.clock[run, clock])
            if age >= np.uint64(length):
                return np.int64(clock)
    return np.int64(NONE)


@inlined
def settle(aged, entry, node):  # type: ignore[no-untyped-def]
    """Replaces the queue of an entry by the union of all its runs."""
    free_runs(aged.cells, aged.entries, aged.queues, aged.waiting, entry)
    aged.entries.head[entry] = new_cell(aged.cells, node, NONE)
    aged.entries.length[entry] = 1


@step
def attach(ages, aged, partition, entry, state, node, oldest):  # type: ignore[no-untyped-def]
    """Moves the queue of an entry to `state`, replaced by its union `node` if no age matters there."""
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


@inlined
def move_all(ages, aged, cursor, partition, entry, target, oldest):  # type: ignore[no-untyped-def]
    """Moves the runs of an entry to `target`, all at once; returns whether there was capacity for that.

    Nodes: turning its queue takes three for each run; its union one for each cell of its list; collapsing the
    other list one for each of its cells; putting a node into its place a `unite`, of three. One cell is for
    that node, and another one for a collapsed list behind it.
    """
    arena, cells, entries, queues, waiting, partitions, pending, trees = aged
    count = np.int64(queues.ahead[entry]) + queues.after[entry]
    length = np.int64(entries.length[entry])
    other = find_entry(entries, partitions, partition, target)
    longest = length if other == NONE else max(length, entries.length[other])
    nodes = 3 * count + 2 * longest + 3
    if lacks(aged, cursor, nodes, 2, 0, max(count, longest)):
        return False
    nodes_before = arena.size[0]
    cells_before = cells.free[1]
    node = NONE
    if not ages.queued[target]:
        if is_unmade(entries, queues, entry):
            turn(arena, cells, entries, queues, waiting, entry, pending.merging, trees)
        node = union_of(arena, cells, entries, queues, waiting, entry, oldest, pending.merging)
    attach(ages, aged, partition, entry, target, node, oldest)
    within_bound(arena.size[0] - nodes_before, nodes)
    within_bound(cells_before - cells.free[1], 2)
    return True


@inlined
def move_oldest(ages, aged, cursor, partition, entry, target, oldest):  # type: ignore[no-untyped-def]
    """Moves the oldest run of an entry to `target`, or drops it; returns whether there was capacity.

    Nodes, cells: as in `move_all`, except that no union of the queue is made.
    """
    arena, cells, entries, queues, waiting, partitions, pending, trees = aged
    nodes_before = arena.size[0]
    cells_before = cells.free[1]
    entries_before = entries.free[1]
    count = np.int64(0)
    if queues.ahead[entry] == 0:
        count = np.int64(queues.after[entry])
        if lacks(aged, cursor, 3 * count, 0, 0, count):
            return False
        turn(arena, cells, entries, queues, waiting, entry, pending.merging, trees)
    if target == DEAD:
        free_run(waiting, pop(queues, waiting, entry))
        return True
    other = find_entry(entries, partitions, partition, target)
    length = np.int64(0) if other == NONE else np.int64(entries.length[other])
    if lacks(aged, cursor, length + 3, 2, 1, length):
        return False
    run = pop(queues, waiting, entry)
    if other == NONE:
        other = entry_of(entries, queues, partitions, partition, target)
    node = waiting.node[run]
    last = queues.newest[other]
    if not ages.queued[target]:
        free_run(waiting, run)
        if entries.head[other] == NONE:
            entries.head[other] = new_cell(cells, node, NONE)
            entries.length[other] = 1
        else:
            add_node(arena, cells, entries, other, node, oldest, pending.merging)
    elif last == NONE or arena.event[waiting.node[last]] <= arena.event[node]:
        push(arena, cells, entries, queues, waiting, other, run, oldest, pending.merging)
    else:
        waiting.next[run] = NONE
        merge_queues(arena, cells, entries, queues, waiting, other, run, 1)
    within_bound(arena.size[0] - nodes_before, 3 * count + length + 3)
    within_bound(cells_before - cells.free[1], 2)
    within_bound(entries_before - entries.free[1], 1)
    return True


@step
def grow_older(ages, aged, events, cursor, place, partition, oldest):  # type: ignore[no-untyped-def]
    """Moves the runs of a partition that are old enough at an event; DONE, or GROW to be called again."""
    cells, entries, queues, waiting = aged.cells, aged.entries, aged.queues, aged.waiting
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
                changed = True
                target = ages.later[state, clock]
                if passed(ages, state, waiting, queues.newest[entry], events, place) != clock:
                    is_moved = move_oldest(ages, aged, cursor, partition, entry, target, oldest)
                elif target == DEAD:
                    free_runs(cells, entries, queues, waiting, entry)
                    emptied = True
                    break
                else:
                    is_moved = move_all(ages, aged, cursor, partition, entry, target, oldest)
                    emptied = True
                if not is_moved:
                    unlink_empty(entries, queues, aged.partitions, partition)
                    return GROW
            entry = following
    if emptied:
        unlink_empty(entries, queues, aged.partitions, partition)
    return DONE


@inlined
def make_union(aged, cursor, entry):  # type: ignore[no-untyped-def]
    """Makes the union of an entry if there is none yet; returns whether there was capacity for that.

    Turning a queue takes three nodes for each run.
    """
    if is_unmade(aged.entries, aged.queues, entry):
        count = np.int64(aged.queues.after[entry])
        if lacks(aged, cursor, 3 * count, 0, 0, count):
            return False
        nodes_before = aged.arena.size[0]
        turn(
            aged.arena, aged.cells, aged.entries, aged.queues, aged.waiting, entry, aged.pending.merging,
            aged.trees,
        )  # fmt: skip
        within_bound(aged.arena.size[0] - nodes_before, 3 * count)
    return True


@inlined
def most_nodes(lengths, visited, fills):  # type: ignore[no-untyped-def]
    """An upper bound on the nodes of a step that writes `fills` over `visited` entries of `lengths` cells.

    One for each fill, for marked or new runs. The union of an entry is made at most once to be read, by one
    node for each cell of its list and one for the front of its queue; that union is what is reported. Lists
    are collapsed and nodes put into place as in `run_cea.most_nodes`.
    """
    return 2 * lengths + visited + 6 * fills


@inlined
def look(automaton, aged, reported, events, cursor, here):  # type: ignore[no-untyped-def]
    """Moves the runs that are old enough, and looks up every row; see `reading.read_events`.

    A fill takes at most one waiting run, besides what `capacity_for` provides.
    """
    tables, ages = automaton
    if not here.in_gap:
        code = grow_older(ages, aged, events, cursor, here.place, here.partition, here.oldest)
        if code != DONE:
            return code, np.int64(0), (0, np.int64(0), 0, np.int64(0))
    code, fills, touched, first_row, visited, lengths = look_up(tables, aged, cursor, here, make_union)
    if code == DONE and fills > 0:
        code = capacity_for(aged, reported, cursor, most_nodes(lengths, visited, fills), fills, lengths)
        if fills > aged.waiting.free[1]:
            cursor.need_waiting = fills
            code = GROW
    return code, fills, (touched, np.int64(first_row), visited, lengths)


@inlined
def write(automaton, aged, reported, events, cursor, here, fills, plan):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Writes what an event changes; see `reading.read_events`."""
    tables, ages = automaton
    arena, cells, entries, queues, waiting, partitions, pending, _ = aged
    place, event, _, partition, oldest, _ = here
    touched, first_row, visited, lengths = plan
    nodes_before = arena.size[0]
    cells_before = cells.free[1]
    entries_before = entries.free[1]
    waiting_before = waiting.free[1]
    reported_before = reported.size[0]

    # 1. Read the old lists: new runs, marks, moves. A moved queue stays in its place, without a state.
    filled = begin(tables, arena, pending, first_row, event)
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
        filled = mark(tables, arena, pending, row, event, rest, filled)
        if skip == state:
            if tables.accepts[state]:
                report(reported, event, rest, oldest)
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
    within_bound(filled, fills)

    # 2. Write the new ones.
    emptied = False
    for number in range(filled):
        state = pending.target[number]
        cell = pending.cell[number]
        node = pending.node[number]
        length = pending.length[number]
        if tables.accepts[state]:
            report(reported, event, node, oldest)
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
            run = new_run(waiting, node, events, place)
            push(arena, cells, entries, queues, waiting, entry, run, oldest, pending.merging)
        elif entries.head[entry] == NONE:
            entries.head[entry] = new_cell(cells, node, NONE)
            entries.length[entry] = 1
        else:
            add_node(arena, cells, entries, entry, node, oldest, pending.merging)
        within_bound(entries.length[entry], lengths + fills)
        within_bound(cells_before - cells.free[1], 2 * fills)
        within_bound(entries_before - entries.free[1], fills)
        within_bound(waiting_before - waiting.free[1], fills)
    if emptied:
        unlink_empty(entries, queues, partitions, partition)
    within_bound(arena.size[0] - nodes_before, most_nodes(lengths, visited, fills))
    within_bound(reported.size[0] - reported_before, fills)


@inlined
def drop(automaton, aged, partition):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Forgets every run of a partition; see `reading.read_events`."""
    drop_partition(aged.cells, aged.entries, aged.queues, aged.waiting, aged.partitions, partition)


@kernel(Tables, Ages, Aged, Reported, Events, Cursor, FLAG, INT)
def advance(tables, ages, aged, reported, events, cursor, gaps, consume):  # type: ignore[no-untyped-def]
    """Reads events; see `reading.read_events`.

    Loop invariant: as in `run_cea.advance`. Runs have changed states by age before an event is read.
    """
    return read_events((tables, ages), aged, reported, events, cursor, gaps, consume, look, write, drop)
