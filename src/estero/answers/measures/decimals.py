"""Exact sums of decimals: their 128 bits are added in four parts, so that no addition overflows."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.measures.marked import Marked
from estero.classify.columns import MOST_DIGITS
from estero.errors import DataError

_PARTS: Final = 4
_BITS: Final = np.int64(32)
_LOW: Final = np.int64(0xFFFFFFFF)
_HALF: Final = 1 << 64


def sums_of_decimals(values: pa.Array, marked: Marked) -> pa.Array:
    """The sum of each instance, of 38 digits with the scale of the values; NULL for one without events.

    `values` are decimals of 128 bits, and the marked ones are not NULL. Raises `DataError` for a sum that has
    more digits.
    """
    wide = pa.decimal128(MOST_DIGITS, values.type.scale)
    filled = marked.sizes > 0
    begins = marked.offsets[:-1][filled]
    parts = _parts(values.cast(wide))[marked.rows]
    sums = np.add.reduceat(parts, begins, axis=0) if len(begins) else parts[:0]
    for place in range(_PARTS - 1):  # bits beyond the lowest 32 are carried
        sums[:, place + 1] += sums[:, place] >> _BITS
        sums[:, place] &= _LOW
    _check_digits(sums)
    digits = np.zeros((len(filled), _PARTS), np.uint32)
    digits[filled] = sums.astype(np.uint32)
    valid = None if filled.all() else pa.py_buffer(np.packbits(filled, bitorder="little").tobytes())
    return pa.Array.from_buffers(wide, len(filled), [valid, pa.py_buffer(digits.tobytes())])


def _parts(values: pa.Array) -> NDArray[np.int64]:
    """The 128 bits of values in four parts, the lowest first and the highest with the sign; int64[n, 4]."""
    (_, data) = values.buffers()
    if data is None:
        return np.empty((0, _PARTS), np.int64)
    first, last = _PARTS * values.offset, _PARTS * (values.offset + len(values))
    words = np.frombuffer(data, np.uint32)[first:last].reshape(-1, _PARTS)
    parts = words.astype(np.int64)
    parts[:, _PARTS - 1] = words[:, _PARTS - 1].view(np.int32)
    return parts


def _check_digits(sums: NDArray[np.int64]) -> None:
    """Raises `DataError` if a sum has more than 38 digits."""
    high = (sums[:, 3] << _BITS) + sums[:, 2]
    beyond = (sums[:, 3] >= 1 << 31) | (sums[:, 3] < -(1 << 31))
    near = np.flatnonzero(beyond | (np.abs(high) >= 10**MOST_DIGITS // _HALF))
    for row in near.tolist():
        total = sum(int(part) << (32 * place) for place, part in enumerate(sums[row]))
        if abs(total) >= 10**MOST_DIGITS:
            raise DataError(f"a sum of decimals has more than {MOST_DIGITS} digits")
