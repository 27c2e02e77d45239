"""Many conditions joined by AND, OR and NOT over shared parts, and their evaluation on a batch.

For each batch, the rows of the parts that compare a column with constants or patterns are counted first. From
these numbers, a few vector operations compute an upper bound of the rows of every condition: the minimum of
its parts joined by AND, the sum of those joined by OR. It is 0 for most conditions. The others are evaluated
on the rows of their rarest part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from estero.classify.vectors.batch_columns import BatchColumns, Mask
from estero.classify.vectors.conditions import Condition, Joined, rows_of
from estero.classify.vectors.taking import taken
from estero.classify.vectors.text_patterns import (
    Negation,
    Pattern,
    Regex,
    Related,
    SomeColumn,
    is_asked,
)
from estero.recognize.rules.conditions.asked_columns import (
    AskedColumn,
    SeveralColumns,
    by_column,
    columns_of,
)
from estero.recognize.rules.conditions.asked_conditions import AskedConditions, Conditions, Rows
from estero.recognize.rules.conditions.asked_texts import TextColumn
from estero.recognize.rules.conditions.bounded_columns import BoundedColumn, bounded

_OFTEN: Final = 8
"""The number of conditions from which a part of them is evaluated for a whole batch."""


class AskedBatch:
    """The results on a batch; `most` has an upper bound of the rows of each part, by its number.

    After the numbers of all parts come those of a part that never holds, and of one that always holds.
    """

    def __init__(
        self, columns: BatchColumns, values: Sequence[AskedConditions], most: NDArray[np.int64]
    ) -> None:
        self.columns = columns
        self.values = values
        self.at_most: NDArray[np.int64] = most
        self.most: list[int] = most.tolist()
        self.size: int = columns.batch.num_rows
        self.rows: dict[int, Rows] = {}


@dataclass(eq=False, slots=True, kw_only=True)
class Part(ABC):
    """A part of conditions: its number, the number of parts that contain it, and whether it is expensive."""

    number: int
    level: int = 0
    users: int = 0
    dear: bool = False

    @abstractmethod
    def _rows(self, batch: AskedBatch) -> Rows:
        """The rows in which it holds, without duplicates."""

    @abstractmethod
    def holds(self, batch: AskedBatch, rows: Rows) -> Mask:
        """Whether it holds in each of some rows."""

    def rows(self, batch: AskedBatch) -> Rows:
        """The rows in which it holds, without duplicates and computed once."""
        if self.users == 1:
            return self._rows(batch)
        if self.number not in batch.rows:
            batch.rows[self.number] = self._rows(batch)
        return batch.rows[self.number]


@dataclass(eq=False, slots=True, kw_only=True)
class Asked(Part):
    """A part that is evaluated together with others: the number of its column, and its place there."""

    column: int = 0
    place: int = 0

    def _rows(self, batch: AskedBatch) -> Rows:
        return batch.values[self.column].rows(self.place)

    def holds(self, batch: AskedBatch, rows: Rows) -> Mask:
        return batch.values[self.column].holds(self.place, rows)


@dataclass(eq=False, slots=True, kw_only=True)
class Evaluated(Part):
    """A part that is evaluated by itself."""

    condition: Condition

    def _rows(self, batch: AskedBatch) -> Rows:
        return np.flatnonzero(rows_of(self.condition, batch.columns))

    def holds(self, batch: AskedBatch, rows: Rows) -> Mask:
        mask = batch.columns.masks.get(self.condition)
        if mask is None and self.users < _OFTEN and 2 * rows.size < batch.size:
            part = taken(batch.columns.batch.select(list(columns_of(self.condition))), rows)
            return rows_of(self.condition, BatchColumns(part))
        return rows_of(self.condition, batch.columns)[rows]


@dataclass(eq=False, slots=True, kw_only=True)
class Not(Part):
    """A part that holds where another one does not."""

    part: Part

    def _rows(self, batch: AskedBatch) -> Rows:
        mask = np.ones(batch.size, np.bool_)
        if batch.most[self.part.number]:
            mask[self.part.rows(batch)] = False
        return np.flatnonzero(mask)

    def holds(self, batch: AskedBatch, rows: Rows) -> Mask:
        if not batch.most[self.part.number]:
            return np.ones(rows.size, np.bool_)
        return ~self.part.holds(batch, rows)


@dataclass(eq=False, slots=True, kw_only=True)
class All(Part):
    """Parts joined by AND."""

    parts: tuple[Part, ...]

    def _rows(self, batch: AskedBatch) -> Rows:
        first, *others = self._rarest_first(batch)
        rows = first.rows(batch)
        for part in others:
            if not rows.size:
                break
            rows = rows[part.holds(batch, rows)]
        return rows

    def holds(self, batch: AskedBatch, rows: Rows) -> Mask:
        mask = np.zeros(rows.size, np.bool_)
        if batch.most[self.number]:
            left = np.arange(rows.size)
            for part in self._rarest_first(batch):
                left = left[part.holds(batch, rows[left])]
                if not left.size:
                    break
            mask[left] = True
        return mask

    def _rarest_first(self, batch: AskedBatch) -> list[Part]:
        return sorted(self.parts, key=lambda part: (batch.most[part.number], part.dear))


@dataclass(eq=False, slots=True, kw_only=True)
class Some(Part):
    """Parts joined by OR."""

    parts: tuple[Part, ...]

    def _rows(self, batch: AskedBatch) -> Rows:
        possible = [part for part in self.parts if batch.most[part.number]]
        if len(possible) == 1:
            return possible[0].rows(batch)
        mask = np.zeros(batch.size, np.bool_)
        for part in possible:
            mask[part.rows(batch)] = True
        return np.flatnonzero(mask)

    def holds(self, batch: AskedBatch, rows: Rows) -> Mask:
        mask = np.zeros(rows.size, np.bool_)
        for part in self.parts:
            if batch.most[part.number]:
                mask |= part.holds(batch, rows)
        return mask


class ConditionForest:
    """Conditions with shared parts; `roots` are the conditions, in order."""

    def __init__(self, conditions: Sequence[Condition]) -> None:
        self._parts: dict[Condition, Part] = {}
        self._bounded = bounded(conditions)
        self.roots: list[Part] = list(map(self._part, conditions))
        asked = {condition: part for condition, part in self._parts.items() if isinstance(part, Asked)}
        self._columns = []
        self._numbers = []
        self._often = [
            part
            for part in self._parts.values()
            if isinstance(part, Evaluated) and part.users >= _OFTEN and not part.dear
        ]
        several: dict[tuple[str, ...], list[SomeColumn]] = {}
        of_one: list[Condition] = []
        for one in asked:
            if isinstance(one, SomeColumn):
                several.setdefault(one.columns, []).append(one)
            else:
                of_one.append(one)
        of_columns = by_column(one for one in of_one if one not in self._bounded)
        bounds = by_column(one for one in of_one if one in self._bounded)
        columns: list[tuple[Conditions, Sequence[Condition]]] = [
            *((_asked_column(name, own), own) for name, own in of_columns.items()),
            *((SeveralColumns(names, own), own) for names, own in several.items()),
            *((BoundedColumn(name, own), own) for name, own in bounds.items()),
        ]
        for number, (column, tests) in enumerate(columns):
            for place, test in enumerate(tests):
                asked[test].column, asked[test].place = number, place
            self._columns.append(column)
            self._numbers.append(np.array([asked[test].number for test in tests], np.int64))
        joining = [part for part in self._parts.values() if isinstance(part, All | Some)]
        kinds = sorted({(part.level, isinstance(part, Some)) for part in joining})
        self._steps = [
            (
                kind[1],
                _Together.of([part for part in joining if (part.level, isinstance(part, Some)) == kind]),
            )
            for kind in kinds
        ]

    @property
    def size(self) -> int:
        """The number of parts."""
        return len(self._parts)

    def _part(self, condition: Condition) -> Part:
        part = self._parts.get(condition)
        if part is None:
            part = self._made(condition)
            self._parts[condition] = part
        part.users += 1
        return part

    def _made(self, condition: Condition) -> Part:
        match condition:
            case Joined(parts, some):
                inner = tuple(map(self._part, parts))
                level, dear = 1 + max(part.level for part in inner), any(part.dear for part in inner)
                join = Some if some else All
                return join(number=len(self._parts), level=level, dear=dear, parts=inner)
            case Negation(negated):
                part = self._part(negated)
                return Not(number=len(self._parts), level=part.level, dear=part.dear, part=part)
        if is_asked(condition) or condition in self._bounded:
            return Asked(number=len(self._parts))
        dear = isinstance(condition, Regex | Related)
        return Evaluated(number=len(self._parts), dear=dear, condition=condition)

    def asked(self, columns: BatchColumns) -> AskedBatch:
        """The results of all conditions on a batch, whose columns have the names of attributes."""
        values = [column.asked(columns) for column in self._columns]
        most = np.empty(len(self._parts) + 2, np.int64)
        most.fill(columns.batch.num_rows)
        most[len(self._parts)] = 0
        for numbers, own in zip(self._numbers, values, strict=True):
            most[numbers] = own.counts
        for part in self._often:
            most[part.number] = np.count_nonzero(rows_of(part.condition, columns))
        for some, step in self._steps:
            join = np.add if some else np.minimum
            most[step.numbers] = join.reduceat(most[step.parts], step.firsts)
        return AskedBatch(columns, values, most)


def _asked_column(name: str, conditions: Sequence[Condition]) -> Conditions:
    has_patterns = any(isinstance(condition, Pattern) for condition in conditions)
    return TextColumn(name, conditions) if has_patterns else AskedColumn(name, conditions)


@dataclass(frozen=True, slots=True)
class _Together:
    """Parts by number that join others by the same operator; those of the first come first in `parts`."""

    numbers: NDArray[np.int64]
    parts: NDArray[np.int64]
    firsts: NDArray[np.int64]

    @classmethod
    def of(cls, joining: Sequence[All | Some]) -> _Together:
        sizes = np.array([len(one.parts) for one in joining], np.int64)
        return cls(
            np.array([one.number for one in joining], np.int64),
            np.array([part.number for one in joining for part in one.parts], np.int64),
            sizes.cumsum() - sizes,
        )
