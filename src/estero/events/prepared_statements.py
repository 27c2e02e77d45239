"""Statements over events in memory that DuckDB plans once, and executes over one table after another.

To plan a statement takes DuckDB longer than to execute it over some ten thousand events. So DuckDB reads a
slot, in which a table is put for each execution.
"""

from __future__ import annotations

import atexit
import os
import warnings
from contextlib import suppress
from threading import RLock
from typing import Final

import pyarrow as pa

from estero.classify.arrays import empty_batch, empty_table
from estero.events.database import EVENTS, Connection, own, own_cursor
from estero.events.small_tables import Columns

_MOST_IDLE: Final = 16


class Slot:
    """A relation of fixed columns for DuckDB, in which a table is put for each execution."""

    def __init__(self, schema: pa.Schema) -> None:
        self.table: pa.Table = empty_table(schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def executed(connection: Connection, name: str) -> pa.Table:
    """The result of a prepared statement.

    As a relation, which DuckDB advises, it is materialized and then read: measured for one event 1.1 ms
    of CPU time, 0.5 ms so.
    """
    # What catches warnings changes those of all threads, so they do it one after the other.
    with _warnings.setdefault(os.getpid(), RLock()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Arrow output on a DB-API result")
        return connection.execute(f"EXECUTE {name}").to_arrow_table()


_warnings: dict[int, RLock] = {}
"""A lock for each process: a forked one has none of the threads that may hold that of its parent."""


def executed_over(table: pa.Table, statement: str) -> pa.RecordBatch:
    """The result of a statement over a table that it calls ``events``, in the order of one thread.

    Raises the errors of DuckDB. Measured for 1,000 events of five columns: 0.8 ms of CPU time, 4 ms where the
    statement is planned anew.
    """
    asked = os.getpid(), statement, Columns.of(table.schema)
    prepared = _taken(asked) or _Prepared(statement, table.schema)
    answer = prepared.over(table)  # one that has failed is not used again
    _idle.append((asked, prepared))
    del _idle[:-_MOST_IDLE]
    (batch,) = answer.combine_chunks().to_batches() or [empty_batch(answer.schema)]
    return batch


class _Prepared:
    """One statement, on a cursor of its own: executions that go on at the same time have several."""

    def __init__(self, statement: str, events: pa.Schema) -> None:
        self._slot = Slot(events)
        self._nothing = self._slot.table
        self._cursor = own_cursor()
        self._cursor.register(EVENTS, self._slot)
        self._cursor.execute(f"PREPARE asked AS {statement}")

    def over(self, table: pa.Table) -> pa.Table:
        """The result of the statement over a table."""
        self._slot.table = table
        try:
            return executed(self._cursor, "asked")
        finally:
            self._slot.table = self._nothing


_Asked = tuple[int, str, Columns]
_idle: list[tuple[_Asked, _Prepared]] = []
"""Statements that nobody executes just now, the last ones last."""


def _taken(asked: _Asked) -> _Prepared | None:
    """An idle statement, for its caller alone; None where there is none."""
    for entry in reversed(_idle[:]):
        if entry[0] == asked:
            with suppress(ValueError):  # another thread has taken it
                _idle.remove(entry)
                prepared: _Prepared = entry[1]
                return prepared
    return None


@atexit.register
def _let_go() -> None:
    """Lets the statements go while DuckDB is still there; it complains of those that outlive it."""
    _idle.clear()
    own.cache_clear()
