"""How long complex events wait for deadlines, and the times with which these have passed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from estero.engine.int64 import GREATEST, added


class Wait(NamedTuple):
    """A wait of so many ticks behind the end of a complex event; `time` is the type that shows times."""

    ticks: int
    time: pa.DataType

    def over(self, ends: pa.Array) -> pa.Array:
        """When the wait is over, for ends in ticks: the latest time that there is, where it is later still.

        Among timestamps that is one tick before the greatest integer, which engines read as infinity.
        """
        times = added(ends.to_numpy(zero_copy_only=False), self.ticks)
        if pa.types.is_timestamp(self.time):
            times = np.minimum(times, GREATEST - 1)
        return in_type(pa.array(times), self.time)


def in_type(ticks: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Ticks as times of a type."""
    return ticks.view(wanted) if pa.types.is_timestamp(wanted) else ticks.cast(wanted)
