"""Heaps and the hash index alone: order, weight, persistence, compaction; what is expired gives way."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero.engine.store.arena import NONE
from estero.engine.store.hash_index import (
    FREE,
    START,
    HashIndex,
    claim,
    find,
    heap_of,
    new_index,
    put,
    rebuilt,
)
from estero.engine.store.heap import (
    HeapNodes,
    Products,
    heap_node,
    mark_live,
    meld,
    move_live,
    new_product,
)
from estero.engine.store.schema import new

STARTS = st.lists(st.integers(0, 20), max_size=40)
PATH = np.empty(64, np.int32)


def starts_in(nodes: HeapNodes, root: int, oldest: int = 0) -> list[int]:
    """What a heap holds from `oldest` on, sorted; its invariants are checked on the way."""
    if root == NONE or nodes.start[root] < oldest:
        return []
    found, to_do = [], [root]
    while to_do:
        node = to_do.pop()
        found.append(int(nodes.start[node]))
        sides = int(nodes.left[node]), int(nodes.right[node])
        weights = [int(nodes.weight[side]) if side != NONE else 0 for side in sides]
        assert weights[0] >= weights[1]
        assert nodes.weight[node] == 1 + sum(weights)
        for side in sides:
            if side != NONE:
                assert side < node
                assert nodes.start[side] <= nodes.start[node]
                if nodes.start[side] >= oldest:
                    to_do.append(side)
    return sorted(found)


def heap_from(nodes: HeapNodes, starts: list[int], oldest: int = 0) -> int:
    """A heap of these starts, put in one after the other; each is its product's number as well."""
    root = NONE
    for start in starts:
        root = int(meld(nodes, root, heap_node(nodes, start, start, NONE, NONE), oldest, PATH))
    return root


@given(STARTS, STARTS, st.integers(0, 20))
def test_a_meld_holds_what_both_held_inside_the_window(one: list[int], two: list[int], oldest: int) -> None:
    nodes = new(HeapNodes, 5_000)
    roots = heap_from(nodes, one), heap_from(nodes, two)
    both = int(meld(nodes, *roots, oldest, PATH))
    assert starts_in(nodes, both, oldest) == sorted(start for start in one + two if start >= oldest)
    assert [starts_in(nodes, root) for root in roots] == [sorted(one), sorted(two)]


@given(STARTS, st.integers(0, 20))
def test_starts_that_expire_on_the_way_are_lost_and_no_others(starts: list[int], oldest: int) -> None:
    nodes = new(HeapNodes, 5_000)
    root = heap_from(nodes, starts, oldest)
    assert starts_in(nodes, root, oldest) == sorted(start for start in starts if start >= oldest)


@pytest.mark.parametrize(
    "starts", [range(2_000), range(2_000, 0, -1), [7] * 2_000, [*range(0, 2_000, 2)] * 2]
)
def test_an_insertion_makes_logarithmically_many_nodes(starts: list[int]) -> None:
    nodes = new(HeapNodes, 100_000)
    root = NONE
    for number, start in enumerate(starts):
        before = int(nodes.size[0])
        root = int(meld(nodes, root, heap_node(nodes, 0, start, NONE, NONE), 0, PATH))
        assert nodes.size[0] - before <= 2 + (number + 1).bit_length()
    assert starts_in(nodes, root) == sorted(starts)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 15)), max_size=30), st.integers(0, 15))
def test_compaction_keeps_what_roots_reach_inside_the_window(
    insertions: list[tuple[int, int]], oldest: int
) -> None:
    nodes, products = new(HeapNodes, 2_000), new(Products, 100, children=100)
    roots = [NONE] * 4
    for heap, event in insertions:
        child = roots[(heap + 1) % 4]
        start = min(event, int(nodes.start[child])) if child != NONE else event
        heaps = np.array([child] if child != NONE else [], np.int32)
        product = new_product(products, nodes, heap, start, start, heaps, 0, heaps.size)
        alone = heap_node(nodes, product, start, NONE, NONE)
        roots[heap] = int(meld(nodes, roots[heap], alone, oldest, PATH))
    kept = [root for root in roots if root != NONE and nodes.start[root] >= oldest]
    before = [starts_in(nodes, root, oldest) for root in kept]
    live_products, live_nodes = np.zeros(products.size[0], np.int8), np.zeros(nodes.size[0], np.int8)
    moved = np.full(products.size[0], NONE, np.int32), np.full(nodes.size[0], NONE, np.int32)
    live_nodes[kept] = 1
    mark_live(products, nodes, oldest, live_products, live_nodes)
    move_live(products, nodes, live_products, live_nodes, *moved)
    assert (nodes.size[0], products.size[0]) == (live_nodes.sum(), live_products.sum())
    after = [int(moved[1][root]) for root in kept]
    assert [starts_in(nodes, root) for root in after] == before
    assert all(products.start[nodes.product[root]] == nodes.start[root] for root in after)
    assert (products.child[: products.size[1]] < nodes.size[0]).all()


def entered(index: HashIndex, place: int, key: int, heap: int, start: int, oldest: int) -> None:
    with np.errstate(over="ignore"):
        entry = claim(index, place, np.uint64(key), np.uint64(key), oldest)
    put(index, entry, place, heap, start)


def looked_up(index: HashIndex, place: int, key: int) -> tuple[int, int] | None:
    """(heap, max_start) of an entry."""
    with np.errstate(over="ignore"):
        entry = find(index, place, np.uint64(key), np.uint64(key))
    return None if entry == FREE else (int(heap_of(index, entry)), int(index.entries[entry, START]))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 4)), max_size=60))
def test_the_index_holds_the_last_heap_of_each_key_until_it_expires(
    entries: list[tuple[int, int, int]],
) -> None:
    index, expected, oldest = new_index(4), {}, 0
    for heap, (place, key, age) in enumerate(entries):
        oldest = heap // 2
        if 2 * (index.used[0] + 1) > index.words.shape[0]:
            index = rebuilt(index, oldest, 1)
        start = max(oldest, heap - age)
        entered(index, place, key, heap, start, oldest)
        expected[place, key] = heap, start
    for (place, key), (heap, start) in expected.items():
        found = looked_up(index, place, key)
        assert found == (heap, start) or (start < oldest and (found is None or found[1] < oldest))
    taken = Counter(index.entries[index.entries[:, 2] != 0, 2].tolist())
    assert index.used[0] == sum(taken.values()) <= index.words.shape[0] // 2


def test_keys_that_expire_give_their_places_away() -> None:
    index = new_index(8)
    for event in range(500):
        if 2 * (index.used[0] + 1) > index.words.shape[0]:
            index = rebuilt(index, event - 3, 8)
        entered(index, 0, event, event, event, event - 3)
    assert index.words.shape[0] <= 64
    assert [looked_up(index, 0, event) for event in (497, 498, 499)] == [(497,) * 2, (498,) * 2, (499,) * 2]


def test_the_largest_place_and_heap_fit_an_entry() -> None:
    index = new_index(2)
    entered(index, 2**30, 2**64 - 1, 2**31 - 1, 5, 0)
    assert looked_up(index, 2**30, 2**64 - 1) == (2**31 - 1, 5)
    assert looked_up(index, 2**30 - 1, 2**64 - 1) is None
