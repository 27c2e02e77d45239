"""Configurations of a chain automaton in flat arrays: layout, growth, dropping (chain-CEA, run DAG)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import Cube, pool
from estero.engine.store.schema import EVENTS, NONE, ROWS, counters, data, ref


@pool
class RunNodes(NamedTuple):
    """Configurations; `mark.size` is the capacity.

    Nodes of waiting runs are 0 … size[0] - 1, in order of events. Those that only end are the last size[1],
    and are dropped once they are read.

    ====== ====== ================ ==================================================================
    array  dtype  shape            meaning for node i
    ====== ====== ================ ==================================================================
    mark   int32  [rows]           label-set id of its event
    event  int64  [rows]           its event, as a sequence number
    place  int32  [rows]           the waiting place of the runs before it, NONE where a run begins
    top    int32  [rows]           the newest entry there with its key, NONE where a run begins
    head   int32  [rows]           the first entry from there on that fits the event
    values uint64 [rows, d, 2]     the values from which their attributes differ
    size   int64  [2]              nodes in use, at the front and at the back
    ====== ====== ================ ==================================================================
    """

    mark: NDArray[np.int32] = ref("marks")
    event: NDArray[np.int64] = ref(EVENTS)
    place: NDArray[np.int32] = ref("places", NONE)
    top: NDArray[np.int32] = ref("entries", NONE)
    head: NDArray[np.int32] = ref("entries", NONE)
    values: Cube[np.uint64] = data(axes=("attributes", 2))
    size: NDArray[np.int64] = counters(ROWS, "")
