"""What the runs of each state do at events of each class, where all rows of a small automaton are known."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import pool
from estero.engine.runs.run_cea import DEAD, IDLE, Tables

_STAYS, _LEAVES = 0, -1


@pool
class Moves(NamedTuple):
    """The moves of class c are first[c] … first[c + 1] - 1, int32: from `source` to `target`.

    State 0 stands for the run that begins with the event, and `end`, one more than all states, for what ends.
    `emptied` int64 is -1 where instead a state, its own target, is left by all of its runs. They are in such an
    order that what moves into a state stays there until the next event, and runs that stay have no move.
    """

    first: NDArray[np.int32]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    emptied: NDArray[np.int64]
    end: int


def moves_of(tables: Tables, states: int, classes: int) -> Moves | None:
    """The moves of so many states and classes; None where runs change places within one class."""
    listed: list[tuple[int, int, int]] = []
    first = [0]
    for event_class in range(classes):
        targets = {state: _targets(tables, state, event_class, states) for state in range(states)}
        others = {state: {to for to in reached if to != state} for state, reached in targets.items()}
        try:
            order = [state for state in TopologicalSorter(others).static_order() if state < states]
        except CycleError:
            return None
        for state in order:
            listed += ((state, target, _STAYS) for target in targets[state] if target != state)
            again = targets[state].count(state)
            listed += [(state, state, _STAYS)] * (again - 1)
            if state and not again and tables.continues[state]:
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


def _targets(tables: Tables, state: int, event_class: int, end: int) -> list[int]:
    """Where runs of a state get by one event, each as often as there are ways."""
    row = int(tables.row_of[state, event_class]) if tables.continues[state] else IDLE
    if row == IDLE:
        return [state] if state else []
    reached = [int(tables.skip[row]), *tables.edge_target[tables.first[row] : tables.first[row + 1]].tolist()]
    reached = [target for target in reached if target != DEAD]
    ends = [end for target in reached if tables.accepts[target]]
    return [*ends, *(target for target in reached if tables.continues[target])]
