"""Compact sets of products of heaps: counting, seeking and enumerating (PCEA, Theorem 5.2).

Enumerating: an *agenda* lists the heaps from which the current complex event still needs a product. A heap
offers its own product, then its right side, then its left side; the sides are choices for later, with the
agenda and the items at that point. So cross products are enumerated like the digits of a number, the last
heap fastest, and are never materialized. Choices are only heaps with something in the window, so each leads
to a complex event, after as many steps as that has items.

Seeking: the index is a number whose digits are the indexes in the heaps of the product, the last heap's digit
the lowest. So it costs as many steps as the complex event has items, times the way down each heap, and the
rim below the root.

Counting: a product counts the product of its heaps, a heap the sum of its three parts. The rim is counted
in time linear in the rim below the root and never in the complex events. With a window of w events and a hot
key the rim has O(w log w) nodes, without a window there is none.

Heap nodes and products are numbered together here, as parts: product p is p, heap node h is -1 - h.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, GROW, SEEK
from estero.engine.kernels import FLOATS, INT, INT64S, UINT64S, Maybe, inlined, kernel, pool, step
from estero.engine.store.arena import NONE
from estero.engine.store.heap import HeapNodes, Products, inside
from estero.engine.walk.branches import write_sorted
from estero.engine.walk.counter import (
    FITS,
    SHORT,
    SURE,
    Counter,
    Counts,
    Place,
    enter,
    grown_counts,
    is_done,
    known,
    known_word,
    new_counts,
    set_count,
    set_rim_count,
    waits,
)
from estero.engine.walk.enumeration import STEPS, Asked, Walk, go_on
from estero.engine.walk.matches import Matches
from estero.engine.walk.roots import Roots


@pool
class Heaps(NamedTuple):
    """Products and the heaps of them."""

    products: Products
    nodes: HeapNodes


@pool
class ProductCounts(NamedTuple):
    """The counts of products and of heap nodes.

    stack int32[children + 3 × nodes + 1] is scratch: on the rim each part is pushed at most once by each that
    refers to it.
    """

    of_products: Counts
    of_nodes: Counts
    stack: NDArray[np.int32]


@kernel(Heaps, ProductCounts, INT, INT)
def count_parts(heaps, counts, first_product, first_node):  # type: ignore[no-untyped-def]
    """Counts the products and heap nodes from these on; those before are done.

    Invariant: what a product or node refers to is done before it (see `heap.mark_live`).
    """
    products, nodes = heaps
    of_products = counts.of_products
    of_nodes = counts.of_nodes
    node = first_node
    count = products.size[0]
    for product in range(first_product, count + 1):
        made = products.made[product] if product < count else nodes.size[0]
        while node < made:
            own = nodes.product[node]
            exact = of_products.exact[own]
            rough = of_products.rough[own]
            earliest = of_products.earliest[own]
            for side in range(2):
                heap = nodes.left[node] if side == 0 else nodes.right[node]
                if heap != NONE:
                    exact += of_nodes.exact[heap]
                    rough += of_nodes.rough[heap]
                    earliest = min(earliest, of_nodes.earliest[heap])
            set_count(of_nodes, node, exact, rough, earliest)
            node += 1
        if product == count:
            break
        exact = np.uint64(1)
        rough = 1.0
        earliest = products.event[product]
        for place in range(products.first[product], products.first[product + 1]):
            heap = products.child[place]
            exact *= of_nodes.exact[heap]
            rough *= of_nodes.rough[heap]
            earliest = min(earliest, of_nodes.earliest[heap])
        set_count(of_products, product, exact, rough, earliest)


@step
def count_rim(heaps, counts, root, oldest):  # type: ignore[no-untyped-def]
    """Counts the rim below product `root`; returns the nodes and products counted."""
    products, nodes = heaps
    of_products = counts.of_products
    of_nodes = counts.of_nodes
    stack = counts.stack
    enter(of_nodes, oldest)
    if not waits(of_products, root, products.start[root], oldest):
        return 0
    steps = 0
    height = 1
    stack[0] = root
    while height > 0:
        part = stack[height - 1]
        waiting = height
        if part >= 0:
            if is_done(of_products, part):
                height -= 1
                continue
            exact = np.uint64(1)
            rough = 1.0
            for place in range(products.first[part], products.first[part + 1]):
                heap = products.child[place]
                if waits(of_nodes, heap, nodes.start[heap], oldest):
                    stack[height] = -1 - heap
                    height += 1
                else:
                    more_exact, more_rough = known(of_nodes, heap, nodes.start[heap], oldest)
                    exact *= more_exact
                    rough *= more_rough
            if height > waiting:
                continue
            set_rim_count(of_products, part, exact, rough)
        else:
            node = -1 - part
            if is_done(of_nodes, node):
                height -= 1
                continue
            own = nodes.product[node]
            if waits(of_products, own, products.start[own], oldest):
                stack[height] = own
                height += 1
            exact, rough = known(of_products, own, products.start[own], oldest)
            for side in range(2):
                heap = nodes.left[node] if side == 0 else nodes.right[node]
                if heap == NONE:
                    continue
                if waits(of_nodes, heap, nodes.start[heap], oldest):
                    stack[height] = -1 - heap
                    height += 1
                else:
                    more_exact, more_rough = known(of_nodes, heap, nodes.start[heap], oldest)
                    exact += more_exact
                    rough += more_rough
            if height > waiting:
                continue
            set_rim_count(of_nodes, node, exact, rough)
        steps += 1
        height -= 1
    return steps


@inlined
def count_list(heaps, counts, heap, oldest):  # type: ignore[no-untyped-def]
    """The count of a heap inside the window, exact and rough, and how many nodes were looked at.

    Products that were added in the order of their starts are a list, the newest first. Its rim is counted
    along the list, with nothing noted. If it is long, or not a list, more than SHORT nodes were visited.
    """
    nodes = heaps.nodes
    exact = np.uint64(0)
    rough = 0.0
    looked = 0
    while heap != NONE and nodes.start[heap] >= oldest:
        looked += 1
        if counts.of_nodes.earliest[heap] >= oldest:
            exact += counts.of_nodes.exact[heap]
            rough += counts.of_nodes.rough[heap]
            break
        own = nodes.product[heap]
        if looked > SHORT or nodes.right[heap] != NONE or counts.of_products.earliest[own] < oldest:
            looked = SHORT + 1
            break
        exact += counts.of_products.exact[own]
        rough += counts.of_products.rough[own]
        heap = nodes.left[heap]
    return exact, rough, looked


@kernel(Heaps, ProductCounts, Roots, UINT64S, FLOATS, FLOATS)
def count_products(heaps, counts, roots, exact, rough, least):  # type: ignore[no-untyped-def]
    """See `Counter.count`."""
    steps = 0
    for place in range(roots.root.size):
        root = roots.root[place]
        oldest = roots.oldest[place]
        exact[place] = np.uint64(1)
        rough[place] = 1.0
        looked = 1
        for number in range(heaps.products.first[root], heaps.products.first[root + 1]):
            heap = heaps.products.child[number]
            of_heap, rough_of_heap, nodes_of_heap = count_list(heaps, counts, heap, oldest)
            exact[place] *= of_heap
            rough[place] *= rough_of_heap
            looked += nodes_of_heap
            if looked > SHORT:
                break
        if looked > SHORT or not rough[place] < FITS:  # long numbers are computed from the rim
            looked = count_rim(heaps, counts, root, oldest)
            exact[place], rough[place] = known(counts.of_products, root, heaps.products.start[root], oldest)
        steps += looked
        least[place] = min(rough[place], SURE)
    return steps


@inlined
def leave(walk, choices, part, agenda, listed, depth):  # type: ignore[no-untyped-def]
    """Pushes a choice: a part, the agenda after it, its cells in use, and the number of items above.

    Returns the number of choices.
    """
    walk.choice[4 * choices] = part
    walk.choice[4 * choices + 1] = agenda
    walk.choice[4 * choices + 2] = listed
    walk.choice[4 * choices + 3] = depth
    return choices + 1


@inlined
def descend_product(heaps, oldest, walk, choices, most):  # type: ignore[no-untyped-def]
    """Goes through the agenda from the top choice on; see `enumeration.go_on`.

    Invariant: the items, then the current part, then one product of each heap on the agenda, make a complex
    event. An agenda is a list of cells: heap, the next cell, and while seeking the index in that heap.
    """
    products, nodes = heaps
    choices -= 1
    part = walk.choice[4 * choices]
    agenda = walk.choice[4 * choices + 1]
    listed = walk.choice[4 * choices + 2]
    depth = walk.choice[4 * choices + 3]
    capacity = walk.event.size
    longest = min(capacity, most)
    steps = 0
    code = DONE
    while True:
        if depth >= longest or choices + 2 > capacity:
            code = FULL if depth < capacity and choices + 2 <= capacity else GROW
            break
        if part < 0:
            node = -1 - part
            for side in range(2):  # what is left first is taken last
                heap = inside(nodes, nodes.left[node] if side == 0 else nodes.right[node], oldest)
                if heap != NONE:
                    choices = leave(walk, choices, -1 - heap, agenda, listed, depth)
            part = nodes.product[node]
            steps += 1
        first = products.first[part]
        last = products.first[part + 1]
        if listed + last - first > capacity:
            code = GROW
            break
        walk.event[depth] = products.event[part]
        walk.marks[depth] = products.mark[part]
        depth += 1
        for place in range(last - 1, first - 1, -1):
            walk.agenda[listed, 0] = products.child[place]
            walk.agenda[listed, 1] = agenda
            agenda = listed
            listed += 1
        steps += 1
        if agenda == NONE:
            break
        part = -1 - walk.agenda[agenda, 0]
        agenda = walk.agenda[agenda, 1]
    if code != DONE:
        choices = leave(walk, choices, part, agenda, listed, depth)
    walk.cursor[STEPS] += steps
    return code, choices, depth, NONE


@inlined
def seek_product(heaps, counts, root, oldest, skip, walk):  # type: ignore[no-untyped-def]
    """Goes to the complex event number `skip` of a root."""
    if counts is None:
        return DONE, leave(walk, 0, root, NONE, 0, 0)
    if skip == 0:
        return DONE, leave(walk, 0, root, NONE, 0, 0)
    return seek_digits(heaps, counts, root, oldest, skip, walk)


@step
def seek_digits(heaps, counts, root, oldest, skip, walk):  # type: ignore[no-untyped-def]
    """Goes to the complex event number `skip` of a root, product by product."""
    products, nodes = heaps
    capacity = walk.event.size
    choices = 0
    listed = 0
    depth = 0
    agenda = NONE
    product = root
    index = skip
    if skip < 0:
        return SEEK, 0
    count_rim(heaps, counts, root, oldest)
    while True:
        first = products.first[product]
        last = products.first[product + 1]
        if depth == capacity or listed + last - first > capacity:
            return GROW, 0
        if first == last and agenda == NONE:
            break
        walk.event[depth] = products.event[product]
        walk.marks[depth] = products.mark[product]
        depth += 1
        for child in range(last - 1, first - 1, -1):
            heap = products.child[child]
            exact, rough = known(counts.of_nodes, heap, nodes.start[heap], oldest)
            digit = index
            if rough < FITS:
                digit %= np.int64(exact)
                index //= np.int64(exact)
            else:
                index = np.int64(0)
            walk.agenda[listed, 0] = heap
            walk.agenda[listed, 1] = agenda
            walk.agenda[listed, 2] = digit
            agenda = listed
            listed += 1
        node = walk.agenda[agenda, 0]
        index = walk.agenda[agenda, 2]
        agenda = walk.agenda[agenda, 1]
        product = NONE
        while product == NONE:
            if choices + 2 > capacity:
                return GROW, 0
            # In the order of enumeration: its own product, the right side, the left side.
            left = inside(nodes, nodes.left[node], oldest)
            right = inside(nodes, nodes.right[node], oldest)
            own = nodes.product[node]
            exact, rough = known(counts.of_products, own, products.start[own], oldest)
            is_own = rough >= FITS or index < np.int64(exact)
            is_right = False
            if not is_own:
                index -= np.int64(exact)
                if right != NONE:
                    exact, rough = known(counts.of_nodes, right, nodes.start[right], oldest)
                    is_right = rough >= FITS or index < np.int64(exact)
                    index -= np.int64(0 if is_right else exact)
            if left != NONE and (is_own or is_right):
                choices = leave(walk, choices, -1 - left, agenda, listed, depth)
            if right != NONE and is_own:
                choices = leave(walk, choices, -1 - right, agenda, listed, depth)
            if is_own:
                product = own
            else:
                node = right if is_right else left
    return DONE, leave(walk, choices, product, NONE, listed, depth)


@kernel(Heaps, Maybe(ProductCounts), Asked, Walk, Matches, INT64S)
def walk_products(heaps, counts, asked, walk, matches, sizes):  # type: ignore[no-untyped-def]
    """The walk over products of heaps; see `enumeration.go_on`."""
    return go_on(heaps, counts, asked, walk, matches, sizes, seek_product, descend_product, write_sorted)


class ProductCounter(Counter[Heaps]):
    """Counts of products and of heap nodes, which are its parts."""

    walk: ClassVar[Callable[..., int]] = staticmethod(walk_products)
    count: ClassVar[Callable[..., int]] = staticmethod(count_products)

    def __init__(self) -> None:
        super().__init__()
        empty = new_counts(self._window)
        self.counts: Any = ProductCounts(empty, empty, np.empty(0, np.int32))
        self._done = (0, 0)
        self._large: dict[int, int] = {}
        self._large_rim: dict[int, int] = {}
        self._large_oldest = -1

    def forget(self) -> None:
        """Discards all counts, after products and nodes have been renumbered."""
        super().forget()
        self._done = (0, 0)
        self._large.clear()
        self._large_rim.clear()

    def catch_up(self, heaps: Heaps) -> None:
        """Counts the products and heap nodes that are new."""
        products, nodes = heaps
        (size, children), used = products.size.tolist(), int(nodes.size[0])
        of_products, of_nodes, stack = self.counts
        if of_products.exact.size < size:
            of_products = grown_counts(of_products, products.mark.size)
        if of_nodes.exact.size < used:
            of_nodes = grown_counts(of_nodes, nodes.product.size)
        if stack.size < children + 3 * used + 1:
            stack = np.empty(2 * (children + 3 * used + 1), np.int32)
        self.counts = ProductCounts(of_products, of_nodes, stack)
        count_parts(heaps, self.counts, *self._done)
        self._done = size, used

    def numbers(self, compact: Heaps, roots: NDArray[np.int32], oldest: int) -> list[int]:
        """See `Counter`."""
        none = np.zeros(roots.size, np.int64)
        self._counted(compact, Roots(none, roots, none + oldest))  # other rims have been counted since
        return [self._number(compact, root, oldest) for root in roots.tolist()]

    def _number(self, compact: Heaps, root: int, oldest: int) -> int:
        """The exact count of a part, from those of the parts below it; each is computed once."""
        if oldest != self._large_oldest:
            self._large_rim.clear()
            self._large_oldest = oldest
        open_parts: list[int] = []
        rim, large = self._large_rim, self._large

        def number_of(part: int) -> int:
            number = rim.get(part)
            if number is None:
                number = self._word(compact, part, oldest)
            if number is None and not self._on_rim(part, oldest):
                number = large.get(part)
            if number is None:
                open_parts.append(part)
            return number or 0

        number = number_of(root)
        while open_parts:
            part, height = open_parts[-1], len(open_parts)
            number = self._summed(compact, part, oldest, number_of)
            if len(open_parts) == height:
                (rim if self._on_rim(part, oldest) else large)[part] = number
                open_parts.pop()
        return number

    def seek(self, compact: Heaps, root: int, oldest: int, index: int) -> Place:
        """The place of the complex event number `index` of a product, in the order of enumeration."""
        products = compact.products
        choices: list[tuple[int, ...]] = []
        items: list[tuple[int, int]] = []
        cells: list[tuple[int, int]] = []
        indexes: list[int] = []
        part, agenda = root, NONE
        while True:
            below = _below(compact, part, oldest)
            if part < 0:
                here = 0
                while index >= (number := self._number(compact, below[here], oldest)):
                    index -= number
                    here += 1
                # What is left first is taken last: the left side.
                later = reversed(below[here + 1 :])
                choices.extend((one, agenda, len(indexes), len(items)) for one in later)
                part = below[here]
                continue
            if not below and agenda == NONE:
                choices.append((part, NONE, len(indexes), len(items)))
                return Place(
                    np.array(choices), *(np.array(pairs, np.int64).reshape(-1, 2) for pairs in (items, cells))
                )
            items.append((int(products.event[part]), int(products.mark[part])))
            for one in reversed(below):
                index, digit = divmod(index, self._number(compact, one, oldest))
                cells.append((-1 - one, agenda))
                agenda = len(indexes)
                indexes.append(digit)
            (heap, agenda), index = cells[agenda], indexes[agenda]
            part = -1 - heap

    def _word(self, compact: Heaps, part: int, oldest: int) -> int | None:  # noqa: ARG002 - as declared
        if part >= 0:
            return known_word(self.counts.of_products, part, oldest)
        return known_word(self.counts.of_nodes, -1 - part, oldest)

    def _summed(self, compact: Heaps, part: int, oldest: int, number_of: Callable[[int], int]) -> int:
        numbers = [number_of(one) for one in _below(compact, part, oldest)]
        return prod(numbers) if part >= 0 else sum(numbers)

    def _on_rim(self, part: int, oldest: int) -> bool:
        counts, place = (self.counts.of_products, part) if part >= 0 else (self.counts.of_nodes, -1 - part)
        return bool(counts.earliest.item(place) < oldest)


def _below(heaps: Heaps, part: int, oldest: int) -> list[int]:
    """The parts of a product or heap node inside the window, in the order of enumeration."""
    products, nodes = heaps
    if part >= 0:
        places = range(int(products.first[part]), int(products.first[part + 1]))
        return [-1 - int(products.child[place]) for place in places]
    node = -1 - part
    sides = (int(nodes.right[node]), int(nodes.left[node]))
    return [
        int(nodes.product[node]),
        *(-1 - heap for heap in sides if heap != NONE and nodes.start[heap] >= oldest),
    ]
