"""Orders of rows by integer keys: as sorted() gives them, rows of equal keys as they were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero.engine.row_patterns.row_order import count_digits, distribute, distribute_all, lexicographic_order

NUMBERS = st.one_of(st.integers(0, 3), st.integers(0, 1 << 20), st.integers(0, (1 << 64) - 1))
ROWS = st.integers(1, 3).flatmap(lambda size: st.lists(st.tuples(*[NUMBERS] * size), min_size=1, max_size=30))


@given(ROWS, st.booleans())
def test_rows_are_ordered_as_sorted_does_it(rows: Sequence[tuple[int, ...]], are_ordered: bool) -> None:
    rows = sorted(rows) if are_ordered else rows
    order = lexicographic_order([np.array(key, np.uint64) for key in zip(*rows, strict=True)])
    wanted = sorted(range(len(rows)), key=lambda row: rows[row])
    assert (list(range(len(rows))) if order is None else order.tolist()) == wanted


def test_rows_in_order_are_left_where_they_are() -> None:
    assert lexicographic_order([]) is None
    assert lexicographic_order([np.array([0, 0, 1], np.uint64), np.array([1, 2, 0], np.uint64)]) is None
    assert lexicographic_order([np.zeros(0, np.uint64)]) is None


@pytest.mark.parametrize("keys", [1, 2])
def test_many_rows_are_ordered(keys: int) -> None:
    random = np.random.default_rng(3)
    drawn = [random.integers(0, 1 << 40, 200_000, dtype=np.uint64) >> np.uint64(34) for _ in range(keys)]
    order = lexicographic_order(drawn)
    assert order is not None
    assert (order == np.lexsort(drawn[::-1])).all()


def test_the_passes_as_functions_of_python() -> None:
    digits = np.array([2, 0, 1, 0], np.uint32)
    counts = np.zeros(3, np.int64)
    count_digits.interpret(digits, counts)
    assert counts.tolist() == [2, 1, 1]
    order = np.zeros(4, np.uint32)
    distribute_all.interpret(digits, np.array([0, 2, 3]), order)
    assert order.tolist() == [1, 3, 2, 0]
    distribute.interpret(digits, np.array([3, 2, 1, 0], np.uint32), np.array([0, 2, 3]), order)
    assert order.tolist() == [3, 1, 2, 0]
