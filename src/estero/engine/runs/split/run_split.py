"""Recognition where states are split by registers and, under NEXT and LAST, by supports, too.

As `run_cea`, with the same union-lists; but runs in one state are kept apart by their registers, since only
runs with equal registers have the same futures, and under NEXT and LAST by their supports. Only supports
that can still be the best are kept (docs/architecture.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, GROW, Reported, automaton_cursor_of, report
from estero.engine.kernels import FLAG, INT, INT32S, Grid, inlined, kernel, pool, step
from estero.engine.runs.reading import missing, read_events, within_bound
from estero.engine.runs.run_cea import (
    ANY_FAR,
    DEAD,
    IDLE,
    MISSING,
    Events,
    Partitions,
    Tables,
    merged_node,
)
from estero.engine.runs.split.fronts import (
    Elements,
    Groups,
    Keys,
    drop_elements,
    drop_empty_groups,
    drop_hopeless,
    drop_key,
    drop_later,
    find_key,
    merge_front,
    new_element,
    new_group,
    new_key,
    slot_of_join,
)
from estero.engine.runs.split.ranks import LARGEST_STEP, NEXT, NO_ORDER, ranked, renumber_ranks
from estero.engine.runs.split.registers import SET, UNSET, Program, take_steps
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.schema import STATES, scratch
from estero.engine.store.tecs import Cells, bottom, output

Cursor: Any = automaton_cursor_of(
    "need_cells", "need_elements", "need_keys", "need_runs", "need_merging", "need_ranks"
)
"""The missing capacity: for cells, elements and keys of free rows, for the others in all."""

SKIP, STAY = -1, -2
"""Stand for a label-set id: the runs read the event unmarked and move; they stay, and accept."""


NOT_APART, LAST_ENDS, FIRST_ENDS = 0, 1, 2
"""Whether the complex events chosen for each start share no events, and which end each start has."""


@pool
class Taken(NamedTuple):
    """Scratch of one step: the runs that are taken, and their targets.

    key (NONE: a new run), mark (label set, SKIP or STAY), target state, first element of what goes there;
    int32. registers int64[runs, R] and status int8[runs, R] there. merging int32, where int32[states]: a
    state's group while one step writes. ranks int64: those of a partition while they are renumbered.
    """

    key: NDArray[np.int32] = scratch(length="runs")
    mark: NDArray[np.int32] = scratch(length="runs")
    target: NDArray[np.int32] = scratch(length="runs")
    first: NDArray[np.int32] = scratch(length="runs")
    registers: Grid[np.int64] = scratch(0, length="runs", axes=("registers",))
    status: Grid[np.int8] = scratch(0, length="runs", axes=("registers",))
    merging: NDArray[np.int32] = scratch(length="merging")
    where: NDArray[np.int32] = scratch(NONE, length=STATES)
    ranks: NDArray[np.int64] = scratch(length="ranks")


@pool
class Split(NamedTuple):
    """The arrays that the kernels below work on; `taken` is scratch."""

    arena: Arena
    cells: Cells
    elements: Elements
    keys: Keys
    groups: Groups
    partitions: Partitions
    taken: Taken


@pool
class Order(NamedTuple):
    """The supports that are kept: `order` is NO_ORDER, NEXT or LAST.

    `windowed` says whether runs that start later can outlive better ones; visible bool[label sets] which
    marks count for the support (if empty: all). With `per_start`, the best is reported for every start, and
    not for all together; then all runs have to mark the event with which they begin, so that supports tell
    starts apart. Of each start the last end is chosen then, or the first, and `apart` says whether the chosen
    ones of a partition share no events: by ascending start, each that does not begin before the last chosen
    one has ended.
    """

    order: int
    windowed: bool
    visible: NDArray[np.bool_]
    per_start: bool = False
    apart: int = NOT_APART


@kernel(Cells, Elements, Keys, Groups, INT32S, Partitions, INT)
def drop_partition(cells, elements, keys, groups, joins, partitions, partition):  # type: ignore[no-untyped-def]
    """Forgets every run of a partition."""
    group = partitions.first[partition]
    while group != NONE:
        while groups.first[group] != NONE:
            drop_key(cells, elements, keys, groups, joins, groups.first[group])
        group = groups.next[group]
    drop_empty_groups(groups, partitions, partition)


@inlined
def load_registers(keys, key, runs, run):  # type: ignore[no-untyped-def]
    """Copies the registers of a key (NONE: all unset) to those of a run."""
    for register in range(runs.registers.shape[1]):
        runs.registers[run, register] = keys.registers[key, register] if key != NONE else 0
        runs.status[run, register] = keys.status[key, register] if key != NONE else UNSET


@inlined
def clear_dead(live, runs, run, target):  # type: ignore[no-untyped-def]
    """Unsets the registers that no check in `target` or later reads."""
    for register in range(runs.registers.shape[1]):
        if not live[target, register]:
            runs.registers[run, register] = 0
            runs.status[run, register] = UNSET


@inlined
def joining(tables, program, row):  # type: ignore[no-untyped-def]
    """The number of a join that every edge of a row checks against one column, and that column; or NONE."""
    first = tables.first[row]
    for join in range(program.joins.size):
        column = program.columns[tables.edge_marks[first], join]
        for edge in range(first + 1, tables.first[row + 1]):
            if program.columns[tables.edge_marks[edge], join] != column:
                column = -1
        if column >= 0:
            return np.int64(join), np.int64(column)
    return np.int64(NONE), np.int64(NONE)


@step
def take_row(tables, program, keys, key, state, row, events, place, unseen, runs, count):  # type: ignore[no-untyped-def]
    """Writes the moves of a key (NONE: a new run) in `state` to runs `count` …; returns their new number.

    Needs capacity for one more run than the row has edges. Registers are those after the event.
    """
    for edge in range(tables.first[row], tables.first[row + 1]):
        mark = tables.edge_marks[edge]
        load_registers(keys, key, runs, count)
        if runs.registers.shape[1] == 0 or take_steps(
            program, mark, events.values, events.valid, place, unseen, runs.registers, runs.status, count
        ):
            runs.key[count] = key
            runs.mark[count] = mark
            runs.target[count] = tables.edge_target[edge]
            clear_dead(tables.live, runs, count, tables.edge_target[edge])
            count += 1
    skip = tables.skip[row]
    if skip != DEAD if key == NONE else skip != state or tables.accepts[state]:
        runs.key[count] = key
        runs.mark[count] = STAY if skip == state else SKIP
        runs.target[count] = skip
        load_registers(keys, key, runs, count)
        if skip != DEAD:
            clear_dead(tables.live, runs, count, skip)
        count += 1
    return count


@inlined
def offer(arena, cells, elements, element, event, oldest, best, order, per_start, reported, seen, scratch):  # type: ignore[no-untyped-def]
    """Reports an element at its end, under NEXT and LAST unless a better one is there; returns the best rank.

    reported[seen] … are the roots of this event. With `per_start` it is all elements from this one on.
    """
    rank = elements.rank[element]
    if per_start:
        while element != NONE:
            report(reported, event, merged_node(arena, cells, elements, element, oldest, scratch), oldest)
            element = elements.next[element]
        return best
    if rank > best:
        reported.size[0] = seen
        best = rank
    if order == NO_ORDER or rank == best:
        report(reported, event, merged_node(arena, cells, elements, element, oldest, scratch), oldest)
    return best


@inlined
def is_late(tables, program, keys, key, state, events, place):  # type: ignore[no-untyped-def]
    """Whether a key in `state` is hopeless: a register is too far below its clock for anything to follow."""
    for register in range(program.clock.size):
        column = program.clock[register]
        reach = tables.reach[state, register]
        if column >= 0 and reach != ANY_FAR and keys.status[key, register] == SET:
            value = np.uint64(events.values[place, column])
            if value - np.uint64(keys.registers[key, register]) >= np.uint64(reach):
                return True
    return False


@step
def drop_excluded(split, joins, partition, reported, seen, event, oldest, apart):  # type: ignore[no-untyped-def]
    """Drops the runs of a partition that start after a chosen one that has ended at `event`.

    reported[seen] … are the roots of this event. The oldest open start is chosen if it has an end and no
    older one, of those that are closed, has ended at or after it; then all that start up to its end are not.
    What is older ended at `blocked` at the latest, unless all that started up to its end was dropped with it.
    """
    arena, cells, elements, keys, groups, partitions, _ = split
    chosen = arena.start[reported.root[seen]]
    for place in range(seen + 1, reported.size[0]):
        chosen = min(chosen, arena.start[reported.root[place]])
    clear = chosen > partitions.blocked[partition]
    group = partitions.first[partition]
    while clear and group != NONE:
        key = groups.first[group]
        while key != NONE:
            element = keys.first[key]
            while element != NONE:
                start = arena.start[cells.node[elements.head[element]]]
                if start >= chosen:
                    break
                clear &= start < oldest
                element = elements.next[element]
            key = keys.next[key]
        group = groups.next[group]
    if not clear:
        partitions.blocked[partition] = event
        return
    if apart == FIRST_ENDS:
        drop_partition(cells, elements, keys, groups, joins, partitions, partition)
        return
    group = partitions.first[partition]
    while group != NONE:
        key = groups.first[group]
        while key != NONE:
            following = keys.next[key]
            drop_later(arena, cells, elements, keys, groups, joins, key, chosen)
            key = following
        group = groups.next[group]
    drop_empty_groups(groups, partitions, partition)


@inlined
def take_new(tables, program, split, events, cursor, here):  # type: ignore[no-untyped-def]
    """Takes the runs that begin; returns a code, and how many they are."""
    keys, runs = split.keys, split.taken
    if here.in_gap:
        return DONE, 0
    row = tables.row_of[0, here.event_class]
    if row == MISSING:
        return missing(cursor, 0, here.event_class), 0
    if row == IDLE:
        return DONE, 0
    most = tables.first[row + 1] - tables.first[row] + 1
    if most > runs.key.size:
        cursor.need_runs = most
        return GROW, 0
    return DONE, take_row(tables, program, keys, NONE, 0, row, events, here.place, here.in_gap, runs, 0)


@inlined
def elements_inside(arena, cells, elements, keys, key, oldest):  # type: ignore[no-untyped-def]
    """Drops the elements of a key that have left the window; returns how many remain, and their cells."""
    element = keys.first[key]
    while arena.start[cells.node[elements.head[element]]] < oldest:
        keys.first[key] = elements.next[element]
        elements.next[element] = NONE
        drop_elements(cells, elements, element)
        element = keys.first[key]
    count = np.int64(0)
    lengths = np.int64(0)
    while element != NONE:
        count += 1
        lengths += elements.length[element]
        element = elements.next[element]
    return count, lengths


@inlined
def take_keys(tables, program, split, events, cursor, here, group, row, taken):  # type: ignore[no-untyped-def]
    """Takes the moves of a group's keys by a row; returns a code, the runs so far, and their fills and cells.

    If every edge compares one register with the event's value and all others just stay, only the keys in two
    slots are visited: those with that value and those without one.
    """
    arena, cells, elements, keys, groups, _, runs = split
    place, _, _, _, oldest, in_gap = here
    state = groups.state[group]
    fills = np.int64(0)
    lengths = np.int64(0)
    most = tables.first[row + 1] - tables.first[row] + 1
    join = NONE
    column = NONE
    if tables.skip[row] == state and not tables.accepts[state]:
        join, column = joining(tables, program, row)
    base = 0
    wanted = UNSET
    value = np.int64(0)
    if join == NONE:
        key = groups.first[group]
    else:
        base = (1 + join) * keys.group.size
        slot = slot_of_join(keys, program.joins, group, 1 + join, value, wanted)
        key = keys.slot[slot] - base
    while True:
        while key >= 0:
            following = keys.next[key] if join == NONE else keys.link_next[base + key] - base
            if join != NONE:
                register = program.joins[join]
                if (
                    keys.group[key] != group
                    or keys.status[key, register] != wanted
                    or keys.registers[key, register] != value
                ):
                    key = following
                    continue
            if keys.newest[key] < oldest or is_late(tables, program, keys, key, state, events, place):
                drop_key(cells, elements, keys, groups, program.joins, key)
                key = following
                continue
            if taken + most > runs.key.size:
                cursor.need_runs = 2 * (taken + most)
                return GROW, taken, fills, lengths
            before = taken
            taken = take_row(tables, program, keys, key, state, row, events, place, in_gap, runs, taken)
            if taken > before:
                count, cells_of_key = elements_inside(arena, cells, elements, keys, key, oldest)
                fills += count * (taken - before)
                lengths += cells_of_key
            key = following
        if join == NONE or wanted == SET or in_gap or not events.valid[place, column]:
            return DONE, taken, fills, lengths
        wanted = SET
        value = events.values[place, column]
        slot = slot_of_join(keys, program.joins, group, 1 + join, value, wanted)
        key = keys.slot[slot] - base


@inlined
def is_visible(visible, mark):  # type: ignore[no-untyped-def]
    """Whether marking an event this way changes the support of a run."""
    return mark >= 0 and (visible.size == 0 or visible[mark])


@inlined
def step_of_ranks(split, cursor, partition, ordering, taken):  # type: ignore[no-untyped-def]
    """A code, and the amount that marking adds to a rank at the current event."""
    _, _, elements, keys, groups, partitions, runs = split
    order, _, visible, _, _ = ordering
    if order == NO_ORDER:
        return DONE, np.int64(0)
    marked = False
    for run in range(taken):
        marked |= is_visible(visible, runs.mark[run])
    if not marked:
        return DONE, np.int64(0)
    step = partitions.step[partition]
    if step == 0:
        count = ranked(elements, keys, groups, partitions, partition, runs.ranks)
        if count >= runs.ranks.size:
            cursor.need_ranks = count + 1
            return GROW, np.int64(0)
        renumber_ranks(elements, keys, groups, partitions, partition, order, runs.ranks, count)
        step = partitions.step[partition]
    if order == NEXT:
        partitions.step[partition] = step // 2
    else:
        partitions.step[partition] = 2 * step if step < LARGEST_STEP else 0
    return DONE, step


@inlined
def most_nodes(elements, lengths, fills):  # type: ignore[no-untyped-def]
    """An upper bound on the nodes of a step that writes `fills` elements, out of lists of `lengths` cells.

    What is marked or begins: one for each fill. A list is merged at most once to be read. An element that is
    united with another one has one list of the two collapsed: no longer than the longest one before the step,
    and than what came to it, a cell for each fill in all; and puts a node into its place by a `unite`, of
    three. So lengths + fills * (longest + 5); there is some more.
    """
    return 3 * lengths + (elements.free[2] + 8) * fills + 8


@inlined
def look(automaton, split, reported, events, cursor, here):  # type: ignore[no-untyped-def]
    """Takes the moves at an event, and drops what has left the window; see `read_events`.

    A fill is an element that a run takes somewhere: an element and two cells at most, the second one where
    two are united. A run takes one key and one group, and is reported once, or once for each fill.
    """
    tables, program, ordering = automaton
    arena, cells, elements, keys, groups, partitions, runs = split
    partition = here.partition
    lengths = np.int64(0)
    zero = np.int64(0)
    code, taken = take_new(tables, program, split, events, cursor, here)
    fills = np.int64(taken)
    if code != DONE:
        return code, taken, (fills, lengths, zero)
    emptied = False
    group = partitions.first[partition]
    while group != NONE:
        row = tables.row_of[groups.state[group], here.event_class]
        if row == MISSING:
            code = missing(cursor, groups.state[group], here.event_class)
            return code, taken, (fills, lengths, zero)
        if row != IDLE:
            code, taken, more_fills, more_lengths = take_keys(
                tables, program, split, events, cursor, here, group, row, taken
            )
            if code != DONE:
                return code, taken, (fills, lengths, zero)
            fills += more_fills
            lengths += more_lengths
            emptied |= groups.first[group] == NONE
        group = groups.next[group]
    if emptied:
        drop_empty_groups(groups, partitions, partition)
    if taken == 0:
        return DONE, taken, (fills, lengths, zero)
    nodes = most_nodes(elements, lengths, fills)
    if arena.size[0] + nodes > arena.kind.size:
        cursor.need_nodes = nodes
        return GROW, taken, (fills, lengths, zero)
    scratch = elements.free[2] + fills + 2
    if (
        2 * fills > cells.free[1]
        or fills > elements.free[1]
        or taken > min(keys.free[1], groups.free[1])
        or scratch > runs.merging.size
    ):
        cursor.need_cells = 2 * fills
        cursor.need_elements = fills
        cursor.need_keys = taken
        cursor.need_merging = scratch
        return GROW, taken, (fills, lengths, zero)
    if reported.size[0] + max(taken, fills) > reported.event.size:
        return FULL, taken, (fills, lengths, zero)
    code, step = step_of_ranks(split, cursor, partition, ordering, taken)
    return code, taken, (fills, lengths, step)


@inlined
def find_group(groups, partitions, partition, state):  # type: ignore[no-untyped-def]
    """The group of `state` in a partition, or NONE."""
    group = partitions.first[partition]
    while group != NONE and groups.state[group] != state:
        group = groups.next[group]
    return group


@inlined
def write(automaton, split, reported, events, cursor, here, taken, plan):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Writes the moves that were taken; see `read_events`."""
    tables, program, (order, windowed, visible, per_start, apart) = automaton
    arena, cells, elements, keys, groups, partitions, runs = split
    _, event, _, partition, oldest, _ = here
    fills, lengths, step = plan
    most = most_nodes(elements, lengths, fills)
    nodes_before = arena.size[0]
    cells_before = cells.free[1]
    elements_before = elements.free[1]
    keys_before = keys.free[1]
    seen = reported.size[0]
    best = np.int64(-1) if order != NO_ORDER else np.int64(0)

    # 1. Read the old lists: new runs, marks, moves.
    moved = False
    for run in range(taken):
        key = runs.key[run]
        mark = runs.mark[run]
        target = runs.target[run]
        rank = step if is_visible(visible, mark) else np.int64(0)
        runs.first[run] = NONE
        if key == NONE:
            node = output(arena, mark, event, NONE) if mark >= 0 else bottom(arena, event)
            runs.first[run] = new_element(cells, elements, node, rank)
        elif mark >= 0:
            tail = NONE
            source = keys.first[key]
            while source != NONE:
                rest = merged_node(arena, cells, elements, source, oldest, runs.merging)
                node = output(arena, mark, event, rest)
                element = new_element(cells, elements, node, elements.rank[source] + rank)
                if tail == NONE:
                    runs.first[run] = element
                else:
                    elements.next[tail] = element
                tail = element
                source = elements.next[source] if per_start or tables.continues[target] else NONE
        elif mark == STAY:
            best = offer(
                arena, cells, elements, keys.first[key], event, oldest, best, order, per_start, reported,
                seen, runs.merging,
            )  # fmt: skip
        else:
            runs.first[run] = keys.first[key]
            keys.first[key] = NONE
            keys.last[key] = NONE
            keys.newest[key] = -1
            moved = True

    # 2. Write the new ones, those of old keys first: their starts are older mostly, and a list that
    # gets newer starts one after the other stays short. Measured on rising values of a window of
    # 1,000 events: 7,000 events/s with the new ones first, 24,000 so.
    mapped = taken > 2
    if mapped:
        group = partitions.first[partition]
        while group != NONE:
            runs.where[groups.state[group]] = group
            group = groups.next[group]
    for run in range(taken - 1, -1, -1):
        element = runs.first[run]
        state = runs.target[run]
        if element == NONE:
            continue
        if state != DEAD and tables.accepts[state]:
            best = offer(
                arena, cells, elements, element, event, oldest, best, order, per_start, reported, seen,
                runs.merging,
            )  # fmt: skip
        if state == DEAD or not tables.continues[state]:
            drop_elements(cells, elements, element)
            continue
        group = runs.where[state] if mapped else find_group(groups, partitions, partition, state)
        if group == NONE:
            group = new_group(groups, partitions, partition, state)
            if mapped:
                runs.where[state] = group
        key = find_key(keys, program.joins, group, runs.registers, runs.status, run)
        if key == NONE:
            key = new_key(keys, groups, program.joins, group, runs.registers, runs.status, run)
        merge_front(arena, cells, elements, keys, key, element, windowed, oldest, runs.merging)
        within_bound(cells_before - cells.free[1], 2 * fills)
        within_bound(elements_before - elements.free[1], fills)
        within_bound(keys_before - keys.free[1], taken)
    within_bound(arena.size[0] - nodes_before, most)
    within_bound(reported.size[0] - seen, max(taken, fills))
    if mapped:
        group = partitions.first[partition]
        while group != NONE:
            runs.where[groups.state[group]] = NONE
            group = groups.next[group]
    if moved:
        for run in range(taken):
            key = runs.key[run]
            if runs.mark[run] == SKIP and key != NONE and keys.first[key] == NONE:
                drop_key(cells, elements, keys, groups, program.joins, key)
        drop_empty_groups(groups, partitions, partition)
    if per_start and program.nearest:
        last = np.int32(DEAD)
        for run in range(taken):
            state = runs.target[run]
            if runs.mark[run] < 0 or runs.key[run] == NONE or state == last:
                continue
            last = state
            group = find_group(groups, partitions, partition, state)
            if group != NONE:
                drop_hopeless(arena, cells, elements, keys, groups, program.joins, group)
    if apart != NOT_APART and reported.size[0] > seen:
        drop_excluded(split, program.joins, partition, reported, seen, event, oldest, apart)


@inlined
def drop(automaton, split, partition):  # type: ignore[no-untyped-def]
    """Forgets every run of a partition; see `read_events`."""
    _, program, _ = automaton
    _, cells, elements, keys, groups, partitions, _ = split
    drop_partition(cells, elements, keys, groups, program.joins, partitions, partition)


@kernel(Tables, Program, Split, Reported, Events, Cursor, FLAG, INT, Order)
def advance(tables, program, split, reported, events, cursor, gaps, consume, ordering):  # type: ignore[no-untyped-def]
    """Reads events; see `read_events`.

    Loop invariant: keys have pairwise different (state, registers) and, under NEXT and LAST, fronts: no
    element of a key has a smaller rank and a start no later than another.
    """
    automaton = (tables, program, ordering)
    return read_events(automaton, split, reported, events, cursor, gaps, consume, look, write, drop)
