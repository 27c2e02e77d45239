"""MEASURES: the values read from matches, for all rows that are shown at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from estero.classify.arrays import one_array
from estero.errors import QueryError
from estero.language.row_patterns.slots import (
    Address,
    Aggregate,
    Count,
    Expression,
    Label,
    MatchNumber,
    Presence,
    Slot,
    Value,
    column_name,
)
from estero.recognize.row_patterns.matches import Ints, Matches, Place, ShownRows
from estero.recognize.row_patterns.ordered_rows import OrderedRows
from estero.recognize.row_patterns.statements import PREFIX, Statements, alias, unique, written


class SlotColumns:
    """The slots of all measures as columns."""

    def __init__(self, statements: Statements, shown: ShownRows, one_row: bool) -> None:
        self._statements, self._shown, self._one_row = statements, shown, one_row
        self._places: dict[Address, Place] = {}

    def columns(self, slots: Sequence[Slot]) -> list[pa.Array]:
        """The columns of slots, each with a value for each row that is shown."""
        aggregates = self._aggregates([slot for slot in slots if isinstance(slot, Aggregate)])
        return [aggregates[slot] if isinstance(slot, Aggregate) else self._column(slot) for slot in slots]

    def _column(self, slot: Slot) -> pa.Array:
        shown = self._shown
        match slot:
            case Value(address, column):
                return taken(shown.rows.columns[column], *self._at(address))
            case Presence(address):
                return pa.array(self._at(address).exists)
            case Label(address):
                variable, exists = shown.variable_at(address)
                return _labels(shown.matches, variable, exists)
            case Count(rows, final):
                return pa.array(shown.count(rows, final=final), mask=shown.match < 0)
            case MatchNumber():
                return taken(pa.array(shown.matches.number), np.maximum(shown.match, 0), shown.match >= 0)
        raise TypeError(f"no column of {slot}")

    def _at(self, address: Address) -> Place:
        place = self._places.get(address)
        if place is None:
            place = self._places[address] = self._shown.at(address)
        return place

    def _aggregates(self, slots: Sequence[Aggregate]) -> dict[Aggregate, pa.Array]:
        columns: dict[Aggregate, pa.Array] = {}
        for whole in (True, False):
            mine = [slot for slot in slots if (slot.final or self._one_row) == whole]
            if mine:
                columns.update(zip(mine, self._aggregated(mine, whole=whole), strict=True))
        return columns

    def _aggregated(self, slots: Sequence[Aggregate], *, whole: bool) -> list[pa.Array]:
        """The values of aggregates over matches, or over the rows of a match up to each row."""
        shown, matches = self._shown, self._shown.matches
        name = unique("matched")
        calls = [aggregate_call(slot, matches) for slot in slots]
        if whole:
            sql = f"SELECT {', '.join(calls)} FROM {name} GROUP BY match ORDER BY match"
            index = np.maximum(shown.match, 0)
        else:
            window = (
                "OVER (PARTITION BY match ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
            )
            sql = f"SELECT {', '.join(f'{call} {window}' for call in calls)} FROM {name} ORDER BY place"
            empty_before = np.concatenate([[0], np.cumsum(matches.length == 0)])
            index = np.maximum(shown.place, 0) + empty_before[np.maximum(shown.match, 0)]
            empty = (
                (shown.match >= 0) & (matches.length[np.maximum(shown.match, 0)] == 0)
                if matches.start.size
                else shown.match < -1
            )
            index = np.where(empty, shown.place + 1 + empty_before[np.maximum(shown.match, 0)], index)
        numbers = {column for slot in slots for column in slot.columns}
        table = self._statements.table(sql, "MEASURES", {name: matched_rows(matches, shown.rows, numbers)})
        return [taken(one_array(column), index, shown.match >= 0) for column in table.columns]


def aggregate_call(slot: Aggregate, matches: Matches) -> str:
    """The call of an aggregate over matched rows, with a filter for its variables."""
    call = slot.call[:-1] + " ORDER BY place)" if slot.ordered else slot.call
    numbers = matches.numbers_of(slot.rows) if slot.rows is not None else None
    mine = "variable >= 0" if numbers is None else f"variable IN ({', '.join(map(str, numbers)) or 'NULL'})"
    return f"{call} FILTER (WHERE {mine}{f' AND ({slot.filter})' if slot.filter else ''})"


def matched_rows(matches: Matches, rows: OrderedRows, numbers: Iterable[int]) -> pa.Table:
    """The rows of all matches, with one of no variable for each empty match."""
    empty = np.flatnonzero(matches.length == 0).astype(np.int64)
    match = np.concatenate([matches.match_of, empty])
    row = np.concatenate([matches.row_of, np.zeros(empty.size, np.int64)])
    variable = np.concatenate([matches.variable, np.full(empty.size, -1, np.int32)])
    if empty.size:
        order = np.argsort(match, kind="stable")
        match, row, variable = match[order], row[order], variable[order]
    exists = variable >= 0
    columns = {
        "match": pa.array(match),
        "place": pa.array(np.arange(match.size, dtype=np.int64)),
        "variable": pa.array(variable),
        "label": _labels(matches, np.maximum(variable, 0), exists),
        "number": pa.array(matches.number[match]),
    }
    for number in sorted(numbers):
        columns[column_name(number)] = taken(rows.columns[number], row, exists)
    return pa.table(columns)


def taken(column: pa.Array, index: Ints, exists: np.ndarray) -> pa.Array:
    """The values at places, NULL where there are none."""
    if not len(column):
        return pa.nulls(index.size, column.type)
    if exists.all():
        return column.take(pa.array(index))
    return column.take(pa.array(np.where(exists, index, 0), mask=~exists))


def _labels(matches: Matches, variable: np.ndarray, exists: np.ndarray) -> pa.Array:
    names = pa.array(matches.labels or [""], pa.string())
    return taken(names, variable.astype(np.int64), exists)


Columns = Sequence[tuple[str, pa.Array]]
"""Columns with their names."""


def shown_table(
    statements: Statements,
    shown: ShownRows,
    measures: Mapping[str, Expression],
    before: Columns,
    behind: Columns,
    *,
    one_row: bool,
) -> pa.Table:
    """The columns before the measures, the measures, and the columns after them, as one table."""
    slots: dict[Slot, int] = {}
    for expression in measures.values():
        for slot in expression.slots:
            slots.setdefault(slot, len(slots))
    columns = SlotColumns(statements, shown, one_row).columns(list(slots))
    # names that no table of a subquery has, which would hide them
    source = {f"{PREFIX}s{number}": column for number, column in enumerate(columns)}
    source[_MATCHED] = pa.array(shown.match >= 0)
    passed = []
    for place, (name, column) in enumerate([*before, *behind]):
        source[f"{PREFIX}b{place}"] = column
        passed.append(alias(f"{PREFIX}b{place}", name))
    measured = []
    for name, expression in measures.items():
        text = written(expression, [f"{PREFIX}s{slots[slot]}" for slot in expression.slots])
        measured.append(
            alias(f"({text})" if shown.is_all else f"CASE WHEN {_MATCHED} THEN ({text}) END", name)
        )
    selected = [*passed[: len(before)], *measured, *passed[len(before) :]]
    relation = unique("shown")
    try:
        return statements.table(
            f"SELECT {', '.join(selected)} FROM {relation}", "MEASURES", {relation: pa.table(source)}
        )
    except QueryError as error:
        if any(expression.tree.find(exp.Query) for expression in measures.values()):
            error.hint = "in a subquery, columns of the match have a variable before them, as in LAST(A.x)"
        raise


_MATCHED: Final = f"{PREFIX}matched"
