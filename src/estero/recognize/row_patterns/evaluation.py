"""MATCH_RECOGNIZE over a relation of DuckDB → its table.

The input is sorted once; what DEFINE asks of rows becomes bits, of which a kernel finds all matches; measures
are read of the matches, as columns of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.row_patterns.positions import ACCEPT, PositionAutomaton
from estero.engine.row_patterns import run_rows
from estero.engine.row_patterns.row_matcher import (
    Extent,
    MatchTable,
    RowMarks,
    SkipFailure,
    find_matches,
    moves_of,
    no_matches,
)
from estero.errors import DataError, QueryError
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
from estero.recognize.row_patterns.computed_values import Computed, with_computed
from estero.recognize.row_patterns.conditions import check_types, row_bits
from estero.recognize.row_patterns.divided_conditions import conditions_of
from estero.recognize.row_patterns.keys import keys_of
from estero.recognize.row_patterns.matches import Matches, shown_rows
from estero.recognize.row_patterns.measures import shown_table, taken
from estero.recognize.row_patterns.ordered_rows import OrderedRows, Relation, ordered_rows
from estero.recognize.row_patterns.resumption import Reach, extent_of, reach_of, remaining
from estero.recognize.row_patterns.scalar_functions import ScalarFunction
from estero.recognize.row_patterns.search import (
    Bounds,
    FarCondition,
    MatchSoFar,
    Search,
    depends_on_start,
)
from estero.recognize.row_patterns.statements import Statements

MOST_STATES: Final = 20_000
"""Automata with more states are searched, not run: their marks would take too much memory."""
_SKIPS: Final = {
    "past last": run_rows.PAST_LAST,
    "next": run_rows.TO_NEXT,
    "first": run_rows.TO_FIRST,
    "last": run_rows.TO_LAST,
}


class Evaluation:
    """One clause over columns with these names and types of DuckDB; raises `QueryError` for what is wrong.

    `relation` is the name that expressions may call the input by.
    """

    def __init__(
        self,
        statements: Statements,
        clause: RowPatternClause,
        columns: Sequence[tuple[str, str]],
        relation: str,
    ) -> None:
        self._statements = statements
        self._clause = clause
        self._types = [kind for _, kind in columns]
        self._names = Names(clause, [name for name, _ in columns], relation, statements.aggregates)
        self._defined, self._measures = read_expressions(self._names)
        self.conditions = conditions_of(self._defined)
        self.partition = keys_of(clause.partition_by, self._names, "PARTITION BY")
        self.order = keys_of(clause.order_by, self._names, "ORDER BY")

    def check(self) -> None:
        """Raises `QueryError` for what is wrong with names and types of the result."""
        self._check_ambiguous()
        check_types(self._statements, self._clause, self._defined, self._slot_types(self._defined))

    def table(self, relation: Relation) -> pa.Table:
        """The result for the rows of a relation that has the columns."""
        return self._shown(*self._matched(relation))

    def table_and_rest(self, relation: Relation, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The same for a relation in pieces, and the rows of `table` that its next piece begins with."""
        rows, matches = self._matched(relation)
        return self._shown(rows, matches), remaining(table, rows, matches, self._reach)

    @cached_property
    def _reach(self) -> Reach:
        return reach_of(self._clause, [*self._defined.values(), *self._measures.values()])

    def _matched(self, relation: Relation) -> tuple[OrderedRows, Matches]:
        rows = ordered_rows(self._statements, relation, self._names, self.needed(), self._types)
        return rows, self._matches(rows)

    def _shown(self, rows: OrderedRows, matches: Matches) -> pa.Table:
        shown = shown_rows(self._clause, matches, rows)
        before, behind = self._beside(rows, shown.row)
        return shown_table(
            self._statements, shown, self._measures, before, behind, one_row=self._clause.rows == "one"
        )

    def _check_ambiguous(self) -> None:
        """Raises `QueryError` for measures that are called as columns of PARTITION BY."""
        keys = {key.name.casefold() for key in self.partition if key.column is not None}
        for measure in self._clause.measures:
            if measure.name.casefold() in keys and self._clause.rows == "one":
                raise QueryError(
                    f"{measure.name!r} is ambiguous: PARTITION BY returns a column of this name, too",
                    text=self._clause.text,
                    span=measure.span,
                    found=measure.name,
                    hint="give the measure another name",
                )

    def needed(self) -> list[int]:
        """The numbers of the columns that are read."""
        if self._clause.rows != "one":
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
        """The columns before the measures and behind them."""
        there = np.ones(row.size, np.bool_)
        columns = self._names.columns
        before = [
            (key.name, taken(values, row, there))
            for key, values in zip(self.partition, rows.keys, strict=True)
        ]
        if self._clause.rows == "one":
            return before, []
        given = {key.column for key in self.partition if key.column is not None}
        for key in self.order:
            if key.column is not None and key.column not in given:
                given.add(key.column)
                before.append((key.name, taken(rows.columns[key.column], row, there)))
        behind = [
            (name, taken(rows.columns[number], row, there))
            for number, name in enumerate(columns)
            if number not in given
        ]
        return before, behind

    # ---------------------------------------- matches

    def _matches(self, rows: OrderedRows) -> Matches:
        longest = int(np.diff(rows.first).max(initial=0))
        automaton = PositionAutomaton(self._clause.pattern, longest)
        if automaton.never or not rows.size:
            return self._named(no_matches(extent_of(rows, self._reach), rows.first), automaton, rows)
        variables = list(self.conditions.near)
        bits = row_bits(self._statements, rows, [self.conditions.near[key] for key in variables])
        explored = automaton.explore(MOST_STATES)
        if not self.conditions.far and explored:
            moves = self._moves(automaton, variables)
            try:
                extent = extent_of(rows, self._reach)
                to = _SKIPS[self._clause.skip.to]
                table = find_matches(bits, rows.first, moves, to, rows.until, extent)
            except SkipFailure as failure:
                raise self._cannot_skip(failure, rows) from None
            return self._named(table, automaton, rows)
        return self._named(
            self._searched(rows, automaton, bits, variables, explored=explored), automaton, rows
        )

    def _moves(self, automaton: PositionAutomaton, variables: Sequence[str]) -> run_rows.Moves:
        wanted = self._skipped()
        moves = [
            [
                (run_rows.ACCEPT if target == ACCEPT else target, asked)
                for target, asked in automaton.moves(state)
            ]
            for state in range(len(automaton.states))
        ]
        numbers = [
            variables.index(state.variable) if state.variable in variables else run_rows.ANY_ROW
            for state in automaton.states
        ]
        return moves_of(moves, numbers, [state.variable in wanted for state in automaton.states])

    def _skipped(self) -> frozenset[str]:
        variable = self._clause.skip.variable
        return frozenset() if variable is None else self._clause.names[variable.key]

    def _cannot_skip(self, failure: SkipFailure, rows: OrderedRows) -> DataError:
        variable = self._clause.skip.variable
        key = ", ".join(str(column[failure.start].as_py()) for column in rows.keys)
        where = f" of the partition {key}" if key else ""
        place = int(failure.start - rows.first[failure.partition]) + 1
        if rows.progress is not None:
            place += int(rows.progress.dropped[failure.partition])
        if failure.no_row:
            return DataError(
                f"AFTER MATCH SKIP TO {variable}: found a match with no row matched to {variable}, "
                f"so the search cannot "
                f"advance; the match starts at row {place}{where}",
                hint="SKIP PAST LAST ROW or SKIP TO NEXT ROW always go on",
            )
        return DataError(
            f"AFTER MATCH SKIP TO {variable}: the search resumes at the row the match started on, "
            f"so it cannot advance; "
            f"the match starts at row {place}{where}",
            hint="skip to a variable that is not the first row, or SKIP TO NEXT ROW",
        )

    def _named(self, table: MatchTable, automaton: PositionAutomaton, rows: OrderedRows) -> Matches:
        keys = tuple(self._clause.variables)
        numbers = {key: number for number, key in enumerate(keys)}
        of_state = np.array([numbers.get(state.variable, 0) for state in automaton.states], np.int32)
        excluded = np.array([state.excluded for state in automaton.states], np.bool_)
        return Matches(
            table.start,
            table.length,
            table.partition,
            of_state[table.states],
            excluded[table.states],
            keys,
            tuple(variable.name for variable in self._clause.variables.values()),
            table.resume,
            np.zeros(rows.first.size - 1, np.int64) if rows.progress is None else rows.progress.number,
        )

    # ---------------------------------------- search

    def _searched(
        self,
        rows: OrderedRows,
        automaton: PositionAutomaton,
        bits: NDArray[np.uint64],
        variables: Sequence[str],
        *,
        explored: bool,
    ) -> MatchTable:
        far = {
            variable: with_computed(self._statements, rows, condition)
            for variable, condition in self.conditions.far.items()
        }
        types = self._slot_types(self.conditions.far)
        functions = {
            variable: FarCondition(
                ScalarFunction(
                    condition,
                    [slot.kind if isinstance(slot, Computed) else types[slot] for slot in condition.slots],
                    self._statements,
                    f"DEFINE {variable}",
                ),
                condition.slots,
            )
            for variable, condition in far.items()
        }
        names = {key: variable.name for key, variable in self._clause.variables.items()}
        so_far = MatchSoFar(rows, far, names, self._statements)
        from_anywhere = rows.until is None and not any(map(depends_on_start, far.values()))
        marks = RowMarks(bits, rows.first, self._moves(automaton, variables)) if explored else None
        places = {key: place for place, key in enumerate(variables)}

        def live(state: int, row: int) -> bool:
            if marks is not None:
                return marks.has(state, row)
            place = places.get(automaton.states[state].variable)
            return place is None or bool(int(bits[row, place >> 6]) >> (place & 63) & 1)

        search = Search(
            automaton, functions, so_far, live, from_anywhere=from_anywhere, names=[names[key] for key in far]
        )
        return self._all_of(search, automaton, rows, marks)

    def _all_of(
        self, search: Search, automaton: PositionAutomaton, rows: OrderedRows, marks: RowMarks | None
    ) -> MatchTable:
        skip, wanted = self._clause.skip, self._skipped()
        extent = extent_of(rows, self._reach) or Extent.whole(rows.first)
        resume = extent.begin.copy()
        starts: list[int] = []
        lengths: list[int] = []
        partitions: list[int] = []
        states: list[int] = []
        for partition in range(rows.first.size - 1):
            begin, end = int(rows.first[partition]), int(rows.first[partition + 1])
            if marks is not None:
                marks.go_to(partition)
            start, number = int(extent.begin[partition]), 1
            if rows.progress is not None:
                number += int(rows.progress.number[partition])
            origin = int(extent.origin[partition])
            while start < extent.stop[partition]:
                until = end if rows.until is None else int(rows.until[start])
                path = search.from_start(start, Bounds(origin, begin, end, until), number)
                if path is None:
                    start += 1
                    continue
                number += 1
                starts.append(start)
                lengths.append(len(path))
                partitions.append(partition)
                states += path
                if skip.to == "next" or not path:
                    start += 1
                elif skip.variable is None:
                    start += len(path)
                else:
                    mine = [
                        place
                        for place, state in enumerate(path)
                        if automaton.states[state].variable in wanted
                    ]
                    place = (mine[0] if skip.to == "first" else mine[-1]) if mine else -1
                    if place <= 0:
                        raise self._cannot_skip(SkipFailure(0, start, partition, no_row=place < 0), rows)
                    start += place
            resume[partition] = start
        return MatchTable(
            np.array(starts, np.int64),
            np.array(lengths, np.int64),
            np.array(partitions, np.int64),
            np.array(states, np.int32),
            resume,
        )

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
