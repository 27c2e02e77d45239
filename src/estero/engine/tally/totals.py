"""The number of complex events that end at some events, if all moves of runs are known: three ways to count.

`OpenRunCounts` is for no window, `WindowCounts` for a window without keys, and `EndCounts` counts an end
once, whatever ends there. All of them apply the moves of a class in place, without checking which state has
runs.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, UINT64S, Grid, column, kernel, pool
from estero.engine.runs.run_cea import Events
from estero.engine.store.arena import NONE
from estero.engine.tally.moves import Moves
from estero.engine.tally.sliding_count import Ways, ways
from estero.engine.tally.sliding_sums import Order
from estero.engine.walk.counter import FITS

_COLUMNS = 12
"""The number of columns of a matrix: for the states for which sums are possible, and for results."""
_SHORTEST = 64
_WORDS = 2
_LOW = (1 << 32) - 1

Kept = NDArray[np.intp] | slice


class NoTotalError(Exception):
    """Raised if the moves of runs do not give the total, but the compact set does."""


class Counts(Protocol):
    """Counts along a stream."""

    def place(self, kept: Kept, partitions: int, states: int) -> None:
        """Renumbers partition kept[i] to i, and makes room for `partitions` and `states`."""

    def count(self, moves: Moves, order: Order | None, events: Events, first: int) -> int:
        """The number of complex events that end at the next events, which are numbered from `first` on."""

    def opened(self, partitions: int, oldest: int) -> NDArray[np.int64]:
        """The number of states in which the first partitions may have runs begun at `oldest` or later."""


def _moved(old: NDArray[np.generic], kept: Kept, new: NDArray[np.generic]) -> None:
    """Puts the rows that are kept into a larger array, without what has ended."""
    rows = old[kept]
    columns = min(rows.shape[1], new.shape[1]) - 1
    new[: rows.shape[0], :columns] = rows[:, :columns]


class EndCounts:
    """The ends at which there is a complex event."""

    def __init__(self) -> None:
        self._began = np.full((1, 1), NONE, np.int64)

    def place(self, kept: Kept, partitions: int, states: int) -> None:
        """See `Counts`."""
        began = np.full((partitions, states + 1), NONE, np.int64)
        _moved(self._began, kept, began)
        self._began = began

    def count(self, moves: Moves, order: Order | None, events: Events, first: int) -> int:
        """See `Counts`."""
        del order
        return int(_count_ends(moves, self._began, events, first))

    def opened(self, partitions: int, oldest: int) -> NDArray[np.int64]:
        """See `Counts`."""
        return np.asarray(np.count_nonzero(self._began[:partitions, 1:-1] >= oldest, axis=1))


class OpenRunCounts:
    """All complex events, where there is no window."""

    def __init__(self) -> None:
        self._open = ways(1, 1)

    def place(self, kept: Kept, partitions: int, states: int) -> None:
        """See `Counts`."""
        opened = ways(partitions, states + 1)
        for old, new in zip(self._open, opened, strict=True):
            _moved(old, kept, new)
        self._open = opened

    def count(self, moves: Moves, order: Order | None, events: Events, first: int) -> int:
        """See `Counts`. Raises NoTotalError if a number is beyond words."""
        del order, first
        total = np.zeros(_WORDS, np.uint64)
        if _count_forward(moves, self._open, events, total) < events.event_class.size:
            raise NoTotalError
        return _joined(total)

    def opened(self, partitions: int, oldest: int) -> NDArray[np.int64]:
        """See `Counts`."""
        del oldest
        return np.asarray(np.count_nonzero(self._open.exact[:partitions, 1:-1], axis=1))


@pool
class WindowSums(NamedTuple):
    """See `sliding_sums`; of uint64, with a column for each state, and one for what ends.

    runs [_COLUMNS]; product and inverse [_COLUMNS, _COLUMNS], the product with its columns as rows; kept
    [power of two, _COLUMNS], where column 0 says that something began.
    """

    runs: NDArray[np.uint64]
    product: Grid[np.uint64]
    inverse: Grid[np.uint64]
    kept: Grid[np.uint64]


class WindowCounts:
    """All complex events in a window, where there are no keys."""

    def __init__(self) -> None:
        one = np.eye(_COLUMNS, dtype=np.uint64)
        self._sums = WindowSums(
            np.zeros(_COLUMNS, np.uint64), one, one.copy(), np.zeros((_SHORTEST, _COLUMNS), np.uint64)
        )
        self._begun = self._states = 0

    def place(self, kept: Kept, partitions: int, states: int) -> None:
        """See `Counts`. There is one partition; if states have no column, sums are not possible."""
        del kept, partitions
        runs, product, inverse, _ = self._sums
        new = np.arange(self._states, min(states, _COLUMNS))
        runs[new], product[new], inverse[new] = 0, np.eye(_COLUMNS)[new], np.eye(_COLUMNS)[new]
        self._states = states

    def count(self, moves: Moves, order: Order | None, events: Events, first: int) -> int:
        """See `Counts`. Raises NoTotalError if sums are not possible, or words may be too short."""
        numbers = np.arange(first, first + events.oldest.size)
        rows = int((numbers - events.oldest).max()) + 1
        if order is None or moves.end >= _COLUMNS or not order.fits(rows):
            raise NoTotalError
        self._make_place(rows + 1, first)
        total = np.zeros(_WORDS, np.uint64)
        self._sums.inverse[moves.end] = 0
        self._begun = int(_count_in_window(moves, self._sums, events, first, self._begun, total))
        return _joined(total)

    def opened(self, partitions: int, oldest: int) -> NDArray[np.int64]:
        """See `Counts`."""
        del oldest
        return np.ones(partitions, np.int64)

    def _make_place(self, rows: int, first: int) -> None:
        """Makes room for the starts of `rows` events."""
        old = self._sums.kept
        capacity = old.shape[0]
        if rows > capacity:
            kept = np.zeros((1 << (rows - 1).bit_length(), _COLUMNS), np.uint64)
            numbers = np.arange(self._begun, first)
            kept[numbers % kept.shape[0]] = old[numbers % capacity]
            self._sums = self._sums._replace(kept=kept)


def _joined(total: NDArray[np.uint64]) -> int:
    """The number that a lower and an upper half make; both may be longer than a half."""
    low, high = total.tolist()
    return int(low) + (int(high) << 32)


@kernel(Moves, column(np.int64, 2), Events, INT)
def _count_ends(moves, began, events, first):  # type: ignore[no-untyped-def]
    """Counts the events at which something ends. began int64[partitions, S + 1]: latest starts, or NONE."""
    ends = np.int64(0)
    for place in range(events.event_class.size):
        event_class, partition = events.event_class[place], events.partition[place]
        began[partition, 0] = first + place
        began[partition, moves.end] = NONE
        for move in range(moves.first[event_class], moves.first[event_class + 1]):
            start, target = began[partition, moves.source[move]], moves.target[move]
            began[partition, target] = max(began[partition, target], start) | moves.emptied[move]
        ends += np.int64(began[partition, moves.end] >= events.oldest[place])
    return ends


@kernel(Moves, Ways, Events, UINT64S)
def _count_forward(moves, opened, events, total):  # type: ignore[no-untyped-def]
    """Adds to `total` what ends at each event, up to the first number beyond words; returns that event.

    opened [partitions, S + 1]: the number of runs in each state.
    """
    exact, rough = opened
    low, high = np.uint64(0), np.uint64(0)
    size = events.event_class.size
    place = 0
    while place < size:
        event_class, partition = events.event_class[place], events.partition[place]
        exact[partition, 0] = 1
        rough[partition, 0] = 1.0
        exact[partition, moves.end] = 0
        rough[partition, moves.end] = 0.0
        for move in range(moves.first[event_class], moves.first[event_class + 1]):
            source, target = moves.source[move], moves.target[move]
            stay = np.uint64(1 + moves.emptied[move])
            exact[partition, target] = (exact[partition, target] + exact[partition, source]) * stay
            rough[partition, target] = (rough[partition, target] + rough[partition, source]) * stay
        if not rough[partition, moves.end] < FITS:
            break
        low += exact[partition, moves.end] & np.uint64(_LOW)
        high += exact[partition, moves.end] >> np.uint64(32)
        place += 1
    total[0] = low
    total[1] = high
    return place


@kernel(Moves, WindowSums, Events, INT, INT, UINT64S)
def _count_in_window(moves, sums, events, first, begun, total):  # type: ignore[no-untyped-def]
    """Adds to `total` what ends at each event; returns the first start that is still in the window.

    `sliding_sums` says how. State 0 stands for the run that begins: its row of the inverse becomes what is
    kept of it, with another sign. The row of what ends is 0.
    """
    runs, product, inverse, kept = sums
    last = kept.shape[0] - 1
    end = moves.end
    low, high = np.uint64(0), np.uint64(0)
    for place in range(events.event_class.size):
        event_class = events.event_class[place]
        while begun < events.oldest[place]:
            left = begun & last
            if kept[left, 0] != 0:
                for state in range(1, end):
                    gone = np.uint64(0)
                    for origin in range(1, end):
                        gone += kept[left, origin] * product[state, origin]
                    runs[state] -= gone
            begun += 1
        runs[0] = 1
        runs[end] = 0
        for other in range(_COLUMNS):
            inverse[0, other] = 0
        for move in range(moves.first[event_class], moves.first[event_class + 1]):
            source, target = moves.source[move], moves.target[move]
            runs[target] += runs[source]
            for other in range(_COLUMNS):
                product[target, other] += product[source, other]
            for other in range(_COLUMNS):
                inverse[source, other] -= inverse[target, other]
        row = (first + place) & last
        began = np.uint64(0)
        for other in range(_COLUMNS):
            kept[row, other] = np.uint64(0) - inverse[0, other]
            began |= inverse[0, other]
        kept[row, 0] = began
        low += runs[end] & np.uint64(_LOW)
        high += runs[end] >> np.uint64(32)
    total[0] = low
    total[1] = high
    return begun
