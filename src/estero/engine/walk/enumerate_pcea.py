"""Complex events out of products of heaps, in batches, with output-linear delay (PCEA, Theorem 5.2).

Iterative. An *agenda* lists the heaps of which the complex event at hand still needs one product each. A
heap offers its own product, then its right side, then its left side; what is not taken yet is a *choice*:
a heap with the agenda and the items at that point. So cross products are walked like the digits of a
number, the last heap fastest, and nothing of them is ever written down. Choices are only heaps with
something in the window, so each leads to a complex event, after as many steps as that has items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.jit import kernel
from estero.engine.store.arena import NONE
from estero.engine.store.heap import HeapNodes, Products, inside
from estero.engine.walk.count_pcea import PartCounts, ProductCounter
from estero.engine.walk.enumerate import DONE, FULL, GROW, Enumeration, Matches
from estero.engine.walk.roots import Roots
from estero.engine.walk.seek_pcea import seek_product
from estero.engine.walk.share import Part

ROOT, NODE, PRODUCT, AGENDA, LISTED, CHOICES, DEPTH, TAKEN, STEPS = range(9)
"""Places in a walk's cursor: next root; heap and product at hand (NONE: none); the agenda and how many
cells it has used; choices left; items of the complex event so far; complex events already given for the
end at hand; heap nodes and products visited in all."""


class ProductWalk(NamedTuple):
    """Where an enumeration stands.

    cursor int64; agenda: heap and rest (cell or NONE), int32, and the index that is sought in it, int64;
    choices: heap, agenda, its cells used, items, int32; items: event int64 and label-set id int32, each with
    as much scratch for sorting.
    """

    cursor: NDArray[np.int64]
    agenda_heap: NDArray[np.int32]
    agenda_rest: NDArray[np.int32]
    agenda_index: NDArray[np.int64]
    choice_heap: NDArray[np.int32]
    choice_agenda: NDArray[np.int32]
    choice_listed: NDArray[np.int32]
    choice_depth: NDArray[np.int32]
    item_event: NDArray[np.int64]
    item_marks: NDArray[np.int32]
    sort_event: NDArray[np.int64]
    sort_marks: NDArray[np.int32]


def new_product_walk(room: int = 256) -> ProductWalk:
    """A walk before the first root, with room for complex events of `room` items."""
    cursor = np.zeros(9, np.int64)
    cursor[[NODE, PRODUCT, AGENDA]] = NONE
    of_agenda = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int64)
    choice, agenda, listed, depth = (np.empty(room, np.int32) for _ in range(4))
    items = np.empty(room, np.int64), np.empty(room, np.int32)
    sorting = np.empty(room, np.int64), np.empty(room, np.int32)
    return ProductWalk(cursor, *of_agenda, choice, agenda, listed, depth, *items, *sorting)


class ProductRanges(NamedTuple):
    """Ranges of roots: of root i the complex events from number skip[i] on, take[i] of them.

    Both int64[r], or of no length where everything is wanted; skip is -1 where it passes a word. The counts
    and the stack are those of a `ProductCounter`, and root i goes by its stamp number `stamp` + i.
    """

    skip: NDArray[np.int64]
    take: NDArray[np.int64]
    of_products: PartCounts
    of_nodes: PartCounts
    stack: NDArray[np.int32]
    stamp: int


class ProductEnumeration(Enumeration[ProductWalk]):
    """Complex events of roots that are products, which `counter` counts; see `Enumeration`."""

    def __init__(
        self,
        products: Products,
        nodes: HeapNodes,
        counter: ProductCounter,
        roots: Roots,
        *,
        limit: int | None = None,
        part: Part | None = None,
        first_batch: int = 256,
    ) -> None:
        super().__init__(new_product_walk, roots, limit=limit, part=part, first_batch=first_batch)
        self._read = products, nodes
        self._counter = counter

    def ranges(self) -> ProductRanges:
        """What the walk is told of ranges and counts."""
        known = self._counter.known if self._part is None else self._counter.kept_up(*self._read)
        of_products, of_nodes, stack = known
        skip, take = self._ranges
        return ProductRanges(skip, take, of_products, of_nodes, stack, self._counter.stamps(skip.size))

    def _fill(self, matches: Matches, sizes: NDArray[np.int64]) -> int:
        read = *self._read, *self._roots, self._limit
        with np.errstate(over="ignore"):  # words wrap around and are not used where they do
            code: int = walk_products(*read, self.ranges(), self._walk, matches, sizes)
        return code

    def _seek(self, place: int, index: int) -> None:
        root, oldest = int(self._roots.root[place]), int(self._roots.oldest[place])
        at = self._counter.seek(*self._read, root, oldest, index)
        walk = self._made_room(max(len(at.items), len(at.agenda), len(at.rest)))
        for item, (event, marks) in enumerate(at.items):
            walk.item_event[item], walk.item_marks[item] = event, marks
        for cell, (heap, rest) in enumerate(at.agenda):
            walk.agenda_heap[cell], walk.agenda_rest[cell] = heap, rest
        for choice, (heap, agenda, listed, depth) in enumerate(at.rest):
            walk.choice_heap[choice], walk.choice_agenda[choice] = heap, agenda
            walk.choice_listed[choice], walk.choice_depth[choice] = listed, depth
        walk.cursor[:] = new_product_walk(1).cursor
        walk.cursor[[ROOT, LISTED, CHOICES, DEPTH]] = place + 1, len(at.agenda), len(at.rest), len(at.items)


@kernel
def walk_products(products, nodes, ends, roots, oldests, limit, ranges, walk, matches, sizes):  # type: ignore[no-untyped-def]
    """Fills `matches` with complex events of the roots (products), at most `limit` for each end (0: all).

    sizes[0] counts complex events and sizes[1] items. Returns DONE, GROW (the walk is full), FULL
    (matches are) or SEEK (the next root's range begins beyond a word). Invariant: items, then one product of
    each heap on the agenda, are a complex event.
    """
    cursor = walk.cursor
    root = cursor[ROOT]
    node = cursor[NODE]
    product = cursor[PRODUCT]
    agenda = cursor[AGENDA]
    listed = cursor[LISTED]
    choices = cursor[CHOICES]
    depth = cursor[DEPTH]
    taken = cursor[TAKEN]
    steps = cursor[STEPS]
    count = sizes[0]
    items = sizes[1]
    room = walk.item_event.size
    code = DONE
    in_ranges = ranges.take.size > 0
    if in_ranges and root > 0:
        limit = ranges.take[root - 1]
    while True:
        if node != NONE:
            oldest = oldests[root - 1]
            if choices + 2 > room:
                code = GROW
                break
            for side in range(2):
                rest = inside(nodes, nodes.left[node] if side == 0 else nodes.right[node], oldest)
                if rest != NONE:
                    walk.choice_heap[choices] = rest
                    walk.choice_agenda[choices] = agenda
                    walk.choice_listed[choices] = listed
                    walk.choice_depth[choices] = depth
                    choices += 1
            product = nodes.product[node]
            node = NONE
            steps += 1
        if product != NONE:
            first = products.first[product]
            last = products.first[product + 1]
            if depth == room or listed + last - first > room:
                code = GROW
                break
            walk.item_event[depth] = products.event[product]
            walk.item_marks[depth] = products.mark[product]
            depth += 1
            for place in range(last - 1, first - 1, -1):
                walk.agenda_heap[listed] = products.child[place]
                walk.agenda_rest[listed] = agenda
                agenda = listed
                listed += 1
            product = NONE
            steps += 1
        if agenda != NONE:
            node = walk.agenda_heap[agenda]
            agenda = walk.agenda_rest[agenda]
            continue
        if depth > 0:
            if count == matches.start.size or items + depth > matches.event.size:
                code = FULL
                break
            _write(walk, depth, matches, items)
            matches.start[count] = matches.event[items]
            matches.end[count] = ends[root - 1]
            items += depth
            count += 1
            matches.offsets[count] = items
            taken += 1
            depth = 0
            if limit > 0 and taken >= limit:
                choices = 0
        if choices > 0:
            choices -= 1
            node = walk.choice_heap[choices]
            agenda = walk.choice_agenda[choices]
            listed = walk.choice_listed[choices]
            depth = walk.choice_depth[choices]
        elif root < roots.size and in_ranges:
            limit = ranges.take[root]
            taken = 0
            code, choices, listed, depth = seek_product(
                products, nodes, ranges, root, roots[root], oldests[root], walk
            )
            if code != DONE:
                choices = 0
                depth = 0
                break
            root += 1
        elif root < roots.size:
            if root > 0 and ends[root] != ends[root - 1]:
                taken = 0
            if limit == 0 or taken < limit:
                product = roots[root]
            listed = 0
            root += 1
        else:
            break
    cursor[ROOT] = root
    cursor[NODE] = node
    cursor[PRODUCT] = product
    cursor[AGENDA] = agenda
    cursor[LISTED] = listed
    cursor[CHOICES] = choices
    cursor[DEPTH] = depth
    cursor[TAKEN] = taken
    cursor[STEPS] = steps
    sizes[0] = count
    sizes[1] = items
    return code


@kernel
def _write(walk, depth, matches, first):  # type: ignore[no-untyped-def]
    """Writes the items at hand to matches from place `first` on, by event and then by label-set id.

    Items come parents first, so backwards each branch ascends already: its runs are merged, in
    O(items × log branches); for a chain that is one copy.
    """
    event = walk.item_event
    marks = walk.item_marks
    for place in range(depth):
        matches.event[first + place] = event[depth - 1 - place]
        matches.marks[first + place] = marks[depth - 1 - place]
    while _merge_runs(matches, first, depth, walk.sort_event, walk.sort_marks) > 1:
        for place in range(depth):
            matches.event[first + place] = walk.sort_event[place]
            matches.marks[first + place] = walk.sort_marks[place]


@kernel
def _merge_runs(matches, first, depth, event, marks):  # type: ignore[no-untyped-def]
    """Merges each ascending run of matches.event[first …] with the next, into event and marks.

    Returns the number of runs that there were.
    """
    runs = 0
    low = first
    last = first + depth
    while low < last:
        middle = _run_end(matches, low, last)
        high = _run_end(matches, middle, last)
        if low == first and middle == last:
            return 1
        runs += 1 if middle == high else 2
        one = low
        two = middle
        for place in range(low - first, high - first):
            if two == high or (one < middle and not _before(matches, two, one)):
                chosen = one
                one += 1
            else:
                chosen = two
                two += 1
            event[place] = matches.event[chosen]
            marks[place] = matches.marks[chosen]
        low = high
    return runs


@kernel
def _before(matches, one, two):  # type: ignore[no-untyped-def]
    """Whether item `one` comes before item `two`."""
    if matches.event[one] != matches.event[two]:
        return matches.event[one] < matches.event[two]
    return matches.marks[one] < matches.marks[two]


@kernel
def _run_end(matches, low, last):  # type: ignore[no-untyped-def]
    """Where the ascending run that begins at `low` ends, at most `last`."""
    if low == last:
        return last
    low += 1
    while low < last and not _before(matches, low, low - 1):
        low += 1
    return low
