"""Checks of the arrays of a snapshot. Each raises ValueError."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
"""The arrays of a snapshot by name."""


def need(holds: Any, what: str) -> None:
    """Raises ValueError unless all of `holds` is true; `what` states the condition."""
    if not np.all(holds):
        raise ValueError(f"invalid snapshot: expected that {what}")


def taken(arrays: Arrays, name: str, kind: Any, *shape: int | None) -> NDArray[Any]:
    """An array of this type and shape; None in the shape is any length."""
    array = arrays[name]
    fits = len(shape) == array.ndim and all(
        wanted in (None, there) for wanted, there in zip(shape, array.shape, strict=True)
    )
    if array.dtype != kind or not fits:
        raise ValueError(f"invalid snapshot: {name} is {array.dtype}{list(array.shape)}")
    return array


def within(numbers: NDArray[Any], low: int, high: int, what: str) -> None:
    """Checks that low <= number < high."""
    if numbers.size and not (low <= int(numbers.min()) and int(numbers.max()) < high):
        raise ValueError(f"invalid snapshot: {what} are not between {low} and {high}")


def counts(arrays: Arrays, name: str, length: int | None, total: int, *, least: int) -> NDArray[Any]:
    """Checks the numbers of items in lists: `total` in all, and at least `least` in each list."""
    numbers = taken(arrays, name, np.int32, length)
    need(numbers >= least, f"all {name} are at least {least}")
    need(int(numbers.sum(dtype=np.int64)) == total, f"{name} are {total} in all")
    return numbers
