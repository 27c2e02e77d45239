"""Events as users have them → a `Source`: their schema, their order, and the classified stream."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from estero.automata.cea import EventPredicate
from estero.classify.arrays import array_of, empty_batch, empty_table, numbers_in
from estero.classify.classify import Clauses, classify_sql
from estero.classify.column_names import bits_name, check_names
from estero.classify.columns import ColumnType, reference
from estero.classify.duckdb_dialect import DUCKDB
from estero.classify.remembered import Remembered
from estero.classify.sql_texts import literal
from estero.errors import DataError
from estero.events.database import EVENTS, Database, connect, lent_to, own
from estero.events.execution import Execution, named_in
from estero.events.inputs import Input, open_inputs, read_twice
from estero.events.prepared_statements import Columns, executed_over, is_small
from estero.events.reading_errors import TooLargeError, how_to_have_timestamps, reading
from estero.events.reading_lines import reading_line
from estero.events.screening import Screen
from estero.events.source_columns import SourceColumns
from estero.events.stream_order import OrderCheck, null_time, refuse_nat
from estero.events.tables.nested_columns import with_nested_columns
from estero.events.tables.relations import Numbered, OneOf, Relation
from estero.events.tables.shown_types import occurs
from estero.events.tables.table_columns import TableColumn
from estero.events.tables.whole_batches import whole_table
from estero.language.tree.schema import EventLayout, Kind
from estero.plan.plan import Classification, Layout

BATCH = 131_072
"""Rows of a classified batch, at most."""
SELECTIVE_BATCH = 32_768
"""The same where few events are left: recognition begins while the thread of DuckDB is still screening.

Measured with 195,000 of 10 million events left (taxi, 6 events): 0.30 s with 131,072, 0.25 with 32,768.
Where all are left (dense) smaller batches take a tenth longer.
"""

_LETTERS = 40


class Source:
    """A stream of events that can be classified (`open_source` makes one).

    `schema` is what the language checks against, `layout` what a query is planned for: it knows the length
    of a tick of ``__time`` in nanoseconds, None where there is no time or its unit is not known. Where each
    type has its own table (`mapped`), the type column is `MAPPED_TYPE`, or a name like it that is free;
    where there are several tables, `view` is the query of their union. `columns` are the names of all
    attributes in order, `column_types` how expressions read them. `zone` is that of the time column, `file`
    the one path of the events, None where there is none. A `one_shot` source can be read once.
    """

    def __init__(self, inputs: Mapping[str, Input], layout: EventLayout, *, mapped: bool = False) -> None:
        self._inputs = dict(inputs)
        self._sorted: bool | None = None
        self._spent = False
        self._followed: OrderCheck | None = None
        self._databases: dict[int, Database] = {}
        self._described: tuple[Classification, pa.Schema] | None = None
        self._screening: set[object] = set()
        tables = {name: self._describe(name, source, layout.type) for name, source in inputs.items()}
        self._columns = SourceColumns(inputs, tables, layout, mapped=mapped)
        self.file = self._columns.file
        self.zone = self._columns.zone
        self.view = self._columns.view
        self.columns = self._columns.names
        self.type_column = self._columns.type_column
        self.column_types = self._columns.types
        self.only_type = layout.only_type
        self.one_shot = any(source.one_shot for source in inputs.values())
        self.order = layout.order
        self.schema = self._columns.schema
        self._find_no_time()
        tick_ns = self._columns.tick_ns()
        self.layout = Layout(self.schema, self.type_column, self.only_type, self.order, tick_ns)

    def __getstate__(self) -> dict[str, Any]:
        """All but the connections: another process reads the events again. TypeError where it could not."""
        for source in self._inputs.values():
            try:
                pickle.dumps(source.stream)
            except Exception as error:
                raise TypeError(
                    "this answer cannot be pickled, because its events can only be read in this process: "
                    "pickle its table, answer.to_arrow(), or run the query on a file or a table"
                ) from error
        return self.__dict__ | {"_databases": {}, "_described": None, "_screening": set()}

    @property
    def _database(self) -> Database:
        """Opened when something is read: it takes 20 ms. A forked process opens its own."""
        process = os.getpid()
        if process not in self._databases:
            self._databases.setdefault(process, lent_to(self))  # another thread may have done it meanwhile
        return self._databases[process]

    def size(self) -> int | None:
        """The number of events, if it is known without reading them."""
        rows = [source.rows for source in self._inputs.values()]
        return None if None in rows else sum(row for row in rows if row is not None)

    def event_count(self) -> int:
        """The number of events; they are read where that is the only way to know."""
        known = self.size()
        if known is None and (in_order := self._in_order()) is not None:
            return in_order.rows
        if known is None:
            ((known,),) = self._rows(f"SELECT count(*) AS events FROM {EVENTS}")
        return int(known)

    def odd_value(self, column: str) -> str:
        """The value of a text file that made a column one of strings, as a hint; "" where there is none.

        Reads the file, so it is for messages of errors only.
        """
        from estero.events.files.text_layout import odd_text

        for source in self._inputs.values():
            if source.layout is None:
                continue
            with self._database.cursor() as cursor:
                odd = odd_text(cursor, source.layout, column)
            if odd is not None:
                shown = odd.text if len(odd.text) <= _LETTERS else f"{odd.text[:_LETTERS]}…"
                where = f"{odd.file}, row {odd.row}, column {column!r}"
                return f"fix the value {shown!r} ({where}): it is of another kind than those above it"
        return ""

    # --------------------------------------------------------------------------------- reading

    @property
    def waits_for_columns(self) -> bool:
        """Whether it is read once, in the columns that are expected then (`expect`)."""
        return any(isinstance(source.stream, Relation) for source in self._inputs.values())

    def expect(self, classification: Classification) -> None:
        """Announces the columns and rows for which it will be read; to be called before reading."""
        sql = classify_sql(classification, EVENTS, columns=self.column_types, ordered=False)
        also = {self.type_column, *self._columns.order}
        for source in self._inputs.values():
            if isinstance(source.stream, Relation):
                names = source.stream.schema.names
                columns = {*named_in(sql, names), *(name for name in names if name in also)}
                one_of = self._one_of(classification, source.stream.schema)
                source.stream.expect(columns, order=self._columns.order, one_of=one_of)

    def _one_of(self, classification: Classification, events: pa.Schema) -> OneOf:
        """The rows that may be relevant, where the user declares an order and this is the only input."""
        if self.view is not None or not self.order:
            return ()
        screen = Screen(classification, events)
        return screen.pushed if screen.useful else ()

    def _in_order(self) -> Numbered | None:
        """The rows of a relation that may be relevant, if it is one and in the order that is declared."""
        stream = next(iter(self._inputs.values())).stream
        return stream.in_order() if isinstance(stream, Relation) else None

    def run_relations(self) -> None:
        """Runs relations whose columns are expected; to be called before users are given what reads them.

        A statement on the connection of a relation may read an answer over it, and nothing else can be run
        there as long as it does.
        """
        for source in self._inputs.values():
            if isinstance(source.stream, Relation):
                with reading():
                    source.stream.run()

    def read(self, classification: Classification) -> Iterator[pa.RecordBatch]:
        """The classified table in stream order, batch by batch (`plan.Classification` says its columns).

        Sorts first where the stream is not sorted; ties keep `order`, then arrival. A stream that
        passes once is not sorted: an event before its predecessor is a `DataError`; but where it is one of
        several inputs, it is held in memory, so that all of them can be sorted. A malformed value of a text
        file is a `DataError` where its column is needed.
        """
        if self.one_shot and len(self._inputs) > 1 and self._columns.order:
            self._hold()
        try:
            if (table := self._small_table()) is not None:
                with reading(self.file):
                    relevant = executed_over(table, self._sql(classification, in_memory=True))
                if relevant.num_rows:
                    yield self._columns.shown(relevant)
                return
            screen = self._screen(classification)
            if screen is None:
                yield from map(self._columns.shown, self._run(self.sql(classification)))
                return
            sql = classify_sql(classification, EVENTS, columns=self.column_types, screened=screen.rests)
            for batch in self._run(sql, screen):
                relevant = batch if classification.keep_all else _with_bits(batch)
                if relevant.num_rows:
                    yield self._columns.shown(relevant)
        except DataError as error:
            raise self._naming_the_predicate(classification, error) from error.__cause__

    def _hold(self) -> None:
        """Brings the inputs that can be read once into memory."""
        with self._database.lock:
            for name, source in self._inputs.items():
                if source.one_shot and source.stream is not None:
                    with reading(source.file):
                        table = whole_table(source.stream(None).read_all())
                    self._inputs[name] = dataclasses.replace(source, table=table, stream=None, one_shot=False)
            if self.one_shot:
                self.one_shot = False
                self._sorted = None

    def sql(self, classification: Classification) -> str:
        """The statement that `read` runs, over the relation ``events``, or one that means the same."""
        return self._sql(classification)

    def reading_lines(self, classification: Classification) -> list[str]:
        """The columns and rows that `read` reads of each input, in words."""
        sql = self.sql(classification)
        screen = None if self._small_table() is not None else self._screen(classification)
        if screen is not None:
            rests = classify_sql(classification, EVENTS, columns=self.column_types, screened=screen.rests)
            sql = rests + ", ".join(DUCKDB.quoted(name) for name in screen.columns)
        several = len(self._inputs) > 1
        return [
            f"{name}: {line}" if several else line
            for (name, source), columns in zip(self._inputs.items(), self._columns.of_inputs, strict=True)
            for line in [reading_line(sql, screen, source, columns)]
        ]

    def _sql(self, classification: Classification, *, in_memory: bool = False) -> str:
        ordered = self.is_sorted()
        return classify_sql(
            classification, EVENTS, columns=self.column_types, ordered=ordered, in_memory=in_memory
        )

    def classified_schema(self, classification: Classification) -> pa.Schema:
        """The columns of the batches that `read` gives; reads no event, and the last ones are remembered."""
        if self._described is None or self._described[0] is not classification:
            self._described = classification, self._schema_of(classification)
        return self._described[1]

    def _schema_of(self, classification: Classification) -> pa.Schema:
        empty = [
            Input(table=empty_table(source.schema)) if source.schema is not None else source
            for source in self._inputs.values()
        ]
        silent = (EventPredicate(("",)),) * len(classification.predicates)  # the SQL of predicates is long
        statement = classify_sql(
            dataclasses.replace(classification, predicates=silent), EVENTS, columns=self.column_types
        )

        in_memory = all(source.schema is not None for source in self._inputs.values())

        def asked_of_duckdb() -> pa.Schema:
            with Execution(self._asked_for_types(), empty, view=self.view) as execution, reading(self.file):
                return execution.schema(statement)

        asked = (
            statement,
            self.view,
            [Columns.of(source.schema) for source in self._inputs.values() if source.schema],
        )
        schema = _schemas.of(asked, asked_of_duckdb) if in_memory else asked_of_duckdb()
        return self._columns.shown(empty_batch(schema)).schema

    def is_sorted(self) -> bool:
        """Whether the events come in stream order: by time, then the `order` columns.

        True without either. Reads these columns once; a NULL time is a `DataError` that names the row.
        For a stream that passes once it is taken for granted, and checked while it passes.
        """
        if self._sorted is None:
            self._refuse_nat()
            self._sorted = self.one_shot or not self._columns.order or self._check_order()
        return self._sorted

    def last_time(self) -> int | None:
        """The time of the last event, in ticks; None without events or a time.

        Of a stream that passes once it is that of the last event that was read.
        """
        time, ticks = (
            self.schema.time,
            Clauses(Classification((), self.schema), DUCKDB, self.column_types).time(),
        )
        if time is None or ticks is None:
            return None
        if not self.one_shot:
            in_order = self._in_order()
            if in_order is not None and in_order.last is not None:
                known = self._ticks_of(ticks, in_order.last.column(time), time)
                if known is not None:  # an infinite time has no ticks
                    return known
            ((last,),) = self._rows(f"SELECT max({ticks}) AS last FROM {EVENTS}")
            return None if last is None else int(last)
        last_read = None if self._followed is None else self._followed.last
        return None if last_read is None else self._ticks_of(ticks, last_read[0], time)

    def _ticks_of(self, ticks: str, value: pa.Array, time: str) -> int | None:
        """The ticks of the one time in an array."""
        with self._database.cursor() as connection:
            connection.register(EVENTS, pa.table([value], names=[time]))
            ((known,),) = connection.execute(f"SELECT {ticks} FROM {EVENTS}").fetchall()
        return None if known is None else int(known)

    def has_type(self, name: str) -> bool:
        """Whether an event of this type occurs; for a stream that passes once, whether one may."""
        if self.type_column is None:
            return name == self.only_type
        if self._columns.mapped:
            return name in self.type_names()
        if self.one_shot:
            return True
        if len(self._inputs) == 1:
            (only,) = self._inputs.values()
            known = None if only.table is None else occurs(only.table.column(self.type_column), name)
            if known is not None:
                return known
            if (numbered := self._in_order()) is not None and isinstance(only.stream, Relation):
                kept = numbered.kept.rows([self.type_column])
                return any(_occurs(batch, name) for batch in kept) or only.stream.has(self.type_column, name)
        column = DUCKDB.as_read(self.type_column, self.column_types[self.type_column])
        return bool(
            self._rows(f"SELECT 1 FROM {EVENTS} WHERE {column.sql('duckdb')} = {literal(name)} LIMIT 1")
        )

    def type_names(self) -> tuple[str, ...]:
        """The types that occur, sorted; none are known of a stream that passes once."""
        if self.type_column is None:
            return (self.only_type,)
        if self._columns.mapped:
            return tuple(sorted({str(source.type_name) for source in self._inputs.values()}))
        if self.one_shot:
            return ()
        column = DUCKDB.as_read(self.type_column, self.column_types[self.type_column]).sql("duckdb")
        rows = self._rows(f"SELECT DISTINCT {column} AS name FROM {EVENTS} WHERE {column} IS NOT NULL")
        return tuple(sorted(str(row[0]) for row in rows))

    # --------------------------------------------------------------------------------- opening

    def _describe(self, type_name: str, source: Input, type_column: str | None) -> dict[str, TableColumn]:
        """The columns of one input."""
        if source.schema is None:
            rows = self._described_by_duckdb(source)
        else:
            check_names(source.schema.names, source.file)
            rows = _types.of(Columns.of(source.schema), lambda: self._described_by_duckdb(source))
        names = [row[0] for row in rows] if source.schema is None else source.schema.names
        kinds = {name: DUCKDB.column_type(row[1]) for name, row in zip(names, rows, strict=True)}
        if type_column in kinds and kinds[type_column].kind is Kind.NULL and source.may_be_empty:
            kinds[type_column] = ColumnType(Kind.STRING, "VARCHAR")
        return {
            name: TableColumn(type_name, row[1], kinds[name]) for name, row in zip(names, rows, strict=True)
        }

    def _described_by_duckdb(self, source: Input) -> list[tuple[str, str]]:
        """The names of the columns of an input and their types, as DuckDB calls them."""
        with self._asked_for_types().cursor() as connection, reading(source.file):
            if source.query is None:
                connection.register(EVENTS, empty_table(source.schema) if source.schema else source.table)
            rows = connection.execute(f"DESCRIBE {source.query or f'FROM {EVENTS}'}").fetchall()
            check_names(source.names(connection, [row[0] for row in rows]), source.file)
        return [(row[0], row[1]) for row in rows]

    def _asked_for_types(self) -> Database:
        """The database that says how DuckDB reads columns: the one that reads them, if it will be opened."""
        is_read_at_once = all(
            source.table is not None and is_small(source.table) for source in self._inputs.values()
        )
        return own(os.getpid()) if is_read_at_once else self._database

    def _find_no_time(self) -> None:
        """Names the first string that keeps a column from being one of timestamps."""
        name = self.schema.time
        if name is None or self.one_shot or self.column_types[name].kind is not Kind.STRING:
            return
        value = DUCKDB.as_read(name, self.column_types[name]).sql("duckdb")
        numbered = f"SELECT {value} AS value, row_number() OVER () AS row FROM {EVENTS}"
        none = "value IS NOT NULL AND TRY_CAST(value AS TIMESTAMPTZ) IS NULL"
        for text, row in self._rows(f"SELECT value, row FROM ({numbered}) WHERE {none} LIMIT 1"):
            raise DataError(
                f"{text!r} is not a timestamp",
                file=self.file,
                row=row,
                column=name,
                hint=how_to_have_timestamps(
                    self.file, name, Kind.STRING, nested=self._columns.is_nested(name)
                ),
            )

    # --------------------------------------------------------------------------------- running

    def _small_table(self) -> pa.Table | None:
        """The events, where they are one table that is read at once."""
        table = next(iter(self._inputs.values())).table
        return table if self.view is None and table is not None and is_small(table) else None

    def _screen(self, classification: Classification) -> Screen | None:
        """The screen of the events, where they are one Arrow table or stream in order."""
        schema = next(iter(self._inputs.values())).schema
        if self.view is not None or schema is None or not self.is_sorted():
            return None
        screen = Screen(classification, schema)
        return screen if screen.useful else None

    def _follower(self) -> OrderCheck | None:
        names = self._columns.order
        if not (self.one_shot and names):
            return None
        self._followed = OrderCheck(names, timed=self.schema.time is not None)
        return self._followed

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
        tables = [source.table for source in self._inputs.values()]
        if len(tables) == 1 and tables[0] is not None:
            check = OrderCheck(self._columns.order, timed=self.schema.time is not None)
            for batch in tables[0].select(list(dict.fromkeys(self._columns.order))).to_batches():
                check.follow(batch)
            return check.is_sorted
        # Files are not fetched for this: 0.12 s for 5 million events of Parquet, 0.32 s with an `OrderCheck`.
        return self._check_order_in_sql()

    def _check_order_in_sql(self) -> bool:
        time = self.schema.time
        ordering = Classification((), self.schema, order=self.order)
        values = Clauses(ordering, DUCKDB, self.column_types).order()
        at = None if time is None else reference(time, self.column_types[time])
        is_null = "false" if at is None else f"{at.sql('duckdb')} IS NULL"
        here, before = ", ".join(values), ", ".join(f"lag({value}) OVER ()" for value in values)
        back = f"lag(true) OVER () AND ({here}) < ({before})"  # the first event is after none
        steps = f"SELECT {is_null} AS missing, {back} AS back FROM {EVENTS}"
        wrong = self._rows(
            f"SELECT missing FROM ({steps}) WHERE missing OR back ORDER BY missing DESC LIMIT 1"
        )
        if wrong and wrong[0][0]:
            numbered = f"SELECT {is_null} AS missing, row_number() OVER () AS row FROM {EVENTS}"
            row = self._rows(f"SELECT min(row) FROM ({numbered}) WHERE missing")[0][0]
            raise null_time(str(time), row, self.file)
        return not wrong

    def _run(self, sql: str, screen: Screen | None = None) -> Iterator[pa.RecordBatch]:
        """The answer to a query over ``events``."""
        with self._database.lock:
            if self.one_shot and self._spent:
                raise read_twice()
            self._spent = True
        with (
            self._threads(alone=screen is not None),
            Execution(
                self._database,
                self._inputs.values(),
                view=self.view,
                order=self._follower(),
                screen=screen,
                sql=sql,
            ) as execution,
            reading(self.file),
        ):
            selective = screen is not None and screen.selective
            yield from execution.batches(sql, SELECTIVE_BATCH if selective else BATCH)

    @contextmanager
    def _threads(self, *, alone: bool) -> Iterator[None]:
        """Sets DuckDB to one thread (`alone`), or to all, unless another query of this source needs one.

        What is screened has its positions, and threads would change the order. They are those of the whole
        database, and one more database would take 20 ms.
        """
        query = object()
        database = self._database
        with database.lock:
            if alone:
                self._screening.add(query)
            database.use_threads(alone=bool(self._screening))
        try:
            yield
        finally:
            self._screening.discard(query)

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for batch in self._run(sql) for row in batch.to_pylist()]

    def _naming_the_predicate(self, classification: Classification, error: DataError) -> DataError:
        """An overflow, with the predicate in which it happened where the events can be read again."""
        if not isinstance(error, TooLargeError) or self.one_shot:
            return error
        for predicate in classification.predicates:
            alone = Classification((predicate,), self.schema, self.type_column, self.only_type, order=())
            sql = classify_sql(alone, EVENTS, columns=self.column_types, positions=False)
            try:
                self._rows(f"SELECT count(*), sum(__bits0) FROM ({sql})")
            except DataError as again:
                return DataError(f"{again.message}, in {predicate}", file=error.file, hint=again.hint)
        return error


def _occurs(batch: pa.RecordBatch, text: str) -> bool:
    """Whether a text is among the strings of the one column of a batch."""
    return bool(occurs(pa.chunked_array([batch.column(0)]), text))


def _with_bits(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with some bit set."""
    words = itertools.takewhile(batch.schema.names.__contains__, map(bits_name, itertools.count()))
    some = functools.reduce(np.bitwise_or, (numbers_in(batch.column(word)) for word in words))
    return batch if some.all() else batch.filter(array_of(some != 0))


_types = Remembered[list[tuple[str, str]]]()
"""The types of DuckDB for the columns of tables."""
_schemas = Remembered[pa.Schema]()
"""The columns of statements over tables of such columns."""


def open_source(
    events: object,
    layout: EventLayout | None = None,
    csv_options: Mapping[str, object] | None = None,
    *,
    declared: bool = True,
) -> Source:
    """A source of `events`; nothing but names and types is read yet.

    `events` is a path, directory or glob (Parquet, CSV, JSON lines, Arrow), a list of these in any
    formats, anything with the Arrow C stream interface, a pandas frame, an iterator or list of record
    batches, or a mapping of type name to any of these. `csv_options` are those of DuckDB's ``read_csv``.
    Where types are not `declared`, those of a table without rows say nothing.

    Raises `DataError` where `events` cannot be read or a column is missing or of a wrong kind.
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
    inputs = {name: with_nested_columns(source, columns, _schema_of_files) for name, source in inputs.items()}
    if not declared:
        inputs = {name: source.without_types(columns.type, columns.time) for name, source in inputs.items()}
    return Source(inputs, columns, mapped=mapped)


def _schema_of_files(files: Input) -> pa.Schema:
    with connect() as connection, reading(files.file):
        return connection.sql(f"{files.query} LIMIT 0").to_arrow_table().schema
