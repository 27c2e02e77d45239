"""Values as integers of 64 bits that compare as the values do, for registers and joins."""

from __future__ import annotations

import math
import struct

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import known_in, numbers_in, without_nulls
from estero.engine.int64 import GREATEST

_LARGEST = np.int64(GREATEST)


def as_integer(value: float | None) -> int:
    """A value as a 64-bit integer in the same order; see `as_integers`.

    >>> as_integer(2**64 - 1), as_integer(-0.0), as_integer(None)
    (-1, 0, 0)
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return value - 2**64 if value > GREATEST else value
    if math.isnan(value):
        return GREATEST
    bits = int.from_bytes(struct.pack("<d", value + 0.0), "little", signed=True)
    return bits ^ GREATEST if bits < 0 else bits


def as_integers(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """A column of values as int64 and a mask of the non-NULL ones (any integer stands for the others).

    They compare as the values do: NaN is the largest float and equal to itself, 0.0 and -0.0 are equal.
    Hashes, unsigned from DuckDB, keep their bits. Values that need no change are read in place.

    >>> as_integers(pa.array([0.0, None, -0.0]))[1].tolist()
    [True, False, True]
    """
    known = known_in(column) if column.null_count else np.ones(len(column), np.bool_)
    values = without_nulls(column)
    if pa.types.is_floating(values.type):
        return _in_order(numbers_in(values)), known
    return numbers_in(values.view(pa.int64())), known


def _in_order(floats: NDArray[np.float64]) -> NDArray[np.int64]:
    """Floats as integers in the same order: the bits, inverted for negative ones but for the sign."""
    bits = (floats + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    integers = np.where(bits < 0, bits ^ _LARGEST, bits)
    integers[np.isnan(floats)] = _LARGEST
    return integers
