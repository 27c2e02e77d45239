"""The transition counts of a deterministic automaton: the number of ways of runs from one event to another.

The runs that start in the window [s, j] are those that started in [s, m] and continued from m to j, and those
that started after m. The first are a vector, kept for every s (`front`), times one matrix of ways from m to j
(`through`); the second is a vector, its last row. When s passes m, m becomes j - 1 and the front is computed
backwards. Each event takes part in one such turn, so an event costs O(states × changed rows) whatever the
window: sliding-window aggregation by two stacks. Measured with every event relevant and a window of 10,000:
44 µs per event on the compact set, 0.2 this way.

Counts that do not fit words are left to `long_counts`, which takes over fronts and what is ahead from here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import FLOATS, INT, INT64S, UINT64S, Grid, inlined, kernel, pool, step
from estero.engine.runs.run_cea import DEAD, IDLE, MISSING, Tables


@pool
class Ways(NamedTuple):
    """Counts in two forms: `exact` uint64 wraps around, `rough` float64 says whether it did; same shape."""

    exact: Grid[np.uint64]
    rough: Grid[np.float64]


@pool
class SavedWays(NamedTuple):
    """The ways of one row."""

    exact: NDArray[np.uint64]
    rough: NDArray[np.float64]


@pool
class Window(NamedTuple):
    """The two stacks for S states.

    front [rows, S]: row s - first counts the runs by state at event m that started in [s, m]. through
    [S + 1, S]: row p < S counts the ways from p at m to each state now, row S the runs that started after
    m. ahead [rows, S + 1]: the ways from each p at m, and of those that started after m, to a complex event
    that ends at one event. saved [S] and touched int32[S] are scratch.
    """

    front: Ways
    ahead: Ways
    through: Ways
    saved: SavedWays
    touched: NDArray[np.int32]


@pool
class Line(NamedTuple):
    """Events one after the other: class int32, and the place int64 of the first one in its window."""

    event_class: NDArray[np.int32]
    oldest: NDArray[np.int64]


def ways(rows: int, columns: int) -> Ways:
    """Zero ways."""
    return Ways(np.zeros((rows, columns), np.uint64), np.zeros((rows, columns)))


def new_window(front: int, ahead: int, states: int) -> Window:
    """Arrays for that many rows."""
    return Window(
        ways(front, states),
        ways(ahead, states + 1),
        ways(states + 1, states),
        SavedWays(np.zeros(states, np.uint64), np.zeros(states)),
        np.empty(states, np.int32),
    )


@inlined
def add(target, row, column, exact, rough):  # type: ignore[no-untyped-def]
    """Adds one count."""
    target.exact[row, column] += exact
    target.rough[row, column] += rough


@inlined
def changed_states(tables, event_class, touched):  # type: ignore[no-untyped-def]
    """Lists the states that an event of the class moves or marks; returns how many."""
    count = 0
    for state in range(1, touched.size):
        if tables.row_of[state, event_class] != IDLE:
            touched[count] = state
            count += 1
    return count


@inlined
def target_of(tables, row, edge):  # type: ignore[no-untyped-def]
    """The target of one of a row's edges or, for the number before its first edge, of skipping."""
    return tables.skip[row] if edge < tables.first[row] else tables.edge_target[edge]


@inlined
def accepting_ways(tables, row):  # type: ignore[no-untyped-def]
    """The number of ways in which a row enters an accepting state."""
    ways = 0
    for edge in range(tables.first[row] - 1, tables.first[row + 1]):
        target = target_of(tables, row, edge)
        if target != DEAD and tables.accepts[target]:
            ways += 1
    return ways


@inlined
def start_anew(through):  # type: ignore[no-untyped-def]
    """Resets `through` to the ways over no event: one from each state to itself."""
    for origin in range(through.exact.shape[0]):
        for state in range(through.exact.shape[1]):
            through.exact[origin, state] = 1 if origin == state else 0
            through.rough[origin, state] = 1.0 if origin == state else 0.0


@inlined
def add_targets(tables, row, through, origin, exact, rough):  # type: ignore[no-untyped-def]
    """Adds the ways from an origin to the targets of a row."""
    for edge in range(tables.first[row] - 1, tables.first[row + 1]):
        target = target_of(tables, row, edge)
        if target != DEAD:
            add(through, origin, target, exact, rough)


@step
def step_through(tables, event_class, window):  # type: ignore[no-untyped-def]
    """Through := through × transitions of the class, plus the new run among the runs after m.

    A missing row counts as dead: only runs that have left the window can be in such a state.
    """
    through, saved = window.through, window.saved
    states = window.touched.size
    changed = changed_states(tables, event_class, window.touched)
    for origin in range(states + 1 if changed else 0):
        for place in range(changed):
            state = window.touched[place]
            saved.exact[place] = through.exact[origin, state]
            saved.rough[place] = through.rough[origin, state]
            through.exact[origin, state] = 0
            through.rough[origin, state] = 0.0
        for place in range(changed):
            row = tables.row_of[window.touched[place], event_class]
            if row != MISSING and saved.rough[place] != 0.0:
                add_targets(tables, row, through, origin, saved.exact[place], saved.rough[place])
    row = tables.row_of[0, event_class]
    if row >= 0:
        add_targets(tables, row, through, states, np.uint64(1), 1.0)


@kernel(Tables, Line, INT, INT, Window)
def turn(tables, line, first, last, window):  # type: ignore[no-untyped-def]
    """Makes `last` the split: fills the front for starts first … last, as far as there are rows.

    `through` holds the ways over the events s … last, for s falling, and in the end over all of them.
    """
    front, through, saved = window.front, window.through, window.saved
    states = window.touched.size
    highest = front.exact.shape[0] - 1
    start_anew(through)
    for start in range(last, first - 1, -1):
        event_class = line.event_class[start]
        place = min(start - first, highest)
        for state in range(states):
            if start == last:
                front.exact[place, state] = 0
                front.rough[place, state] = 0.0
            elif start - first < highest:
                front.exact[place, state] = front.exact[place + 1, state]
                front.rough[place, state] = front.rough[place + 1, state]
        row = tables.row_of[0, event_class]
        if row >= 0:
            for edge in range(tables.first[row] - 1, tables.first[row + 1]):
                target = target_of(tables, row, edge)
                for state in range(states if target != DEAD else 0):
                    add(front, place, state, through.exact[target, state], through.rough[target, state])
        changed = changed_states(tables, event_class, window.touched)
        # Rows of unchanged states stay. A changed state may read another one's old row, so the new rows
        # are gathered column by column: only the old values of the column at hand are needed.
        for state in range(states if changed else 0):
            for number in range(changed):
                row = tables.row_of[window.touched[number], event_class]
                exact = np.uint64(0)
                rough = 0.0
                if row != MISSING:
                    for edge in range(tables.first[row] - 1, tables.first[row + 1]):
                        target = target_of(tables, row, edge)
                        if target != DEAD:
                            exact += through.exact[target, state]
                            rough += through.rough[target, state]
                saved.exact[number] = exact
                saved.rough[number] = rough
            for number in range(changed):
                through.exact[window.touched[number], state] = saved.exact[number]
                through.rough[window.touched[number], state] = saved.rough[number]


@inlined
def look_at(tables, event_class, window, row):  # type: ignore[no-untyped-def]
    """Fills a row of `ahead` with the ways to complex events that end at an event of the class."""
    ahead, through = window.ahead, window.through
    states = window.touched.size
    for origin in range(states + 1):
        ahead.exact[row, origin] = 0
        ahead.rough[row, origin] = 0.0
    start = tables.row_of[0, event_class]
    if start >= 0:
        alone = accepting_ways(tables, start)
        add(ahead, row, states, np.uint64(alone), alone)
    for state in range(1, states):
        moves = tables.row_of[state, event_class]
        accepting = accepting_ways(tables, moves) if moves >= 0 else 0
        if accepting > 0:
            for origin in range(states + 1):
                exact = np.uint64(accepting) * through.exact[origin, state]
                add(ahead, row, origin, exact, accepting * through.rough[origin, state])


@kernel(Tables, Line, INT, INT, Window)
def look_ahead(tables, line, first, last, window):  # type: ignore[no-untyped-def]
    """Fills `ahead` for the events first … last - 1, split before the first, and `through` for all."""
    start_anew(window.through)
    for event in range(first, last):
        look_at(tables, line.event_class[event], window, event - first)
        step_through(tables, line.event_class[event], window)


@kernel(Tables, Line, INT64S, INT64S, INT, Window, UINT64S, FLOATS)
def count_ends(tables, line, firsts, lasts, earliest, window, exact, rough):  # type: ignore[no-untyped-def]
    """Counts the complex events that end at each event of some ranges and start from `earliest` on.

    Range i has the events firsts[i] … lasts[i] - 1. exact uint64, rough float64: one range after the other;
    `exact` is right where `rough` is below FITS (estero.engine.walk.counter). The front needs a row for each
    first start of a window that an event before that start has a longer window for.
    """
    front, ahead = window.front, window.ahead
    states = window.touched.size
    place = 0
    for number in range(firsts.size):
        split = -1
        begun = 0
        for event in range(firsts[number], lasts[number]):
            oldest = max(line.oldest[event], earliest)
            if oldest > split:
                if oldest < event:
                    turn(tables, line, oldest, event - 1, window)
                    split = event - 1
                    begun = oldest
                start_anew(window.through)
            look_at(tables, line.event_class[event], window, 0)
            sum_exact = ahead.exact[0, states]
            sum_rough = ahead.rough[0, states]
            if oldest <= split:
                for origin in range(states):
                    sum_exact += front.exact[oldest - begun, origin] * ahead.exact[0, origin]
                    sum_rough += front.rough[oldest - begun, origin] * ahead.rough[0, origin]
            exact[place] = sum_exact
            rough[place] = sum_rough
            place += 1
            step_through(tables, line.event_class[event], window)
