"""Matches of a row pattern in ordered partitions, where a row alone decides which variables it can have.

A pass backwards over a partition marks for each row which states can read it and still reach the end of the
pattern; from each start a pass forwards takes the first move, in the order of preference, to a marked state.
It never backtracks, so a partition costs its rows times the moves, and a match costs its length.

With a window the mark is the earliest end of a match, and a state counts if that end is early enough.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, GROW
from estero.engine.kernels import INT, Grid, Maybe, column, cursor_type, inlined, kernel, pool

ACCEPT = 0
"""The target of a move that completes the pattern: the number of the start, to which no move leads."""
ANY_ROW = -1
"""Stands for a variable's number where all rows can have it."""
AT_START, AT_END = 1, 2
PAST_LAST, TO_NEXT, TO_FIRST, TO_LAST = range(4)
NO_ROW, SAME_ROW = 1, 2
NEVER = np.iinfo(np.int64).max

Cursor: Any = cursor_type("partition", "row", "marked", "to", "failure", "matches", "labels")
"""The position of the pass: partition and row int64, the partition whose rows are marked plus 1, how to
continue after a match (`to`), why that failed, and how many matches and labels there are."""


@pool
class Partitions(NamedTuple):
    """Rows in order: variables uint64[rows, words], those each can have; first int64[partitions + 1].

    int64[partitions] each: the search begins at the row `begin` and ends before the row `stop`; `origin` is
    the first row of the partition, or -1 if it is not among the rows. The search writes the row at which it
    would continue to `resume`.
    """

    variables: Grid[np.uint64]
    first: NDArray[np.int64]
    begin: NDArray[np.int64]
    stop: NDArray[np.int64]
    origin: NDArray[np.int64]
    resume: NDArray[np.int64]


@pool
class Moves(NamedTuple):
    """The automaton: S states, and state 0 is the start.

    variable int32[S]: the number of a state's variable or ANY_ROW. The moves of state s at a border of kind k
    are target[first[k * S + s] : first[k * S + s + 1]], the most preferred first; k has the bits AT_START and
    AT_END. masks uint64[2, S]: the targets as bits, inside and at the end, if S is at most 64. skipped
    bool[S]: the states at whose rows a search continues.
    """

    variable: NDArray[np.int32]
    first: NDArray[np.int64]
    target: NDArray[np.int32]
    masks: Grid[np.uint64]
    skipped: NDArray[np.bool_]


@pool
class Window(NamedTuple):
    """until int64[rows]: the last border of a match from there; earliest int64[rows, S]: see `_mark`."""

    until: NDArray[np.int64]
    earliest: Grid[np.int64]


@pool
class Starts(NamedTuple):
    """reached bool[rows + 1]: the rows at which one of several searches stands, marked when it comes there.

    The searches begin at the rows marked before the pass; where two meet, they continue as one.
    """

    reached: NDArray[np.bool_]


@pool
class Matches(NamedTuple):
    """The start, length and partition int64 of each match; the states int32 of its rows, concatenated."""

    start: NDArray[np.int64]
    length: NDArray[np.int64]
    partition: NDArray[np.int64]
    state: NDArray[np.int32]


@inlined
def _can_read(partitions, moves, row, state):  # type: ignore[no-untyped-def]
    variable = moves.variable[state]
    if variable == ANY_ROW:
        return True
    word = partitions.variables[row, variable >> 6]
    return (word >> np.uint64(variable & 63)) & np.uint64(1) != np.uint64(0)


@inlined
def _mark(partitions, moves, marks, begin, end):  # type: ignore[no-untyped-def]
    """Marks the states of a partition's rows, backwards; marks uint64[rows, words], from row 0 on."""
    states = moves.variable.size
    if moves.masks.shape[1] == states:
        _mark_in_words(partitions, moves, marks, begin, end)
        return
    for row in range(end - 1, begin - 1, -1):
        kind = AT_END if row + 1 == end else 0
        for word in range(marks.shape[1]):
            marks[row - begin, word] = np.uint64(0)
        for state in range(1, states):
            if not _can_read(partitions, moves, row, state):
                continue
            for place in range(moves.first[kind * states + state], moves.first[kind * states + state + 1]):
                target = moves.target[place]
                if target == ACCEPT or (row + 1 < end and _is_marked(marks, row + 1 - begin, target)):
                    marks[row - begin, state >> 6] |= np.uint64(1) << np.uint64(state & 63)
                    break


@inlined
def _mark_in_words(partitions, moves, marks, begin, end):  # type: ignore[no-untyped-def]
    """As `_mark`, where the states are bits of one word; bit 0 stands for the end of the pattern."""
    states = moves.variable.size
    behind = np.uint64(1)
    kind = 1
    for row in range(end - 1, begin - 1, -1):
        marked = np.uint64(0)
        for state in range(1, states):
            if moves.masks[kind, state] & behind != np.uint64(0) and _can_read(partitions, moves, row, state):
                marked |= np.uint64(1) << np.uint64(state)
        marks[row - begin, 0] = marked
        behind = marked | np.uint64(1)
        kind = 0


@inlined
def _mark_earliest(partitions, moves, window, begin, end):  # type: ignore[no-untyped-def]
    """Marks the earliest border at which a match can end whose row has this state, or NEVER."""
    states = moves.variable.size
    for row in range(end - 1, begin - 1, -1):
        kind = AT_END if row + 1 == end else 0
        for state in range(1, states):
            earliest = NEVER
            if _can_read(partitions, moves, row, state):
                for place in range(
                    moves.first[kind * states + state], moves.first[kind * states + state + 1]
                ):
                    target = moves.target[place]
                    if target == ACCEPT:
                        earliest = min(earliest, row + 1)
                    elif row + 1 < end:
                        earliest = min(earliest, window.earliest[row + 1 - begin, target])
            window.earliest[row - begin, state] = earliest


@inlined
def _is_marked(marks, row, state):  # type: ignore[no-untyped-def]
    return (marks[row, state >> 6] >> np.uint64(state & 63)) & np.uint64(1) != np.uint64(0)


@kernel(Partitions, Moves, column(np.uint64, 2), Maybe(Window), Maybe(Starts), Matches, Cursor)
def advance(partitions, moves, marks, window, starts, matches, cursor):  # type: ignore[no-untyped-def]
    """Finds matches from the cursor's row on until all are found (DONE), capacity is missing (GROW), or FULL.

    FULL: the search cannot continue after the last match, for the reason in `failure`. With `starts` there
    are several searches at once, and the matches of all are returned.
    """
    states = moves.variable.size
    while cursor.partition + 1 < partitions.first.size:
        begin = partitions.first[cursor.partition]
        end = partitions.first[cursor.partition + 1]
        if cursor.marked != cursor.partition + 1:
            if window is None:
                _mark(partitions, moves, marks, begin, end)
            else:
                _mark_earliest(partitions, moves, window, begin, end)
            cursor.marked = cursor.partition + 1
            cursor.row = partitions.begin[cursor.partition]
        row = cursor.row
        stop = partitions.stop[cursor.partition]
        origin = partitions.origin[cursor.partition]
        while row < stop:
            if starts is not None and not starts.reached[row]:
                row += 1
                continue
            at = row
            state = 0
            label = cursor.labels
            is_complete = False
            while True:
                kind = (AT_START if at == origin else 0) | (AT_END if at == end else 0)
                following = -1
                for place in range(
                    moves.first[kind * states + state], moves.first[kind * states + state + 1]
                ):
                    target = moves.target[place]
                    if target == ACCEPT:
                        following = ACCEPT
                        break
                    if at < end:
                        if window is None:
                            reached = _is_marked(marks, at - begin, target)
                        else:
                            reached = window.earliest[at - begin, target] <= window.until[row]
                        if reached:
                            following = target
                            break
                if following == -1:
                    break
                if following == ACCEPT:
                    is_complete = True
                    break
                if label == matches.state.size:
                    cursor.row = row
                    return GROW
                matches.state[label] = following
                label += 1
                state = following
                at += 1
            if not is_complete:
                row += 1
                if starts is not None:
                    starts.reached[row] = True
                continue
            if cursor.matches == matches.start.size:
                cursor.row = row
                return GROW
            matches.start[cursor.matches] = row
            matches.length[cursor.matches] = at - row
            matches.partition[cursor.matches] = cursor.partition
            cursor.matches += 1
            first_label = cursor.labels
            cursor.labels = label
            resume = at
            if at == row or cursor.to == TO_NEXT:
                resume = row + 1
            elif cursor.to != PAST_LAST:
                place = -1
                for index in range(first_label, label):
                    if moves.skipped[matches.state[index]]:
                        place = index - first_label
                        if cursor.to == TO_FIRST:
                            break
                if place <= 0:
                    cursor.failure = NO_ROW if place < 0 else SAME_ROW
                    return FULL
                resume = row + place
            if starts is None:
                row = resume
            else:
                starts.reached[resume] = True
                row += 1
            cursor.row = row
        partitions.resume[cursor.partition] = row
        cursor.partition += 1
    return DONE


@kernel(Partitions, Moves, column(np.uint64, 2), INT)
def mark(partitions, moves, marks, partition):  # type: ignore[no-untyped-def]
    """Marks the states of one partition's rows, for a search with further conditions on a row."""
    _mark(partitions, moves, marks, partitions.first[partition], partitions.first[partition + 1])
