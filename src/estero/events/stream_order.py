"""A check that events come in stream order, batch by batch in one pass over the columns concerned.

Values compare here as in all sorting: NULL is after all others, NaN before it and after all numbers, -0.0 is
0.0, and strings are in the order of their code points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estero.classify.arrays import array_of
from estero.classify.column_names import TIME
from estero.classify.vectors.batch_columns import stored
from estero.engine.int64 import LEAST
from estero.errors import DataError
from estero.language.tree.exact_names import given_name


class OrderCheck:
    """Follows a stream: `is_sorted` stays true while each event is at or after the one before.

    `columns` are the time column (with `timed`) and the columns that break ties. A NULL time is a
    `DataError` that names the row, and the `file` where there is one.
    """

    def __init__(self, columns: Sequence[str], *, timed: bool, file: str | None = None) -> None:
        self._columns = tuple(columns)
        self._timed = timed
        self._file = file
        self._last: list[pa.Array] | None = None
        self.rows: int = 0
        self.is_sorted: bool = True
        self.first_unsorted: int | None = None

    @property
    def last(self) -> list[pa.Array] | None:
        """The columns of the last event, arrays of one value; None before the first."""
        return self._last

    def follow(self, batch: pa.RecordBatch) -> None:
        """Takes the next batch into account."""
        if batch.num_rows == 0 or not self._columns:
            self.rows += batch.num_rows
            return
        arrays = [_plain(batch.column(name)) for name in self._columns]
        if self._timed and arrays[0].null_count:
            row = pc.index(pc.is_null(arrays[0]), True).as_py()
            raise null_time(self._columns[0], self.rows + row + 1, self._file)
        if len(arrays) == 1 and all(map(_is_of_integers, (*arrays, *(self._last or ())))):
            self._follow_integers(arrays[0])
            self.rows += batch.num_rows
            return
        offset = self.rows - (self._last is not None)
        if self._last is not None:
            arrays = [pa.concat_arrays([head, array]) for head, array in zip(self._last, arrays, strict=True)]
        backward = _steps_back([(array.slice(0, len(array) - 1), array.slice(1)) for array in arrays])
        if self.is_sorted and pc.any(backward).as_py():
            self.is_sorted = False
            self.first_unsorted = offset + pc.index(backward, True).as_py() + 2
        self._last = [array.take(pa.array([len(array) - 1])) for array in arrays]
        self.rows += batch.num_rows

    def _follow_integers(self, array: pa.Array) -> None:
        """`follow` for one column of integers or instants without NULL, which is not copied."""
        numbers = stored(array)
        if self.is_sorted:
            if self._last is not None and numbers[0] < stored(self._last[0])[0]:
                self.is_sorted, self.first_unsorted = False, self.rows + 1
            elif (backward := numbers[1:] < numbers[:-1]).any():
                self.is_sorted, self.first_unsorted = False, self.rows + int(backward.argmax()) + 2
        self._last = [array.take(array_of(np.array([numbers.size - 1])))]


def in_order(stream: Iterable[pa.RecordBatch], order: OrderCheck | None) -> Iterator[pa.RecordBatch]:
    """The batches of a stream, checked by `order`; an event before its predecessor raises `DataError`."""
    for batch in stream:
        if order is not None:
            order.follow(batch)
            if order.first_unsorted is not None:
                raise DataError(
                    "the event is earlier than the one before it, and a stream that can be read only "
                    "once is not sorted",
                    row=order.first_unsorted,
                    hint="sort it, or collect it into a table first (pyarrow.Table.from_batches): "
                    "tables are sorted",
                )
        yield batch


def null_time(column: str, row: int, file: str | None = None) -> DataError:
    """The error for an event without a time; `row` counts from 1."""
    return DataError(
        "the time is NULL",
        file=file,
        row=row,
        column=given_name(column),
        hint="every event needs a time: drop such rows first, or name another time column",
    )


def refuse_infinite(classified: pa.RecordBatch, column: str | None) -> pa.RecordBatch:
    """The batch unchanged; raises `DataError` if a time that is not NULL has no ticks."""
    if column is not None and classified.column(TIME).null_count:
        raise DataError(
            "a time is infinite",
            column=given_name(column),
            hint="every event needs a time: drop such rows first",
        )
    return classified


def refuse_nat(times: pa.ChunkedArray, column: str, where: str) -> None:
    """Raises `DataError` for the first time of a pandas frame that is the integer of NaT."""
    if not pa.types.is_int64(times.type):
        return
    row = pc.index(times, pa.scalar(LEAST, pa.int64())).as_py()
    if row >= 0:
        raise DataError(
            f"the time{where} is NaT, which is {LEAST} as an integer",
            row=row + 1,
            column=given_name(column),
            hint="every event needs a time: drop such rows first",
        )


def _is_of_integers(array: pa.Array) -> bool:
    """Whether a column is stored as integers in their order, and has no NULL."""
    kind = array.type
    ordered = pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    return ordered and not array.null_count


def _plain(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.DictionaryArray):
        return _plain(array.dictionary_decode())
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary_view(array.type) else array


def _steps_back(pairs: Sequence[tuple[pa.Array, pa.Array]]) -> pa.Array:
    """Whether the second of each pair is before the first, in the order of the tuples of all pairs."""
    (before, after), *rest = pairs
    less = _less(after, before)
    return pc.or_(less, pc.and_(_equal(after, before), _steps_back(rest))) if rest else less


def _less(one: pa.Array, other: pa.Array) -> pa.Array:
    """Whether a value of `one` sorts before that of `other`."""
    if pa.types.is_null(one.type):
        return pc.is_valid(one)
    less = pc.less(one, other)
    if pa.types.is_floating(one.type):
        less = pc.or_(less, pc.and_(pc.is_nan(other), pc.invert(pc.is_nan(one))))
    if less.null_count:
        less = pc.or_(pc.fill_null(less, False), pc.and_(pc.is_null(other), pc.is_valid(one)))
    return less


def _equal(one: pa.Array, other: pa.Array) -> pa.Array:
    """Whether neither value sorts before the other."""
    if pa.types.is_null(one.type):
        return pc.is_null(one)
    equal = pc.equal(one, other)
    if pa.types.is_floating(one.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(one), pc.is_nan(other)))
    if equal.null_count:
        equal = pc.or_(pc.fill_null(equal, False), pc.and_(pc.is_null(one), pc.is_null(other)))
    return equal
