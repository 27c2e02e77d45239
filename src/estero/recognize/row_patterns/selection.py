"""The data read from the relation before MATCH_RECOGNIZE: columns, keys, and times for WITHIN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from estero.classify.sql_texts import quoted
from estero.errors import warn
from estero.language.row_patterns.expressions import Names
from estero.recognize.row_patterns.keys import Key, keys_of
from estero.recognize.row_patterns.ordered_rows import COMPARED, NO_ORDER, Relation, prefix_for
from estero.recognize.row_patterns.statements import PREFIX, alias
from estero.recognize.row_patterns.time_windows import window_columns

HASH: Final = f"{PREFIX}hash"
_ARRIVAL: Final = f"{PREFIX}arrival"


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
        return (f"{self._prefix}time", f"{self._prefix}deadline") if self._within else ()

    def column(self, number: int) -> str:
        """The name here of a column of the relation."""
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
            f"{self._prefix}o{place}": key.value for place, key in enumerate(self.order) if key.column is None
        }
        return self._read(
            [*self._selected, *self._within, *(alias(sql, name) for name, sql in ordered.items())]
        )

    def ordered(self) -> str:
        """The statement that reads it in order."""
        sort = [key.sort for key in (*self.partition, *self.order)]
        selected = [*self._selected, *self._within]
        if self.is_hashed:
            selected.append(alias(f"hash({', '.join(key.value for key in self.partition)})", HASH))
        if not self.order:
            selected.append(alias("row_number() OVER ()", _ARRIVAL))
            sort.append(quoted(_ARRIVAL))
        return f"{self._read(selected)} ORDER BY {', '.join(sort)}"

    @property
    def is_hashed(self) -> bool:
        """Whether partitions are distinguished by hashes of their keys."""
        return any(key.column is None or self.types[key.column] not in COMPARED for key in self.partition)

    def _read(self, selected: Sequence[str]) -> str:
        return f"{self.relation.before} SELECT {', '.join(selected) or '1'} FROM {self.relation.sql}"


def selection(relation: Relation, names: Names, needed: Sequence[int], types: Sequence[str]) -> Selection:
    """The data read for the needed columns; raises `QueryError` for keys that cannot be read."""
    clause = names.clause
    partition = keys_of(clause.partition_by, names, "PARTITION BY")
    order = keys_of(clause.order_by, names, "ORDER BY")
    prefix = prefix_for(names.columns)
    numbers = sorted({*needed, *(key.column for key in partition if key.column is not None)})
    columns = {number: f"{prefix}c{number}" for number in numbers}
    selected = [alias(quoted(names.columns[number]), name) for number, name in columns.items()]
    keys = []
    for place, key in enumerate(partition):
        keys.append(f"{prefix}p{place}" if key.column is None else columns[key.column])
        if key.column is None:
            selected.append(alias(key.value, keys[-1]))
    within = window_columns(names, order, prefix, known="")
    if not order:
        warn(NO_ORDER)
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
