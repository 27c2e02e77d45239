"""Sequences with one candidate for each key and stage, as EQL has them (docs/semantics.md).

A *candidate* is a run that has reached a stage: the newest one of a key is an entry of a hash index, (stage,
key) → node of the compact set. An event extends the candidate of the stage before, and becomes the candidate
of its own stage. So an event costs the look-ups of the stages that it satisfies, however many candidates
wait.

An event may also be one that must be missing. In a gap it drops the candidate of the stage before. Before the
first stage it is a *mark*: the last such event of each key, which a candidate carries with it. After the last
stage, results are *pending*, in order of their ends, until such an event drops them or the window has passed.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import BITS_IN_WORD
from estero.engine.cursor import DONE, FULL, GROW, Reported, cursor_of, report
from estero.engine.kernels import Cube, Grid, inlined, kernel, pool, step
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.hash_index import FREE, START, HashIndex, claim, find, heap_of, put
from estero.engine.store.schema import EVENTS, ROWS, counters, data, earlier, ref
from estero.engine.store.tecs import output

Cursor: Any = cursor_of("decided", "need_nodes", "need_entries", "need_marks", "need_pending")
"""Starts before event `decided` have got all their ends."""

PENDING, LEADING, LEADS = range(3)
"""The places in the index of marks.

The newest pending result of a key, as a row; the last event of the key that must be missing before the first
stage; and LEADS + stage: that of the candidate at the stage. The last two have no row."""

WAITS, KEPT, DROPPED = range(3)
"""The states of pending results."""

_TAKEN: Final = -1
"""The START of an entry that no longer holds anything."""


@pool
class SequenceTables(NamedTuple):
    """A sequence of s stages that must be present, and g conditions on the gaps between them.

    ============ ===== ===== =================================================================
    array        dtype shape meaning
    ============ ===== ===== =================================================================
    bit          int64 [s]   the predicate of the stage
    key          int64 [s]   its key column
    mark         int32 [s]   label-set id of its event
    gap_stage    int64 [g]   the stage before the gap
    gap_bit      int64 [g]   predicate and key column of what must be missing there
    gap_key      int64 [g]
    leading_bit  int64 [·]   the same before the first stage
    leading_key  int64 [·]
    trailing_bit int64 [·]   and after the last one
    trailing_key int64 [·]
    until_bit    int64 [·]   what drops all candidates of its key
    until_key    int64 [·]
    ============ ===== ===== =================================================================
    """

    bit: NDArray[np.int64]
    key: NDArray[np.int64]
    mark: NDArray[np.int32]
    gap_stage: NDArray[np.int64]
    gap_bit: NDArray[np.int64]
    gap_key: NDArray[np.int64]
    leading_bit: NDArray[np.int64]
    leading_key: NDArray[np.int64]
    trailing_bit: NDArray[np.int64]
    trailing_key: NDArray[np.int64]
    until_bit: NDArray[np.int64]
    until_key: NDArray[np.int64]


@pool
class SequenceEvents(NamedTuple):
    """A batch; see `EventBatch`. The keys of event i are rows row[i, 0] … row[i, 1] - 1 of `keys`.

    words uint64[n, W], row int64[n, 2], keys uint64[r, K, 2], known bool[r, K], oldest int64[n]: the sequence
    number of the earliest start that is inside the window when this event is the end.
    """

    words: Grid[np.uint64]
    row: Grid[np.int64]
    keys: Cube[np.uint64]
    known: Grid[np.bool_]
    oldest: NDArray[np.int64]


@pool
class Pending(NamedTuple):
    """Results in order of their ends: size[0] in all, the first size[1] reported or dropped.

    ===== ====== ========= ===================================================================
    array dtype  shape     meaning
    ===== ====== ========= ===================================================================
    root  int32  [rows]    the last node of the result
    limit int64  [rows]    it is kept once this event has left the window, NONE if it is certain
    state int32  [rows]    WAITS, KEPT or DROPPED
    next  int32  [rows]    the one before it with the same key that waits, or NONE
    key   uint64 [rows, 2] its key
    ===== ====== ========= ===================================================================
    """

    root: NDArray[np.int32] = ref("arena")
    limit: NDArray[np.int64] = ref(EVENTS, NONE)
    state: NDArray[np.int32] = data()
    next: NDArray[np.int32] = earlier()
    key: Grid[np.uint64] = data(axes=(2,))
    size: NDArray[np.int64] = counters(ROWS, "")


@inlined
def satisfies(events, place, bit):  # type: ignore[no-untyped-def]
    """Whether predicate `bit` is true of the event at `place` of the batch."""
    word = events.words[place, bit // BITS_IN_WORD]
    return (word >> np.uint64(bit % BITS_IN_WORD)) & np.uint64(1) != 0


@inlined
def lead_of(marks, place, one, two):  # type: ignore[no-untyped-def]
    """The marked event of a key, or NONE."""
    entry = find(marks, place, one, two)
    return np.int64(NONE) if entry == FREE else marks.entries[entry, START]


@inlined
def set_lead(marks, place, one, two, lead, oldest):  # type: ignore[no-untyped-def]
    """Marks event `lead` for a key, or none if it has left the window."""
    if lead >= oldest:
        entry = claim(marks, place, one, two, oldest)
        put(marks, entry, place, 0, lead)
        return
    entry = find(marks, place, one, two)
    if entry != FREE:
        marks.entries[entry, START] = _TAKEN


@inlined
def newest_pending(arena, marks, pending, one, two):  # type: ignore[no-untyped-def]
    """The newest pending result of a key, or NONE; an entry may refer to a reported row."""
    entry = find(marks, PENDING, one, two)
    if entry == FREE:
        return np.int64(NONE)
    row = heap_of(marks, entry)
    if (
        row < pending.size[1]
        or row >= pending.size[0]
        or pending.key[row, 0] != one
        or pending.key[row, 1] != two
        or arena.event[pending.root[row]] != marks.entries[entry, START]
    ):
        return np.int64(NONE)
    return row


@step
def enlist(arena, marks, pending, row, oldest):  # type: ignore[no-untyped-def]
    """Links a pending result before the others of its key."""
    one = pending.key[row, 0]
    two = pending.key[row, 1]
    pending.next[row] = newest_pending(arena, marks, pending, one, two)
    entry = claim(marks, PENDING, one, two, oldest)
    put(marks, entry, PENDING, row, arena.event[pending.root[row]])


@step
def append(arena, marks, pending, root, limit, one, two, oldest):  # type: ignore[no-untyped-def]
    """Appends a result that waits until event `limit` has left the window; NONE: only for earlier results."""
    row = pending.size[0]
    pending.root[row] = root
    pending.limit[row] = limit
    pending.key[row, 0] = one
    pending.key[row, 1] = two
    pending.next[row] = NONE
    pending.state[row] = KEPT if limit == NONE else WAITS
    pending.size[0] = row + 1
    if limit != NONE:
        enlist(arena, marks, pending, row, oldest)


@step
def drop_pending(arena, marks, pending, event, one, two, oldest):  # type: ignore[no-untyped-def]
    """Drops the pending results of a key that end before `event`, which must not follow them.

    The decision of an event is final: only the first one after a result counts, as it is the nearest.
    """
    row = newest_pending(arena, marks, pending, one, two)
    if row == NONE:
        return
    last = NONE
    if arena.event[pending.root[row]] == event:
        last = row
        row = np.int64(pending.next[row])
    while row >= pending.size[1] and row != NONE:
        pending.state[row] = DROPPED if pending.limit[row] >= oldest else KEPT
        row = np.int64(pending.next[row])
    if last != NONE:
        pending.next[last] = NONE
    else:
        marks.entries[find(marks, PENDING, one, two), START] = _TAKEN


@inlined
def release(arena, pending, reported, until):  # type: ignore[no-untyped-def]
    """Reports in order the results decided if windows begin at event `until`; FULL if not all fit."""
    row = pending.size[1]
    while row < pending.size[0]:
        if pending.state[row] == WAITS and pending.limit[row] >= until:
            break
        if pending.state[row] != DROPPED:
            if reported.size[0] == reported.event.size:
                pending.size[1] = row
                return FULL
            root = pending.root[row]
            report(reported, arena.event[root], root, arena.start[root])
        row += 1
    if row == pending.size[0]:
        pending.size[0] = 0
        row = np.int64(0)
    pending.size[1] = row
    return DONE


@inlined
def take(tables, index, marks, stage, one, two, oldest):  # type: ignore[no-untyped-def]
    """The candidate that an event at a stage extends: whether there is one, its node, and its mark."""
    if stage == 0:
        lead = lead_of(marks, LEADING, one, two) if tables.leading_bit.size > 0 else np.int64(NONE)
        return True, np.int64(NONE), lead
    entry = find(index, stage - 1, one, two)
    if entry == FREE or index.entries[entry, START] < oldest:
        return False, np.int64(NONE), np.int64(NONE)
    index.entries[entry, START] = _TAKEN
    lead = lead_of(marks, LEADS + stage - 1, one, two) if tables.leading_bit.size > 0 else np.int64(NONE)
    return True, heap_of(index, entry), lead


@inlined
def go_on(tables, arena, index, marks, pending, reported, event, stage, one, two, oldest):  # type: ignore[no-untyped-def]
    """Processes an event at a stage: it extends a candidate, and becomes one or completes it."""
    may, rest, lead = take(tables, index, marks, stage, one, two, oldest)
    if not may:
        return
    leads = tables.leading_bit.size > 0
    trails = tables.trailing_bit.size > 0
    if stage < tables.bit.size - 1:
        node = output(arena, tables.mark[stage], event, rest)
        entry = claim(index, stage, one, two, oldest)
        put(index, entry, stage, node, arena.start[node])
        if leads:
            set_lead(marks, LEADS + stage, one, two, lead, oldest)
    elif trails:
        node = output(arena, tables.mark[stage], event, rest)
        limit = arena.start[node]
        if leads:
            limit = lead if lead >= oldest else np.int64(NONE)
        append(arena, marks, pending, node, limit, one, two, oldest)
    elif lead < oldest:
        node = output(arena, tables.mark[stage], event, rest)
        report(reported, event, node, arena.start[node])


@inlined
def drop(tables, arena, index, marks, pending, events, place, event, oldest):  # type: ignore[no-untyped-def]
    """Processes an event that must be missing or that ends all candidates: drops these, or marks it."""
    for number in range(tables.until_bit.size):
        if satisfies(events, place, tables.until_bit[number]):
            drop_candidates(tables, index, events, place, tables.until_key[number])
    for number in range(tables.gap_bit.size):
        if satisfies(events, place, tables.gap_bit[number]):
            drop_before_gap(tables, arena, index, events, place, event, number, oldest)
    for number in range(tables.leading_bit.size):
        if satisfies(events, place, tables.leading_bit[number]):
            column = tables.leading_key[number]
            for row in range(events.row[place, 0], events.row[place, 1]):
                if events.known[row, column]:
                    one = events.keys[row, column, 0]
                    set_lead(marks, LEADING, one, events.keys[row, column, 1], event, oldest)
    for number in range(tables.trailing_bit.size):
        if satisfies(events, place, tables.trailing_bit[number]):
            column = tables.trailing_key[number]
            for row in range(events.row[place, 0], events.row[place, 1]):
                if events.known[row, column]:
                    one = events.keys[row, column, 0]
                    drop_pending(arena, marks, pending, event, one, events.keys[row, column, 1], oldest)


@step
def drop_candidates(tables, index, events, place, column):  # type: ignore[no-untyped-def]
    """Drops the candidates of all stages for the keys of an event."""
    for row in range(events.row[place, 0], events.row[place, 1]):
        if events.known[row, column]:
            for stage in range(tables.bit.size - 1):
                entry = find(index, stage, events.keys[row, column, 0], events.keys[row, column, 1])
                if entry != FREE:
                    index.entries[entry, START] = _TAKEN


@step
def drop_before_gap(tables, arena, index, events, place, event, number, oldest):  # type: ignore[no-untyped-def]
    """Drops the candidates before a gap for the keys of an event, except those that end with this event."""
    column = tables.gap_key[number]
    for row in range(events.row[place, 0], events.row[place, 1]):
        if events.known[row, column]:
            one = events.keys[row, column, 0]
            entry = find(index, tables.gap_stage[number], one, events.keys[row, column, 1])
            waits = entry != FREE and index.entries[entry, START] >= oldest
            if waits and arena.event[heap_of(index, entry)] != event:
                index.entries[entry, START] = _TAKEN


@inlined
def lacks(tables, arena, index, marks, pending, cursor, rows):  # type: ignore[no-untyped-def]
    """Whether capacity is missing for an event with that many keys.

    For each key it makes a node and claims an entry at each stage at most, completes one result, and marks
    one event for each stage, one for those to come and one list of results. Half of each index stays free.
    """
    most = tables.bit.size * rows
    most_marks = (tables.bit.size + 2) * rows
    if (
        arena.size[0] + most > arena.kind.size
        or 2 * (index.used[0] + most) > index.words.shape[0]
        or 2 * (marks.used[0] + most_marks) > marks.words.shape[0]
        or pending.size[0] + rows > pending.root.size
    ):
        cursor.need_nodes = most
        cursor.need_entries = most
        cursor.need_marks = most_marks
        cursor.need_pending = rows
        return True
    return False


@kernel(SequenceTables, Arena, HashIndex, HashIndex, Pending, SequenceEvents, Reported, Cursor)
def advance_sequences(tables, arena, index, marks, pending, events, reported, cursor):  # type: ignore[no-untyped-def]
    """Reads events from cursor.at on, until DONE, GROW or FULL; decided results are reported before each.

    Invariant: at the top, `index` holds the newest candidate of each stage and key that the events before
    cursor.at leave, and `pending` all their results that are not reported yet.
    """
    while True:
        at_end = cursor.at >= cursor.last
        until = cursor.decided
        if not at_end:
            until = max(until, events.oldest[cursor.at])
        if release(arena, pending, reported, until) == FULL:
            return FULL
        if at_end:
            return DONE
        place = cursor.at
        first = events.row[place, 0]
        rows = events.row[place, 1] - first
        if lacks(tables, arena, index, marks, pending, cursor, rows):
            return GROW
        if reported.size[0] + rows > reported.event.size:
            return FULL
        event = cursor.first + place
        oldest = events.oldest[place]
        for back in range(tables.bit.size):
            stage = tables.bit.size - 1 - back
            if not satisfies(events, place, tables.bit[stage]):
                continue
            column = tables.key[stage]
            for row in range(first, first + rows):
                if events.known[row, column]:
                    one = events.keys[row, column, 0]
                    two = events.keys[row, column, 1]
                    go_on(tables, arena, index, marks, pending, reported, event, stage, one, two, oldest)
        drop(tables, arena, index, marks, pending, events, place, event, oldest)
        cursor.at = place + 1


@kernel(Arena, HashIndex, Pending)
def relist(arena, marks, pending):  # type: ignore[no-untyped-def]
    """Links the pending results that wait into the lists of their keys, which are empty."""
    for row in range(pending.size[1], pending.size[0]):
        pending.next[row] = NONE
        if pending.state[row] == WAITS:
            enlist(arena, marks, pending, row, np.int64(0))
