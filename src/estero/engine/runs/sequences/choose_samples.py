"""Further samples of a key: those that an event completes, chosen among the first events of each condition.

Samples that one event completes are reported in the order of the event of the first condition, then of the
second, and so on. With c conditions and n samples, no sample has an event that comes after the first n + c -
2 of its condition, unless that event completes it: instead of such an event it could have n earlier ones, as
c - 2 others are in it besides the one that completes it, and each of these makes a sample that comes before.
So a key holds c (n + c - 2) events at most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import Grid, inlined, pool, step
from estero.engine.store.arena import NONE
from estero.engine.store.schema import EVENTS, counters, data, derived, ref


@pool
class KeptEvents(NamedTuple):
    """The events from which further samples are chosen, in a list for each key; size[0] are in use.

    row int32: that of the key among the matchings; satisfied int64: the conditions of the event, as bits;
    next int32: the next event of the key, or NONE.
    """

    row: NDArray[np.int32] = ref("matchings")
    event: NDArray[np.int64] = ref(EVENTS)
    satisfied: NDArray[np.int64] = data()
    next: NDArray[np.int32] = derived()
    size: NDArray[np.int64] = counters()


@pool
class KeptLists(NamedTuple):
    """The list of events of each key: first, last int32[rows], or NONE.

    held int64[rows, c]: how many of them satisfy each condition.
    """

    first: NDArray[np.int32] = derived()
    last: NDArray[np.int32] = derived()
    held: Grid[np.int64] = derived(axes=("conditions",))


@pool
class Choice(NamedTuple):
    """The events from which a sample is chosen, and the choice so far: scratch for c conditions and e events.

    event, satisfied int64[e]: the events of a key in order, followed by the current one. Places among these:
    at int64[c], those that are chosen; tried int64[c], those that the later conditions may have. And sample
    int64[c]: the events of a sample; parent, queue int64[c]: those of one search.
    """

    event: NDArray[np.int64]
    satisfied: NDArray[np.int64]
    at: NDArray[np.int64]
    tried: NDArray[np.int64]
    sample: NDArray[np.int64]
    parent: NDArray[np.int64]
    queue: NDArray[np.int64]


@inlined
def begin_list(lists, row):  # type: ignore[no-untyped-def]
    """Makes the empty list of a new key."""
    lists.first[row] = NONE
    lists.last[row] = NONE
    for condition in range(lists.held.shape[1]):
        lists.held[row, condition] = 0


@step
def keep(lists, kept, most, row, event, satisfied):  # type: ignore[no-untyped-def]
    """Keeps an event if it is one of the first `most` of a condition."""
    is_early = False
    for condition in range(lists.held.shape[1]):
        if (satisfied >> condition) & 1 != 0:
            if lists.held[row, condition] < most:
                is_early = True
            lists.held[row, condition] += 1
    if not is_early:
        return
    node = kept.size[0]
    kept.row[node] = row
    kept.event[node] = event
    kept.satisfied[node] = satisfied
    kept.next[node] = NONE
    last = np.int64(lists.last[row])
    if last == NONE:
        lists.first[row] = node
    else:
        kept.next[last] = node
    lists.last[row] = node
    kept.size[0] = node + 1


@step
def gathered(choice, lists, kept, row, event, satisfied):  # type: ignore[no-untyped-def]
    """Gathers the events that a sample may have, those of a key and the current one; returns how many."""
    count = np.int64(0)
    node = np.int64(lists.first[row])
    while node != NONE:
        choice.event[count] = kept.event[node]
        choice.satisfied[count] = kept.satisfied[node]
        count += 1
        node = np.int64(kept.next[node])
    choice.event[count] = event
    choice.satisfied[count] = satisfied
    choice.at[0] = NONE
    return count + 1


@step
def chosen_next(choice, count, level):  # type: ignore[no-untyped-def]
    """Whether there is one more sample after the chosen one; it is put into `choice.sample`.

    `level` is 0 at first, and that of the last condition afterwards. The last of the events is part of it.
    Invariant: the choices for the conditions before `level` can be completed, so no choice is in vain.
    """
    conditions = choice.at.size
    while level >= 0:
        place = following(choice, count, level)
        if place == NONE:
            level -= 1
            continue
        choice.at[level] = place
        if not can_be_completed(choice, count, level + 1):
            continue
        if level + 1 == conditions:
            for condition in range(conditions):
                choice.sample[condition] = choice.event[choice.at[condition]]
            return True
        level += 1
        choice.at[level] = NONE
    return False


@step
def following(choice, count, level):  # type: ignore[no-untyped-def]
    """The next event for the condition `level` that is not chosen for an earlier one, or NONE."""
    for place in range(choice.at[level] + 1, count):
        if (choice.satisfied[place] >> level) & 1 != 0:
            is_free = True
            for condition in range(level):
                if choice.at[condition] == place:
                    is_free = False
            if is_free:
                return np.int64(place)
    return np.int64(NONE)


@step
def can_be_completed(choice, count, level):  # type: ignore[no-untyped-def]
    """Whether the conditions from `level` on can have distinct events, with the last event among all.

    A matching of these conditions is enough: if the last event satisfies one of them, another matching has
    that event, too, and still all conditions (Mendelsohn and Dulmage).
    """
    last = count - 1
    is_possible = (choice.satisfied[last] >> level) != 0
    for condition in range(choice.at.size):
        choice.tried[condition] = choice.at[condition] if condition < level else NONE
        if choice.tried[condition] == last:
            is_possible = True
    condition = level
    while is_possible and condition < choice.at.size:
        is_possible = provided(choice, count, level, condition)
        condition += 1
    return is_possible


@step
def provided(choice, count, level, condition):  # type: ignore[no-untyped-def]
    """Whether one more condition can get an event, by an augmenting path through those from `level` on."""
    seen = np.int64(1) << condition
    choice.queue[0] = condition
    choice.parent[condition] = NONE
    first = np.int64(0)
    last = np.int64(1)
    while first < last:
        here = choice.queue[first]
        first += 1
        for place in range(count):
            if (choice.satisfied[place] >> here) & 1 == 0:
                continue
            holder = np.int64(NONE)
            for other in range(choice.at.size):
                if choice.tried[other] == place:
                    holder = np.int64(other)
            if holder == NONE:
                hand_on(choice, here, np.int64(place))
                return True
            if holder >= level and (seen >> holder) & 1 == 0:
                seen |= np.int64(1) << holder
                choice.parent[holder] = here
                choice.queue[last] = holder
                last += 1
    return False


@step
def hand_on(choice, here, place):  # type: ignore[no-untyped-def]
    """Gives a condition a free event, its previous event to the condition it was reached from, and so on."""
    while here != NONE:
        before = choice.tried[here]
        choice.tried[here] = place
        place = before
        here = choice.parent[here]
