"""What has to hold of the arrays of a snapshot before a kernel reads them: kernels check nothing.

A snapshot comes from outside, and a checksum is no proof that nobody has written it by hand. Each check
raises ValueError. What they see to: each number of a node, event, state or mark is one of those that are
there; children come before what refers to them, so that every walk ends; lists are as long as they say; and
trees and heaps are balanced, by which the room for scratch is reckoned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from estero.engine.snapshots.columns import EVENTS, HEAPS, NODES, PRODUCTS, Arrays, taken, within
from estero.engine.store.arena import BOTTOM, NONE, PREFER, UNION
from estero.engine.store.hash_index import START, TAG
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
_STATUSES = 3


def need(holds: Any, what: str) -> None:
    """Raises ValueError unless all of `holds`."""
    if not np.all(holds):
        raise ValueError(f"it does not hold that {what}")


def counts(arrays: Arrays, name: str, length: int | None, total: int, *, least: int) -> NDArray[Any]:
    """How many items lists have, `total` in all and `least` in each."""
    numbers = taken(arrays, name, np.int32, length)
    need(numbers >= least, f"each of {name} is at least {least}")
    need(int(numbers.sum(dtype=np.int64)) == total, f"{name} are {total} in all")
    return numbers


def check_stamps(arrays: Arrays, events: int) -> None:
    """The times of the events, which do not fall."""
    stamps = taken(arrays, "stamp", np.int64, events)
    need(stamps[1:] >= stamps[:-1], "stamps do not fall")


def check_arena(arrays: Arrays, events: int, marks: int) -> int:
    """The nodes of a compact set; returns how many there are."""
    sizes = {"nodes": NODES.count(arrays), EVENTS: events, "marks": marks}
    kind, left, right, event, start = NODES.check(arrays, sizes)
    place = np.arange(kind.size)
    union, bottom = kind == UNION, kind == BOTTOM
    need((left < place) & (right < place), "what is on the left and on the right comes before")
    need((left != NONE) & (right != NONE) | ~(union | (kind <= PREFER)), "a union or choice has two sides")
    need((left == NONE) | ~bottom, "nothing is below a bottom")
    begins = left == NONE
    need(start == np.where(begins, event, start[left]), "nodes start where those below them do")
    need((start[right] <= start) | ~union, "what starts last is on the left")
    return int(kind.size)


def check_plain_runs(arrays: Arrays, nodes: int, states: int) -> None:
    """The runs that are told apart by their state; see `open_runs`."""
    state = taken(arrays, "state", np.int32, None)
    within(state, 0, states, "states")
    opened = counts(arrays, "opened", None, state.size, least=0)
    several = np.flatnonzero(opened > 1)  # few, often; sorting is what takes time here
    owner = np.repeat(several, opened[several])
    theirs = state[np.repeat(opened > 1, opened)]
    need(np.unique(owner * states + theirs).size == theirs.size, "a partition has a state once")
    _check_lists(arrays, state.size, nodes)


def check_split_runs(arrays: Arrays, nodes: int, states: int, registers: int) -> None:
    """The runs that are told apart by registers and rank, too."""
    state = taken(arrays, "state", np.int32, None)
    within(state, 0, states, "states")
    counts(arrays, "opened", None, state.size, least=0)
    keys = taken(arrays, "registers", np.int64, None, registers).shape[0]
    within(taken(arrays, "status", np.int8, keys, registers), 0, _STATUSES, "registers")
    counts(arrays, "keys", state.size, keys, least=1)
    rank = taken(arrays, "rank", np.int64, None)
    counts(arrays, "parts", keys, rank.size, least=1)
    _check_lists(arrays, rank.size, nodes)


def check_span_runs(arrays: Arrays, nodes: int, states: int) -> None:
    """The spans of windows, newest first, and their members."""
    state = taken(arrays, "state", np.int32, None)
    within(state, 0, states, "states")
    spans = taken(arrays, "members", np.int32, None).size
    sizes = counts(arrays, "members", spans, state.size, least=1)
    opened = counts(arrays, "opened", None, spans, least=0)
    need(taken(arrays, "rank", np.int32, state.size) >= 0, "ranks are not negative")
    owner = np.repeat(np.arange(spans), sizes)
    need(np.unique(owner * states + state).size == state.size, "a span has a state once")
    node = taken(arrays, "node", np.int32, spans + state.size)
    within(node, 0, nodes, "nodes")
    need(arrays["kind"][node[:spans]] == BOTTOM, "a span has a last event")
    last = arrays["event"][node[:spans]]
    begins = np.zeros(spans, np.bool_)
    begins[(np.cumsum(opened) - opened)[opened > 0]] = True
    need((last[1:] < last[:-1]) | begins[1:], "spans fall")


def _check_lists(arrays: Arrays, lists: int, nodes: int) -> None:
    """Union-lists, in which starts do not rise."""
    node = taken(arrays, "node", np.int32, None)
    within(node, 0, nodes, "nodes")
    length = counts(arrays, "length", lists, node.size, least=1)
    start = arrays["start"][node]
    inside = np.ones(node.size, np.bool_)
    inside[np.cumsum(length) - length] = False
    need((start[1:] <= start[:-1]) | ~inside[1:], "lists fall")


def check_partitions(arrays: Arrays, *, keyed: bool, gaps: bool, ordered: bool) -> None:
    """What there is of each partition."""
    count = arrays["opened"].size
    if keyed:
        taken(arrays, "partition", np.uint64, count, 2)
    else:
        need(count == 1, "there is one partition")
    if gaps:
        taken(arrays, "ordinal", np.int64, count)
    if ordered:
        taken(arrays, "step", np.int64, count)


def check_entries(arrays: Arrays, name: str, referred: int, events: int) -> None:
    """The entries of a hash index, which refer to things number 0 … `referred` - 1."""
    words = taken(arrays, name, np.uint64, None, 4)
    need(words[:, TAG] >> _HALF != 0, "an entry has a place")
    need((words[:, TAG] & _LOWER) < referred, "an entry refers to what is there")
    within(words[:, START].view(np.int64), -1, events + 1, "entries")


def check_heaps(arrays: Arrays, events: int, marks: int) -> None:
    """Products and heap nodes."""
    sizes = {"products": PRODUCTS.count(arrays), "heaps": HEAPS.count(arrays), EVENTS: events, "marks": marks}
    _, _, start, made = PRODUCTS.check(arrays, sizes)
    product, left, right, weight, heap_start = HEAPS.check(arrays, sizes)
    need(made[1:] >= made[:-1], "products are in the order in which they were made")
    need(made[product] <= np.arange(product.size), "a product comes before its heaps")
    child = taken(arrays, "child", np.int32, None)
    children = counts(arrays, "children", start.size, child.size, least=0)
    need((child >= 0) & (child < np.repeat(made, children)), "children come before their product")
    need(heap_start == start[product], "a heap starts as its product does")
    place = np.arange(product.size)
    heavier = np.append(weight, 0).astype(np.int64)
    for side in (left, right):
        need(side < place, "heaps come after those in them")
        need((side == NONE) | (heap_start[side] <= heap_start), "what starts last is on top of a heap")
    need(weight == 1 + heavier[left] + heavier[right], "heaps weigh what is in them")
    need(heavier[left] >= heavier[right], "the heavier side is on the left")


def check_trees(arrays: Arrays, events: int) -> None:
    """The search trees of values, and the queue of their leaves."""
    rows = taken(arrays, "tree_rows", np.int64, None, 8)
    at_root = rows[:, PARENT] <= ROOTS
    trees = int(at_root.sum())
    need(np.sort(ROOTS - rows[at_root, PARENT]) == np.arange(trees), "each tree has one root")
    check_entries(arrays, "tree_entries", trees, events)
    leaf = rows[:, WEIGHT] == 1
    _check_branches(rows, leaf, at_root)
    _check_values(rows, leaf, at_root)
    within(rows[:, NEWEST], NONE, events, "starts")
    inside = rows[:, NEWEST] != NONE
    heap = rows[inside, HEAP]
    within(heap, 0, arrays["heap_product"].size, "heaps")
    need(arrays["heap_start"][heap] == rows[inside, NEWEST], "rows start as their heaps do")
    _check_queue(rows, leaf, taken(arrays, "tree_ends", np.int64, 2), events)


def _check_branches(rows: NDArray[Any], leaf: NDArray[Any], at_root: NDArray[Any]) -> None:
    """Weights fall towards the leaves, so that there are no circles, and both sides are of like weight."""
    size = rows.shape[0]
    inner = np.flatnonzero(~leaf)
    sides = rows[inner][:, [LEFT, RIGHT]]
    within(sides, 0, size, "branches")
    need(rows[:, WEIGHT] >= 1, "there is a leaf below each row")
    need(rows[sides, PARENT] == inner[:, None], "a branch knows its parent")
    need(np.bincount(sides.ravel(), minlength=size) == ~at_root, "each row but the roots has one parent")
    weights = rows[sides, WEIGHT]
    within(weights, 1, size + 1, "weights")
    need(rows[inner, WEIGHT] == weights.sum(axis=1), "trees weigh what is in them")
    need(weights.max(axis=1, initial=0) <= _HEAVY * weights.min(axis=1, initial=size), "trees are balanced")


def _check_values(rows: NDArray[Any], leaf: NDArray[Any], at_root: NDArray[Any]) -> None:
    """Values on the left of a row are at most its own, those on the right greater."""
    limits = np.iinfo(np.int64)
    at = np.flatnonzero(at_root)
    low, high = np.full(at.size, limits.min), np.full(at.size, limits.max)
    first = np.ones(at.size, np.bool_)
    while at.size:
        value = rows[at, VALUE]
        need(((low < value) | first) & (value <= high), "values are in order")
        inner = ~leaf[at]
        above, value, low, high, first = (each[inner] for each in (at, value, low, high, first))
        at = np.concatenate((rows[above, LEFT], rows[above, RIGHT]))
        low, high = np.concatenate((low, value)), np.concatenate((value, high))
        first = np.concatenate((first, np.zeros_like(first)))


def _check_queue(rows: NDArray[Any], leaf: NDArray[Any], ends: NDArray[Any], events: int) -> None:
    """Leaves follow one another from the first to the last; their last events do not fall."""
    leaves = np.flatnonzero(leaf)
    earlier, later = rows[leaves, EARLIER], rows[leaves, LATER]
    for neighbour in (earlier, later):
        within(neighbour, NONE, rows.shape[0], "neighbours")
        need((neighbour == NONE) | leaf[neighbour], "leaves have leaves beside them")
    follows, comes = later != NONE, earlier != NONE
    need(rows[later[follows], EARLIER] == leaves[follows], "who follows knows whom")
    need(rows[earlier[comes], LATER] == leaves[comes], "who goes before knows whom")
    first, last = leaves[~comes].tolist(), leaves[~follows].tolist()
    need((first or [NONE]) == [ends[0]] and (last or [NONE]) == [ends[1]], "the queue has two ends")
    event = rows[:, LAST]
    within(event[leaves], NONE, events, "last events")
    need(event[later[follows]] >= event[leaves[follows]], "the queue is in order")
