"""A column of which many conditions ask something, and what a batch says to all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.classify.arrays import known_in, texts_of
from estero.classify.remembered import Remembered
from estero.classify.vectors.batch_columns import BatchColumns, Mask
from estero.classify.vectors.conditions import (
    Condition,
    indices_of,
)
from estero.classify.vectors.known_patterns import KnownPatterns
from estero.classify.vectors.text_columns import ends_and_letters
from estero.classify.vectors.text_patterns import Pattern, SomeColumn, constants_of
from estero.engine.texts import KnownTexts

Rows: TypeAlias = NDArray[np.int64]
Places: TypeAlias = NDArray[np.int64]
AnyCondition = TypeVar("AnyCondition", bound=Condition)

_FEW: Final = 1 << 16
"""So many values have codes of 16 bits, which sort in one pass."""
_FEW_TEXTS: Final = 256
"""So many texts have a hash each of their own in a small table (`KnownTexts`)."""
NO_ROWS: Final = np.empty(0, np.int64)
FEW_ROWS: Final = 64
"""So many rows are looked up one by one sooner than all at once,"""
_ASKING: Final = 64
"""if no more conditions than these ask for one value."""
_DICTIONARIES: Final = 2
"""So many dictionaries of a column are remembered with what they say."""


class AskedColumn:
    """The conditions that ask one column for constants or patterns, by their places."""

    def __init__(self, name: str, conditions: Sequence[Condition], columns: int = 1) -> None:
        self.name = name
        self._number = len(conditions)
        by_value: dict[str | int, list[int]] = {}
        for place, condition in enumerate(conditions):
            for value in constants_of(condition):
                by_value.setdefault(value, []).append(place)
        self._by_value = by_value
        values = sorted(by_value, key=lambda value: (isinstance(value, str), value))
        self._asking = [by_value[value] for value in values]
        self._sizes = np.array(list(map(len, self._asking)), np.int64)
        self._firsts = self._sizes.cumsum() - self._sizes
        self._of_constants = np.array([place for places in self._asking for place in places], np.int64)
        self._texts = [value for value in values if isinstance(value, str)]
        few = len(self._texts) <= _FEW_TEXTS
        self._known = KnownTexts([text.encode() for text in self._texts]) if few else None
        self._numbers = np.array([value for value in values if not isinstance(value, str)], np.int64)
        patterns = {place: own for place, own in enumerate(conditions) if isinstance(own, Pattern)}
        self._patterns = KnownPatterns(list(patterns.values())) if patterns else None
        self._is_one_by_one = self._patterns is None and max(map(len, self._asking), default=0) <= _ASKING
        self._of_patterns = np.array(list(patterns), np.int64)
        self._known_values = Remembered[tuple[Places, Places]](_DICTIONARIES * columns)

    def asked(self, columns: BatchColumns) -> AskedAtOnce:
        """What a batch says to all conditions."""
        return self.asked_of(columns.array(self.name))

    def asked_of(self, column: pa.Array) -> AskedAtOnce:
        """What a column says to all conditions."""
        if self._is_one_by_one and len(column) <= FEW_ROWS and not pa.types.is_nested(column.type):
            return self._one_by_one(column)
        return self._all_at_once(column)

    def _all_at_once(self, column: pa.Array) -> AskedAtOnce:
        """What many values say to all conditions."""
        if column.null_count == len(column):
            return AskedNothing(self._number)
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            rows = pc.list_parent_indices(column).to_numpy()
            return AskedElements(self.asked_of(column.flatten()), rows, len(column))
        if self._patterns is None and not isinstance(column, pa.DictionaryArray):
            codes = self._codes(column)
            return AskedValues(codes, *self._by_constants(np.arange(self._sizes.size)), self._number)
        encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
        values = encoded.dictionary
        if encoded is column:
            of_values, places = self._known_values.of(values, partial(self._pairs, values))
        else:
            of_values, places = self._pairs(values)
        return AskedValues(indices_of(encoded), of_values, places, self._number, values=len(values))

    def _one_by_one(self, column: pa.Array) -> AskedAtOnce:
        """What a few values say to all conditions."""
        try:
            values = column.to_pylist()
        except UnicodeDecodeError:
            return self._all_at_once(column)
        rows: dict[int, list[int]] = {}
        for row, value in enumerate(values):
            for place in self._by_value.get(value, ()):
                rows.setdefault(place, []).append(row)
        return AskedRows(rows, self._number, len(values))

    def _pairs(self, values: pa.Array) -> tuple[Places, Places]:
        """The pairs of a value, by its place, and a condition that it satisfies."""
        pairs = [self._by_constants(self._codes(values))]
        if self._patterns is not None:
            of_values, patterns = self._patterns.pairs(values)
            pairs.append((of_values, self._of_patterns[patterns]))
        of_all, places = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        return of_all, places

    def _by_constants(self, codes: NDArray[np.integer]) -> tuple[Places, Places]:
        """The pairs of a value, by its place, and a condition that asks for the constant that it is."""
        known = np.flatnonzero(codes < self._sizes.size)
        own = codes[known]
        sizes = self._sizes[own]
        before = sizes.cumsum() - sizes
        within = np.arange(sizes.sum()) - np.repeat(before, sizes)
        return np.repeat(known, sizes), self._of_constants[np.repeat(self._firsts[own], sizes) + within]

    def _codes(self, values: pa.Array) -> NDArray[np.integer]:
        """For each value the place of its constant, or the one behind the last; so for NULL."""
        other = self._sizes.size
        if self._numbers.size:
            numbers = values.cast(pa.int64()).fill_null(0).to_numpy()
            codes: NDArray[np.integer] = np.searchsorted(self._numbers, numbers)
            there = self._numbers[np.minimum(codes, other - 1)] == numbers
            codes[~there] = other
        elif self._known is not None and other:
            codes = self._known.codes(*ends_and_letters(values))
        elif other:
            places = pc.index_in(values, value_set=texts_of(self._texts, values.type))
            codes = places.fill_null(other).to_numpy()
        else:
            codes = np.zeros(len(values), np.int32)
        if values.null_count:
            codes[~known_in(values)] = other
        return codes


class SeveralColumns:
    """The conditions that ask some column among several ones, by their places."""

    def __init__(self, names: Sequence[str], conditions: Sequence[SomeColumn]) -> None:
        self._names = names
        self._one = AskedColumn("", [condition.part for condition in conditions], len(names))
        self._number = len(conditions)

    def asked(self, columns: BatchColumns) -> AskedSeveral:
        """What a batch says to all conditions."""
        known = (columns.array(name) for name in self._names if not columns.is_null(name))
        return AskedSeveral(list(map(self._one.asked_of, known)), self._number, columns.batch.num_rows)


class AskedValues:
    """What a column of a batch says to the conditions on it.

    `codes` are the numbers of the values, by row; those from `values` on are of no interest. Value
    ``of_values[i]`` satisfies the condition ``places[i]``; each pair is there once.
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
        self.counts: NDArray[np.int64] = summed[self._first[1:]] - summed[self._first[:-1]]
        """The number of rows for which each condition holds, int64[conditions]."""
        self._of_asked: tuple[Rows, Places] | None = None
        self._tests: dict[int, Mask] = {}

    def rows(self, place: int) -> Rows:
        """The rows for which a condition holds, each once."""
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
        """Whether a condition holds in some rows."""
        held: Mask = self._test(place)[self._codes[rows]]
        return held

    def _test(self, place: int) -> Mask:
        """Whether a condition holds for each value, and for what is none."""
        test = self._tests.get(place)
        if test is None:
            test = self._tests[place] = np.zeros(self._number + 1, np.bool_)
            test[self._values[self._first[place] : self._first[place + 1]]] = True
        return test

    def _in_order(self) -> tuple[Rows, Places]:
        """The rows whose values some condition asks for, by value, and where those of each value end."""
        if self._of_asked is None:
            asked = np.zeros(self._number + 1, np.bool_)
            asked[self._values] = True
            rows = np.flatnonzero(asked[self._codes])
            codes = self._codes[rows]
            order = np.argsort(codes.astype(np.uint16) if self._number <= _FEW else codes, kind="stable")
            ends = np.bincount(codes, minlength=self._number).cumsum()
            self._of_asked = rows[order], np.concatenate([[0], ends])
        return self._of_asked


class AskedRows:
    """What a column of a few rows says to the conditions on it: their `rows`, by their places."""

    def __init__(self, rows: Mapping[int, list[int]], number: int, size: int) -> None:
        self._rows = {place: np.array(own, np.int64) for place, own in rows.items()}
        self._size = size
        self.counts: NDArray[np.int64] = np.zeros(number, np.int64)
        """The number of rows for which each condition holds, int64[conditions]."""
        for place, own in rows.items():
            self.counts[place] = len(own)

    def rows(self, place: int) -> Rows:
        """The rows for which a condition holds, each once."""
        return self._rows.get(place, NO_ROWS)

    def holds(self, place: int, rows: Rows) -> Mask:
        """Whether a condition holds in some rows."""
        held = np.zeros(self._size, np.bool_)
        held[self.rows(place)] = True
        return held[rows]


class AskedNothing:
    """What a column of NULLs says to the conditions on it."""

    def __init__(self, number: int) -> None:
        self.counts: NDArray[np.int64] = np.zeros(number, np.int64)
        """The number of rows for which each condition holds, int64[conditions]."""

    def rows(self, _place: int) -> Rows:
        """The rows for which a condition holds."""
        return NO_ROWS

    def holds(self, _place: int, rows: Rows) -> Mask:
        """Whether a condition holds in some rows."""
        return np.zeros(rows.size, np.bool_)


class AskedSeveral:
    """What several columns say: a condition holds in a row if it does for one of them."""

    def __init__(self, columns: Sequence[AskedAtOnce], number: int, size: int) -> None:
        self._columns = columns
        self._size = size
        self.counts: NDArray[np.int64] = sum((one.counts for one in columns), np.zeros(number, np.int64))
        """The number of rows for which each condition holds, or more, int64[conditions]."""

    def rows(self, place: int) -> Rows:
        """The rows for which a condition holds, each once."""
        mask = np.zeros(self._size, np.bool_)
        for column in self._columns:
            if column.counts[place]:
                mask[column.rows(place)] = True
        return np.flatnonzero(mask)

    def holds(self, place: int, rows: Rows) -> Mask:
        """Whether a condition holds in some rows."""
        held = np.zeros(rows.size, np.bool_)
        for column in self._columns:
            if column.counts[place]:
                held |= column.holds(place, rows)
        return held


class AskedElements:
    """What the elements of a column of lists say: a condition holds in a row if it does for one of them.

    `elements` are asked of all elements in a row, and `rows` are theirs, ascending.
    """

    def __init__(self, elements: AskedAtOnce, rows: Rows, size: int) -> None:
        self._elements = elements
        self._rows = rows.astype(np.int64, copy=False)
        self._size = size
        self.counts: NDArray[np.int64] = elements.counts
        """The number of rows for which each condition holds, or more, int64[conditions]."""
        self._tests: dict[int, Mask] = {}

    def rows(self, place: int) -> Rows:
        """The rows for which a condition holds, each once."""
        return np.flatnonzero(self._test(place))

    def holds(self, place: int, rows: Rows) -> Mask:
        """Whether a condition holds in some rows."""
        return self._test(place)[rows]

    def _test(self, place: int) -> Mask:
        test = self._tests.get(place)
        if test is None:
            test = self._tests[place] = np.zeros(self._size, np.bool_)
            test[self._rows[self._elements.rows(place)]] = True
        return test


AskedAtOnce: TypeAlias = AskedRows | AskedValues | AskedElements | AskedNothing


def by_column(conditions: Iterable[AnyCondition]) -> dict[str, list[AnyCondition]]:
    """Conditions by the column that they ask."""
    columns: dict[str, list[AnyCondition]] = {}
    for condition in conditions:
        columns.setdefault(column_of(condition), []).append(condition)
    return columns


def column_of(condition: Condition) -> str:
    """The one column that a condition reads which is asked."""
    (column,) = columns_of(condition)
    return column


def columns_of(condition: Condition) -> tuple[str, ...]:
    """The columns that a condition reads, which joins no others."""
    several: tuple[str, ...] = getattr(condition, "columns", ())
    return tuple(dict.fromkeys(several)) or (getattr(condition, "column"),)  # noqa: B009 - a field of all others
