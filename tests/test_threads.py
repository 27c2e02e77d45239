"""Answers, sources and recognizers that several threads use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Barrier, Thread
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import estero
from estero.events.database import Database
from estero.events.prepared_statements import executed
from estero.recognize.set_reader import SetReader
from estero.testing import events
from notebooks import shown_by

STREAM = events("A(k=1)@0s B(k=1)@1s A(k=2)@2s B(k=2)@3s C@4s")
TEXT = "SELECT * WHERE A AS a ; B AS b WITHIN 1 MINUTE"
MOMENT_S = 0.2
"""How long a thread is given to do what it must not do yet; what it may do is waited for."""


def in_another_thread(act: Callable[[], Any]) -> Any:
    """What `act` returns, or raises, in a thread of its own."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(act())
        except estero.EsteroError as error:
            found.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


class Latecomer:
    """A thread that asks while another one is at work, and whether it had to wait."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self.waited = False
        self.found: list[Any] = []
        self._thread = Thread(target=lambda: self.found.append(ask()))

    def come(self) -> None:
        """Asks, inside the work of the other thread; only once."""
        if self._thread.ident is None:
            self._thread.start()
            self._thread.join(MOMENT_S)
            self.waited = self._thread.is_alive()

    def end(self) -> None:
        """Waits for the answer."""
        self._thread.join()


# ---------------------------------------------------------------------------------------- recognizers


@pytest.mark.parametrize("partials", [False, True])
@pytest.mark.parametrize(
    "ask",
    [
        lambda recognizer: recognizer.push(STREAM),
        lambda recognizer: recognizer.flush(),
        lambda recognizer: recognizer.advance("2030-01-01"),
        lambda recognizer: recognizer.close(),
        lambda recognizer: recognizer.snapshot(),
        lambda recognizer: recognizer.progress(),
    ],
    ids=["push", "flush", "advance", "close", "snapshot", "progress"],
)
def test_a_recognizer_is_of_one_thread_at_a_time(ask: Callable[[Any], Any], partials: bool) -> None:
    recognizer = estero.query(TEXT).recognizer(STREAM.schema, type="type", time="time", partials=partials)
    said: list[object] = []
    recognizer.on_match(lambda _: said.append(in_another_thread(lambda: ask(recognizer))))
    assert recognizer.push(STREAM).count() == 3
    assert [str(each) for each in said] == [
        (
            "another thread is pushing to this recognizer or asking it, and events have one order: "
            "use it from one thread, or hold a lock of your own around each call"
        )
    ]
    assert isinstance(said[0], estero.EsteroError)
    assert recognizer.flush().count() == 0
    assert recognizer.progress().position == 5


@pytest.mark.parametrize("partials", [False, True])
def test_a_recognizer_is_shown_as_busy_where_another_thread_pushes(partials: bool) -> None:
    recognizer = estero.query(TEXT).recognizer(STREAM.schema, type="type", time="time", partials=partials)
    shown: list[str] = []
    pages: list[Any] = []
    recognizer.on_match(lambda _: shown.append(in_another_thread(lambda: repr(recognizer))))
    recognizer.on_match(lambda _: pages.append(in_another_thread(lambda: shown_by(recognizer))))
    recognizer.on_match(lambda _: shown.append(repr(recognizer)))
    recognizer.push(STREAM)
    name = "PartialsRecognizer" if partials else "ContinuousRecognizer"
    assert shown[0].startswith(f"{name}(busy in another thread)\nSELECT")
    assert shown[1].startswith(f"{name}(5 events, ")
    assert [page.rows() for page in pages] == [[["events", "busy in another thread"]]]
    assert pages[0].texts("pre")[0].startswith("SELECT")


def test_the_answer_of_a_push_is_read_in_another_thread_while_it_is_told() -> None:
    recognizer = estero.query(TEXT).recognizer(STREAM.schema, type="type", time="time")
    read: list[Any] = []
    recognizer.on_match(lambda answer: read.append(in_another_thread(lambda: answer.rows().to_arrow())))
    answer = recognizer.push(STREAM)
    assert read == [answer.rows().to_arrow()]


@pytest.mark.parametrize("asked", ["count", "to_arrow"])
def test_what_a_push_found_is_read_by_one_thread_at_a_time(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recognizer = estero.query(TEXT).recognizer(STREAM.schema, type="type", time="time")
    answer = recognizer.push(STREAM)
    late = Latecomer(getattr(answer, asked))
    tables = SetReader.tables

    def slow(self: SetReader, *arguments: Any) -> Iterator[pa.RecordBatch]:
        late.come()
        yield from tables(self, *arguments)

    monkeypatch.setattr(SetReader, "tables", slow)
    rows = answer.rows().to_arrow()
    late.end()
    assert late.waited
    assert rows == answer.rows().to_arrow()
    assert late.found == [3 if asked == "count" else answer.to_arrow()]


def test_events_are_pushed_between_the_batches_that_another_thread_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recognizer = estero.query(TEXT).recognizer(STREAM.schema, type="type", time="time")
    answer = recognizer.push(STREAM)
    late = Latecomer(lambda: recognizer.push(events("B(k=3)@5s")).count())
    tables = SetReader.tables

    def slow(self: SetReader, *arguments: Any) -> Iterator[pa.RecordBatch]:
        late.come()
        yield from tables(self, *arguments)

    monkeypatch.setattr(SetReader, "tables", slow)
    batches = answer.batches()
    with pytest.raises(estero.EsteroError, match="this answer is of an earlier push"):
        list(batches)
    late.end()
    assert late.waited
    assert late.found == [2]


# ---------------------------------------------------------------------------------------- sources


def of_tables() -> dict[str, Any]:
    """Each type in a table of its own."""
    return {name: of_type(name) for name in "ABC"}


def of_type(name: str) -> pa.Table:
    """The events of a type."""
    chosen = [row for row in STREAM.to_pylist() if row["type"] == name]
    return pa.Table.from_pylist(chosen, STREAM.schema).drop_columns(["type"])


def of_relations() -> dict[str, Any]:
    """Each type in a relation, of one connection."""
    connection = duckdb.connect()
    tables = of_tables()
    for name, table in tables.items():
        connection.register(name, table)
    return {name: connection.table(name) for name in tables}


@pytest.mark.parametrize(
    "made", [lambda: STREAM, of_tables, of_relations], ids=["table", "tables", "relations"]
)
def test_one_answer_is_read_in_several_threads(made: Callable[[], Any]) -> None:
    many = 4
    stream = made()
    type_column = None if isinstance(stream, dict) else "type"
    query = estero.query("SELECT * WHERE A AS a ; B AS b FILTER a.k + b.k > 2 WITHIN 1 MINUTE")
    answer = query.run(stream, type=type_column, time="time")
    start = Barrier(many)
    found: list[pa.Table] = []

    def read() -> None:
        start.wait()
        found.append(answer.rows().to_arrow())

    threads = [Thread(target=read) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [answer.rows().to_arrow()] * many
    assert found[0].num_rows == 8  # two events, by two labels each, in two complex events


def test_a_cursor_waits_for_what_goes_over_the_connection() -> None:
    database = Database()
    late = Latecomer(database.cursor)
    slow: Any = Slow(database.connection, late)
    database.connection = slow
    database.use_threads(alone=True)
    late.end()
    assert late.waited
    assert len(late.found) == 1


def test_warnings_are_caught_by_one_thread_at_a_time() -> None:
    with duckdb.connect() as connection:
        connection.execute("PREPARE asked AS SELECT 1 AS n")
        late = Latecomer(lambda: executed(connection, "asked").to_pylist())
        slow: Any = Slow(connection, late)
        assert executed(slow, "asked").to_pylist() == [{"n": 1}]
        late.end()
    assert late.waited
    assert late.found == [[{"n": 1}]]


class Slow:
    """A connection during whose statements another thread comes."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, late: Latecomer) -> None:
        self._connection = connection
        self._late = late

    def execute(self, sql: str) -> duckdb.DuckDBPyConnection:
        """What DuckDB executes, behind the other thread's coming."""
        self._late.come()
        return self._connection.execute(sql)

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor of DuckDB."""
        return self._connection.cursor()
