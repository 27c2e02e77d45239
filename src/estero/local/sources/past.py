"""Past events from files, then a stream, without gaps or duplicates between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from estero.classify.sql_texts import quoted
from estero.errors import DataError
from estero.events.database import Connection, connect
from estero.events.inputs import open_input
from estero.events.reading_errors import reading
from estero.local.raw import Offsets, Raw
from estero.local.sources.source import Source


class PastThenStream(Source):
    """The events of files in order of time, then the later events of a stream.

    An event of the stream belongs to the past, and is skipped, if its time and the columns of `order` are not
    greater than those of the last event of the past, compared in turn; NULL is greater than all values. Past
    events are in order of these columns, and then of all others.
    """

    def __init__(self, path: str, stream: Source, time: str, order: Sequence[str]) -> None:
        self._path = path
        self._stream = stream
        self._keys = (time, *order)
        self._rows = 0
        self._over = False
        self._last: list[Any] | None = None
        self._connection: Connection | None = None
        self._reader: pa.RecordBatchReader | None = None
        self._ahead: pa.Table | None = None
        self._schema: pa.Schema | None = None

    def schema(self) -> pa.Schema | None:
        """The columns of the past."""
        return self._past_schema()

    def seek(self, offsets: Offsets | None) -> None:
        """Moves to an event of the past, or of the stream after it."""
        said = offsets or {"past": 0, "over": False, "last": None, "stream": None}
        self._rows, self._over, self._last = said["past"], said["over"], said["last"]
        self._reader = self._ahead = None
        if self._over:
            self._begin_stream(said["stream"])

    def place(self) -> Offsets:
        """The number of past events, the last one, and the place in the stream."""
        stream = self._stream.place() if self._over else None
        return {"past": self._rows, "over": self._over, "last": self._last, "stream": stream}

    def poll(self, most: int, seconds: float) -> Raw | None:
        """The next events of the past, then of the stream."""
        if not self._over:
            table = self._take(most)
            if table.num_rows:
                return self._of_past(table)
            self._over = True
            self._begin_stream()
        raw = self._stream.poll(most, seconds)
        self.ended, self.caught_up = self._stream.ended, self._stream.caught_up
        return None if raw is None else self._of_stream(raw)

    def replay(self, after: Offsets) -> Raw:
        """The events up to a place."""
        if not after["over"]:
            return self._of_past(self._take(after["past"] - self._rows))
        if not self._over:
            self._over = True
            self._begin_stream()
        return self._of_stream(self._stream.replay(after["stream"]))

    def passed(self, after: Offsets) -> None:
        """Notes events that came from the journal."""
        if not self._over:
            self._over = True
            self._begin_stream()
        self._stream.passed(after["stream"])

    def keeps(self, after: Offsets) -> bool:
        """Whether the journal has to contain a batch; past events can be read again."""
        return bool(after["over"]) and self._stream.keeps(after["stream"])

    def is_silent(self) -> bool:
        """Whether no events arrive from the stream."""
        return self._over and self._stream.is_silent()

    def close(self) -> None:
        """Closes the past and the stream."""
        self._stream.close()
        if self._connection is not None:
            self._connection.close()

    # ------------------------------------------------------------------------------------- inside

    def _begin_stream(self, place: Offsets | None = None) -> None:
        self._reader = self._ahead = None
        self._stream.seek(place)

    def _of_past(self, table: pa.Table) -> Raw:
        first = self._rows
        self._rows += table.num_rows
        last = table.slice(table.num_rows - 1)
        self._last = [_comparable(last.column(name))[0].as_py() for name in self._keys]
        after = {"past": self._rows, "over": False, "stream": None}
        return Raw(after, table=table, place=lambda row: f"{self._path}: event {first + row + 1}")

    def _of_stream(self, raw: Raw) -> Raw:
        after = {"past": self._rows, "over": True, "stream": raw.after}
        return Raw(after, raw.texts, raw.table, raw.place, raw.dead, self._behind)

    def _behind(self, events: pa.Table) -> pa.Table:
        """The events after the last one of the past."""
        if self._last is None or not events.num_rows:
            return events
        behind: Any = None
        equal: Any = None
        for name, value in zip(self._keys, self._last, strict=True):
            column = _comparable(events.column(name))
            try:
                bound = pa.scalar(value, column.type)
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise DataError(
                    f"the column {name} has another type in the past: {value!r} is not of the type "
                    f"{column.type}",
                    file=self._path,
                ) from error
            greater = pc.fill_null(pc.greater(column, bound), fill_value=value is not None)
            same = pc.is_null(column)
            if value is not None:
                same = pc.fill_null(pc.equal(column, bound), fill_value=False)
            behind = greater if behind is None else pc.or_(behind, pc.and_(equal, greater))
            equal = same if equal is None else pc.and_(equal, same)
        return events.filter(behind)

    def _past_schema(self) -> pa.Schema:
        if self._schema is None:
            relation = self._opened(limit=True)
            self._schema = relation.to_arrow_table().schema
        return self._schema

    def _opened(self, *, limit: bool) -> Any:
        given = open_input(self._path)
        self._connection = self._connection or connect()
        query = given.query if given.query is not None else None
        if query is None:
            raise DataError("the past is read from files", file=self._path)
        with reading(given.file):
            if limit:
                return self._connection.sql(f"{query} LIMIT 0")
            names = [*self._keys, *(name for name in self._past_schema().names if name not in self._keys)]
            return self._connection.sql(
                f"SELECT * FROM ({query}) ORDER BY {', '.join(map(quoted, names))} OFFSET {self._rows}"
            )

    def _take(self, most: int) -> pa.Table:
        """The next `most` events of the past."""
        schema = self._past_schema()
        missing = [name for name in self._keys if name not in schema.names]
        if missing:
            raise DataError(f"the past has no column {missing[0]}", file=self._path)
        if self._reader is None or self._ahead is None:
            self._reader = self._opened(limit=False).to_arrow_reader(most)
            self._ahead = self._reader.schema.empty_table()
        table = self._ahead
        while table.num_rows < most:
            batch = next(iter(self._reader), None)
            if batch is None:
                break
            table = pa.concat_tables([table, pa.Table.from_batches([batch])])
        self._ahead = table.slice(most)
        return table.slice(0, most)


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of the past or the stream as numbers and texts, with times in nanoseconds."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return column.cast(pa.timestamp("ns")).cast(pa.int64())
    return column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column
