"""Open runs of `run_aged`, listed and restored: each entry has a union-list or a queue of runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT8S, INT32S, INT64S, kernel
from estero.engine.runs.aged.queues import Queues, Waiting
from estero.engine.runs.aged.run_aged import NEVER, Aged, Ages
from estero.engine.runs.run_cea import DEAD
from estero.engine.store.arena import NONE
from estero.engine.store.checks import Arrays, counts, need
from estero.engine.store.lists import begins, check_lists, lengths_without, linked, rows_of_lists
from estero.engine.store.schema import count_written, new


@kernel(Ages, Waiting, INT32S, INT32S, INT64S, INT8S)
def mark_leading(ages, waiting, runs, state, now, leads):  # type: ignore[no-untyped-def]
    """Sets leads[i] = 0 if run runs[i], which waits in state[i], is too old to lead to anything.

    now int64[clocks]: the readings of the clocks.
    """
    for number in range(runs.size):
        there = state[number]
        moves = True
        while moves and there != DEAD:
            moves = False
            for clock in range(ages.length.shape[1]):
                least = ages.length[there, clock]
                if least != NEVER and not moves:
                    age = np.uint64(now[clock]) - np.uint64(waiting.clock[runs[number], clock])
                    if age >= np.uint64(least):
                        there = ages.later[there, clock]
                        moves = True
                        break
        if there == DEAD:
            leads[number] = 0


def aged_arrays(
    aged: Aged, ages: Ages, first: NDArray[np.int32], oldest: int, now: NDArray[np.int64] | None
) -> tuple[Arrays, NDArray[np.int32]]:
    """The entries of partitions that begin with `first`, and the number of entries of each partition.

    Leaves out runs that can lead to nothing, as far as that is known `now`.
    """
    rows, opened = rows_of_lists(aged, "entries", first, oldest)
    state, oldest_run = aged.entries.state[rows], aged.queues.oldest[rows]
    runs, waiting = rows_of_lists(aged, "waiting", oldest_run, oldest)
    leads = (aged.arena.start[aged.waiting.node[runs]] >= oldest).astype(np.int8)
    if now is not None:
        mark_leading(ages, aged.waiting, runs, np.repeat(state, waiting), np.array(now, np.int64), leads)
    runs, waiting = runs[leads != 0], lengths_without(waiting, leads != 0)
    head = np.where(oldest_run == NONE, aged.entries.head[rows], np.int32(NONE))
    cells, listed = rows_of_lists(aged, "cells", head, oldest)
    kept = waiting + listed > 0
    arrays = {
        "entries.state": state[kept],
        "cells.count": listed[kept],
        "cells.node": aged.cells.node[cells],
        "waiting.count": waiting[kept],
        "waiting.node": aged.waiting.node[runs],
        "waiting.clock": aged.waiting.clock[runs],
    }
    return arrays, lengths_without(opened, kept)


def check_aged_runs(arrays: Arrays, opened: NDArray[np.int32], sizes: dict[str, int]) -> None:
    """Raises ValueError unless the arrays are of the form returned by `aged_arrays`."""
    check_lists(Aged, "entries", arrays, opened, sizes, least=0)
    listed = arrays["cells.count"]
    waiting = counts(arrays, "waiting.count", listed.size, count_written(Waiting, "waiting", arrays), least=0)
    check_lists(Aged, "waiting", arrays, waiting, sizes)
    need((listed > 0) != (waiting > 0), "entries have either a list or a queue")
    node, clock = arrays["waiting.node"], arrays["waiting.clock"]
    event = arrays["arena.event"][node]
    need(arrays["arena.kind"][node] >= 0, "what waits in a queue has marked an event")
    later = (event[1:] >= event[:-1]) & (clock[1:] >= clock[:-1]).all(axis=1)
    need(later | begins(waiting)[1:], "queues are in the order of age")


def with_aged_runs(aged: Aged, ages: Ages, arrays: Arrays) -> tuple[Aged, NDArray[np.int32]]:
    """The pools with such runs in place of all others, and the first entry of each partition.

    Unions of queues are not made yet. Raises ValueError if a queue is in a state where no age matters, or a
    list in one where it does.
    """
    waiting = arrays["waiting.count"]
    size = waiting.size
    need((ages.queued[arrays["entries.state"]] != 0) == (waiting > 0), "there are queues where ages count")
    aged, first = linked(aged, "entries", arrays, arrays["opened"])
    aged, runs = linked(aged, "waiting", arrays, waiting)
    queues = new(Queues, aged.entries.next.size)
    queues.oldest[:size] = queues.behind[:size] = runs
    queues.newest[:size] = np.where(waiting > 0, runs + waiting - 1, NONE)
    queues.after[:size] = waiting
    return aged._replace(queues=queues), first
