"""Counts in a window by sums: a start adds its ways, and subtracts them when it leaves the window.

If a run waits in each of its states and never returns to one, the matrix of ways of a class is the identity
plus entries above the diagonal; so it has an inverse, of integers, and all is correct modulo 2^64. With Q the
product of the matrices up to now, a start s with earlier ways u(s) has u(s) Q(s)^-1 Q now: u(s) Q(s)^-1 is
kept, from which follows what it has to subtract when it leaves. An event costs a few rows of these matrices,
whatever the window, and the two stacks of `sliding_count` are not turned.

It is used only if a window is too short for 2^62 complex events to end at one place.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT32S, INT64S, UINT64S, Grid, kernel, pool
from estero.engine.runs.run_cea import DEAD, Tables
from estero.engine.tally.sliding_count import Line, accepting_ways, target_of

_MOST_STATES = 10
"""The most states; with more, matrices cost more than turning the stacks."""
_WORD = 2.0**62


@pool
class Sums(NamedTuple):
    """For S states: open runs by state [S], the product of ways [S, S] and its inverse, uint64.

    kept [rows, S] are the ways of starts, a row for each place that a window holds, and one more.
    """

    runs: NDArray[np.uint64]
    product: Grid[np.uint64]
    inverse: Grid[np.uint64]
    kept: Grid[np.uint64]


class Order(NamedTuple):
    """The states, those that runs reach last first: int32[S]; the most edges of a run, and of one event.

    The last of these is at the end, unless a run can accept where it only waits (`chosen` are the others).
    """

    states: NDArray[np.int32]
    length: int
    chosen: int
    edges: int

    def fits(self, rows: int) -> bool:
        """Whether the number of complex events that end at one place of `rows` in a window fits words."""
        return float(rows) ** self.chosen * float(self.edges) ** self.length < _WORD


def order_of(tables: Tables, states: int) -> Order | None:
    """The order of an automaton's states, as far as it is known; None if sums are not possible."""
    if states > _MOST_STATES:
        return None
    into: dict[int, set[int]] = {state: set() for state in range(states)}
    edges, waits = 1, False
    for state in range(states):
        for row in tables.row_of[state]:
            if row < 0:
                continue
            if state > 0 and tables.skip[row] != state:
                return None
            waits = waits or bool(tables.accepts[state])
            targets = tables.edge_target[tables.first[row] : tables.first[row + 1]].tolist()
            if state == 0 and tables.skip[row] != DEAD:
                targets.append(int(tables.skip[row]))
            edges = max(edges, len(targets))
            for target in targets:
                into[target].add(state)
    try:
        forward = list(TopologicalSorter(into).static_order())
    except CycleError:
        return None
    length = dict.fromkeys(forward, 0)
    for state in forward:
        length[state] = max((length[source] + 1 for source in into[state]), default=0)
    longest = max(length.values())
    return Order(np.array(forward[::-1], np.int32), longest, longest - (not waits), edges)


def count_by_sums(
    tables: Tables,
    order: Order,
    line: Line,
    firsts: NDArray[np.int64],
    lasts: NDArray[np.int64],
    rows: int,
    exact: NDArray[np.uint64],
) -> None:
    """Counts the complex events that end at each event of some ranges, as `count_ends` does.

    Windows hold at most `rows` events; `Order.fits` has to say that words do for these.
    """
    states = order.states.size
    sums = Sums(
        np.zeros(states, np.uint64),
        np.zeros((states, states), np.uint64),
        np.zeros((states, states), np.uint64),
        np.zeros((rows + 1, states), np.uint64),
    )
    _count_by_sums(tables, order.states, line, firsts, lasts, sums, exact)


@kernel(Tables, INT32S, Line, INT64S, INT64S, Sums, UINT64S)
def _count_by_sums(tables, order, line, firsts, lasts, sums, exact):  # type: ignore[no-untyped-def]
    """Range i has the events firsts[i] … lasts[i] - 1; fills exact uint64, one range after the other."""
    runs, product, inverse, kept = sums.runs, sums.product, sums.inverse, sums.kept
    states = order.size
    capacity = kept.shape[0]
    place = 0
    for number in range(firsts.size):
        for state in range(states):
            runs[state] = 0
            for other in range(states):
                product[state, other] = 1 if state == other else 0
                inverse[state, other] = 1 if state == other else 0
        begun = line.oldest[firsts[number]]
        for event in range(begun, lasts[number]):
            event_class = line.event_class[event]
            while begun < line.oldest[event]:
                if tables.row_of[0, line.event_class[begun]] >= 0:
                    for origin in range(states):
                        factor = kept[begun % capacity, origin]
                        if factor != 0:
                            for state in range(states):
                                runs[state] -= factor * product[origin, state]
                begun += 1
            start = tables.row_of[0, event_class]
            ends = np.uint64(0)
            if start >= 0:
                ends += np.uint64(accepting_ways(tables, start))
            for position in range(states):
                state = order[position]
                row = tables.row_of[state, event_class]
                if state == 0 or row < 0:
                    continue
                for edge in range(tables.first[row], tables.first[row + 1]):
                    target = tables.edge_target[edge]
                    if tables.accepts[target]:
                        ends += runs[state]
                    runs[target] += runs[state]
                    for other in range(states):
                        product[other, target] += product[other, state]
                        inverse[state, other] -= inverse[target, other]
                if tables.accepts[state]:
                    ends += runs[state]
            if start >= 0:
                for other in range(states):
                    kept[event % capacity, other] = 0
                for edge in range(tables.first[start] - 1, tables.first[start + 1]):
                    target = target_of(tables, start, edge)
                    if target != DEAD:
                        runs[target] += np.uint64(1)
                        for other in range(states):
                            kept[event % capacity, other] += inverse[target, other]
            if event >= firsts[number]:
                exact[place] = ends
                place += 1
    return 0
