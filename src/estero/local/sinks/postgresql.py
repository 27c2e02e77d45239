"""A table of PostgreSQL, into which the rows of a batch and its number are written in one transaction."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from estero.addresses import Address
from estero.answers.shown_values import shown_values
from estero.answers.writers import json_bytes
from estero.errors import DataError, require
from estero.local.sinks.sink import Sink

NOTES: Final = "estero_streams"
"""The table with the number of the last batch of each stream."""
_ONE_AT_A_TIME: Final = "SELECT pg_advisory_xact_lock(hashtext('estero'))"


class PostgresTable(Sink):
    """Writes each batch that has rows, and its number, in one transaction.

    The table is created if it does not exist; labels, keys and positions are ``jsonb``. User and password
    default to PGUSER and PGPASSWORD.
    """

    def __init__(self, address: Address) -> None:
        super().__init__()
        require("postgresql", "a stream to PostgreSQL")
        self._address = address
        self._connection: Any = None

    def open(self, stream: str, schema: pa.Schema) -> None:
        """Creates missing tables, and reads the number of the last batch."""
        import psycopg
        from psycopg import sql

        self._stream = stream
        server, _, database = self._address.place.rpartition("/")
        host, port = _host_and_port(server)
        given: dict[str, Any] = {
            "host": host,
            "port": port,
            "dbname": database,
            "user": self._address.user or os.environ.get("PGUSER"),
            "password": self._address.password or os.environ.get("PGPASSWORD"),
            **self._address.options,
        }
        with self._said():
            self._connection = psycopg.connect(**{name: value for name, value in given.items() if value})
        *above, name = self._address.name.split(".")
        table, notes = sql.Identifier(*above, name), sql.Identifier(*above, NOTES)
        names = [sql.Identifier(field.name) for field in schema]
        typed = [
            sql.SQL("{} {}").format(*both) for both in zip(names, map(_sql_type, schema.types), strict=True)
        ]
        with self._said(), self._connection.transaction():
            run = self._connection.execute
            run(_ONE_AT_A_TIME)
            run(
                sql.SQL(
                    "CREATE TABLE IF NOT EXISTS {} "
                    "(stream text PRIMARY KEY, batch bigint NOT NULL, noted timestamptz NOT NULL)"
                ).format(notes)
            )
            run(sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(table, sql.SQL(", ").join(typed)))
            noted = run(sql.SQL("SELECT batch FROM {} WHERE stream = %s").format(notes), [stream]).fetchone()
        self.delivered = -1 if noted is None else int(noted[0])
        places = sql.SQL(", ").join([sql.Placeholder()] * len(names))
        self._insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            table, sql.SQL(", ").join(names), places
        )
        self._note = sql.SQL(
            "INSERT INTO {} VALUES (%s, %s, now()) ON CONFLICT (stream) DO UPDATE "
            "SET batch = excluded.batch, noted = excluded.noted"
        ).format(notes)

    def write(self, number: int, rows: Iterator[pa.RecordBatch]) -> int:
        """Inserts the rows and the number of a batch."""
        first = next(rows, None)
        written = 0
        if first is not None:
            with self._said(), self._connection.transaction(), self._connection.cursor() as cursor:
                for batch in (first, *rows):
                    cursor.executemany(self._insert, list(zip(*map(_values, batch.columns), strict=True)))
                    written += batch.num_rows
                self.reached("inserted")
                cursor.execute(self._note, [self._stream, number])
                self.reached("numbered")
            self.reached("committed")
        self.delivered = number
        return written

    def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()

    @contextmanager
    def _said(self) -> Iterator[None]:
        """A context manager that turns errors of the database into errors that name the table."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise DataError(
                f"PostgreSQL says: {str(error).splitlines()[0]}", file=str(self._address)
            ) from error


def _host_and_port(server: str) -> tuple[str, str]:
    if server.startswith("["):
        host, _, port = server[1:].partition("]")
        return host, port.removeprefix(":")
    host, _, port = server.partition(":")
    return host, port


def _is_json(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))


def _sql_type(kind: pa.DataType) -> Any:
    from psycopg import sql

    types = pa.types
    if _is_json(kind):
        word = "jsonb"
    elif types.is_boolean(kind):
        word = "boolean"
    elif types.is_integer(kind):
        word = "bigint"
    elif types.is_floating(kind):
        word = "double precision"
    elif types.is_timestamp(kind):
        word = "timestamp" if kind.tz is None else "timestamptz"
    elif types.is_date(kind):
        word = "date"
    elif types.is_decimal(kind):
        word = "numeric"
    else:
        word = "text"
    return sql.SQL(word)


def _values(column: pa.Array) -> list[Any]:
    """The values of a column in the types of psycopg."""
    values = shown_values(column)
    if pa.types.is_map(column.type):
        values = [None if value is None else dict(value) for value in values]
    values = list(map(_storable, values))
    if _is_json(column.type):
        return [None if value is None else json_bytes(value).decode() for value in values]
    return values


def _storable(value: Any) -> Any:
    """A value without NUL characters, which PostgreSQL cannot store in texts."""
    match value:
        case str():
            return value.replace("\0", "")
        case dict():
            return {_storable(name): _storable(part) for name, part in value.items()}
        case list():
            return list(map(_storable, value))
        case _:
            return value
