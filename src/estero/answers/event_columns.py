"""Columns of kept events, from which values are taken by row, with the way to take them decided only once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import array_of, numbers_in
from estero.classify.column_names import POSITION, TIME
from estero.classify.vectors.taking import FEW_ROWS, taken, taker_of
from estero.events.tables.shown_types import plain

_NUMBERS = frozenset({POSITION, TIME})
"""Columns of integers without NULL."""

_INTEGER = pa.int64()

Take = Callable[[NDArray[np.int64]], pa.Array]


class EventColumns:
    """The columns of some events in one batch."""

    def __init__(self, events: pa.RecordBatch) -> None:
        self.events = events
        self._takes: dict[str, Take] = {}
        self._numbers: dict[str, NDArray[np.int64]] = {}

    def taken(self, names: Sequence[str], rows: NDArray[np.int64]) -> list[pa.Array]:
        """The columns of the events in these rows, plain; few rows take one call, as calls dominate."""
        if not names:
            return []
        if rows.size <= FEW_ROWS:
            if _NUMBERS.issuperset(names):
                return [array_of(self._numbers_of(name)[rows]) for name in names]
            return list(map(plain, taken(self.events.select(names), rows).columns))
        return [self.column(name, rows) for name in names]

    def numbered(self, names: Sequence[str], sequence: NDArray[np.int64], first: int) -> list[pa.Array]:
        """The columns of the events with these sequence numbers; that of the first one here is `first`.

        Of positions without gaps they differ by a constant, which is often 0: then nothing is copied.
        """
        if tuple(names) == (POSITION,) and self.events.num_rows:
            positions = self._numbers_of(POSITION)
            begin = int(positions[0])
            if int(positions[-1]) - begin == positions.size - 1:
                return [array_of(sequence + (begin - first) if begin != first else sequence)]
        return self.taken(names, sequence - first if first else sequence)

    def _numbers_of(self, name: str) -> NDArray[np.int64]:
        """A column of integers without NULL, read in place."""
        numbers = self._numbers.get(name)
        if numbers is None:
            numbers = self._numbers[name] = numbers_in(self.events.column(name))
        return numbers

    def integers(self, name: str) -> NDArray[np.int64] | None:
        """A column of 64-bit integers without NULL, read in place; None for any other."""
        column = self.events.column(name)
        return self._numbers_of(name) if column.type == _INTEGER and not column.null_count else None

    def column(self, name: str, rows: NDArray[np.int64]) -> pa.Array:
        """A column of the events in these rows, plain."""
        take = self._takes.get(name)
        if take is None:
            take = self._takes[name] = _take_of(name, self.events.column(name))
        return take(rows)


def _take_of(name: str, column: pa.Array) -> Take:
    """A function that takes rows of a column; positions that ascend without gaps are computed instead."""
    if name == POSITION and len(column):
        positions = numbers_in(column)
        first = int(positions[0])
        if int(positions[-1]) - first == positions.size - 1:
            return lambda rows: array_of(rows + first if first else rows)
    if isinstance(column, pa.DictionaryArray) and not column.null_count:
        indices, take_text = numbers_in(column.indices), taker_of(column.dictionary)
        return lambda rows: plain(take_text(indices.take(rows, mode="clip")))  # known rows: fewest checks
    take = taker_of(column)
    return lambda rows: plain(take(rows))
