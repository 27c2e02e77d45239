"""The states of starts, and their ends: a deterministic run for each start, all of them together.

A run that marks nothing is in one state at a time, and two runs in one state stay together from then on. So
the starts of a partition that are in one state are a *group*, which moves as a whole: the cost of an event is
the number of groups, however many starts they have. A group is a list of *blocks*, sets of starts that have
the same end so far, in a forest of disjoint sets (Tarjan, Efficiency of a Good But Not Linear Set Union
Algorithm). When a group accepts, all its blocks become one: so each start is in a block of its own only once.

The last end of a start is known when its window has passed. Its first end is known at once (SHORTEST), and
blocks stay single starts; what DISJOINT keeps is known once no earlier start is open that could exclude it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, GROW, cursor_of
from estero.engine.kernels import FLAG, INT, INT32S, INT64S, inlined, kernel, pool, step
from estero.engine.runs.reading import missing
from estero.engine.runs.run_cea import DEAD, IDLE, MISSING, Tables
from estero.engine.store.arena import NONE
from estero.engine.store.lists import give_back, take_row
from estero.engine.store.schema import STATES, counters, data, free_rows, heads, own, ref

Cursor: Any = cursor_of(
    *("miss_state", "miss_class", "need_groups", "decided", "until", "behind", "origin"),
    *("need_nodes", "need_members", "need_made", "pair", "reading", "member", "read"),
    *("began", "began_reported", "began_nodes"),
)
"""`decided`: the first start that is not decided; `until`: the end of the last one kept of all partitions;
`behind`: the number of the batch's first event; `origin`: the sequence number of event 0.

The last two lines are for `replay`: the current `pair`, the next event of it to be read (`reading`, NONE: it
has not begun), the first `member` after the previous one and its ordinal (`read`); the pair at which to begin
again, and how much was reported and how many nodes there were before it.
"""


@pool
class History(NamedTuple):
    """The events that may still be part of a reported complex event; here events are numbers of places.

    ============ ===== =========================================================================
    array        dtype meaning for event i
    ============ ===== =========================================================================
    event_class  int32 its class
    partition    int32 its partition
    ordinal      int64 its place in the stream of the partition
    following    int32 the next event of the partition, NONE where there is none yet
    parent       int32 the block above in the forest, itself at the top; NONE where no run begins
    last         int32 at the top of the forest: the end of the starts below, NONE without
    chain        int32 at the top of the forest: the next block of the group, NONE at its end
    ============ ===== =========================================================================
    """

    event_class: NDArray[np.int32] = data()
    partition: NDArray[np.int32] = ref("tracks")
    ordinal: NDArray[np.int64] = data()
    following: NDArray[np.int32] = ref("history", NONE)
    parent: NDArray[np.int32] = ref("history", NONE)
    last: NDArray[np.int32] = ref("history", NONE)
    chain: NDArray[np.int32] = ref("history", NONE)


@pool
class Groups(NamedTuple):
    """The groups of partitions: their state, and their first and last block."""

    state: NDArray[np.int32] = ref(STATES)
    head: NDArray[np.int32] = ref("history")
    tail: NDArray[np.int32] = ref("history")
    next: NDArray[np.int32] = own()
    free: NDArray[np.int64] = free_rows()


@pool
class Tracks(NamedTuple):
    """The first group of each partition, its newest event and the end of the last one kept (DISJOINT), int32.

    undecided int32: the first event on which DISJOINT has not decided yet, where it looks at partitions.
    ordinal int64: that of the newest event, or of a dropped one behind it that was read.
    """

    first: NDArray[np.int32] = heads("groups")
    newest: NDArray[np.int32] = ref("history", NONE, fill=NONE)
    until: NDArray[np.int32] = ref("history", NONE, fill=NONE)
    undecided: NDArray[np.int32] = ref("history", NONE, fill=NONE)
    ordinal: NDArray[np.int64] = data(-1)


@pool
class Decided(NamedTuple):
    """Starts whose end is known, with that end, int32, in the order of decision; size[0] is their number."""

    start: NDArray[np.int32] = ref("history")
    end: NDArray[np.int32] = ref("history")
    size: NDArray[np.int64] = counters()


NOT_DISJOINT, DISJOINT, DISJOINT_IN_PARTITIONS = range(3)
"""Whether starts before the end of the last one kept are excluded, and among which starts."""


@inlined
def top_of(history, block):  # type: ignore[no-untyped-def]
    """The top of the tree that a start is in; shortens the ways to it."""
    while history.parent[block] != block:
        history.parent[block] = history.parent[history.parent[block]]
        block = history.parent[block]
    return block


@inlined
def put(history, groups, tracks, partition, state, head, tail):  # type: ignore[no-untyped-def]
    """Adds a list of blocks to the group of a state; needs a free group."""
    group = tracks.first[partition]
    while group != NONE and groups.state[group] != state:
        group = groups.next[group]
    if group == NONE:
        group = take_row(groups)
        groups.state[group] = state
        groups.head[group] = head
        groups.next[group] = tracks.first[partition]
        tracks.first[partition] = group
    else:
        history.chain[groups.tail[group]] = head
    groups.tail[group] = tail


@step
def move(tables, history, groups, tracks, partition, event_class, longest):  # type: ignore[no-untyped-def]
    """Moves the groups of a partition; all rows are known. Drops starts that can no longer end.

    With `longest` it drops none: they may have ended before.
    """
    moving = NONE
    before = NONE
    group = tracks.first[partition]
    while group != NONE:
        following = groups.next[group]
        row = tables.row_of[groups.state[group], event_class]
        if row == IDLE:
            before = group
        else:
            if before == NONE:
                tracks.first[partition] = following
            else:
                groups.next[before] = following
            if tables.skip[row] == DEAD:
                block = NONE if longest else groups.head[group]
                while block != NONE:
                    history.parent[block] = NONE
                    block = history.chain[block]
                give_back(groups, group)
            else:
                groups.state[group] = tables.skip[row]
                groups.next[group] = moving
                moving = group
        group = following
    while moving != NONE:
        following = groups.next[moving]
        head = groups.head[moving]
        tail = groups.tail[moving]
        state = groups.state[moving]
        give_back(groups, moving)
        put(history, groups, tracks, partition, state, head, tail)
        moving = following


@inlined
def take(decided, start, end):  # type: ignore[no-untyped-def]
    """Notes that the end of a start is decided."""
    place = decided.size[0]
    decided.start[place] = start
    decided.end[place] = end
    decided.size[0] = place + 1


@inlined
def end_all(history, decided, block, event, oldest, disjoint):  # type: ignore[no-untyped-def]
    """Notes `event` as the first end of a list of starts, which are decided if they exclude no others."""
    while block != NONE:
        following = history.chain[block]
        if disjoint != NOT_DISJOINT:
            history.last[block] = event
        else:
            if block >= oldest:
                take(decided, block, event)
            history.parent[block] = NONE
        block = following


@step
def accept(tables, history, groups, tracks, decided, partition, event, oldest, longest, disjoint):  # type: ignore[no-untyped-def]
    """Notes `event` as the end of all starts in accepting states; those that need no other one are done."""
    before = NONE
    group = tracks.first[partition]
    while group != NONE:
        following = groups.next[group]
        state = groups.state[group]
        if tables.accepts[state]:
            top = groups.head[group]
            if not longest:
                end_all(history, decided, top, event, oldest, disjoint)
            else:
                block = history.chain[top]
                while block != NONE:
                    history.parent[block] = top
                    block = history.chain[block]
                history.chain[top] = NONE
                history.last[top] = event
                groups.tail[group] = top
            if not longest or not tables.continues[state]:
                if before == NONE:
                    tracks.first[partition] = following
                else:
                    groups.next[before] = following
                give_back(groups, group)
                group = following
                continue
        before = group
        group = following


@step
def settle(history, tracks, decided, cursor, start, oldest, last, longest, disjoint):  # type: ignore[no-untyped-def]
    """Decides starts before event `last` in ascending order up to an open one; returns it, or the next.

    Starts before `oldest` keep the ends that they have, and others the first end, if they are not open. If
    DISJOINT applies to partitions, without `longest`, `start` and those after it are of one partition.
    """
    while start != NONE and start < last:
        following = start + 1
        if disjoint == DISJOINT_IN_PARTITIONS and not longest:
            following = history.following[start]
        if history.parent[start] != NONE:
            partition = history.partition[start]
            kept = tracks.until[partition] if disjoint == DISJOINT_IN_PARTITIONS else cursor.until
            if disjoint == NOT_DISJOINT or start > kept:
                end = history.last[top_of(history, start)]
                if end == NONE and start >= oldest:
                    break
                if end != NONE:
                    cursor.until = end
                    tracks.until[partition] = end
                    take(decided, start, end)
            if not longest:
                history.parent[start] = NONE
        start = following
    return start


@kernel(History, Tracks, Decided, Cursor, INT, INT, FLAG, INT)
def decide(history, tracks, decided, cursor, until, last, longest, disjoint):  # type: ignore[no-untyped-def]
    """Decides the starts before event `until` with the ends that they have: later ones do not count.

    The events before `last` have been read.
    """
    if longest or disjoint != DISJOINT_IN_PARTITIONS:
        if cursor.decided < until:
            cursor.decided = settle(
                history, tracks, decided, cursor, cursor.decided, until, until, longest, disjoint
            )
        return
    while cursor.decided < until:
        start = cursor.decided
        cursor.decided = start + 1
        if history.parent[start] != NONE:
            partition = history.partition[start]
            first = tracks.undecided[partition]
            tracks.undecided[partition] = settle(
                history, tracks, decided, cursor, first, until, last, longest, disjoint
            )


@kernel(Tables, History, Groups, Tracks, Decided, INT64S, Cursor, FLAG, FLAG, INT)
def follow(tables, history, groups, tracks, decided, oldest, cursor, gaps, longest, disjoint):  # type: ignore[no-untyped-def]
    """Processes events from cursor.at on, before cursor.last, until one of the codes; resumable.

    `oldest` int64[batch]: the first start in the window of each event, as a sequence number; cursor.behind is
    the event number of the batch's first event, and cursor.origin the sequence number of event 0.
    """
    while cursor.at < cursor.last:
        event = cursor.behind + cursor.at
        partition = history.partition[event]
        since = oldest[cursor.at] - cursor.origin
        decide(history, tracks, decided, cursor, since, event, longest, disjoint)
        event_class = history.event_class[event]
        ordinal = history.ordinal[event]
        in_gap = gaps and tracks.first[partition] != NONE and ordinal - tracks.ordinal[partition] > 1
        if in_gap:
            event_class = 0
        first_row = IDLE
        if not in_gap:
            first_row = tables.row_of[0, event_class]
            if first_row == MISSING:
                return missing(cursor, 0, event_class)
        touched = 0
        group = tracks.first[partition]
        while group != NONE:
            row = tables.row_of[groups.state[group], event_class]
            if row == MISSING:
                return missing(cursor, groups.state[group], event_class)
            if row != IDLE:
                touched += 1
            group = groups.next[group]
        if groups.free[1] == 0:
            cursor.need_groups = 1
            return GROW
        if touched > 0:
            move(tables, history, groups, tracks, partition, event_class, longest)
        if first_row != IDLE and tables.skip[first_row] != DEAD:
            history.parent[event] = event
            put(history, groups, tracks, partition, tables.skip[first_row], event, event)
            touched += 1
        if in_gap:
            tracks.ordinal[partition] = tracks.ordinal[partition] + 1 if touched > 0 else ordinal - 1
            continue
        if touched > 0:
            accept(tables, history, groups, tracks, decided, partition, event, since, longest, disjoint)
            if not longest and disjoint != NOT_DISJOINT:
                by_partition = disjoint == DISJOINT_IN_PARTITIONS
                first = tracks.undecided[partition] if by_partition else cursor.decided
                first = settle(history, tracks, decided, cursor, first, since, event + 1, longest, disjoint)
                if by_partition:
                    tracks.undecided[partition] = first
                else:
                    cursor.decided = first
        tracks.ordinal[partition] = ordinal
        cursor.at += 1
    return DONE


@kernel(History, Tracks, INT, INT)
def link(history, tracks, first, last):  # type: ignore[no-untyped-def]
    """Links the events from `first` to before `last` to the previous ones of their partitions."""
    for event in range(first, last):
        partition = history.partition[event]
        before = tracks.newest[partition]
        if before != NONE:
            history.following[before] = event
        if tracks.undecided[partition] == NONE:
            tracks.undecided[partition] = event
        tracks.newest[partition] = event


@kernel(History, Groups, Tracks, INT, INT, INT, INT32S, INT32S, INT32S)
def list_open(history, groups, tracks, partitions, first, last, above, state, end):  # type: ignore[no-untyped-def]
    """Fills in the state and the end of the run that begins at each event from `first` to before `last`.

    NONE if none begins, if it has left all states, or has no end. above int32[last] is scratch.
    """
    for event in range(last):
        above[event] = NONE
    for partition in range(partitions):
        group = tracks.first[partition]
        while group != NONE:
            block = groups.head[group]
            while block != NONE:
                above[block] = groups.state[group]
                block = history.chain[block]
            group = groups.next[group]
    for event in range(first, last):
        state[event - first] = NONE
        end[event - first] = NONE
        if history.parent[event] != NONE:
            top = top_of(history, event)
            state[event - first] = above[top]
            end[event - first] = history.last[top]


@kernel(History, Groups, Tracks, INT, INT32S)
def put_open(history, groups, tracks, last, state):  # type: ignore[no-untyped-def]
    """Restores the runs listed by `list_open` in groups, each in a block of its own; all of them fit.

    `parent` and `last` of the events before `last` say where runs begin and which ends they have.
    """
    for event in range(last):
        if history.parent[event] != NONE:
            history.parent[event] = event
            history.chain[event] = NONE
            if state[event] != NONE:
                put(history, groups, tracks, history.partition[event], state[event], event, event)
