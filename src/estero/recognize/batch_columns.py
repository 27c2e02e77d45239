"""Columns of classified batches as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import numbers_in


def side_by_side(batch: pa.RecordBatch, names: Sequence[str]) -> NDArray[np.uint64]:
    """The bits of some columns, uint64[events, columns]."""
    columns = [numbers_of(batch, name).view(np.uint64) for name in names]
    if len(columns) == 1:
        return columns[0].reshape(-1, 1)
    bits = np.empty((columns[0].size, len(columns)), np.uint64)
    for place, column in enumerate(columns):
        bits[:, place] = column
    return bits


def numbers_of(batch: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    """A column as an array, without a copy of Arrow's memory."""
    return numbers_in(batch.column(name))
