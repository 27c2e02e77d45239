"""Columns as integers in the same order, so that rows can be sorted without comparing values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.engine.row_patterns.row_order import counts_of

_SIGN: Final = np.uint64(1 << 63)
_HIGHEST: Final = (1 << 64) - 1


def has_ranks(kind: pa.DataType) -> bool:
    """Whether values of a type can be sorted as DuckDB does: numbers, times and texts can."""
    types = pa.types
    return bool(
        _is_integer(kind) or types.is_float32(kind) or types.is_float64(kind) or types.is_string(kind)
    )


def has_codes(kind: pa.DataType) -> bool:
    """Whether values of a type that are equal to DuckDB are equal to Arrow; not so for floats."""
    return _is_integer(kind) or bool(pa.types.is_string(kind))


def _is_integer(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_date32(kind)
        or types.is_timestamp(kind)
        or types.is_time(kind)
        or types.is_boolean(kind)
    )


def ranks(column: pa.Array, *, descending: bool = False, nulls_first: bool = False) -> NDArray[np.uint64]:
    """An integer for each value, in the order of the values; reversed if `descending`."""
    valid = None if not column.null_count else np.asarray(column.is_valid())
    if pa.types.is_string(column.type):
        encoded = column.dictionary_encode()
        numbers: NDArray[Any] = _order_of(encoded.dictionary)[_integers(encoded.indices, valid)]
        numbers = numbers.astype(np.uint64)
    elif pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        numbers = float_ranks(column if valid is None else pc.fill_null(column, 0.0)).view(np.uint64) ^ _SIGN
    else:
        numbers = _integers(column, valid)
        if numbers.size:
            known = numbers if valid is None else numbers[valid]
            lowest = known.min() if known.size else numbers.dtype.type(0)
            numbers = numbers.astype(np.uint64) - np.uint64(int(lowest) & (1 << 64) - 1)
        numbers = numbers.astype(np.uint64)
    if valid is not None:
        numbers = np.where(valid, numbers, np.uint64(0))
    result: NDArray[np.uint64] = numbers
    highest = int(result.max(initial=0))
    if descending:
        result = np.uint64(highest) - result
    if valid is None:
        return result
    if highest == _HIGHEST:  # there is no integer left for NULL
        places = np.unique(result, return_inverse=True)[1]
        return ranks(pa.array(places, mask=~valid), nulls_first=nulls_first)
    null = np.uint64(0 if nulls_first else highest + 1)
    return np.where(valid, result + np.uint64(nulls_first), null)


def _integers(column: pa.Array, valid: NDArray[np.bool_] | None) -> NDArray[Any]:
    """The integers that values are stored as, 0 for NULL."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif not pa.types.is_integer(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if valid is not None:
        column = pc.fill_null(column, 0)
    numbers: NDArray[Any] = np.asarray(column)
    return numbers


def float_ranks(column: pa.Array) -> NDArray[np.int64]:
    """Bits of float64 without NULL, turned so that they are in order; all NaN are one, and the largest."""
    values = np.asarray(column) + 0.0  # -0.0 is 0.0
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    turned: NDArray[np.int64] = np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    return turned


def _order_of(values: pa.Array) -> NDArray[np.int64]:
    """The place of each distinct value among them; at least one, for NULL."""
    places = np.zeros(max(len(values), 1), np.int64)
    places[np.asarray(pc.sort_indices(values))] = np.arange(len(values))
    return places


class Codes(NamedTuple):
    """Partitions as integers in their order: `code` uint32[rows]; there are `size` of them at most."""

    code: NDArray[np.uint32]
    size: int

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of rows of each partition; 0 for codes that do not occur."""
        return counts_of(self.code, self.size)


def codes_of(columns: Sequence[pa.Array]) -> Codes:
    """The partitions of rows by these columns; NULL comes after all other values."""
    first, *others = [_codes(column) for column in columns]
    for other in others:
        both = first.code.astype(np.uint64) * np.uint64(other.size) + other.code  # below 2^64
        first = _fewer(both, first.size * other.size)
    return first


def _codes(column: pa.Array) -> Codes:
    rows = len(column)
    valid = None if not column.null_count else np.asarray(column.is_valid())
    if _is_integer(column.type):
        numbers = _integers(column, valid)
        lowest, highest = (int(numbers.min()), int(numbers.max())) if rows else (0, 0)
        size = highest - lowest + 1
        if size <= max(rows, _FEW_CODES):
            code = np.empty(rows, np.uint32)
            for start in range(0, rows, _PIECE):
                piece = numbers[start : start + _PIECE].astype(np.uint64)
                code[start : start + _PIECE] = piece - np.uint64(lowest & (1 << 64) - 1)
            return _with_null(code, size, valid)
    encoded = column.dictionary_encode()
    code = _order_of(encoded.dictionary).astype(np.uint32)[_integers(encoded.indices, valid)]
    return _with_null(code, len(encoded.dictionary), valid)


def _with_null(code: NDArray[np.uint32], size: int, valid: NDArray[np.bool_] | None) -> Codes:
    return Codes(code, size) if valid is None else Codes(np.where(valid, code, np.uint32(size)), size + 1)


def _fewer(numbers: NDArray[np.uint64], size: int) -> Codes:
    """The same partitions with codes of 32 bits, and new ones without gaps if most of them do not occur."""
    if size <= max(numbers.size, _FEW_CODES):
        return Codes(numbers.astype(np.uint32), size)
    encoded = pa.array(numbers).dictionary_encode()
    code = _order_of(encoded.dictionary).astype(np.uint32)[np.asarray(encoded.indices)]
    return Codes(code, len(encoded.dictionary))


_FEW_CODES: Final = 1 << 16
_PIECE: Final = 1 << 18
