"""Batches of classified events in, products of heaps out, for a parallelised automaton (PCEA).

The same use as `recognizer.Recognizer`: it holds the arrays between batches and answers the kernel when
that returns, and whoever reads answers does not see which of the two it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.runs import run_cea, run_pcea
from estero.engine.runs.forgotten import (
    NO_PARTITION,
    check_asked,
    forgotten_rows,
    new_forgotten,
    partition_keys,
    with_forgotten,
    with_room_for_one,
)
from estero.engine.runs.run_pcea import PceaEvents, PceaTables, advance_pcea, new_fired
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.snapshots.snapshot_pcea import Waiting, index_of, waiting_arrays, waiting_of, waits
from estero.engine.snapshots.sound import check_entries, check_heaps, check_stamps, check_trees
from estero.engine.stamps import out_of_reach, window_starts
from estero.engine.store.hash_index import mark_roots, new_index, rebuilt, rename_roots
from estero.engine.store.heap import (
    grown_heap_nodes,
    grown_products,
    mark_live,
    move_live,
    new_heap_nodes,
    new_products,
)
from estero.engine.store.ordered_index import mark_trees, new_ordered_index, rename_trees, with_room
from estero.engine.walk.enumeration import Enumeration, match_at
from estero.engine.walk.matches import Matches
from estero.engine.walk.products import Heaps, ProductCounter
from estero.engine.walk.roots import Roots, by_end, counts_by_end, new_found, roots_of
from estero.engine.walk.share import Part

_SMALLEST = 1 << 12
_FOUND_ROOM = 1 << 16
_NO_VALUES = np.empty((0, 0), np.int64), np.empty((0, 0), np.bool_)


class PceaBatch(NamedTuple):
    """n relevant events in stream order.

    `stamps` int64[n]: what the window measures, not falling. `words` uint64[n, W]: predicate k is bit k % 63
    of word k // 63. `keys` uint64[n, K, 2]: key column k, NULL unless `known` bool[n, K]; a key of no
    attributes is one that is the same and known everywhere. `values` int64[n, V]: value column v, in the
    order that the automaton asks about, NULL unless `valid` bool[n, V]. `partition` uint64[n, 2]: where
    partitions forget, the key of each event's.
    """

    stamps: NDArray[np.int64]
    words: NDArray[np.uint64]
    keys: NDArray[np.uint64]
    known: NDArray[np.bool_]
    values: NDArray[np.int64] = _NO_VALUES[0]
    valid: NDArray[np.bool_] = _NO_VALUES[1]
    partition: NDArray[np.uint64] = NO_PARTITION


_READ_OFF = 1_000
"""Up to so many complex events of an end are read off sooner than a window's edge is counted through."""


class PceaRecognizer:
    """The state of recognition of one parallelised automaton over one stream.

    The automaton must be unambiguous, else complex events come once for each of their runs. If it can
    mark an event twice in one run, the event has an item for each. `window` is in the unit of the stamps
    (None: none), `consume` one of the CONSUME codes of run_cea, `room` what there is room for at first.
    """

    def __init__(
        self,
        tables: PceaTables,
        window: int | None = None,
        *,
        consume: int = run_cea.CONSUME_NONE,
        room: int = _SMALLEST,
    ) -> None:
        self.tables = tables
        self.window = window
        self.products = new_products(room, room)
        self.nodes = new_heap_nodes(room)
        self.index = new_index(room)
        self.ordered = new_ordered_index(room if tables.ordered_steps else 1)
        self._consume = consume
        self._forgotten = new_forgotten(consume, room)
        self._partition = NO_PARTITION
        self._room = room
        self._fired = new_fired(tables)
        self._found = new_found(min(room, _FOUND_ROOM))
        self.holding = False
        """Whether roots stay valid until the next push begins; what is out of reach waits so long, too."""
        self._cursor = np.zeros(run_pcea.CURSOR_SIZE, np.int64)
        self._stamps = np.empty(0, np.int64)
        self._stamps_from = 0
        self._seen = 0
        self._oldest = 0
        self._counter = ProductCounter()

    @property
    def oldest(self) -> int:
        """The earliest sequence number that a complex event can still hold."""
        return self._oldest

    @property
    def seen(self) -> int:
        """How many events were pushed."""
        return self._seen

    @property
    def size(self) -> int:
        """How many products, nodes and entries are held, in reach or not."""
        return int(self.products.size[0] + self.nodes.size[0] + self.index.used[0])

    @property
    def idle(self) -> bool:
        """Whether no run waits."""
        ordered = self.ordered if self.tables.ordered_steps else None
        return not waits(self.index, ordered, self._first_needed)

    def expire(self, stamp: int) -> None:
        """No event before `stamp` comes any more: what started too long before that has left the window."""
        if self.window is not None:
            kept = self._stamps[self._oldest - self._stamps_from :]
            self._oldest += out_of_reach(kept, stamp, self.window)

    @property
    def _first_needed(self) -> int:
        return max(self._oldest, int(self._cursor[run_pcea.FORGOTTEN]))

    def snapshot(self) -> Snapshot:
        """What is needed to go on, without what has left the window; nothing changes by that."""
        ordered = self.ordered if self.tables.ordered_steps else None
        oldest = self._first_needed
        waiting = Waiting(self.products, self.nodes, self.index, ordered)
        arrays, events = waiting_arrays(waiting, oldest)
        if self.window is not None:
            arrays["stamp"] = self._stamps[events - self._stamps_from]
        if self._forgotten is not None:
            arrays["forgotten"] = forgotten_rows(self._forgotten, oldest, events)
        return Snapshot(events, np.empty(0, np.int32), arrays)

    def check(self, snapshot: Snapshot, marks: int) -> None:
        """Raises ValueError unless it can go on from a snapshot with label sets 0 … `marks` - 1."""
        arrays, events = snapshot.arrays, snapshot.events.size
        check_heaps(arrays, events, marks)
        check_entries(arrays, "entries", arrays["heap_product"].size, events)
        if self.tables.ordered_steps:
            check_trees(arrays, events)
        if self._forgotten is not None:
            check_entries(arrays, "forgotten", 1, events)
        if self.window is not None:
            check_stamps(arrays, events)

    def resume(self, snapshot: Snapshot) -> None:
        """Goes on from a snapshot of the same automaton and window."""
        arrays = snapshot.arrays
        in_order = self.tables.ordered_steps > 0
        self.products, self.nodes, self.index, ordered = waiting_of(arrays, self._room, ordered=in_order)
        if ordered is not None:
            self.ordered = ordered
        if self._forgotten is not None:
            self._forgotten = index_of(arrays["forgotten"], self._room)
        self._cursor[:] = 0
        self._fired.probed[:] = -1
        self._seen = snapshot.events.size
        self._stamps = arrays.get("stamp", np.empty(0, np.int64))
        self._stamps_from = self._oldest = 0
        self._counter.forget()

    def push(self, batch: PceaBatch) -> Iterator[Roots]:
        """Recognises a batch; yields roots whenever some are there. Must be read to its end.

        Raises ValueError where the batch has fewer predicates, key columns or values than the automaton.
        """
        count = batch.stamps.size
        if count == 0:
            return
        cursor = self._cursor
        cursor[run_pcea.AT] = 0
        cursor[run_pcea.FIRST] = self._seen
        events = self._events(batch)
        self._partition = events.partition
        while True:
            with np.errstate(over="ignore"):  # hashes wrap around; NumPy would say so where the JIT is off
                code = advance_pcea(
                    self.tables,
                    self.products,
                    self.nodes,
                    self.index,
                    self.ordered if self.tables.ordered_steps else None,
                    self._forgotten,
                    self._fired,
                    self._found,
                    events,
                    cursor,
                    self._consume,
                )
            if self._found.size[0]:
                yield roots_of(self._found, copied=self.holding)
                self._found.size[0] = 0
            elif code == run_cea.FULL:
                self._found = new_found(2 * self._found.event.size)
            if code == run_cea.DONE:
                break
            if code == run_cea.GROW:
                self._make_room(max(int(events.oldest[cursor[run_pcea.AT]]), int(cursor[run_pcea.FORGOTTEN])))
        self._seen += count
        self._oldest = int(events.oldest[-1])

    def consume(self) -> None:
        """Forgets everything read so far, or what was read of the partition of the event at hand.

        To be called while `push` waits with the roots of one event; they stay valid. Raises ValueError
        unless `consume` is one of the ASKED.
        """
        check_asked(self._consume)
        place = int(self._cursor[run_pcea.AT]) - 1
        next_event = int(self._cursor[run_pcea.FIRST]) + place + 1
        if self._forgotten is None:
            self._cursor[run_pcea.FORGOTTEN] = next_event
        else:
            self._forgotten = with_forgotten(
                self._forgotten, self._partition, place, next_event, oldest=self._oldest, room=self._room
            )

    def matches(
        self, roots: Roots, limit: int | None = None, first_batch: int = 256, part: Part | None = None
    ) -> Enumeration[Heaps]:
        """The complex events of `roots`, at most `limit` for each end or a `part`, in batches that grow."""
        return Enumeration(self._heaps, self._counter, roots, limit=limit, part=part, first_batch=first_batch)

    def counts(self, roots: Roots, enough: int | None = None) -> list[int]:
        """The number of complex events of each root, exact, or `enough` where there are more."""
        return self._counter.of_roots(self._heaps, roots, enough)

    def counts_by_end(self, roots: Roots, limit: int | None = None) -> tuple[NDArray[np.int64], list[int]]:
        """The ends of `roots`, each once, and the exact number of complex events there, at most `limit`."""
        if limit is None or limit > _READ_OFF:
            return counts_by_end(roots, limit, self.counts)
        ends, _ = by_end(roots)
        found = np.zeros(ends.size, np.int64)
        for matches in self.matches(roots, limit):
            np.add.at(found, np.searchsorted(ends, matches.end), 1)
        return ends, found.tolist()

    def match_at(self, roots: Roots, place: int, index: int) -> Matches:
        """The complex event number `index` of root number `place`, without enumerating those before it."""
        return match_at(self._heaps, self._counter, roots, place, index)

    @property
    def _heaps(self) -> Heaps:
        return Heaps(self.products, self.nodes)

    def _events(self, batch: PceaBatch) -> PceaEvents:
        """The batch for the kernel, with the window of each event."""
        predicates = self.tables.first_fired.size - 1
        columns = 1 + int(max(self.tables.probe_key.max(initial=-1), self.tables.place_key.max(initial=-1)))
        if run_pcea.BITS_IN_WORD * batch.words.shape[1] < predicates:
            raise ValueError(f"{batch.words.shape[1]} words are too few for {predicates} predicates")
        if min(batch.keys.shape[1], batch.known.shape[1]) < columns:
            raise ValueError(f"the automaton reads {columns} key columns, the batch has fewer")
        asked = self.tables.probe_value, self.tables.probe_upper, self.tables.place_value
        values = 1 + max(int(each.max(initial=-1)) for each in asked)
        if min(batch.values.shape[1], batch.valid.shape[1]) < values:
            raise ValueError(f"the automaton reads {values} value columns, the batch has fewer")
        return PceaEvents(
            np.ascontiguousarray(batch.words, np.uint64),
            np.ascontiguousarray(batch.keys, np.uint64),
            np.ascontiguousarray(batch.known, np.bool_),
            np.ascontiguousarray(batch.values, np.int64),
            np.ascontiguousarray(batch.valid, np.bool_),
            self._window_starts(np.ascontiguousarray(batch.stamps, np.int64)),
            partition_keys(self._forgotten, batch.partition, batch.stamps.size),
        )

    def _window_starts(self, stamps: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.window is None:
            return np.zeros(stamps.size, np.int64)
        kept = self._stamps[self._oldest - self._stamps_from :]
        self._stamps, self._stamps_from = np.concatenate((kept, stamps)), self._oldest
        starts = window_starts(self._stamps, kept.size, self.window)
        starts += self._oldest
        return starts

    def _make_room(self, oldest: int) -> None:
        """Makes the room that the kernel asked for; what has left the window goes first."""
        entries = int(self._cursor[run_pcea.NEED_ENTRIES])
        if 2 * (self.index.used[0] + entries) > self.index.words.shape[0]:
            self.index = rebuilt(self.index, oldest, max(entries, self._room))
        if self._forgotten is not None:
            self._forgotten = with_room_for_one(self._forgotten, oldest, self._room)
        self.ordered = with_room(self.ordered, oldest, int(self._cursor[run_pcea.NEED_VALUES]))
        used, used_children = self.products.size.tolist()
        nodes = int(self._cursor[run_pcea.NEED_NODES])
        products = int(self._cursor[run_pcea.NEED_PRODUCTS])
        children = int(self._cursor[run_pcea.NEED_CHILDREN])
        if (
            used + products > self.products.mark.size
            or used_children + children > self.products.child.size
            or self.nodes.size[0] + nodes > self.nodes.product.size
        ):
            if not self.holding:
                self._compact(oldest)
            self._grow(products, children, nodes)

    def _compact(self, oldest: int) -> None:
        """Keeps what the window still reaches."""
        count, size = int(self.products.size[0]), int(self.nodes.size[0])
        live_products, live_nodes = np.zeros(count, np.int8), np.zeros(size, np.int8)
        moved_products, moved_nodes = np.empty(count, np.int32), np.empty(size, np.int32)
        mark_roots(self.index, oldest, live_nodes)
        mark_trees(self.ordered, oldest, live_nodes)
        mark_live(self.products, self.nodes, oldest, live_products, live_nodes)
        move_live(self.products, self.nodes, live_products, live_nodes, moved_products, moved_nodes)
        rename_roots(self.index, oldest, moved_nodes)
        rename_trees(self.ordered, oldest, moved_nodes)
        self._counter.forget()

    def _grow(self, products: int, children: int, nodes: int) -> None:
        """Sees to it that no more than half of anything is in use, with the room that is needed.

        There is never less room for children and nodes than for products: a compaction, which goes through
        all of them, then pays for itself whichever of them was full.
        """
        used, used_children = self.products.size.tolist()
        room = self._grown_room(self.products.mark.size, used + products)
        room_children = max(room, self._grown_room(self.products.child.size, used_children + children))
        room_nodes = max(room, self._grown_room(self.nodes.product.size, int(self.nodes.size[0]) + nodes))
        if room > self.products.mark.size or room_children > self.products.child.size:
            self.products = grown_products(self.products, room, room_children)
        if room_nodes > self.nodes.product.size:
            self.nodes = grown_heap_nodes(self.nodes, room_nodes)

    def _grown_room(self, room: int, needed: int) -> int:
        """Without a window compactions free next to nothing, so that there are fewer of them."""
        return room if 2 * needed <= room else (2 if self.window is not None else 4) * needed
