"""Search trees of values whose nodes carry heaps: balance, insertion of one product, removal, ranges.

The trees are leaf-oriented and weight-balanced (<3, 2>, Hirai and Yamamoto 2011), so that every single update
is polylogarithmic. Trees are changed in place, heaps never. What expires in a heap need not be deleted,
because it is never visited again; leaves are deleted, in the order of the queue.

Below, `index` is always an ordered_index.OrderedIndex, and `path` int32[64] is scratch of a meld.
"""

from __future__ import annotations

from estero.engine.kernels import inlined, step
from estero.engine.store.arena import NONE
from estero.engine.store.heap import heap_node, meld

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
"""The most subtrees that make up the answer to a query: two ways down a tree of 2^31 leaves."""

SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1

_EMPTY = -1

ROOTS = -2
"""`ROOTS` minus the number of a tree stands for the parent of its root."""

_HEAVY, _DOUBLE = 3, 2


@inlined
def free_row(index, row):  # type: ignore[no-untyped-def]
    """Frees a row."""
    index.rows[row, START] = _EMPTY
    index.rows[row, LEFT] = index.sizes[FREE_ROW]
    index.sizes[FREE_ROW] = row
    index.sizes[FREE_ROWS] += 1


@inlined
def new_row(index):  # type: ignore[no-untyped-def]
    """Takes a free row."""
    row = index.sizes[FREE_ROW]
    if row == NONE:
        row = index.sizes[USED]
        index.sizes[USED] = row + 1
    else:
        index.sizes[FREE_ROW] = index.rows[row, LEFT]
        index.sizes[FREE_ROWS] -= 1
    return row


@inlined
def new_tree(index):  # type: ignore[no-untyped-def]
    """Makes an empty tree; returns its number."""
    tree = index.sizes[FREE_TREE]
    if tree == NONE:
        tree = index.sizes[TREES]
        index.sizes[TREES] = tree + 1
    else:
        index.sizes[FREE_TREE] = index.root[tree]
    return tree


@inlined
def unqueue(index, leaf):  # type: ignore[no-untyped-def]
    """Removes a leaf from the queue."""
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
def queue(index, leaf, event):  # type: ignore[no-untyped-def]
    """Appends a leaf to the queue."""
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
def replace(index, old, new):  # type: ignore[no-untyped-def]
    """Puts row `new` in place of row `old`: below its parent, or at the root of its tree."""
    rows = index.rows
    parent = rows[old, PARENT]
    rows[new, PARENT] = parent
    if parent <= ROOTS:
        index.root[ROOTS - parent] = new
    elif rows[parent, LEFT] == old:
        rows[parent, LEFT] = new
    else:
        rows[parent, RIGHT] = new


@step
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


@step
def balance_up(index, nodes, child, difference, oldest, path):  # type: ignore[no-untyped-def]
    """Updates and balances the rows from the parent of `child` to the root, with `difference` more leaves.

    A sibling's weight is known by its parent, so that only the rows on the way are read.
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


@step
def remove(index, nodes, leaf, oldest, path):  # type: ignore[no-untyped-def]
    """Removes a leaf that holds nothing inside the window; no heap above it changes by that."""
    rows = index.rows
    unqueue(index, leaf)
    parent = rows[leaf, PARENT]
    if parent <= ROOTS:
        tree = ROOTS - parent
        index.root[tree] = index.sizes[FREE_TREE]
        index.sizes[FREE_TREE] = tree
    else:
        sibling = rows[parent, RIGHT] if rows[parent, LEFT] == leaf else rows[parent, LEFT]
        replace(index, parent, sibling)
        free_row(index, parent)
        balance_up(index, nodes, sibling, -1, oldest, path)
    free_row(index, leaf)


@inlined
def add(index, nodes, row, alone, oldest, path):  # type: ignore[no-untyped-def]
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


@inlined
def _note(index, row, pieces, count, oldest):  # type: ignore[no-untyped-def]
    """Enters a row among the pieces, in the order of their starts; returns how many there are."""
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


@step
def in_range(index, row, low, high, pieces, count, oldest):  # type: ignore[no-untyped-def]
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
