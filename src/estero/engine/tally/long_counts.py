"""Exact numbers of complex events of a plain automaton, of any size (docs/architecture.md).

For the complex events that end in a block of events and start before it, consider each state p at the last
event of the starts and each state q at the first event of the ends: their number is the number of ways to get
to p times that from q to the end, given one matrix for the events between. Where the window cuts the starts
off, later ends have later starts: a staircase. It is halved until a block is entirely inside or outside the
window, or so short that words hold its counts; two halves are combined by one product with the ways over a
block. So w events take O(log w) products of numbers of each length up to that of the answer: O(M(b) log w)
for answers of b bits, whereas counting each end separately takes b bits for every event.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from estero.engine.runs.run_cea import Tables
from estero.engine.tally.sliding_count import Line, Window, count_ends, look_ahead, new_window, turn
from estero.engine.walk.counter import FITS

Matrix = NDArray[Any]
"""A matrix of Python integers."""

_FEW_STATES = 12
_BLOCK = 256
"""The number of events of the longest pair of blocks whose counts are tried as words."""
_HALF = FITS**0.5
"""If a block has fewer ways, those over it and another like it fit words."""
_PATIENCE = 32
"""The surplus of blocks that fit over those that do not at which blocks of twice the length are tried."""


class LongCounts:
    """Counts over one line of events, which is only read; block products are remembered.

    Events have numbers, and `base` is that of the first one: a line may be extended, and lose what no later
    window reaches.
    """

    states: int

    def __init__(self, tables: Tables, states: int, line: Line, base: int = 0) -> None:
        self._tables, self.states, self._line, self._base = tables, states, line, base
        self._window: Window = new_window(_BLOCK, _BLOCK, states)
        self._longest, self._margin = _BLOCK, 0
        self._inside: dict[tuple[int, int], int] = {}
        self._stairs: dict[tuple[int, int, int, int], Matrix] = {}
        self._ways: dict[tuple[int, int], Matrix] = {}

    def go_on(self, tables: Tables, line: Line, base: int) -> None:
        """Replaces the line by a longer one, from event number `base` on."""
        self._tables, self._line = tables, line
        if base > self._base:
            self._base = base
            self._inside = {block: matrix for block, matrix in self._inside.items() if block[0] >= base}
            self._stairs = {block: matrix for block, matrix in self._stairs.items() if block[0] >= base}
            self._ways = {block: ways for block, ways in self._ways.items() if block[0] >= base}

    def total(self, first: int, last: int) -> int:
        """The number of complex events that end at the events first … last - 1, which have one partition."""
        if first == last:
            return 0
        before = self._across(self._oldest(first), first, first, last)
        return self._within(first, last) + _trace(before)

    def _within(self, first: int, last: int) -> int:
        """The number of complex events that start and end in a block."""
        known = self._inside.get((first, last))
        if known is None:
            known = self._inside[first, last] = self._counted_within(first, last)
        return known

    def _counted_within(self, first: int, last: int) -> int:
        if self._oldest(last - 1) <= first:
            return int(self._over(first, last)[-1, -1])
        if last - first <= self._longest:
            exact, rough = np.zeros(last - first, np.uint64), np.zeros(last - first)
            place = first - self._base
            ranges = np.array([place]), np.array([last - self._base])
            with np.errstate(over="ignore", invalid="ignore"):
                count_ends(self._tables, self._line, *ranges, place, self._window, exact, rough)
            if self._fit(rough, last - first):
                return sum(exact.tolist())
        middle = _middle(first, last)
        across = self._across(first, middle, middle, last)
        return self._within(first, middle) + self._within(middle, last) + _trace(across)

    def _across(self, first: int, middle: int, begin: int, end: int) -> Matrix | None:
        """The ways on both sides of the complex events that start in one block and end in a later one.

        Starts first … middle - 1, ends begin … end - 1. Row p, column q: the ways to state p before `middle`
        times those from q at `begin`, summed over all pairs in one window; None where there are none.
        """
        first = max(first, self._oldest(begin))
        ends = self._line.oldest[begin - self._base : end - self._base]
        end = begin + int(np.searchsorted(ends, middle - self._base))
        if first >= middle or begin >= end:
            return None
        block = first, middle, begin, end
        if block not in self._stairs:
            self._stairs[block] = self._staircase(*block)
        return self._stairs[block]

    def _staircase(self, first: int, middle: int, begin: int, end: int) -> Matrix:
        """`_across` if each start and each end has a counterpart."""
        if self._oldest(end - 1) <= first:
            return np.outer(self._over(first, middle)[-1, :-1], self._over(begin, end)[:-1, -1])
        starts, ends = middle - first, end - begin
        length = middle - self._oldest(end - 1) + ends
        if max(starts, length) <= self._longest:
            short = self._in_words(first, middle, begin, end, length)
            if short is not None:
                return short
        if starts >= ends:
            cut = _middle(first, middle)
            near, far = self._across(cut, middle, begin, end), self._across(first, cut, begin, end)
            far = None if far is None else _times(self._over(cut, middle)[:-1, :-1].T, far)
        else:
            cut = _middle(begin, end)
            near, far = self._across(first, middle, begin, cut), self._across(first, middle, cut, end)
            far = None if far is None else _times(far, self._over(begin, cut)[:-1, :-1].T)
        parts = [part for part in (near, far) if part is not None]
        ways: Matrix = np.add.reduce(parts)
        return ways

    def _in_words(self, first: int, middle: int, begin: int, end: int, length: int) -> Matrix | None:
        """`_across` for short blocks, None if words do not hold it."""
        window = self._window
        first, middle, begin, end = (number - self._base for number in (first, middle, begin, end))
        rows = np.maximum(self._line.oldest[begin:end], first) - first
        with np.errstate(over="ignore", invalid="ignore"):
            turn(self._tables, self._line, first, middle - 1, window)
            look_ahead(self._tables, self._line, begin, end, window)
            exact, rough = (
                front[rows].T @ ahead[: end - begin, :-1]
                for front, ahead in zip(window.front, window.ahead, strict=True)
            )
        return exact.astype(object) if self._fit(rough, length) else None

    def _over(self, first: int, last: int) -> Matrix:
        """The ways over a block.

        Row p < S, column q < S: from state p before it to q after it. Row S: for the runs that start in it.
        Column S: for the complex events that end in it.
        """
        known = self._ways.get((first, last))
        if known is not None:
            return known
        ways = self._short(first, last) if last - first <= max(1, self._longest // 2) else None
        if ways is None:
            middle = _middle(first, last)
            one, two = self._over(first, middle), self._over(middle, last)
            ways = _times(one[:, :-1], two[:-1])
            ways[:, -1] += one[:, -1]
            ways[-1] += two[-1]
        self._ways[first, last] = ways
        return ways

    def _short(self, first: int, last: int) -> Matrix | None:
        """`_over` for a short block, None if words do not hold it."""
        window = self._window
        with np.errstate(over="ignore", invalid="ignore"):
            look_ahead(self._tables, self._line, first - self._base, last - self._base, window)
            exact, rough = (
                np.column_stack((through, ahead[: last - first].sum(axis=0)))
                for through, ahead in zip(window.through, window.ahead, strict=True)
            )
        most = float(rough.max())
        self._learn(most < _HALF, 2 * (last - first))
        return exact.astype(object) if most < FITS else None

    def _oldest(self, number: int) -> int:
        """The number of the first event in the window of an event."""
        return int(self._line.oldest[number - self._base]) + self._base

    def _fit(self, rough: NDArray[np.float64], length: int) -> bool:
        """Whether words are expected to hold the counts of a block of that many events."""
        fits = bool(rough.max() < FITS)
        self._learn(fits, length)
        return fits

    def _learn(self, fits: bool, length: int) -> None:
        """Learns from a block: only shorter ones are tried if most of the longest ones do not fit.

        A single one says little: of blocks of 128 events with 0.3 bits each, one in a thousand is too long,
        and halving all of them would take 1.6 times as long.
        """
        if 4 * length > 3 * self._longest:
            self._margin += 1 if fits else -1
        if self._margin < 0:
            self._longest, self._margin = max(1, self._longest // 2), 0
        elif self._margin > _PATIENCE:
            self._longest, self._margin = min(_BLOCK, 2 * self._longest), 0


def _times(one: Matrix, two: Matrix) -> Matrix:
    """The product of matrices; states that one side does not reach cost nothing."""
    if one.shape[1] > _FEW_STATES:
        kept = (one != 0).any(axis=0) & (two != 0).any(axis=1)
        kept[0] = True  # an empty product would be of floats
        one, two = one[:, kept], two[kept]
    product: Matrix = one @ two
    return product


def _trace(ways: Matrix | None) -> int:
    """The number of ways whose two sides meet in one state."""
    return 0 if ways is None else sum(ways.diagonal().tolist())


def _middle(first: int, last: int) -> int:
    """The place inside a block that the highest power of two divides, so that calls share their blocks."""
    lowest = (first ^ (last - 1)).bit_length() - 1
    return ((last - 1) >> lowest) << lowest
