"""The events that CONSUME BY has forgotten, for other recognitions of the stream: how far a start is seen."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.column_names import KEYS, POSITION
from estero.engine.int64 import GREATEST
from estero.engine.store.checks import Arrays, need, taken
from estero.language.tree.query import Consume
from estero.recognize.batch_columns import numbers_of, side_by_side

_PREFIX: Final = "consumed_"

Integers = NDArray[np.int64]


def consumed_of(consume: Consume) -> Consumed | None:
    """The record of what a query forgets, empty at first; None if it forgets nothing."""
    return None if consume is Consume.NONE else Consumed(consume)


class Consumed:
    """The positions at which a query has answers, after which nothing before them is seen any more.

    They are those of the partition of a start with ``CONSUME BY PARTITION``, and those of all with ``ANY``.
    Each has a stamp, its time or position, by which it is dropped again.
    """

    def __init__(self, consume: Consume) -> None:
        self._by_partition = consume is Consume.PARTITION
        self._keys = np.empty((0, 2), np.uint64)
        self._position = np.empty(0, np.int64)
        self._stamp = np.empty(0, np.int64)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of events that `add` and `until` read."""
        return (POSITION, *KEYS) if self._by_partition else (POSITION,)

    def add(self, ends: pa.RecordBatch, stamps: Integers) -> None:
        """Adds the distinct events at which answers end, later than all before, and their stamps."""
        self._keys = np.concatenate([self._keys, self._keys_of(ends)])
        self._position = np.concatenate([self._position, numbers_of(ends, POSITION)])
        self._stamp = np.concatenate([self._stamp, stamps])

    def until(self, starts: pa.RecordBatch) -> Integers:
        """The position up to which each of some events is seen: the first answer at or after it."""
        places = np.searchsorted(self._position, numbers_of(starts, POSITION))
        if self._by_partition:
            keys = np.concatenate([self._keys, self._keys_of(starts)])
            number = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
            many, of_starts = self._position.size + 1, number[self._position.size :]
            codes = np.sort(number[: self._position.size] * many + np.arange(self._position.size))
            first = np.searchsorted(codes, of_starts * many + places)
            own, behind = np.append(codes, -1)[first] // many, np.append(codes, -1)[first] % many
            places = np.where(own == of_starts, behind, self._position.size)
        seen: Integers = np.append(self._position, GREATEST)[places]
        return seen

    def forget(self, oldest: int) -> None:
        """Drops the positions whose stamps are before that of every start still to be looked up."""
        kept = self._stamp >= oldest
        if not kept.all():
            self._keys = self._keys[kept]
            self._position, self._stamp = self._position[kept], self._stamp[kept]

    def _keys_of(self, events: pa.RecordBatch) -> NDArray[np.uint64]:
        if self._by_partition:
            return side_by_side(events, KEYS)
        return np.zeros((events.num_rows, 2), np.uint64)

    def arrays(self) -> Arrays:
        """The state as arrays, for `resume`."""
        return {
            f"{_PREFIX}keys": self._keys,
            f"{_PREFIX}position": self._position,
            f"{_PREFIX}stamp": self._stamp,
        }

    def resume(self, arrays: dict[str, Any]) -> None:
        """Takes the state of `arrays` out of them; raises ValueError or KeyError for other arrays."""
        position = taken(arrays, f"{_PREFIX}position", np.int64, None)
        need(np.diff(position) > 0, "answers are in order")
        self._keys = taken(arrays, f"{_PREFIX}keys", np.uint64, position.size, 2)
        self._stamp = taken(arrays, f"{_PREFIX}stamp", np.int64, position.size)
        self._position = position
