"""Events as users provide them → a `Source`: their schema, their order, and the classified stream."""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from estero.classify.arrays import empty_batch
from estero.classify.column_names import check_names
from estero.classify.columns import ColumnType
from estero.classify.duckdb_types import duckdb_column
from estero.classify.vectors.batch_columns import without_views
from estero.classify.vectors.classifier import plain_classifier, plain_schema
from estero.classify.vectors.within_reach import batch_within_reach
from estero.errors import DataError
from estero.events.database import LentDatabases, lent_cursor
from estero.events.descriptions import described
from estero.events.inputs import Input, open_inputs, read_twice
from estero.events.key_hashes import DUCKDB_KEYS
from estero.events.plain_reading import PlainReading
from estero.events.reading_errors import TooLargeError, reading
from estero.events.screening import Screen, with_bits
from estero.events.small_tables import is_small
from estero.events.source_columns import SourceColumns
from estero.events.stream_order import OrderCheck, refuse_nat
from estero.events.tables.exact_columns import with_exact_columns
from estero.events.tables.nested_columns import with_nested_columns
from estero.events.tables.relations import Numbered, OneOf, Relation
from estero.events.tables.shown_types import encoded_as, is_text, occurs
from estero.events.tables.table_columns import TableColumn
from estero.events.tables.whole_batches import whole_table
from estero.events.tables.written_times import with_written_times
from estero.language.tree.schema import EventLayout, Kind, Schema
from estero.plan.plan import Classification, Layout
from estero.plan.reach import Reach

if TYPE_CHECKING:
    from estero.events.sql_reading import SqlReading

_LETTERS = 40


class Source:
    """A stream of events that can be classified (`open_source` makes one).

    `schema` is what the language checks against, `layout` what a query is planned for: it has the length of a
    tick of ``__time`` in nanoseconds, None if there is no time or its unit is unknown. If each type has its
    own table (`mapped`), the type column is `MAPPED_TYPE`, or a similar name that is free; if there are
    several tables, `view` is the query of their union. `columns` are the names of all attributes in order,
    `column_types` how expressions read them. `zone` is that of the time column, `file` the only path of the
    events, None if there is none. A `one_shot` source can be read once.
    """

    def __init__(self, inputs: Mapping[str, Input], layout: EventLayout, *, mapped: bool = False) -> None:
        self._inputs = dict(inputs)
        self._sorted: bool | None = None
        self._spent = False
        self._occurring: dict[str, bool] = {}
        """Whether events of a type occur, as far as that has been looked up."""
        self._followed: OrderCheck | None = None
        self._described: tuple[Classification, pa.Schema] | None = None
        self._in_sql: SqlReading | None = None
        self._databases = LentDatabases()
        tables = {name: self._describe(name, source, layout.type) for name, source in inputs.items()}
        self._columns = SourceColumns(inputs, tables, layout, mapped=mapped)
        self.file: str | None = self._columns.file
        self.zone: str | None = self._columns.zone
        self.view: str | None = self._columns.view
        self.columns: tuple[str, ...] = self._columns.names
        self.type_column: str | None = self._columns.type_column
        self.column_types: Mapping[str, ColumnType] = self._columns.types
        self.only_type: str = layout.only_type
        self.one_shot: bool = any(source.one_shot for source in inputs.values())
        self.order: tuple[str, ...] = layout.order
        self.schema: Schema = self._columns.schema
        self.layout: Layout = Layout(self.schema, self.type_column, self.only_type, self.order)
        self._find_no_time()
        self.layout = replace(self.layout, tick_ns=self._columns.tick_ns())

    def __getstate__(self) -> dict[str, Any]:
        """All but the connections: another process reads the events again. TypeError if it could not."""
        for source in self._inputs.values():
            try:
                pickle.dumps(source.stream)
            except Exception as error:
                raise TypeError(
                    "this answer cannot be pickled, because its events can only be read in this process: "
                    "pickle its table, answer.to_arrow(), or run the query on a file or a table"
                ) from error
        return self.__dict__ | {"_described": None, "_in_sql": None}

    @property
    def _sql(self) -> SqlReading:
        """The reader through DuckDB, which is loaded when some source needs it."""
        if self._in_sql is None:
            from estero.events.sql_reading import SqlReading

            self._in_sql = SqlReading(self._inputs, self._columns, self.layout, self._databases)
        return self._in_sql

    def size(self) -> int | None:
        """The number of events, if it is known without reading them."""
        rows = [source.rows for source in self._inputs.values()]
        return None if None in rows else sum(row for row in rows if row is not None)

    def event_count(self) -> int:
        """The number of events; they are read if that is the only way to know."""
        known = self.size()
        if known is None and (in_order := self._in_order()) is not None:
            return in_order.rows
        return self._sql.event_count(self._started()) if known is None else known

    def odd_value(self, column: str) -> str:
        """The value of a text file that makes a column one of strings, as a hint; "" if there is none.

        Reads the file, so it is only for error messages.
        """
        from estero.events.files.text_layout import odd_text

        for source in self._inputs.values():
            if source.layout is None:
                continue
            with self._databases.here.cursor() as cursor:
                odd = odd_text(cursor, source.layout, column)
            if odd is not None:
                shown = odd.text if len(odd.text) <= _LETTERS else f"{odd.text[:_LETTERS]}…"
                where = f"{odd.file}, row {odd.row}, column {column!r}"
                return f"fix the value {shown!r} ({where}): it is of another kind than those above it"
        return ""

    # --------------------------------------------------------------------------------- reading

    @property
    def waits_for_columns(self) -> bool:
        """Whether it is read once, in the columns that are expected by then (`expect`)."""
        return any(isinstance(source.stream, Relation) for source in self._inputs.values())

    def expect(self, classification: Classification) -> None:
        """Announces the columns and rows for which it will be read; to be called before reading."""
        if not self.waits_for_columns:
            return
        (first, *_) = self._inputs.values()
        one_of = () if first.schema is None else self._one_of(classification, first.schema)
        self._sql.expect(classification, one_of)

    def _one_of(self, classification: Classification, events: pa.Schema) -> OneOf:
        """The rows that may be relevant, if the user declares an order and this is the only input."""
        if self.view is not None or not self.order:
            return ()
        screen = Screen(classification, events)
        return screen.pushed if screen.useful else ()

    def _in_order(self) -> Numbered | None:
        """The relevant rows of a relation, if it is one and in the declared order."""
        stream = next(iter(self._inputs.values())).stream
        return stream.in_order() if isinstance(stream, Relation) else None

    def run_relations(self) -> None:
        """Runs relations whose columns are expected; to be called before users get what reads them.

        A statement on the connection of a relation may read an answer over it, and nothing else can be run
        there as long as it does.
        """
        for source in self._inputs.values():
            if isinstance(source.stream, Relation):
                with reading():
                    source.stream.run()

    def read(
        self, classification: Classification, threads: int = 1, reach: Reach | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The classified table in stream order, batch by batch (`plan.Classification` defines its columns).

        Sorts first if the stream is not sorted; ties keep `order`, then arrival. A stream that can be read
        once is not sorted: an event before its predecessor raises `DataError`; but if it is one of several
        inputs, it is held in memory, so that all of them can be sorted. A malformed value of a text file
        raises `DataError` if its column is needed. Plain classifications use this many `threads`. Events out
        of `reach` may be missing.
        """
        if self.one_shot and len(self._inputs) > 1 and self._columns.order:
            self.hold()
        try:
            batches = map(self._columns.shown, self._read(classification, threads, reach))
            if classification.encoded:
                schema = self.classified_schema(classification)
                batches = map(functools.partial(encoded_as, schema=schema), batches)
            yield from batches
        except DataError as error:
            if not isinstance(error, TooLargeError) or self.one_shot:
                raise
            raise self._sql.naming_the_predicate(classification, error) from error.__cause__

    def _read(
        self, classification: Classification, threads: int, reach: Reach | None
    ) -> Iterator[pa.RecordBatch]:
        """The classified table, with columns as DuckDB returns them; no batch is empty."""
        table = self._small_table()
        screen, plain = self._ways(classification, reach)
        if plain is not None:
            yield from plain.here(table) if table is not None else plain.ahead(self._started(), threads)
            return
        for batch in self._read_by_sql(classification, table, screen):
            number = len(classification.predicates)
            near = batch if reach is None else batch_within_reach(reach, batch, number)
            if near.num_rows:
                yield near

    def _read_by_sql(
        self, classification: Classification, table: pa.Table | None, screen: Screen | None
    ) -> Iterator[pa.RecordBatch]:
        """The same by DuckDB."""
        if table is not None:
            statement = self._sql.statement(classification, ordered=self.is_sorted(), in_memory=True)
            relevant = self._sql.classified_at_once(table, statement)
            if relevant.num_rows:
                yield relevant
        elif screen is None:
            yield from self._sql.run(self.sql(classification), self._started())
        else:
            sql = self._sql.statement(classification, screened=screen.rests)
            for batch in self._sql.run(sql, self._started(), screen):
                relevant = batch if classification.keep_all else with_bits(batch)
                if relevant.num_rows:
                    yield relevant

    def _ways(
        self, classification: Classification, reach: Reach | None = None
    ) -> tuple[Screen | None, PlainReading | None]:
        """The screen of the events, and the reader without DuckDB; None for either if there is none.

        This is where it is decided how events are classified.
        """
        screen = None if self._small_table() is not None else self._screen(classification, reach)
        plain = self._plain(classification, screen, reach)
        if plain is None and any(source.query is not None for source in self._inputs.values()):
            return None, None  # files that DuckDB reads itself
        return screen, plain

    def _plain(
        self, classification: Classification, screen: Screen | None, reach: Reach | None
    ) -> PlainReading | None:
        """The reader without DuckDB, if the classification is plain and the events are Arrow's in order."""
        (source, *_) = self._inputs.values()
        if self.view is not None or source.arrow_schema is None:
            return None
        rests = None if screen is None else screen.rests
        classifier = plain_classifier(
            classification, self.column_types, source.arrow_schema, rests, reach, DUCKDB_KEYS
        )
        if classifier is None or not self.is_sorted():
            return None
        by_sql = functools.partial(self._by_sql, classification)
        return PlainReading(classification, source, screen, classifier, by_sql)

    def _started(self) -> OrderCheck | None:
        """The order check of a one-shot stream, which begins now; raises `DataError` the second time."""
        with self._databases.lock:
            if self.one_shot and self._spent:
                raise read_twice()
            self._spent = True
        names = self._columns.order
        if not (self.one_shot and names):
            return None
        self._followed = OrderCheck(names, timed=self.schema.time is not None)
        return self._followed

    def hold(self) -> None:
        """Reads the one-shot inputs into memory."""
        with self._databases.lock:
            for name, source in self._inputs.items():
                if source.one_shot and source.stream is not None:
                    with reading(source.file):
                        table = whole_table(source.stream(None).read_all())
                    self._inputs[name] = dataclasses.replace(source, table=table, stream=None, one_shot=False)
            if self.one_shot:
                self.one_shot = False
                self._sorted = None

    def sql(self, classification: Classification) -> str:
        """The statement equivalent to `read`, over the relation ``events``."""
        return self._sql.statement(classification, ordered=self.is_sorted())

    def reading_lines(self, classification: Classification) -> list[str]:
        """The columns and rows that `read` reads of each input, in words."""
        screen, _ = self._ways(classification)
        return self._sql.reading_lines(self.sql(classification), classification, screen)

    def classified_schema(self, classification: Classification) -> pa.Schema:
        """The columns of the batches of `read`; reads no event, and the latest ones are remembered."""
        if self._described is None or self._described[0] is not classification:
            self._described = classification, self._schema_of(classification)
        return self._described[1]

    def _schema_of(self, classification: Classification) -> pa.Schema:
        (source, *others) = self._inputs.values()
        schema = None
        if self.view is None and not others and source.arrow_schema is not None:
            schema = plain_schema(classification, self.column_types, source.arrow_schema, DUCKDB_KEYS)
        if schema is None:
            schema = self._sql.schema_of(classification)
        return self._columns.shown(empty_batch(schema)).schema

    def is_sorted(self) -> bool:
        """Whether the events come in stream order: by time, then the `order` columns.

        True without either. Reads these columns once; a NULL time raises a `DataError` that names the row.
        For a one-shot stream it is assumed, and checked while it passes.
        """
        if self._sorted is None:
            self._refuse_nat()
            self._sorted = self.one_shot or not self._columns.order or self._check_order()
        return self._sorted

    def last_time(self) -> int | None:
        """The time of the last event, in ticks; None without events or a time.

        For a one-shot stream it is that of the last event read so far.
        """
        if self.schema.time is None:
            return None
        if not self.one_shot:
            in_order = self._in_order()
            if in_order is not None and in_order.last is not None:
                known = self._sql.ticks_of(in_order.last.column(self.schema.time))
                if known is not None:  # an infinite time has no ticks
                    return known
            return self._sql.last_time()
        last_read = None if self._followed is None else self._followed.last
        return None if last_read is None else self._sql.ticks_of(last_read[0])

    def has_type(self, name: str) -> bool:
        """Whether an event of this type occurs; for a one-shot stream, whether one may."""
        if self.type_column is None:
            return name == self.only_type
        if self._columns.mapped:
            return name in self.type_names()
        if self.one_shot:
            return True
        if name not in self._occurring:
            self._occurring[name] = self._occurs(name)
        return self._occurring[name]

    def _occurs(self, name: str) -> bool:
        """Whether an event of a type is among those that can be read again."""
        if self.type_column is not None and len(self._inputs) == 1:
            (only,) = self._inputs.values()
            if self._has_texts(only):
                with reading(self.file):
                    batches = only.reader([self.type_column])
                    return any(_occurs(batch.select([self.type_column]), name) for batch in batches)
            if (numbered := self._in_order()) is not None and isinstance(only.stream, Relation):
                kept = numbered.kept.rows([self.type_column])
                return any(_occurs(batch, name) for batch in kept) or only.stream.has(self.type_column, name)
        return self._sql.has_type(name)

    def type_names(self) -> tuple[str, ...]:
        """The types that occur, sorted; none are known of a one-shot stream."""
        if self.type_column is None:
            return (self.only_type,)
        if self._columns.mapped:
            return tuple(sorted({str(source.type_name) for source in self._inputs.values()}))
        if self.one_shot:
            return ()
        (only, *others) = self._inputs.values()
        if not others and self._has_texts(only):
            with reading(self.file):
                batches = only.reader([self.type_column])
                names = (_names_in(batch.column(self.type_column)) for batch in batches)
                return tuple(sorted(set().union(*names)))
        return self._sql.type_names()

    def _has_texts(self, source: Input) -> bool:
        """Whether the type column of an input is one of Arrow's strings."""
        schema = source.arrow_schema
        return schema is not None and is_text(schema.field(self.type_column).type)

    # --------------------------------------------------------------------------------- opening

    def _describe(self, type_name: str, source: Input, type_column: str | None) -> dict[str, TableColumn]:
        """The columns of one input."""
        if source.schema is not None:
            check_names(source.schema.names, source.file)
        rows = described(source, self._databases)
        names = [row[0] for row in rows] if source.schema is None else source.schema.names
        kinds = {name: duckdb_column(row[1]) for name, row in zip(names, rows, strict=True)}
        if type_column in kinds and kinds[type_column].kind is Kind.NULL and source.may_be_empty:
            kinds[type_column] = ColumnType(Kind.STRING, "VARCHAR")
        return {
            name: TableColumn(type_name, row[1], kinds[name]) for name, row in zip(names, rows, strict=True)
        }

    def _find_no_time(self) -> None:
        """Names the first string that prevents a column from being one of timestamps."""
        name = self.schema.time
        if name is None or self.one_shot or self.column_types[name].kind is not Kind.STRING:
            return
        self._sql.refuse_no_time(name)

    # --------------------------------------------------------------------------------- running

    def _small_table(self) -> pa.Table | None:
        """The events, if they are one table that is read at once."""
        table = next(iter(self._inputs.values())).table
        return table if self.view is None and table is not None and is_small(table) else None

    def _screen(self, classification: Classification, reach: Reach | None = None) -> Screen | None:
        """The screen of the events, if they are one Arrow table or stream in order."""
        (source, *_) = self._inputs.values()
        schema = source.schema if source.arrow_schema is None else source.arrow_schema
        if self.view is not None or schema is None or not self.is_sorted():
            return None
        screen = Screen(classification, schema, reach)
        return screen if screen.useful else None

    def _refuse_nat(self) -> None:
        """Names an event of a pandas frame whose time was NaT before it became an integer."""
        time = self.schema.time
        if time is None:
            return
        for type_name, source in self._inputs.items():
            if source.of_pandas and source.table is not None:
                where = f" in the table of {type_name}" if len(self._inputs) > 1 else ""
                refuse_nat(source.table.column(time), time, where)

    def _check_order(self) -> bool:
        if self._in_order() is not None:
            return True
        (source, *others) = self._inputs.values()
        if others or source.arrow_schema is None:
            return self._sql.is_sorted()
        check = OrderCheck(self._columns.order, timed=self.schema.time is not None, file=self.file)
        with reading(self.file):
            for batch in source.reader(list(dict.fromkeys(self._columns.order))):
                check.follow(batch)
        return check.is_sorted

    def _by_sql(
        self, classification: Classification, table: pa.Table, screen: Screen | None
    ) -> pa.RecordBatch:
        """The classified events of one batch."""
        screened = None if screen is None else screen.rests
        statement = self._sql.statement(classification, in_memory=True, screened=screened)
        return self._sql.classified_at_once(table, statement)


def _occurs(batch: pa.RecordBatch, text: str) -> bool:
    """Whether a text is among the strings of the one column of a batch."""
    return bool(occurs(pa.chunked_array([without_views(batch.column(0))]), text))


def _names_in(texts: pa.Array) -> set[str]:
    """The different strings of a column."""
    return {str(name) for name in pc.unique(without_views(texts)).to_pylist() if name is not None}


def open_source(
    events: object,
    layout: EventLayout | None = None,
    csv_options: Mapping[str, object] | None = None,
    *,
    declared: bool = True,
) -> Source:
    """A source of `events`; only names and types are read so far.

    `events` is a path, directory or glob (Parquet, CSV, JSON lines, Arrow), a list of these in any formats,
    anything with the Arrow C stream interface, a pandas frame, an iterator or list of record batches, or a
    mapping of type name to any of these. `csv_options` are those of DuckDB's ``read_csv``. If types are not
    `declared`, those of a table without rows are ignored.

    Raises `DataError` if `events` cannot be read or a column is missing or of a wrong kind.
    """
    columns = layout or EventLayout()
    mapped = isinstance(events, Mapping)
    if mapped and columns.type is not None:
        raise DataError(
            "a mapping gives each type its own table, so there is no type column to name",
            hint="leave type= out; a mapping of columns becomes a table with pyarrow.table(…)",
        )
    if mapped and not events:
        raise DataError("the mapping of types to their events is empty")
    named = events if isinstance(events, Mapping) else {columns.only_type: events}
    inputs: dict[str, Input] = {}
    for name, table in named.items():
        inputs |= open_inputs(table, csv_options, of_type=str(name) if mapped else None)
    inputs, columns = with_exact_columns(inputs, columns)
    inputs = {name: with_nested_columns(source, columns, _schema_of_files) for name, source in inputs.items()}
    inputs = {name: with_written_times(source, columns.time) for name, source in inputs.items()}
    if not declared:
        inputs = {name: source.without_types(columns.type, columns.time) for name, source in inputs.items()}
    return Source(inputs, columns, mapped=mapped)


def _schema_of_files(files: Input) -> pa.Schema:
    with lent_cursor() as connection, reading(files.file):
        return connection.sql(f"{files.query} LIMIT 0").to_arrow_table().schema
