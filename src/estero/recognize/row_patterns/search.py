"""Matches where DEFINE looks at the match so far: a search that gives rows back.

Rows and states from which no match can end, whatever the rest of DEFINE says, are never entered. Where the conditions
depend on the start and the current row alone, a pair of state and row that failed fails again, and is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from estero.automata.row_patterns.positions import ACCEPT, AT_END, AT_START, START, PositionAutomaton
from estero.errors import LimitExceeded
from estero.language.row_patterns.slots import (
    Address,
    Aggregate,
    Count,
    Expression,
    Label,
    MatchNumber,
    Presence,
    Rows,
    Slot,
    Value,
)
from estero.recognize.row_patterns.ordered_rows import OrderedRows
from estero.recognize.row_patterns.running_aggregates import Running, running_aggregate
from estero.recognize.row_patterns.scalar_functions import ScalarFunction
from estero.recognize.row_patterns.statements import Statements

MOST_STEPS: Final = 3_000_000
"""So many rows are tried from one start before the search gives up."""

Live = Callable[[int, int], bool]
"""Whether a match may still end where a row has a state."""


def is_of_start(condition: Expression) -> bool:
    """Whether a condition depends on the start of the match and the current row alone."""
    for slot in condition.slots:
        match slot:
            case Value(address) | Presence(address) if address.is_of_start:
                continue
            case Count(rows=None) | MatchNumber():
                continue
            case Aggregate(rows=None, call=call, filter=filtered) if "label" not in call + filtered:
                continue
        return False
    return True


@dataclass(frozen=True)
class FarCondition:
    """What the match so far decides of a condition: a function of the values of its slots."""

    function: ScalarFunction
    slots: tuple[Slot, ...]


class MatchSoFar:
    """The rows of a match as far as it is known, and what slots read of it."""

    def __init__(
        self,
        rows: OrderedRows,
        conditions: Mapping[str, Expression],
        labels: Mapping[str, str],
        statements: Statements,
    ) -> None:
        self._rows, self._labels = rows, labels
        self.start = self.row = self.begin = self.end = self.number = 0
        self._variables: list[str] = []
        slots = dict.fromkeys(slot for condition in conditions.values() for slot in condition.slots)
        self._places: dict[Rows, list[int]] = {rows: [] for rows in map(_rows_of, slots) if rows is not None}
        self._aggregates: dict[Aggregate, Running] = {
            slot: running_aggregate(slot, rows, statements) for slot in slots if isinstance(slot, Aggregate)
        }
        mine = {label for condition in conditions for label in [condition]}
        every = {*labels, *mine}
        self._pushed = {
            key: [places for rows, places in self._places.items() if rows and key in rows] for key in every
        }
        self._added = {
            key: [run for slot, run in self._aggregates.items() if slot.rows is None or key in slot.rows]
            for key in every
        }

    def begin_at(self, start: int, begin: int, end: int, number: int) -> None:
        """An empty match from `start` in a partition."""
        self.start, self.row, self.begin, self.end, self.number = start, start - 1, begin, end, number
        self._variables.clear()
        for places in self._places.values():
            places.clear()
        for run in self._aggregates.values():
            run.clear()

    def push(self, variable: str) -> None:
        """The next row has this variable."""
        self.row += 1
        self._variables.append(variable)
        for places in self._pushed[variable]:
            places.append(self.row)
        for run in self._added[variable]:
            run.push(self.row, self._labels[variable])

    def pop(self) -> None:
        """Gives the last row back."""
        variable = self._variables.pop()
        for places in self._pushed[variable]:
            places.pop()
        for run in self._added[variable]:
            run.pop()
        self.row -= 1

    def value(self, slot: Slot) -> Any:
        """What a slot reads."""
        match slot:
            case Value(address, column):
                row = self._at(address)
                return None if row is None else self._rows.values(column)[row]
            case Presence(address):
                return self._at(address) is not None
            case Label(address):
                row = self._at(address)
                if row is None or not self.start <= row <= self.row:
                    return None
                return self._labels[self._variables[row - self.start]]
            case Count(rows):
                return self.row - self.start + 1 if rows is None else len(self._places[rows])
            case Aggregate():
                return self._aggregates[slot].value()
        return self.number

    def _at(self, address: Address) -> int | None:
        """The row that an address names."""
        if address.rows is None:
            row = self.row - address.offset if address.last else self.start + address.offset
            if not self.start <= row <= self.row:
                return None
        else:
            places = self._places[address.rows]
            if address.offset >= len(places):
                return None
            row = places[-1 - address.offset] if address.last else places[address.offset]
        row += address.shift
        return row if self.begin <= row < self.end else None


def _rows_of(slot: Slot) -> Rows:
    match slot:
        case Value(address) | Presence(address) | Label(address):
            return address.rows
        case Count(rows):
            return rows
    return None


class Search:
    """The preferred match from one start after the other."""

    def __init__(
        self,
        automaton: PositionAutomaton,
        far: Mapping[str, FarCondition],
        so_far: MatchSoFar,
        live: Live,
        *,
        remembers: bool,
        names: Sequence[str],
    ) -> None:
        self._automaton, self._far, self._so_far, self._live = automaton, far, so_far, live
        self._remembers, self._names = remembers, names

    def from_start(self, start: int, begin: int, end: int, until: int, number: int) -> list[int] | None:
        """The states of the preferred match's rows; None if there is no match."""
        automaton, so_far = self._automaton, self._so_far
        so_far.begin_at(start, begin, end, number)
        failed: set[tuple[int, int]] = set()
        path: list[int] = []
        waiting = [iter(automaton.moves(START))]
        steps = 0
        while waiting:
            at = start + len(path)
            border = (AT_START if at == begin else 0) | (AT_END if at == end else 0)
            for target, asked in waiting[-1]:
                if asked & ~border:
                    continue
                if target == ACCEPT:
                    return path
                if at >= until or (target, at) in failed or not self._live(target, at):
                    continue
                steps += 1
                if steps > MOST_STEPS:
                    raise self._too_many(start - begin)
                variable = automaton.states[target].variable
                so_far.push(variable)
                condition = self._far.get(variable)
                if condition is None or condition.function([so_far.value(slot) for slot in condition.slots]):
                    path.append(target)
                    waiting.append(iter(automaton.moves(target)))
                    break
                so_far.pop()
            else:
                waiting.pop()
                if path:
                    if self._remembers:
                        failed.add((path[-1], at - 1))
                    path.pop()
                    so_far.pop()
        return None

    def _too_many(self, place: int) -> LimitExceeded:
        names = ", ".join(self._names)
        return LimitExceeded(
            f"DEFINE of {names} looks at the match so far, and more than {MOST_STEPS:,} rows were tried from row "
            f"{place + 1} of a partition: say more of a row itself in DEFINE, or limit the match by WITHIN or {{n,m}}"
        )
