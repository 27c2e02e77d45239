"""MATCH_RECOGNIZE over a relation of DuckDB → its table.

The input is read once, in blocks of whole partitions that are sorted separately; the conditions of DEFINE on
rows become bits, from which a kernel finds all matches; measures are computed from the matches, as columns of
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from estero.classify.arrays import one_array
from estero.errors import QueryError
from estero.events.fetching import mapped
from estero.language.row_patterns.check import read_expressions
from estero.language.row_patterns.expressions import Names
from estero.language.row_patterns.slots import (
    Aggregate,
    Count,
    Expression,
    Label,
    MatchNumber,
    Presence,
    Slot,
    Value,
)
from estero.language.row_patterns.tree import RowPatternClause
from estero.recognize.row_patterns.conditions import check_types
from estero.recognize.row_patterns.divided_conditions import Conditions, conditions_of
from estero.recognize.row_patterns.keys import Key, keys_of
from estero.recognize.row_patterns.match_finder import MatchFinder
from estero.recognize.row_patterns.matches import Matches, ShownRows, resumed_rows, shown_rows
from estero.recognize.row_patterns.measures import shown_table, taken
from estero.recognize.row_patterns.ordered_rows import OrderedRows, Relation, ordered_rows
from estero.recognize.row_patterns.resumption import (
    Surroundings,
    reads_number,
    remaining,
    surroundings_of,
)
from estero.recognize.row_patterns.row_blocks import Block, blocks_of
from estero.recognize.row_patterns.selection import selection
from estero.recognize.row_patterns.statements import PREFIX, Statements, unique
from estero.recognize.row_patterns.time_windows import length_of, window_columns
from estero.system.cached_property import cached_property
from estero.system.cores import threads_to_use


class RangePart(NamedTuple):
    """The result for a part of the rows, as a table.

    `start` and `resume` int64[rows] are for each row the beginning of its match, and the row at which the
    search continues after it; `stop` is the first start that is not decided.
    """

    table: pa.Table
    start: NDArray[np.int64]
    resume: NDArray[np.int64]
    stop: int


class Evaluation:
    """A clause over columns with these names and types of DuckDB; raises `QueryError` if it is invalid.

    `relation` is the name by which expressions may refer to the input.
    """

    def __init__(
        self,
        statements: Statements,
        clause: RowPatternClause,
        columns: Sequence[tuple[str, str]],
        relation: str,
    ) -> None:
        self._statements = statements
        self.clause = clause
        self._types = [kind for _, kind in columns]
        self._names = Names(clause, [name for name, _ in columns], relation, statements.aggregates)
        self._defined, self._measures = read_expressions(self._names)
        self.conditions: Conditions = conditions_of(self._defined)
        self.partition: list[Key] = keys_of(clause.partition_by, self._names, "PARTITION BY")
        self.order: list[Key] = keys_of(clause.order_by, self._names, "ORDER BY")

    def check(self) -> None:
        """Raises `QueryError` if names or types of the result are invalid."""
        self._check_ambiguous()
        check_types(self._statements, self.clause, self._defined, self._slot_types(self._defined))

    def table(self, relation: Relation, *, apart: bool = False) -> pa.Table:
        """The result for the rows of a relation that has the columns.

        `apart`: whether other connections to the same database know all functions that this one knows.
        """
        if relation.sorted:
            return self._shown(*self._matched(relation), self._statements)
        chosen = selection(relation, self._names, self.needed(), self._types)
        apart = apart and not any(part.tree.find(exp.Query) for part in self._measures.values())
        blocks, longest = blocks_of(self._statements, chosen, self._names, streamed=apart)
        finder = self._finder(longest)

        def part(block: Block) -> pa.Table:
            statements = self._statements.aside() if apart else self._statements
            rows = block()
            return self._shown(rows, finder.matches(rows, statements), statements)

        threads = threads_to_use() if apart and not self.conditions.far else 1
        return pa.concat_tables(mapped(part, blocks, threads, ahead_by=1))

    def table_and_rest(self, relation: Relation, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The result for a relation in pieces, and the rows of `table` with which its next piece begins."""
        rows, matches = self._matched(relation)
        return self._shown(rows, matches, self._statements), remaining(
            table, rows, matches, self.surroundings
        )

    def part_of_range(self, relation: Relation) -> RangePart:
        """The matches that begin at `Relation.starts`, for a relation whose other rows are only read."""
        rows, matches = self._matched(relation)
        shown = shown_rows(self.clause, matches, rows)
        table = self._table_of(rows, shown, self._statements)
        start, resume = matches.start, resumed_rows(self.clause, matches)
        return RangePart(table, start[shown.match], resume[shown.match], int(matches.resume[0]))

    def deadlines(self, times: pa.Array) -> pa.Array:
        """The latest times of matches, given times of the first entry of ORDER BY."""
        name = unique("times")
        columns = window_columns(self._names, [replace(self.order[0], value="t")], PREFIX, known="")
        sql = f"SELECT {', '.join(columns)} FROM {name}"
        return one_array(self._statements.table(sql, "WITHIN", {name: pa.table({"t": times})}).column(1))

    def window_length(self) -> Any:
        """The value of WITHIN: a number, or an interval with months, days and nanoseconds."""
        table = self._statements.table(f"SELECT ({length_of(self._names)})", "WITHIN")
        return table.column(0)[0].as_py()

    @property
    def reads_number(self) -> bool:
        """Whether DEFINE or MEASURES read MATCH_NUMBER()."""
        return reads_number([*self._defined.values(), *self._measures.values()])

    @cached_property
    def surroundings(self) -> Surroundings:
        """The rows around a match that are read."""
        return surroundings_of(self.clause, [*self._defined.values(), *self._measures.values()])

    def _finder(self, longest: int | None) -> MatchFinder:
        types = self._slot_types(self.conditions.far)
        return MatchFinder(self.clause, self.conditions, types, self.surroundings, longest)

    @cached_property
    def _finder_in_pieces(self) -> MatchFinder:
        return self._finder(None)

    def _matched(self, relation: Relation) -> tuple[OrderedRows, Matches]:
        rows = ordered_rows(self._statements, relation, self._names, self.needed(), self._types)
        return rows, self._finder_in_pieces.matches(rows, self._statements)

    def _shown(self, rows: OrderedRows, matches: Matches, statements: Statements) -> pa.Table:
        return self._table_of(rows, shown_rows(self.clause, matches, rows), statements)

    def _table_of(self, rows: OrderedRows, shown: ShownRows, statements: Statements) -> pa.Table:
        before, behind = self._beside(rows, shown.row)
        return shown_table(
            statements, shown, self._measures, before, behind, one_row=self.clause.rows == "one"
        )

    def _check_ambiguous(self) -> None:
        """Raises `QueryError` for measures with the names of columns of PARTITION BY."""
        keys = {key.name.casefold() for key in self.partition if key.column is not None}
        for measure in self.clause.measures:
            if measure.name.casefold() in keys and self.clause.rows == "one":
                raise QueryError(
                    f"{measure.name!r} is ambiguous: PARTITION BY returns a column of this name, too",
                    text=self.clause.text,
                    span=measure.span,
                    found=measure.name,
                    hint="give the measure another name",
                )

    def needed(self) -> list[int]:
        """The numbers of the columns that are read."""
        if self.clause.rows != "one":
            return list(range(len(self._types)))
        slots = [
            slot
            for part in (self._defined, self._measures)
            for expression in part.values()
            for slot in expression.slots
        ]
        numbers = {slot.column for slot in slots if isinstance(slot, Value)}
        numbers |= {number for slot in slots if isinstance(slot, Aggregate) for number in slot.columns}
        return sorted(numbers)

    def _beside(
        self, rows: OrderedRows, row: NDArray[np.int64]
    ) -> tuple[list[tuple[str, pa.Array]], list[tuple[str, pa.Array]]]:
        """The columns before the measures and after them."""
        all_exist = np.ones(row.size, np.bool_)
        columns = self._names.columns
        before = [
            (key.name, taken(values, row, all_exist))
            for key, values in zip(self.partition, rows.keys, strict=True)
        ]
        if self.clause.rows == "one":
            return before, []
        given = {key.column for key in self.partition if key.column is not None}
        for key in self.order:
            if key.column is not None and key.column not in given:
                given.add(key.column)
                before.append((key.name, taken(rows.columns[key.column], row, all_exist)))
        behind = [
            (name, taken(rows.columns[number], row, all_exist))
            for number, name in enumerate(columns)
            if number not in given
        ]
        return before, behind

    def _slot_types(self, expressions: Mapping[str, Expression]) -> dict[Slot, str]:
        """The types of DuckDB of all slots."""
        slots = dict.fromkeys(slot for expression in expressions.values() for slot in expression.slots)
        types: dict[Slot, str] = {}
        aggregates = []
        for slot in slots:
            match slot:
                case Value(column=column):
                    types[slot] = self._types[column]
                case Label():
                    types[slot] = "VARCHAR"
                case Presence():
                    types[slot] = "BOOLEAN"
                case Count() | MatchNumber():
                    types[slot] = "BIGINT"
                case Aggregate():
                    aggregates.append(slot)
        if aggregates:
            columns = [f"CAST(NULL AS {kind}) AS c{number}" for number, kind in enumerate(self._types)]
            columns += ["CAST(NULL AS VARCHAR) AS label", "CAST(NULL AS BIGINT) AS number"]
            source = f"(SELECT {', '.join(columns)})"
            calls = [f"{slot.call} AS a{number}" for number, slot in enumerate(aggregates)]
            described = self._statements.types(f"SELECT {', '.join(calls)} FROM {source}", "DEFINE")
            types.update(zip(aggregates, [kind for _, kind in described], strict=True))
        return types
