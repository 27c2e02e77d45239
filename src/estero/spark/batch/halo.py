"""The events of a task's halo, separated from its own (tasks.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from estero.classify.arrays import array_of, numbers_in
from estero.classify.column_names import bits_name

MARKED = bits_name(0)
"""The word of bits that marks an event of a halo; an integer of 63 bits."""


class Piece(NamedTuple):
    """Consecutive rows of a task that are all its own, or all of its halo."""

    own: bool
    rows: pa.RecordBatch


def after_halo(batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
    """The batches of a task; marked events come first, as the halo.

    Raises RuntimeError if they do not: rows have been moved since.
    """
    begun = False
    for batch in batches:
        bits = numbers_in(batch.column(MARKED))
        size = 0 if begun else int(np.count_nonzero(bits < 0))
        if (bits[size:] < 0).any():
            raise RuntimeError("events of a halo come after those of the range")
        if size:
            place = batch.schema.get_field_index(MARKED)
            halo = batch.slice(0, size)
            yield Piece(False, halo.set_column(place, MARKED, array_of(-1 - bits[:size])))
        if size < batch.num_rows:
            begun = True
            yield Piece(True, batch.slice(size))
