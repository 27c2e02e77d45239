"""Matches where DEFINE reads the match so far: a search with backtracking.

Rows and states from which no match can end, whatever the rest of DEFINE says, are never entered. Failures are
remembered: the state, the row, and all that DEFINE can still read of the rows so far, such as a sum or the
last row of a variable. Whatever agrees in these fails again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from estero.automata.row_patterns.positions import ACCEPT, AT_END, AT_START, START, Move, PositionAutomaton
from estero.errors import LimitExceeded
from estero.language.row_patterns.slots import (
    Address,
    Aggregate,
    Count,
    Expression,
    Label,
    Presence,
    Rows,
    Value,
)
from estero.recognize.row_patterns.computed_values import Computed, FarExpression, FarSlot
from estero.recognize.row_patterns.ordered_rows import OrderedRows
from estero.recognize.row_patterns.running_aggregates import Running, running_aggregate
from estero.recognize.row_patterns.scalar_functions import ScalarFunction
from estero.recognize.row_patterns.statements import Statements

MOST_STEPS: Final = 1_000_000
"""The number of rows tried from one start before the search gives up."""
_UNREMEMBERED: Final = 500
"""The number of rows tried before failures are remembered, if that takes more than a state and a row."""
_MOST_REMEMBERED: Final = 1_000_000

Live = Callable[[int, int], bool]
"""Whether a match may still end if a row has a state."""


def depends_on_start(condition: FarExpression) -> bool:
    """Whether a condition depends on where the match starts, but not on what is remembered of it."""
    for slot in condition.slots:
        match slot:
            case Value(address) | Presence(address) | Label(address) | Computed(address):
                if address.rows is None and not address.is_near:
                    return True
            case Count(rows=None):
                return True
    return False


def remembers_pairs(conditions: Iterable[Expression | FarExpression]) -> bool:
    """Whether a state and a row determine all that conditions can still read of a match from one start."""
    return all(_memory_of(slot) is None for condition in conditions for slot in condition.slots)


def _memory_of(slot: FarSlot) -> Callable[[MatchSoFar], Hashable] | None:
    """The values that a slot can still read of the rows so far; None if start and row determine them."""
    match slot:
        case Value(address) | Presence(address) | Computed(address) if address.rows is not None:
            rows, count, last = address.rows, address.offset + 1, address.last
            return lambda so_far: so_far.places(rows, count, last=last)
        case Count(rows) if rows is not None:
            return lambda so_far: so_far.count(rows)
        case Label(address):
            if address.rows is None and address.last and address.shift <= 0:
                before = address.offset + 1 - address.shift
                return lambda so_far: so_far.variables(-before, None)
            if address.rows is None and not address.last:
                behind = address.offset + 1 + max(address.shift, 0)
                return lambda so_far: so_far.variables(0, behind)
            return lambda so_far: so_far.variables(0, None)
        case Aggregate():
            return lambda so_far: so_far.memory(slot)
    return None


@dataclass(frozen=True)
class FarCondition:
    """The part of a condition that the match so far decides: a function of the values of its slots."""

    function: ScalarFunction
    slots: tuple[FarSlot, ...]


class MatchSoFar:
    """The rows of a match so far, and the values that slots read from it."""

    start: int
    row: int
    begin: int
    end: int
    number: int

    def __init__(
        self,
        rows: OrderedRows,
        conditions: Mapping[str, FarExpression],
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
        every = {*labels, *conditions}
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
            run.clear(number)

    def push(self, variable: str) -> None:
        """Adds the next row, with this variable."""
        self.row += 1
        self._variables.append(variable)
        for places in self._pushed[variable]:
            places.append(self.row)
        for run in self._added[variable]:
            run.push(self.row, self._labels[variable])

    def pop(self) -> None:
        """Removes the last row."""
        variable = self._variables.pop()
        for places in self._pushed[variable]:
            places.pop()
        for run in self._added[variable]:
            run.pop()
        self.row -= 1

    def places(self, rows: Rows, count: int, *, last: bool) -> Hashable:
        """The first or last rows of these variables."""
        places = self._places[rows]
        return tuple(places[-count:] if last else places[:count])

    def count(self, rows: Rows) -> int:
        """The number of rows of these variables."""
        return len(self._places[rows])

    def variables(self, first: int, end: int | None) -> Hashable:
        """The variables of rows, indexed as in Python."""
        return tuple(self._variables[first:end])

    def memory(self, slot: Aggregate) -> Hashable:
        """The state from which an aggregate continues."""
        return self._aggregates[slot].memory()

    def value(self, slot: FarSlot) -> Any:
        """The value that a slot reads."""
        match slot:
            case Computed(address, values, absent):
                row = self._at(address)
                return absent if row is None else values[row]
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


def _rows_of(slot: FarSlot) -> Rows:
    match slot:
        case Value(address) | Presence(address) | Label(address) | Computed(address):
            return address.rows
        case Count(rows):
            return rows
    return None


class Bounds(NamedTuple):
    """The first row of a partition, -1 if not here; the end of its rows; the end of those to match."""

    origin: int
    begin: int
    end: int
    until: int


class Search:
    """The preferred match from one start after the other."""

    def __init__(
        self,
        automaton: PositionAutomaton,
        far: Mapping[str, FarCondition],
        so_far: MatchSoFar,
        live: Live,
        *,
        from_anywhere: bool,
        names: Sequence[str],
    ) -> None:
        self._automaton, self._far, self._so_far, self._live = automaton, far, so_far, live
        self._from_anywhere, self._names = from_anywhere, names
        slots = dict.fromkeys(slot for condition in far.values() for slot in condition.slots)
        self._memories = [memory for slot in slots if (memory := _memory_of(slot)) is not None]
        self._unremembered = _UNREMEMBERED if self._memories else 0
        self._failed: set[Hashable] = set()
        self._number = 0
        self._rests: dict[tuple[Move, ...], int] = {}

    def from_start(self, start: int, bounds: Bounds, number: int) -> list[int] | None:
        """The states of the preferred match's rows; None if there is no match."""
        automaton, so_far, live = self._automaton, self._so_far, self._live
        origin, begin, end, until = bounds
        so_far.begin_at(start, begin, end, number)
        if not self._from_anywhere or number != self._number or len(self._failed) > _MOST_REMEMBERED:
            self._failed.clear()
            self._number = number
        failed = self._failed
        path: list[int] = []
        keys: list[Hashable] = []
        waiting = [iter(automaton.moves(START))]
        steps = 0
        while waiting:
            at = start + len(path)
            border = (AT_START if at == origin else 0) | (AT_END if at == end else 0)
            for target, asked in waiting[-1]:
                if asked & ~border:
                    continue
                if target == ACCEPT:
                    return path
                if at >= until or not live(target, at):
                    continue
                steps += 1
                if steps > MOST_STEPS:
                    raise self._too_many(start - begin)
                variable = automaton.states[target].variable
                so_far.push(variable)
                key = None if steps <= self._unremembered else self._key(target, at)
                if key is None or key not in failed:
                    condition = self._far.get(variable)
                    if condition is None or condition.function(
                        [so_far.value(slot) for slot in condition.slots]
                    ):
                        path.append(target)
                        keys.append(key)
                        waiting.append(iter(automaton.moves(target)))
                        break
                so_far.pop()
            else:
                waiting.pop()
                if path:
                    key = keys.pop()
                    if key is not None and len(failed) <= _MOST_REMEMBERED:
                        failed.add(key)
                    path.pop()
                    so_far.pop()
        return None

    def _key(self, state: int, row: int) -> Hashable:
        """The key that determines whether a match can continue: if it could not once, it never can."""
        moves = self._automaton.moves(state)
        rest = self._rests.setdefault(
            moves, len(self._rests)
        )  # states with the same moves have the same future
        if not self._memories:
            return rest, row
        return rest, row, *[memory(self._so_far) for memory in self._memories]

    def _too_many(self, place: int) -> LimitExceeded:
        names = ", ".join(self._names)
        return LimitExceeded(
            f"DEFINE of {names} looks at the match so far, and the limit of {MOST_STEPS:,} rows "
            f"tried from one "
            f"start is reached, at row {place + 1} of a partition: say more of a row itself in "
            f"DEFINE, or limit "
            "the match by WITHIN or {n,m}"
        )
