"""What is read of the relation before MATCH_RECOGNIZE: columns, keys, and times for WITHIN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from estero.classify.sql_texts import quoted
from estero.errors import QueryError, warn
from estero.language.row_patterns.expressions import Names
from estero.language.row_patterns.tree import Scalar
from estero.recognize.row_patterns.keys import Key, keys_of
from estero.recognize.row_patterns.statements import PREFIX, alias

TIME: Final = f"{PREFIX}time"
DEADLINE: Final = f"{PREFIX}deadline"
HASH: Final = f"{PREFIX}hash"
_ARRIVAL: Final = f"{PREFIX}arrival"


@dataclass(frozen=True)
class Relation:
    """What MATCH_RECOGNIZE is applied to, as the statement has it; `before` is the WITH that it may name.

    `table` is it as a table in memory, if it is one.
    """

    sql: str
    name: str = ""
    before: str = ""
    table: pa.Table | None = None


@dataclass(frozen=True)
class Selection:
    """Columns by number under their names here, and the keys.

    `types` are DuckDB's types of the columns, `keys` the columns of PARTITION BY.
    """

    relation: Relation
    columns: dict[int, str]
    types: dict[int, str]
    partition: Sequence[Key]
    order: Sequence[Key]
    keys: Sequence[str]
    _selected: Sequence[str]
    _within: Sequence[str]
    _prefix: str

    @property
    def is_limited(self) -> bool:
        """Whether there is a window."""
        return bool(self._within)

    @property
    def order_columns(self) -> list[str]:
        """The columns of ORDER BY in `unordered`."""
        return [
            f"{self._prefix}o{place}" if key.column is None else self.column(key.column)
            for place, key in enumerate(self.order)
        ]

    @property
    def within_columns(self) -> tuple[str, ...]:
        """The columns of WITHIN."""
        return (TIME, DEADLINE) if self._within else ()

    def column(self, number: int) -> str:
        """The name of a column of the relation here."""
        return f"{self._prefix}c{number}"

    def unordered(self, names: Sequence[str]) -> str:
        """The statement that reads it with the columns of ORDER BY; `names` are those of the relation."""
        given = set(self.columns)
        ordered = {
            self.column(key.column): quoted(names[key.column])
            for key in self.order
            if key.column is not None and key.column not in given
        }
        ordered |= {
            f"{self._prefix}o{place}": f"({key.name})"
            for place, key in enumerate(self.order)
            if key.column is None
        }
        return self._read(
            [*self._selected, *self._within, *(alias(sql, name) for name, sql in ordered.items())]
        )

    def ordered(self) -> str:
        """The statement that reads it in order."""
        sort = [key.sql for key in (*self.partition, *self.order)]
        selected = [*self._selected, *self._within]
        if self.is_hashed:
            selected.append(alias(f"hash({', '.join(key.sql for key in self.partition)})", HASH))
        if not self.order:
            selected.append(alias("row_number() OVER ()", _ARRIVAL))
            sort.append(quoted(_ARRIVAL))
        return f"{self._read(selected)} ORDER BY {', '.join(sort)}"

    @property
    def is_hashed(self) -> bool:
        """Whether partitions are told apart by hashes of their keys."""
        return any(key.column is None or self.types[key.column] not in _COMPARED for key in self.partition)

    def _read(self, selected: Sequence[str]) -> str:
        return f"{self.relation.before} SELECT {', '.join(selected) or '1'} FROM {self.relation.sql}"


def selection(relation: Relation, names: Names, needed: Sequence[int], types: Sequence[str]) -> Selection:
    """What is read for the needed columns; raises `QueryError` for keys that cannot be read."""
    clause = names.clause
    partition = keys_of(clause.partition_by, names, "PARTITION BY")
    order = keys_of(clause.order_by, names, "ORDER BY")
    prefix = _prefix(names.columns)
    numbers = sorted({*needed, *(key.column for key in partition if key.column is not None)})
    columns = {number: f"{prefix}c{number}" for number in numbers}
    selected = [alias(quoted(names.columns[number]), name) for number, name in columns.items()]
    keys = []
    for place, key in enumerate(partition):
        keys.append(f"{prefix}p{place}" if key.column is None else columns[key.column])
        if key.column is None:
            selected.append(alias(f"({key.scalar.text})", keys[-1]))
    within = [] if clause.within is None else _window(clause.within, order, names)
    if not order:
        warn("MATCH_RECOGNIZE without ORDER BY takes the rows in the order in which the table gives them")
    return Selection(
        relation,
        columns,
        {number: types[number] for number in numbers},
        partition,
        order,
        keys,
        selected,
        within,
        prefix,
    )


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


def _window(within: Scalar, order: Sequence[Key], names: Names) -> list[str]:
    """The time of each row and the latest time of a match from there, both of one type."""
    if not order:
        raise QueryError(
            "WITHIN needs ORDER BY a time",
            text=names.clause.text,
            span=within.span,
            found=within.text,
            hint="add ORDER BY with the column of the time",
        )
    time = order[0].name
    sign = "-" if order[0].descending else "+"
    deadline = f"({time}) {sign} ({within.text})"
    return [
        alias(f"CASE WHEN TRUE THEN ({time}) ELSE {deadline} END", TIME),
        alias(deadline, DEADLINE),
    ]
