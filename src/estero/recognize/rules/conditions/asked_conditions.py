"""The results of many conditions on a batch: an upper bound of the rows in which each holds, and the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estero.classify.vectors.batch_columns import BatchColumns, Mask
from estero.engine.held_conditions import AskedCodes

Rows: TypeAlias = NDArray[np.int64]
Places: TypeAlias = NDArray[np.int64]

NO_ROWS: Final = np.empty(0, np.int64)
_FEW: Final = 1 << 16
"""The largest number of values whose codes have 16 bits, which sort in one pass."""


class Conditions(Protocol):
    """Conditions, by their places, that are evaluated together on a batch."""

    def asked(self, columns: BatchColumns) -> AskedConditions:
        """The results of all conditions on a batch; raises `OddValueError` for values that only SQL reads."""


class AskedConditions(Protocol):
    """The results of conditions on a batch, by their places."""

    counts: NDArray[np.int64]
    """An upper bound of the number of rows for which each condition holds, int64[conditions]."""

    def rows(self, place: int) -> Rows:
        """The rows for which a condition holds, without duplicates."""

    def holds(self, place: int, rows: Rows) -> Mask:
        """Whether a condition holds in each of some rows."""


class AskedValues(AskedConditions):
    """The results of the conditions on a column of a batch.

    `codes` are the numbers of the values, by row; those from `values` on satisfy no condition. Value
    ``of_values[i]`` satisfies the condition ``places[i]``; there are no duplicate pairs.
    """

    def __init__(
        self,
        codes: NDArray[np.integer],
        of_values: Places,
        places: Places,
        number: int,
        *,
        values: int | None = None,
    ) -> None:
        self._codes = codes
        order = np.argsort(places, kind="stable")
        self._values = of_values[order]
        self._first = np.searchsorted(places[order], np.arange(number + 1))
        self._number = (int(of_values.max()) + 1 if of_values.size else 0) if values is None else values
        often = np.bincount(codes, minlength=self._number)[: self._number]
        summed = np.concatenate([[0], often[self._values].cumsum()])
        self.counts = summed[self._first[1:]] - summed[self._first[:-1]]
        self._of_asked: tuple[Rows, Places] | None = None
        self._tests: dict[int, Mask] = {}

    def rows(self, place: int) -> Rows:
        values = self._values[self._first[place] : self._first[place + 1]]
        order, ends = self._in_order()
        if values.size == 1:
            (value,) = values.tolist()
            return order[ends[value] : ends[value + 1]]
        if values.size > 16:  # a look at all rows costs less than so many small arrays
            return np.flatnonzero(self._test(place)[self._codes])
        parts = [order[ends[value] : ends[value + 1]] for value in values.tolist()]
        return np.concatenate([NO_ROWS, *parts])

    def holds(self, place: int, rows: Rows) -> Mask:
        held: Mask = self._test(place)[self._codes[rows]]
        return held

    def asked_codes(
        self, places: Sequence[int], numbers: Sequence[int], types: Sequence[int]
    ) -> AskedCodes | None:
        """The values by row, and the conditions at some places that ask for each; None if these are many.

        The conditions get `numbers`, and ask for events of these `types`.
        """
        first = self._first[list(places)]
        sizes = self._first[np.array(places) + 1] - first
        if sizes.sum() > self._codes.size:
            return None
        own = np.repeat(first - (sizes.cumsum() - sizes), sizes) + np.arange(sizes.sum())
        values = self._values[own]
        order = np.argsort(values, kind="stable")
        return AskedCodes(
            self._codes.astype(np.int32, copy=False),
            np.searchsorted(values[order], np.arange(self._number + 1)),
            np.repeat(np.array(numbers, np.int32), sizes)[order],
            np.repeat(np.array(types, np.int64), sizes)[order],
        )

    def _test(self, place: int) -> Mask:
        """Whether a condition holds for each value, and False for all other codes."""
        test = self._tests.get(place)
        if test is None:
            test = self._tests[place] = np.zeros(self._number + 1, np.bool_)
            test[self._values[self._first[place] : self._first[place + 1]]] = True
        return test

    def _in_order(self) -> tuple[Rows, Places]:
        """The rows whose values satisfy some condition, ordered by value, and the ends of each value."""
        if self._of_asked is None:
            asked = np.zeros(self._number + 1, np.bool_)
            asked[self._values] = True
            rows = np.flatnonzero(asked[self._codes])
            codes = self._codes[rows]
            order = np.argsort(codes.astype(np.uint16) if self._number <= _FEW else codes, kind="stable")
            ends = np.bincount(codes, minlength=self._number).cumsum()
            self._of_asked = rows[order], np.concatenate([[0], ends])
        return self._of_asked


class AskedRows(AskedConditions):
    """The results of the conditions on a column of a few rows: their `rows`, by place."""

    def __init__(self, rows: Mapping[int, list[int]], number: int, size: int) -> None:
        self._rows = {place: np.array(own, np.int64) for place, own in rows.items()}
        self._size = size
        self.counts = np.zeros(number, np.int64)
        for place, own in rows.items():
            self.counts[place] = len(own)

    def rows(self, place: int) -> Rows:
        return self._rows.get(place, NO_ROWS)

    def holds(self, place: int, rows: Rows) -> Mask:
        held = np.zeros(self._size, np.bool_)
        held[self.rows(place)] = True
        return held[rows]


class AskedNothing(AskedConditions):
    """The results of conditions on a column of NULLs."""

    def __init__(self, number: int) -> None:
        self.counts = np.zeros(number, np.int64)

    def rows(self, _place: int) -> Rows:
        return NO_ROWS

    def holds(self, _place: int, rows: Rows) -> Mask:
        return np.zeros(rows.size, np.bool_)


class AskedSeveral(AskedConditions):
    """The results on several columns: a condition holds in a row if it holds for one of them."""

    def __init__(self, columns: Sequence[AskedConditions], number: int, size: int) -> None:
        self._columns = columns
        self._size = size
        self.counts = sum((one.counts for one in columns), np.zeros(number, np.int64))

    def rows(self, place: int) -> Rows:
        mask = np.zeros(self._size, np.bool_)
        for column in self._columns:
            if column.counts[place]:
                mask[column.rows(place)] = True
        return np.flatnonzero(mask)

    def holds(self, place: int, rows: Rows) -> Mask:
        held = np.zeros(rows.size, np.bool_)
        for column in self._columns:
            if column.counts[place]:
                held |= column.holds(place, rows)
        return held


class AskedElements(AskedConditions):
    """The results on the elements of lists: a condition holds in a row if it holds for one element.

    `elements` are the results on all elements in sequence, and `rows` are their rows, ascending.
    """

    def __init__(self, elements: AskedConditions, rows: Rows, size: int) -> None:
        self._elements = elements
        self._rows = rows.astype(np.int64, copy=False)
        self._size = size
        self.counts = elements.counts
        self._tests: dict[int, Mask] = {}

    def rows(self, place: int) -> Rows:
        return np.flatnonzero(self._test(place))

    def holds(self, place: int, rows: Rows) -> Mask:
        return self._test(place)[rows]

    def _test(self, place: int) -> Mask:
        test = self._tests.get(place)
        if test is None:
            test = self._tests[place] = np.zeros(self._size, np.bool_)
            test[self._rows[self._elements.rows(place)]] = True
        return test
