"""The loop in which automata read events partition by partition; each kernel adds its pools and two steps.

`look` determines the effect of an event on the runs of its partition and whether there is capacity for that;
`write` carries it out. Machine code inlines both.
"""

from __future__ import annotations

from typing import NamedTuple

from estero.engine.cursor import CONSUME_ANY, CONSUME_ANY_ASKED, CONSUME_PARTITION, DONE, FULL, MISS
from estero.engine.kernels import inlined, interpreted
from estero.engine.store.arena import NONE


class Here(NamedTuple):
    """The current event: its place in the batch, its sequence number, its class and its partition.

    `oldest` is the earliest start inside the window. An event that was dropped before the one at `place`, and
    is read now, is `in_gap` and of class 0.
    """

    place: int
    event: int
    event_class: int
    partition: int
    oldest: int
    in_gap: bool


@inlined
def read_events(automaton, pools, reported, events, cursor, gaps, consume, look, write, drop):  # type: ignore[no-untyped-def]
    """Reads events from cursor.at on, until one of the codes of `cursor`; resumable with more capacity.

    `automaton` and `pools` are only passed on to the steps, except ``pools.partitions``. A kernel is this
    loop with

    - ``look(automaton, pools, reported, events, cursor, here)``: looks up every row and counts what is to be
      written; returns DONE, MISS, GROW or FULL, that count, and a plan for `write`. Of the pools it changes
      only what changes no answer: where it stops with another code than DONE, it is called again;
    - ``write(automaton, pools, reported, events, cursor, here, count, plan)``: writes what an event changes;
      called where `count` is not 0;
    - ``drop(automaton, pools, partition)``: forgets every run of a partition.

    Loop invariant: at the top the runs of every partition reflect all its events before cursor.at (with
    `gaps`, also the unseen ones up to its ordinal).
    """
    partitions = pools.partitions
    while cursor.at < cursor.last:
        if consume >= CONSUME_ANY_ASKED and reported.size[0] > 0:
            return FULL
        place = cursor.at
        partition = events.partition[place]
        if is_forgotten(partitions, partition, cursor, consume):
            drop(automaton, pools, partition)
        in_gap = is_behind(partitions, partition, events, place, gaps)
        event_class = events.event_class[place]
        if in_gap:
            event_class = 0
        here = Here(place, cursor.first + place, event_class, partition, events.oldest[place], in_gap)
        code, count, plan = look(automaton, pools, reported, events, cursor, here)
        if code != DONE:
            return code
        if count > 0:
            before = reported.size[0]
            write(automaton, pools, reported, events, cursor, here, count, plan)
            if is_consumed(partitions, partition, cursor, consume, reported.size[0] > before):
                drop(automaton, pools, partition)
        is_read(partitions, partition, events, place, cursor, in_gap, count)
    return DONE


@inlined
def is_forgotten(partitions, partition, cursor, consume):  # type: ignore[no-untyped-def]
    """Whether everything was forgotten since an event of this partition was read; true once only."""
    forgetful = consume in (CONSUME_ANY, CONSUME_ANY_ASKED)
    if not forgetful or partitions.generation[partition] == cursor.generation:
        return False
    partitions.generation[partition] = cursor.generation
    return True


@inlined
def is_consumed(partitions, partition, cursor, consume, ended):  # type: ignore[no-untyped-def]
    """Whether the runs of a partition in which something `ended` are to be forgotten; true once only."""
    if not ended or consume not in (CONSUME_ANY, CONSUME_PARTITION):
        return False
    cursor.generation += 1
    partitions.generation[partition] = cursor.generation
    return True


@inlined
def is_behind(partitions, partition, events, place, gaps):  # type: ignore[no-untyped-def]
    """Whether a partition with runs has a dropped event to read before the one at `place`."""
    open_ = partitions.first[partition] != NONE
    return gaps and open_ and events.ordinal[place] - partitions.ordinal[partition] > 1


@inlined
def is_read(partitions, partition, events, place, cursor, in_gap, count):  # type: ignore[no-untyped-def]
    """Notes that an event is read; if it was a dropped one without effect, so are all before `place`."""
    if not in_gap:
        partitions.ordinal[partition] = events.ordinal[place]
        cursor.at = place + 1
    elif count == 0:
        partitions.ordinal[partition] = events.ordinal[place] - 1
    else:
        partitions.ordinal[partition] += 1


@inlined
def missing(cursor, state, event_class):  # type: ignore[no-untyped-def]
    """Notes in the cursor which row is missing."""
    cursor.miss_state = state
    cursor.miss_class = event_class
    return MISS


@interpreted
def within_bound(used, bound):  # type: ignore[no-untyped-def]
    """Raises AssertionError if a step used more than the capacity it had ensured."""
    if used > bound:
        raise AssertionError(f"a step of a kernel used {used} places where its bound is {bound}")
