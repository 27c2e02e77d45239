"""Columns of texts of which conditions need few rows, and evaluate their patterns only on these.

Searching every text of a column for the patterns of all conditions is expensive, and pays only if many rows
are needed. If few rules have begun, the other parts of conditions leave few rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from estero.classify.vectors.batch_columns import BatchColumns, Mask
from estero.classify.vectors.conditions import Condition, TextCondition
from estero.classify.vectors.known_patterns import KnownPatterns
from estero.classify.vectors.taking import column_taken
from estero.classify.vectors.text_patterns import Pattern
from estero.recognize.rules.conditions.asked_columns import AskedColumn
from estero.recognize.rules.conditions.asked_conditions import AskedConditions, Conditions, Rows


class TextColumn(Conditions):
    """A column with patterns, which are evaluated in the way that previous batches suggest.

    At first, all rows are searched at once. If conditions need fewer rows than a batch has, patterns are
    evaluated only on these in the next batch; if that turns out to be more rows, always on all rows.
    """

    def __init__(self, name: str, conditions: Sequence[Condition]) -> None:
        self.name = name
        self.number: int = len(conditions)
        self._at_once = AskedColumn(name, conditions)
        self._texts = [condition for condition in conditions if isinstance(condition, TextCondition)]
        self._alone: dict[int, KnownPatterns] = {}
        self._is_often_asked = len(self._texts) < self.number
        self._rows: int | None = None

    def asked(self, columns: BatchColumns) -> AskedConditions:
        texts = columns.array(self.name)
        if self._is_often_asked or not pa.types.is_string(texts.type) or texts.null_count == len(texts):
            return self._at_once.asked(columns)
        begun, self._rows = self._rows is not None, self._rows or 0
        is_rarely_asked, self._rows = begun and self._rows <= len(texts), 0
        return AskedTexts(self, columns, None if is_rarely_asked else self._at_once.asked(columns))

    def at_once(self, columns: BatchColumns) -> AskedConditions:
        """The results on all rows, because more rows are needed than expected."""
        self._is_often_asked = True
        return self._at_once.asked(columns)

    def count(self, rows: int, of: int) -> bool:
        """Counts rows that a condition needs; returns whether all are no more than those of the batch."""
        self._rows = (self._rows or 0) + rows
        return self._rows <= of

    def holds(self, place: int, texts: pa.Array) -> Mask:
        condition = self._texts[place]
        if not isinstance(condition, Pattern):
            return condition.of_texts(texts)
        if place not in self._alone:
            self._alone[place] = KnownPatterns([condition])
        mask: Mask = np.zeros(len(texts), np.bool_)
        like, _ = self._alone[place].pairs(texts)
        mask[like] = True
        return mask


class AskedTexts(AskedConditions):
    """The results of the conditions on a column of texts; `values` are those on all rows, if known."""

    def __init__(self, column: TextColumn, columns: BatchColumns, values: AskedConditions | None) -> None:
        self._column = column
        self._columns = columns
        self._texts = columns.array(column.name)
        self._values = values
        known = len(self._texts) - self._texts.null_count
        self.counts = np.full(column.number, known, np.int64) if values is None else values.counts

    def rows(self, place: int) -> Rows:
        self._column.count(len(self._texts) + 1, len(self._texts))
        return self._all().rows(place)

    def holds(self, place: int, rows: Rows) -> Mask:
        if self._column.count(rows.size, len(self._texts)) and self._values is None:
            return self._column.holds(place, column_taken(self._texts, rows))
        return self._all().holds(place, rows)

    def _all(self) -> AskedConditions:
        if self._values is None:
            self._values = self._column.at_once(self._columns)
        return self._values
