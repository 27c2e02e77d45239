"""Picks rows of a batch, views of strings included, which Arrow's `take` refuses."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import array_of, known_in

_VIEW = np.dtype([("one", "<u8"), ("other", "<u8")])
"""The length of a string, and its letters or where they are."""


def taken(batch: pa.RecordBatch, rows: NDArray[np.int64]) -> pa.RecordBatch:
    """The rows of these numbers."""
    places = array_of(rows)
    columns = [
        _of_views(column, rows) if pa.types.is_string_view(column.type) else column.take(places)
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def views_in(array: pa.Array) -> NDArray[np.void]:
    """The views of an array of strings, read in place."""
    data = array.buffers()[1]
    if data is None:
        return np.empty(0, _VIEW)
    return np.frombuffer(data, _VIEW, array.offset + len(array))[array.offset :]


def _of_views(array: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
    """The strings of these rows, whose letters stay where they are."""
    valid = None
    if array.null_count:
        valid = pa.py_buffer(np.packbits(known_in(array)[rows], bitorder="little"))
    views = pa.py_buffer(views_in(array)[rows])
    return pa.Array.from_buffers(array.type, len(rows), [valid, views, *array.buffers()[2:]])
