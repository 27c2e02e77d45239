"""Matches of a clause in ordered rows: found by a kernel if rows decide, else by a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Final, NamedTuple

import numpy as np
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
from estero.errors import DataError
from estero.language.row_patterns.slots import Slot
from estero.language.row_patterns.tree import RowPatternClause
from estero.recognize.row_patterns.computed_values import Computed, with_computed
from estero.recognize.row_patterns.conditions import row_bits
from estero.recognize.row_patterns.divided_conditions import Conditions
from estero.recognize.row_patterns.matches import Matches
from estero.recognize.row_patterns.ordered_rows import OrderedRows
from estero.recognize.row_patterns.resumption import Surroundings, extent_of
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
"""The most states of an automaton that is run; larger ones are searched, since their marks would take too
much memory.
"""
_SKIPS: Final = {
    "past last": run_rows.PAST_LAST,
    "next": run_rows.TO_NEXT,
    "first": run_rows.TO_FIRST,
    "last": run_rows.TO_LAST,
}


class _Automaton(NamedTuple):
    """An automaton, and its moves unless they are too many."""

    automaton: PositionAutomaton
    moves: run_rows.Moves | None


class MatchFinder:
    """Finds matches in one block of rows after the other, in several threads if a kernel finds them.

    `types` are DuckDB's types of the values that DEFINE reads of the match so far, `around` says which rows
    around a match are read, and `longest` is the number of rows of the longest partition of all blocks, if
    known.
    """

    conditions: Conditions

    def __init__(
        self,
        clause: RowPatternClause,
        conditions: Conditions,
        types: Mapping[Slot, str],
        around: Surroundings,
        longest: int | None = None,
    ) -> None:
        self._clause, self.conditions, self._types = clause, conditions, types
        self._around, self._longest = around, longest
        self._variables = list(conditions.near)
        self._automata: dict[int, _Automaton] = {}
        self._lock = Lock()

    def matches(self, rows: OrderedRows, statements: Statements) -> Matches:
        """All matches of a block; raises `DataError` if the search cannot continue after one."""
        automaton, moves = self._automaton(int(np.diff(rows.first).max(initial=0)))
        if automaton.never or not rows.size:
            return self._named(no_matches(extent_of(rows, self._around), rows.first), automaton, rows)
        bits = row_bits(statements, rows, [self.conditions.near[key] for key in self._variables])
        if not self.conditions.far and moves is not None:
            try:
                extent = extent_of(rows, self._around)
                to = _SKIPS[self._clause.skip.to]
                reached = None if rows.starts is None else rows.starts.reached
                table = find_matches(bits, rows.first, moves, to, rows.until, extent, reached)
            except SkipFailure as failure:
                raise self._cannot_skip(failure, rows) from None
            return self._named(table, automaton, rows)
        with self._lock:  # the automaton may get further states
            table = self._searched(rows, statements, automaton, bits, moves)
            return self._named(table, automaton, rows)

    def _automaton(self, longest: int) -> _Automaton:
        """The automaton for partitions of that many rows, and its moves."""
        longest = (1 << longest.bit_length()) if self._longest is None else self._longest
        with self._lock:
            if longest not in self._automata:
                automaton = PositionAutomaton(self._clause.pattern, longest)
                explored = not automaton.never and automaton.explore(MOST_STATES)
                self._automata[longest] = _Automaton(automaton, self._moves(automaton) if explored else None)
            return self._automata[longest]

    def _moves(self, automaton: PositionAutomaton) -> run_rows.Moves:
        variables = self._variables
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
                hint="SKIP PAST LAST ROW or SKIP TO NEXT ROW can always continue",
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
        statements: Statements,
        automaton: PositionAutomaton,
        bits: NDArray[np.uint64],
        moves: run_rows.Moves | None,
    ) -> MatchTable:
        far = {
            variable: with_computed(statements, rows, condition)
            for variable, condition in self.conditions.far.items()
        }
        types = self._types
        functions = {
            variable: FarCondition(
                ScalarFunction(
                    condition,
                    [slot.kind if isinstance(slot, Computed) else types[slot] for slot in condition.slots],
                    statements,
                    f"DEFINE {variable}",
                ),
                condition.slots,
            )
            for variable, condition in far.items()
        }
        names = {key: variable.name for key, variable in self._clause.variables.items()}
        so_far = MatchSoFar(rows, far, names, statements)
        from_anywhere = rows.until is None and not any(map(depends_on_start, far.values()))
        marks = RowMarks(bits, rows.first, moves) if moves is not None else None
        places = {key: place for place, key in enumerate(self._variables)}

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
        reached = None if rows.starts is None else rows.starts.reached
        extent = extent_of(rows, self._around) or Extent.whole(rows.first)
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
                if reached is not None and not reached[start]:
                    start += 1
                    continue
                until = end if rows.until is None else int(rows.until[start])
                path = search.from_start(start, Bounds(origin, begin, end, until), number)
                on_by = 1
                if path is not None:
                    number += 1
                    starts.append(start)
                    lengths.append(len(path))
                    partitions.append(partition)
                    states += path
                    on_by = self._on_by([automaton.states[state].variable for state in path])
                    if on_by <= 0:
                        raise self._cannot_skip(SkipFailure(0, start, partition, no_row=on_by < 0), rows)
                if reached is not None:
                    reached[start + on_by] = True
                    on_by = 1
                start += on_by
            resume[partition] = start
        return MatchTable(
            np.array(starts, np.int64),
            np.array(lengths, np.int64),
            np.array(partitions, np.int64),
            np.array(states, np.int32),
            resume,
        )

    def _on_by(self, path: Sequence[str]) -> int:
        """The number of rows to go on by after a match of these variables; 0 or -1 if it is impossible."""
        skip, wanted = self._clause.skip, self._skipped()
        if skip.to == "next" or not path:
            return 1
        if skip.variable is None:
            return len(path)
        mine = [place for place, variable in enumerate(path) if variable in wanted]
        return (mine[0] if skip.to == "first" else mine[-1]) if mine else -1
