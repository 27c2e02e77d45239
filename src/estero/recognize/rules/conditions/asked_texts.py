"""Texts of which few rows are asked for: conditions look at these alone, not at the whole column.

To look for the patterns of all conditions in each text of a column is dear, and pays where many of them ask.
Where few rules have begun, the other conditions of those that ask have left few rows.
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
    """A column with patterns, of which each batch is asked as those before suggest.

    It begins with all rows at once. Where conditions asked for fewer rows than a batch has, they look at
    these alone in the next one, and where that were more all the same, at all rows at once for good.
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
        """What all rows say, of which more were asked than was to be expected."""
        self._is_often_asked = True
        return self._at_once.asked(columns)

    def count(self, rows: int, of: int) -> bool:
        """Counts rows that a condition asks for; whether all were no more than those of the batch."""
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
    """What a column of texts says to the conditions on it; `values` is what all rows say, if it is known."""

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
