"""What all kernels that advance runs share: why they stop, where they stand, what they consume and find."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.jit import inlined

DONE, MISS, GROW, FULL, SEEK = range(5)
"""What every kernel returns that can be called again to go on.

DONE: all is read. MISS: a row of the automaton is missing. GROW: room is missing. FULL: what was found must
be read. SEEK: a walk is to be put where the next root's range begins.
"""

CONSUME_NONE, CONSUME_ANY, CONSUME_PARTITION, CONSUME_ANY_ASKED, CONSUME_PARTITION_ASKED = range(5)
"""What is forgotten where something ends. ASKED: a kernel stops after that event, and whoever reads what it
has found decides (`Recognizer.consume`)."""


def new_cursor(*further: str) -> Any:
    """A record of zeros, which kernels read and write: int64 places, by name.

    `at`: the next event of the batch; `last`: the one before which to stop; `first`: the sequence number of
    the batch's first event; and `further`, which each kernel explains. `need_…` is the room that was missing.
    """
    places = np.dtype([(name, np.int64) for name in ("at", "last", "first", *further)])
    return np.zeros(1, places).view(np.recarray)[0]


def reset(cursor: Any) -> None:
    """Sets all places to 0."""
    for name in cursor.dtype.names:
        cursor[name] = 0


def taken_needs(cursor: Any) -> dict[str, int]:
    """The room that was missing, by what follows `need_`; the places are 0 then."""
    needed = {}
    for name, places in zip(cursor.dtype.names, cursor.item(), strict=True):  # reading one by one takes µs
        if name.startswith("need_"):
            needed[name.removeprefix("need_")] = places
            if places:
                cursor[name] = 0
    return needed


class Found(NamedTuple):
    """Roots of compact sets: event (the end, int64), root (int32), oldest (earliest start in the window).

    `size[0]` counts them.
    """

    event: NDArray[np.int64]
    root: NDArray[np.int32]
    oldest: NDArray[np.int64]
    size: NDArray[np.int64]


@inlined
def report(found, event, root, oldest):  # type: ignore[no-untyped-def]
    """Notes that the complex events below `root` end at `event`."""
    place = found.size[0]
    found.event[place] = event
    found.root[place] = root
    found.oldest[place] = oldest
    found.size[0] = place + 1
