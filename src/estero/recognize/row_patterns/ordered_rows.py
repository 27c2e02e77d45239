"""The input of MATCH_RECOGNIZE: the columns that are needed, by partition and in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.classify.arrays import one_array
from estero.classify.sql_texts import quoted
from estero.errors import warn
from estero.language.row_patterns.expressions import Names
from estero.language.row_patterns.slots import column_name
from estero.recognize.row_patterns.keys import Key, keys_of
from estero.recognize.row_patterns.statements import PREFIX, Statements, alias
from estero.recognize.row_patterns.time_windows import until_of, window_columns


@dataclass(frozen=True)
class Starts:
    """The rows of a partition at which matches may begin: those before the row `stop`.

    With `reached` bool[rows + 1] only those at which one of several searches stands; these mark there how far
    they get.
    """

    stop: int
    reached: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Relation:
    """The relation that MATCH_RECOGNIZE is applied to, as written; `before` is the WITH that it may name.

    A `sorted` one comes from elsewhere: its rows are in order, its columns are c0, c1, …, and where
    PARTITION BY or ORDER BY has an expression p0, p1, … or o0, o1, … If its partitions come in `pieces`, it
    has the columns `PROGRESS`, too, of which the first row of a partition counts. All partitions have ended
    in the `last` piece, and in others all but the last one; but if `known` is given, none has, and all rows
    up to this time (SQL) are there. `table` is it as a table in memory, if it is one. In a part of the rows
    `starts` are those at which matches may begin.
    """

    sql: str
    name: str = ""
    before: str = ""
    sorted: bool = False
    pieces: bool = False
    last: bool = False
    known: str = ""
    table: pa.Table | None = None
    starts: Starts | None = None

    def own(self, name: str, number: int) -> str:
        """The SQL that reads a column."""
        return quoted(column_name(number) if self.sorted else name)


PROGRESS: Final = ("dropped", "begin", "number", "covered")
"""The columns in which a relation gives the progress of its partitions; see `Progress`."""


@dataclass(frozen=True)
class Progress:
    """The progress of partitions whose rows come in pieces, int64 for each of them.

    `dropped` rows have been removed; matches start at the row `begin` of those here, or after it; `number`
    matches have been reported, and the rows here before `covered` are in them. `ended` says whether a
    partition gets no more rows, `over` whether a row gets no more in its window.
    """

    dropped: NDArray[np.int64]
    begin: NDArray[np.int64]
    number: NDArray[np.int64]
    covered: NDArray[np.int64]
    ended: NDArray[np.bool_]
    over: NDArray[np.bool_]


@dataclass(frozen=True)
class OrderedRows:
    """Rows by partition and in order; `columns` are Arrow arrays by number, `first` where partitions begin.

    `keys` are the values of PARTITION BY. With WITHIN, `until` is for each row the end of the rows that may
    belong to a match from there. `progress` is None if all rows are here, and `starts` if matches may begin
    anywhere.
    """

    columns: dict[int, pa.Array]
    types: dict[int, str]
    keys: list[pa.Array]
    first: NDArray[np.int64]
    size: int
    until: NDArray[np.int64] | None = None
    progress: Progress | None = None
    starts: Starts | None = None
    lists: dict[int, list[Any]] = field(default_factory=dict)

    def places(self, start: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers of rows of the same partition before and after each row from `start` on."""
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


NO_ORDER: Final = "MATCH_RECOGNIZE without ORDER BY takes the rows in the order in which the table gives them"


def ordered_rows(
    statements: Statements, relation: Relation, names: Names, needed: Sequence[int], types: Sequence[str]
) -> OrderedRows:
    """The needed columns of a relation, sorted."""
    clause = names.clause
    partition = _read_from(relation, keys_of(clause.partition_by, names, "PARTITION BY"), "p")
    order = _read_from(relation, keys_of(clause.order_by, names, "ORDER BY"), "o")
    prefix = prefix_for(names.columns)
    columns = sorted({*needed, *(key.column for key in partition if key.column is not None)})
    selected = [
        alias(relation.own(names.columns[number], number), f"{prefix}c{number}") for number in columns
    ]
    selected += [
        alias(key.value, f"{prefix}p{place}") for place, key in enumerate(partition) if key.column is None
    ]
    hashed = any(key.column is None or types[key.column] not in COMPARED for key in partition)
    if hashed:
        selected.append(alias(f"hash({', '.join(key.value for key in partition)})", f"{prefix}hash"))
    selected += window_columns(names, order, prefix, relation.known)
    sort = [key.sort for key in (*partition, *order)]
    if not (order or relation.sorted):
        warn(NO_ORDER)
        selected.append(alias("row_number() OVER ()", f"{prefix}arrival"))
        sort.append(quoted(f"{prefix}arrival"))
    if relation.pieces:
        selected += [alias(name, f"{prefix}{name}") for name in PROGRESS]
    if not selected:
        selected = ["1"]
    sql = f"{relation.before} SELECT {', '.join(selected)} FROM {relation.sql}"
    if not relation.sorted:
        sql += f" ORDER BY {', '.join(sort)}"
    table = statements.table(sql, "the input of MATCH_RECOGNIZE")
    size = table.num_rows
    arrays = {number: one_array(table.column(f"{prefix}c{number}")) for number in columns}
    keys = [
        one_array(table.column(f"{prefix}p{place}")) if key.column is None else arrays[key.column]
        for place, key in enumerate(partition)
    ]
    compared = [one_array(table.column(f"{prefix}hash"))] if hashed else keys
    first = first_rows(compared, size)
    until = None
    if clause.within is not None:
        time, deadline = table.column(f"{prefix}time"), table.column(f"{prefix}deadline")
        until = until_of(one_array(time), one_array(deadline), first, order[0])
    progress = _progress(table, first, prefix, relation) if relation.pieces else None
    return OrderedRows(
        arrays,
        {number: types[number] for number in columns},
        keys,
        first,
        size,
        until,
        progress,
        relation.starts,
    )


def _progress(table: pa.Table, first: NDArray[np.int64], prefix: str, relation: Relation) -> Progress:
    ended = np.ones(first.size - 1, np.bool_)
    over = np.zeros(table.num_rows, np.bool_)
    if relation.known:
        ended[:] = False
        over = pc.fill_null(one_array(table.column(f"{prefix}over")), False).to_numpy(zero_copy_only=False)
    elif not relation.last:
        ended[-1:] = False
    dropped, begin, number, covered = (
        one_array(table.column(f"{prefix}{name}")).to_numpy()[first[:-1]] for name in PROGRESS
    )
    return Progress(dropped, begin, number, covered, ended, over)


def _read_from(relation: Relation, keys: Sequence[Key], kind: str) -> list[Key]:
    """The keys as a relation that is sorted already has them."""
    if not relation.sorted:
        return list(keys)
    return [
        replace(key, value=f"{kind}{place}" if key.column is None else relation.own(key.name, key.column))
        for place, key in enumerate(keys)
    ]


COMPARED: Final = frozenset(
    {
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "DATE",
        "TIMESTAMP",
    }
)
"""Types of keys that are compared themselves, and not by their hashes."""


def prefix_for(columns: Sequence[str]) -> str:
    """A prefix with which no name of a column begins."""
    prefix = PREFIX
    while any(name.casefold().startswith(prefix) for name in columns):
        prefix += "_"
    return prefix


def first_rows(keys: Sequence[pa.Array], size: int) -> NDArray[np.int64]:
    """The first rows of the partitions, and the end."""
    if not size:
        return np.zeros(1, np.int64)
    begins = np.zeros(size - 1, np.bool_)
    for key in keys:
        valid = None if not key.null_count else key.is_valid().to_numpy(zero_copy_only=False)
        values = pc.fill_null(key, _nothing(key.type)) if valid is not None else key
        numbers = values.view(_INTEGERS[values.type.bit_width]).to_numpy()
        begins |= numbers[1:] != numbers[:-1]
        if valid is not None:
            begins |= valid[1:] != valid[:-1]
    return np.concatenate([[0], np.flatnonzero(begins) + 1, [size]]).astype(np.int64)


_INTEGERS: Final = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def _nothing(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(0, _INTEGERS[kind.bit_width]).cast(kind)
