"""Runs of a parallelised automaton: what `run_pcea` works on, and how it grows and shrinks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from estero.engine.cursor import CONSUME_NONE, Reported, taken_needs
from estero.engine.runs.joined import run_pcea
from estero.engine.runs.joined.run_pcea import Fired, PceaTables, advance_pcea, new_fired
from estero.engine.runs.keyed_runs import LEAST_CAPACITY, KeyedRuns
from estero.engine.snapshots.snapshot import Snapshot
from estero.engine.snapshots.snapshot_pcea import moved_heaps, ordered_of, waiting_arrays, waits
from estero.engine.snapshots.sound import check_heaps, check_index, check_trees
from estero.engine.store.hash_index import rename_roots
from estero.engine.store.heap import HeapNodes, Products
from estero.engine.store.ordered_index import OrderedIndex, new_ordered_index, rename_trees, with_capacity
from estero.engine.store.schema import grown, new, read
from estero.engine.walk.products import Heaps, ProductCounter
from estero.engine.walk.roots import Roots

_LONG = 64
"""The number of nodes on rims, counted for each product, above which rims are long."""

_COMFORT = 8
"""The multiple of the first capacity up to which pools grow after each compaction."""


class PceaRuns(KeyedRuns):
    """See `KeyedRuns`. If a run can mark an event twice, the event has an item for each mark."""

    cursor_kind = run_pcea.Cursor

    def __init__(
        self,
        tables: PceaTables,
        window: int | None = None,
        *,
        consume: int = CONSUME_NONE,
        capacity: int = LEAST_CAPACITY,
    ) -> None:
        super().__init__(window, consume, capacity)
        self.tables: PceaTables = tables
        self.products: Products = new(Products, capacity, children=capacity)
        self.nodes: HeapNodes = new(HeapNodes, capacity)
        self.ordered: OrderedIndex = new_ordered_index(capacity if tables.ordered_steps else 1)
        self._fired: Fired = new_fired(tables)
        self._steps = 0
        self.counter = ProductCounter()

    @property
    def size(self) -> int:
        """The number of products, nodes and entries held, in reach or not."""
        return int(self.products.size[0] + self.nodes.size[0] + self.index.used[0])

    @property
    def compact(self) -> Heaps:
        return Heaps(self.products, self.nodes)

    @property
    def _in_order(self) -> OrderedIndex | None:
        """The runs that wait with a value; None if there are none."""
        return self.ordered if self.tables.ordered_steps else None

    def idle(self, oldest: int) -> bool:
        return not waits(self.index, self._in_order, max(oldest, self.forgotten))

    def advance(self, reported: Reported, last: int) -> int:
        self._cursor.last = last
        read = self._fired, reported, self._events, self._cursor, self.consume
        return int(
            advance_pcea(self.tables, self.compact, self.index, self._in_order, self._forgotten, *read)
        )

    def ensure_capacity(self, held: Sequence[Roots] | None) -> None:
        needed = taken_needs(self._cursor)
        oldest = max(int(self._events.oldest[self._cursor.at]), self.forgotten)
        self._ensure_index_capacity(needed["entries"], oldest)
        self.ordered = with_capacity(self.ordered, oldest, needed["values"])
        used, used_children = self.products.size.tolist()
        if (
            used + needed["products"] > self.products.mark.size
            or used_children + needed["children"] > self.products.child.size
            or self.nodes.size[0] + needed["nodes"] > self.nodes.product.size
        ):
            if held is None:
                self._compact(oldest)
            self._grow(needed["products"], needed["children"], needed["nodes"])

    def _compact(self, oldest: int) -> None:
        """Keeps what the window still reaches."""
        self.compactions += 1
        moved = moved_heaps(self.compact, self.index, self.ordered, oldest)
        rename_roots(self.index, oldest, moved)
        rename_trees(self.ordered, oldest, moved)
        self.counter.forget()

    def _grow(self, products: int, children: int, nodes: int) -> None:
        """Enlarges pools until the used and the needed rows take no more than half of each.

        A compaction takes 0.1 ms even if it moves nothing, so that some thousands of events have to share it.
        Measured on a star of 3 atoms in windows of 100 events: 119 ns an event with 4,096 rows, 100 with
        32,768, 99 with 65,536. But a compaction removes what has expired, and makes rims short: where counts
        go through long ones (starts in no order, windows of 10,000: 16 µs an event with few rows, 28 with
        many), pools have no more rows than needed.

        There is always room for at least as many children and nodes as products: so a compaction, which goes
        through all of them, pays for itself whichever of them was full.
        """
        used, used_children = self.products.size.tolist()
        steps, self._steps = self.counter.steps - self._steps, self.counter.steps
        comfort = 1 if steps > _LONG * self.products.mark.size else _COMFORT
        rows = self._grown_size(self.products.mark.size, used + products, comfort)
        children = max(rows, self._grown_size(self.products.child.size, used_children + children, comfort))
        nodes = self._grown_size(self.nodes.product.size, int(self.nodes.size[0]) + nodes, comfort)
        if rows != self.products.mark.size or children != self.products.child.size:
            self.products = grown(self.products, rows=rows, children=children)
        if max(rows, nodes) != self.nodes.product.size:
            self.nodes = grown(self.nodes, rows=max(rows, nodes))

    def _grown_size(self, size: int, needed: int, comfort: int) -> int:
        """The grown size of a pool: larger without a window, where compactions free next to nothing."""
        least = (2 if self.window is not None else 4) * needed
        if comfort == 1:
            return max(self.capacity, least)
        larger = max(size, min(2 * size, comfort * self.capacity))
        return larger if 2 * needed <= size else max(larger, least)

    # ------------------------------------------------------------------------- stopping and going on

    def _opened(self, oldest: int) -> Snapshot:
        arrays, events = waiting_arrays(self.compact, self.index, self._in_order, oldest)
        return Snapshot(events, np.empty(0, np.int32), arrays)

    def _check_opened(self, snapshot: Snapshot, marks: int) -> None:
        arrays, events = snapshot.arrays, snapshot.events.size
        check_heaps(arrays, events, marks)
        check_index(arrays, "index", arrays["nodes.product"].size, events)
        if self.tables.ordered_steps:
            check_trees(arrays, events)

    def _put(self, snapshot: Snapshot) -> None:
        self.products = read(Products, "products", snapshot.arrays, self.capacity)
        self.nodes = read(HeapNodes, "nodes", snapshot.arrays, self.products.mark.size)
        if self.tables.ordered_steps:
            self.ordered = ordered_of(snapshot.arrays, self.capacity)
        self.counter.forget()
