"""What kernels are given: blocks of addresses and lengths, the right ones or an error."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from estero.engine.disjoint import _keep
from estero.engine.kernels import FLAG, INT, Column, Cube, Grid, column, cursor_type, kinds_of, pool
from estero.engine.runs.reading import within_bound
from estero.engine.store.arena import Arena, mark_live
from estero.engine.store.lists import follow
from estero.engine.store.schema import new


@pool
class Inner(NamedTuple):
    """A pool in a pool."""

    words: NDArray[np.uint64]
    seen: NDArray[np.bool_]


@pool
class Outer(NamedTuple):
    """All that a pool can have."""

    step: int
    small: NDArray[np.int8]
    inner: Inner
    backwards: bool
    table: Grid[np.int32]
    cube: Cube[np.float64]


def outer() -> Outer:
    inner = Inner(np.arange(4, dtype=np.uint64), np.zeros(3, np.bool_))
    return Outer(-7, np.zeros(2, np.int8), inner, True, np.zeros((5, 6), np.int32), np.zeros((1, 2, 3)))


def words_of(pool: Any, count: int) -> list[int]:
    """The first words of a pool's block."""
    return list((ctypes.c_int64 * count).from_address(address_of(pool)))


def address_of(pool: Any) -> int:
    return ctypes.addressof(pool._as_parameter_)


def test_kinds_are_those_of_the_annotations() -> None:
    assert kinds_of(Outer) == {
        "step": INT,
        "small": column(np.int8),
        "inner": Inner,
        "backwards": FLAG,
        "table": column(np.int32, 2),
        "cube": column(np.float64, 3),
    }
    assert [kind.words for kind in kinds_of(Outer).values() if isinstance(kind, Column)] == [2, 3, 4]


def test_a_block_has_numbers_addresses_and_lengths_in_order() -> None:
    given: Any = outer()
    inner = given.inner
    assert words_of(given, 12) == [
        -7,
        *(given.small.ctypes.data, 2),
        address_of(inner),
        1,
        *(given.table.ctypes.data, 5, 6),
        *(given.cube.ctypes.data, 1, 2, 3),
    ]
    assert words_of(inner, 4) == [inner.words.ctypes.data, 4, inner.seen.ctypes.data, 3]


def test_another_array_is_another_block() -> None:
    given: Any = outer()
    first = address_of(given)
    assert address_of(given) == first
    other: Any = given._replace(small=np.zeros(9, np.int8))
    assert words_of(other, 3)[1:] == [other.small.ctypes.data, 9]
    assert type(other) is Outer


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(2, np.int16), np.zeros((2, 2), np.int8), np.zeros(4, np.int8)[::2], np.zeros(2, np.bool_)],
    ids=["dtype", "dimensions", "strides", "bool"],
)
def test_an_array_of_another_kind_is_refused(wrong: NDArray[Any]) -> None:
    given: Any = outer()._replace(small=wrong)
    with pytest.raises(TypeError, match=r"an array .* where a kernel reads int8\[·\]"):
        given._as_parameter_  # noqa: B018


def test_arguments_of_another_kind_are_refused() -> None:
    numbers = np.zeros(3, np.int64)
    with pytest.raises(
        (TypeError, ctypes.ArgumentError), match=r"int32\[3\] where a kernel reads int64\[·\]"
    ):
        _keep(numbers, numbers.astype(np.int32), np.zeros((1, 3), np.int64), np.zeros((1, 3), np.int64), 1)
    with pytest.raises((TypeError, ctypes.ArgumentError)):
        mark_live(new(Arena, 4), np.zeros(1, np.int64), 0, np.zeros(4, np.int8))
    with pytest.raises((TypeError, ctypes.ArgumentError, ValueError)):  # too few
        follow(np.zeros(1, np.int32))


def test_an_array_that_is_not_to_be_written_is_read() -> None:
    roots = np.array([1], np.int32)
    roots.flags.writeable = False
    arena, live = new(Arena, 4), np.zeros(4, np.int8)
    arena.kind[:2], arena.left[:2], arena.size[0] = 7, -1, 2
    mark_live(arena, roots, 0, live)
    assert live.tolist() == [0, 1, 0, 0]


def test_cursors_with_the_same_places_are_of_one_class() -> None:
    assert cursor_type("at", "need") is cursor_type("at", "need")
    cursor = cursor_type("at", "need")(need=3)
    assert (cursor.at, cursor.need) == (0, 3)


def test_a_step_that_uses_more_than_its_bound_is_an_error_of_a_kernel_that_runs_as_python() -> None:
    within_bound(3, 3)
    with pytest.raises(AssertionError, match="used 4 places where its bound is 3"):
        within_bound(4, 3)
