"""Statements of SQL with MATCH_RECOGNIZE over tables of this process (`estero.sql`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import pyarrow as pa

from estero.answers.frames import Frames
from estero.arguments import checked, shown
from estero.automata.row_patterns.shadowed import warn_of_alternatives
from estero.classify.sql_texts import quoted
from estero.errors import QueryError
from estero.events.database import Connection, lent_to, own
from estero.events.inputs import open_input
from estero.language.row_patterns.pieces import Pieces
from estero.language.row_patterns.statements import Placed, placed_clauses
from estero.language.row_patterns.words import words_of
from estero.recognize.row_patterns.evaluation import Evaluation
from estero.recognize.row_patterns.ordered_rows import Relation
from estero.recognize.row_patterns.statements import Statements, in_words_of, unique
from estero.system.cached_property import cached_property

_PREVIEWED: Final = 10
"""The number of rows that a notebook shows."""


@checked
def sql(text: str, /, *, connection: Connection | None = None, **tables: object) -> SqlResult:
    """The lazy result of a SQL statement with MATCH_RECOGNIZE after any table or subquery.

    `tables` are the tables that it names, given as events are: frames, Arrow tables, paths; `connection` adds
    those of a DuckDB connection. Raises `QueryError` with all mistakes in MATCH_RECOGNIZE; other mistakes
    show when the result is asked for. Alternatives that are never taken issue an `EsteroWarning`.

    >>> import estero
    >>> import pyarrow as pa
    >>> prices = pa.table({"day": [1, 2, 3, 4], "price": [9, 7, 6, 8]})
    >>> estero.sql('''
    ...     SELECT * FROM prices MATCH_RECOGNIZE (
    ...         ORDER BY day
    ...         MEASURES FIRST(day) AS first, LAST(DOWN.day) AS bottom, LAST(day) AS last
    ...         PATTERN (STRT DOWN+ UP+)
    ...         DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price)
    ...     )''', prices=prices).to_arrow().to_pylist()
    [{'first': 1, 'bottom': 3, 'last': 4}]
    """
    import duckdb

    if connection is not None and not isinstance(connection, duckdb.DuckDBPyConnection):
        raise TypeError(f"sql() takes a connection of DuckDB as connection, not {shown(connection)}")
    clauses = placed_clauses(text)
    for placed in clauses:
        warn_of_alternatives(placed.clause)
    return SqlResult(text, clauses, connection, tables)


class SqlResult(Frames):
    """The result of a statement, computed when it is first asked for."""

    def __init__(
        self,
        text: str,
        clauses: tuple[Placed, ...],
        connection: Connection | None,
        tables: Mapping[str, object],
    ) -> None:
        self._text, self._clauses = text, clauses
        self._tables = tables
        self._is_own = connection is None
        self._connection = lent_to(self).cursor() if connection is None else connection
        self._given: dict[str, pa.Table] = {}
        aggregates = _built_in_aggregates() if self._is_own and clauses else None
        self._statements = Statements(self._connection, aggregates)

    def _held(self, asked: str, factor: int = 1) -> pa.Table:
        del asked, factor
        return self._table

    def to_duckdb(self) -> Any:
        """The rows as a relation of DuckDB."""
        return self._connection.from_arrow(self._table)

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns."""
        return self._table.schema

    def explain(self) -> str:
        """The plan of each MATCH_RECOGNIZE, one line for each, made without reading any rows."""
        lines: list[str] = []
        with self._named_tables(), self._evaluated(lines, rows=False):
            pass
        return "\n".join(lines) or "no MATCH_RECOGNIZE: the statement is DuckDB's"

    def __repr__(self) -> str:
        return f"<SqlResult of {len(self._clauses)} MATCH_RECOGNIZE>"

    def _repr_html_(self) -> str:
        from estero.answers.as_html import table_html  # for notebooks only

        table = self._table
        return table_html(table.schema, table.to_batches(), most=_PREVIEWED, count=table.num_rows)

    @cached_property
    def _table(self) -> pa.Table:
        with (
            self._named_tables(),
            self._evaluated([]) as statement,
            in_words_of("the statement around MATCH_RECOGNIZE" if self._clauses else "the statement"),
        ):
            result = self._connection.sql(statement)
            return pa.table({}) if result is None else result.to_arrow_table()

    @contextmanager
    def _evaluated(self, lines: list[str], *, rows: bool = True) -> Iterator[str]:
        """The statement with results in place of clauses, while these are registered; `lines` explain them.

        Without `rows` the results have only their columns.
        """
        results: list[str] = []
        pieces = Pieces(self._text)
        try:
            for number, placed in enumerate(self._clauses, 1):
                source = pieces.text(placed.source)
                source = source if rows else f"(SELECT * FROM {source} LIMIT 0)"
                before = pieces.definitions(placed)
                given = None if before or not rows else self._given.get(_name_in(source))
                relation = Relation(source, placed.relation, before, table=given)
                columns = self._statements.types(
                    f"{relation.before} SELECT * FROM {source}", "the input of MATCH_RECOGNIZE"
                )
                evaluation = Evaluation(self._statements, placed.clause, columns, relation.name)
                evaluation.check()
                lines.append(f"MATCH_RECOGNIZE {number}: {evaluation.conditions.strategy}")
                name = unique("result")
                self._connection.register(name, evaluation.table(relation, apart=self._is_own))
                results.append(name)
                pieces.replace(placed.whole, name)
            yield pieces.text()
        finally:
            for name in results:
                self._connection.unregister(name)

    @contextmanager
    def _named_tables(self) -> Iterator[None]:
        """Registers the tables that the statement names while it is evaluated."""
        words = {word.name.casefold() for word in words_of(self._text) if word.is_name}
        registered: list[str] = []
        viewed: list[str] = []
        try:
            for name, table in self._tables.items():
                if name.casefold() not in words:
                    continue
                opened = _arrow(table)
                if isinstance(opened, str):
                    with in_words_of("a table of the statement"):
                        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS {opened}")
                    viewed.append(name)
                else:
                    self._connection.register(name, opened)
                    registered.append(name)
                    self._given[name.casefold()] = opened
            yield
        finally:
            self._given.clear()
            for name in registered:
                self._connection.unregister(name)
            for name in viewed:
                self._connection.execute(f"DROP VIEW IF EXISTS temp.{quoted(name)}")


def _arrow(table: object) -> pa.Table | str:
    """An Arrow table with the rows of any object that can be events, or the query that reads files."""
    if isinstance(table, pa.Table):
        return table
    opened = open_input(table)
    if opened.table is not None:
        return opened.table
    if opened.query is not None:
        return opened.query
    if opened.stream is None:
        raise QueryError("a table of the statement has no rows that can be read")
    return opened.stream(None).read_all()


def arrow_table(table: object, connection: Connection) -> pa.Table:
    """An Arrow table with the rows of any object that can be events, including files."""
    opened = _arrow(table)
    if not isinstance(opened, str):
        return opened
    with in_words_of("a table of the statement"):
        return connection.sql(opened).to_arrow_table()


@cache
def _built_in_aggregates() -> frozenset[str]:
    """The aggregates of DuckDB itself, which takes 20 ms to list them."""
    return Statements(own(os.getpid()).cursor()).aggregates


def _name_in(source: str) -> str:
    """The name of the single table that a relation is, normalized for comparison; else ""."""
    words = words_of(source)
    is_one = all(word.is_name or word.upper == "AS" for word in words) and len(words) <= _WITH_ALIAS
    return words[0].name.casefold() if words and is_one else ""


_WITH_ALIAS: Final = 3
