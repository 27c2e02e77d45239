"""Samples: for each key one event for each condition, all distinct, in any order (EQL).

For each key a matching is kept: events that satisfy as many conditions as possible, one each. A new event
enlarges it by an augmenting path, or never will: what can be matched is a matroid. So each key holds at most
an event for each condition. If it is to have more than one sample, it also holds the events from which
further ones are chosen (`choose_samples`); then each event that satisfies a condition completes one, as it
can take the place of another one in the matching.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, GROW, Reported, cursor_of, report
from estero.engine.kernels import Grid, inlined, kernel, pool, step
from estero.engine.runs.sequences.choose_samples import (
    Choice,
    KeptEvents,
    KeptLists,
    begin_list,
    chosen_next,
    gathered,
    keep,
)
from estero.engine.runs.sequences.run_sequences import SequenceEvents, satisfies
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.hash_index import FREE, HashIndex, claim, find, heap_of, put
from estero.engine.store.schema import EVENTS, counters, data, ref
from estero.engine.store.tecs import output

Cursor: Any = cursor_of("need_nodes", "need_entries", "need_matchings", "need_kept")

MOST_CONDITIONS = 63
"""The most conditions: those that an event satisfies are the bits of a number."""

COMPLETE = -1
"""Stands for the number of matched conditions of a key that has all its samples."""


@pool
class SampleTables(NamedTuple):
    """The conditions: predicate and key column of each, bit, key int64[c]; and the scratch of one search.

    most: the number of samples of a key; parent int64[c]: the condition from which one was reached, NONE from
    the current event; queue int64[c].
    """

    bit: NDArray[np.int64]
    key: NDArray[np.int64]
    most: int
    parent: NDArray[np.int64]
    queue: NDArray[np.int64]


@pool
class Matchings(NamedTuple):
    """For each key its matching; size[0] are in use.

    event int64[rows, c]: the event of each condition, or NONE; satisfied int64[rows, c]: the conditions that
    this event satisfies, as bits; matched int64[rows]: the number of conditions with an event, plus that of
    further samples once all have one; or COMPLETE.
    """

    event: Grid[np.int64] = ref(EVENTS, NONE, axes=("conditions",))
    satisfied: Grid[np.int64] = data(axes=("conditions",))
    matched: NDArray[np.int64] = data()
    size: NDArray[np.int64] = counters()


@inlined
def satisfied_with(tables, events, place, one, two):  # type: ignore[no-untyped-def]
    """The conditions, as bits, that the event at `place` satisfies with a key."""
    satisfied = np.int64(0)
    for condition in range(tables.bit.size):
        if satisfies(events, place, tables.bit[condition]):
            column = tables.key[condition]
            for row in range(events.row[place, 0], events.row[place, 1]):
                is_same = events.keys[row, column, 0] == one and events.keys[row, column, 1] == two
                if events.known[row, column] and is_same:
                    satisfied |= np.int64(1) << condition
    return satisfied


@step
def matching_of(index, matchings, lists, most, one, two):  # type: ignore[no-untyped-def]
    """The row of a key, which is made if there is none."""
    entry = find(index, 0, one, two)
    if entry != FREE:
        return heap_of(index, entry)
    row = matchings.size[0]
    for condition in range(matchings.event.shape[1]):
        matchings.event[row, condition] = NONE
        matchings.satisfied[row, condition] = 0
    matchings.matched[row] = 0
    if most > 1:
        begin_list(lists, row)
    matchings.size[0] = row + 1
    put(index, claim(index, 0, one, two, np.int64(0)), 0, row, np.int64(0))
    return row


@step
def augmented(tables, matchings, row, event, satisfied):  # type: ignore[no-untyped-def]
    """Extends the matching by a further `event` that satisfies some conditions; returns whether it can."""
    conditions = tables.bit.size
    seen = satisfied
    first = np.int64(0)
    last = np.int64(0)
    for condition in range(conditions):
        if (satisfied >> condition) & 1 != 0:
            tables.parent[condition] = NONE
            tables.queue[last] = condition
            last += 1
    while first < last:
        here = tables.queue[first]
        first += 1
        if matchings.event[row, here] == NONE:
            give(tables, matchings, row, here, event, satisfied)
            return True
        for condition in range(conditions):
            if ((matchings.satisfied[row, here] & ~seen) >> condition) & 1 != 0:
                seen |= np.int64(1) << condition
                tables.parent[condition] = here
                tables.queue[last] = condition
                last += 1
    return False


@step
def give(tables, matchings, row, free, event, satisfied):  # type: ignore[no-untyped-def]
    """Gives a free condition the event of the one it was reached from, and so on to the current event."""
    here = free
    while tables.parent[here] != NONE:
        before = tables.parent[here]
        matchings.event[row, here] = matchings.event[row, before]
        matchings.satisfied[row, here] = matchings.satisfied[row, before]
        here = before
    matchings.event[row, here] = event
    matchings.satisfied[row, here] = satisfied
    matchings.matched[row] += 1


@step
def report_sample(arena, sample, reported, event):  # type: ignore[no-untyped-def]
    """Reports a sample, the events of the conditions, in stream order."""
    rest = np.int64(NONE)
    before = np.int64(NONE)
    for _ in range(sample.size):
        following = np.int64(NONE)
        for condition in range(sample.size):
            here = sample[condition]
            if here > before and (following == NONE or here < sample[following]):
                following = np.int64(condition)
        before = sample[following]
        rest = np.int64(output(arena, following, before, rest))
    report(reported, event, rest, arena.start[rest])


@step
def complete(arena, matchings, choice, row, reported, event):  # type: ignore[no-untyped-def]
    """Reports the first sample of a key, that of its matching."""
    for condition in range(matchings.event.shape[1]):
        choice.sample[condition] = matchings.event[row, condition]
    report_sample(arena, choice.sample, reported, event)
    matchings.matched[row] += 1


@step
def complete_further(tables, arena, matchings, lists, kept, choice, row, reported, event, satisfied):  # type: ignore[no-untyped-def]
    """Reports the samples of a key that an event completes, in order, except that of its matching."""
    conditions = tables.bit.size
    count = gathered(choice, lists, kept, row, event, satisfied)
    level = np.int64(0)
    while matchings.matched[row] < conditions + tables.most and chosen_next(choice, count, level):
        level = np.int64(conditions - 1)
        is_first = True
        for condition in range(conditions):
            if choice.sample[condition] != matchings.event[row, condition]:
                is_first = False
        if not is_first:
            report_sample(arena, choice.sample, reported, event)
            matchings.matched[row] += 1


@step
def take_event(tables, arena, matchings, lists, kept, choice, row, reported, event, satisfied):  # type: ignore[no-untyped-def]
    """Extends the matching of a key, or reports the samples that an event completes."""
    conditions = tables.bit.size
    if matchings.matched[row] < conditions:
        grows = augmented(tables, matchings, row, event, satisfied)
        if grows and matchings.matched[row] == conditions:
            complete(arena, matchings, choice, row, reported, event)
    if tables.most > 1:
        if matchings.matched[row] > conditions:
            complete_further(tables, arena, matchings, lists, kept, choice, row, reported, event, satisfied)
        if matchings.matched[row] < conditions + tables.most:
            keep(lists, kept, tables.most + conditions - 2, row, event, satisfied)
    if matchings.matched[row] == conditions + tables.most:
        matchings.matched[row] = COMPLETE


@kernel(
    *(SampleTables, Arena, HashIndex, Matchings, KeptLists, KeptEvents, Choice, SequenceEvents, Reported),
    Cursor,
)
def advance_samples(tables, arena, index, matchings, lists, kept, choice, events, reported, cursor):  # type: ignore[no-untyped-def]
    """Reads events from cursor.at on, until DONE, GROW or FULL.

    For each of its keys and each condition an event makes one matching and at most tables.most samples.
    Invariant: at the top each key has a greatest matching of the events before cursor.at, or all the samples
    that they complete have been reported.
    """
    conditions = tables.bit.size
    while cursor.at < cursor.last:
        place = cursor.at
        rows = events.row[place, 1] - events.row[place, 0]
        keys = rows * conditions
        most = keys * tables.most
        more = keys if tables.most > 1 else np.int64(0)
        if (
            arena.size[0] + most * conditions > arena.kind.size
            or 2 * (index.used[0] + keys) > index.words.shape[0]
            or matchings.size[0] + keys > matchings.matched.size
            or kept.size[0] + more > kept.row.size
        ):
            cursor.need_nodes = most * conditions
            cursor.need_entries = keys
            cursor.need_matchings = keys
            cursor.need_kept = more
            return GROW
        if reported.size[0] + most > reported.event.size:
            return FULL
        event = cursor.first + place
        for condition in range(conditions):
            if not satisfies(events, place, tables.bit[condition]):
                continue
            column = tables.key[condition]
            for key_row in range(events.row[place, 0], events.row[place, 1]):
                if not events.known[key_row, column]:
                    continue
                one = events.keys[key_row, column, 0]
                two = events.keys[key_row, column, 1]
                satisfied = satisfied_with(tables, events, place, one, two)
                if satisfied & ((np.int64(1) << condition) - 1) != 0:
                    continue  # the key was read at an earlier condition
                row = matching_of(index, matchings, lists, tables.most, one, two)
                if matchings.matched[row] != COMPLETE:
                    take_event(tables, arena, matchings, lists, kept, choice, row, reported, event, satisfied)
        cursor.at = place + 1
    return DONE
