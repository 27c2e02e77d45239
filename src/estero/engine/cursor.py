"""The common part of kernels that advance runs: their codes, positions, consumption and reports."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import Cursor, cursor_type, inlined, pool
from estero.engine.store.schema import EVENTS, counters, ref

DONE, MISS, GROW, FULL, SEEK = range(5)
"""The return codes of every kernel that can be called again to continue.

DONE: all events are read. MISS: a row of the automaton is missing. GROW: a pool is too small. FULL: the
reported roots must be read before the kernel continues. SEEK: a walk must be positioned at the beginning of
the next root's range.
"""

CONSUME_NONE, CONSUME_ANY, CONSUME_PARTITION, CONSUME_ANY_ASKED, CONSUME_PARTITION_ASKED = range(5)
"""Which events are forgotten once a complex event has ended. ASKED: a kernel stops after that event, and the
reader of its report decides (`Recognizer.consume`)."""


def cursor_of(*further: str) -> Any:
    """The class of cursors with these places in addition to the common ones.

    `at`: the next event of the batch; `last`: the one before which to stop; `first`: the sequence number of
    the batch's first event; and `further`, which each kernel explains. `need_…` is the capacity that was
    missing.
    """
    return cursor_type("at", "last", "first", *further)


def automaton_cursor_of(*further: str) -> Any:
    """The class of cursors for runs of an automaton that is made deterministic on demand.

    `miss_state` and `miss_class` are the missing row; `generation` counts how often everything was forgotten.
    """
    return cursor_of("generation", "miss_state", "miss_class", "need_nodes", *further)


def reset(cursor: Cursor) -> None:
    """Sets all places to 0."""
    for name in cursor.places:
        setattr(cursor, name, 0)


def taken_needs(cursor: Cursor) -> dict[str, int]:
    """The missing capacity by name (without `need_`); resets those places to 0."""
    needed = {}
    for name in cursor.places:
        if name.startswith("need_"):
            needed[name.removeprefix("need_")] = getattr(cursor, name)
            setattr(cursor, name, 0)
    return needed


@pool
class Reported(NamedTuple):
    """Roots of compact sets: event (the end, int64), root (int32), oldest (earliest start in the window).

    `size[0]` is their number.
    """

    event: NDArray[np.int64] = ref(EVENTS)
    root: NDArray[np.int32] = ref("nodes")
    oldest: NDArray[np.int64] = ref(EVENTS)
    size: NDArray[np.int64] = counters()


@inlined
def report(reported, event, root, oldest):  # type: ignore[no-untyped-def]
    """Reports that the complex events below `root` end at `event`."""
    place = reported.size[0]
    reported.event[place] = event
    reported.root[place] = root
    reported.oldest[place] = oldest
    reported.size[0] = place + 1
