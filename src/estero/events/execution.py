"""One query over the inputs of a source: a cursor of DuckDB, read and watched by a thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

import pyarrow as pa

from estero.classify.arrays import empty_table
from estero.classify.column_names import check_names, event_column
from estero.classify.duckdb_dialect import DUCKDB
from estero.events.database import EVENTS, Database, LentDatabases, keep_when_forked, own
from estero.events.fetching import AbandonedError, fetched
from estero.events.inputs import Input
from estero.events.reading_errors import reading
from estero.events.screening import Screen
from estero.events.small_tables import is_small
from estero.events.stream_order import OrderCheck, in_order
from estero.events.tables.lazy_tables import LazyFrame
from estero.events.tables.relations import Relation
from estero.events.tables.whole_batches import whole_batch


class Execution:
    """A cursor of a `database` on which the inputs are readable as ``events``, for one query.

    With `view` they are readable under numbered names, and that query over them is ``events``. `order` checks
    the order of streams as they pass; `screen` filters the only input. `sql` is the whole query: from a
    stream that can leave out columns, only those named in it are read.
    """

    def __init__(
        self,
        database: Database,
        inputs: Iterable[Input],
        *,
        view: str | None = None,
        order: OrderCheck | None = None,
        screen: Screen | None = None,
        sql: str | None = None,
    ) -> None:
        self._cursor = database.cursor()
        self._opening = database.lock
        self._process = os.getpid()
        keep_when_forked(self._cursor)
        self._inputs = inputs
        self._view = view
        self._order = order
        self._screen = screen
        self._sql = sql
        self._stopped = threading.Event()
        # DuckDB passes on only the text of what a stream raises, so the error itself is kept here.
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        with self._opening:  # relations run here, which may share a connection
            for place, source in enumerate(self._inputs):
                self._attach(EVENTS if self._view is None else f"{EVENTS}{place}", source)
        if self._view is not None:
            self._cursor.execute(f"CREATE OR REPLACE TEMP VIEW {EVENTS} AS {self._view}")
        return self

    def __exit__(self, *_: object) -> None:
        if os.getpid() == self._process:
            self._cursor.close()

    def schema(self, sql: str) -> pa.Schema:
        """The columns of a query, found without reading events."""
        return self._cursor.sql(f"{sql} LIMIT 0").to_arrow_table().schema

    def batches(self, sql: str, rows: int) -> Iterator[pa.RecordBatch]:
        """The result in batches of at most `rows` rows; errors of a stream are raised unchanged."""
        import duckdb

        try:
            yield from fetched(
                lambda: self._cursor.sql(sql).to_arrow_reader(rows), self._cursor.interrupt, self._stopped
            )
        except (duckdb.Error, RuntimeError, OSError, pa.ArrowException):
            if self._failure is None:
                raise
        if self._failure is not None:  # a stream that broke off can look like one that ended
            raise self._failure

    def _attach(self, name: str, source: Input) -> None:
        if source.query is not None:
            with reading(source.file):
                self._cursor.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {source.query}")
        elif self._screen is not None:
            # Rows that pass a screen are cut out of the batches once more.
            passed = map(whole_batch, self._screen.passed(self._checked(_asked_by(self._screen, source))))
            self._cursor.register(name, self._watched(self._screen.schema, passed))
        elif source.stream is not None:
            stream = source.stream(self._named(source))
            batches, schema = self._checked(stream), stream.schema
            if self._view is not None and source.schema is not None and len(schema) < len(source.schema):
                batches, schema = _widened(batches, source.schema), source.schema
            self._cursor.register(name, self._watched(schema, batches))
        else:
            self._cursor.register(name, source.table)

    def _named(self, source: Input) -> list[str] | None:
        """The columns that the statement names, possibly with others; None for all."""
        if self._sql is None or source.schema is None:
            return None
        if self._view is not None and not all(map(_may_be_missing, source.schema)):
            return None
        # Rows are counted even if none of their columns is read.
        return named_in(self._sql, source.schema.names) or source.schema.names[:1]

    def _checked(self, stream: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of a stream; an event out of order raises `DataError`."""
        return map(whole_batch, in_order(stream, self._order))

    def _watched(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
        """The batches as a stream that ends when it is no longer read, and whose errors are kept."""

        def watched() -> Iterator[pa.RecordBatch]:
            try:
                for batch in batches:
                    if self._stopped.is_set():
                        raise AbandonedError
                    yield batch
            except BaseException as error:
                self._failure = error
                raise

        return pa.RecordBatchReader.from_batches(schema, watched())


def _asked_by(screen: Screen, source: Input) -> pa.RecordBatchReader:
    """The batches of an input that are screened; numbered if rows that cannot pass are missing."""
    if isinstance(source.stream, LazyFrame | Relation) and screen.pushed:
        return source.stream.numbered(screen.columns, screen.pushed)
    return source.reader(screen.columns)


def named_in(sql: str, columns: Sequence[str]) -> list[str]:
    """The columns that a statement over ``events`` names, possibly with others."""
    return [name for name in columns if DUCKDB.quoted(event_column(name)) in sql]


def _may_be_missing(field: pa.Field) -> bool:
    """Whether a column of NULLs can replace this one."""
    return not isinstance(field.type, pa.BaseExtensionType)


def _widened(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches with all columns: a view names them, and those that are not read are NULL."""
    for batch in batches:
        by_name = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns = [
            by_name[field.name] if field.name in by_name else pa.nulls(batch.num_rows, field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def described_by_duckdb(source: Input, databases: LentDatabases) -> list[tuple[str, str]]:
    """The names of the columns of an input and their types, as described by DuckDB."""
    asked = database_for_types([source], databases)
    with asked.cursor() as connection:
        if source.query is None:
            connection.register(EVENTS, empty_table(source.schema) if source.schema else source.table)
        rows = connection.execute(f"DESCRIBE {source.query or f'FROM {EVENTS}'}").fetchall()
        check_names(source.names(connection, [row[0] for row in rows]), source.file)
    return [(row[0], row[1]) for row in rows]


def database_for_types(inputs: Iterable[Input], databases: LentDatabases) -> Database:
    """The database that tells how DuckDB reads columns: the one that will read them, if it will be opened."""
    is_read_at_once = all(source.table is not None and is_small(source.table) for source in inputs)
    return own(os.getpid()) if is_read_at_once else databases.here
