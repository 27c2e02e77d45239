"""Matches of a row pattern in ordered partitions: arrays for the kernel, their growth, and its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import FULL, GROW
from estero.engine.row_patterns.run_rows import (
    AT_END,
    NO_ROW,
    Cursor,
    Matches,
    Moves,
    Partitions,
    Starts,
    Window,
    advance,
    mark,
)
from estero.errors import LimitExceeded

MOST_LABELS = 1 << 28
"""The maximal number of rows of all matches together: 1 GB of states."""
_WORD = 64
_FEWEST = 1024


@dataclass(frozen=True)
class MatchTable:
    """Matches in order: start, length and partition int64; `states` int32 are those of their rows.

    `resume` int64[partitions] is the row at which the search of a partition would continue.
    """

    start: NDArray[np.int64]
    length: NDArray[np.int64]
    partition: NDArray[np.int64]
    states: NDArray[np.int32]
    resume: NDArray[np.int64]


@dataclass(frozen=True)
class Extent:
    """The starts that are tried: from `begin` to before `stop` int64[partitions].

    `origin` is the first row of a partition, -1 where it is not among the rows.
    """

    begin: NDArray[np.int64]
    stop: NDArray[np.int64]
    origin: NDArray[np.int64]

    @classmethod
    def whole(cls, first: NDArray[np.int64]) -> Extent:
        """All rows of the partitions that begin at the rows first[:-1]."""
        return cls(first[:-1].copy(), first[1:].copy(), first[:-1].copy())


class SkipFailure(Exception):
    """The search cannot continue after a match: the row to go to is missing (`no_row`) or its first one."""

    match: int
    start: int
    partition: int
    no_row: bool

    def __init__(self, match: int, start: int, partition: int, *, no_row: bool) -> None:
        super().__init__()
        self.match, self.start, self.partition, self.no_row = match, start, partition, no_row


def moves_of(
    moves: Sequence[Sequence[tuple[int, int]]], variables: Sequence[int], skipped: Sequence[bool]
) -> Moves:
    """The moves of all states as arrays, from their targets (0 is the end) and conditions on the border."""
    states = len(moves)
    first = np.zeros(4 * states + 1, np.int64)
    targets: list[int] = []
    for kind in range(4):
        for state, own in enumerate(moves):
            targets += [target for target, asked in own if asked & ~kind == 0]
            first[kind * states + state + 1] = len(targets)
    masks = np.zeros((2, states if states <= _WORD else 0), np.uint64)
    for state in range(masks.shape[1]):
        for place, kind in enumerate((0, AT_END)):
            bits = {target for target, asked in moves[state] if asked & ~kind == 0}
            masks[place, state] = sum(1 << target for target in bits)
    return Moves(
        np.array(variables, np.int32), first, np.array(targets, np.int32), masks, np.array(skipped, np.bool_)
    )


def no_matches(extent: Extent | None, first: NDArray[np.int64]) -> MatchTable:
    """A table without matches: all starts have been tried."""
    stop = (extent or Extent.whole(first)).stop
    empty = np.zeros(0, np.int64)
    return MatchTable(empty, empty, empty, np.zeros(0, np.int32), stop.copy())


def find_matches(
    variables: NDArray[np.uint64],
    first: NDArray[np.int64],
    moves: Moves,
    to: int,
    until: NDArray[np.int64] | None = None,
    extent: Extent | None = None,
    reached: NDArray[np.bool_] | None = None,
) -> MatchTable:
    """All matches in partitions whose rows are variables[first[p] : first[p + 1]] uint64[rows, words].

    `to` says where a search continues (`run_rows.PAST_LAST`, …), `until` int64[rows] which border a match
    from there may reach, and `extent` which starts are tried, all of them if it is None. With `reached`
    bool[rows + 1] a search begins at each row that is marked there; the rows at which a search stands are
    marked, too, and the matches of all searches are returned in order. Raises `SkipFailure` and
    `LimitExceeded`.
    """
    states = moves.variable.size
    longest = int(np.diff(first).max(initial=0))
    window = None
    marks = np.zeros((0, 1), np.uint64)
    if until is None:
        marks = np.empty((longest, -(-states // _WORD)), np.uint64)
    else:
        window = Window(until, np.empty((longest, states), np.int64))
    rows = variables.shape[0]
    partitions = _partitions(variables, first, extent)
    starts = None if reached is None else Starts(reached)
    matches = _new_matches(_FEWEST, max(rows, _FEWEST))
    cursor = Cursor()
    cursor.to = to
    while (code := advance(partitions, moves, marks, window, starts, matches, cursor)) == GROW:
        if cursor.labels > MOST_LABELS:
            raise LimitExceeded(
                f"matches overlap so much that they have more than {MOST_LABELS:,} rows together, the limit: "
                "SKIP PAST LAST ROW has each row in one match, and WITHIN makes matches shorter"
            )
        matches = _grown(matches, cursor.matches, cursor.labels)
    count, labels = cursor.matches, cursor.labels
    if code == FULL:
        last = count - 1
        raise SkipFailure(
            last, int(matches.start[last]), int(matches.partition[last]), no_row=cursor.failure == NO_ROW
        )
    return MatchTable(
        matches.start[:count],
        matches.length[:count],
        matches.partition[:count],
        matches.state[:labels],
        partitions.resume,
    )


def _partitions(variables: NDArray[np.uint64], first: NDArray[np.int64], extent: Extent | None) -> Partitions:
    extent = extent or Extent.whole(first)
    resume = extent.begin.copy()
    return Partitions(
        np.ascontiguousarray(variables), first, extent.begin, extent.stop, extent.origin, resume
    )


def _new_matches(matches: int, labels: int) -> Matches:
    return Matches(
        np.empty(matches, np.int64),
        np.empty(matches, np.int64),
        np.empty(matches, np.int64),
        np.empty(labels, np.int32),
    )


def _grown(matches: Matches, count: int, labels: int) -> Matches:
    """Doubles the capacity of full arrays; some labels may belong to a match that is not complete yet."""
    full = count == matches.start.size
    larger = _new_matches(matches.start.size * (1 + full), matches.state.size * (1 + (not full)))
    larger.start[:count] = matches.start[:count]
    larger.length[:count] = matches.length[:count]
    larger.partition[:count] = matches.partition[:count]
    larger.state[:labels] = matches.state[:labels]
    return larger


class RowMarks:
    """The states, for the rows of one partition at a time, from which they can still lead to a match."""

    def __init__(self, variables: NDArray[np.uint64], first: NDArray[np.int64], moves: Moves) -> None:
        self._partitions = _partitions(variables, first, None)
        self._moves = moves
        longest = int(np.diff(first).max(initial=0))
        self._marks = np.empty((longest, -(-moves.variable.size // _WORD)), np.uint64)
        self._begin = 0

    def go_to(self, partition: int) -> None:
        """Goes to a partition and marks its rows."""
        mark(self._partitions, self._moves, self._marks, partition)
        self._begin = int(self._partitions.first[partition])

    def has(self, state: int, row: int) -> bool:
        """Whether a row in this state can lead to a match."""
        word = int(self._marks[row - self._begin, state >> 6])
        return bool(word >> (state & 63) & 1)
