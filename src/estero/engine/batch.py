"""Batches of classified events, the input of every recognizer: integers in flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import Cube, Grid, pool

BITS_IN_WORD = 63
"""Predicates in one bit word."""

_NO_ORDINALS = np.empty(0, np.int64)
_NO_KEYS, _NO_VALUES = np.empty((0, 0, 2), np.uint64), np.empty((0, 0), np.int64)
_NONE_KNOWN = np.empty((0, 0), np.bool_)

NO_SPREAD: NDArray[np.int64] = np.empty((0, 2), np.int64)
NO_PARTITION: NDArray[np.uint64] = np.empty((0, 2), np.uint64)


class EventBatch(NamedTuple):
    """n relevant events in stream order; arrays that the automaton does not read may be left out.

    ========= ====== ========== ===================================================================
    array     dtype  shape      meaning
    ========= ====== ========== ===================================================================
    stamps    int64  [n]        the unit of the window (times or positions), ascending
    words     uint64 [n, W]     predicate k is bit k % 63 of word k // 63
    keys      uint64 [n, K, 2]  the columns of keys by which runs are joined
    known     bool   [n, K]     which keys are not NULL; a key of no attributes is one that is the same
                                and known everywhere
    values    int64  [n, V]     values to be compared by order, or to be stored in registers
    valid     bool   [n, V]     which values are not NULL
    partition uint64 [n, 2]     key of the event's partition
    ordinal   int64  [n]        place in the stream of the partition
    spread    int64  [n, 2]     where events have several keys: those of event i are rows spread[i, 0] …
                                spread[i, 1] - 1 of `keys` and `known`, which have more rows than events
    ========= ====== ========== ===================================================================
    """

    stamps: NDArray[np.int64]
    words: NDArray[np.uint64]
    keys: NDArray[np.uint64] = _NO_KEYS
    known: NDArray[np.bool_] = _NONE_KNOWN
    values: NDArray[np.int64] = _NO_VALUES
    valid: NDArray[np.bool_] = _NONE_KNOWN
    partition: NDArray[np.uint64] = NO_PARTITION
    ordinal: NDArray[np.int64] = _NO_ORDINALS
    spread: NDArray[np.int64] = NO_SPREAD

    def part(self, here: slice) -> EventBatch:
        """The events of a slice; the rows of spread keys are all kept."""
        if self.spread.shape[0] == 0:
            return EventBatch._make(column[here] for column in self)
        every = self._replace(keys=_NO_KEYS, known=_NONE_KNOWN)
        sliced = EventBatch._make(column[here] for column in every)
        return sliced._replace(keys=self.keys, known=self.known)


class OneEvent(NamedTuple):
    """One relevant event as Python numbers; see `EventBatch`.

    Bit k of `bits` is predicate k, of which there are `words` words. `partition` is None without a key;
    `values` are 0 where they are not `valid`.
    """

    stamp: int
    bits: int
    words: int
    partition: tuple[int, int] | None
    ordinal: int
    values: tuple[int, ...] = ()
    valid: tuple[bool, ...] = ()

    def batch(self) -> EventBatch:
        """The same event as a batch."""
        batch = EventBatch(
            np.array([self.stamp]), words_of(self.bits, self.words), ordinal=np.array([self.ordinal])
        )
        if self.partition is not None:
            batch = batch._replace(partition=np.array([self.partition], np.uint64))
        if self.values:
            batch = batch._replace(values=np.array([self.values]), valid=np.array([self.valid]))
        return batch


def words_of(bits: int, words: int) -> NDArray[np.uint64]:
    """The words of one event, uint64[1, words]."""
    full = (1 << BITS_IN_WORD) - 1
    return np.array([[bits >> BITS_IN_WORD * word & full for word in range(words)]], np.uint64)


@pool
class KeyedEvents(NamedTuple):
    """A batch for the kernels that join runs by keys; see `EventBatch`.

    words uint64[n, W], keys uint64[n, K, 2], known bool[n, K], values int64[n, V], valid bool[n, V]. oldest
    int64[n]: the sequence number of the earliest start that is inside the window when this event is the end.
    partition uint64[n, 2]: the keys by which partitions forget; empty where they do not.
    """

    words: Grid[np.uint64]
    keys: Cube[np.uint64]
    known: Grid[np.bool_]
    values: Grid[np.int64]
    valid: Grid[np.bool_]
    oldest: NDArray[np.int64]
    partition: Grid[np.uint64]


NO_EVENTS = KeyedEvents(
    np.empty((0, 0), np.uint64), _NO_KEYS, _NONE_KNOWN, _NO_VALUES, _NONE_KNOWN, _NO_ORDINALS, NO_PARTITION
)
