"""An index from (waiting place, 128-bit key) and a range of values to the heap of the runs that wait there.

This goes beyond the PCEA paper, which leaves inequalities open. Each place and key has a search tree of the
values that wait there, whose inner nodes carry the heap of all below: a range is a logarithmic number of
subtrees, melded. The trees are changed in place; heaps are immutable, so the result of a query stays valid.

An insertion first removes up to two leaves, of any tree, whose last event has left the window, so that memory
follows the window without a pass over everything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, INT8S, INT32S, Grid, inlined, kernel, pool, step
from estero.engine.store.arena import NONE
from estero.engine.store.hash_index import (
    FREE,
    HashIndex,
    claim,
    find,
    heap_of,
    new_index,
    put,
    rebuilt,
)
from estero.engine.store.hash_index import START as LAST_ENTERED
from estero.engine.store.heap import HeapNodes, meld
from estero.engine.store.value_trees import (
    EARLIEST,
    FREE_ROW,
    FREE_ROWS,
    FREE_TREE,
    HEAP,
    LARGEST,
    LAST,
    LATEST,
    LEFT,
    PARENT,
    RIGHT,
    ROOTS,
    SMALLEST,
    START,
    USED,
    VALUE,
    WEIGHT,
    add,
    balance_up,
    in_range,
    new_row,
    new_tree,
    queue,
    remove,
    replace,
    unqueue,
)

LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, NOT_EQUAL, BETWEEN = range(6)
"""How a waiting value compares with the value of a query."""

ABOVE_LOW, BELOW_HIGH = 1, 2
"""Added to BETWEEN if the range excludes its lower end, its upper end, or both."""


@pool
class OrderedIndex(NamedTuple):
    """The trees; rows[:, 0].size is the capacity.

    trees: which tree belongs to a place and key, and the last event that it was given; rows
    int64[capacity, 8], a line of the cache each; root int32[capacity], by tree; sizes int64[7]. Free rows
    and trees are linked by LEFT and by root.
    """

    trees: HashIndex
    rows: Grid[np.int64]
    root: NDArray[np.int32]
    sizes: NDArray[np.int64]


def new_ordered_index(capacity: int) -> OrderedIndex:
    """An empty index for `capacity` values."""
    sizes = np.zeros(7, np.int64)
    sizes[[FREE_ROW, FREE_TREE, EARLIEST, LATEST]] = NONE
    return OrderedIndex(
        new_index(capacity), np.empty((2 * capacity, 8), np.int64), np.empty(2 * capacity, np.int32), sizes
    )


def with_capacity(index: OrderedIndex, oldest: int, insertions: int) -> OrderedIndex:
    """The index with capacity for `insertions`; drops keys that have left the window."""
    trees, rows, root = index.trees, index.rows, index.root
    if 2 * (trees.used[0] + insertions) > trees.words.shape[0]:
        trees = rebuilt(trees, oldest, insertions)
    needed = int(index.sizes[USED] - index.sizes[FREE_ROWS]) + 2 * insertions
    if needed > rows.shape[0]:
        rows, root = np.empty((2 * needed, 8), np.int64), np.empty(2 * needed, np.int32)
        rows[: index.rows.shape[0]] = index.rows
        root[: index.root.size] = index.root
    return OrderedIndex(trees, rows, root, index.sizes)


@inlined
def has_capacity(index, insertions):  # type: ignore[no-untyped-def]
    """Whether `insertions` fit. There are never more trees than leaves, so rows are what counts."""
    return (
        2 * (index.trees.used[0] + insertions) <= index.trees.words.shape[0]
        and index.sizes[USED] - index.sizes[FREE_ROWS] + 2 * insertions <= index.rows.shape[0]
    )


@inlined
def binary_digits(number):  # type: ignore[no-untyped-def]
    """One more than the logarithm to the base 2, rounded down."""
    digits = 0
    while number > 0:
        number >>= 1
        digits += 1
    return digits


@kernel(OrderedIndex, HeapNodes, INT)
def most_nodes(index, nodes, steps):  # type: ignore[no-untyped-def]
    """The most heap nodes that the next `steps` insertions and queries make.

    A tree of n leaves has a height h of at most log n to the base 4/3, which is less than 2.41 times that to
    the base 2; two right spines have s nodes in all. An insertion puts a product into h heaps and rotates
    twice on each level of three trees; a query melds 2 h heaps.
    """
    height = 241 * binary_digits(index.sizes[USED] + 2 * steps) // 100 + 2
    spines = 2 * binary_digits(nodes.size[0] + 1 + steps)
    return steps * (height * (6 * spines + spines // 2 + 2) + 1)


@step
def insert(index, nodes, place, one, two, value, alone, event, oldest, path):  # type: ignore[no-untyped-def]
    """Lets a product wait at (place, key) with `value`.

    alone: the heap node that holds the product alone, which starts at or after `oldest`; event int64: the
    event at hand, no earlier than that start nor than the events of insertions before. Needs
    capacity (`has_capacity`, `most_nodes`). path int32[64] is scratch.
    """
    rows = index.rows
    for _ in range(2):
        expired = index.sizes[EARLIEST]
        if expired == NONE or rows[expired, LAST] >= oldest:
            break
        remove(index, nodes, expired, oldest, path)
    entry = claim(index.trees, place, one, two, oldest)
    known = index.trees.entries[entry, LAST_ENTERED] >= oldest
    tree = heap_of(index.trees, entry) if known else new_tree(index)
    put(index.trees, entry, place, tree, event)
    row = index.root[tree] if known else NONE
    if known:
        while rows[row, WEIGHT] > 1:
            add(index, nodes, row, alone, oldest, path)
            row = rows[row, LEFT] if value <= rows[row, VALUE] else rows[row, RIGHT]
        if rows[row, VALUE] == value:
            add(index, nodes, row, alone, oldest, path)
            unqueue(index, row)
            queue(index, row, event)
            return
    leaf = new_row(index)
    rows[leaf, VALUE] = value
    rows[leaf, HEAP] = alone
    rows[leaf, START] = nodes.start[alone]
    rows[leaf, WEIGHT] = 1
    queue(index, leaf, event)
    if not known:
        rows[leaf, PARENT] = ROOTS - tree
        index.root[tree] = leaf
        return
    parent = new_row(index)
    replace(index, row, parent)
    first = leaf if value < rows[row, VALUE] else row
    second = leaf + row - first
    rows[parent, VALUE] = rows[first, VALUE]
    rows[parent, LEFT] = first
    rows[parent, RIGHT] = second
    rows[parent, HEAP] = rows[row, HEAP]
    rows[parent, START] = rows[row, START]
    add(index, nodes, parent, alone, oldest, path)
    rows[row, PARENT] = parent
    rows[leaf, PARENT] = parent
    rows[parent, WEIGHT] = 2
    balance_up(index, nodes, parent, 1, oldest, path)


@step
def query(index, nodes, place, one, two, operator, value, upper, oldest, pieces, path):  # type: ignore[no-untyped-def]
    """The heap of the runs that wait at (place, key) with (their value) `operator` `value`, or NONE.

    operator: LESS … BETWEEN, or BETWEEN plus flags; a range is value … upper, and no other operator reads
    `upper`. Below runs inside the window the heap may hold expired ones. Makes at most `most_nodes` nodes.
    pieces int64[PIECES] and path int32[64] are scratch. Earlier starts are melded first: mostly what is put
    on top costs one node.
    """
    entry = find(index.trees, place, one, two)
    if entry == FREE or index.trees.entries[entry, LAST_ENTERED] < oldest:
        return NONE
    row = np.int64(index.root[heap_of(index.trees, entry)])
    count = 0
    if operator >= BETWEEN:
        above_low = (operator - BETWEEN) & ABOVE_LOW
        below_high = (operator - BETWEEN) // BELOW_HIGH
        if value < upper or (value == upper and operator == BETWEEN):
            low, high = value + above_low, upper - below_high
            if low <= high:
                count = in_range(index, row, low, high, pieces, count, oldest)
    elif operator == LESS_EQUAL:
        count = in_range(index, row, SMALLEST, value, pieces, count, oldest)
    elif operator == GREATER_EQUAL:
        count = in_range(index, row, value, LARGEST, pieces, count, oldest)
    else:
        if operator != GREATER and value > SMALLEST:
            count = in_range(index, row, SMALLEST, value - 1, pieces, count, oldest)
        if operator != LESS and value < LARGEST:
            count = in_range(index, row, value + 1, LARGEST, pieces, count, oldest)
    heap = NONE
    for number in range(count):
        heap = meld(nodes, heap, index.rows[pieces[number], HEAP], oldest, path)
    return heap


@kernel(OrderedIndex, INT, INT8S)
def mark_trees(index, oldest, live):  # type: ignore[no-untyped-def]
    """Sets live[heap] = 1 for the heaps of all rows that have not expired."""
    for row in range(index.sizes[USED]):
        if index.rows[row, START] >= oldest:
            live[index.rows[row, HEAP]] = 1


@kernel(OrderedIndex, INT, INT32S)
def rename_trees(index, oldest, moved):  # type: ignore[no-untyped-def]
    """Replaces the heap of each row that has not expired by moved[heap]."""
    for row in range(index.sizes[USED]):
        if index.rows[row, START] >= oldest:
            index.rows[row, HEAP] = moved[index.rows[row, HEAP]]
