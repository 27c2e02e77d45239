"""The classify stage (`plan.Classification`) for batches of Arrow, by vector code instead of SQL.

It gives what DuckDB's statement gives (`classify.classify_sql`), or leaves it to that statement: as a whole
where `plain_classifier` is None, and for a batch where `OddValueError` says that it has a value of which only
SQL says what it means. It has no state, so threads may share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.automata.registers import Value
from estero.classify.arrays import array_of, numbers_in
from estero.classify.column_names import KEYS, POSITION, TIME, WORD, screen_name, value_name, word_names
from estero.classify.columns import ColumnType
from estero.classify.vectors.arrow_types import as_returned
from estero.classify.vectors.batch_columns import (
    BatchColumns,
    Mask,
    OddValueError,
    stored,
    with_nulls,
    without_views,
)
from estero.classify.vectors.compile import NotPlainError, PlainColumns, joined
from estero.classify.vectors.conditions import Condition, Constant, TextList, rows_of
from estero.classify.vectors.taking import taken
from estero.classify.vectors.within_reach import within_reach
from estero.language.tree.expressions import Attribute, Node
from estero.language.tree.schema import Kind
from estero.plan.plan import Classification
from estero.plan.reach import Reach

_ITSELF: Final = frozenset({Kind.INT, Kind.BOOL, Kind.TIMESTAMP})
"""Kinds whose single key is the value itself."""
_NUMBERS: Final = _ITSELF | {Kind.FLOAT}

KeyHashes = Callable[[pa.Array], tuple[NDArray[np.uint64], NDArray[np.uint64]]]
"""Both halves of the key of each text, as SQL has them."""


def plain_classifier(
    classification: Classification,
    columns: Mapping[str, ColumnType],
    events: pa.Schema,
    screened: Sequence[Node | None] | None = None,
    reach: Reach | None = None,
    hashes: KeyHashes | None = None,
) -> PlainClassifier | None:
    """The classifier of batches with this schema; None where something that is asked is not plain.

    `columns` is as in `classify_sql`, and so is `screened`: what is left of the predicates where batches come
    with the bits of a screen. Events out of `reach` are left out. With `hashes` a key may be a text, if it
    comes with a dictionary, whose few texts these are asked of.
    """
    try:
        return PlainClassifier(classification, PlainColumns(columns, events), screened, reach, hashes)
    except NotPlainError:
        return None


def plain_schema(
    classification: Classification,
    columns: Mapping[str, ColumnType],
    events: pa.Schema,
    hashes: KeyHashes | None = None,
) -> pa.Schema | None:
    """The columns of a classified table as DuckDB hands them back; None where DuckDB is to be asked.

    The conditions make no difference; `hashes` are as in `plain_classifier`.
    """
    silent = (EventPredicate(()),) * len(classification.predicates)
    asked = replace(classification, predicates=silent)
    classifier = plain_classifier(asked, columns, events, hashes=hashes)
    return None if classifier is None else classifier.schema


class PlainClassifier:
    """Classifies batches that have their positions; `schema` is that of the table as SQL gives it.

    Raises `NotPlainError` if only SQL can evaluate something.
    """

    def __init__(
        self,
        classification: Classification,
        columns: PlainColumns,
        screened: Sequence[Node | None] | None,
        reach: Reach | None = None,
        hashes: KeyHashes | None = None,
    ) -> None:
        self._classification = classification
        self._hashes = hashes
        self._reach = None if screened is not None and not any(screened) else reach
        self._columns = columns
        self._is_screened = screened is not None
        rests = [None] * len(classification.predicates) if screened is None else screened
        bits = list(map(self._bit, classification.predicates, rests))
        parts = [bits[first : first + WORD] for first in range(0, max(1, len(bits)), WORD)]
        self._words = list(map(_masks, parts))
        self._unasked = [_masks([None] * len(part)) for part in parts]
        self._time = self._time_column()
        self._key = self._key_column()
        self._values = [self._value(value) for value in classification.values]
        if len({columns.ticks_of(name) for name, *_ in self._values} - {None}) > 1:
            raise NotPlainError
        self._payload = [(name, as_returned(self._columns.stored(name))) for name in classification.payload]
        self.schema: pa.Schema = self._schema()

    # ------------------------------------------------------------------------------------- compiling

    def _bit(self, predicate: EventPredicate, rest: Node | None) -> Condition | None:
        """The condition of a predicate, or what a screen has left of it; None where all rows have it."""
        if self._is_screened:
            return None if rest is None else self._columns.condition(rest)
        of_type = self._has_type(predicate.types)
        if predicate.condition is None:
            return of_type
        return joined([of_type, self._columns.condition(predicate.condition)], some=False)

    def _has_type(self, types: Sequence[str]) -> Condition:
        """The rows of these types."""
        column = self._classification.type_column
        if column is None:
            return Constant(holds=self._classification.only_type in types)
        if self._columns.column(column) is None:
            raise NotPlainError
        return TextList(column, frozenset(types)) if types else Constant(holds=False)

    def _time_column(self) -> str | None:
        name = self._classification.schema.time
        if name is not None and self._kind(name) not in {Kind.INT, Kind.TIMESTAMP}:
            raise NotPlainError
        return name

    def _key_column(self) -> str | None:
        """The column of a key that is itself, or a text of a dictionary."""
        if not self._classification.keys:
            return None
        (*others, bracket) = self._classification.keys
        present = [name for name in bracket if self._columns.has(name)]
        if others or len(present) != 1:
            raise NotPlainError
        (name,) = present
        kind = self._kind(name)
        hashed = kind is Kind.STRING and self._hashes is not None and self._columns.is_encoded(name)
        if kind not in _ITSELF and not hashed:
            raise NotPlainError
        return name

    def _value(self, value: Value) -> tuple[str, Condition, bool]:
        """The column of a value, the rows of its types, and whether it is a float."""
        if not isinstance(value.expression, Attribute) or value.hashed is not None:
            raise NotPlainError
        name = value.expression.name
        kind = self._kind(name)
        if kind not in _NUMBERS:
            raise NotPlainError
        return name, self._has_type(value.types), kind is Kind.FLOAT

    def _kind(self, name: str) -> Kind | None:
        column = self._columns.column(name)
        return None if column is None else column.kind

    def _schema(self) -> pa.Schema:
        fields = [(POSITION, pa.int64()), (TIME, pa.int64())]
        fields += [(name, pa.uint64()) for name in KEYS if self._key is not None]
        fields += [(name, pa.int64()) for name in word_names(len(self._classification.predicates))]
        fields += [
            (value_name(place), pa.float64() if is_float else pa.int64())
            for place, (_, _, is_float) in enumerate(self._values)
        ]
        return pa.schema([*fields, *self._payload])

    # ----------------------------------------------------------------------------------- classifying

    def classified(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """The relevant events of a batch, in the columns of `schema`; None where there are none.

        The batch has the column `POSITION` and, if it is screened, the words of the screen. Raises
        `OddValueError` for a batch that is SQL's.
        """
        columns = BatchColumns(batch)
        columns.check_converted()
        words = self._bits(columns)
        rows = self._relevant(columns, words)
        if rows is not None:
            words = [word.take(rows) for word in words]
        kept = self._within_reach(columns, words, rows)
        if kept is not None:
            rows = kept if rows is None else rows[kept]
            words = [word[kept] for word in words]
        if rows is not None:
            if not rows.size:
                return None
            batch = taken(batch, rows)
            columns = BatchColumns(batch)
        return pa.RecordBatch.from_arrays(list(self._outputs(columns, words)), schema=self.schema)

    def _bits(self, columns: BatchColumns) -> list[NDArray[np.int64]]:
        """The words of bits of all rows."""
        words = []
        for place, masks in enumerate(self._words):
            screen = numbers_in(columns.batch.column(screen_name(place))) if self._is_screened else None
            if screen is not None and masks == self._unasked[place]:
                words.append(screen)
                continue
            word = np.zeros(columns.batch.num_rows, np.int64)
            for condition, mask in masks.items():
                bits: NDArray[np.int64] | np.int64 = np.int64(mask) if screen is None else screen & mask
                word |= bits if condition is None else bits * rows_of(condition, columns)
            words.append(word)
        return words

    def _relevant(
        self, columns: BatchColumns, words: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.int64] | None:
        """The rows of relevant events; None where all are."""
        keep: Mask | None = None
        if not self._classification.keep_all:
            keep = reduce(np.bitwise_or, words) != 0
        if self._key is not None and (known := columns.known(self._key)) is not None:
            keep = known if keep is None else keep & known
        return None if keep is None or keep.all() else np.flatnonzero(keep)

    def _within_reach(
        self, columns: BatchColumns, words: Sequence[NDArray[np.int64]], rows: NDArray[np.int64] | None
    ) -> NDArray[np.intp] | None:
        """The places among these rows, which have the bits `words`, that matter; None where all may."""
        if self._reach is None:
            return None
        if self._reach.window.in_positions or self._time is None:
            stamps = numbers_in(columns.batch.column(POSITION))
        elif columns.known(self._time) is not None:
            raise OddValueError
        else:
            stamps = columns.ticks(self._time)
        return within_reach(self._reach, stamps if rows is None else stamps[rows], words)

    def _outputs(self, columns: BatchColumns, words: Sequence[NDArray[np.int64]]) -> Iterator[pa.Array]:
        """The columns of `schema`."""
        position = columns.batch.column(POSITION)
        yield position
        if self._time is None:
            yield position
        elif columns.known(self._time) is not None:
            raise OddValueError
        else:
            yield array_of(columns.ticks(self._time))
        if self._key is not None:
            yield from map(array_of, self._halves(columns, self._key))
        yield from map(array_of, words)
        for name, of_types, is_float in self._values:
            yield _value_array(columns, name, of_types, is_float=is_float)
        for name, kind in self._payload:
            yield _shown(columns.decoded(name), kind)

    def _halves(self, columns: BatchColumns, name: str) -> list[NDArray[np.uint64]]:
        """Both halves of the key, which no event lacks."""
        if self._hashes is not None and self._kind(name) is Kind.STRING:
            return _halves_of_texts(without_views(columns.batch.column(name)), self._hashes)
        return [columns.ticks(name).view(np.uint64), np.zeros(columns.batch.num_rows, np.uint64)]


def _halves_of_texts(texts: pa.DictionaryArray, hashes: KeyHashes) -> list[NDArray[np.uint64]]:
    indices = numbers_in(texts.indices)
    return [half[indices] for half in hashes(texts.dictionary)]


def _value_array(columns: BatchColumns, name: str, of_types: Condition, *, is_float: bool) -> pa.Array:
    """The values that registers compare; NULL for events of other types."""
    numbers = stored(columns.decoded(name)).astype(np.float64) if is_float else columns.ticks(name)
    known = columns.known(name)
    if of_types != Constant(holds=True):
        own = rows_of(of_types, columns)
        known = own if known is None else own & known
    return with_nulls(numbers, known)


def _shown(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values in the type in which DuckDB hands them back."""
    try:
        return array if array.type == kind else array.cast(kind)
    except pa.ArrowInvalid as error:  # a time beyond microseconds, or more text than a column may have
        raise OddValueError from error


def _masks(conditions: Iterable[Condition | None]) -> dict[Condition | None, int]:
    """The bits of each condition, by the places of those that are equal."""
    masks: dict[Condition | None, int] = {}
    for bit, condition in enumerate(conditions):
        if condition != Constant(holds=False):
            masks[condition] = masks.get(condition, 0) | 1 << bit
    return masks
