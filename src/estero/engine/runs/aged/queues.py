"""Queues of runs by age, with the union of the runs in each: amortised constant time for each run.

A queue is two stacks (a sliding window over a semigroup). In the *front* each run has the union of itself and
all younger ones of the front, so that the oldest can leave; the runs *behind* are a union-list (tecs.py), so
that younger ones can be added. When the front is used up, all runs behind become the front, by unions of
logarithmic depth: those of a skew-binary list (Okasaki, Purely Functional Data Structures, 9.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import Grid, inlined, pool, step
from estero.engine.runs.run_cea import add_node, merged_node
from estero.engine.store.arena import NONE
from estero.engine.store.lists import give_back
from estero.engine.store.schema import data, derived, free_rows, heads, own, ref
from estero.engine.store.tecs import free_list, new_cell, pair

MOST_TREES = 128
"""The most trees of a skew-binary list: twice the number of bits of a number of runs."""


@pool
class Queues(NamedTuple):
    """For each entry of `run_cea.Entries` the queue of its runs, where their age matters; all int32.

    oldest, newest: the first and the last run, NONE where there is no queue. behind: the first run that is
    not in the front, NONE where all are; ahead, after: how many are in the front, and how many behind it. The
    entry's list is the union of those behind; it is NONE if it has not been made yet, and then no run is in
    the front. whole: the union of all, NONE if that has changed.
    """

    oldest: NDArray[np.int32] = heads("waiting")
    behind: NDArray[np.int32] = derived(NONE)
    newest: NDArray[np.int32] = derived(NONE)
    ahead: NDArray[np.int32] = derived(0)
    after: NDArray[np.int32] = derived(0)
    whole: NDArray[np.int32] = derived(NONE)


@pool
class Waiting(NamedTuple):
    """Runs in queues, from the oldest to the youngest.

    node: the node of the run; union: that of it and all younger ones of the front; clock: when it marked its
    last event.
    """

    node: NDArray[np.int32] = ref("arena")
    union: NDArray[np.int32] = derived()
    clock: Grid[np.int64] = data(axes=("clocks",))
    next: NDArray[np.int32] = own()
    free: NDArray[np.int64] = free_rows()


@inlined
def ordered_pair(arena, one, two):  # type: ignore[no-untyped-def]
    """The union of two nodes, the one that starts later on the left."""
    return pair(arena, one, two) if arena.start[one] >= arena.start[two] else pair(arena, two, one)


@inlined
def is_unmade(entries, queues, entry):  # type: ignore[no-untyped-def]
    """Whether the union of a queue has not been made yet."""
    return queues.behind[entry] != NONE and entries.head[entry] == NONE


@inlined
def no_queue(queues, entry):  # type: ignore[no-untyped-def]
    """Forgets the queue of an entry, whose runs have moved elsewhere or are gone."""
    queues.oldest[entry] = NONE
    queues.behind[entry] = NONE
    queues.newest[entry] = NONE
    queues.ahead[entry] = 0
    queues.after[entry] = 0
    queues.whole[entry] = NONE


@inlined
def free_run(waiting, run):  # type: ignore[no-untyped-def]
    """Frees the row of a run."""
    give_back(waiting, run)


@step
def free_runs(cells, entries, queues, waiting, entry):  # type: ignore[no-untyped-def]
    """Frees all that an entry holds, its runs and its list."""
    run = queues.oldest[entry]
    while run != NONE:
        following = waiting.next[run]
        free_run(waiting, run)
        run = following
    free_list(cells, entries.head[entry])
    entries.head[entry] = NONE
    entries.length[entry] = 0
    entries.merged[entry] = NONE
    no_queue(queues, entry)


@step
def turn(arena, cells, entries, queues, waiting, entry, scratch, trees):  # type: ignore[no-untyped-def]
    """Makes all runs behind the front, which is used up, the new front. Makes up to three nodes for each.

    scratch int32 holds as many items as there are runs; trees int32[3, MOST_TREES]: the trees of the list so
    far, their heights, and each one's union with those before it.
    """
    free_list(cells, entries.head[entry])
    entries.head[entry] = NONE
    entries.length[entry] = 0
    entries.merged[entry] = NONE
    count = 0
    run = queues.oldest[entry]
    while run != NONE:
        scratch[count] = run
        count += 1
        run = waiting.next[run]
    top = 0
    for place in range(count - 1, -1, -1):
        run = scratch[place]
        tree = waiting.node[run]
        height = 0
        if top > 1 and trees[1, top - 1] == trees[1, top - 2]:
            height = trees[1, top - 1] + 1
            tree = ordered_pair(arena, tree, ordered_pair(arena, trees[0, top - 1], trees[0, top - 2]))
            top -= 2
        trees[0, top] = tree
        trees[1, top] = height
        trees[2, top] = tree if top == 0 else ordered_pair(arena, tree, trees[2, top - 1])
        waiting.union[run] = trees[2, top]
        top += 1
    queues.behind[entry] = NONE
    queues.ahead[entry] = count
    queues.after[entry] = 0
    queues.whole[entry] = NONE


@inlined
def latest_start(arena, cells, entries, queues, waiting, entry):  # type: ignore[no-untyped-def]
    """The latest start of the runs of an entry, whose union has been made."""
    start = np.int64(-1)
    if entries.head[entry] != NONE:
        start = arena.start[cells.node[entries.head[entry]]]
    if queues.ahead[entry] > 0:
        start = max(start, arena.start[waiting.union[queues.oldest[entry]]])
    return start


@inlined
def union_of(arena, cells, entries, queues, waiting, entry, oldest, scratch):  # type: ignore[no-untyped-def]
    """The union of all runs of an entry: already made, except for one node more than its list needs."""
    if queues.oldest[entry] == NONE:
        return merged_node(arena, cells, entries, entry, oldest, scratch)
    node = queues.whole[entry]
    if node == NONE:
        if entries.head[entry] != NONE:
            node = merged_node(arena, cells, entries, entry, oldest, scratch)
        if queues.ahead[entry] > 0:
            front = waiting.union[queues.oldest[entry]]
            node = front if node == NONE else ordered_pair(arena, front, node)
        queues.whole[entry] = node
    return node


@step
def push(arena, cells, entries, queues, waiting, entry, run, oldest, scratch):  # type: ignore[no-untyped-def]
    """Appends a run, which is no older than the others, to the queue of an entry."""
    unmade = is_unmade(entries, queues, entry)
    waiting.next[run] = NONE
    if queues.newest[entry] == NONE:
        queues.oldest[entry] = run
    else:
        waiting.next[queues.newest[entry]] = run
    queues.newest[entry] = run
    if queues.behind[entry] == NONE:
        queues.behind[entry] = run
    queues.after[entry] += 1
    queues.whole[entry] = NONE
    if unmade:
        return
    if entries.head[entry] == NONE:
        entries.head[entry] = new_cell(cells, waiting.node[run], NONE)
        entries.length[entry] = 1
        entries.merged[entry] = NONE
    else:
        add_node(arena, cells, entries, entry, waiting.node[run], oldest, scratch)


@inlined
def pop(queues, waiting, entry):  # type: ignore[no-untyped-def]
    """Removes the oldest run, which is in the front, from the queue."""
    run = queues.oldest[entry]
    queues.oldest[entry] = waiting.next[run]
    queues.ahead[entry] -= 1
    queues.whole[entry] = NONE
    if queues.oldest[entry] == NONE:
        queues.newest[entry] = NONE
    return run


@step
def merge_queues(arena, cells, entries, queues, waiting, entry, first, count):  # type: ignore[no-untyped-def]
    """Merges `count` runs, linked from `first` on in the order of their age, into those of an entry.

    The union must be made anew.
    """
    free_list(cells, entries.head[entry])
    entries.head[entry] = NONE
    entries.length[entry] = 0
    entries.merged[entry] = NONE
    other = queues.oldest[entry]
    last = NONE
    while first != NONE or other != NONE:
        takes_first = other == NONE
        if first != NONE and not takes_first:
            takes_first = arena.event[waiting.node[first]] < arena.event[waiting.node[other]]
        run = first if takes_first else other
        if takes_first:
            first = waiting.next[run]
        else:
            other = waiting.next[run]
        if last == NONE:
            queues.oldest[entry] = run
        else:
            waiting.next[last] = run
        last = run
    waiting.next[last] = NONE
    queues.newest[entry] = last
    queues.behind[entry] = queues.oldest[entry]
    queues.after[entry] += queues.ahead[entry] + count
    queues.ahead[entry] = 0
    queues.whole[entry] = NONE
