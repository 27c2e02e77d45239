"""What all kernels that advance runs share: why they stop, where they stand, what they consume and find."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import Cursor, cursor_type, inlined, pool
from estero.engine.store.schema import EVENTS, counters, ref

DONE, MISS, GROW, FULL, SEEK = range(5)
"""What every kernel returns that can be called again to go on.

DONE: all is read. MISS: a row of the automaton is missing. GROW: a pool lacks capacity. FULL: what is
reported must be read. SEEK: a walk is to be put where the next root's range begins.
"""

CONSUME_NONE, CONSUME_ANY, CONSUME_PARTITION, CONSUME_ANY_ASKED, CONSUME_PARTITION_ASKED = range(5)
"""What is forgotten where something ends. ASKED: a kernel stops after that event, and whoever reads what it
has reported decides (`Recognizer.consume`)."""


def cursor_of(*further: str) -> Any:
    """The class of cursors with these places beside those that all have.

    `at`: the next event of the batch; `last`: the one before which to stop; `first`: the sequence number of
    the batch's first event; and `further`, which each kernel explains. `need_…` is the capacity that lacked.
    """
    return cursor_type("at", "last", "first", *further)


def automaton_cursor_of(*further: str) -> Any:
    """The same where runs are those of an automaton that is made deterministic as far as it is needed.

    `miss_state` and `miss_class` are the missing row; `generation` is how often everything was forgotten.
    """
    return cursor_of("generation", "miss_state", "miss_class", "need_nodes", *further)


def reset(cursor: Cursor) -> None:
    """Sets all places to 0."""
    for name in cursor.places:
        setattr(cursor, name, 0)


def taken_needs(cursor: Cursor) -> dict[str, int]:
    """The capacity that lacked, by what follows `need_`; sets those places to 0."""
    needed = {}
    for name in cursor.places:
        if name.startswith("need_"):
            needed[name.removeprefix("need_")] = getattr(cursor, name)
            setattr(cursor, name, 0)
    return needed


@pool
class Reported(NamedTuple):
    """Roots of compact sets: event (the end, int64), root (int32), oldest (earliest start in the window).

    `size[0]` counts them.
    """

    event: NDArray[np.int64] = ref(EVENTS)
    root: NDArray[np.int32] = ref("nodes")
    oldest: NDArray[np.int64] = ref(EVENTS)
    size: NDArray[np.int64] = counters()


@inlined
def report(reported, event, root, oldest):  # type: ignore[no-untyped-def]
    """Notes that the complex events below `root` end at `event`."""
    place = reported.size[0]
    reported.event[place] = event
    reported.root[place] = root
    reported.oldest[place] = oldest
    reported.size[0] = place + 1
