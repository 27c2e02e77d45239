"""The queries of a source to DuckDB: the classified stream in SQL, and single questions on its events.

Only sources that need SQL import this module: DuckDB and the SQL writer take 0.2 s to load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from estero.automata.cea import EventPredicate
from estero.classify.arrays import empty_table
from estero.classify.classify import Clauses, classify_sql
from estero.classify.columns import reference
from estero.classify.duckdb_dialect import DUCKDB
from estero.classify.remembered import Remembered
from estero.classify.sql_texts import literal
from estero.errors import DataError
from estero.events.database import EVENTS, LentDatabases
from estero.events.execution import Execution, database_for_types, named_in
from estero.events.inputs import Input
from estero.events.prepared_statements import executed_over
from estero.events.reading_errors import how_to_have_timestamps, reading
from estero.events.reading_lines import reading_line
from estero.events.screening import Screen
from estero.events.small_tables import Columns
from estero.events.source_columns import SourceColumns
from estero.events.stream_order import OrderCheck, null_time
from estero.events.tables.relations import OneOf, Relation
from estero.language.tree.expressions import Node
from estero.language.tree.schema import Kind
from estero.plan.plan import Classification, Layout

BATCH = 131_072
"""The largest number of rows of a classified batch."""
SELECTIVE_BATCH = 32_768
"""The same if few events remain: recognition begins while the thread of DuckDB is still screening.

Measured with 195,000 of 10 million events left (taxi, 6 events): 0.30 s with 131,072, 0.25 with 32,768. If
all are left (dense), smaller batches take a tenth longer.
"""


class SqlReading:
    """Reads the inputs of a source by DuckDB, with ``events`` as the name of their union.

    `columns` are those of the inputs, `layout` gives the meaning of some.
    """

    def __init__(
        self, inputs: Mapping[str, Input], columns: SourceColumns, layout: Layout, databases: LentDatabases
    ) -> None:
        self._inputs = inputs
        self._columns = columns
        self._layout = layout
        self._file = columns.file
        self._types = columns.types
        self._databases = databases
        self._screening: set[object] = set()

    # ------------------------------------------------------------------------------------ statements

    def statement(
        self,
        classification: Classification,
        *,
        ordered: bool = True,
        in_memory: bool = False,
        screened: Sequence[Node | None] | None = None,
    ) -> str:
        """The classifying statement over ``events``; the arguments are those of `classify_sql`."""
        return classify_sql(
            classification,
            EVENTS,
            columns=self._types,
            ordered=ordered,
            in_memory=in_memory,
            screened=screened,
        )

    def reading_lines(
        self, statement: str, classification: Classification, screen: Screen | None
    ) -> list[str]:
        """The columns and rows that a statement, or a screen before it, reads of each input, in words."""
        if screen is not None:
            statement = self.statement(classification, screened=screen.rests)
            statement += ", ".join(DUCKDB.quoted(name) for name in screen.columns)
        several = len(self._inputs) > 1
        return [
            f"{name}: {line}" if several else line
            for (name, source), columns in zip(self._inputs.items(), self._columns.of_inputs, strict=True)
            for line in [reading_line(statement, screen, source, columns)]
        ]

    def expect(self, classification: Classification, one_of: OneOf) -> None:
        """Announces the columns, and the rows, for which relations will be read."""
        sql = self.statement(classification, ordered=False)
        also = {self._layout.type_column, *self._columns.order}
        for source in self._inputs.values():
            if isinstance(source.stream, Relation):
                names = source.stream.schema.names
                columns = {*named_in(sql, names), *(name for name in names if name in also)}
                source.stream.expect(columns, order=self._columns.order, one_of=one_of)

    def schema_of(self, classification: Classification) -> pa.Schema:
        """The columns of the classifying statement; reads no event."""
        empty = [
            Input(table=empty_table(source.schema)) if source.schema is not None else source
            for source in self._inputs.values()
        ]
        silent = (EventPredicate(("",)),) * len(classification.predicates)  # the SQL of predicates is long
        statement = self.statement(replace(classification, predicates=silent))
        view = self._columns.view

        def asked_of_duckdb() -> pa.Schema:
            asked = database_for_types(self._inputs.values(), self._databases)
            with Execution(asked, empty, view=view) as execution, reading(self._file):
                return execution.schema(statement)

        schemas = [source.schema for source in self._inputs.values() if source.schema is not None]
        if len(schemas) < len(self._inputs):
            return asked_of_duckdb()
        return _schemas.of((statement, view, list(map(Columns.of, schemas))), asked_of_duckdb)

    # --------------------------------------------------------------------------------------- reading

    def classified_at_once(self, table: pa.Table, statement: str) -> pa.RecordBatch:
        """The classified events of a small table."""
        with reading(self._file):
            return executed_over(table, statement)

    def run(
        self, sql: str, order: OrderCheck | None = None, screen: Screen | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The result of a query over ``events``, whose streams are checked by `order`."""
        with (
            self.threads(alone=screen is not None),
            Execution(
                self._databases.here,
                self._inputs.values(),
                view=self._columns.view,
                order=order,
                screen=screen,
                sql=sql,
            ) as execution,
            reading(self._file),
        ):
            selective = screen is not None and screen.selective
            yield from execution.batches(sql, SELECTIVE_BATCH if selective else BATCH)

    def rows(self, sql: str, order: OrderCheck | None = None) -> list[tuple[Any, ...]]:
        """The rows of the answer to a query."""
        return [tuple(row.values()) for batch in self.run(sql, order) for row in batch.to_pylist()]

    @contextmanager
    def threads(self, *, alone: bool) -> Iterator[None]:
        """Sets DuckDB to one thread (`alone`), or to all, unless another query of this source needs one.

        Screened rows have their positions, and threads would change their order. The setting is that of the
        whole database, and one more database would take 20 ms.
        """
        query = object()
        database = self._databases.here
        with database.lock:
            if alone:
                self._screening.add(query)
            database.use_threads(alone=bool(self._screening))
        try:
            yield
        finally:
            self._screening.discard(query)

    def naming_the_predicate(self, classification: Classification, error: DataError) -> DataError:
        """An overflow error with the predicate in which it occurred."""
        for predicate in classification.predicates:
            alone = Classification(
                (predicate,), self._columns.schema, self._layout.type_column, self._layout.only_type
            )
            sql = classify_sql(alone, EVENTS, columns=self._types, positions=False)
            try:
                self.rows(f"SELECT count(*), sum(__bits0) FROM ({sql})")
            except DataError as again:
                return DataError(f"{again.message}, in {predicate}", file=error.file, hint=again.hint)
        return error

    # ------------------------------------------------------------------------------------- questions

    def event_count(self, order: OrderCheck | None) -> int:
        """The number of events; `order` is as in `run`."""
        ((known,),) = self.rows(f"SELECT count(*) AS events FROM {EVENTS}", order)
        return int(known)

    def last_time(self) -> int | None:
        """The time of the last event, in ticks."""
        ((last,),) = self.rows(f"SELECT max({self._ticks()}) AS last FROM {EVENTS}")
        return None if last is None else int(last)

    def ticks_of(self, value: pa.Array) -> int | None:
        """The ticks of the one time in an array; None if it has none."""
        with self._databases.here.cursor() as connection:
            connection.register(EVENTS, pa.table([value], names=[str(self._columns.schema.time)]))
            ((known,),) = connection.execute(f"SELECT {self._ticks()} FROM {EVENTS}").fetchall()
        return None if known is None else int(known)

    def has_type(self, name: str) -> bool:
        """Whether an event of this type occurs."""
        return bool(
            self.rows(f"SELECT 1 FROM {EVENTS} WHERE {self._type_column()} = {literal(name)} LIMIT 1")
        )

    def type_names(self) -> tuple[str, ...]:
        """The types that occur, sorted."""
        column = self._type_column()
        rows = self.rows(f"SELECT DISTINCT {column} AS name FROM {EVENTS} WHERE {column} IS NOT NULL")
        return tuple(sorted(str(row[0]) for row in rows))

    def is_sorted(self) -> bool:
        """Whether the events come in stream order; a NULL time raises a `DataError` that names the row."""
        time = self._columns.schema.time
        ordering = Classification((), self._columns.schema, order=self._layout.order)
        values = Clauses(ordering, DUCKDB, self._types).order()
        at = None if time is None else reference(time, self._types[time])
        is_null = "false" if at is None else f"{at.sql('duckdb')} IS NULL"
        here, before = ", ".join(values), ", ".join(f"lag({value}) OVER ()" for value in values)
        back = f"lag(true) OVER () AND ({here}) < ({before})"  # the first event is after none
        steps = f"SELECT {is_null} AS missing, {back} AS back FROM {EVENTS}"
        wrong = self.rows(
            f"SELECT missing FROM ({steps}) WHERE missing OR back ORDER BY missing DESC LIMIT 1"
        )
        if wrong and wrong[0][0]:
            numbered = f"SELECT {is_null} AS missing, row_number() OVER () AS row FROM {EVENTS}"
            row = self.rows(f"SELECT min(row) FROM ({numbered}) WHERE missing")[0][0]
            raise null_time(str(time), row, self._file)
        return not wrong

    def refuse_no_time(self, name: str) -> None:
        """Raises `DataError` for the first string that prevents a column from being one of timestamps."""
        value = DUCKDB.as_read(name, self._types[name]).sql("duckdb")
        numbered = f"SELECT {value} AS value, row_number() OVER () AS row FROM {EVENTS}"
        none = "value IS NOT NULL AND TRY_CAST(value AS TIMESTAMPTZ) IS NULL"
        for text, row in self.rows(f"SELECT value, row FROM ({numbered}) WHERE {none} LIMIT 1"):
            raise DataError(
                f"{text!r} is not a timestamp",
                file=self._file,
                row=row,
                column=name,
                hint=how_to_have_timestamps(
                    self._file, name, Kind.STRING, nested=self._columns.is_nested(name)
                ),
            )

    def _ticks(self) -> str:
        clauses = Clauses(Classification((), self._columns.schema), DUCKDB, self._types)
        return str(clauses.time())

    def _type_column(self) -> str:
        column = str(self._layout.type_column)
        return DUCKDB.as_read(column, self._types[column]).sql("duckdb")


_schemas = Remembered[pa.Schema]()
"""The columns of statements over tables of such columns."""
