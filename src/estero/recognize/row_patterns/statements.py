"""DuckDB for row patterns: Arrow in and out, and its errors as Estero's."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import count
from typing import Any, Final, Protocol

import duckdb
import pyarrow as pa
from sqlglot import exp

from estero.classify.sql_texts import literal, quoted
from estero.errors import DataError, QueryError
from estero.system.cached_property import cached_property

_number: Final = count()
_ONE_BATCH: Final = 1 << 30
_ROWS: Final = 1 << 19
MOST_BYTES: Final = 1 << 32
"""The most bytes that are read into memory; larger inputs are sorted by DuckDB, which can spill to disk."""
_USUAL: Final = (("ascending", "nulls_last", ""), ("asc", "nulls_last", ""))
PREFIX: Final = "estero__"


def unique(kind: str) -> str:
    """A unique name for a relation."""
    return f"{PREFIX}{kind}_{next(_number)}"


@contextmanager
def in_words_of(purpose: str) -> Iterator[None]:
    """Converts errors of DuckDB to Estero's, which name the purpose of the statement."""
    try:
        yield
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        message = f"{purpose}: {' '.join(str(error).split(_PLACE)[0].split())}"
        if isinstance(error, _OF_TEXT):
            unknown = _NO_TABLE.search(message)
            hint = (
                "" if unknown is None else f"give a table of that name: estero.sql(text, {unknown[1]}=table)"
            )
            raise QueryError(message, hint=hint) from error
        raise DataError(message) from error


_PLACE: Final = "\n\nLINE "
_NO_TABLE: Final = re.compile(r"Table with name (\w+) does not exist")
_OF_TEXT: Final = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
    duckdb.SyntaxException,
    duckdb.NotImplementedException,
)


class Statements:
    """A connection on which statements read Arrow tables under separate names."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, aggregates: frozenset[str] | None = None
    ) -> None:
        self.connection = connection
        self._aggregates = aggregates

    @cached_property
    def aggregates(self) -> frozenset[str]:
        """The names of all aggregates; passed on between processes, since the query takes 25 ms."""
        if self._aggregates is not None:
            return self._aggregates
        rows = self.connection.execute(
            "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type = 'aggregate'"
        ).fetchall()
        return frozenset(name for (name,) in rows)

    def aside(self) -> Statements:
        """Statements for another thread, which read no relation that this connection has by a name."""
        return Statements(self.connection.cursor(), self.aggregates)

    def sorts_as_usual(self) -> bool:
        """Whether ORDER BY means what it does without settings: ascending, by code point, NULL last."""
        settings = ("default_order", "default_null_order", "default_collation")
        sql = f"SELECT {', '.join(f'lower(current_setting({literal(name)}))' for name in settings)}"
        return self.connection.execute(sql).fetchall()[0] in _USUAL

    def table_in_memory(self, sql: str) -> pa.Table | None:
        """The rows of an input, in one batch; None if it is larger than `MOST_BYTES`."""
        batches = []
        size = 0
        with closing(self.batches(sql)) as read:
            for batch in read:
                batches.append(batch)
                size += batch.nbytes
                if size > MOST_BYTES:
                    return None
        return pa.concat_tables(batches).combine_chunks()

    def batches(self, sql: str) -> Generator[pa.Table, None, None]:
        """The rows of an input as they are computed, in one table or more."""
        with in_words_of("the input of MATCH_RECOGNIZE"):
            reader = self.connection.sql(sql).to_arrow_reader(_ROWS)
            try:
                yield reader.schema.empty_table()
                for batch in reader:
                    yield pa.Table.from_batches([batch])
            finally:
                reader.close()

    def table(self, sql: str, purpose: str, relations: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """The result of a statement over these relations, in one batch as far as Arrow allows."""
        with in_words_of(purpose), self.registered(relations or {}):
            return self.connection.sql(sql).to_arrow_table(_ONE_BATCH)

    def types(
        self, sql: str, purpose: str, relations: Mapping[str, pa.Table] | None = None
    ) -> list[tuple[str, str]]:
        """The names and types of the columns of a statement."""
        with in_words_of(purpose), self.registered(relations or {}):
            rows = self.connection.sql(f"DESCRIBE {sql}").fetchall()
        return [(str(row[0]), str(row[1])) for row in rows]

    def value(self, sql: str, parameters: Sequence[Any], purpose: str) -> Any:
        """The one value of a statement."""
        with in_words_of(purpose):
            rows = self.connection.execute(sql, list(parameters)).fetchall()
        return rows[0][0]

    @contextmanager
    def registered(self, relations: Mapping[str, pa.Table]) -> Iterator[None]:
        """Registers tables under these names for a while."""
        for name, table in relations.items():
            self.connection.register(name, table)
        try:
            yield
        finally:
            for name in relations:
                self.connection.unregister(name)


class Written(Protocol):
    """An expression over slots."""

    @property
    def tree(self) -> exp.Expr:
        """Its tree, in which slots are columns s0, s1 and so on."""


def written(expression: Written, names: Sequence[str], dialect: str = "duckdb") -> str:
    """The SQL of an expression whose slots are columns of these names."""
    renamed = {f"s{number}": name for number, name in enumerate(names)}

    def column(node: exp.Expr) -> exp.Expr:
        if (
            isinstance(node, exp.Column)
            and len(node.parts) == 1
            and node.name in renamed
            and not node.this.quoted
        ):
            return exp.column(renamed[node.name])
        return node

    text: str = expression.tree.transform(column).sql(dialect)
    return text


def alias(sql: str, name: str) -> str:
    """An expression under a name."""
    return f"{sql} AS {quoted(name)}"
