"""Conversions between NumPy numbers and Arrow arrays without a copy.

`pyarrow.array`, `to_numpy` and tables without rows ask pandas whether it knows their values, and so import it
where it is installed: 0.2 s. A first query uses these functions instead.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def array_of(numbers: NDArray[Any]) -> pa.Array:
    """The numbers as an array of Arrow, in place; truth values are copied, as Arrow has eight in a byte.

    >>> array_of(np.array([1, 2])).to_pylist(), array_of(np.array([True, False])).to_pylist()
    ([1, 2], [True, False])
    """
    dtype = numbers.dtype
    kind = _kinds.get(dtype)
    if kind is None:
        kind = _kinds[dtype] = pa.from_numpy_dtype(dtype)
    is_bits = dtype.kind == "b"
    values = np.packbits(numbers, bitorder="little") if is_bits else np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(kind, numbers.size, [None, pa.py_buffer(values)])


_kinds: Final[dict[np.dtype[Any], pa.DataType]] = {}
"""The Arrow types of NumPy types."""


def numbers_as(numbers: array[int] | array[float], kind: pa.DataType) -> pa.Array:
    """Numbers of Python as an array of Arrow, of a type that stores them so.

    >>> numbers_as(array("q", [1, 2]), pa.int64()).to_pylist()
    [1, 2]
    """
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


def texts_of(texts: Sequence[str], kind: pa.DataType) -> pa.Array:
    """Texts as an array of Arrow, of the type of strings or large ones.

    >>> texts_of(["A", "BC"], pa.string()).to_pylist()
    ['A', 'BC']
    """
    items = [text.encode() for text in texts]
    wide = pa.types.is_large_string(kind)
    ends = array("q" if wide else "i", accumulate(map(len, items), initial=0))
    return pa.Array.from_buffers(kind, len(items), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(items))])


def numbers_in(array: pa.Array) -> NDArray[Any]:
    """The numbers of an array of Arrow without NULLs, read in place.

    >>> numbers_in(array_of(np.array([1, 2])))
    array([1, 2])
    """
    numbers: NDArray[Any] = np.from_dlpack(array)
    return numbers


def as_key(values: pa.Array | pa.ChunkedArray) -> Any:
    """The values with the same bits for equal ones: -0.0 becomes 0.0, and every NaN the same NaN.

    >>> as_key(pa.array([-0.0, 0.5])).to_pylist()
    [0.0, 0.5]
    """
    if not pa.types.is_floating(values.type):
        return values
    nan = pa.scalar(float("nan"), values.type)
    return pc.if_else(pc.is_nan(values), nan, pc.add(values, pa.scalar(0.0, values.type)))


def known_in(array: pa.Array) -> NDArray[np.bool_]:
    """A mask of the non-NULL values.

    >>> known_in(pa.array([1, None])).tolist()
    [True, False]
    """
    return numbers_in(pc.is_valid(array).cast(pa.uint8())).view(np.bool_)


def without_nulls(array: pa.Array) -> pa.Array:
    """The numbers, 0 in place of NULL.

    >>> without_nulls(pa.array([1, None])).to_pylist()
    [1, 0]
    """
    if not array.null_count:
        return array
    (zero,) = array_of(np.zeros(1, np.int64)).cast(array.type)
    return pc.fill_null(array, zero)


def empty_table(schema: pa.Schema) -> pa.Table:
    """A table without rows."""
    return pa.Table.from_batches([], schema)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array, which is not copied if it has one chunk."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks() if column.num_chunks else pa.nulls(0, column.type)


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """The rows of a table in one batch."""
    return pa.RecordBatch.from_arrays(list(map(one_array, table.columns)), schema=table.schema)
