"""A column that many conditions compare with constants or patterns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.classify.arrays import known_in, texts_of
from estero.classify.remembered import Remembered
from estero.classify.vectors.batch_columns import BatchColumns
from estero.classify.vectors.conditions import Condition, indices_of
from estero.classify.vectors.known_patterns import KnownPatterns
from estero.classify.vectors.text_columns import ends_and_letters
from estero.classify.vectors.text_patterns import Pattern, SomeColumn, constants_of
from estero.engine.texts import KnownTexts
from estero.recognize.rules.conditions.asked_conditions import (
    AskedConditions,
    AskedElements,
    AskedNothing,
    AskedRows,
    AskedSeveral,
    AskedValues,
    Conditions,
    Places,
)

AnyCondition = TypeVar("AnyCondition", bound=Condition)

_FEW_TEXTS: Final = 256
"""The largest number of texts with a distinct hash each in a small table (`KnownTexts`)."""
FEW_ROWS: Final = 64
"""The largest number of rows that are looked up one by one rather than all at once,"""
_ASKING: Final = 64
"""if no more conditions than these compare one value."""
_DICTIONARIES: Final = 2
"""The number of dictionaries of a column whose results are cached."""


class AskedColumn(Conditions):
    """The conditions that compare one column with constants or patterns, by their places."""

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

    def asked(self, columns: BatchColumns) -> AskedConditions:
        return self.asked_of(columns.array(self.name))

    def asked_of(self, column: pa.Array) -> AskedConditions:
        """The results of all conditions on a column."""
        if self._is_one_by_one and len(column) <= FEW_ROWS and not pa.types.is_nested(column.type):
            return self._one_by_one(column)
        return self._all_at_once(column)

    def _all_at_once(self, column: pa.Array) -> AskedConditions:
        """The results of all conditions on many values."""
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

    def _one_by_one(self, column: pa.Array) -> AskedConditions:
        """The results of all conditions on a few values."""
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
        """The pairs of a value, by its place, and a condition whose constant it equals."""
        known = np.flatnonzero(codes < self._sizes.size)
        own = codes[known]
        sizes = self._sizes[own]
        before = sizes.cumsum() - sizes
        within = np.arange(sizes.sum()) - np.repeat(before, sizes)
        return np.repeat(known, sizes), self._of_constants[np.repeat(self._firsts[own], sizes) + within]

    def _codes(self, values: pa.Array) -> NDArray[np.integer]:
        """For each value the place of its constant, or the place after the last for others and NULL."""
        other = self._sizes.size
        if self._numbers.size:
            numbers = values.cast(pa.int64()).fill_null(0).to_numpy()
            codes: NDArray[np.integer] = np.searchsorted(self._numbers, numbers)
            equal = self._numbers[np.minimum(codes, other - 1)] == numbers
            codes[~equal] = other
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


class SeveralColumns(Conditions):
    """The conditions on any of several columns, by their places."""

    def __init__(self, names: Sequence[str], conditions: Sequence[SomeColumn]) -> None:
        self._names = names
        self._one = AskedColumn("", [condition.part for condition in conditions], len(names))
        self._number = len(conditions)

    def asked(self, columns: BatchColumns) -> AskedSeveral:
        known = (columns.array(name) for name in self._names if not columns.is_null(name))
        return AskedSeveral(list(map(self._one.asked_of, known)), self._number, columns.batch.num_rows)


def by_column(conditions: Iterable[AnyCondition]) -> dict[str, list[AnyCondition]]:
    """The conditions, grouped by the column that they compare."""
    columns: dict[str, list[AnyCondition]] = {}
    for condition in conditions:
        columns.setdefault(column_of(condition), []).append(condition)
    return columns


def column_of(condition: Condition) -> str:
    """The one column that a condition compares."""
    (column,) = columns_of(condition)
    return column


def columns_of(condition: Condition) -> tuple[str, ...]:
    """The columns that a condition without AND, OR and NOT reads."""
    several: tuple[str, ...] = getattr(condition, "columns", ())
    return tuple(dict.fromkeys(several)) or (getattr(condition, "column"),)  # noqa: B009 - a field of all others
