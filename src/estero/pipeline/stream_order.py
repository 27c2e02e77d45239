"""Whether events come in stream order, told batch by batch in one pass over the columns concerned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from estero.errors import DataError


class OrderCheck:
    """Follows a stream: `is_sorted` stays true while each event is at or after the one before.

    `columns` are the time column (with `timed`) and the columns that break ties. A NULL time is a
    `DataError` that names the row; a NULL among the others is never out of order.
    """

    def __init__(self, columns: Sequence[str], *, timed: bool) -> None:
        self._columns = tuple(columns)
        self._timed = timed
        self._last: list[Any] | None = None
        self.rows = 0
        self.is_sorted = True
        self.first_unsorted: int | None = None

    def follow(self, batch: pa.RecordBatch) -> None:
        """Takes the next batch into account."""
        if batch.num_rows == 0 or not self._columns:
            self.rows += batch.num_rows
            return
        arrays = [_plain(batch.column(name)) for name in self._columns]
        if self._timed and arrays[0].null_count:
            row = pc.index(pc.is_null(arrays[0]), True).as_py()
            raise null_time(self._columns[0], self.rows + row + 1)
        if self._last is not None:
            heads = [pa.array([last], array.type) for last, array in zip(self._last, arrays, strict=True)]
            arrays = [pa.concat_arrays([head, array]) for head, array in zip(heads, arrays, strict=True)]
        offset = self.rows - (self._last is not None)
        backward = _steps_back([(array.slice(0, len(array) - 1), array.slice(1)) for array in arrays])
        if self.is_sorted and pc.any(backward).as_py():
            self.is_sorted = False
            self.first_unsorted = offset + pc.index(pc.fill_null(backward, False), True).as_py() + 2
        self._last = [array[len(array) - 1].as_py() for array in arrays]
        self.rows += batch.num_rows


def null_time(column: str, row: int, file: str | None = None) -> DataError:
    """The error for an event without a time; `row` counts from 1."""
    return DataError(
        "the time is NULL",
        file=file,
        row=row,
        column=column,
        hint="every event needs a time: drop such rows first, or name another time column",
    )


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def _steps_back(pairs: Sequence[tuple[pa.Array, pa.Array]]) -> pa.Array:
    """Where the second of each pair is before the first, in the order of the tuples of all pairs."""
    (before, after), *rest = pairs
    less = pc.less(after, before)
    return pc.or_kleene(less, pc.and_kleene(pc.equal(after, before), _steps_back(rest))) if rest else less
