"""Products and persistent heaps of them in flat arrays: making, melding, compaction (PCEA, section 5).

The paper keeps a product and a union in one node and balances by direction bits, which insertions copy.
Here they are two: a *product* stands for an event, marked, together with one complex event of each of its
children, which are heaps; a *heap node* for the union of its product and of two heaps. Heaps are
weight-biased leftist on max_start, greatest on top: the left side is never the lighter one, so a right
spine of n nodes has 2^n - 1 products at least, and no path down turns right more often than that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, INT8S, INT32S, inlined, kernel, pool, step
from estero.engine.store.arena import NONE
from estero.engine.store.schema import EVENTS, ROWS, count_of, counters, earlier, offsets, ref

SPINE = 33
"""The most heap nodes that one insertion makes: a right spine of 2^31 products, the new one twice."""


@pool
class Products(NamedTuple):
    """Events that gather heaps; `mark.size` is the capacity.

    ======= ===== ==============================================================================
    array   dtype meaning for product i
    ======= ===== ==============================================================================
    mark    int32 label-set id of its event
    event   int64 its event, as a sequence number
    start   int64 max_start: the latest start below, the least of its children's; a leaf's event
    made    int32 how many heap nodes there were when it was made; those it reaches are among them
    first   int32 its children are child[first[i]] … child[first[i + 1] - 1]
    child   int32 heap nodes (roots of heaps)
    size    int64 products and children in use
    ======= ===== ==============================================================================
    """

    mark: NDArray[np.int32] = ref("marks")
    event: NDArray[np.int64] = ref(EVENTS)
    start: NDArray[np.int64] = ref(EVENTS)
    made: NDArray[np.int32] = count_of("nodes")
    first: NDArray[np.int32] = offsets("children")
    child: NDArray[np.int32] = ref("nodes", length="children")
    size: NDArray[np.int64] = counters(ROWS, "children")


@pool
class HeapNodes(NamedTuple):
    """Unions of a product and two heaps.

    left, right: NONE where there is no heap; weight: the products of the heap; start: the product's
    max_start, which no node below exceeds.
    """

    product: NDArray[np.int32] = ref("products")
    left: NDArray[np.int32] = earlier()
    right: NDArray[np.int32] = earlier()
    weight: NDArray[np.int32] = count_of("nodes", 1)
    start: NDArray[np.int64] = ref(EVENTS)
    size: NDArray[np.int64] = counters()


@inlined
def new_product(products, nodes, mark, event, start, children, first, last):  # type: ignore[no-untyped-def]
    """`event` marked `mark`, with one complex event of each heap children[first] … children[last - 1]."""
    product = products.size[0]
    place = products.size[1]
    products.mark[product] = mark
    products.event[product] = event
    products.start[product] = start
    products.made[product] = nodes.size[0]
    for number in range(first, last):
        products.child[place] = children[number]
        place += 1
    products.first[product + 1] = place
    products.size[0] = product + 1
    products.size[1] = place
    return product


@inlined
def heap_node(nodes, product, start, one, two):  # type: ignore[no-untyped-def]
    """The union of a product and two heaps that hold nothing newer."""
    weight_one = nodes.weight[one] if one != NONE else 0
    weight_two = nodes.weight[two] if two != NONE else 0
    node = nodes.size[0]
    nodes.product[node] = product
    nodes.start[node] = start
    nodes.weight[node] = 1 + weight_one + weight_two
    if weight_one >= weight_two:
        nodes.left[node] = one
        nodes.right[node] = two
    else:
        nodes.left[node] = two
        nodes.right[node] = one
    nodes.size[0] = node + 1
    return node


@inlined
def inside(nodes, node, oldest):  # type: ignore[no-untyped-def]
    """The heap itself if a complex event in it starts at or after `oldest`, else NONE."""
    return node if node != NONE and nodes.start[node] >= oldest else NONE


@step
def meld(nodes, one, two, oldest, path):  # type: ignore[no-untyped-def]
    """The union of two heaps, without what is seen to have expired; both remain unchanged.

    Only the nodes on the two right spines are copied, at most 62. path int32[64] is scratch: the new spine,
    downwards.
    """
    height = 0
    one = inside(nodes, one, oldest)
    two = inside(nodes, two, oldest)
    while one != NONE and two != NONE:  # noqa: PLR1714 - a tuple to search would be made each time
        if nodes.start[one] < nodes.start[two]:
            one, two = two, one
        path[height] = one
        height += 1
        one = inside(nodes, nodes.right[one], oldest)
    node = one if one != NONE else two
    for place in range(height - 1, -1, -1):
        old = path[place]
        left = inside(nodes, nodes.left[old], oldest)
        node = heap_node(nodes, nodes.product[old], nodes.start[old], left, node)
    return node


@kernel(Products, HeapNodes, INT, INT8S, INT8S)
def mark_live(products, nodes, oldest, live_products, live_nodes):  # type: ignore[no-untyped-def]
    """Sets to 1 all that live nodes reach by starts >= oldest.

    live_products int8[products], zeros on entry; live_nodes int8[nodes], 1 for the roots. Invariant: when
    a product or node is visited, all that refer to it have been: a product comes after the nodes that
    were there when it was made and before all others.
    """
    node = nodes.size[0] - 1
    for product in range(products.size[0] - 1, -2, -1):
        made = products.made[product] if product >= 0 else 0
        while node >= made:
            if live_nodes[node] == 1:
                live_products[nodes.product[node]] = 1
                left = inside(nodes, nodes.left[node], oldest)
                right = inside(nodes, nodes.right[node], oldest)
                if left != NONE:
                    live_nodes[left] = 1
                if right != NONE:
                    live_nodes[right] = 1
            node -= 1
        if product >= 0 and live_products[product] == 1:
            for place in range(products.first[product], products.first[product + 1]):
                live_nodes[products.child[place]] = 1


@kernel(Products, HeapNodes, INT8S, INT8S, INT32S, INT32S)
def move_live(products, nodes, live_products, live_nodes, moved_products, moved_nodes):  # type: ignore[no-untyped-def]
    """Compacts what is live, in order, without expired heaps; moved_*[old] = new, int32.

    Only `live_nodes` says which heaps have expired: their places may have been overwritten.
    """
    count = products.size[0]
    node = 0
    total = nodes.size[0]
    nodes.size[0] = 0
    products.size[0] = 0
    products.size[1] = 0
    first = 0
    for product in range(count + 1):
        made = products.made[product] if product < count else total
        while node < made:
            if live_nodes[node] == 1:
                left = nodes.left[node]
                right = nodes.right[node]
                moved_nodes[node] = heap_node(
                    nodes,
                    moved_products[nodes.product[node]],
                    nodes.start[node],
                    moved_nodes[left] if left != NONE and live_nodes[left] == 1 else NONE,
                    moved_nodes[right] if right != NONE and live_nodes[right] == 1 else NONE,
                )
            node += 1
        if product == count:
            break
        last = products.first[product + 1]
        if live_products[product] == 1:
            for place in range(first, last):
                products.child[place] = moved_nodes[products.child[place]]
            moved_products[product] = new_product(
                products,
                nodes,
                products.mark[product],
                products.event[product],
                products.start[product],
                products.child,
                first,
                last,
            )
        first = last
