"""Named tuples in kernels: what is read of them and written to them is what Python reads and writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from estero.engine.jit import inlined, kernel
from estero.engine.patience import patience

COMPILED = not patience.is_left
"""Unless all tests run without compiled kernels."""


class Inner(NamedTuple):
    words: NDArray[np.uint64]
    seen: NDArray[np.bool_]


class Outer(NamedTuple):
    step: int
    small: NDArray[np.int8]
    inner: Inner
    backwards: bool
    table: NDArray[np.int32]
    cube: NDArray[np.float64]


def outer(*, backwards: bool = False) -> Outer:
    return Outer(
        -3,
        np.arange(4, dtype=np.int8),
        Inner(np.full(2, 1 << 63, np.uint64), np.zeros(2, np.bool_)),
        backwards,
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.arange(24.0).reshape(2, 3, 4),
    )


@kernel
def lengths(pool):  # type: ignore[no-untyped-def]
    table = pool.table.shape
    return pool.cube.size, pool.cube.shape[1], table[0], table[1], pool.inner.words.size


@kernel
def change(pool):  # type: ignore[no-untyped-def]
    step, small, inner, backwards, table, cube = pool
    row = small[1]
    inner.seen[np.uint64(1)] = backwards
    inner.words[row] += np.uint64(step + 8)
    table[row, np.int32(2)] = step if pool.inner.seen[1] else 7
    cube[row, 2, small[3]] += 0.5
    small[0] = step


@inlined
def item(table, row):  # type: ignore[no-untyped-def]
    return table[row, row]


@kernel
def first_items(pool, row):  # type: ignore[no-untyped-def]
    return item(pool.table, pool.small[0]) + item(pool.table, row)


def test_lengths_are_those_of_the_arrays() -> None:
    assert lengths(outer()) == (24, 3, 2, 3, 2)


@pytest.mark.parametrize("backwards", [True, False])
def test_every_kind_of_field_is_read_and_written(backwards: bool) -> None:
    pool = outer(backwards=backwards)
    change(pool)
    assert pool.inner.seen.tolist() == [False, backwards]
    assert pool.inner.words.tolist() == [1 << 63, (1 << 63) + 5]
    assert pool.table.tolist() == [[0, 1, 2], [3, 4, -3 if backwards else 7]]
    assert pool.cube[1, 2, 3] == 23.5
    assert pool.small.tolist() == [-3, 1, 2, 3]


def test_a_step_is_compiled_once_for_numbers_of_all_widths() -> None:
    assert first_items(outer(), 1) == 4
    if COMPILED:
        assert len(item.compiled.part.signatures) <= 1  # none where its caller was on disk


def test_memory_that_is_not_to_be_written_to_is_no_other_pool() -> None:
    pool = outer()
    pool.table.flags.writeable = False
    assert lengths(pool) == lengths(outer())
    if COMPILED:
        assert len(lengths.compiled.signatures) == 1


def test_what_is_not_side_by_side_is_no_column() -> None:
    pool = outer()._replace(table=np.arange(12, dtype=np.int32).reshape(2, 6)[:, ::2])
    if COMPILED:
        with pytest.raises(TypeError, match="a pool has no ndarray"):
            lengths(pool)
