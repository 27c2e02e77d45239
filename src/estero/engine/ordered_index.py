"""From (waiting place, 128-bit key) and an order on values to heaps: which runs wait with a value in a range.

Beyond the PCEA paper, which leaves inequalities open. Each place and key has a search tree of the values
that wait there, whose inner nodes carry the heap of all that is below: a range is a logarithmic number of
subtrees, melded. The trees are changed in place; heaps are immutable, so what a query returned stays.

The trees are leaf-oriented and weight-balanced (<3, 2>, Hirai and Yamamoto 2011), so that every update is
polylogarithmic, not only many of them together. Expired heaps need no deletion, because nothing of them
is ever visited; leaves do, so that memory follows the window: an insertion first takes out up to two
leaves, of any tree, whose last event has left it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.arena import NONE
from estero.engine.hash_index import (
    FREE,
    HashIndex,
    claim,
    find,
    heap_of,
    new_index,
    put,
    rebuilt,
)
from estero.engine.hash_index import START as LAST_ENTERED
from estero.engine.heap import heap_node, meld
from estero.engine.jit import inlined, kernel

LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, NOT_EQUAL, BETWEEN = range(6)
"""How a value that waits compares with what is asked for."""

VALUE, LEFT, RIGHT, PARENT, HEAP, START, WEIGHT, LAST = range(8)
"""Columns of a row. An inner node: a value v with left <= v < right, its children, its parent (-2 - tree
at a root), the heap of all below, that heap's max_start, the leaves below. A leaf: its value, its
neighbours in the queue of all leaves by their last event (the earlier, the later), then the same, and
its last event."""

EARLIER, LATER = LEFT, RIGHT

USED, FREE_ROW, FREE_ROWS, TREES, FREE_TREE, EARLIEST, LATEST = range(7)
"""Places in the sizes: rows ever used, head and number of the free ones, trees ever used, head of the free
ones, first and last leaf of the queue."""

PIECES = 160
"""Subtrees that make up the answer to a query at most: two ways down a tree of 2^31 leaves."""

SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1

_EMPTY = -1
_ROOTS = -2
_HEAVY, _DOUBLE = 3, 2
_HEIGHT = 1 / math.log2(4 / 3)


class OrderedIndex(NamedTuple):
    """The trees; rows[:, 0].size is the capacity.

    trees: which tree belongs to a place and key, and the last event that it was given; rows
    int64[capacity, 8], a line of the cache each; root int32[capacity], by tree; sizes int64[7]. Free rows
    and trees are linked by LEFT and by root.
    """

    trees: HashIndex
    rows: NDArray[np.int64]
    root: NDArray[np.int32]
    sizes: NDArray[np.int64]


def new_ordered_index(capacity: int) -> OrderedIndex:
    """An empty index with room for `capacity` values."""
    sizes = np.zeros(7, np.int64)
    sizes[[FREE_ROW, FREE_TREE, EARLIEST, LATEST]] = NONE
    return OrderedIndex(
        new_index(capacity), np.empty((2 * capacity, 8), np.int64), np.empty(2 * capacity, np.int32), sizes
    )


def with_room(index: OrderedIndex, oldest: int, insertions: int) -> OrderedIndex:
    """The same index with room for so many insertions; keys that have left the window go."""
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
def has_room(index, insertions):  # type: ignore[no-untyped-def]
    """Whether so many insertions fit. There are never more trees than leaves, so rows are what counts."""
    return (
        2 * (index.trees.used[0] + insertions) <= index.trees.words.shape[0]
        and index.sizes[USED] - index.sizes[FREE_ROWS] + 2 * insertions <= index.rows.shape[0]
    )


@kernel
def most_nodes(index, nodes):  # type: ignore[no-untyped-def]
    """How many heap nodes the next insertion, or query, makes at most.

    A tree of n leaves has a height h of at most log n to the base 4/3, two right spines have s nodes in
    all. An insertion puts a product into h heaps and rotates twice on each level of three trees; a query
    melds 2 h heaps.
    """
    height = _HEIGHT * math.log2(index.sizes[USED] + 2) + 1
    spines = 2 * math.log2(nodes.size[0] + 2)
    return np.int64(height * (6 * spines + spines / 2 + 2)) + 1


@inlined
def _free_row(index, row):  # type: ignore[no-untyped-def]
    """Gives a row back."""
    index.rows[row, START] = _EMPTY
    index.rows[row, LEFT] = index.sizes[FREE_ROW]
    index.sizes[FREE_ROW] = row
    index.sizes[FREE_ROWS] += 1


@inlined
def _new_row(index):  # type: ignore[no-untyped-def]
    """A row to be filled."""
    row = index.sizes[FREE_ROW]
    if row == NONE:
        row = index.sizes[USED]
        index.sizes[USED] = row + 1
    else:
        index.sizes[FREE_ROW] = index.rows[row, LEFT]
        index.sizes[FREE_ROWS] -= 1
    return row


@inlined
def _new_tree(index):  # type: ignore[no-untyped-def]
    """The number of an empty tree."""
    tree = index.sizes[FREE_TREE]
    if tree == NONE:
        tree = index.sizes[TREES]
        index.sizes[TREES] = tree + 1
    else:
        index.sizes[FREE_TREE] = index.root[tree]
    return tree


@inlined
def _unqueue(index, leaf):  # type: ignore[no-untyped-def]
    """Takes a leaf out of the queue."""
    rows = index.rows
    earlier = rows[leaf, EARLIER]
    later = rows[leaf, LATER]
    if earlier == NONE:
        index.sizes[EARLIEST] = later
    else:
        rows[earlier, LATER] = later
    if later == NONE:
        index.sizes[LATEST] = earlier
    else:
        rows[later, EARLIER] = earlier


@inlined
def _queue(index, leaf, event):  # type: ignore[no-untyped-def]
    """Puts a leaf at the end of the queue."""
    rows = index.rows
    latest = index.sizes[LATEST]
    rows[leaf, LAST] = event
    rows[leaf, EARLIER] = latest
    rows[leaf, LATER] = NONE
    if latest == NONE:
        index.sizes[EARLIEST] = leaf
    else:
        rows[latest, LATER] = leaf
    index.sizes[LATEST] = leaf


@inlined
def _replace(index, old, new):  # type: ignore[no-untyped-def]
    """Puts row `new` where row `old` is: below its parent, or at the root of its tree."""
    rows = index.rows
    parent = rows[old, PARENT]
    rows[new, PARENT] = parent
    if parent <= _ROOTS:
        index.root[_ROOTS - parent] = new
    elif rows[parent, LEFT] == old:
        rows[parent, LEFT] = new
    else:
        rows[parent, RIGHT] = new


@kernel
def _lower(index, nodes, above, side, oldest, path):  # type: ignore[no-untyped-def]
    """Rotates: the child of `above` on the side that is not `side` loses its own child of that side.

    With side LEFT, (a (b c)) becomes ((a b) c). Rows stay where they are: the row of the child is now the
    one below, of a and b, and is the only one whose heap is made anew.
    """
    rows = index.rows
    other = LEFT + RIGHT - side
    below = rows[above, other]
    one = rows[above, side]
    two = rows[below, side]
    three = rows[below, other]
    rows[above, VALUE], rows[below, VALUE] = rows[below, VALUE], rows[above, VALUE]
    rows[above, side] = below
    rows[above, other] = three
    rows[below, side] = one
    rows[below, other] = two
    rows[one, PARENT] = below
    rows[three, PARENT] = above
    rows[below, WEIGHT] = rows[one, WEIGHT] + rows[two, WEIGHT]
    rows[below, START] = max(rows[one, START], rows[two, START])
    rows[below, HEAP] = _meld_rows(index, nodes, one, two, oldest, path)


@inlined
def _meld_rows(index, nodes, one, two, oldest, path):  # type: ignore[no-untyped-def]
    """The heap of two rows, NONE if both have expired."""
    first = index.rows[one, HEAP] if index.rows[one, START] >= oldest else NONE
    second = index.rows[two, HEAP] if index.rows[two, START] >= oldest else NONE
    return meld(nodes, first, second, oldest, path)


@kernel
def _balance_up(index, nodes, child, difference, oldest, path):  # type: ignore[no-untyped-def]
    """Weighs and balances from the parent of `child` to the root, after `difference` leaves more there.

    A sibling is weighed by its parent, so that only the rows on the way are read.
    """
    rows = index.rows
    row = rows[child, PARENT]
    while row > NONE:
        total = rows[row, WEIGHT] + difference
        rows[row, WEIGHT] = total
        weight = rows[child, WEIGHT]
        rest = total - weight
        if weight > _HEAVY * rest or rest > _HEAVY * weight:
            heavy = LEFT if (rows[row, LEFT] == child) == (weight > rest) else RIGHT
            light = LEFT + RIGHT - heavy
            heavier = rows[row, heavy]
            if rows[rows[heavier, light], WEIGHT] >= _DOUBLE * rows[rows[heavier, heavy], WEIGHT]:
                _lower(index, nodes, heavier, heavy, oldest, path)
            _lower(index, nodes, row, light, oldest, path)
        child = row
        row = rows[row, PARENT]


@kernel
def _remove(index, nodes, leaf, oldest, path):  # type: ignore[no-untyped-def]
    """Takes out a leaf that holds nothing inside the window; no heap above it changes by that."""
    rows = index.rows
    _unqueue(index, leaf)
    parent = rows[leaf, PARENT]
    if parent <= _ROOTS:
        tree = _ROOTS - parent
        index.root[tree] = index.sizes[FREE_TREE]
        index.sizes[FREE_TREE] = tree
    else:
        sibling = rows[parent, RIGHT] if rows[parent, LEFT] == leaf else rows[parent, LEFT]
        _replace(index, parent, sibling)
        _free_row(index, parent)
        _balance_up(index, nodes, sibling, -1, oldest, path)
    _free_row(index, leaf)


@inlined
def _add(index, nodes, row, alone, oldest, path):  # type: ignore[no-untyped-def]
    """Puts one product into the heap of a row. What starts last goes on top, which costs one node."""
    rows = index.rows
    start = nodes.start[alone]
    newest = rows[row, START]
    if newest < oldest:
        rows[row, HEAP] = alone
        rows[row, START] = start
    elif start >= newest:
        rows[row, HEAP] = heap_node(nodes, nodes.product[alone], start, rows[row, HEAP], NONE)
        rows[row, START] = start
    else:
        rows[row, HEAP] = meld(nodes, rows[row, HEAP], alone, oldest, path)


@kernel
def insert(index, nodes, place, one, two, value, alone, event, oldest, path):  # type: ignore[no-untyped-def]
    """Lets a product wait at (place, key) with `value`.

    alone: the heap node that holds the product alone, which starts at or after `oldest`; event int64: the
    event at hand, no earlier than that start nor than the events of insertions before. Needs room
    (`has_room`, `most_nodes`). path int32[64] is scratch.
    """
    rows = index.rows
    for _ in range(2):
        expired = index.sizes[EARLIEST]
        if expired == NONE or rows[expired, LAST] >= oldest:
            break
        _remove(index, nodes, expired, oldest, path)
    entry = claim(index.trees, place, one, two, oldest)
    known = index.trees.entries[entry, LAST_ENTERED] >= oldest
    tree = heap_of(index.trees, entry) if known else _new_tree(index)
    put(index.trees, entry, place, tree, event)
    row = index.root[tree] if known else NONE
    if known:
        while rows[row, WEIGHT] > 1:
            _add(index, nodes, row, alone, oldest, path)
            row = rows[row, LEFT] if value <= rows[row, VALUE] else rows[row, RIGHT]
        if rows[row, VALUE] == value:
            _add(index, nodes, row, alone, oldest, path)
            _unqueue(index, row)
            _queue(index, row, event)
            return
    leaf = _new_row(index)
    rows[leaf, VALUE] = value
    rows[leaf, HEAP] = alone
    rows[leaf, START] = nodes.start[alone]
    rows[leaf, WEIGHT] = 1
    _queue(index, leaf, event)
    if not known:
        rows[leaf, PARENT] = _ROOTS - tree
        index.root[tree] = leaf
        return
    parent = _new_row(index)
    _replace(index, row, parent)
    first = leaf if value < rows[row, VALUE] else row
    second = leaf + row - first
    rows[parent, VALUE] = rows[first, VALUE]
    rows[parent, LEFT] = first
    rows[parent, RIGHT] = second
    rows[parent, HEAP] = rows[row, HEAP]
    rows[parent, START] = rows[row, START]
    _add(index, nodes, parent, alone, oldest, path)
    rows[row, PARENT] = parent
    rows[leaf, PARENT] = parent
    rows[parent, WEIGHT] = 2
    _balance_up(index, nodes, parent, 1, oldest, path)


@inlined
def _note(index, row, pieces, count, oldest):  # type: ignore[no-untyped-def]
    """Enters a row among the pieces, of which the later starts come last; returns how many there are."""
    rows = index.rows
    start = rows[row, START]
    if start < oldest:
        return count
    place = count
    while place > 0 and rows[pieces[place - 1], START] > start:
        pieces[place] = pieces[place - 1]
        place -= 1
    pieces[place] = row
    return count + 1


@inlined
def _subtree_with_cut(index, row, low, high):  # type: ignore[no-untyped-def]
    """The first row downwards whose values low … high are not all on one side; maybe a leaf."""
    rows = index.rows
    while rows[row, WEIGHT] > 1:
        if high <= rows[row, VALUE]:
            row = rows[row, LEFT]
        elif low > rows[row, VALUE]:
            row = rows[row, RIGHT]
        else:
            break
    return row


@kernel
def _in_range(index, row, low, high, pieces, count, oldest):  # type: ignore[no-untyped-def]
    """Enters subtrees below `row` that hold the values low … high; returns how many pieces there are."""
    rows = index.rows
    if low == SMALLEST and high == LARGEST:
        return _note(index, row, pieces, count, oldest)
    row = _subtree_with_cut(index, row, low, high)
    if rows[row, WEIGHT] == 1:
        if low <= rows[row, VALUE] <= high:
            count = _note(index, row, pieces, count, oldest)
        return count
    side = rows[row, LEFT]
    while rows[side, WEIGHT] > 1 and low != SMALLEST:
        if low <= rows[side, VALUE]:
            count = _note(index, rows[side, RIGHT], pieces, count, oldest)
            side = rows[side, LEFT]
        else:
            side = rows[side, RIGHT]
    if low == SMALLEST or low <= rows[side, VALUE]:
        count = _note(index, side, pieces, count, oldest)
    side = rows[row, RIGHT]
    while rows[side, WEIGHT] > 1 and high != LARGEST:
        if high > rows[side, VALUE]:
            count = _note(index, rows[side, LEFT], pieces, count, oldest)
            side = rows[side, RIGHT]
        else:
            side = rows[side, LEFT]
    if high == LARGEST or rows[side, VALUE] <= high:
        count = _note(index, side, pieces, count, oldest)
    return count


@kernel
def query(index, nodes, place, one, two, operator, value, upper, oldest, pieces, path):  # type: ignore[no-untyped-def]
    """The heap of what waits at (place, key) with (its value) `operator` `value`, or NONE.

    operator: LESS … BETWEEN, which means value … upper; upper is read by no other. The heap may hold what
    has left the window below what has not. Makes at most `most_nodes`. pieces int64[PIECES] and
    path int32[64] are scratch. Earlier starts are melded first: what comes on top costs one node mostly.
    """
    entry = find(index.trees, place, one, two)
    if entry == FREE or index.trees.entries[entry, LAST_ENTERED] < oldest:
        return NONE
    row = np.int64(index.root[heap_of(index.trees, entry)])
    count = 0
    if operator == BETWEEN:
        if value <= upper:
            count = _in_range(index, row, value, upper, pieces, count, oldest)
    elif operator == LESS_EQUAL:
        count = _in_range(index, row, SMALLEST, value, pieces, count, oldest)
    elif operator == GREATER_EQUAL:
        count = _in_range(index, row, value, LARGEST, pieces, count, oldest)
    else:
        if operator != GREATER and value > SMALLEST:
            count = _in_range(index, row, SMALLEST, value - 1, pieces, count, oldest)
        if operator != LESS and value < LARGEST:
            count = _in_range(index, row, value + 1, LARGEST, pieces, count, oldest)
    heap = NONE
    for number in range(count):
        heap = meld(nodes, heap, index.rows[pieces[number], HEAP], oldest, path)
    return heap


@kernel
def mark_trees(index, oldest, live):  # type: ignore[no-untyped-def]
    """Sets live[heap] = 1 for the heaps of all rows that have not expired."""
    for row in range(index.sizes[USED]):
        if index.rows[row, START] >= oldest:
            live[index.rows[row, HEAP]] = 1


@kernel
def rename_trees(index, oldest, moved):  # type: ignore[no-untyped-def]
    """Replaces the heap of each row that has not expired by moved[heap]."""
    for row in range(index.sizes[USED]):
        if index.rows[row, START] >= oldest:
            index.rows[row, HEAP] = moved[index.rows[row, HEAP]]
