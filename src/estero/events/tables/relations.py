"""A DuckDB relation → batches that can be read again and again, with its connection free in between.

A relation belongs to the connection on which it was made: only there are its tables, views and registered
frames known. While a result of it is open that connection refuses every other statement, the user's too.
So it is read to its end at once, when it is first asked for; what does not fit well into memory
waits in a file.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import duckdb
import pyarrow as pa

from estero.errors import DataError
from estero.events.reading_errors import reading

IN_MEMORY = 256 << 20
"""Bytes of a relation that are kept in memory; a larger one is kept in a temporary file."""
_ROWS = 131_072


class Relation:
    """A relation that is run once, when it is first read; each call gives a new stream of its rows.

    Raises `DataError` where it cannot be run: its connection is closed, say, or reads something else.
    """

    def __init__(self, relation: duckdb.DuckDBPyRelation, *, in_memory: int = IN_MEMORY) -> None:
        with _running():
            self.schema: pa.Schema = relation.limit(0).to_arrow_table().schema
        self._relation = relation
        self._in_memory = in_memory
        self._lock = threading.Lock()
        self._batches: list[pa.RecordBatch] | None = None
        self._file: tempfile._TemporaryFileWrapper[bytes] | None = None

    def __call__(self, _: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """A new stream of its rows."""
        with self._lock:
            if self._batches is None:
                self._batches = self._read()
        return pa.RecordBatchReader.from_batches(self.schema, self._kept(self._batches))

    def _kept(self, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        if self._file is not None:
            with pa.memory_map(self._file.name) as mapped:
                yield from pa.ipc.open_stream(mapped)

    def _read(self) -> list[pa.RecordBatch]:
        """Runs it and gives the batches that stay in memory; the others are in the file."""
        batches: list[pa.RecordBatch] = []
        size = 0
        with _running(), closing(self._relation.to_arrow_reader(_ROWS)) as reader:
            for batch in reader:
                batches.append(batch)
                size += batch.nbytes
                if size > self._in_memory:
                    self._write(reader)
        return batches

    def _write(self, rest: pa.RecordBatchReader) -> None:
        self._file = tempfile.NamedTemporaryFile(prefix="estero-relation-", suffix=".arrows")  # noqa: SIM115  it lives as long as this does
        weakref.finalize(self, self._file.close)
        with pa.ipc.new_stream(self._file.name, self.schema) as writer:
            for batch in rest:
                writer.write_batch(batch)


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
