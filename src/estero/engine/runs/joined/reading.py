"""The loop in which automata that join runs by keys read events; each kernel adds its pools and steps.

`take` determines whether a transition fires at an event, `lacks` whether capacity is missing for all that
fire, and `write` stores the new runs and reports those that end. Machine code inlines all three.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from estero.engine.batch import BITS_IN_WORD
from estero.engine.cursor import CONSUME_ANY, CONSUME_ANY_ASKED, CONSUME_PARTITION, DONE, FULL, GROW
from estero.engine.kernels import inlined, step
from estero.engine.runs.forgotten import first_kept, forget, has_free_slot


class Here(NamedTuple):
    """The current event: its place in the batch and its sequence number.

    Events before `since` do not count in its partition, events before `oldest` nowhere.
    """

    place: int
    event: int
    oldest: int
    since: int


class Tally(NamedTuple):
    """The transitions that fire at an event, and how many of them end a run.

    `waits` counts the runs that will wait without a value, `waits_in_order` those with one, and `gathered`
    the heaps that the new products have as children.
    """

    fires: int
    ends: int
    waits: int
    waits_in_order: int
    gathered: int


@inlined
def read_keyed(  # type: ignore[no-untyped-def]
    tables, compact, index, ordered, forgotten, fired, reported, events, cursor, consume, take, lacks, write
):
    """Reads events from cursor.at on, until DONE, GROW or FULL; resumable with more capacity.

    `compact`, `index` and `ordered` are only passed on to the steps. `forgotten` is None if no partition
    forgets; machine code for that leaves out the code that reads it. A kernel is this loop with

    - ``take(tables, compact, index, ordered, fired, events, cursor, here, transition, tally)``: notes in
      `fired` what a transition gathers if it fires; returns DONE, or GROW where capacity is missing to look,
      and the tally with it. What it looks at is the same for all transitions of an event;
    - ``lacks(tables, compact, index, ordered, cursor, tally)``: returns whether capacity is missing for all
      of the tally, and notes it; and how many nodes that makes at most;
    - ``write(tables, compact, index, ordered, fired, reported, events, here, tally, most)``: writes what
      fires, with that bound.

    Loop invariant: at the top the indexes hold, for each waiting place and key, the runs of all events before
    cursor.at that wait there and started inside the window.
    """
    predicates = tables.first_fired.size - 1
    while cursor.at < cursor.last:
        if consume >= CONSUME_ANY_ASKED and reported.size[0] > 0:
            return FULL
        place = cursor.at
        event = cursor.first + place
        oldest = max(events.oldest[place], cursor.forgotten)
        since = oldest
        if forgotten is not None:
            since = first_kept(forgotten, events.partition, place, oldest)
        here = Here(place, event, oldest, since)
        zero: Any = np.int64(0)  # an integer of 64 bits from the beginning, not a constant
        tally = Tally(zero, zero, zero, zero, zero)
        for predicate in range(predicates):
            word = events.words[place, predicate // BITS_IN_WORD]
            if (word >> np.uint64(predicate % BITS_IN_WORD)) & np.uint64(1) == 0:
                continue
            for transition in range(tables.first_fired[predicate], tables.first_fired[predicate + 1]):
                code, tally = take(
                    tables, compact, index, ordered, fired, events, cursor, here, transition, tally
                )
                if code != DONE:
                    forget_probes(fired)
                    return code
        if tally.fires > 0:
            is_short, most = lacks(tables, compact, index, ordered, cursor, tally)
            if forgotten is not None:
                is_short = is_short or not has_free_slot(forgotten)
            if is_short:
                forget_probes(fired)
                return GROW
            if reported.size[0] + tally.ends > reported.event.size:
                return FULL
            write(tables, compact, index, ordered, fired, reported, events, here, tally, most)
            if tally.ends > 0 and consume in (CONSUME_ANY, CONSUME_PARTITION):
                if forgotten is not None:
                    forget(forgotten, events.partition, place, event + 1, oldest)
                else:
                    cursor.forgotten = event + 1
        cursor.at = place + 1
    return DONE


@step
def forget_probes(fired):  # type: ignore[no-untyped-def]
    """Makes probes look again; until then, runs may have been renumbered."""
    for probe in range(fired.probed.size):
        fired.probed[probe] = -1
