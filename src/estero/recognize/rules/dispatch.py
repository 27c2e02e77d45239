"""Which events each of many conditions holds for, at the cost of those that it wants.

Most conditions of rules ask one column for a constant, ``name = 'n17' AND value > 5``. Events of a batch are
sorted by the constants of such a column once; a condition then looks at the rows of its own constants, and
asks them what is left of it. Conditions that ask for none look at all events of their types.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.classify.arrays import known_in
from estero.classify.column_names import attribute_in, event_column
from estero.classify.columns import ColumnType
from estero.classify.vectors.batch_columns import BatchColumns
from estero.classify.vectors.compile import PlainColumns, joined
from estero.classify.vectors.conditions import (
    Condition,
    Constant,
    Joined,
    NumberList,
    NumberTest,
    TextList,
    TextTest,
    indices_of,
    rows_of,
)
from estero.classify.vectors.taking import taken
from estero.classify.vectors.text_columns import ends_and_letters
from estero.engine.texts import KnownTexts
from estero.language.tree.expressions import Attribute
from estero.language.tree.schema import Kind

Rows = NDArray[np.int64]

_KINDS: Final = frozenset({Kind.INT, Kind.FLOAT, Kind.STRING, Kind.BOOL})
"""Kinds of columns of which every value means here what it means in SQL."""
_FEW: Final = 1 << 16
"""So many constants have codes of 16 bits, which sort in one pass."""


class Wanted(NamedTuple):
    """What the condition at a place asks of events of some types, behind the constant of a column, if any."""

    place: int
    types: int
    rest: Condition | None


class Dispatcher:
    """Conditions on one event, by their places; `types` are the types that bits of a word stand for.

    `columns` says how expressions read attributes, `events` are the columns of classified batches. Raises
    `NotPlainError` for a condition that only SQL can evaluate.
    """

    def __init__(
        self,
        predicates: Sequence[EventPredicate],
        types: Sequence[str],
        columns: Mapping[str, ColumnType],
        events: pa.Schema,
    ) -> None:
        self._bits = {name: 1 << bit for bit, name in enumerate(types)}
        plain = PlainColumns(columns, _attributes(events, columns))
        divided = [_divided(plain, predicate) for predicate in predicates]
        asked: Counter[str] = Counter()
        for parts in divided:
            asked.update({column for column, _ in _constants(parts)})
        self._everywhere: list[Wanted] = []
        by_column: defaultdict[str, list[tuple[Wanted, Condition]]] = defaultdict(list)
        for place, (predicate, parts) in enumerate(zip(predicates, divided, strict=True)):
            if Constant(holds=False) in parts:
                continue
            mask = sum(self._bits[name] for name in predicate.types)
            best = max(_constants(parts), key=lambda named: asked[named[0]], default=None)
            rest = joined([part for part in parts if best is None or part is not best[1]], some=False)
            wanted = Wanted(place, mask, None if rest == Constant(holds=True) else rest)
            if best is None:
                self._everywhere.append(wanted)
            else:
                by_column[best[0]].append((wanted, best[1]))
        self._columns = [_AskedColumn(name, asking) for name, asking in by_column.items()]

    def rows(self, batch: pa.RecordBatch, types: NDArray[np.int64]) -> dict[int, list[Rows]]:
        """The rows of a batch for which each condition holds, in parts; `types` are the bits of its events.

        Conditions that hold for no row may be missing.
        """
        columns = BatchColumns(batch.rename_columns(list(map(attribute_in, batch.schema.names))))
        held: dict[int, list[Rows]] = {}
        of_types: dict[int, Rows] = {}
        for place, mask, rest in self._everywhere:
            if mask not in of_types:
                of_types[mask] = np.flatnonzero(types & mask)
            rows = of_types[mask]
            held[place] = [rows if rest is None else rows[rows_of(rest, columns)[rows]]]
        for column in self._columns:
            for wanted, rows in column.divided(columns.array(column.name)):
                own_types = types[rows]
                of_masks: dict[int, Rows] = {}
                for place, mask, rest in wanted:
                    if mask not in of_masks:
                        of_masks[mask] = rows[(own_types & mask) != 0]
                    own = of_masks[mask]
                    if rest is not None and own.size:
                        part = taken(columns.batch.select(_columns_of(rest)), own)
                        own = own[rows_of(rest, BatchColumns(part))]
                    if own.size:
                        held.setdefault(place, []).append(own)
        return held


class _AskedColumn:
    """A column, and the conditions that ask for each of its constants."""

    def __init__(self, name: str, asking: Iterable[tuple[Wanted, Condition]]) -> None:
        self.name = name
        by_value: dict[str | int, list[Wanted]] = {}
        for wanted, condition in asking:
            for value in _values(condition):
                by_value.setdefault(value, []).append(wanted)
        self._values = sorted(by_value, key=lambda value: (isinstance(value, str), value))
        self.asked = [by_value[value] for value in self._values]
        self._is_text = isinstance(self._values[0], str)
        self._numbers = np.array([] if self._is_text else self._values, np.int64)
        self._known = KnownTexts([str(value).encode() for value in self._values] if self._is_text else [])

    def divided(self, values: pa.Array) -> Iterator[tuple[list[Wanted], Rows]]:
        """The conditions that ask for each constant that occurs, and the ascending rows that have it."""
        codes, other = self._codes(values), len(self._values)
        rows = np.flatnonzero(codes < other)
        known = codes[rows]
        order = np.argsort(known.astype(np.uint16) if other <= _FEW else known, kind="stable")
        rows = rows[order]
        ends = np.bincount(known, minlength=other).cumsum()
        begin = 0
        for wanted, end in zip(self.asked, ends.tolist(), strict=True):
            if end > begin:
                yield wanted, rows[begin:end]
            begin = end

    def _codes(self, values: pa.Array) -> NDArray[np.int32]:
        """For each value the place of its constant, or the one behind the last; so for NULL."""
        if isinstance(values, pa.DictionaryArray):
            codes = np.append(self._codes(values.dictionary), np.int32(len(self._values)))
            of_rows: NDArray[np.int32] = codes[indices_of(values)]
            return of_rows
        if self._is_text:
            codes = self._known.codes(*ends_and_letters(values))
        else:
            numbers = values.cast(pa.int64()).fill_null(0).to_numpy()
            codes = np.searchsorted(self._numbers, numbers).astype(np.int32)
            there = self._numbers[np.minimum(codes, self._numbers.size - 1)] == numbers
            codes[~there] = self._numbers.size
        if values.null_count:
            codes[~known_in(values)] = len(self._values)
        return codes


def type_names(predicates: Iterable[EventPredicate]) -> list[str]:
    """The names of the types that conditions ask for."""
    return list(dict.fromkeys(name for predicate in predicates for name in predicate.types))


def condition_columns(predicates: Iterable[EventPredicate]) -> list[str]:
    """The attributes that conditions read."""
    nodes = (predicate.condition for predicate in predicates if predicate.condition is not None)
    read = (node.name for condition in nodes for node in condition.walk() if isinstance(node, Attribute))
    return list(dict.fromkeys(read))


def _divided(plain: PlainColumns, predicate: EventPredicate) -> list[Condition]:
    """The conditions that all have to hold."""
    if predicate.condition is None:
        return []
    condition = plain.condition(predicate.condition)
    if isinstance(condition, Joined) and not condition.some:
        return list(condition.parts)
    return [] if condition == Constant(holds=True) else [condition]


def _constants(parts: Sequence[Condition]) -> Iterator[tuple[str, Condition]]:
    """The parts that ask a column for constants, with its name."""
    for part in parts:
        match part:
            case TextTest(column, "=", _) | TextList(column, _, False):
                yield column, part
            case NumberTest(column, "=", int()) | NumberList(column, _, False):
                if all(isinstance(value, int) for value in _values(part)):
                    yield column, part


def _values(part: Condition) -> tuple[str | int, ...]:
    match part:
        case TextTest(_, _, text):
            return (text,)
        case TextList(_, texts, _):
            return tuple(sorted(texts))
        case NumberTest(_, _, number):
            return (number,)
        case NumberList(_, numbers, _):
            return tuple(dict.fromkeys(numbers))
    raise TypeError(f"no constants are asked for: {part}")


def _columns_of(condition: Condition) -> list[str]:
    """The columns that a condition reads."""
    if isinstance(condition, Joined):
        return list(dict.fromkeys(name for part in condition.parts for name in _columns_of(part)))
    column: str | None = getattr(condition, "column", None)
    return [] if column is None else [column]


def _attributes(events: pa.Schema, columns: Mapping[str, ColumnType]) -> pa.Schema:
    """The attributes among the columns of classified events, but for those of kinds that are SQL's."""
    fields = []
    for name, column in columns.items():
        place = events.get_field_index(event_column(name))
        if place >= 0 and column.kind in _KINDS and not pa.types.is_uint64(events.field(place).type):
            fields.append(events.field(place).with_name(name))
    return pa.schema(fields)
