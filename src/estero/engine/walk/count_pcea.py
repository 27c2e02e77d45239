"""Exact counts of products of heaps without enumerating, and the complex event with a given index.

A product counts the product of its heaps, a heap the sum of its three parts. Whoever has no start before
the window keeps one number for good. The others are the *rim*; they are counted once for each `oldest`
that is asked for, in time linear in the rim below the root and never in the complex events. With a window
of w events and a hot key the rim has O(w log w) nodes, without a window there is none.

Heap nodes and products have one numbering here: product p is p, heap node h is -1 - h.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.jit import inlined, kernel
from estero.engine.store.arena import NONE, copy_columns
from estero.engine.store.heap import HeapNodes, Products
from estero.engine.walk.count import FITS


class PartCounts(NamedTuple):
    """What is known of each product, or of each heap node.

    exact uint64: its complex events modulo 2**64; rough float64: the same, rounded; earliest int64: the
    first start below. rim_exact and rim_rough are the counts inside the window of the `oldest` of which
    `stamp` int64 is the number.
    """

    exact: NDArray[np.uint64]
    rough: NDArray[np.float64]
    earliest: NDArray[np.int64]
    rim_exact: NDArray[np.uint64]
    rim_rough: NDArray[np.float64]
    stamp: NDArray[np.int64]


@kernel
def count_parts(products, nodes, of_products, of_nodes, first_product, first_node):  # type: ignore[no-untyped-def]
    """Fills exact, rough and earliest of the products and heap nodes from these on; those before are done.

    Invariant: what a product or node refers to is done before it (see `heap.mark_live`).
    """
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
            of_nodes.exact[node] = exact
            of_nodes.rough[node] = rough
            of_nodes.earliest[node] = earliest
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
        of_products.exact[product] = exact
        of_products.rough[product] = rough
        of_products.earliest[product] = earliest


@inlined
def known(counts, part, oldest, start, stamp):  # type: ignore[no-untyped-def]
    """The count inside the window of a product or heap node of max_start `start`; its rim must be done."""
    if start < oldest:
        return np.uint64(0), 0.0
    if counts.earliest[part] >= oldest:
        return counts.exact[part], counts.rough[part]
    if counts.stamp[part] == stamp:
        return counts.rim_exact[part], counts.rim_rough[part]
    return np.uint64(0), 0.0


@inlined
def waits(counts, part, oldest, start, stamp):  # type: ignore[no-untyped-def]
    """Whether a product or heap node is on the rim and not done."""
    return start >= oldest and counts.earliest[part] < oldest and counts.stamp[part] != stamp


@kernel
def count_rim(products, nodes, of_products, of_nodes, root, oldest, stamp, stack):  # type: ignore[no-untyped-def]
    """Counts the rim below product `root`; returns the nodes and products counted.

    stack int32[children + 3 × nodes + 1]: each is pushed at most once by each that refers to it.
    """
    if not waits(of_products, root, oldest, products.start[root], stamp):
        return 0
    steps = 0
    height = 1
    stack[0] = root
    while height > 0:
        part = stack[height - 1]
        waiting = height
        if part >= 0:
            if of_products.stamp[part] == stamp:
                height -= 1
                continue
            for place in range(products.first[part], products.first[part + 1]):
                heap = products.child[place]
                if waits(of_nodes, heap, oldest, nodes.start[heap], stamp):
                    stack[height] = -1 - heap
                    height += 1
            if height > waiting:
                continue
            exact = np.uint64(1)
            rough = 1.0
            for place in range(products.first[part], products.first[part + 1]):
                heap = products.child[place]
                more_exact, more_rough = known(of_nodes, heap, oldest, nodes.start[heap], stamp)
                exact *= more_exact
                rough *= more_rough
            of_products.rim_exact[part] = exact
            of_products.rim_rough[part] = rough
            of_products.stamp[part] = stamp
        else:
            node = -1 - part
            if of_nodes.stamp[node] == stamp:
                height -= 1
                continue
            own = nodes.product[node]
            if waits(of_products, own, oldest, products.start[own], stamp):
                stack[height] = own
                height += 1
            for side in range(2):
                heap = nodes.left[node] if side == 0 else nodes.right[node]
                if heap != NONE and waits(of_nodes, heap, oldest, nodes.start[heap], stamp):
                    stack[height] = -1 - heap
                    height += 1
            if height > waiting:
                continue
            exact, rough = known(of_products, own, oldest, products.start[own], stamp)
            for side in range(2):
                heap = nodes.left[node] if side == 0 else nodes.right[node]
                if heap != NONE:
                    more_exact, more_rough = known(of_nodes, heap, oldest, nodes.start[heap], stamp)
                    exact += more_exact
                    rough += more_rough
            of_nodes.rim_exact[node] = exact
            of_nodes.rim_rough[node] = rough
            of_nodes.stamp[node] = stamp
        steps += 1
        height -= 1
    return steps


@kernel
def count_products(products, nodes, of_products, of_nodes, roots, oldests, stamps, stack, exact, rough):  # type: ignore[no-untyped-def]
    """Fills exact uint64 and rough float64 with the number of complex events of each root (a product).

    stamps int64: the number of each root's `oldest`. `exact` is right where `rough` is below FITS. Returns
    how many products and heap nodes on rims were counted.
    """
    steps = 0
    for place in range(roots.size):
        root = roots[place]
        oldest = oldests[place]
        steps += count_rim(products, nodes, of_products, of_nodes, root, oldest, stamps[place], stack)
        exact[place], rough[place] = known(of_products, root, oldest, products.start[root], stamps[place])
    return steps


class ProductPlace(NamedTuple):
    """A complex event of a product, and what comes after it.

    `items` are its (event, label-set id) pairs, parents first; `agenda` cells (heap, rest) as an enumeration
    has them; `rest` the heaps that were left for later, each with the agenda, the cells and the items then.
    """

    items: list[tuple[int, int]]
    agenda: list[tuple[int, int]]
    rest: list[tuple[int, int, int, int]]


class ProductCounter:
    """Counts of products and heaps, kept up as they grow; `forget` after a compaction.

    `steps` is how many products and heap nodes on rims were looked at, so far.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._of_products = _new_counts(0)
        self._of_nodes = _new_counts(0)
        self._done = (0, 0)
        self._oldest = -1
        self._stamp = 0
        self._stack = np.empty(0, np.int32)
        self._large: dict[int, int] = {}
        self._large_rim: dict[int, int] = {}

    def forget(self) -> None:
        """Numbers of products and nodes have changed: start again."""
        self._done = (0, 0)
        self._oldest = -1
        self._large.clear()
        self._large_rim.clear()

    def of_roots(
        self,
        products: Products,
        nodes: HeapNodes,
        roots: NDArray[np.int32],
        oldests: NDArray[np.int64],
        enough: int | None = None,
    ) -> list[int]:
        """The exact number of complex events below each root that start at or after its `oldest`.

        Where there are more than `enough`, that number will do.
        """
        self._catch_up(products, nodes)
        exact, rough, stamps = self._counted(products, nodes, roots, oldests)
        numbers: list[int] = exact.tolist()
        for place in np.flatnonzero(~(rough < FITS)).tolist():
            if enough is not None and enough < FITS:
                numbers[place] = enough
                continue
            if stamps[place] != self._stamp:
                self._counted(products, nodes, roots[place : place + 1], oldests[place : place + 1])
            numbers[place] = self._number(products, nodes, int(roots[place]), int(oldests[place]))
        return numbers

    def path(
        self, products: Products, nodes: HeapNodes, root: int, oldest: int, index: int
    ) -> list[tuple[int, int]]:
        """The (event, label-set id) pairs, ascending, of the complex event number `index` of a product.

        In the order of enumeration; no other one is visited.
        """
        return sorted(self.seek(products, nodes, root, oldest, index).items)

    def seek(self, products: Products, nodes: HeapNodes, root: int, oldest: int, index: int) -> ProductPlace:
        """Where the complex event number `index` of a product is."""
        self.of_roots(products, nodes, np.array([root], np.int32), np.array([oldest]))
        at = ProductPlace([], [], [])
        indexes: list[int] = []
        part, agenda = root, NONE
        while True:
            below = _below(products, nodes, part, oldest)
            if part < 0:
                here = 0
                while index >= (number := self._number(products, nodes, below[here], oldest)):
                    index -= number
                    here += 1
                # What is left first is taken last: the left side.
                later = reversed(below[here + 1 :])
                at.rest.extend((-1 - one, agenda, len(indexes), len(at.items)) for one in later)
                part = below[here]
                continue
            at.items.append((int(products.event[part]), int(products.mark[part])))
            for one in reversed(below):
                index, digit = divmod(index, self._number(products, nodes, one, oldest))
                at.agenda.append((-1 - one, agenda))
                agenda = len(indexes)
                indexes.append(digit)
            if agenda == NONE:
                return at
            (heap, agenda), index = at.agenda[agenda], indexes[agenda]
            part = -1 - heap

    def kept_up(
        self, products: Products, nodes: HeapNodes
    ) -> tuple[PartCounts, PartCounts, NDArray[np.int32]]:
        """The counts of all products and of all heap nodes, and the stack of `count_rim`."""
        self._catch_up(products, nodes)
        return self.known

    @property
    def known(self) -> tuple[PartCounts, PartCounts, NDArray[np.int32]]:
        """The same for those that were there when something was counted last."""
        return self._of_products, self._of_nodes, self._stack

    def stamps(self, number: int) -> int:
        """The first of so many stamps that nobody else has."""
        first = self._stamp + 1
        if number:
            self._stamp += number
            self._oldest = -1
            self._large_rim.clear()
        return first

    def _counted(
        self, products: Products, nodes: HeapNodes, roots: NDArray[np.int32], oldests: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.int64]]:
        """What `count_products` fills, and the numbers of the `oldests`."""
        exact, rough = np.zeros(roots.size, np.uint64), np.zeros(roots.size)
        stamps = self._stamps(oldests)
        parts = (products, nodes, self._of_products, self._of_nodes)
        with np.errstate(over="ignore"):  # words wrap around and are not used where they do
            self.steps += count_products(*parts, roots, oldests, stamps, self._stack, exact, rough)
        return exact, rough, stamps

    def _number(self, products: Products, nodes: HeapNodes, root: int, oldest: int) -> int:
        """The exact number of one product or heap node inside the window; its rim must be counted."""
        open_parts = [root]
        while open_parts:
            part = open_parts[-1]
            below = _below(products, nodes, part, oldest)
            unknown = [one for one in below if self._known(one, oldest) is None]
            if unknown and self._known(part, oldest) is None:
                open_parts += unknown
                continue
            open_parts.pop()
            if self._known(part, oldest) is None:
                numbers = [self._known(one, oldest) or 0 for one in below]
                large = self._large_rim if self._on_rim(part, oldest) else self._large
                large[part] = prod(numbers) if part >= 0 else sum(numbers)
        return self._known(root, oldest) or 0

    def _known(self, part: int, oldest: int) -> int | None:
        """The number of what is inside the window, None if it is large and has not been worked out."""
        counts, place = (self._of_products, part) if part >= 0 else (self._of_nodes, -1 - part)
        if self._on_rim(part, oldest):
            if counts.stamp[place] == self._stamp and counts.rim_rough[place] < FITS:
                return int(counts.rim_exact[place])
            return self._large_rim.get(part)
        return int(counts.exact[place]) if counts.rough[place] < FITS else self._large.get(part)

    def _on_rim(self, part: int, oldest: int) -> bool:
        counts, place = (self._of_products, part) if part >= 0 else (self._of_nodes, -1 - part)
        return bool(counts.earliest[place] < oldest)

    def _stamps(self, oldests: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of these `oldest`: each that follows a different one gets the next."""
        if oldests.size == 0:
            return oldests
        changes = np.diff(oldests, prepend=self._oldest) != 0
        stamps: NDArray[np.int64] = self._stamp + np.cumsum(changes)
        if changes.any():
            self._large_rim.clear()
        self._oldest, self._stamp = int(oldests[-1]), int(stamps[-1])
        return stamps

    def _catch_up(self, products: Products, nodes: HeapNodes) -> None:
        size, children = products.size.tolist()
        if self._of_products.exact.size < size:
            self._of_products = _grown(self._of_products, products.mark.size)
        if self._of_nodes.exact.size < nodes.size[0]:
            self._of_nodes = _grown(self._of_nodes, nodes.product.size)
        needed = children + 3 * int(nodes.size[0]) + 1
        if self._stack.size < needed:
            self._stack = np.empty(2 * needed, np.int32)
        with np.errstate(over="ignore"):
            count_parts(products, nodes, self._of_products, self._of_nodes, *self._done)
        self._done = size, int(nodes.size[0])


def _below(products: Products, nodes: HeapNodes, part: int, oldest: int) -> list[int]:
    """The parts of a product or heap node inside the window, in the order of enumeration."""
    if part >= 0:
        places = range(int(products.first[part]), int(products.first[part + 1]))
        return [-1 - int(products.child[place]) for place in places]
    node = -1 - part
    sides = (int(nodes.right[node]), int(nodes.left[node]))
    return [
        int(nodes.product[node]),
        *(-1 - heap for heap in sides if heap != NONE and nodes.start[heap] >= oldest),
    ]


def _new_counts(capacity: int) -> PartCounts:
    exact, rim_exact = np.zeros(capacity, np.uint64), np.zeros(capacity, np.uint64)
    rough, rim_rough = np.zeros(capacity), np.zeros(capacity)
    return PartCounts(
        exact, rough, np.zeros(capacity, np.int64), rim_exact, rim_rough, np.zeros(capacity, np.int64)
    )


def _grown(counts: PartCounts, capacity: int) -> PartCounts:
    bigger = _new_counts(capacity)
    copy_columns(counts, bigger, counts.exact.size)
    return bigger
