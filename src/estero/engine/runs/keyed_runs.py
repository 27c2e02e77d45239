"""Runs that wait by keys in a hash index: the part that does not depend on the kind of entries."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import (
    BITS_IN_WORD,
    NO_EVENTS,
    NO_PARTITION,
    EventBatch,
    KeyedEvents,
)
from estero.engine.cursor import reset
from estero.engine.runs.forgotten import forget, forgotten_rows, new_forgotten, with_free_slot
from estero.engine.runs.joined.run_chain import ChainFired, ChainTables
from estero.engine.runs.joined.run_pcea import Fired, PceaTables
from estero.engine.runs.runs import Runs
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.snapshots.snapshot_pcea import index_of
from estero.engine.snapshots.sound import check_index
from estero.engine.store.hash_index import HashIndex, new_index, rebuilt
from estero.system.cached_property import cached_property

LEAST_CAPACITY = 1 << 12


class KeyedRuns(Runs):
    """See `Runs`.

    The automaton must be unambiguous, or complex events are reported once for each of their runs. `window` is
    in the unit of the stamps (None: none), `consume` one of the CONSUME codes of `cursor`, `capacity` that of
    all pools at first.
    """

    cursor_kind: ClassVar[Any]
    """The class of the kernel's cursors."""
    tables: PceaTables | ChainTables
    """The automaton."""
    _fired: Fired | ChainFired

    def __init__(self, window: int | None, consume: int, capacity: int) -> None:
        self.window, self.consume, self.capacity = window, consume, capacity
        self.index: HashIndex = new_index(capacity)
        self._forgotten = new_forgotten(consume, capacity)
        self._events = NO_EVENTS
        self._cursor = self.cursor_kind()

    @abstractmethod
    def _opened(self, oldest: int) -> Snapshot:
        """The open runs that start at or after `oldest`."""

    @abstractmethod
    def _check_opened(self, snapshot: Snapshot, marks: int) -> None:
        """Raises ValueError unless a snapshot is of the form returned by `_opened`."""

    @abstractmethod
    def _put(self, snapshot: Snapshot) -> None:
        """Replaces all runs by those of `_opened`."""

    @property
    def forgotten(self) -> int:
        """The first event that is not forgotten in every partition, as far as that is known."""
        return int(self._cursor.forgotten)

    def load(self, batch: EventBatch, starts: NDArray[np.int64], first: int) -> None:
        predicates, columns, values = self._asked
        if BITS_IN_WORD * batch.words.shape[1] < predicates:
            raise ValueError(f"{batch.words.shape[1]} words are too few for {predicates} predicates")
        if min(batch.keys.shape[1], batch.known.shape[1]) < columns:
            raise ValueError(f"the automaton reads {columns} key columns, the batch has fewer")
        count, keys = batch.stamps.size, batch.partition.shape[0]
        if self._forgotten is not None and keys != count:
            raise ValueError(f"{count} events have {keys} partition keys, and partitions forget")
        if min(batch.values.shape[1], batch.valid.shape[1]) < values:
            raise ValueError(f"the automaton reads {values} value columns, the batch has fewer")
        self._events = KeyedEvents(
            np.ascontiguousarray(batch.words, np.uint64),
            np.ascontiguousarray(batch.keys, np.uint64),
            np.ascontiguousarray(batch.known, np.bool_),
            np.ascontiguousarray(batch.values, np.int64),
            np.ascontiguousarray(batch.valid, np.bool_),
            starts,
            np.ascontiguousarray(batch.partition if self._forgotten is not None else NO_PARTITION, np.uint64),
        )
        self._cursor.at, self._cursor.first = 0, first

    @cached_property
    def _asked(self) -> tuple[int, int, int]:
        """The number of predicates, key columns and value columns that the automaton reads."""
        return self.tables.first_fired.size - 1, self.tables.columns, self.tables.values

    def needed_from(self, oldest: int) -> int:
        return max(oldest, self.forgotten)

    def forget(self) -> None:
        place = int(self._cursor.at) - 1
        next_event = int(self._cursor.first) + place + 1
        if self._forgotten is None:
            self._cursor.forgotten = next_event
            return
        oldest = self.forgotten
        self._forgotten = with_free_slot(self._forgotten, oldest, self.capacity)
        forget(self._forgotten, self._events.partition, place, next_event, oldest)

    def snapshot(self, oldest: int) -> Snapshot:
        oldest = max(oldest, self.forgotten)
        snapshot = self._opened(oldest)
        if self._forgotten is not None:
            snapshot.arrays["forgotten"] = forgotten_rows(self._forgotten, oldest, snapshot.events)
        return snapshot

    def check(self, snapshot: Snapshot, marks: int) -> None:
        self._check_opened(snapshot, marks)
        if self._forgotten is not None:
            check_index(snapshot.arrays, "forgotten", 1, snapshot.events.size)

    def resume(self, snapshot: Snapshot) -> None:
        self._put(snapshot)
        self.index = index_of(snapshot.arrays["index"], self.capacity)
        if self._forgotten is not None:
            self._forgotten = index_of(snapshot.arrays["forgotten"], self.capacity)
        reset(self._cursor)
        self._fired.probed[:] = -1

    def _ensure_index_capacity(self, entries: int, oldest: int) -> None:
        """Ensures free places for `entries` more, and for a partition that forgets."""
        if self._forgotten is not None:
            self._forgotten = with_free_slot(self._forgotten, oldest, self.capacity)
        if 2 * (self.index.used[0] + entries) > self.index.words.shape[0]:
            self.index = rebuilt(self.index, oldest, max(entries, self.capacity))
