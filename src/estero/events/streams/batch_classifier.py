"""Batches of events, as users push them → classified events.

Plain classifications are done by vector code, and others by a statement of DuckDB that is prepared once
(statements.py).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.classify.arrays import empty_batch
from estero.classify.column_names import KEYS, event_column
from estero.classify.vectors.arrow_types import is_converted
from estero.classify.vectors.batch_columns import BatchColumns, OddValueError, stored
from estero.classify.vectors.classifier import PlainClassifier, plain_classifier
from estero.errors import DataError
from estero.events.inputs import open_input
from estero.events.key_hashes import DUCKDB_KEYS
from estero.events.reading_errors import reading
from estero.events.screening import Screen, looked_at
from estero.events.sources import Source
from estero.events.stream_order import null_time, refuse_infinite, refuse_nat
from estero.events.streams.few_events import FewEvents
from estero.events.streams.row_types import without_texts
from estero.events.streams.stream_layout import StreamLayout, time_kind
from estero.events.tables.exact_columns import renamed_table
from estero.events.tables.nested_columns import as_given, paths_in, with_fields
from estero.events.tables.shown_types import in_schema, in_type, is_text, plain_schema
from estero.language.tree.exact_names import exact_among, given_name
from estero.plan.plan import Classification

if TYPE_CHECKING:
    from estero.events.streams.statements import Statements

_NO_VALUE = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""The errors of Arrow for a value that is not of a type."""
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


Ask = Callable[[pa.RecordBatch], Any]
"""Asks conditions about events, named by `event_column`; None where they want none."""


class Incoming(NamedTuple):
    """One batch, in order of arrival.

    `events` are all its events, their columns named by `event_column`; `times` int64[n] in ticks, 0 if there
    is no time; `classified` the relevant ones, whose ``__position`` is their row in `events`. Of a batch that
    `passes`, which is let go at once, the number of `relevant` ones is known; they are not classified if no
    condition wants one, and `events` may be empty then. `said` is what conditions say of all rows, if they
    were asked.
    """

    events: pa.Table
    times: NDArray[np.int64]
    classified: pa.RecordBatch
    passes: bool = False
    relevant: int = 0
    said: Any = None


class Counted(NamedTuple):
    """The number of relevant ones among a few events, and the times of all of them in ticks."""

    relevant: int
    times: NDArray[np.int64]


class Classifier:
    """Classifies batches of one layout; a refused batch changes nothing."""

    def __init__(self, layout: StreamLayout, source: Source, classification: Classification) -> None:
        self._layout = layout
        self._time = layout.columns.time
        self._time_type = time_kind(source)
        classified = source.classified_schema(classification)
        self.schema: pa.Schema = classified if classification.encoded else plain_schema(classified)
        self._classification = classification
        self._source = source
        self._made: Statements | None = None
        self._is_one = source.view is None
        self.columns: pa.Schema = layout.schemas[""] if self._is_one else self._statements.columns
        """The columns of all events."""
        self._has_converted = any(is_converted(field.type) for field in self.columns)
        self._is_plain = self._is_one and all(map(_is_plain, self.columns))
        self._screen: Screen | None = None
        self._plain: PlainClassifier | None = None
        if self._is_one:
            screen = Screen(classification, self.columns)
            self._screen = screen if screen.useful else None
            rests = None if self._screen is None else screen.rests
            types = source.column_types
            self._plain = plain_classifier(classification, types, self.columns, rests, None, DUCKDB_KEYS)
        self._counts = self._is_plain and self._plain is not None and self._plain.counts(self.columns)
        self._nothing: pa.RecordBatch = empty_batch(self.schema)
        self._reads_values = (
            self._is_plain and self._plain is not None and self._reads_values_of(classification)
        )
        """Whether values of Python tell which events are relevant, and when."""

    @property
    def _statements(self) -> Statements:
        """The statements of DuckDB, prepared when one is executed for the first time."""
        if self._made is None:
            from estero.events.streams.statements import Statements

            self._made = Statements(self._layout.schemas, self._source, self._classification)
        return self._made

    def opened(self, batch: object) -> tuple[pa.Table, NDArray[np.int64]]:
        """All events of a batch, and their times; raises `DataError` if it does not have this layout."""
        events = self._events(batch)
        return events, self.times(events)

    def classified(self, events: pa.Table, times: NDArray[np.int64]) -> Incoming:
        """Classifies opened events; raises `DataError` if that is impossible."""
        return Incoming(events, times, refuse_infinite(self._relevant(events), self._time))

    def asked(self, events: pa.Table, times: NDArray[np.int64], ask: Ask) -> Incoming:
        """Opened events that may pass, which are classified only if `ask` says that some may be wanted.

        Raises `OddValueError` for events that have to be classified first.
        """
        batches = events.to_batches()
        if self._plain is None or not self._counts or len(batches) != 1:
            raise OddValueError
        said = ask(batches[0])
        if said is not None:
            classified = refuse_infinite(self._by_vectors(self._plain, events), self._time)
            relevant = classified.num_rows
            said = said if relevant == events.num_rows else None
            return Incoming(events, times, classified, passes=True, relevant=relevant, said=said)
        looked = batches if self._screen is None else self._screen.look([(batches[0], 0)])
        relevant = sum(self._plain.count(BatchColumns(batch)) for batch in looked)
        return Incoming(events, times, self._nothing, passes=True, relevant=relevant)

    def counted(self, events: FewEvents) -> Counted | None:
        """The number of relevant ones among a few events, and the times; None if only vector code knows."""
        if not self._reads_values or not events.schema.equals(self.columns):
            return None
        times: NDArray[np.int64] | None = np.zeros(events.size, np.int64)
        if self._time is not None:
            times = events.ticks(event_column(self._time))
        relevant = self._relevant_of(events)
        return None if times is None or relevant is None else Counted(relevant, times)

    def _reads_values_of(self, known: Classification) -> bool:
        """See `_reads_values`: types, one column of keys, and no more."""
        if known.values or any(predicate.condition is not None for predicate in known.predicates):
            return False
        if len(known.keys) > 1 or any(len(bracket) > 1 for bracket in known.keys):
            return False
        if self._time is None:
            return True
        kind = self.columns.field(event_column(self._time)).type
        return self._time_type is not None and _is_ticks(kind, self._time_type)

    def _relevant_of(self, events: FewEvents) -> int | None:
        """The number of events of the types that matter that have a key; None if a column is missing."""
        known = self._classification
        types = {name for predicate in known.predicates for name in predicate.types}
        if known.type_column is None and known.only_type not in types and not known.keep_all:
            return 0
        asked: list[list[bool]] = []
        for name in [name for bracket in known.keys for name in bracket]:
            column = events.column(event_column(name))
            if column is None:
                return None
            if not isinstance(column, array):
                asked.append([value is not None for value in column])
        if known.type_column is not None and not known.keep_all:
            column = events.column(event_column(known.type_column))
            if column is None:
                return None
            asked.append([value in types for value in column])
        return sum(map(all, zip(*asked, strict=True))) if asked else events.size

    def _relevant(self, events: pa.Table) -> pa.RecordBatch:
        """The classified events."""
        if self._plain is not None:
            try:
                return self._by_vectors(self._plain, events)
            except OddValueError:
                pass  # SQL classifies it
        with reading():
            return _in_schema(self._statements.classified(events), self.schema)

    def _by_vectors(self, plain: PlainClassifier, events: pa.Table) -> pa.RecordBatch:
        batches = events.to_batches()
        for batch in batches if self._has_converted else ():
            BatchColumns(batch).check_converted()
        looked = looked_at(batches, self._screen)
        classified = [batch for batch in map(plain.classified, looked) if batch is not None]
        if len(classified) == 1 and classified[0].schema.equals(self.schema):
            return classified[0]
        return _in_schema(pa.Table.from_batches(classified, plain.schema), self.schema)

    def ask(self, statement: str, texts: Sequence[str]) -> tuple[int, int]:
        """The one row that a statement returns for texts as its parameters, $1 and so on."""
        return self._statements.ask(statement, texts)

    def close(self) -> None:
        """Gives the connection back."""
        if self._made is not None:
            self._made.close()

    def _events(self, batch: object) -> pa.Table:
        """All events of a batch in one table, with the columns of the layout."""
        if isinstance(batch, pa.RecordBatch):
            batch = pa.Table.from_batches([batch])
        if self._is_plain and isinstance(batch, pa.Table) and batch.schema.equals(self.columns):
            return batch
        if self._is_one:
            return _in_columns(self._table_of(batch, ""), self._layout.schemas[""], "")
        if not self._layout.mapped:
            batch = {"": batch}
        if not isinstance(batch, Mapping):
            raise DataError(
                "each type has its own table here: push a mapping of type name to events, "
                f"not {type(batch).__name__}"
            )
        for name in batch:
            if name not in self._layout.schemas:
                raise DataError(f"there is no type {name!r} here, only {_listed(self._layout.schemas)}")
        tables = {
            name: schema.empty_table()
            if (given := batch.get(name)) is None
            else _in_columns(self._table_of(given, name), schema, name)
            for name, schema in self._layout.schemas.items()
        }
        with reading():
            return in_schema(self._statements.together(tables), self.columns)

    def _table_of(self, batch: object, type_name: str) -> pa.Table:
        """A table of events in memory, with the fields that are columns of their own."""
        schema = self._layout.schemas[type_name]
        given = as_given(schema)
        table = self._given(batch, type_name, given)
        if exact := exact_among(given.names):
            table = renamed_table(table, exact)
        return with_fields(
            table, paths_in([name for name in schema.names if name not in given.names], table.schema)
        )

    def _given(self, batch: object, type_name: str, schema: pa.Schema) -> pa.Table:
        """A table of events in memory: rows as mappings, or anything that `open_input` takes."""
        if isinstance(batch, Mapping) or is_event(batch):
            batch = [batch]
        if isinstance(batch, list | tuple) and all(
            isinstance(row, Mapping) or is_event(row) for row in batch
        ):
            return _of_rows([_named(row, place, schema) for place, row in enumerate(batch, 1)], schema)
        opened = open_input(batch)
        if opened.stream is not None:
            with reading():
                return opened.stream(None).read_all()
        if opened.table is None:
            raise DataError(
                "a file cannot be pushed: read it first, or use Query.run, which reads files",
                file=opened.file,
            )
        time = None if self._time is None else given_name(self._time)
        if opened.of_pandas and time is not None and time in opened.table.column_names:
            where = f" in the events of {type_name}" if type_name else ""
            refuse_nat(opened.table.column(time), time, where)
        return opened.table

    def times(self, events: pa.Table) -> NDArray[np.int64]:
        """The times of events with `columns`, in ticks; raises `DataError` if one is missing."""
        if self._time is None or self._time_type is None:
            return np.zeros(events.num_rows, np.int64)
        column = events.column(event_column(self._time))
        if column.null_count:
            row = pc.index(pc.is_null(column), True).as_py()
            raise null_time(self._time, row + 1)
        if column.num_chunks == 1 and _is_ticks(column.type, self._time_type):
            ticks_there: NDArray[np.int64] = stored(column.chunk(0)).copy()
            return ticks_there
        with reading():
            ticks = column.cast(self._time_type).cast(pa.int64())
        return np.array(ticks.to_numpy(), np.int64)


def is_event(batch: object) -> bool:
    """Whether this is a tuple of the values of one event and not of events or of batches."""
    return isinstance(batch, tuple) and not all(
        isinstance(item, Mapping | tuple | pa.RecordBatch | pa.Table) for item in batch
    )


def _named(
    row: Mapping[str, object] | tuple[object, ...], number: int, schema: pa.Schema
) -> Mapping[str, object]:
    """An event with the names of its columns; `number` counts from 1."""
    if isinstance(row, Mapping):
        return row
    if len(row) != len(schema):
        raise DataError(
            f"the event has {len(row)} values, but there are {len(schema)} columns",
            row=number,
            hint=f"the columns are {_listed(schema.names)}",
        )
    return dict(zip(map(given_name, schema.names), row, strict=True))


def _of_rows(rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> pa.Table:
    columns = []
    for field in schema:
        name = given_name(field.name)
        values = [row.get(name) for row in rows]
        try:
            columns.append(_array(values, field.type))
        except _NO_VALUE as error:
            raise _not_of_type(values, field, error) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    return _cast(pa.array(without_texts(values, kind), _value_type(kind)), kind)


def _cast(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """The column in a type; Arrow itself casts little else than strings to dictionaries."""
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type).dictionary_encode()
    return column.cast(kind)


def _not_of_type(values: Sequence[object], field: pa.Field, error: Exception) -> DataError:
    """The error for a value of another type, with the row of the first one if there are several."""
    row = None
    for place, value in enumerate(values, 1) if len(values) > 1 else ():
        try:
            _array([value], field.type)
        except _NO_VALUE as refused:
            row, error = place, refused
            break
    return DataError(f"not a value of type {field.type}: {error}", row=row, column=given_name(field.name))


def _in_columns(table: pa.Table, schema: pa.Schema, type_name: str) -> pa.Table:
    """The columns of the layout, in its types; others are left out."""
    if table.schema.equals(schema):
        return table
    names = table.schema.names
    where = f" in the events of {type_name}" if type_name else ""
    columns = []
    for field in schema:
        if field.name not in names:
            raise DataError(
                f"there is no column {given_name(field.name)!r}{where}",
                hint=f"the columns are {_listed(list(map(given_name, names)))}",
            )
        columns.append(_in_type(table.column(field.name), field))
    return pa.Table.from_arrays(columns, schema=schema)


def _in_type(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type.equals(field.type):
        return column
    if not len(column):
        return pa.chunked_array([], field.type)
    if not _fits(_value_type(column.type), _value_type(field.type)):
        raise DataError(f"holds {column.type}, but {field.type} was declared", column=given_name(field.name))
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return _cast(column, field.type)
    except pa.ArrowException as error:
        raise DataError(f"does not fit into {field.type}: {error}", column=given_name(field.name)) from error


def _value_type(of: pa.DataType) -> pa.DataType:
    return of.value_type if pa.types.is_dictionary(of) else of


def _fits(given: pa.DataType, declared: pa.DataType) -> bool:
    """Whether values of one type are values of the other, if they are small enough."""
    if pa.types.is_null(given):
        return True
    if pa.types.is_decimal(declared):  # Arrow would round floats to them
        return bool(pa.types.is_integer(given) or pa.types.is_decimal(given))
    if pa.types.is_floating(declared):
        return any(of_kind(given) for of_kind in _NUMBERS)
    alike: tuple[Callable[[pa.DataType], bool], ...] = (
        pa.types.is_integer,
        is_text,
        lambda kind: bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind)),
        pa.types.is_boolean,
    )
    return any(of_kind(given) and of_kind(declared) for of_kind in alike)


def _is_plain(field: pa.Field) -> bool:
    """Whether a column is recognized unchanged: nothing about its type and its name is special."""
    is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    is_other = any(of(field.type) for of in (pa.types.is_timestamp, pa.types.is_boolean, pa.types.is_string))
    return (is_number or is_other) and not field.metadata and not exact_among([field.name])


def _is_ticks(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether the stored values of times are the ticks that are needed."""
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        return bool(given.unit == wanted.unit)
    return bool(pa.types.is_int64(given) and pa.types.is_int64(wanted))


def _in_schema(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """One batch of such columns; both halves of keys are unsigned, however DuckDB has them."""
    columns = []
    for field in schema:
        array = table.column(field.name).combine_chunks()
        if field.name in KEYS and array.type == pa.int64():
            array = array.view(pa.uint64())
        if pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        columns.append(array if array.type.equals(field.type) else in_type(array, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _listed(names: Mapping[str, object] | Sequence[str]) -> str:
    return ", ".join(names)
