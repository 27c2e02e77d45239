"""A DuckDB relation → batches that can be read again and again, with its connection free in between.

A relation belongs to the connection on which it was made: only there are its tables, views and registered
frames known. While a result of it is open that connection refuses every other statement, the user's too.
So it is read to its end at once, when it is first asked for, in the columns that a query needs; what does
not fit well into memory waits in a file.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

import duckdb
import pyarrow as pa

from estero.errors import DataError
from estero.events.database import may_be_changed
from estero.events.reading_errors import reading

IN_MEMORY = 256 << 20
"""Bytes of a relation that are kept in memory; a larger one is kept in a temporary file."""
_ROWS = 131_072


class _Kept(NamedTuple):
    """The rows of a relation in some of its columns: the first of them, and a file with the rest."""

    columns: Sequence[str]
    batches: Sequence[pa.RecordBatch]
    file: tempfile._TemporaryFileWrapper[bytes] | None

    def rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows in these of its columns."""
        for batch in self.batches:
            yield batch.select(columns)
        if self.file is not None:
            with pa.memory_map(self.file.name) as mapped:
                for batch in pa.ipc.open_stream(mapped):
                    yield batch.select(columns)


class Relation:
    """A relation that is run once, when it is first read; each call gives a new stream of its rows.

    `expect` says which columns will be asked for: it is run for these alone, and once more, for all, where
    others are asked for then. Raises `DataError` where it cannot be run: its connection is closed, say, or
    reads something else.
    """

    def __init__(self, relation: duckdb.DuckDBPyRelation, *, in_memory: int = IN_MEMORY) -> None:
        with _running():
            self.schema: pa.Schema = relation.limit(0).to_arrow_table().schema
        self._relation = relation
        self._in_memory = in_memory
        self._lock = threading.Lock()
        self._expected: Sequence[str] = self.schema.names
        self._kept: _Kept | None = None

    @property
    def columns(self) -> Sequence[str]:
        """Those that it is run for, as far as it is known."""
        return self._expected if self._kept is None else self._kept.columns

    def expect(self, columns: Collection[str]) -> None:
        """Only these columns will be asked for."""
        names = self.schema.names
        if may_be_changed(names):  # one of two columns cannot be named
            return
        self._expected = [name for name in names if name in columns] or names[:1]

    def __call__(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """A new stream of its rows."""
        asked = self.schema.names if columns is None else columns
        with self._lock:
            if self._kept is None and set(asked) <= set(self._expected):
                self._kept = self._read(self._expected)
            elif self._kept is None or not set(asked) <= set(self._kept.columns):
                self._kept = self._read(self.schema.names)
            kept = self._kept
        chosen = pa.schema([self.schema.field(name) for name in asked])
        return pa.RecordBatchReader.from_batches(chosen, kept.rows(asked))

    def _read(self, columns: Sequence[str]) -> _Kept:
        """Runs it for these columns."""
        file, size = None, 0
        batches: list[pa.RecordBatch] = []
        with _running():
            whole = len(columns) == len(self.schema)
            asked = self._relation if whole else self._relation.project(", ".join(map(_quoted, columns)))
        with _running(), closing(asked.to_arrow_reader(_ROWS)) as reader:
            for batch in reader:
                batches.append(batch)
                size += batch.nbytes
                if size > self._in_memory:
                    file = self._written(reader)
        return _Kept(columns, batches, file)

    def _written(self, rest: pa.RecordBatchReader) -> tempfile._TemporaryFileWrapper[bytes]:
        file = tempfile.NamedTemporaryFile(prefix="estero-relation-", suffix=".arrows")  # noqa: SIM115  it lives as long as this does
        weakref.finalize(self, file.close)
        with pa.ipc.new_stream(file.name, rest.schema) as writer:
            for batch in rest:
                writer.write_batch(batch)
        return file


def _quoted(name: str) -> str:
    """The name of a column in DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _running() -> Iterator[None]:
    """Turns an error of running a relation into a `DataError`."""
    try:
        with reading():
            yield
    except DataError as error:
        if not isinstance(error.__cause__, duckdb.ResourceInUseException):
            raise
        raise DataError(
            "the connection of this relation has a result that has not been read to its end",
            hint="fetch the rest of that result first, or make the relation on a cursor of its own: "
            "connection.cursor()",
        ) from error.__cause__
