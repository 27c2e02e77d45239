"""Checks of the arrays of a snapshot before kernels, which check nothing, read them.

A snapshot comes from outside, and a checksum is no proof that nobody has written it by hand. References of
columns are checked as they are declared (`schema.check`, `lists.check_lists`): every number of a node, event,
state or mark is one that exists; children come before the nodes that refer to them, so that every walk ends;
lists are as long as they say. The checks here cover the rest: nodes start where those below them do, and
trees and heaps are balanced, on which the capacity of scratch depends. All raise ValueError.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from estero.engine.store.arena import BOTTOM, NONE, PREFER, UNION, Arena
from estero.engine.store.checks import Arrays, need, taken, within
from estero.engine.store.hash_index import START, TAG
from estero.engine.store.heap import HeapNodes, Products
from estero.engine.store.schema import EVENTS, check, count_written
from estero.engine.store.value_trees import (
    EARLIER,
    HEAP,
    LAST,
    LATER,
    LEFT,
    PARENT,
    RIGHT,
    ROOTS,
    VALUE,
    WEIGHT,
)
from estero.engine.store.value_trees import START as NEWEST

_HALF = np.uint64(32)
_LOWER = np.uint64((1 << 32) - 1)
_HEAVY = 3


def check_stamps(arrays: Arrays, events: int) -> None:
    """Checks that the times of the events ascend."""
    stamps = taken(arrays, "stamp", np.int64, events)
    need(stamps[1:] >= stamps[:-1], "stamps do not fall")


def check_arena(arrays: Arrays, events: int, marks: int) -> int:
    """Checks the nodes of a compact set; returns how many there are."""
    size = count_written(Arena, "arena", arrays)
    arena = check(Arena, "arena", arrays, {"arena": size, EVENTS: events, "marks": marks})
    kind, left, right, start = arena.kind, arena.left, arena.right, arena.start
    union, bottom = kind == UNION, kind == BOTTOM
    need((left != NONE) & (right != NONE) | ~(union | (kind <= PREFER)), "unions and choices have two sides")
    need((left == NONE) | ~bottom, "nothing is below a bottom")
    begins = left == NONE
    need(start == np.where(begins, arena.event, start[left]), "nodes start where those below them do")
    need((start[right] <= start) | ~union, "what starts last is on the left")
    return size


def check_partitions(arrays: Arrays, *, keyed: bool, gaps: bool, ordered: bool) -> None:
    """Checks the rows of each partition."""
    count = arrays["opened"].size
    if keyed:
        taken(arrays, "partition", np.uint64, count, 2)
    else:
        need(count == 1, "there is one partition")
    if gaps:
        taken(arrays, "ordinal", np.int64, count)
    if ordered:
        taken(arrays, "step", np.int64, count)


def check_index(arrays: Arrays, name: str, referred: int, events: int) -> None:
    """Checks the entries of a hash index, which refer to items 0 … `referred` - 1."""
    words = taken(arrays, name, np.uint64, None, 4)
    need(words[:, TAG] >> _HALF != 0, f"all entries of {name} have a place")
    need((words[:, TAG] & _LOWER) < referred, f"entries of {name} refer to what is there")
    within(words[:, START].view(np.int64), -1, events + 1, f"starts of {name}")


def check_heaps(arrays: Arrays, events: int, marks: int) -> None:
    """Checks products and heap nodes."""
    count, size = count_written(Products, "products", arrays), count_written(HeapNodes, "nodes", arrays)
    sizes = {"products": count, "nodes": size, EVENTS: events, "marks": marks}
    products, nodes = check(Products, "products", arrays, sizes), check(HeapNodes, "nodes", arrays, sizes)
    need(products.made[1:] >= products.made[:-1], "products are in the order in which they were made")
    need(products.made[nodes.product] <= np.arange(size), "products come before their heaps")
    made = np.repeat(products.made, np.diff(products.first))
    need(products.child < made, "children come before their product")
    need(nodes.start == products.start[nodes.product], "heaps start as their product does")
    weight = np.append(nodes.weight, 0).astype(np.int64)
    for side in (nodes.left, nodes.right):
        need((side == NONE) | (nodes.start[side] <= nodes.start), "what starts last is on top of a heap")
    need(nodes.weight == 1 + weight[nodes.left] + weight[nodes.right], "heaps weigh what is in them")
    need(weight[nodes.left] >= weight[nodes.right], "the heavier side is on the left")


def check_trees(arrays: Arrays, events: int) -> None:
    """Checks the search trees of values, and the queue of their leaves."""
    rows = taken(arrays, "tree_rows", np.int64, None, 8)
    at_root = rows[:, PARENT] <= ROOTS
    trees = int(at_root.sum())
    need(np.sort(ROOTS - rows[at_root, PARENT]) == np.arange(trees), "trees have one root")
    check_index(arrays, "tree_entries", trees, events)
    leaf = rows[:, WEIGHT] == 1
    _check_branches(rows, leaf, at_root)
    _check_values(rows, leaf, at_root)
    within(rows[:, NEWEST], NONE, events, "starts")
    inside = rows[:, NEWEST] != NONE
    heap = rows[inside, HEAP]
    within(heap, 0, arrays["nodes.product"].size, "heaps")
    need(arrays["nodes.start"][heap] == rows[inside, NEWEST], "rows start as their heaps do")
    _check_queue(rows, leaf, taken(arrays, "tree_ends", np.int64, 2), events)


def _check_branches(rows: NDArray[Any], leaf: NDArray[Any], at_root: NDArray[Any]) -> None:
    """Checks that weights fall towards the leaves (so there are no cycles), and that sides are balanced."""
    size = rows.shape[0]
    inner = np.flatnonzero(~leaf)
    sides = rows[inner][:, [LEFT, RIGHT]]
    within(sides, 0, size, "branches")
    need(rows[:, WEIGHT] >= 1, "rows have a leaf below them")
    need(rows[sides, PARENT] == inner[:, None], "branches know their parent")
    need(np.bincount(sides.ravel(), minlength=size) == ~at_root, "all rows but roots have one parent")
    weights = rows[sides, WEIGHT]
    within(weights, 1, size + 1, "weights")
    need(rows[inner, WEIGHT] == weights.sum(axis=1), "trees weigh what is in them")
    need(weights.max(axis=1, initial=0) <= _HEAVY * weights.min(axis=1, initial=size), "trees are balanced")


def _check_values(rows: NDArray[Any], leaf: NDArray[Any], at_root: NDArray[Any]) -> None:
    """Checks that values on the left of a row are at most its own, and those on the right greater."""
    limits = np.iinfo(np.int64)
    at = np.flatnonzero(at_root)
    low, high = np.full(at.size, limits.min), np.full(at.size, limits.max)
    first = np.ones(at.size, np.bool_)
    while at.size:
        value = rows[at, VALUE]
        need(((low < value) | first) & (value <= high), "values are in order")
        inner = ~leaf[at]
        above, value, low, high, first = (kept[inner] for kept in (at, value, low, high, first))
        at = np.concatenate((rows[above, LEFT], rows[above, RIGHT]))
        low, high = np.concatenate((low, value)), np.concatenate((value, high))
        first = np.concatenate((first, np.zeros_like(first)))


def _check_queue(rows: NDArray[Any], leaf: NDArray[Any], ends: NDArray[Any], events: int) -> None:
    """Checks that the queue links the leaves from the first to the last, and their last events ascend."""
    leaves = np.flatnonzero(leaf)
    earlier, later = rows[leaves, EARLIER], rows[leaves, LATER]
    for neighbour in (earlier, later):
        within(neighbour, NONE, rows.shape[0], "neighbours")
        need((neighbour == NONE) | leaf[neighbour], "leaves have leaves beside them")
    follows, comes = later != NONE, earlier != NONE
    need(rows[later[follows], EARLIER] == leaves[follows], "leaves know the one before them")
    need(rows[earlier[comes], LATER] == leaves[comes], "leaves know the one after them")
    first, last = leaves[~comes].tolist(), leaves[~follows].tolist()
    need((first or [NONE]) == [ends[0]] and (last or [NONE]) == [ends[1]], "the queue has two ends")
    event = rows[:, LAST]
    within(event[leaves], NONE, events, "last events")
    need(event[later[follows]] >= event[leaves[follows]], "the queue is in order")
