"""Complex events that share no events with those kept before them in their partition (DISJOINT)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import FLAGS, INT64S, column, kernel
from estero.engine.store.checks import Arrays, need, taken


class Disjoint:
    """The end of the last complex event kept in each partition; partitions have keys of two words."""

    def __init__(self) -> None:
        self._keys = np.zeros((0, 2), np.uint64)
        self._until = np.zeros((0, 2), np.int64)

    def kept(
        self, keys: NDArray[np.uint64], start: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Whether each complex event is kept; they come in order of start, those of one start together.

        keys uint64[n, 2]; ends int64[n, 2]: position and stamp. A complex event that starts at or before the
        end of the last one kept is dropped. Those of one start have one end, and are kept or dropped
        together.
        """
        known, numbers = np.unique(np.concatenate((self._keys, keys)), axis=0, return_inverse=True)
        numbers = numbers.reshape(-1)
        before = self._until.shape[0]
        until = np.full((known.shape[0], 2), -1, np.int64)
        until[numbers[:before]] = self._until
        keep = np.zeros(start.size, np.bool_)
        _keep(numbers[before:], start, ends, until, keep)
        self._keys, self._until = known, until
        return keep

    def forget(self, before: int) -> None:
        """Notes that nothing more will start with a stamp below `before`."""
        needed = self._until[:, 1] >= before
        self._keys, self._until = self._keys[needed], self._until[needed]

    @property
    def idle(self) -> bool:
        """Whether there is no state to keep."""
        return not self._until.size

    def arrays(self) -> Arrays:
        """The state as arrays, for `resume`."""
        return {"disjoint_keys": self._keys, "disjoint_until": self._until}

    def resume(self, arrays: Arrays) -> None:
        """Takes the state of `arrays` out of them; raises ValueError or KeyError for other arrays."""
        until = taken(arrays, "disjoint_until", np.int64, None, 2)
        keys = taken(arrays, "disjoint_keys", np.uint64, until.shape[0], 2)
        need(np.unique(keys, axis=0).shape == keys.shape, "partitions are there once")
        self._keys, self._until = keys, until
        del arrays["disjoint_keys"], arrays["disjoint_until"]


@kernel(INT64S, INT64S, column(np.int64, 2), column(np.int64, 2), FLAGS)
def _keep(numbers, start, ends, until, keep):  # type: ignore[no-untyped-def]
    """See `Disjoint.kept`; numbers int64[n] are those of partitions, until int64[partitions, 2]."""
    for place in range(start.size):
        if place > 0 and start[place] == start[place - 1]:
            keep[place] = keep[place - 1]
        elif start[place] > until[numbers[place], 0]:
            until[numbers[place], 0] = ends[place, 0]
            until[numbers[place], 1] = ends[place, 1]
            keep[place] = True
