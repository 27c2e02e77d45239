"""A column that many conditions compare with bounds, ``size > 500``: its rows are sorted once per batch.

In the order of the values, the rows for which a comparison holds are a range, found by binary search.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from estero.classify.vectors.batch_columns import BatchColumns, Mask
from estero.classify.vectors.conditions import Condition, Joined, NumberTest
from estero.classify.vectors.text_patterns import Negation
from estero.recognize.rules.conditions.asked_conditions import AskedConditions, Conditions, Rows

FEWEST_BOUNDS: Final = 32
"""The number of different comparisons from which sorting a column costs less than testing each of them."""

_SIDES: Final[Mapping[str, Literal["left", "right"]]] = {
    "<": "left",
    "<=": "right",
    ">": "right",
    ">=": "left",
}


class BoundedColumn(Conditions):
    """The comparisons of one column with constants, by their places."""

    def __init__(self, name: str, comparisons: Sequence[NumberTest]) -> None:
        self.name = name
        self._below = np.array([test.operator.startswith("<") for test in comparisons], np.bool_)
        sides = [(_SIDES[test.operator], isinstance(test.constant, float)) for test in comparisons]
        self._searches = [
            (side, is_float, np.array([place for place, own in enumerate(sides) if own == (side, is_float)]))
            for side, is_float in dict.fromkeys(sides)
        ]
        self._constants = [test.constant for test in comparisons]

    def asked(self, columns: BatchColumns) -> BoundedValues:
        numbers, known = columns.checked(self.name), columns.known(self.name)
        rows = np.arange(numbers.size) if known is None else np.flatnonzero(known)
        order = rows[np.argsort(numbers[rows], kind="stable")]
        ascending = numbers[order]
        bounds = np.empty(self._below.size, np.int64)
        for side, is_float, places in self._searches:
            values = ascending.astype(np.float64, copy=False) if is_float else ascending
            constants = np.array([self._constants[place] for place in places.tolist()], values.dtype)
            bounds[places] = np.searchsorted(values, constants, side)
        return BoundedValues(
            order, np.where(self._below, 0, bounds), np.where(self._below, bounds, order.size), numbers.size
        )


class BoundedValues(AskedConditions):
    """The results of the comparisons of a column: each holds for the rows of a range of `order`."""

    def __init__(self, order: Rows, starts: NDArray[np.int64], ends: NDArray[np.int64], size: int) -> None:
        self._order, self._starts, self._ends = order, starts, ends
        self._size = size
        self._ranks: NDArray[np.int64] | None = None
        self.counts = ends - starts

    def rows(self, place: int) -> Rows:
        return self._order[self._starts[place] : self._ends[place]]

    def holds(self, place: int, rows: Rows) -> Mask:
        if self._ranks is None:
            self._ranks = np.full(self._size, -1, np.int64)  # NULL is in no range
            self._ranks[self._order] = np.arange(self._order.size)
        ranks = self._ranks[rows]
        held: Mask = (ranks >= self._starts[place]) & (ranks < self._ends[place])
        return held


def bounded(conditions: Iterable[Condition]) -> set[NumberTest]:
    """The comparisons in conditions whose column at least `FEWEST_BOUNDS` different ones read."""
    by_column: defaultdict[str, set[NumberTest]] = defaultdict(set)
    for condition in conditions:
        for test in comparisons(condition):
            by_column[test.column].add(test)
    return {test for tests in by_column.values() if len(tests) >= FEWEST_BOUNDS for test in tests}


def comparisons(condition: Condition) -> Iterator[NumberTest]:
    """The comparisons with bounds in a condition."""
    match condition:
        case Joined(parts, _):
            for part in parts:
                yield from comparisons(part)
        case Negation(part):
            yield from comparisons(part)
        case NumberTest(_, operator, _) if operator in _SIDES:
            yield condition
