"""The expected number of complex events in a stream, given how many events of each class it has."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from estero.automata.cea import CEA, FIRST
from estero.automata.determinize import DEAD, LazyAutomaton
from estero.errors import LimitExceeded

MOST_STATES = 200
HUGE = 1e150
"""A bound of all numbers here, whose square is still a finite float."""


def expected_matches(cea: CEA, classes: Mapping[int, int], *, window: int | None = None) -> float:
    """The expected number of complex events if the events came in random order; at most `HUGE`.

    `classes` says how many events have which bits (bit k: predicate k is true); `window` is the largest
    distance from start to end, in events. An event moves the runs in state s of the deterministic automaton
    to state t with the probability of the classes that do so, and the sums over all events come from squaring
    the matrix of one event. Runs that read and mark the same events are one run there, so no complex event
    counts twice. 0 if more than `MOST_STATES` states would be needed. Contiguity is that of the events
    counted.
    """
    events = sum(classes.values())
    length = events if window is None else min(events, window + 1)
    if length == 0:
        return 0.0
    try:
        numbers, step = _steps(cea, {bits: count / events for bits, count in classes.items()})
    except LimitExceeded:
        return 0.0
    return min(HUGE, float(_after(numbers, step, length - 1)[-1]) * events / length)


def _steps(cea: CEA, shares: Mapping[int, float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The expected numbers after the first event, and the matrix by which a further event changes them.

    The numbers: runs in each state, 1 for the run that begins at each event, complex events so far.
    """
    automaton = LazyAutomaton(cea, MOST_STATES)
    only_first = 1 << len(cea.predicates) - 1 if FIRST in cea.predicates else 0
    first = _moves(automaton, 0, {bits | only_first: share for bits, share in shares.items()})
    later: list[dict[int, float]] = []
    while len(later) < len(automaton.subsets):  # computing moves may add states
        later.append(_moves(automaton, len(later), shares))
    states = len(later)
    accepting = np.array([automaton.accepts(state) for state in range(states)], np.float64)
    numbers, step = np.zeros(states + 2), np.zeros((states + 2, states + 2))
    numbers[list(first)] = list(first.values())
    numbers[-2:] = 1.0, accepting @ numbers[:states]
    for source, moves in enumerate(later):
        step[list(moves), source] = list(moves.values())
    step[:, -2] = step[:, 0]
    step[-1, :-1] = accepting @ step[:states, :-1]
    step[-2, -2] = step[-1, -1] = 1.0
    return numbers, step


def _moves(automaton: LazyAutomaton, source: int, shares: Mapping[int, float]) -> dict[int, float]:
    """The expected number of runs in each state that one event makes of a run in `source`."""
    moves: dict[int, float] = {}
    for bits, share in shares.items():
        row = automaton.row(source, automaton.class_of(bits))
        for target in [target for _, target in row.edges] + [row.skip] * (row.skip != DEAD):
            moves[target] = moves.get(target, 0.0) + share
    return moves


def _after(numbers: NDArray[np.float64], step: NDArray[np.float64], events: int) -> NDArray[np.float64]:
    """The numbers after that many further events."""
    while events:
        if events & 1:
            numbers = np.minimum(step @ numbers, HUGE)
        step = np.minimum(step @ step, HUGE)
        events >>= 1
    return numbers
