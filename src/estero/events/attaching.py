"""A DuckDB cursor on which the inputs of one query are readable, watched while they pass."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from estero.errors import DataError
from estero.events.database import Connection, keep_when_forked
from estero.events.fetching import GivenUp
from estero.events.inputs import Input
from estero.events.reading_errors import reading
from estero.events.screening import Screen
from estero.events.stream_order import OrderCheck

EVENTS = "events"
"""The relation that statements read; with a view over several inputs these are ``events0``, …"""


class Attached:
    """A cursor of `connection` on which the inputs are readable as ``events``, for one query.

    With `view` they are readable under numbers, and that query over them is ``events``. `follower` checks
    the order of streams; `screen` is what one input is screened by.
    """

    def __init__(
        self,
        connection: Connection,
        inputs: Iterable[Input],
        *,
        view: str | None = None,
        follower: OrderCheck | None = None,
        screen: Screen | None = None,
    ) -> None:
        self._connection = connection.cursor()
        self._process = os.getpid()
        keep_when_forked(self._connection)
        self._inputs = inputs
        self._view = view
        self._screen = screen
        self._watch = Watch(follower)

    def __enter__(self) -> tuple[Connection, Watch]:
        self._connection.execute("SET TimeZone = 'UTC'")
        for index, each in enumerate(self._inputs):
            self._attach(EVENTS if self._view is None else f"{EVENTS}{index}", each)
        if self._view is not None:
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {EVENTS} AS {self._view}")
        return self._connection, self._watch

    def __exit__(self, *_: object) -> None:
        if os.getpid() == self._process:
            self._connection.close()

    def _attach(self, name: str, each: Input) -> None:
        if each.query is not None:
            with reading(each.file):
                self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {each.query}")
        elif self._screen is not None:
            passed = self._screen.passed(self._watch.followed(_stream(each, self._screen.columns)))
            self._connection.register(name, self._watch.over(self._screen.schema, passed))
        elif each.stream is not None:
            stream = each.stream()
            self._connection.register(name, self._watch.over(stream.schema, self._watch.followed(stream)))
        else:
            self._connection.register(name, each.table)


def _stream(each: Input, columns: Sequence[str]) -> pa.RecordBatchReader:
    if each.table is not None:
        return each.table.select(columns).to_reader()
    if each.narrow is not None:
        return each.narrow(columns)
    if each.stream is None:
        raise ValueError("files are not screened: DuckDB reads them itself")
    return each.stream()


class Watch:
    """Looks at the streams of one query as they pass: their order, their failures, and whether to go on.

    DuckDB passes on only the text of a failure, so it is kept here.
    """

    def __init__(self, follower: OrderCheck | None) -> None:
        self._follower = follower
        self.stopped = threading.Event()
        self.failure: BaseException | None = None

    def over(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
        """The batches as a stream under watch."""
        return pa.RecordBatchReader.from_batches(schema, self._kept_going(batches))

    def followed(self, stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """The batches of a stream of events; one out of order is a `DataError`."""
        for batch in stream:
            if self._follower is not None:
                self._follower.follow(batch)
                if self._follower.first_unsorted is not None:
                    raise _unsorted(self._follower.first_unsorted)
            yield batch

    def _kept_going(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                if self.stopped.is_set():
                    raise GivenUp
                yield batch
        except BaseException as error:
            self.failure = error
            raise


def _unsorted(row: int) -> DataError:
    return DataError(
        "the event is earlier than the one before it, and a stream that passes once is not sorted here",
        row=row,
        hint="sort it, or collect it into a table first (pyarrow.Table.from_batches): tables are sorted",
    )
