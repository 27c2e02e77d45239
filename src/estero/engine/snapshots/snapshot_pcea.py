"""Runs that wait by keys, as a few dense arrays, and back: heaps, ordered index, ED-index.

As in `snapshot`: only what a future event can reach, with the events that some product names renumbered;
nothing that is read changes. Entries of hash tables are written in the order of their keys.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, INT8S, INT32S, kernel
from estero.engine.snapshots.snapshot import distinct
from estero.engine.store.arena import NONE
from estero.engine.store.checks import Arrays
from estero.engine.store.hash_index import START, TAG, HashIndex, mark_roots, rebuilt
from estero.engine.store.heap import HeapNodes, mark_live, move_live
from estero.engine.store.ordered_index import OrderedIndex, mark_trees, most_nodes, new_ordered_index
from estero.engine.store.schema import grown, written
from estero.engine.store.value_trees import (
    EARLIEST,
    FREE_ROW,
    FREE_TREE,
    HEAP,
    LAST,
    LATER,
    LATEST,
    LEFT,
    PARENT,
    RIGHT,
    ROOTS,
    TREES,
    USED,
    WEIGHT,
    remove,
)
from estero.engine.store.value_trees import START as NEWEST
from estero.engine.walk.products import Heaps

_HALF = np.int64(32)
_LOWER = np.int64((1 << 32) - 1)


@kernel(OrderedIndex, HeapNodes, INT, INT, INT32S)
def drop_expired(index, nodes, leaf, oldest, path):  # type: ignore[no-untyped-def]
    """Removes the leaves, from `leaf` on in the queue, that hold nothing that starts inside the window.

    Returns NONE, or the leaf at which the pool of nodes was full. path int32[64] is scratch.
    """
    while leaf != NONE:
        following = index.rows[leaf, LATER]
        if index.rows[leaf, NEWEST] < oldest:
            if nodes.size[0] + most_nodes(index, nodes, 1) > nodes.product.size:
                return leaf
            remove(index, nodes, leaf, oldest, path)
        leaf = following
    return NONE


@kernel(OrderedIndex, INT8S)
def mark_free_rows(index, free):  # type: ignore[no-untyped-def]
    """Sets free[row] = 1 for the rows that are not in use; free int8[rows], zeros on entry."""
    row = index.sizes[FREE_ROW]
    while row != NONE:
        free[row] = 1
        row = index.rows[row, LEFT]


def waits(index: HashIndex, ordered: OrderedIndex | None, oldest: int) -> bool:
    """Whether a run waits that starts at or after `oldest`."""
    entries = index.entries
    if ((entries[:, TAG] != 0) & (entries[:, START] >= oldest)).any():
        return True
    return ordered is not None and bool((ordered.rows[: ordered.sizes[USED], NEWEST] >= oldest).any())


def waiting_arrays(
    heaps: Heaps, index: HashIndex, ordered: OrderedIndex | None, oldest: int
) -> tuple[Arrays, NDArray[np.int64]]:
    """The waiting runs that start at or after `oldest`, and the events that they name, renumbered."""
    used, children = heaps.products.size.tolist()
    products = grown(heaps.products, rows=used, children=children)
    nodes = grown(heaps.nodes, rows=int(heaps.nodes.size[0]))
    if ordered is not None:
        ordered, nodes = _without_expired(ordered, nodes, oldest)
    moved = moved_heaps(Heaps(products, nodes), index, ordered, oldest)
    events = distinct(products.event[: products.size[0]])
    arrays = written(products, "products", events) | written(nodes, "nodes", events)
    arrays["index"] = index_rows(index, oldest, moved, events)
    if ordered is not None:
        arrays |= _ordered_arrays(ordered, oldest, moved, events)
    return arrays, events


def moved_heaps(
    heaps: Heaps, index: HashIndex, ordered: OrderedIndex | None, oldest: int
) -> NDArray[np.int32]:
    """Compacts heaps to what waiting runs reach inside the window; returns each kept node's new number."""
    products, nodes = heaps
    count, size = int(products.size[0]), int(nodes.size[0])
    live_products, live_nodes = np.zeros(count, np.int8), np.zeros(size, np.int8)
    moved_products, moved = np.empty(count, np.int32), np.empty(size, np.int32)
    mark_roots(index, oldest, live_nodes)
    if ordered is not None:
        mark_trees(ordered, oldest, live_nodes)
    mark_live(products, nodes, oldest, live_products, live_nodes)
    move_live(products, nodes, live_products, live_nodes, moved_products, moved)
    return moved


def index_rows(
    index: HashIndex, oldest: int, moved: NDArray[np.int32], events: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """The entries that have not expired, uint64[n, 4] as in the index, by place and key.

    Their references are renamed by `moved`, and START by its place in `events`.
    """
    kept = (index.entries[:, TAG] != 0) & (index.entries[:, START] >= oldest)
    words: NDArray[np.uint64] = index.words[kept]
    words = words[np.lexsort((words[:, 1], words[:, 0], words[:, TAG] >> np.uint64(_HALF)))]
    rows = words.view(np.int64)
    rows[:, TAG] = (rows[:, TAG] & ~_LOWER) | moved[rows[:, TAG] & _LOWER]
    rows[:, START] = np.searchsorted(events, rows[:, START], side="right") - 1
    return words


def index_of(rows: NDArray[np.uint64], capacity: int) -> HashIndex:
    """A hash table of such entries."""
    return rebuilt(HashIndex(rows, rows.view(np.int64), np.zeros(1, np.int64)), 0, capacity)


def _without_expired(index: OrderedIndex, nodes: HeapNodes, oldest: int) -> tuple[OrderedIndex, HeapNodes]:
    """A copy of the trees without the expired leaves, and the nodes with those made by that."""
    used = int(index.sizes[USED])
    copy = OrderedIndex(index.trees, index.rows[:used].copy(), index.root.copy(), index.sizes.copy())
    path = np.empty(64, np.int32)
    leaf = int(copy.sizes[EARLIEST])
    while leaf != NONE:
        leaf = int(drop_expired(copy, nodes, leaf, oldest, path))
        if leaf != NONE:
            nodes = grown(nodes, rows=2 * (nodes.product.size + int(most_nodes(copy, nodes, 1))))
    return copy, nodes


def _ordered_arrays(
    index: OrderedIndex, oldest: int, moved: NDArray[np.int32], events: NDArray[np.int64]
) -> Arrays:
    """The rows in use, and the entries of the trees that they belong to; both renumbered."""
    free = np.zeros(index.rows.shape[0], np.int8)
    mark_free_rows(index, free)
    used = free == 0
    place = np.append(np.cumsum(used) - 1, NONE)
    rows = index.rows[used]
    rows[:, LEFT], rows[:, RIGHT] = place[rows[:, LEFT]], place[rows[:, RIGHT]]
    at_root = rows[:, PARENT] <= ROOTS
    trees = np.sort(ROOTS - rows[at_root, PARENT])
    rows[at_root, PARENT] = ROOTS - np.searchsorted(trees, ROOTS - rows[at_root, PARENT])
    rows[~at_root, PARENT] = place[rows[~at_root, PARENT]]
    inside = rows[:, NEWEST] >= oldest
    rows[inside, HEAP] = moved[rows[inside, HEAP]]
    rows[~inside, HEAP] = NONE
    rows[:, NEWEST] = np.where(inside, np.searchsorted(events, rows[:, NEWEST]), NONE)
    leaf = rows[:, WEIGHT] == 1
    rows[:, LAST] = np.where(leaf, np.searchsorted(events, rows[:, LAST], side="right") - 1, 0)
    number = np.full(int(index.sizes[TREES]) + 1, NONE, np.int32)
    number[trees] = np.arange(trees.size)
    belong = index.trees.entries[:, TAG] & _LOWER
    alive = np.flatnonzero((index.trees.entries[:, TAG] != 0) & (index.trees.entries[:, START] >= oldest))
    alive = alive[number[belong[alive]] != NONE]
    kept = HashIndex(index.trees.words[alive], index.trees.entries[alive], index.trees.used)
    first, last = (place[index.sizes[end]] for end in (EARLIEST, LATEST))
    return {
        "tree_rows": rows,
        "tree_entries": index_rows(kept, oldest, number, events),
        "tree_ends": np.array([first, last], np.int64),
    }


def ordered_of(arrays: Arrays, capacity: int) -> OrderedIndex:
    """Restores the trees, with capacity for at least `capacity` values."""
    rows, entries = arrays["tree_rows"], arrays["tree_entries"]
    used = rows.shape[0]
    index = new_ordered_index(max(capacity, used))
    index.rows[:used] = rows
    at_root = np.flatnonzero(rows[:, PARENT] <= ROOTS)
    index.root[ROOTS - rows[at_root, PARENT]] = at_root
    index.sizes[[USED, TREES]] = used, at_root.size
    index.sizes[[FREE_ROW, FREE_TREE]] = NONE
    index.sizes[[EARLIEST, LATEST]] = arrays["tree_ends"]
    return OrderedIndex(index_of(entries, capacity), index.rows, index.root, index.sizes)
