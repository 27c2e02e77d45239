"""Configurations of a chain automaton in flat arrays: layout, growth, leaving out (chain-CEA, run DAG)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import Cube, pool
from estero.engine.store.arena import NONE, grown


@pool
class RunNodes(NamedTuple):
    """Configurations; `mark.size` is the capacity.

    Nodes of runs that wait are 0 … size[0] - 1, in order of events. Those that only end are the last size[1]
    and are forgotten once they are read.

    ====== ====== ================ ==================================================================
    array  dtype  shape            meaning for node i
    ====== ====== ================ ==================================================================
    mark   int32  [room]           label-set id of its event
    event  int64  [room]           its event, as a sequence number
    place  int32  [room]           the waiting place of the runs before it, NONE where a run begins
    top    int32  [room]           the newest entry there with its key, NONE where a run begins
    head   int32  [room]           the first entry from there on that it goes with
    values uint64 [room, d, 2]     what their attributes differ from
    size   int64  [2]              nodes in use, at the front and at the back
    ====== ====== ================ ==================================================================
    """

    mark: NDArray[np.int32]
    event: NDArray[np.int64]
    place: NDArray[np.int32]
    top: NDArray[np.int32]
    head: NDArray[np.int32]
    values: Cube[np.uint64]
    size: NDArray[np.int64]


def new_run_nodes(capacity: int, attributes: int) -> RunNodes:
    """Room for `capacity` nodes."""
    mark, place, top, head = (np.empty(capacity, np.int32) for _ in range(4))
    values = np.empty((capacity, attributes, 2), np.uint64)
    return RunNodes(mark, np.empty(capacity, np.int64), place, top, head, values, np.zeros(2, np.int64))


def grown_run_nodes(nodes: RunNodes, capacity: int) -> RunNodes:
    """The same waiting nodes with room for `capacity`; those that only end are left out."""
    bigger = grown(nodes, new_run_nodes(capacity, nodes.values.shape[1]))
    bigger.size[1] = 0
    return bigger


def drop_run_nodes(nodes: RunNodes, first: int, first_entry: int) -> None:
    """Leaves out the nodes before `first`, which no entry has; entries are renumbered likewise."""
    used = int(nodes.size[0])
    kept = used - first
    for column in (nodes.mark, nodes.event, nodes.place, nodes.values):
        column[:kept] = column[first:used].copy()
    for entries in (nodes.top, nodes.head):
        entries[:kept] = np.maximum(entries[first:used] - first_entry, NONE)
    nodes.size[0] = kept
