"""The moves of the runs in each state at events of each class, if all rows of a small automaton are known."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import pool
from estero.engine.runs.run_cea import DEAD, IDLE, Tables
from estero.engine.tally.sliding_sums import Order

_STAYS, _LEAVES = 0, -1


@pool
class Moves(NamedTuple):
    """The moves of class c are first[c] … first[c + 1] - 1, int32: from `source` to `target`.

    State 0 stands for the run that begins with the event, and `end`, behind all states, for what ends.
    `emptied` int64 is -1 if instead all of its runs leave a state, which is its own target. The order is such
    that runs that move into a state stay there until the next event; runs that stay have no move.
    """

    first: NDArray[np.int32]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    emptied: NDArray[np.int64]
    end: int


def moves_of(tables: Tables, like: Sequence[int], classes: int) -> Moves | None:
    """The moves of a number of classes; None if runs swap places within one class.

    Runs in a state continue as those in the first state that is `like` it, and are counted there.
    """
    states = len(like)
    targets = {
        state: [
            [
                like[target] if target < states else target
                for target in _targets(tables, state, number, states)
            ]
            for number in range(classes)
        ]
        for state in sorted(set(like))
        if tables.continues[state]
    }
    listed: list[tuple[int, int, int]] = []
    first = [0]
    for event_class in range(classes):
        here = {state: reached[event_class] for state, reached in targets.items()}
        try:
            order = list(
                TopologicalSorter(
                    {
                        state: {target for target in reached if target not in (state, states)}
                        for state, reached in here.items()
                    }
                ).static_order()
            )
        except CycleError:
            return None
        for state in order:
            again = here[state].count(state)
            listed += ((state, target, _STAYS) for target in here[state] if target != state)
            listed += [(state, state, _STAYS)] * (again - 1)
            if state and not again:
                listed.append((state, state, _LEAVES))
        first.append(len(listed))
    source, target, emptied = np.array(listed, np.int64).reshape(-1, 3).T
    return Moves(
        np.array(first, np.int32),
        source.astype(np.int32),
        target.astype(np.int32),
        np.ascontiguousarray(emptied),
        states,
    )


def order_of_moves(moves: Moves, tables: Tables) -> Order | None:
    """The order of states that all wait for each other, as sums need it; None if they do not."""
    if (moves.source == moves.target).any():
        return None
    into: dict[int, set[int]] = {moves.end: set()}
    for source, target in zip(moves.source.tolist(), moves.target.tolist(), strict=True):
        into.setdefault(target, set()).add(source)
    try:
        forward = list(TopologicalSorter(into).static_order())
    except CycleError:
        return None
    length: dict[int, int] = {}
    for state in forward:
        length[state] = max((length[source] + 1 for source in into.get(state, ())), default=0)
    rows = np.unique(tables.row_of[1:])
    passed = tables.skip[rows[rows >= 0]]
    waits = bool(tables.accepts[passed[passed != DEAD]].any())
    longest = length[moves.end]
    return Order(np.array(forward, np.int32), longest, longest - (not waits), int(np.diff(moves.first).max()))


def _targets(tables: Tables, state: int, event_class: int, end: int) -> list[int]:
    """The states that runs of a state reach by one event, each as often as there are ways."""
    row = int(tables.row_of[state, event_class]) if tables.continues[state] else DEAD
    if row == IDLE:
        return [state] if state else []
    if row < 0:
        return []
    reached = [int(tables.skip[row]), *tables.edge_target[tables.first[row] : tables.first[row + 1]].tolist()]
    reached = [target for target in reached if target != DEAD]
    ends = [end for target in reached if tables.accepts[target]]
    return [*ends, *(target for target in reached if tables.continues[target])]
