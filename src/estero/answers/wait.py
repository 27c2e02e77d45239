"""The time that complex events wait for deadlines, and the time at which the wait is over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.engine.int64 import GREATEST, added


class Wait(NamedTuple):
    """A wait of `ticks` after the end of a complex event; `time` is the type that shows times."""

    ticks: int
    time: pa.DataType

    def over(self, ends: pa.Array) -> pa.Array:
        """The end of the wait, for ends in ticks; at most the latest time that there is."""
        return times_after(ends.to_numpy(zero_copy_only=False), self.ticks, self.time)


def times_after(ticks: NDArray[np.int64], length: int, kind: pa.DataType) -> pa.Array:
    """Times of a type, `length` ticks after others, and at most the latest one of the type."""
    times = np.minimum(added(ticks, length), latest_time(kind))
    return in_type(pa.array(times), kind)


def latest_time(kind: pa.DataType) -> int:
    """The latest time of a type, in ticks.

    Among timestamps it is one tick before the greatest integer, which engines read as infinity.
    """
    return GREATEST - int(pa.types.is_timestamp(kind))


def in_type(ticks: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Ticks as times of a type."""
    return ticks.view(wanted) if pa.types.is_timestamp(wanted) else ticks.cast(wanted)
