"""DuckDB in this process, set up in one way for all its users."""

from __future__ import annotations

import ctypes
import os
import re
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, Self, TypeAlias

from estero.classify.sql_texts import literal
from estero.system.temporary_directory import temporary_directory

if TYPE_CHECKING:
    import duckdb

Connection: TypeAlias = "duckdb.DuckDBPyConnection"

EVENTS = "events"
"""The relation that statements read; if each type has its own table, these are ``events0``, …"""

_CHANGED = re.compile("(.+)_[0-9]+", re.DOTALL)
_opened: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()


def connect() -> Connection:
    """An empty in-memory database in UTC, which spills to a directory of this process, if there is one."""
    import duckdb  # 0.1 s, which events in Arrow's columns do without where all conditions are plain

    connection = duckdb.connect(":memory:")
    keep_when_forked(connection)
    connection.execute("SET enable_progress_bar = false")
    for setting, value in (
        ("TimeZone", "'UTC'"),
        ("temp_directory", literal(_spill_directory())),
        ("python_enable_replacements", "false"),
    ):
        connection.execute(f"SET GLOBAL {setting} = {value}")  # of its cursors as well
    return connection


def _spill_directory() -> str:
    """The directory to which DuckDB may spill; "" if nothing can be written, so that it does not spill."""
    try:
        return str(temporary_directory() / "spill")
    except OSError:
        return ""


class Database:
    """A connection that serves one owner after the other, and whether it is to use a single thread.

    Several threads may open cursors. DuckDB refuses a connection to one thread while another uses it, so
    statements on the connection itself hold the `lock`.
    """

    def __init__(self) -> None:
        self.connection: duckdb.DuckDBPyConnection = connect()
        self.lock: RLock = RLock()
        self._alone = False

    def cursor(self) -> Connection:
        """A cursor that belongs to its caller alone."""
        with self.lock:
            return self.connection.cursor()

    def use_threads(self, *, alone: bool) -> None:
        """Sets one thread (`alone`) or all of them, which takes 2 ms and is skipped if nothing changes."""
        with self.lock:
            if alone != self._alone:
                self.connection.execute("SET threads = 1" if alone else "RESET threads")
                self._alone = alone


_idle: dict[int, list[Database]] = {}
"""The idle databases, by process."""
_MOST_IDLE = 4


def lent_to(owner: object) -> Database:
    """An idle database for as long as `owner` lives, because opening one takes 15 ms.

    Views and tables belong to the cursors of a connection, and are gone with them.
    """
    database = _taken()
    weakref.finalize(owner, _take_back, os.getpid(), database).atexit = False
    return database


@contextmanager
def lent_cursor() -> Iterator[Connection]:
    """Opens a cursor of an idle database, for as long as a few statements take."""
    database = _taken()
    database.use_threads(alone=False)
    try:
        with database.cursor() as cursor:
            yield cursor
    finally:
        _take_back(os.getpid(), database)


def _taken() -> Database:
    try:
        return _idle.setdefault(os.getpid(), []).pop()
    except IndexError:
        return Database()


def _take_back(process: int, database: Database) -> None:
    if process == os.getpid() and len(_idle[process]) < _MOST_IDLE:
        _idle[process].append(database)


class LentDatabases:
    """The database that is lent to one source in each process, as soon as the source needs it."""

    def __init__(self) -> None:
        self._lent: dict[int, Database] = {}
        self.lock: RLock = RLock()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()  # another process opens its own

    @property
    def here(self) -> Database:
        """The database of this process; opening it takes 20 ms."""
        process = os.getpid()
        if process not in self._lent:
            self._lent.setdefault(process, lent_to(self))  # another thread may have done it meanwhile
        return self._lent[process]


@cache
def own(_process: int) -> Database:
    """The database of a process for the short statements of one thread, which run in order.

    It executes statements over small tables, and tells how DuckDB reads Arrow's types. A forked process has a
    copy of that of its parent, but not the threads that it needs, so it gets another one.
    """
    database = Database()
    database.use_threads(alone=True)
    return database


def own_cursor() -> Connection:
    """Opens a cursor of the database of this process, with one thread and its own tables and statements."""
    cursor = own(os.getpid()).cursor()
    keep_when_forked(cursor)
    return cursor


@cache
def hashes() -> tuple[int, ...]:
    """DuckDB's hashes of some values, which change if it hashes keys in another way."""
    with own_cursor() as cursor:
        (row,) = cursor.sql("SELECT hash('estero'), hash(1::BIGINT), hash('a', 1.5)").fetchall()
    return tuple(row)


def keep_when_forked(connection: Connection) -> None:
    """Prevents a connection or cursor of this process from being closed in a fork of it."""
    _opened.add(connection)


def may_be_changed(names: Sequence[str]) -> bool:
    """Whether DuckDB may have made up one of the names because it takes the original for another one."""
    known = {name.lower() for name in names}
    changed = [changed_name[1] for name in names if (changed_name := _CHANGED.fullmatch(name))]
    return any(name.lower() in known for name in changed)


def _keep_those_of_the_parent() -> None:
    """Prevents databases of the parent from being closed in a forked process, which would hang or crash.

    DuckDB would wait for threads that do not exist there, and for locks that they held.
    """
    for connection in _opened:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_keep_those_of_the_parent)
