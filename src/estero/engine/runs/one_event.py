"""Reusable arrays for a batch of one event, and the numbers of its keys and bits."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from estero.engine.runs.run_cea import Events
from estero.engine.store.hashing import KeyTable

_MOST_REMEMBERED = 1 << 17
"""The number of partitions whose numbers are remembered."""


@dataclass(slots=True)
class OneLoaded:
    """A batch of one event, which is overwritten for each event.

    `classes` are the numbers of words of bits, `partitions` those of keys in the table `numbered_by`.
    """

    event_class: NDArray[np.int32]
    partition: NDArray[np.int32]
    ordinal: NDArray[np.int64]
    oldest: NDArray[np.int64]
    values: NDArray[np.int64]
    valid: NDArray[np.bool_]
    key: NDArray[np.uint64]
    events: Events
    classes: dict[int, int] = field(default_factory=dict)
    partitions: dict[tuple[int, int], int] = field(default_factory=dict)
    numbered_by: KeyTable | None = None

    @classmethod
    def of(cls, values: int) -> OneLoaded:
        """Allocates the arrays for a number of values."""
        event_class, partition = np.zeros(1, np.int32), np.zeros(1, np.int32)
        ordinal, oldest, key = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros((1, 2), np.uint64)
        numbers, valid = np.zeros((1, values), np.int64), np.zeros((1, values), np.bool_)
        events = Events(event_class, partition, ordinal, oldest, numbers, valid)
        return cls(event_class, partition, ordinal, oldest, numbers, valid, key, events)

    def number_of(self, key: tuple[int, int], keys: KeyTable) -> int | None:
        """The number of a partition, None if it is not remembered; numbers change only with the table."""
        if self.numbered_by is not keys or len(self.partitions) == _MOST_REMEMBERED:
            self.partitions.clear()
            self.numbered_by = keys
        return self.partitions.get(key)
