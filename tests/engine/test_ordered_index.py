"""The ordered index: queries against brute force, trees and heaps as promised, what updates cost, expiry."""

from __future__ import annotations

import math
from operator import ge, gt, le, lt, ne

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.test_pcea_heap import starts_in
from estero.engine.store.arena import NONE
from estero.engine.store.heap import (
    HeapNodes,
    Products,
    heap_node,
    mark_live,
    move_live,
    new_product,
)
from estero.engine.store.ordered_index import (
    ABOVE_LOW,
    BELOW_HIGH,
    BETWEEN,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    NOT_EQUAL,
    has_capacity,
    insert,
    mark_trees,
    most_nodes,
    new_ordered_index,
    query,
    rename_trees,
    with_capacity,
)
from estero.engine.store.schema import grown, new
from estero.engine.store.value_trees import (
    EARLIEST,
    FREE_ROWS,
    HEAP,
    LAST,
    LATER,
    LEFT,
    PARENT,
    PIECES,
    RIGHT,
    START,
    USED,
    VALUE,
    WEIGHT,
)

COMPARED = {LESS: lt, LESS_EQUAL: le, GREATER: gt, GREATER_EQUAL: ge, NOT_EQUAL: ne}
RANGES = {
    BETWEEN: (ge, le),
    BETWEEN + ABOVE_LOW: (gt, le),
    BETWEEN + BELOW_HIGH: (ge, lt),
    BETWEEN + ABOVE_LOW + BELOW_HIGH: (gt, lt),
}
OPERATORS = (*COMPARED, *RANGES)
ASKED = (*COMPARED, BETWEEN)
LEAST, MOST = -(1 << 63), (1 << 63) - 1


def _compares(operator: int, waiting: int, value: int, upper: int) -> bool:
    if operator in COMPARED:
        return bool(COMPARED[operator](waiting, value))
    above, below = RANGES[operator]
    return bool(above(waiting, value) and below(waiting, upper))


class Waiting:
    """An index with its heaps, as a recognizer would hold it; product i is the one of insertion i."""

    def __init__(self, capacity: int = 1) -> None:
        self.index = new_ordered_index(capacity)
        self.nodes, self.products = new(HeapNodes, capacity), new(Products, capacity, children=1)
        self.made: list[tuple[int, int, int, int]] = []
        self.pieces, self.path = np.empty(PIECES, np.int64), np.empty(64, np.int32)

    def insert(self, key: int, value: int, start: int, event: int, oldest: int) -> int:
        """Returns how many heap nodes were made, besides the product's own."""
        self.ensure_capacity(oldest)
        product = new_product(self.products, self.nodes, 0, len(self.made), start, self.path, 0, 0)
        self.made.append((key, value, start, event))
        alone = heap_node(self.nodes, product, start, NONE, NONE)
        before = int(self.nodes.size[0])
        with np.errstate(over="ignore"):
            key_words = np.uint64(key), np.uint64(key)
            insert(self.index, self.nodes, 0, *key_words, value, alone, event, oldest, self.path)
        return int(self.nodes.size[0]) - before

    def heap(self, key: int, operator: int, value: int, upper: int, oldest: int) -> int:
        self.ensure_capacity(oldest)
        before, most = int(self.nodes.size[0]), int(most_nodes(self.index, self.nodes, 1))
        with np.errstate(over="ignore"):
            key_words = np.uint64(key), np.uint64(key)
            heap = int(
                query(
                    self.index,
                    self.nodes,
                    0,
                    *key_words,
                    operator,
                    value,
                    upper,
                    oldest,
                    self.pieces,
                    self.path,
                )
            )
        assert self.nodes.size[0] - before <= most
        return heap

    def expected(self, key: int, operator: int, value: int, upper: int, oldest: int) -> list[int]:
        return sorted(
            number
            for number, (its_key, its_value, start, _) in enumerate(self.made)
            if its_key == key and start >= oldest and _compares(operator, its_value, value, upper)
        )

    def held(self, heap: int, oldest: int) -> list[int]:
        """The insertions in a heap, without what has left the window; its order is checked on the way."""
        found, to_do = [], [heap]
        while to_do:
            node = to_do.pop()
            if node == NONE or self.nodes.start[node] < oldest:
                continue
            found.append(int(self.products.event[self.nodes.product[node]]))
            to_do += [int(self.nodes.left[node]), int(self.nodes.right[node])]
        assert len(starts_in(self.nodes, heap, oldest)) == len(found)
        return sorted(found)

    def ensure_capacity(self, oldest: int) -> None:
        if not has_capacity(self.index, 1):
            self.index = with_capacity(self.index, oldest, 1)
        needed = int(self.nodes.size[0] + most_nodes(self.index, self.nodes, 1)) + 1
        if needed > self.nodes.product.size:
            self.compact(oldest)
            needed = int(self.nodes.size[0] + most_nodes(self.index, self.nodes, 1)) + 1
            self.nodes = grown(self.nodes, rows=max(2 * needed, self.nodes.product.size))
        if self.products.size[0] == self.products.mark.size:
            self.products = grown(self.products, rows=2 * self.products.mark.size)

    def compact(self, oldest: int) -> None:
        live_products = np.zeros(self.products.size[0], np.int8)
        live_nodes = np.zeros(self.nodes.size[0], np.int8)
        moved = np.full(live_products.size, NONE, np.int32), np.full(live_nodes.size, NONE, np.int32)
        mark_trees(self.index, oldest, live_nodes)
        mark_live(self.products, self.nodes, oldest, live_products, live_nodes)
        move_live(self.products, self.nodes, live_products, live_nodes, *moved)
        rename_trees(self.index, oldest, moved[1])

    def check(self, oldest: int) -> None:
        """Trees are ordered and balanced, weigh and hold what is below; the queue has all leaves by event."""
        rows, sizes = self.index.rows, self.index.sizes
        queue, leaf = [], int(sizes[EARLIEST])
        while leaf != NONE:
            queue.append(leaf)
            leaf = int(rows[leaf, LATER])
        assert rows[queue, LAST].tolist() == sorted(rows[queue, LAST])
        roots = {self.root_above(leaf) for leaf in queue}
        leaves = [leaf for root in roots for leaf in self.leaves_below(root, oldest)]
        assert sorted(leaves) == sorted(queue)
        assert sizes[USED] - sizes[FREE_ROWS] == 2 * len(leaves) - len(roots)

    def root_above(self, row: int) -> int:
        while rows_parent(self, row) > NONE:
            row = rows_parent(self, row)
        assert self.index.root[-2 - rows_parent(self, row)] == row
        return row

    def leaves_below(self, row: int, oldest: int) -> list[int]:
        """The leaves in the order of their values."""
        rows = self.index.rows
        if rows[row, WEIGHT] == 1:
            return [row]
        sides = [int(rows[row, side]) for side in (LEFT, RIGHT)]
        left, right = (self.leaves_below(side, oldest) for side in sides)
        assert all(rows[side, PARENT] == row for side in sides)
        assert rows[left[-1], VALUE] <= rows[row, VALUE] < rows[right[0], VALUE]
        assert rows[row, WEIGHT] == len(left) + len(right)
        assert len(left) <= 3 * len(right)
        assert len(right) <= 3 * len(left)
        below = [number for side in sides for number in self.held_by(side, oldest)]
        assert self.held_by(row, oldest) == sorted(below)
        return left + right

    def held_by(self, row: int, oldest: int) -> list[int]:
        start, heap = int(self.index.rows[row, START]), int(self.index.rows[row, HEAP])
        assert start < oldest or start == self.nodes.start[heap]
        return self.held(heap, oldest) if start >= oldest else []


def rows_parent(waiting: Waiting, row: int) -> int:
    return int(waiting.index.rows[row, PARENT])


VALUES = st.one_of(st.integers(-3, 3), st.sampled_from([LEAST, LEAST + 1, MOST - 1, MOST]))
STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),
        VALUES,
        VALUES,
        VALUES,
        st.integers(0, 12),
        st.booleans(),
        st.sampled_from(OPERATORS),
    ),
    max_size=60,
)


@given(STEPS, st.sampled_from([3, 10, 100]), st.sampled_from([1, 2, 50]))
def test_a_query_finds_what_waits_inside_the_window_and_compares(
    steps: list[tuple[int, int, int, int, int, bool, int]], window: int, capacity: int
) -> None:
    waiting = Waiting(capacity)
    for event, (key, value, asked, upper, age, compacted, operator) in enumerate(steps):
        oldest = max(0, event - window)
        waiting.insert(key, value, max(oldest, event - age), event, oldest)
        if compacted:
            waiting.compact(oldest)
        heap = waiting.heap(key, operator, asked, upper, oldest)
        assert waiting.held(heap, oldest) == waiting.expected(key, operator, asked, upper, oldest)
    waiting.check(max(0, len(steps) - 1 - window))


@given(STEPS)
def test_what_a_query_returned_stays_through_later_insertions(
    steps: list[tuple[int, int, int, int, int, bool, int]],
) -> None:
    waiting, returned = Waiting(), []
    for event, (key, value, asked, upper, age, _, operator) in enumerate(steps):
        waiting.insert(key, value, max(0, event - age), event, 0)
        if waiting.nodes.product.size < 50_000:
            waiting.nodes = grown(waiting.nodes, rows=200_000)
        heap = waiting.heap(key, operator, asked, upper, 0)
        returned.append((heap, waiting.expected(key, operator, asked, upper, 0)))
    assert all(waiting.held(heap, 0) == expected for heap, expected in returned)


@given(STEPS)
def test_a_jump_of_the_window_forgets_everything(
    steps: list[tuple[int, int, int, int, int, bool, int]],
) -> None:
    waiting = Waiting()
    for event, (key, value, *_) in enumerate(steps):
        waiting.insert(key, value, event, event, 0)
    after = len(steps)
    for key in range(3):
        for operator in OPERATORS:
            assert waiting.held(waiting.heap(key, operator, 0, 3, after), after) == []
    waiting.insert(1, 0, after, after, after)
    waiting.check(after)
    assert waiting.held(waiting.heap(1, LESS, 1, 0, after), after) == [after]
    for event in range(after + 1, after + 1 + after // 2):
        waiting.insert(1, 0, event, event, after)
    assert waiting.index.sizes[USED] - waiting.index.sizes[FREE_ROWS] <= 1


def adverse_values(length: int) -> dict[str, list[int]]:
    """Orders that would hurt if a tree were not balanced."""
    random = np.random.default_rng(7)
    return {
        "increasing": list(range(length)),
        "decreasing": list(range(length, 0, -1)),
        "equal": [5] * length,
        "from both ends": [event if event % 2 else -event for event in range(length)],
        "to the middle": [length - event if event % 2 else event - length for event in range(length)],
        "random": random.integers(-(1 << 62), 1 << 62, length).tolist(),
        "with ties": random.integers(0, 20, length).tolist(),
    }


ORDERS = list(adverse_values(2))


def height_of(leaves: int) -> float:
    """The height of a weight-balanced tree, at most: a child has three quarters of the leaves at most."""
    return math.log(max(leaves, 1)) / math.log(4 / 3)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("falling", [False, True])
def test_nodes_of_an_insertion_and_of_a_query_are_bounded(order: str, falling: bool) -> None:
    """Whole streams as well: rotations are constantly many for each update, together."""
    values, window, total, asked = adverse_values(700)[order], 120, 0, 0
    waiting = Waiting(100_000)
    for event, value in enumerate(values):
        oldest = max(0, event - window)
        before = int(waiting.nodes.size[0])
        waiting.heap(0, ASKED[event % len(ASKED)], value, value + 50, oldest)
        height, spines = height_of(min(event, window) + 1), 2 * math.log2(event + 2)
        assert waiting.nodes.size[0] - before <= 2 * height * spines
        asked += int(waiting.nodes.size[0]) - before
        start = oldest + (-event) % (event - oldest + 1) if falling else event
        made = waiting.insert(0, value, start, event, oldest)
        assert made <= height * (1 + spines)
        total += made
    waiting.check(len(values) - 1 - window)
    logarithm = math.log2(window)
    assert total <= 2.5 * logarithm * len(values)
    assert asked <= logarithm**2 * len(values) / 2


@pytest.mark.parametrize("order", ORDERS)
def test_rows_follow_the_window(order: str) -> None:
    waiting, window = Waiting(), 50
    for event, value in enumerate(adverse_values(1_000)[order]):
        waiting.insert(event % 3, value, event, event, max(0, event - window))
    assert waiting.index.sizes[USED] <= 2 * (window + 3)
    assert waiting.index.rows.shape[0] <= 8 * (window + 3)
    assert waiting.index.trees.used[0] <= 8


def test_trees_of_keys_that_never_come_back_are_freed() -> None:
    waiting, window = Waiting(), 20
    for event in range(600):
        waiting.insert(event, event % 7, event, event, max(0, event - window))
    assert waiting.index.rows.shape[0] <= 4 * (window + 3)
    assert waiting.index.trees.words.shape[0] <= 16 * window
    waiting.check(600 - window)


@pytest.mark.parametrize("asked", [LEAST, LEAST + 1, 0, MOST - 1, MOST])
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_least_and_the_largest_value_compare_as_others(operator: int, asked: int) -> None:
    waiting = Waiting()
    for event, value in enumerate([0, MOST, LEAST, 1, MOST - 1, LEAST + 1, LEAST, MOST]):
        waiting.insert(0, value, event, event, 0)
    for upper in (LEAST, 0, MOST):
        held = waiting.held(waiting.heap(0, operator, asked, upper, 0), 0)
        assert held == waiting.expected(0, operator, asked, upper, 0)


def test_a_query_costs_about_a_node_for_each_subtree_where_starts_only_grow() -> None:
    waiting, asked, length = Waiting(1_000_000), 0, 2_000
    for event, value in enumerate(adverse_values(length)["random"]):
        waiting.insert(0, value, event, event, 0)
        before = int(waiting.nodes.size[0])
        waiting.heap(0, LESS, value, 0, 0)
        asked += int(waiting.nodes.size[0]) - before
    assert asked <= length * math.log2(length) / 2


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_key_that_never_came_has_nothing(operator: int) -> None:
    waiting = Waiting()
    waiting.insert(1, 0, 0, 0, 0)
    assert waiting.heap(2, operator, 0, 0, 0) == NONE


def test_a_range_from_more_to_less_is_empty_and_the_whole_one_is_free_of_charge() -> None:
    waiting = Waiting(1_000)
    for event in range(100):
        waiting.insert(0, (37 * event) % 100, event, event, 0)
    assert waiting.heap(0, BETWEEN, 60, 40, 0) == NONE
    before = int(waiting.nodes.size[0])
    whole = waiting.heap(0, BETWEEN, LEAST, MOST, 0)
    assert waiting.nodes.size[0] == before
    assert waiting.held(whole, 0) == list(range(100))
