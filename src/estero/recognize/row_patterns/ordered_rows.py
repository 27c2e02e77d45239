"""The input of MATCH_RECOGNIZE: the columns that are needed, by partition and in order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from numpy.typing import NDArray
from sqlglot import exp
from sqlglot.errors import SqlglotError

from estero.classify.sql_texts import quoted
from estero.errors import QueryError, warn
from estero.language.row_patterns.expressions import EVALUATED, Names
from estero.language.row_patterns.scalars import FUNCTIONS, ParsedScalar
from estero.language.row_patterns.slots import column_name
from estero.language.row_patterns.tree import Scalar
from estero.language.row_patterns.words import words_of
from estero.recognize.row_patterns.statements import PREFIX, Statements, alias


@dataclass(frozen=True)
class Relation:
    """What MATCH_RECOGNIZE is applied to, as the statement has it; `before` is the WITH that it may name.

    A `sorted` one comes from elsewhere: its rows are in order, its columns are c0, c1, …, and where
    PARTITION BY or ORDER BY has an expression p0, p1, … or o0, o1, …
    """

    sql: str
    name: str = ""
    before: str = ""
    sorted: bool = False

    def own(self, name: str, number: int) -> str:
        """The SQL that reads a column."""
        return quoted(column_name(number) if self.sorted else name)


@dataclass(frozen=True)
class Key:
    """An entry of PARTITION BY or ORDER BY: the number of its column, or None for an expression.

    `name` is that of its column in results, `value` the SQL of it, and `direction` what the entry says of
    NULL.
    """

    scalar: Scalar
    column: int | None
    descending: bool
    name: str
    value: str
    direction: str = ""

    @property
    def sort(self) -> str:
        """The SQL of the entry in ORDER BY."""
        return f"{self.value}{' DESC' if self.descending else ''}{self.direction and ' '}{self.direction}"

    @property
    def nulls_first(self) -> bool:
        """Whether NULL comes before all values."""
        return self.direction.upper().endswith("FIRST")


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


NO_ORDER: Final = "MATCH_RECOGNIZE without ORDER BY takes the rows in the order in which the table gives them"
_DIRECTION: Final = re.compile(r"(?:\s+(?:ASC|DESC))?(?:\s+NULLS\s+(?:FIRST|LAST))?\s*$", re.IGNORECASE)
_NULLS: Final = re.compile(r"NULLS\s+(?:FIRST|LAST)\s*$", re.IGNORECASE)


def keys_of(scalars: Sequence[Scalar], names: Names, part: str) -> list[Key]:
    """The entries of PARTITION BY or ORDER BY."""
    keys = []
    for scalar in scalars:
        try:
            select = sqlglot.parse_one(f"SELECT 1 ORDER BY {scalar.text}", dialect=names.dialect)
            (ordered,) = select.args["order"].expressions
        except (SqlglotError, ValueError, KeyError) as error:
            raise QueryError(f"{part} cannot be read", text=names.clause.text, span=scalar.span) from error
        node = ordered.this
        _check_key(node, scalar, names, part)
        column = _column(scalar, names, part)
        nulls = _NULLS.search(scalar.text)
        text = node.sql(names.dialect)
        value = f"({_DIRECTION.sub('', scalar.text)})" if column is None else quoted(names.columns[column])
        name = text if column is None else names.columns[column]
        direction = nulls[0] if nulls else ""
        keys.append(Key(scalar, column, bool(ordered.args.get("desc")), name, value, direction))
    return keys


def _column(scalar: Scalar, names: Names, part: str) -> int | None:
    """The number of the column that an entry names; None where it is an expression."""
    words = words_of(_DIRECTION.sub("", scalar.text), dialect=names.dialect)
    path = [word.name.casefold() for word in words]
    if (
        len(path) == 3
        and path[0] == names.relation.casefold()
        and path[1] == "."
        and path[2] in names.numbers
    ):
        return names.numbers[path[2]]
    if len(words) != 1 or not words[0].is_name:
        return None
    if path[0] not in names.numbers:
        raise QueryError(
            f'{part}: there is no column {words[0].name!r} in the input: "{words[0].name}" not found',
            text=names.clause.text,
            span=scalar.span,
            found=scalar.text,
            hint=f"its columns are {', '.join(names.columns)}",
        )
    return names.numbers[path[0]]


def _check_key(node: exp.Expr, scalar: Scalar, names: Names, part: str) -> None:
    """Raises `QueryError` for functions of matches, which are not known before the rows are in order."""
    for inner in node.walk():
        called = str(inner.this).upper() if isinstance(inner, exp.Anonymous) else ""
        if names.aggregate(inner) or called in FUNCTIONS or isinstance(inner, exp.Window):
            raise QueryError(
                f"{called or inner.key.upper()} reads a row of the match and cannot be part of {part}",
                text=names.clause.text,
                span=scalar.span,
                found=scalar.text,
                hint="order and partition by columns of the input",
            )


def ordered_rows(
    statements: Statements, relation: Relation, names: Names, needed: Sequence[int], types: Sequence[str]
) -> OrderedRows:
    """The needed columns of a relation, sorted."""
    clause = names.clause
    partition = _read_from(relation, keys_of(clause.partition_by, names, "PARTITION BY"), "p")
    order = _read_from(relation, keys_of(clause.order_by, names, "ORDER BY"), "o")
    prefix = _prefix(names.columns)
    columns = sorted({*needed, *(key.column for key in partition if key.column is not None)})
    selected = [
        alias(relation.own(names.columns[number], number), f"{prefix}c{number}") for number in columns
    ]
    selected += [
        alias(key.value, f"{prefix}p{place}") for place, key in enumerate(partition) if key.column is None
    ]
    hashed = any(key.column is None or types[key.column] not in _COMPARED for key in partition)
    if hashed:
        selected.append(alias(f"hash({', '.join(key.value for key in partition)})", f"{prefix}hash"))
    if clause.within is not None:
        selected += _window(clause.within, order, names, prefix)
    sort = [key.sort for key in (*partition, *order)]
    if not (order or relation.sorted):
        warn(NO_ORDER)
        selected.append(alias("row_number() OVER ()", f"{prefix}arrival"))
        sort.append(quoted(f"{prefix}arrival"))
    if not selected:
        selected = ["1"]
    sql = f"{relation.before} SELECT {', '.join(selected)} FROM {relation.sql}"
    if not relation.sorted:
        sql += f" ORDER BY {', '.join(sort)}"
    table = statements.table(sql, "the input of MATCH_RECOGNIZE")
    size = table.num_rows
    arrays = {number: _whole(table.column(f"{prefix}c{number}")) for number in columns}
    keys = [
        _whole(table.column(f"{prefix}p{place}")) if key.column is None else arrays[key.column]
        for place, key in enumerate(partition)
    ]
    compared = [_whole(table.column(f"{prefix}hash"))] if hashed else keys
    first = _first_rows(compared, size)
    until = None
    if clause.within is not None:
        time, deadline = table.column(f"{prefix}time"), table.column(f"{prefix}deadline")
        until = _until(time, deadline, first, descending=order[0].descending)
    return OrderedRows(arrays, {number: types[number] for number in columns}, keys, first, size, until)


def _read_from(relation: Relation, keys: Sequence[Key], kind: str) -> list[Key]:
    """The keys as a relation that is sorted already has them."""
    if not relation.sorted:
        return list(keys)
    return [
        replace(key, value=f"{kind}{place}" if key.column is None else relation.own(key.name, key.column))
        for place, key in enumerate(keys)
    ]


_COMPARED: Final = frozenset(
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


def _prefix(columns: Sequence[str]) -> str:
    prefix = PREFIX
    while any(name.casefold().startswith(prefix) for name in columns):
        prefix += "_"
    return prefix


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks() if column.num_chunks else pa.array([], column.type)


def _first_rows(keys: Sequence[pa.Array], size: int) -> NDArray[np.int64]:
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


def _window(within: Scalar, order: Sequence[Key], names: Names, prefix: str) -> list[str]:
    """The time of each row and the latest time of a match from there, both of one type."""
    if not order:
        raise QueryError(
            "WITHIN needs ORDER BY a time",
            text=names.clause.text,
            span=within.span,
            found=within.text,
            hint="add ORDER BY with the column of the time",
        )
    time = order[0].value
    sign = "-" if order[0].descending else "+"
    length = ParsedScalar(within, names.clause.text, names.dialect).tree.sql(EVALUATED)
    deadline = f"({time}) {sign} ({length if names.dialect != EVALUATED else within.text})"
    return [
        alias(f"CASE WHEN TRUE THEN ({time}) ELSE {deadline} END", f"{prefix}time"),
        alias(deadline, f"{prefix}deadline"),
    ]


def _until(
    time: pa.ChunkedArray, deadline: pa.ChunkedArray, first: NDArray[np.int64], *, descending: bool
) -> NDArray[np.int64]:
    times, deadlines = (_ticks(column, deadline.type) for column in (time, deadline))
    if descending:
        times, deadlines = -times, -deadlines
    until = np.empty(times.size, np.int64)
    for begin, end in pairwise(first.tolist()):
        until[begin:end] = begin + np.searchsorted(times[begin:end], deadlines[begin:end], "right")
    return until


def _ticks(column: pa.ChunkedArray, kind: pa.DataType) -> NDArray[Any]:
    values = _whole(column)
    if pa.types.is_temporal(kind):
        values = pc.cast(pc.cast(values, kind), pa.int64())
    else:
        values = pc.cast(values, pa.float64())
    ticks: NDArray[Any] = pc.fill_null(values, _latest(values.type)).to_numpy(zero_copy_only=False)
    return ticks


def _latest(kind: pa.DataType) -> Any:
    """What stands for a time that is NULL, which is after all others."""
    return 2**62 if pa.types.is_integer(kind) else float("inf")
