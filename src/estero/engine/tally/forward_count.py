"""Counts of complex events at each event without a window: open runs are counted by partition and state.

Runs end only by their automaton, so the cost of an event is that of the changes of its class, and earlier
events are not read again. Only words are counted: `Tally` goes back to all events if words do not hold a
count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import FLOATS, INT32S, UINT64S, kernel
from estero.engine.runs.run_cea import Tables
from estero.engine.runs.tables import TableBuilder
from estero.engine.store.hashing import new_table, numbered
from estero.engine.tally.sliding_count import (
    SavedWays,
    Ways,
    accepting_ways,
    add_targets,
    changed_states,
    ways,
)

_FEWEST = 64


class ForwardCounts:
    """The open runs by partition and state, and the numbers of complex events at the last ends."""

    def __init__(self, builder: TableBuilder) -> None:
        self._builder = builder
        self._keys = new_table(_FEWEST, 2)
        self._open = ways(_FEWEST, builder.states)
        self.first: int = 0
        """The number of the first event whose count is kept."""
        self._exact = np.empty(0, np.uint64)
        self._rough = np.empty(0)

    @property
    def next(self) -> int:
        """The number of the next event."""
        return self.first + self._exact.size

    def push(self, event_class: NDArray[np.int32], partition: NDArray[np.uint64]) -> None:
        """Counts the next events: class int32[n], partition uint64[n, 2]; replaces the previous counts."""
        self.first = self.next
        self._keys, numbers = numbered(self._keys, partition)
        self._make_place()
        states = self._builder.states
        self._exact, self._rough = np.empty(numbers.size, np.uint64), np.empty(numbers.size)
        saved = SavedWays(np.zeros(states, np.uint64), np.zeros(states))
        touched = np.empty(states, np.int32)
        opened = self._open, saved, touched
        _count_forward(self._builder.tables, event_class, numbers, *opened, self._exact, self._rough)

    def between(self, first: int, last: int) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """The number of complex events that end at events `first` … `last - 1`, exact and rough."""
        here = slice(first - self.first, last - self.first)
        return self._exact[here], self._rough[here]

    def _make_place(self) -> None:
        """Ensures a row for each partition, and a column for each state."""
        known, states = self._keys.words.shape[0], self._builder.states
        rows, columns = self._open.exact.shape
        if known > rows or states > columns:
            larger = ways(max(known, rows), states)
            larger.exact[:rows, :columns] = self._open.exact
            larger.rough[:rows, :columns] = self._open.rough
            self._open = larger


@kernel(Tables, INT32S, INT32S, Ways, SavedWays, INT32S, UINT64S, FLOATS)
def _count_forward(tables, classes, partitions, opened, saved, touched, exact, rough):  # type: ignore[no-untyped-def]
    """Counts the complex events that end at each event, and then moves the runs of its partition.

    opened [partitions, S] counts the open runs by state, saved [S] and touched int32[S] are scratch; fills
    exact uint64[n], which is right where rough float64[n] is below FITS.
    """
    for event in range(classes.size):
        event_class, partition = classes[event], partitions[event]
        changed = changed_states(tables, event_class, touched)
        ends_exact, ends_rough = np.uint64(0), 0.0
        for place in range(changed):
            state = touched[place]
            saved.exact[place] = opened.exact[partition, state]
            saved.rough[place] = opened.rough[partition, state]
            opened.exact[partition, state] = 0
            opened.rough[partition, state] = 0.0
        for place in range(changed):
            row = tables.row_of[touched[place], event_class]
            if row >= 0 and saved.rough[place] != 0.0:
                accepting = accepting_ways(tables, row)
                if accepting > 0:
                    ends_exact += np.uint64(accepting) * saved.exact[place]
                    ends_rough += accepting * saved.rough[place]
                add_targets(tables, row, opened, partition, saved.exact[place], saved.rough[place])
        row = tables.row_of[0, event_class]
        if row >= 0:
            accepting = accepting_ways(tables, row)
            ends_exact += np.uint64(accepting)
            ends_rough += accepting
            add_targets(tables, row, opened, partition, np.uint64(1), 1.0)
        exact[event], rough[event] = ends_exact, ends_rough
    return 0
