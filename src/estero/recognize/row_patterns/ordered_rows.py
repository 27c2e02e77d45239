"""The rows of MATCH_RECOGNIZE by partition and in order, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.recognize.row_patterns.selection import DEADLINE, TIME, Selection


@dataclass(frozen=True)
class OrderedRows:
    """Rows by partition and in order; `columns` are Arrow arrays by number, `first` where partitions begin.

    `keys` are the values of PARTITION BY. `until` says of each row, where there is WITHIN, the end of the
    rows that may belong to a match from there.
    """

    columns: dict[int, pa.Array]
    types: dict[int, str]
    keys: list[pa.Array]
    first: NDArray[np.int64]
    size: int
    until: NDArray[np.int64] | None = None
    lists: dict[int, list[Any]] = field(default_factory=dict)

    def places(self, start: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of rows from `start` on the numbers of rows of their partition before them, and behind them."""
        rows = np.arange(start, start + size, dtype=np.int64)
        partition = np.searchsorted(self.first, start, "right") - 1
        last = np.searchsorted(self.first, start + size, "left")
        borders = self.first[partition : last + 1]
        inside = np.clip(borders, start, start + size)
        lengths = inside[1:] - inside[:-1]
        return rows - np.repeat(borders[:-1], lengths), np.repeat(borders[1:], lengths) - rows - 1

    def values(self, column: int) -> list[Any]:
        """The values of a column as Python's."""
        values = self.lists.get(column)
        if values is None:
            values = self.lists[column] = self.columns[column].to_pylist()
        return values


def ordered_rows(table: pa.Table, selection: Selection, first: NDArray[np.int64]) -> OrderedRows:
    """The rows of a table that are in order, whose columns are those of a selection."""
    arrays = {number: whole(table.column(name)) for number, name in selection.columns.items()}
    until = None
    if selection.is_limited:
        time, deadline = whole(table.column(TIME)), whole(table.column(DEADLINE))
        until = _until(time, deadline, first, descending=selection.order[0].descending)
    keys = [whole(table.column(name)) for name in selection.keys]
    return OrderedRows(arrays, selection.types, keys, first, table.num_rows, until)


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks() if column.num_chunks else pa.array([], column.type)


def first_rows(keys: Sequence[pa.Array], size: int) -> NDArray[np.int64]:
    """The first rows of the partitions, and the end."""
    if not size:
        return np.zeros(1, np.int64)
    begins = np.zeros(size - 1, np.bool_)
    for key in keys:
        there = None if not key.null_count else key.is_valid().to_numpy(zero_copy_only=False)
        values = pc.fill_null(key, _nothing(key.type)) if there is not None else key
        numbers = values.view(_INTEGERS[values.type.bit_width]).to_numpy()
        begins |= numbers[1:] != numbers[:-1]
        if there is not None:
            begins |= there[1:] != there[:-1]
    return np.concatenate([[0], np.flatnonzero(begins) + 1, [size]]).astype(np.int64)


_INTEGERS: Final = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def _nothing(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(0, _INTEGERS[kind.bit_width]).cast(kind)


def _until(
    time: pa.Array, deadline: pa.Array, first: NDArray[np.int64], *, descending: bool
) -> NDArray[np.int64]:
    times, deadlines = (_ticks(column, deadline.type) for column in (time, deadline))
    if descending:
        times, deadlines = -times, -deadlines
    until = np.empty(times.size, np.int64)
    for begin, end in pairwise(first.tolist()):
        until[begin:end] = begin + np.searchsorted(times[begin:end], deadlines[begin:end], "right")
    return until


def _ticks(values: pa.Array, kind: pa.DataType) -> NDArray[Any]:
    if pa.types.is_temporal(kind):
        values = pc.cast(pc.cast(values, kind), pa.int64())
    else:
        values = pc.cast(values, pa.float64())
    ticks: NDArray[Any] = pc.fill_null(values, _latest(values.type)).to_numpy(zero_copy_only=False)
    return ticks


def _latest(kind: pa.DataType) -> Any:
    """What stands for a time that is NULL, which is after all others."""
    return 2**62 if pa.types.is_integer(kind) else float("inf")
