"""Picks rows of columns, including views of strings, which Arrow's `take` refuses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.classify.arrays import array_of, known_in, numbers_in
from estero.classify.vectors.text_columns import ends_and_letters

_WIDTHS = (8, 16, 32, 64)
_VIEW = np.dtype([("one", "<u8"), ("other", "<u8")])
"""The length of a string, and its letters or their location."""
FEW_ROWS = 256
"""The most rows that are taken from all columns in one call, because calls dominate the cost then."""
_SHORT = 16
"""The average length of a text up to which a kernel copies faster than Arrow.

Measured per row, in ns: texts of one letter 3.7 (Arrow 9.4), of six 3.5 (5.6), of 35 15.1 (14.1).
"""


def taken(batch: pa.RecordBatch, rows: NDArray[np.int64]) -> pa.RecordBatch:
    """The rows of these numbers; of few events some that follow one another are a view."""
    if batch.num_rows <= FEW_ROWS and _follow_one_another(rows):
        return batch.slice(int(rows[0]), rows.size)
    if rows.size <= FEW_ROWS and not any(map(pa.types.is_string_view, batch.schema.types)):
        return pc.take(batch, array_of(rows), boundscheck=False)
    columns = [column_taken(column, rows) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _follow_one_another(rows: NDArray[np.int64]) -> bool:
    """Whether each of some rows is the one behind the last."""
    if not rows.size or rows[-1] - rows[0] + 1 != rows.size:
        return False
    numbers: list[int] = rows.tolist()
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def column_taken(array: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
    """The values of the rows with these numbers, which are not checked."""
    return taker_of(array)(rows)


def taker_of(array: pa.Array) -> Callable[[NDArray[np.int64]], pa.Array]:
    """`column_taken` for repeated use with one array."""
    if pa.types.is_string_view(array.type):
        return lambda rows: _of_views(array, rows)
    if pa.types.is_string(array.type) and not array.null_count:
        ends, letters = ends_and_letters(array)
        if int(ends[-1]) - int(ends[0]) <= _SHORT * len(array):
            return lambda rows: _of_texts(array, ends, letters, rows)
    if isinstance(array, pa.DictionaryArray):
        indices = taker_of(array.indices)
        return lambda rows: _with_dictionary(indices(rows), array)
    if pa.types.is_primitive(array.type) and not array.null_count and len(array):
        width, values = array.type.bit_width, array.buffers()[1]
        if width in _WIDTHS:
            numbers = np.frombuffer(values, f"i{width // 8}", array.offset + len(array))[array.offset :]
            return lambda rows: _of_numbers(array.type, numbers, rows)
    return lambda rows: pc.take(array, array_of(rows), boundscheck=False)


def dictionary_decoded(array: pa.DictionaryArray) -> pa.Array:
    """The values that indices into a dictionary stand for."""
    if array.null_count or not pa.types.is_string(array.dictionary.type):
        return array.dictionary_decode()
    return column_taken(array.dictionary, numbers_in(array.indices))


def views_in(array: pa.Array) -> NDArray[np.void]:
    """The views of an array of strings, read in place."""
    data = array.buffers()[1]
    if data is None:
        return np.empty(0, _VIEW)
    return np.frombuffer(data, _VIEW, array.offset + len(array))[array.offset :]


def _of_numbers(kind: pa.DataType, numbers: NDArray[np.signedinteger], rows: NDArray[np.int64]) -> pa.Array:
    """The numbers of these rows, in memory of NumPy.

    The memory that one thread allocates is freed by the one that reads answers, and Arrow's allocator then
    returns it to the system. Measured with a dense stream that two threads list: 219 ns of CPU per event, 254
    by Arrow's take; with one thread, 179 and 175.
    """
    taken = numbers.take(rows, mode="clip")  # the rows are known, and this mode checks least
    return pa.Array.from_buffers(kind, rows.size, [None, pa.py_buffer(taken)], null_count=0)


def _with_dictionary(indices: pa.Array, array: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary at known indices."""
    return pa.DictionaryArray.from_arrays(indices, array.dictionary, ordered=array.type.ordered, safe=False)


def _of_texts(
    array: pa.Array, ends: NDArray[np.int32], letters: NDArray[np.uint8], rows: NDArray[np.int64]
) -> pa.Array:
    """The texts of these rows; none of them may be NULL."""
    from estero.engine.picked_texts import picked_texts  # here, for schemas need no kernels

    picked = picked_texts(ends, letters, np.ascontiguousarray(rows, np.int64))
    if picked is None:
        return pc.take(array, array_of(rows), boundscheck=False)
    return pa.Array.from_buffers(array.type, len(rows), [None, *map(pa.py_buffer, picked)])


def _of_views(array: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
    """The strings of these rows, whose letters are not copied."""
    valid = None
    if array.null_count:
        valid = pa.py_buffer(np.packbits(known_in(array)[rows], bitorder="little"))
    views = pa.py_buffer(views_in(array)[rows])
    return pa.Array.from_buffers(array.type, len(rows), [valid, views, *array.buffers()[2:]])
