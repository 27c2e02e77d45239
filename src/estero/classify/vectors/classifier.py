"""The classify stage (`plan.Classification`) for batches of Arrow, by vector code instead of SQL.

Its result equals that of DuckDB's statement (`classify.classify_sql`), or it leaves the events to that
statement: all of them if `plain_classifier` is None, and a batch if `OddValueError` says that it has a value
that only SQL can interpret. It has no state, so threads may share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.automata.registers import Value
from estero.classify.arrays import array_of, numbers_in, without_nulls
from estero.classify.column_names import (
    KEYED,
    KEYS,
    POSITION,
    TIME,
    WORD,
    screen_name,
    value_name,
    word_names,
)
from estero.classify.columns import ColumnType
from estero.classify.vectors.arrow_types import as_returned
from estero.classify.vectors.batch_columns import (
    BatchColumns,
    Mask,
    OddValueError,
    is_odd_number,
    stored,
    with_nulls,
)
from estero.classify.vectors.common_part import FewTests, Tests, columns_in, factored
from estero.classify.vectors.compile import NotPlainError, PlainColumns, joined
from estero.classify.vectors.conditions import Condition, Constant, TextList, indices_of, rows_of
from estero.classify.vectors.taking import taken
from estero.classify.vectors.within_reach import within_reach
from estero.engine.masks import marked_rows
from estero.language.tree.expressions import Attribute, Node
from estero.language.tree.schema import Kind
from estero.plan.plan import Classification
from estero.plan.reach import Reach

_ITSELF: Final = frozenset({Kind.INT, Kind.BOOL, Kind.TIMESTAMP})
"""Kinds whose single key is the value itself."""
_NUMBERS: Final = _ITSELF | {Kind.FLOAT}
_ALWAYS: Final = Constant(holds=True)
_RARE: Final = 32
"""A condition that holds in less than one of this many rows is noted by row: 0.1 to 0.4 ns a row, not 0.8.

At one of 20 both take as long.
"""
_FEW: Final = 3
"""If what all conditions share holds in less than one of this many rows, the rest is tested only there."""

Halves = tuple[NDArray[np.uint64], NDArray[np.uint64]]
RowKeys = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Gives both halves of each row's key, and whether it is known, for rows with the columns of keys."""


class SqlKeys(Protocol):
    """Keys that only SQL can compute, for events that are classified without it."""

    def of_texts(self, texts: pa.Array) -> Halves:
        """Both halves of the key of each text; any numbers for NULL."""

    def of_dictionary(self, texts: pa.Array) -> Halves:
        """The same for texts that may be looked up again."""

    def of_rows(self, classification: Classification, columns: Mapping[str, ColumnType]) -> RowKeys:
        """A function that gives the keys of PARTITION BY."""


def plain_classifier(
    classification: Classification,
    columns: Mapping[str, ColumnType],
    events: pa.Schema,
    screened: Sequence[Node | None] | None = None,
    reach: Reach | None = None,
    keys: SqlKeys | None = None,
) -> PlainClassifier | None:
    """The classifier of batches with this schema; None if some part of the classification is not plain.

    `columns` is as in `classify_sql`, and so is `screened`: the rests of the predicates if batches come with
    the bits of a screen. Events out of `reach` are left out. Keys need not be plain if SQL gives them
    (`keys`), which reads no other columns.
    """
    try:
        return PlainClassifier(classification, PlainColumns(columns, events), screened, reach, keys)
    except NotPlainError:
        return None


def plain_schema(
    classification: Classification,
    columns: Mapping[str, ColumnType],
    events: pa.Schema,
    keys: SqlKeys | None = None,
) -> pa.Schema | None:
    """The columns of a classified table as DuckDB returns them; None if only DuckDB can tell.

    The conditions make no difference; `keys` are as in `plain_classifier`.
    """
    silent = (EventPredicate(()),) * len(classification.predicates)
    asked = replace(classification, predicates=silent)
    classifier = plain_classifier(asked, columns, events, keys=keys)
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
        keys: SqlKeys | None = None,
    ) -> None:
        self._classification = classification
        self._sql_keys = keys
        self._has_converted = columns.has_converted
        self._reach = None if screened is not None and not any(screened) else reach
        self._columns = columns
        self._is_screened = screened is not None
        rests = [None] * len(classification.predicates) if screened is None else screened
        bits = list(map(self._bit, classification.predicates, rests))
        self._tests = Tests.of(bits)
        self._takes_all = classification.keep_all or (not self._is_screened and self._tests.always)
        """Whether every row has a bit, or is kept without one."""
        self._time = self._time_column()
        self._key = self._key_column()
        self._few = None if classification.keep_all else self._few_tests(bits)
        self._row_keys: RowKeys | None = None
        self._key_columns: list[str] = []
        if classification.keys and self._key is None:
            self._row_keys = self._keys_by_sql()
        self._values = list(map(self._value, classification.values))
        numbers = [value.name for value in self._values if value.name is not None and value.half is None]
        if len(set(map(columns.ticks_of, numbers)) - {None}) > 1:
            raise NotPlainError
        self._payload = list(map(self._payload_column, classification.payload))
        self.schema: pa.Schema = self._schema()

    # ------------------------------------------------------------------------------------- compiling

    def _bit(self, predicate: EventPredicate, rest: Node | None) -> Condition | None:
        """The condition of a predicate, or its rest after a screen; None if all rows satisfy it."""
        if self._is_screened:
            return None if rest is None else self._columns.condition(rest)
        of_type = self._has_type(predicate.types)
        if predicate.condition is None:
            return of_type
        return joined([of_type, self._columns.condition(predicate.condition)], some=False)

    def _few_tests(self, bits: Sequence[Condition | None]) -> FewTests | None:
        """The tests of rows that satisfy what all conditions have in common; None if that is nothing."""
        parts = factored(bits)
        if parts is None:
            return None
        names = [name for rest in parts.rests for name in columns_in(rest)]
        screens = map(screen_name, range(-(-len(bits) // WORD) if self._is_screened else 0))
        keys = [] if self._key is None else [self._key]
        read = dict.fromkeys([*names, *screens, *keys]) or [POSITION]
        rests = parts.rests if self._is_screened else [rest or _ALWAYS for rest in parts.rests]
        return FewTests(parts.common, list(read), Tests.of(rests))

    def _has_type(self, types: Sequence[str]) -> Condition:
        """The rows of events of these types."""
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
        """The column of a key that is its own value, or a text of a dictionary; None for other keys."""
        if not self._classification.keys:
            return None
        (*others, bracket) = self._classification.keys
        present = [name for name in bracket if self._columns.has(name)]
        if others or len(present) != 1:
            return None
        (name,) = present
        kind = self._columns.kind_of_key(name)
        hashed = kind is Kind.STRING and self._sql_keys is not None and self._columns.is_encoded(name)
        return name if kind in _ITSELF or hashed else None

    def _keys_by_sql(self) -> RowKeys:
        """A function that gets keys of any other form from SQL, given their columns alone."""
        if self._sql_keys is None:
            raise NotPlainError
        brackets = [list(filter(self._columns.has, bracket)) for bracket in self._classification.keys]
        names = [name for bracket in brackets for name in bracket]
        if not all(brackets) or not all(map(self._columns.has_hash, names)):
            raise NotPlainError
        if any(len(bracket) > 1 for bracket in brackets) and self._classification.type_column is not None:
            names.append(self._classification.type_column)
        self._key_columns = list(dict.fromkeys(names))
        return self._sql_keys.of_rows(self._classification, self._columns.types)

    def _value(self, value: Value) -> _ValueColumn:
        """The column of a value."""
        if not isinstance(value.expression, Attribute):
            raise NotPlainError
        name, of_types = value.expression.name, self._has_type(value.types)
        kind = self._kind(name)
        if kind is None:
            return _ValueColumn(None, of_types, pa.int64() if value.hashed is None else pa.uint64())
        if value.hashed is not None and kind is Kind.STRING and self._sql_keys is not None:
            encoded = self._classification.encoded and self._columns.is_encoded(name)
            kind_of_hash = pa.dictionary(pa.int32(), pa.uint64()) if encoded else pa.uint64()
            return _ValueColumn(name, of_types, kind_of_hash, value.hashed)
        if kind not in _NUMBERS or value.hashed is not None:
            raise NotPlainError
        return _ValueColumn(name, of_types, pa.float64() if kind is Kind.FLOAT else pa.int64())

    def _payload_column(self, name: str) -> tuple[str, pa.DataType]:
        """A column that is passed on, and its type."""
        kind = as_returned(self._columns.stored(name))
        encoded = self._classification.encoded and pa.types.is_string(kind) and self._columns.is_encoded(name)
        return name, pa.dictionary(pa.int32(), kind) if encoded else kind

    def _kind(self, name: str) -> Kind | None:
        column = self._columns.column(name)
        return None if column is None else column.kind

    def _schema(self) -> pa.Schema:
        fields = [(POSITION, pa.int64()), (TIME, pa.int64())]
        fields += [(name, pa.uint64()) for name in KEYS if self._classification.keys]
        fields += [(name, pa.int64()) for name in word_names(len(self._classification.predicates))]
        fields += [(value_name(place), value.kind) for place, value in enumerate(self._values)]
        return pa.schema([*fields, *self._payload])

    # ----------------------------------------------------------------------------------- classifying

    def classified(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """The relevant events of a batch, in the columns of `schema`; None if there are none.

        The batch has the column `POSITION` and, if it is screened, the words of the screen. Raises
        `OddValueError` for a batch that has to be classified by SQL.
        """
        columns = BatchColumns(batch)
        if self._has_converted:
            columns.check_converted()
        rows, words = self._rows_and_words(columns)
        kept = self._within_reach(columns, words, rows)
        if kept is not None:
            rows = kept if rows is None else rows[kept]
            words = [word[kept] for word in words]
        if rows is not None:
            if not rows.size:
                return None
            batch = taken(batch, rows)
            columns = BatchColumns(batch)
        halves, known = self._halves(columns)
        classified = pa.RecordBatch.from_arrays(
            list(self._outputs(columns, halves, words)), schema=self.schema
        )
        return classified if known is None else classified.filter(array_of(known))

    def counts(self, events: pa.Schema) -> bool:
        """Whether `count` knows the number of relevant events of batches with this schema."""
        is_odd = self._reach is not None or self._row_keys is not None or self._has_converted or self._values
        return not is_odd and all(events.field(name).type == kind for name, kind in self._payload)

    def count(self, columns: BatchColumns) -> int:
        """The number of relevant events of a batch, which need not have positions.

        Raises `OddValueError` if only classifying the events tells.
        """
        if self._time is not None:
            if columns.known(self._time) is not None:
                raise OddValueError
            columns.ticks(self._time)
        if self._key is not None and self._kind(self._key) is not Kind.STRING:
            columns.ticks(self._key)
        rows, _ = self._rows_and_words(columns)
        return columns.batch.num_rows if rows is None else rows.size

    def _rows_and_words(
        self, columns: BatchColumns
    ) -> tuple[NDArray[np.int64] | None, list[NDArray[np.int64]]]:
        """The rows of relevant events, None if all are relevant, and their words of bits."""
        few, tests, takes_all = None, self._tests, self._takes_all
        if self._few is not None:
            with_common = rows_of(self._few.common, columns)
            if _FEW * np.count_nonzero(with_common) < with_common.size:
                for name in self._few.columns:  # whether SQL has to interpret a value does not depend on rows
                    if is_odd_number(columns.batch.column(name).type):
                        columns.checked(name)
                few, tests = marked_rows(with_common), self._few.tests
                columns = BatchColumns(taken(columns.batch.select(self._few.columns), few))
                takes_all = not self._is_screened and tests.always
        words = self._bits(columns, tests)
        rows = self._relevant(columns, words, takes_all=takes_all)
        if rows is not None:
            words = [word.take(rows) for word in words]
        return rows if few is None else few if rows is None else few[rows], words

    def _bits(self, columns: BatchColumns, tests: Tests) -> list[NDArray[np.int64]]:
        """The words of bits of all rows."""
        words = []
        for place, masks in enumerate(tests.words):
            screen = numbers_in(columns.batch.column(screen_name(place))) if self._is_screened else None
            if screen is not None and masks == tests.unasked[place]:
                words.append(screen)
                continue
            word = np.zeros(columns.batch.num_rows, np.int64)
            for condition, mask in masks.items():
                if screen is None and condition == _ALWAYS:
                    word |= np.int64(mask)
                    continue
                test = None if condition is None else rows_of(condition, columns)
                if test is not None and _RARE * np.count_nonzero(test) < test.size:
                    rows = np.flatnonzero(test)
                    word[rows] |= np.int64(mask) if screen is None else screen[rows] & mask
                    continue
                bits: NDArray[np.int64] | np.int64 = np.int64(mask) if screen is None else screen & mask
                word |= bits if test is None else bits * test
            words.append(word)
        return words

    def _relevant(
        self, columns: BatchColumns, words: Sequence[NDArray[np.int64]], *, takes_all: bool
    ) -> NDArray[np.int64] | None:
        """The rows of relevant events; None if all are relevant."""
        keep: Mask | None = None
        if not takes_all:
            keep = reduce(np.bitwise_or, words) != 0
        if self._key is not None and (known := columns.known(self._key)) is not None:
            keep = known if keep is None else keep & known
        return None if keep is None or keep.all() else marked_rows(keep)

    def _within_reach(
        self, columns: BatchColumns, words: Sequence[NDArray[np.int64]], rows: NDArray[np.int64] | None
    ) -> NDArray[np.intp] | None:
        """The indexes of the rows, with bits `words`, that matter; None if all may."""
        if self._reach is None:
            return None
        if self._reach.window.in_positions or self._time is None:
            stamps = numbers_in(columns.batch.column(POSITION))
        elif columns.known(self._time) is not None:
            raise OddValueError
        else:
            stamps = columns.ticks(self._time)
        return within_reach(self._reach, stamps if rows is None else stamps[rows], words)

    def _outputs(
        self,
        columns: BatchColumns,
        halves: Sequence[NDArray[np.uint64]],
        words: Sequence[NDArray[np.int64]],
    ) -> Iterator[pa.Array]:
        """The columns of `schema`."""
        position = columns.batch.column(POSITION)
        yield position
        if self._time is None:
            yield position
        elif columns.known(self._time) is not None:
            raise OddValueError
        else:
            yield array_of(columns.ticks(self._time))
        yield from map(array_of, halves)
        yield from map(array_of, words)
        yield from self._value_arrays(columns)
        for name, kind in self._payload:
            yield _shown(columns, name, kind)

    def _halves(self, columns: BatchColumns) -> tuple[Sequence[NDArray[np.uint64]], Mask | None]:
        """Both halves of the keys, if there are any, and a mask of the known ones; None for all."""
        if self._row_keys is not None:
            keys = self._row_keys(columns.batch.select(self._key_columns))
            known = numbers_in(keys.column(KEYED).cast(pa.uint8())).view(np.bool_)
            return [_unsigned(keys.column(name)) for name in KEYS], None if known.all() else known
        if self._key is None:
            return [], None
        if self._kind(self._key) is Kind.STRING:
            hashes = self._hashes(columns, self._key)
            return [hashes.rows(half) for half in range(len(KEYS))], None
        return [columns.ticks(self._key).view(np.uint64), np.zeros(columns.batch.num_rows, np.uint64)], None

    def _hashes(self, columns: BatchColumns, name: str) -> _Hashes:
        """The halves of the keys of a column of texts."""
        if self._sql_keys is None:
            raise NotPlainError
        texts = columns.array(name)
        if isinstance(texts, pa.DictionaryArray) and len(texts.dictionary) <= len(texts):
            return _Hashes(self._sql_keys.of_dictionary(texts.dictionary), texts)
        return _Hashes(self._sql_keys.of_texts(columns.decoded(name)))

    def _value_arrays(self, columns: BatchColumns) -> Iterator[pa.Array]:
        """The values that registers and joins compare; NULL for events of other types."""
        hashes: dict[str, _Hashes] = {}
        for name, of_types, kind, half in self._values:
            if name is None or columns.is_null(name):
                yield columns.nulls(kind)
                continue
            known = columns.known(name)
            if of_types != _ALWAYS:
                own = rows_of(of_types, columns)
                known = own if known is None else own & known
            if half is not None:
                if name not in hashes:
                    hashes[name] = self._hashes(columns, name)
                yield hashes[name].array(half, known, encoded=pa.types.is_dictionary(kind))
            elif pa.types.is_floating(kind):
                yield with_nulls(stored(columns.decoded(name)).astype(np.float64), known)
            else:
                yield with_nulls(columns.ticks(name), known)


class _Hashes(NamedTuple):
    """The halves of the keys of texts: for all rows, or for a dictionary and indices into it."""

    halves: Halves
    texts: pa.DictionaryArray | None = None

    def rows(self, half: int) -> NDArray[np.uint64]:
        """One half for each row; any number for NULL."""
        if self.texts is None:
            return self.halves[half]
        numbers: NDArray[np.uint64] = np.append(self.halves[half], np.uint64(0))[indices_of(self.texts)]
        return numbers

    def array(self, half: int, known: Mask | None, *, encoded: bool) -> pa.Array:
        """One half for each row, NULL where it is not known."""
        if not encoded:
            return with_nulls(self.rows(half), known)
        if self.texts is None:
            return with_nulls(self.halves[half], known).dictionary_encode()
        indices = self.texts.indices.cast(pa.int32())
        if known is not None:
            indices = with_nulls(stored(indices), known)
        return pa.DictionaryArray.from_arrays(indices, array_of(self.halves[half]))


class _ValueColumn(NamedTuple):
    """The column of a value, None for NULL, the rows of its types, its type, and the number of its hash."""

    name: str | None
    of_types: Condition
    kind: pa.DataType
    half: int | None = None


def _unsigned(half: pa.Array) -> NDArray[np.uint64]:
    """A half of keys, which DuckDB has as a signed or unsigned integer; 0 for NULL."""
    return numbers_in(without_nulls(half)).view(np.uint64)


def _shown(columns: BatchColumns, name: str, kind: pa.DataType) -> pa.Array:
    """The values in the type in which DuckDB hands them back, or with their dictionary."""
    given = columns.batch.column(name)
    if given.type == kind and not pa.types.is_dictionary(kind):
        return given
    try:
        if columns.is_null(name):
            return columns.nulls(kind)
        if pa.types.is_dictionary(kind):
            return _encoded(columns, name)
        array = columns.decoded(name)
        return array if array.type == kind else array.cast(kind)
    except pa.ArrowInvalid as error:  # a time beyond microseconds, or more text than a column may have
        raise OddValueError from error


def _encoded(columns: BatchColumns, name: str) -> pa.Array:
    """The texts with their dictionary, or with a new one if it has more texts than there are rows."""
    array = columns.array(name)
    if not isinstance(array, pa.DictionaryArray):
        return (array if array.type == pa.string() else array.cast(pa.string())).dictionary_encode()
    if len(array.dictionary) > len(array) or array.dictionary.null_count:
        return array.dictionary_decode().cast(pa.string()).dictionary_encode()
    if array.type == pa.dictionary(pa.int32(), pa.string()):
        return array
    return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), array.dictionary.cast(pa.string()))
