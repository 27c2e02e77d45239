"""Runs that wait by keys in a hash index: what is the same whatever the index leads to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import (
    BITS_IN_WORD,
    NO_EVENTS,
    NO_PARTITION,
    EventBatch,
    KeyedEvents,
    OneEvent,
)
from estero.engine.cursor import reset
from estero.engine.runs.forgotten import forget, forgotten_rows, new_forgotten, with_free_slot
from estero.engine.runs.joined.run_chain import ChainTables
from estero.engine.runs.joined.run_pcea import PceaTables
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.snapshots.snapshot_pcea import index_of
from estero.engine.snapshots.sound import check_index
from estero.engine.store.hash_index import HashIndex, new_index, rebuilt
from estero.engine.tally.tally import Tally
from estero.engine.walk.counter import Counter

LEAST_CAPACITY = 1 << 12


class KeyedRuns(ABC):
    """See `recognizer.Runs`.

    The automaton must be unambiguous, else complex events come once for each of their runs. `window` is in
    the unit of the stamps (None: none), `consume` one of the CONSUME codes of `cursor`, `capacity` that of
    all pools at first.
    """

    window: int | None
    consume: int
    capacity: int

    cursor_kind: ClassVar[Any]
    """The class of the kernel's cursors."""
    decides_later = False
    in_order = True
    compactions = 0
    states = 0
    """There are none: runs wait by keys."""
    counter: Counter[Any]
    tally: Tally | None = None
    """There is none: runs depend on more than the classes of events."""

    def __init__(self, window: int | None, consume: int, capacity: int) -> None:
        self.window, self.consume, self.capacity = window, consume, capacity
        self.index: HashIndex = new_index(capacity)
        self._forgotten = new_forgotten(consume, capacity)
        self._events = NO_EVENTS
        self._cursor = self.cursor_kind()

    @property
    @abstractmethod
    def tables(self) -> PceaTables | ChainTables:
        """The automaton."""

    @property
    @abstractmethod
    def compact(self) -> Any:
        """See `Runs`."""

    @property
    def needed(self) -> int:
        """See `Runs`."""
        return 0

    @property
    @abstractmethod
    def _probed(self) -> NDArray[np.int64]:
        """For which event each probe has looked; -1 for none."""

    @abstractmethod
    def _opened(self, oldest: int) -> Snapshot:
        """What is open and starts at or after `oldest`."""

    @abstractmethod
    def _check_opened(self, snapshot: Snapshot, marks: int) -> None:
        """Raises ValueError unless a snapshot is such as `_opened` gives."""

    @abstractmethod
    def _put(self, snapshot: Snapshot) -> None:
        """Puts what `_opened` gave in the place of all runs."""

    @property
    def forgotten(self) -> int:
        """See `Runs`."""
        return int(self._cursor.forgotten)

    def load(self, batch: EventBatch, starts: NDArray[np.int64], first: int) -> None:
        """See `Runs`."""
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

    def load_one(self, event: OneEvent, oldest: int, number: int) -> None:
        """See `Runs`."""
        self.load(event.batch(), np.array([oldest]), number)

    @cached_property
    def _asked(self) -> tuple[int, int, int]:
        """How many predicates, key columns and value columns the automaton reads."""
        return self.tables.first_fired.size - 1, self.tables.columns, self.tables.values

    def needed_from(self, oldest: int) -> int:
        """See `Runs`."""
        return max(oldest, self.forgotten)

    def decide(self, until: int) -> None:
        """See `Runs`: nothing is decided later."""
        del until

    def forget(self) -> None:
        """See `Runs`."""
        place = int(self._cursor.at) - 1
        next_event = int(self._cursor.first) + place + 1
        if self._forgotten is None:
            self._cursor.forgotten = next_event
            return
        oldest = self.forgotten
        self._forgotten = with_free_slot(self._forgotten, oldest, self.capacity)
        forget(self._forgotten, self._events.partition, place, next_event, oldest)

    sheds = False

    def shed(self, oldest: int) -> int:
        """See `Runs`: there is no partition that could go by itself."""
        del oldest
        return 0

    def snapshot(self, oldest: int) -> Snapshot:
        """See `Runs`."""
        oldest = max(oldest, self.forgotten)
        snapshot = self._opened(oldest)
        if self._forgotten is not None:
            snapshot.arrays["forgotten"] = forgotten_rows(self._forgotten, oldest, snapshot.events)
        return snapshot

    def check(self, snapshot: Snapshot, marks: int) -> None:
        """See `Runs`."""
        self._check_opened(snapshot, marks)
        if self._forgotten is not None:
            check_index(snapshot.arrays, "forgotten", 1, snapshot.events.size)

    def resume(self, snapshot: Snapshot) -> None:
        """See `Runs`."""
        self._put(snapshot)
        self.index = index_of(snapshot.arrays["index"], self.capacity)
        if self._forgotten is not None:
            self._forgotten = index_of(snapshot.arrays["forgotten"], self.capacity)
        reset(self._cursor)
        self._probed[:] = -1

    def _ensure_index_capacity(self, entries: int, oldest: int) -> None:
        """Provides free places for `entries` more, and for a partition that forgets."""
        if self._forgotten is not None:
            self._forgotten = with_free_slot(self._forgotten, oldest, self.capacity)
        if 2 * (self.index.used[0] + entries) > self.index.words.shape[0]:
            self.index = rebuilt(self.index, oldest, max(entries, self.capacity))
