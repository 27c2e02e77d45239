"""The common part of runs of sequences and of samples: an arena, an index by keys, and loading events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import BITS_IN_WORD, EventBatch
from estero.engine.runs.runs import Runs
from estero.engine.runs.sequences.run_sequences import SequenceEvents
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.hash_index import HashIndex, new_index, rebuilt
from estero.engine.store.schema import new
from estero.engine.walk.paths import PathCounter

_NO_EVENTS = SequenceEvents(
    np.empty((0, 0), np.uint64),
    np.empty((0, 2), np.int64),
    np.empty((0, 0, 2), np.uint64),
    np.empty((0, 0), np.bool_),
    np.empty(0, np.int64),
)


class StageRuns(Runs):
    """See `Runs`. `bits` and `keys` are the predicates and key columns that are read.

    `window` is the greatest distance of an end from its start; None: any distance.
    """

    cursor_kind: ClassVar[Any]
    """The class of the kernel's cursors."""

    capacity = 1 << 12

    def __init__(
        self, bits: Sequence[NDArray[np.int64]], keys: Sequence[NDArray[np.int64]], window: int | None
    ) -> None:
        self.window = window
        self.arena: Arena = new(Arena, self.capacity)
        self.index: HashIndex = new_index(self.capacity)
        self.counter: PathCounter = PathCounter()
        self._events = _NO_EVENTS
        self._cursor = self.cursor_kind()
        self._bits = 1 + max(int(asked.max(initial=NONE)) for asked in bits)
        self._columns = 1 + max(int(asked.max(initial=NONE)) for asked in keys)

    def load(self, batch: EventBatch, starts: NDArray[np.int64], first: int) -> None:
        if BITS_IN_WORD * batch.words.shape[1] < self._bits:
            raise ValueError(f"{batch.words.shape[1]} words are too few for {self._bits} predicates")
        if min(batch.keys.shape[1], batch.known.shape[1]) < self._columns:
            raise ValueError(f"{self._columns} key columns are read, and the batch has fewer")
        rows = batch.spread
        if rows.shape[0] == 0:
            alone = np.arange(batch.stamps.size)
            rows = np.column_stack((alone, alone + 1))
        self._events = SequenceEvents(
            np.ascontiguousarray(batch.words, np.uint64),
            np.ascontiguousarray(rows, np.int64),
            np.ascontiguousarray(batch.keys, np.uint64),
            np.ascontiguousarray(batch.known, np.bool_),
            starts,
        )
        self._cursor.at, self._cursor.first = 0, first

    @property
    def size(self) -> int:
        return int(self.arena.size[0] + self.index.used[0])

    @property
    def compact(self) -> Arena:
        return self.arena


def with_room(index: HashIndex, entries: int, oldest: int, capacity: int) -> HashIndex:
    """The index with room for that many more entries."""
    if 2 * (index.used[0] + entries) <= index.words.shape[0]:
        return index
    return rebuilt(index, oldest, max(entries, capacity))
