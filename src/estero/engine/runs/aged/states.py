"""The active runs of `run_aged` as dense arrays, and back.

======= ======= ==================================================================================
array   dtype   meaning
======= ======= ==================================================================================
opened  int32   of each partition: how many entries
state   int32   of each entry: its state
queued  int8    of each entry: whether it is a queue, else it is a union-list
length  int32   of each entry: how many runs or cells
node    int32   of each run, from the oldest to the youngest, or cell: its node
clock   int64   of each run, by clock: when it marked its last event; 0 of cells
======= ======= ==================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, INT8S, INT32S, INT64S, column, kernel
from estero.engine.runs.aged.queues import Queues, Waiting, new_queues, new_waiting
from estero.engine.runs.aged.run_aged import NEVER, Aged, Ages
from estero.engine.runs.run_cea import DEAD, Entries, new_entries
from estero.engine.snapshots.columns import Arrays, taken, within
from estero.engine.snapshots.sound import counts, need
from estero.engine.store.arena import NONE
from estero.engine.store.pools import lists_of
from estero.engine.store.tecs import Cells, new_cells


@kernel(Aged, Ages, INT, INT, INT, INT64S, INT64S, INT32S, INT32S, INT8S, INT32S, INT32S, column(np.int64, 2))
def list_aged_runs(  # type: ignore[no-untyped-def]
    aged, ages, used, generation, oldest, now, sizes, opened, state, queued, length, node, clock
):
    """As `open_runs.list_plain_runs`, with what else the table at the top says.

    Of queues those runs are left out that are so old by `now` int64[clocks] (empty: not known) that they lead
    to nothing.
    """
    arena, cells, entries, queues, waiting, partitions, _, _ = aged
    count = 0
    listed = 0
    for partition in range(used):
        opened[partition] = 0
        if generation != NONE and partitions.generation[partition] != generation:
            continue
        entry = partitions.first[partition]
        while entry != NONE:
            before = listed
            run = queues.oldest[entry]
            is_queue = run != NONE
            while run != NONE:
                there = entries.state[entry]
                moves = now.size > 0
                while moves and there != DEAD:
                    moves = False
                    for each in range(ages.length.shape[1]):
                        least = ages.length[there, each]
                        if least != NEVER and not moves:
                            age = np.uint64(now[each]) - np.uint64(waiting.clock[run, each])
                            if age >= np.uint64(least):
                                there = ages.later[there, each]
                                moves = True
                                break
                if there != DEAD and arena.start[waiting.node[run]] >= oldest:
                    node[listed] = waiting.node[run]
                    for each in range(ages.length.shape[1]):
                        clock[listed, each] = waiting.clock[run, each]
                    listed += 1
                run = waiting.next[run]
            cell = NONE if is_queue else entries.head[entry]
            while cell != NONE and arena.start[cells.node[cell]] >= oldest:
                node[listed] = cells.node[cell]
                listed += 1
                cell = cells.next[cell]
            if listed > before:
                state[count] = entries.state[entry]
                queued[count] = is_queue
                length[count] = listed - before
                count += 1
                opened[partition] += 1
            entry = entries.next[entry]
    sizes[0] = count
    sizes[1] = listed


def aged_arrays(
    aged: Aged, ages: Ages, used: int, generation: int, oldest: int, now: NDArray[np.int64] | None
) -> Arrays:
    """The runs of partitions 0 … used - 1 that can still lead to something, as far as is known `now`."""
    count = int(aged.entries.next.size - aged.entries.free[1])
    total = sum(int(pool.next.size - pool.free[1]) for pool in (aged.cells, aged.waiting))
    opened, node = np.zeros(used, np.int32), np.empty(total, np.int32)
    state, length = np.empty(count, np.int32), np.empty(count, np.int32)
    queued, clock = np.empty(count, np.int8), np.zeros((total, ages.length.shape[1]), np.int64)
    known = np.empty(0, np.int64) if now is None else np.array(now, np.int64)
    sizes = np.zeros(2, np.int64)
    list_aged_runs(
        aged, ages, used, generation, oldest, known, sizes, opened, state, queued, length, node, clock
    )
    count, total = sizes.tolist()
    return {
        "opened": opened,
        "state": state[:count],
        "queued": queued[:count],
        "length": length[:count],
        "node": node[:total],
        "clock": clock[:total],
    }


def check_aged_runs(arrays: Arrays, nodes: int, states: int, clocks: int) -> None:
    """What has to hold of such arrays; raises ValueError where it does not."""
    state = taken(arrays, "state", np.int32, None)
    within(state, 0, states, "states")
    opened = counts(arrays, "opened", None, state.size, least=0)
    owner = np.repeat(np.arange(opened.size), opened)
    need(np.unique(owner * states + state).size == state.size, "a partition has a state once")
    queued = taken(arrays, "queued", np.int8, state.size)
    node = taken(arrays, "node", np.int32, None)
    within(node, 0, nodes, "nodes")
    length = counts(arrays, "length", state.size, node.size, least=1)
    clock = taken(arrays, "clock", np.int64, node.size, clocks)
    inside = np.ones(node.size, np.bool_)
    inside[np.cumsum(length) - length] = False
    in_queue = np.repeat(queued != 0, length)
    start, event, kind = (arrays[name][node] for name in ("start", "event", "kind"))
    need((kind >= 0) | ~in_queue, "what waits in a queue has marked an event")
    need((start[1:] <= start[:-1]) | ~inside[1:] | in_queue[1:], "lists fall")
    later = (event[1:] >= event[:-1]) & (clock[1:] >= clock[:-1]).all(axis=1)
    need(later | ~inside[1:] | ~in_queue[1:], "queues are in the order of age")


def aged_pools(
    arrays: Arrays, ages: Ages, rooms: Sequence[int]
) -> tuple[Cells, Entries, Queues, Waiting, NDArray[np.int32]]:
    """The pools of such runs, of at least these sizes, and the first entry of each partition.

    Unions of queues are still to be made. Raises ValueError where a queue is in a state where no age counts,
    or a list in one where it does.
    """
    state, length, node = arrays["state"], arrays["length"], arrays["node"]
    queued = arrays["queued"] != 0
    need((ages.queued[state] != 0) == queued, "there are queues where ages count")
    in_queue = np.repeat(queued, length)
    listed, waited = int(node.size - in_queue.sum()), int(in_queue.sum())
    cells = new_cells(max(rooms[0], 2 * listed))
    cells.node[:listed] = node[~in_queue]
    lists = lists_of(cells.next, cells.free, np.where(queued, 0, length))
    waiting = new_waiting(max(rooms[2], 2 * waited), ages.length.shape[1])
    waiting.node[:waited] = node[in_queue]
    waiting.clock[:waited] = arrays["clock"][in_queue]
    runs = lists_of(waiting.next, waiting.free, np.where(queued, length, 0))
    entries = new_entries(max(rooms[1], 2 * state.size))
    count = state.size
    entries.state[:count] = state
    entries.head[:count] = lists
    entries.length[:count] = np.where(queued, 0, length)
    entries.merged[:count] = NONE
    queues = new_queues(entries.next.size)
    queues.oldest[:count] = queues.behind[:count] = runs
    queues.newest[:count] = np.where(queued, runs + length - 1, NONE)
    queues.after[:count] = np.where(queued, length, 0)
    return cells, entries, queues, waiting, lists_of(entries.next, entries.free, arrays["opened"])
