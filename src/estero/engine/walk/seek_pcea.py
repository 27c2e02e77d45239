"""Going to the complex event of a product with a given index, for whoever enumerates from there on.

The index is a number whose digits are the indexes in the heaps of the product, the last heap's digit the
lowest; a heap's own product comes first, then its right side, then its left. So it costs as many steps as
the complex event has items, times the way down each heap, and the rim below the root.
"""

from __future__ import annotations

import numpy as np

from estero.engine.jit import inlined, kernel
from estero.engine.store.arena import NONE
from estero.engine.store.heap import inside
from estero.engine.walk.count import FITS
from estero.engine.walk.count_pcea import count_rim, known
from estero.engine.walk.enumerate import DONE, GROW, SEEK


@inlined
def leave(walk, choices, heap, agenda, listed, depth):  # type: ignore[no-untyped-def]
    """Leaves a heap for later, unless there is none; returns the choices then."""
    if heap == NONE:
        return choices
    walk.choice_heap[choices] = heap
    walk.choice_agenda[choices] = agenda
    walk.choice_listed[choices] = listed
    walk.choice_depth[choices] = depth
    return choices + 1


@kernel
def seek_product(products, nodes, ranges, place, root, oldest, walk):  # type: ignore[no-untyped-def]
    """Goes to the first complex event of range `place`, which is of a root.

    Returns (code, choices, listed, depth), from where the enumeration goes on: DONE, GROW (the walk is full),
    or SEEK where the range begins beyond a word.
    """
    of_products = ranges.of_products
    of_nodes = ranges.of_nodes
    stamp = ranges.stamp + place
    index = ranges.skip[place]
    room = walk.item_event.size
    choices = 0
    listed = 0
    depth = 0
    agenda = NONE
    product = root
    if index < 0:
        return SEEK, choices, listed, depth
    count_rim(products, nodes, of_products, of_nodes, root, oldest, stamp, ranges.stack)
    while True:
        first = products.first[product]
        last = products.first[product + 1]
        if depth == room or listed + last - first > room:
            return GROW, choices, listed, depth
        walk.item_event[depth] = products.event[product]
        walk.item_marks[depth] = products.mark[product]
        depth += 1
        for child in range(last - 1, first - 1, -1):
            heap = products.child[child]
            exact, rough = known(of_nodes, heap, oldest, nodes.start[heap], stamp)
            digit = index
            if rough < FITS:
                digit = index % np.int64(exact)
            index = (index - digit) // np.int64(exact) if rough < FITS else np.int64(0)
            walk.agenda_heap[listed] = heap
            walk.agenda_rest[listed] = agenda
            walk.agenda_index[listed] = digit
            agenda = listed
            listed += 1
        if agenda == NONE:
            return DONE, choices, listed, depth
        node = walk.agenda_heap[agenda]
        index = walk.agenda_index[agenda]
        agenda = walk.agenda_rest[agenda]
        while True:
            if choices + 2 > room:
                return GROW, choices, listed, depth
            product = nodes.product[node]
            left = inside(nodes, nodes.left[node], oldest)
            right = inside(nodes, nodes.right[node], oldest)
            exact, rough = known(of_products, product, oldest, products.start[product], stamp)
            if rough >= FITS or index < np.int64(exact):
                choices = leave(walk, choices, left, agenda, listed, depth)
                choices = leave(walk, choices, right, agenda, listed, depth)
                break
            index -= np.int64(exact)
            node = left
            if right != NONE:
                exact, rough = known(of_nodes, right, oldest, nodes.start[right], stamp)
                if rough >= FITS or index < np.int64(exact):
                    choices = leave(walk, choices, left, agenda, listed, depth)
                    node = right
                else:
                    index -= np.int64(exact)
