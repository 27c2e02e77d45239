"""How far each start of a stream gets, batch after batch: the arrays of `run_levels` and their capacity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import BITS_IN_WORD, EventBatch
from estero.engine.cursor import MISS
from estero.engine.levels.run_levels import (
    NEVER,
    Cursor,
    Forest,
    Groups,
    Line,
    Moves,
    Passed,
    Scratch,
    Starts,
    advance_levels,
    move_open,
    pass_all,
)
from estero.engine.runs.run_cea import IDLE
from estero.engine.stamps import Stamps
from estero.engine.store.arena import NONE
from estero.engine.store.hashing import KeyTable, new_table, numbered, table_of
from estero.engine.store.schema import grown, new, with_free, with_sizes

_AT_ONCE = 1 << 16
"""The number of events that are read before those whose windows have passed are dropped."""


class MoveLike(Protocol):
    """The state after an event, or DEAD, and the levels that it reaches, as bits."""

    @property
    def target(self) -> int:
        """The state after the event, or DEAD."""

    @property
    def reached(self) -> int:
        """The levels reached by the event."""


class Automaton(Protocol):
    """A deterministic automaton of starts, worked out on demand; state 0 is before the start."""

    def move(self, state: int, event_class: int) -> MoveLike:
        """The effect of an event of the class in `state`."""

    def class_of(self, bits: int) -> int:
        """The class of events with these bits."""


class Reached(NamedTuple):
    """Starts whose windows have passed: sequence numbers int64[n], ascending.

    `by` int64[n, levels] is the sequence number of the event that first reached each level, or NEVER.
    """

    start: NDArray[np.int64]
    by: NDArray[np.int64]


class LevelRuns:
    """The open starts of one stream; `window` is in the unit of the stamps, `levels` at most 62."""

    def __init__(
        self, automaton: Automaton, levels: int, *, window: int | None, keyed: bool, words: int
    ) -> None:
        self._automaton = automaton
        self._levels = levels
        self._keyed = keyed
        self._classes = table_of(np.zeros((1, words), np.uint64), 64)
        self._keys: KeyTable = new_table(64, 2)
        self._firsts = np.full(64, NONE, np.int32)
        self._stamps = Stamps(window)
        self._moves = new(Moves, states=8, classes=16)
        self._forest = new(Forest, levels=levels)
        self._groups = new(Groups, 64)
        self._starts = new(Starts)
        self._cursor = Cursor()
        self._seen = 0

    @property
    def oldest(self) -> int:
        """The earliest event that can still be an open start."""
        return self._stamps.oldest

    def push(self, batch: EventBatch) -> Reached:
        """Processes a batch, and returns the starts whose windows have passed with these events."""
        count = batch.stamps.size
        if count == 0:
            return self._none()
        together, oldest = self._stamps.ahead(np.ascontiguousarray(batch.stamps, np.int64))
        self._stamps.extend(together, oldest)
        event_class = self._class_numbers(batch.words)
        partition = self._partition_numbers(batch.partition) if self._keyed else np.zeros(count, np.int32)
        reached = []
        for first, last in _ranges(count):
            line = Line(event_class[first:last], partition[first:last], oldest[first:last])
            reached.append(self._advance(line))
        return Reached(*(np.concatenate(column) for column in zip(*reached, strict=True)))

    def rest(self) -> Reached:
        """The starts whose windows are still open at the end of the stream."""
        passed = self._new_passed(0)
        pass_all(self._forest, self._starts, passed, self._seen)
        return _reached(passed)

    def _advance(self, line: Line) -> Reached:
        count = line.oldest.size
        self._ensure_capacity(count)
        passed = self._new_passed(count)
        self._cursor.at, self._cursor.first = 0, self._seen
        while (
            advance_levels(
                self._moves,
                line,
                self._forest,
                self._groups,
                self._firsts,
                self._starts,
                passed,
                new(Scratch, states=self._moves.row_of.shape[0]),
                self._cursor,
            )
            == MISS
        ):
            self._learn(int(self._cursor.miss_state), int(self._cursor.miss_class))
        self._seen += count
        return _reached(passed)

    # --------------------------------------------------------------------------------------- capacity

    def _ensure_capacity(self, events: int) -> None:
        """Ensures capacity for more events, even if each one is a start and a group of its own."""
        opened = int(self._starts.at[1] - self._starts.at[0])
        used = int(self._groups.next.size - self._groups.free[1])
        kept = new(Forest, 2 * (opened + used + events) + used, levels=self._levels)
        moved_to = np.full(max(1, int(self._forest.size[0])), NONE, np.int32)
        move_open(self._forest, self._groups, self._firsts, self._starts, kept, moved_to)
        self._forest = kept
        self._starts = with_sizes(self._starts, rows=opened + events)
        self._groups = with_free(self._groups, events)

    def _new_passed(self, events: int) -> Passed:
        most = int(self._starts.at[1] - self._starts.at[0]) + events
        return new(Passed, most, levels=self._levels)

    def _none(self) -> Reached:
        return Reached(np.empty(0, np.int64), np.empty((0, self._levels), np.int64))

    # ---------------------------------------------------------------------------------------- numbers

    def _learn(self, state: int, event_class: int) -> None:
        """Adds a row of the automaton."""
        move = self._automaton.move(state, event_class)
        moves = with_sizes(self._moves, states=move.target + 1, classes=event_class + 1)
        stays = move.target == state or (state == 0 and move.target < 0)
        if stays and not move.reached:
            moves.row_of[state, event_class] = IDLE
        else:
            row = moves.row_of[state, event_class] = moves.target.size
            moves = grown(moves, rows=row + 1)
            moves.target[row], moves.reached[row] = move.target, move.reached
        self._moves = moves

    def _class_numbers(self, words: NDArray[np.uint64]) -> NDArray[np.int32]:
        known = int(self._classes.size[0])
        self._classes, numbers = numbered(self._classes, words)
        for row in self._classes.words[known : int(self._classes.size[0])]:
            self._automaton.class_of(sum(int(word) << BITS_IN_WORD * place for place, word in enumerate(row)))
        self._moves = with_sizes(self._moves, classes=int(self._classes.size[0]))
        return numbers

    def _partition_numbers(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        self._keys, numbers = numbered(self._keys, keys)
        most = int(self._keys.size[0])
        if most > self._firsts.size:
            self._firsts = np.concatenate(
                (self._firsts, np.full(2 * most - self._firsts.size, NONE, np.int32))
            )
        return numbers


def _ranges(events: int) -> Iterator[tuple[int, int]]:
    """Splits a number of events into ranges of (first, behind the last)."""
    for first in range(0, events, _AT_ONCE):
        yield first, min(first + _AT_ONCE, events)


def _reached(passed: Passed) -> Reached:
    """The starts that have reached a level."""
    count = int(passed.size[0])
    some = np.flatnonzero((passed.reached[:count] != NEVER).any(axis=1))
    return Reached(passed.event[some], passed.reached[some])
