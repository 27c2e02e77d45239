"""How far each start gets: starts whose runs are in the same states are treated as one from then on.

Of all runs that begin at one event, only the set of their states matters, which is one state of a
deterministic automaton. So starts that meet in a state share their future: they form a group, and events move
groups. What a group reaches is noted once, at its root in a forest of disjoint sets; what a start has reached
is what is noted on its way up. Where two groups meet they get a new root, so that the levels that one of them
reached before are not attributed to the other. (Tarjan, Efficiency of a good but not linear set union
algorithm, 1975, with path splitting.)

The cost of an event is the number of states that groups of its partition are in, and that of a start whose
window has passed is logarithmic in the number of starts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, MISS, cursor_of
from estero.engine.kernels import INT, INT32S, Grid, inlined, kernel, pool, step
from estero.engine.runs.run_cea import DEAD, IDLE, MISSING
from estero.engine.store.arena import NONE
from estero.engine.store.lists import give_back, take_row
from estero.engine.store.schema import ROWS, STATES, counters, data, free_rows, own, ref, scratch

Cursor: Any = cursor_of("miss_state", "miss_class")

NEVER = np.iinfo(np.int64).max
"""The value for a level that is not reached."""


@pool
class Moves(NamedTuple):
    """The part of the deterministic automaton that is known so far.

    row_of int32[states, classes]: a row, IDLE (stays and reaches nothing) or MISSING. Row r leads to
    target[r] int32, a state or DEAD, and reaches the levels of the bits in reached[r] int64.
    """

    row_of: Grid[np.int32] = data(MISSING, length=STATES, axes=("classes",))
    target: NDArray[np.int32] = data()
    reached: NDArray[np.int64] = data()


@pool
class Forest(NamedTuple):
    """Starts and groups: parent int32, NONE of a root; reached int64[nodes, levels], size int64[1].

    `reached` is the sequence number of the event by which a level was first reached after the node was made
    and before it got a parent, or NEVER.
    """

    parent: NDArray[np.int32] = ref("forest", NONE)
    reached: Grid[np.int64] = data(axes=("levels",))
    size: NDArray[np.int64] = counters()


@pool
class Groups(NamedTuple):
    """The groups of partitions: their state, their root in the forest, and their newest start."""

    state: NDArray[np.int32] = ref(STATES)
    root: NDArray[np.int32] = ref("forest")
    newest: NDArray[np.int64] = data()
    next: NDArray[np.int32] = own()
    free: NDArray[np.int64] = free_rows()


@pool
class Starts(NamedTuple):
    """Starts in order: node int32, event (sequence number) int64.

    at[0] is the place of the first open one, at[1] the end.
    """

    node: NDArray[np.int32] = ref("forest")
    event: NDArray[np.int64] = data()
    at: NDArray[np.int64] = counters("first", ROWS)


@pool
class Passed(NamedTuple):
    """Starts whose window has passed: event int64, reached int64[starts, levels]; size[0] is their number."""

    event: NDArray[np.int64] = data()
    reached: Grid[np.int64] = data(axes=("levels",))
    size: NDArray[np.int64] = counters()


@pool
class Scratch(NamedTuple):
    """The groups that a step moves, and the group in each state; int32."""

    moved: NDArray[np.int32] = scratch(length=STATES)
    where: NDArray[np.int32] = scratch(NONE, length=STATES)


@pool
class Line(NamedTuple):
    """A batch: class int32, partition int32, and the earliest start in the window of each event, int64."""

    event_class: NDArray[np.int32]
    partition: NDArray[np.int32]
    oldest: NDArray[np.int64]


@inlined
def new_node(forest):  # type: ignore[no-untyped-def]
    """Makes a root that has reached nothing."""
    node = forest.size[0]
    forest.size[0] = node + 1
    forest.parent[node] = NONE
    for level in range(forest.reached.shape[1]):
        forest.reached[node, level] = NEVER
    return node


@inlined
def take_over(forest, node, above):  # type: ignore[no-untyped-def]
    """Copies to `node` the levels reached by `above`, which is on its way up."""
    for level in range(forest.reached.shape[1]):
        forest.reached[node, level] = min(forest.reached[node, level], forest.reached[above, level])


@step
def shorten(forest, node):  # type: ignore[no-untyped-def]
    """Halves the way from `node` up to its root, which is returned.

    A node with a parent reaches nothing more, so its levels may be copied further down.
    """
    up = forest.parent[node]
    if up == NONE:
        return node
    while forest.parent[up] != NONE:
        further = forest.parent[up]
        take_over(forest, node, up)
        forest.parent[node] = further
        node, up = up, further
    return up


@step
def root_of(forest, node):  # type: ignore[no-untyped-def]
    """The root above `node`, which is at most one step away afterwards."""
    while True:
        root = shorten(forest, node)
        if root == node or forest.parent[node] == root:
            return root


@inlined
def pass_on(forest, starts, passed):  # type: ignore[no-untyped-def]
    """Closes the first open start, whose window has passed: what it has reached is final."""
    first = starts.at[0]
    node = starts.node[first]
    root = root_of(forest, node)
    place = passed.size[0]
    passed.event[place] = starts.event[first]
    for level in range(forest.reached.shape[1]):
        passed.reached[place, level] = min(forest.reached[node, level], forest.reached[root, level])
    passed.size[0] = place + 1
    starts.at[0] = first + 1


@inlined
def note(forest, root, levels, event):  # type: ignore[no-untyped-def]
    """Notes that a group reaches levels that it has not reached before."""
    for level in range(forest.reached.shape[1]):
        if levels >> level & 1 and forest.reached[root, level] == NEVER:
            forest.reached[root, level] = event


@inlined
def put(forest, groups, firsts, partition, scratch, group, state):  # type: ignore[no-untyped-def]
    """Puts a group into a state, where it may meet another one."""
    other = scratch.where[state]
    if other == NONE:
        scratch.where[state] = group
        groups.state[group] = state
        groups.next[group] = firsts[partition]
        firsts[partition] = group
        return
    node = new_node(forest)
    forest.parent[groups.root[group]] = node
    forest.parent[groups.root[other]] = node
    groups.root[other] = node
    groups.newest[other] = max(groups.newest[other], groups.newest[group])
    give_back(groups, group)


@step
def is_known(moves, groups, first, event_class, oldest, cursor):  # type: ignore[no-untyped-def]
    """Whether all rows that an event of the class needs are known; else the cursor names the missing one."""
    group = first
    state = 0
    while True:
        if moves.row_of[state, event_class] == MISSING:
            cursor.miss_state = state
            cursor.miss_class = event_class
            return False
        while group != NONE and groups.newest[group] < oldest:
            group = groups.next[group]
        if group == NONE:
            return True
        state = groups.state[group]
        group = groups.next[group]


@kernel(Moves, Line, Forest, Groups, INT32S, Starts, Passed, Scratch, Cursor)
def advance_levels(moves, line, forest, groups, firsts, starts, passed, scratch, cursor):  # type: ignore[no-untyped-def]
    """Moves the groups by the events from `cursor.at` on, until DONE or MISS; pools are large enough."""
    while cursor.at < line.event_class.size:
        at = cursor.at
        event_class, partition, oldest = line.event_class[at], line.partition[at], line.oldest[at]
        if not is_known(moves, groups, firsts[partition], event_class, oldest, cursor):
            return MISS
        event = cursor.first + at
        while starts.at[0] < starts.at[1] and starts.event[starts.at[0]] < oldest:
            pass_on(forest, starts, passed)
        group, before, moved = firsts[partition], NONE, 0
        while group != NONE:
            following = groups.next[group]
            stays = groups.newest[group] >= oldest
            row = moves.row_of[groups.state[group], event_class]
            if stays and row == IDLE:
                scratch.where[groups.state[group]] = group
                before = group
            else:
                if before == NONE:
                    firsts[partition] = following
                else:
                    groups.next[before] = following
                if stays:
                    scratch.moved[moved] = group
                    moved += 1
                else:
                    give_back(groups, group)
            group = following
        for place in range(moved):
            group = scratch.moved[place]
            row = moves.row_of[groups.state[group], event_class]
            note(forest, groups.root[group], moves.reached[row], event)
            if moves.target[row] == DEAD:
                give_back(groups, group)
            else:
                put(forest, groups, firsts, partition, scratch, group, moves.target[row])
        row = moves.row_of[0, event_class]
        if row != IDLE:
            node = new_node(forest)
            note(forest, node, moves.reached[row], event)
            starts.node[starts.at[1]] = node
            starts.event[starts.at[1]] = event
            starts.at[1] += 1
            if moves.target[row] != DEAD:
                group = take_row(groups)
                groups.root[group] = node
                groups.newest[group] = event
                put(forest, groups, firsts, partition, scratch, group, moves.target[row])
        group = firsts[partition]
        while group != NONE:
            scratch.where[groups.state[group]] = NONE
            group = groups.next[group]
        cursor.at += 1
    return DONE


@kernel(Forest, Starts, Passed, INT)
def pass_all(forest, starts, passed, oldest):  # type: ignore[no-untyped-def]
    """Closes all starts before `oldest`, whose windows have passed."""
    while starts.at[0] < starts.at[1] and starts.event[starts.at[0]] < oldest:
        pass_on(forest, starts, passed)


@step
def moved(forest, kept, moved_to, node):  # type: ignore[no-untyped-def]
    """The place of a node in the forest that is `kept`, as a root until it gets a parent."""
    if moved_to[node] == NONE:
        place = new_node(kept)
        for level in range(forest.reached.shape[1]):
            kept.reached[place, level] = forest.reached[node, level]
        moved_to[node] = place
    return moved_to[node]


@kernel(Forest, Groups, INT32S, Starts, Forest, INT32S)
def move_open(forest, groups, firsts, starts, kept, moved_to):  # type: ignore[no-untyped-def]
    """Moves open starts and the nodes above them into `kept`, an empty forest; they come first among starts.

    `moved_to` int32[nodes] is scratch and filled with NONE.
    """
    for partition in range(firsts.size):
        group = firsts[partition]
        while group != NONE:
            groups.root[group] = moved(forest, kept, moved_to, groups.root[group])
            group = groups.next[group]
    opened = 0
    for place in range(starts.at[0], starts.at[1]):
        node = starts.node[place]
        root = root_of(forest, node)
        starts.node[opened] = moved(forest, kept, moved_to, node)
        if root != node:
            kept.parent[moved_to[node]] = moved(forest, kept, moved_to, root)
        starts.event[opened] = starts.event[place]
        opened += 1
    starts.at[0] = 0
    starts.at[1] = opened
