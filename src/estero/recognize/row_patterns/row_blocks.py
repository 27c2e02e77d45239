"""Blocks of whole partitions, whose rows are in order: the units of reading, sorting and evaluating.

Rows that fit in memory are dealt to blocks by partition, and each block is sorted separately, in the
processor's cache, by the thread that evaluates it: there is never a sorted copy of all rows. Rows that are
already in order are not moved. If rows do not fit, or have keys that only DuckDB can compare, DuckDB sorts
them; it spills to disk, and blocks are cut from its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import one_array
from estero.engine.row_patterns.row_order import Order, is_ordered, lexicographic_order, order_by
from estero.language.row_patterns.expressions import Names
from estero.recognize.row_patterns.ordered_rows import OrderedRows, first_rows
from estero.recognize.row_patterns.ranks import Codes, codes_of, has_codes, has_ranks, ranks
from estero.recognize.row_patterns.selection import HASH, Selection
from estero.recognize.row_patterns.statements import Statements
from estero.recognize.row_patterns.time_windows import until_of

ROWS: Final = 1 << 19
"""The number of rows of a block, unless one partition has more."""

Block = Callable[[], OrderedRows]
"""Sorts the rows of a block on demand."""


class Blocks(NamedTuple):
    """The blocks of all rows, in the order of partitions, and the rows of the longest partition, if known."""

    blocks: Iterator[Block]
    longest: int | None


def blocks_of(statements: Statements, selection: Selection, names: Names, *, streamed: bool) -> Blocks:
    """The rows of a selection, in blocks; there is one even if there are no rows.

    If `streamed`, blocks may be evaluated while a statement is still being read.
    """
    if statements.sorts_as_usual() and not any(
        key.descending or key.direction for key in selection.partition
    ):
        table = _given(selection, names)
        if table is None:
            sql = selection.unordered(names.columns)
            table = statements.table_in_memory(sql)
        if table is not None and _can_be_sorted(table, selection):
            return _sorted_here(table, selection)
    if not streamed:
        table = statements.table(selection.ordered(), "the input of MATCH_RECOGNIZE")
        return Blocks(_cut(iter([table]), selection), None)
    return Blocks(_cut(statements.batches(selection.ordered()), selection), None)


def _ordered(table: pa.Table, selection: Selection, first: NDArray[np.int64]) -> OrderedRows:
    """The rows of a table that are in order, whose columns are those of a selection."""
    arrays = {number: one_array(table.column(name)) for number, name in selection.columns.items()}
    until = None
    if selection.is_limited:
        time, deadline = (one_array(table.column(name)) for name in selection.within_columns)
        until = until_of(time, deadline, first, selection.order[0])
    keys = [one_array(table.column(name)) for name in selection.keys]
    return OrderedRows(arrays, selection.types, keys, first, table.num_rows, until)


# ------------------------------------------------------------------------------- rows that are in memory


def _given(selection: Selection, names: Names) -> pa.Table | None:
    """The columns of an Arrow table as they are; None if it is none, or DuckDB returns other types."""
    table = selection.relation.table
    keys = (*selection.partition, *selection.order)
    if table is None or table.column_names != list(names.columns) or selection.is_limited:
        return None
    if any(key.column is None for key in keys):
        return None
    numbers = {*selection.columns, *(key.column for key in keys if key.column is not None)}
    if not all(_is_plain(table.schema.field(number).type) for number in numbers):
        return None
    named = {selection.column(number): table.column(number) for number in sorted(numbers)}
    return pa.table(named) if named else table.select([])


def _is_plain(kind: pa.DataType) -> bool:
    """Whether DuckDB returns values of this type unchanged."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_float32(kind)
        or types.is_float64(kind)
        or types.is_boolean(kind)
        or types.is_string(kind)
        or types.is_date32(kind)
        or (types.is_timestamp(kind) and kind.tz is None)
    )


def _can_be_sorted(table: pa.Table, selection: Selection) -> bool:
    schema = table.schema
    return (
        table.num_rows < 1 << 32
        and all(has_codes(schema.field(name).type) for name in selection.keys)
        and all(has_ranks(schema.field(name).type) for name in selection.order_columns)
    )


def _sorted_here(table: pa.Table, selection: Selection) -> Blocks:
    table = (
        pa.table({name: one_array(table.column(name)) for name in table.column_names})
        if table.num_columns
        else table
    )
    rows = table.num_rows
    if not selection.keys or not rows:
        first = np.array([0, rows] if rows else [0], np.int64)
        block = _Rows(table, selection, first, None, None)
        return Blocks(iter([block.sorted]), rows)
    codes = codes_of([table.column(name).chunk(0) for name in selection.keys])
    counts = codes.counts
    return Blocks(_dealt(table, selection, codes, counts), int(counts.max()))


def _dealt(table: pa.Table, selection: Selection, codes: Codes, counts: NDArray[np.int64]) -> Iterator[Block]:
    """The blocks of partitions, whose rows are in the order of arrival."""
    ends = np.cumsum(counts)
    borders = [0]
    while borders[-1] < codes.size:
        before = int(ends[borders[-1] - 1]) if borders[-1] else 0
        end = int(np.searchsorted(ends, before + ROWS, "right"))
        borders.append(max(end, borders[-1] + 1) if before + ROWS < ends[-1] else codes.size)
    order = None
    if len(borders) > 2 and not is_ordered([codes.code]):
        block_of = np.repeat(np.arange(len(borders) - 1, dtype=np.uint32), np.diff(borders))
        sizes = np.diff(np.concatenate([[0], ends[np.array(borders[1:]) - 1]]))
        order = order_by(block_of[codes.code], sizes)
    for begin, end in pairwise(borders):
        first_row = int(ends[begin - 1]) if begin else 0
        own = slice(first_row, int(ends[end - 1]))
        if own.start == own.stop:  # these codes do not occur
            continue
        mine = counts[begin:end]
        first = np.concatenate([[0], np.cumsum(mine[mine > 0])]).astype(np.int64)
        rows = None if order is None else order[own]
        code = codes.code[own] if rows is None else codes.code[rows]
        part = table.slice(own.start, own.stop - own.start) if rows is None else table
        yield _Rows(part, selection, first, code, rows).sorted


@dataclass(frozen=True)
class _Rows:
    """Rows of some partitions: those of a table, or only `rows` of it, and their partitions' codes."""

    table: pa.Table
    selection: Selection
    first: NDArray[np.int64]
    codes: NDArray[np.uint32] | None
    rows: Order | None

    def sorted(self) -> OrderedRows:
        """The rows in order."""
        table = self.table if self.rows is None else _taken(self.table, self.rows)
        keys = [] if self.codes is None else [(self.codes - self.codes.min()).astype(np.uint64)]
        for key, name in zip(self.selection.order, self.selection.order_columns, strict=True):
            column = one_array(table.column(name))
            keys.append(ranks(column, descending=key.descending, nulls_first=key.nulls_first))
        order = lexicographic_order(keys)
        if order is not None:
            read = [*self.selection.columns.values(), *self.selection.keys, *self.selection.within_columns]
            table = _taken(table.select(dict.fromkeys(read)), order)
        return _ordered(table, self.selection, self.first)


def _taken(table: pa.Table, rows: Order) -> pa.Table:
    """These rows of a table whose columns are in one piece."""
    index = pa.array(rows)
    columns = {name: table.column(name).chunk(0).take(index) for name in table.column_names}
    return pa.table(columns) if columns else table.take(index)


# ------------------------------------------------------------------------------- rows that DuckDB has sorted


def _cut(tables: Iterator[pa.Table], selection: Selection) -> Iterator[Block]:
    """Blocks of ordered tables; a partition that continues waits for its end."""
    waiting: list[pa.Table] = []
    begun = False
    for table in tables:
        waiting.append(table)
        if sum(part.num_rows for part in waiting) < ROWS:
            continue
        rows = pa.concat_tables(waiting)
        first = _borders(rows, selection)
        waiting = [rows]
        if first.size > 2:
            waiting = [rows.slice(int(first[-2]))]
            begun = True
            yield _block(rows.slice(0, int(first[-2])), selection, first[:-1])
    if waiting and (waiting[0].num_rows or len(waiting) > 1 or not begun):
        rows = pa.concat_tables(waiting)
        yield _block(rows, selection, _borders(rows, selection))


def _borders(rows: pa.Table, selection: Selection) -> NDArray[np.int64]:
    keys = [HASH] if selection.is_hashed else selection.keys
    return first_rows([one_array(rows.column(name)) for name in keys], rows.num_rows)


def _block(rows: pa.Table, selection: Selection, first: NDArray[np.int64]) -> Block:
    return lambda: _ordered(rows, selection, first)
