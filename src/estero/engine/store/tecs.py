"""The timed enumerable compact set and its union-lists, as kernels (CORE; distributed-cea, 2 and 3).

Every function takes the arena and returns a node id. The caller checks for free rows: `bottom`, `output`
make one node, `unite` up to three, `merge` one for each cell behind the first.

A *union-list* is a chain of cells with strictly falling max_start after the head, whose node is no
union. It stands for the union of its nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import inlined, pool, step
from estero.engine.store.arena import BOTTOM, NONE, PREFER, UNION
from estero.engine.store.lists import give_back, take_row
from estero.engine.store.schema import free_rows, own, ref


@pool
class Cells(NamedTuple):
    """Cells of union-lists, whose nodes start ever earlier."""

    node: NDArray[np.int32] = ref("arena", live="start")
    next: NDArray[np.int32] = own()
    free: NDArray[np.int64] = free_rows()


@inlined
def bottom(arena, event):  # type: ignore[no-untyped-def]
    """Makes a node for the runs that start at `event` and have marked nothing yet."""
    node = arena.size[0]
    arena.kind[node] = BOTTOM
    arena.left[node] = NONE
    arena.right[node] = NONE
    arena.event[node] = event
    arena.start[node] = event
    arena.size[0] = node + 1
    return node


@inlined
def output(arena, marks, event, rest):  # type: ignore[no-untyped-def]
    """Makes a node for `event` with label set `marks`, after `rest` (NONE: the complex event starts here)."""
    node = arena.size[0]
    arena.kind[node] = marks
    arena.left[node] = rest
    arena.right[node] = NONE
    arena.event[node] = event
    arena.start[node] = event if rest == NONE else arena.start[rest]
    arena.size[0] = node + 1
    return node


@inlined
def pair(arena, left, right):  # type: ignore[no-untyped-def]
    """The union of two nodes with start[left] >= start[right]."""
    node = arena.size[0]
    arena.kind[node] = UNION
    arena.left[node] = left
    arena.right[node] = right
    arena.event[node] = 0
    arena.start[node] = arena.start[left]
    arena.size[0] = node + 1
    return node


@step
def unite(arena, one, two):  # type: ignore[no-untyped-def]
    """The union of two safe nodes of equal max_start, safe again (distributed-cea, figure "union")."""
    if arena.kind[one] != UNION:
        return pair(arena, one, two)
    if arena.kind[two] != UNION:
        return pair(arena, two, one)
    right_one = arena.right[one]
    right_two = arena.right[two]
    if arena.start[right_one] >= arena.start[right_two]:
        rest = pair(arena, right_one, right_two)
    else:
        rest = pair(arena, right_two, right_one)
    return pair(arena, arena.left[one], pair(arena, arena.left[two], rest))


@inlined
def choice(arena, kind, newer, older, last):  # type: ignore[no-untyped-def]
    """`older` for windows that begin at or before event `last`, `newer` for others; see `Arena`."""
    node = arena.size[0]
    arena.kind[node] = kind
    arena.left[node] = newer
    arena.right[node] = older
    arena.event[node] = last
    arena.start[node] = arena.start[newer]
    arena.size[0] = node + 1
    return node


@inlined
def height(arena, node):  # type: ignore[no-untyped-def]
    """The height of a tree of choices; 0 for everything else."""
    return max(0, PREFER - arena.kind[node])


@step
def newer(arena, node, older, last):  # type: ignore[no-untyped-def]
    """`older` for windows that begin at or before event `last`, `node` for others; at most three new nodes.

    Nodes put in front one after the other become a skew-binary list (Okasaki, Purely Functional Data
    Structures, 9.3), so that the way to any window is logarithmic: a chain of choices of kind PREFER, each
    with a complete tree on its left; the first two are joined if they are equally high.
    """
    if node == older:
        return older
    if arena.kind[older] == PREFER:
        one = arena.left[older]
        rest = arena.right[older]
        if arena.kind[rest] == PREFER and height(arena, one) == height(arena, arena.left[rest]):
            both = choice(arena, PREFER, one, arena.left[rest], arena.event[older])
            tree = choice(arena, PREFER - 1 - height(arena, one), node, both, last)
            return choice(arena, PREFER, tree, arena.right[rest], arena.event[rest])
    return choice(arena, PREFER, node, older, last)


@inlined
def new_cell(cells, node, following):  # type: ignore[no-untyped-def]
    """A cell that holds `node` in front of `following`."""
    cell = take_row(cells)
    cells.node[cell] = node
    cells.next[cell] = following
    return cell


@step
def free_list(cells, head):  # type: ignore[no-untyped-def]
    """Frees the cells of a list."""
    while head != NONE:
        following = cells.next[head]
        give_back(cells, head)
        head = following


@step
def length(cells, head):  # type: ignore[no-untyped-def]
    """The number of cells of a list."""
    count = 0
    while head != NONE:
        count += 1
        head = cells.next[head]
    return count


@step
def merge(arena, cells, head, oldest, scratch):  # type: ignore[no-untyped-def]
    """The union of a list, as one safe node; expired cells (max_start < oldest) are cut off first.

    `scratch` int32 holds at least the length of the list.
    """
    count = 0
    cell = head
    last = head
    while cell != NONE and (count == 0 or arena.start[cells.node[cell]] >= oldest):
        scratch[count] = cells.node[cell]
        count += 1
        last = cell
        cell = cells.next[cell]
    if cell != NONE:
        free_list(cells, cell)
        cells.next[last] = NONE
    node = scratch[count - 1]
    for place in range(count - 2, -1, -1):
        node = pair(arena, scratch[place], node)
    return node


@inlined
def insert_behind(arena, cells, head, node):  # type: ignore[no-untyped-def]
    """Inserts a safe node behind the head; needs start[node] <= start of the head's node.

    If there is a cell of equal max_start already, the two are united.
    """
    start = arena.start[node]
    before = head
    cell = cells.next[head]
    while cell != NONE and arena.start[cells.node[cell]] > start:
        before = cell
        cell = cells.next[cell]
    if cell != NONE and arena.start[cells.node[cell]] == start:
        cells.node[cell] = unite(arena, cells.node[cell], node)
    else:
        cells.next[before] = new_cell(cells, node, cell)
