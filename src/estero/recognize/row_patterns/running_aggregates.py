"""Aggregates over the rows of a match so far, as a search adds and removes rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from typing import Any, Final, Protocol

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from estero.language.row_patterns.slots import Aggregate, column_name
from estero.recognize.row_patterns.ordered_rows import OrderedRows
from estero.recognize.row_patterns.statements import Statements, unique

_KINDS: Final = (exp.Sum, exp.Count, exp.Min, exp.Max, exp.Avg)
_NUMBERS: Final = (int, float, Decimal)


class Running(Protocol):
    """An aggregate to which rows are added and from which they are removed."""

    def push(self, row: int, label: str) -> None:
        """Adds a row."""

    def pop(self) -> None:
        """Removes the last row."""

    def clear(self, number: int) -> None:
        """Removes all rows; the next match has this number."""

    def value(self) -> Any:
        """Its value."""

    def memory(self) -> Hashable:
        """The state to which further rows are added."""


def running_aggregate(slot: Aggregate, rows: OrderedRows, statements: Statements) -> Running:
    """The aggregate, computed step by step if that is simple, else by DuckDB over all rows so far."""
    simple = _argument(slot)
    if simple is not None:
        kind, argument = simple
        values = _values(argument, slot, rows, statements)
        if values is not None:
            return _Stepwise(kind, values)
    return _ByDuckDB(slot, rows, statements)


def _argument(slot: Aggregate) -> tuple[type[exp.Expr], exp.Expr] | None:
    try:
        call = sqlglot.parse_one(slot.call, dialect="duckdb")
    except SqlglotError:
        return None
    if slot.filter or type(call) not in _KINDS or call.expressions:
        return None
    argument = call.this
    if not isinstance(argument, exp.Expr) or isinstance(argument, exp.Distinct | exp.Order | exp.Star):
        return None
    if any(column.name in ("label", "number") for column in argument.find_all(exp.Column)):
        return None
    return type(call), argument


def _values(
    argument: exp.Expr, slot: Aggregate, rows: OrderedRows, statements: Statements
) -> list[Any] | None:
    """The argument's value for each row; None if Python does not add such values as DuckDB does."""
    if not slot.columns:
        return None
    name = unique("argument")
    columns = {column_name(number): rows.columns[number] for number in slot.columns}
    sql = f"SELECT {argument.sql('duckdb')} AS argument FROM {name}"
    column = statements.table(sql, "DEFINE", {name: pa.table(columns)}).column(0)
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_float64(kind) or pa.types.is_decimal(kind)):
        return None
    values: list[Any] = column.to_pylist()
    if pa.types.is_float64(kind) and any(value is not None and value != value for value in values):  # noqa: PLR0124
        return None
    return values


class _Stepwise:
    """Sums, counts, least and greatest values and averages."""

    def __init__(self, kind: type[exp.Expr], values: Sequence[Any]) -> None:
        self._values = values
        self._count = [0]
        self._total: list[Any] = [None]
        self._kind = kind
        self._add: Callable[[Any, Any], Any] = (
            min if kind is exp.Min else max if kind is exp.Max else operator.add
        )

    def push(self, row: int, label: str) -> None:  # noqa: ARG002 - others ask it
        value, total = self._values[row], self._total[-1]
        if value is None:
            self._count.append(self._count[-1])
            self._total.append(total)
            return
        self._count.append(self._count[-1] + 1)
        self._total.append(value if total is None else self._add(total, value))

    def pop(self) -> None:
        self._count.pop()
        self._total.pop()

    def clear(self, number: int) -> None:  # noqa: ARG002 - others ask it
        del self._count[1:], self._total[1:]

    def value(self) -> Any:
        if self._kind is exp.Count:
            return self._count[-1]
        total = self._total[-1]
        if self._kind is exp.Avg and total is not None:
            return float(total) / self._count[-1]
        return total

    def memory(self) -> Hashable:
        return self._count[-1] if self._kind in (exp.Count, exp.Avg) else 0, self._total[-1]


class _ByDuckDB:
    """Any aggregate, computed anew at each call."""

    def __init__(self, slot: Aggregate, rows: OrderedRows, statements: Statements) -> None:
        self._slot, self._rows, self._statements = slot, rows, statements
        self._pushed: list[tuple[int, str]] = []
        self._number = 1

    def push(self, row: int, label: str) -> None:
        self._pushed.append((row, label))

    def pop(self) -> None:
        self._pushed.pop()

    def clear(self, number: int) -> None:
        self._pushed.clear()
        self._number = number

    def memory(self) -> Hashable:
        return tuple(self._pushed)

    def value(self) -> Any:
        slot, name = self._slot, unique("so_far")
        index = pa.array([row for row, _ in self._pushed], pa.int64())
        columns: dict[str, pa.Array] = {
            "place": index,
            "label": pa.array([label for _, label in self._pushed], pa.string()),
            "number": pa.array([self._number] * len(self._pushed), pa.int64()),
        }
        for number in slot.columns:
            columns[column_name(number)] = self._rows.columns[number].take(index)
        call = slot.call[:-1] + " ORDER BY place)" if slot.ordered else slot.call
        condition = f" FILTER (WHERE {slot.filter})" if slot.filter else ""
        table = self._statements.table(
            f"SELECT {call}{condition} FROM {name}", "DEFINE", {name: pa.table(columns)}
        )
        return table.column(0)[0].as_py()
