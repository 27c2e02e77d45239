"""Texts and tables of a source as events in the columns of the stream, and as dead letters."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final, NamedTuple

import pyarrow as pa

from estero.errors import DataError
from estero.events.streams.few_events import MOST, FewEvents, Values
from estero.local.columns import are_plain, plain_values, texts_as, values_as, wrong_texts, wrong_values
from estero.local.json_blocks import read_block
from estero.local.raw import DeadLetter, Raw
from estero.system.cached_property import cached_property

_read_json = json.JSONDecoder().decode
_BETWEEN: Final = token_hex(16)
_SEPARATOR: Final = f',"{_BETWEEN}",'
_MANY: Final = 200
"""The number of texts from which Arrow is faster than Python."""
_BLOCK: Final = 4_000
"""The largest number of texts that are read together; if one is broken, all of them are read one by one."""


class Decoded(NamedTuple):
    """The events of a batch, its dead letters, and the number of skipped events."""

    events: pa.Table | FewEvents
    dead: list[DeadLetter]
    skipped: int

    @property
    def size(self) -> int:
        """The number of events that can be read."""
        return self.events.size if isinstance(self.events, FewEvents) else int(self.events.num_rows)

    @property
    def table(self) -> pa.Table:
        """The events that can be read, as a table."""
        return self.events.table if isinstance(self.events, FewEvents) else self.events


@dataclass(frozen=True)
class Decoder:
    """Reads events in the columns of `schema`; an event without a value in `time` is a dead letter.

    Whether an event is accepted does not depend on others in its batch. Missing keys are NULL, and columns
    that are not in the schema are dropped.
    """

    schema: pa.Schema
    time: str | None

    @cached_property
    def _columns(self) -> list[tuple[str, pa.DataType]]:
        return [(field.name, field.type) for field in self.schema]

    @cached_property
    def _is_plain(self) -> bool:
        """Whether a few events can be read as values of Python."""
        return are_plain(self.schema.types)

    def decoded(self, raw: Raw) -> Decoded:
        """The events of a batch that can be read, in order, and its dead letters."""
        rows = None
        if raw.texts and len(raw.texts) <= MOST and raw.wanted is None and self._is_plain:
            rows = _objects_together(raw.texts)
            few = None if rows is None else self._few(rows)
            if few is not None:
                return Decoded(few, list(raw.dead), 0)
        table, dead = self._of_texts(raw, rows) if raw.table is None else self._of_table(raw.table, raw.place)
        wanted = table if raw.wanted is None else raw.wanted(table)
        return Decoded(wanted, [*raw.dead, *dead], table.num_rows - wanted.num_rows)

    def _few(self, rows: Sequence[dict[str, Any]]) -> FewEvents | None:
        """A few events whose values have the types of the columns; None if a value has to be converted."""
        columns: list[Values] = []
        for name, kind in self._columns:
            column = plain_values([row.get(name) for row in rows], kind)
            if column is None or (name == self.time and None in column):
                return None
            columns.append(column)
        return FewEvents(self.schema, columns, len(rows))

    def _of_texts(
        self, raw: Raw, rows: Sequence[dict[str, Any]] | None = None
    ) -> tuple[pa.Table, list[DeadLetter]]:
        """The events in texts, and the dead letters; `rows` are the objects of texts that all have one."""
        dead: list[DeadLetter] = []
        blocks = []
        for first in range(0, len(raw.texts), _BLOCK):
            texts = raw.texts[first : first + _BLOCK]
            columns = read_block(texts, self.schema) if len(texts) >= _MANY else None
            if columns is None or self._lacks_time(columns):
                columns, letters = self._one_by_one(texts, first, raw.place, rows)
                dead += letters
            blocks.append(pa.RecordBatch.from_arrays(columns, schema=self.schema))
        return pa.Table.from_batches(blocks, self.schema), dead

    def _lacks_time(self, columns: Sequence[pa.Array]) -> bool:
        return any(
            name == self.time and column.null_count
            for name, column in zip(self.schema.names, columns, strict=True)
        )

    def _one_by_one(
        self,
        given: Sequence[bytes],
        first: int,
        place_of: Callable[[int], str],
        read: Sequence[dict[str, Any]] | None,
    ) -> tuple[list[pa.Array], list[DeadLetter]]:
        """The columns of texts, numbered from event `first` on, and the dead letters.

        The objects of the texts may have been read already.
        """
        rows, texts, places, reasons = objects(given) if read is None else _all_of(read, given)
        dead = [DeadLetter(place_of(first + place), why, given[place]) for place, why in reasons.items()]
        try:
            columns = [self._values(rows, field) for field in self.schema]
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            wrong: dict[int, str] = {}
            for field in self.schema:
                values = [row.get(field.name) for row in rows]
                if values:
                    _add(wrong, field.name, wrong_values(values, field.type))
                if field.name == self.time:
                    _add(wrong, field.name, _without(values))
            dead += [
                DeadLetter(place_of(first + places[row]), why, texts[row])
                for row, why in sorted(wrong.items())
            ]
            rows = [row for number, row in enumerate(rows) if number not in wrong]
            columns = [self._values(rows, field) for field in self.schema]
        return columns, dead

    def _values(self, rows: Sequence[dict[str, Any]], field: pa.Field) -> pa.Array:
        name = field.name
        column = values_as([row.get(name) for row in rows], field.type)
        if name == self.time and column.null_count:
            raise ValueError("an event has no time")
        return column

    def _of_table(self, table: pa.Table, place: Callable[[int], str]) -> tuple[pa.Table, list[DeadLetter]]:
        """A table of a file, with texts converted to the types of the columns."""
        wrong: dict[int, str] = {}
        for field in self.schema:
            if field.name not in table.column_names:
                continue
            column = table.column(field.name).combine_chunks()
            if isinstance(column, pa.ChunkedArray):
                column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
            if pa.types.is_string(column.type) and len(column):
                _add(wrong, field.name, wrong_texts(column, field.type))
            if field.name == self.time and column.null_count:
                _add(wrong, field.name, _without(column.to_pylist()))
        dead = [
            DeadLetter(place(row), why, _row_text(table.slice(row, 1))) for row, why in sorted(wrong.items())
        ]
        if wrong:
            table = table.take(pa.array([n for n in range(table.num_rows) if n not in wrong], pa.int64()))
        columns = [self._column(table, field) for field in self.schema]
        return pa.Table.from_arrays(columns, schema=self.schema), dead

    def _column(self, table: pa.Table, field: pa.Field) -> pa.Array | pa.ChunkedArray:
        if field.name not in table.column_names:
            return pa.nulls(table.num_rows, field.type)
        column = table.column(field.name)
        if not pa.types.is_string(column.type):
            try:
                return column.cast(field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise DataError(
                    f"the column {field.name} is {column.type}, and {field.type} was declared",
                    hint="name a schema that the files fit",
                ) from error
        return pa.chunked_array([texts_as(chunk, field.type) for chunk in column.chunks], field.type)


Objects = tuple[Sequence[dict[str, Any]], Sequence[bytes], Sequence[int], dict[int, str]]
"""Objects with their texts and the places of these, and the errors of other texts, by place."""


def objects(texts: Sequence[bytes]) -> Objects:
    """The objects in texts of JSON with their texts and places, and the errors of other texts, by place."""
    together = _objects_together(texts)
    if together is not None:
        return _all_of(together, texts)
    rows: list[dict[str, Any]] = []
    places: list[int] = []
    reasons: dict[int, str] = {}
    for place, text in enumerate(texts):
        try:
            value = _read_json(text.decode())
        except UnicodeDecodeError as error:
            reasons[place] = f"this is not UTF-8: {error.reason} at byte {error.start}"
        except (ValueError, RecursionError) as error:
            reasons[place] = f"this is not JSON: {error}"
        else:
            if isinstance(value, dict):
                rows.append(value)
                places.append(place)
            else:
                reasons[place] = "this is JSON, but no object"
    return rows, [texts[place] for place in places], places, reasons


def _all_of(rows: Sequence[dict[str, Any]], texts: Sequence[bytes]) -> Objects:
    """The result of `objects` where every text is an object."""
    return rows, texts, range(len(texts)), {}


def _objects_together(texts: Sequence[bytes]) -> list[dict[str, Any]] | None:
    """The objects in texts of JSON; None if one of these is not an object."""
    try:
        rows = _read_together(texts)
    except (ValueError, RecursionError):  # a text is not UTF-8, or the array is not JSON
        return None
    return rows if len(rows) == len(texts) and set(map(type, rows)) <= {dict} else None


def _read_together(texts: Sequence[bytes]) -> list[Any]:
    """The values of texts, read as one array in half the time; their number differs if a text is invalid.

    A random value separates the texts. If it is every second value of the array, each text between two
    separators is one value, and cannot open or close a value of another text.
    """
    values: list[Any] = _read_json(f"[{_SEPARATOR.join(map(bytes.decode, texts))}]")
    between = values[1::2]
    return values[::2] if between.count(_BETWEEN) == len(between) else []


def _without(values: Sequence[Any]) -> dict[int, str]:
    return {row: "an event has no time here" for row, value in enumerate(values) if value is None}


def _add(wrong: dict[int, str], name: str, more: dict[int, str]) -> None:
    """Adds the errors of a column; of two errors for one event, the first is kept."""
    for row, why in more.items():
        wrong.setdefault(row, f"{name}: {why}")


def _row_text(row: pa.Table) -> bytes:
    return json.dumps(row.to_pylist()[0], default=str, ensure_ascii=False).encode(errors="surrogateescape")


def letters_table(letters: Iterable[DeadLetter], source: str) -> pa.RecordBatch:
    """Dead letters as rows: source, place, reason, and the text, in base64 if it is not UTF-8."""
    rows = []
    for letter in letters:
        text: str | None
        try:
            text, coded = letter.text.decode(), None
        except UnicodeDecodeError:
            text, coded = None, b64encode(letter.text).decode()
        rows.append(
            {"source": source, "place": letter.place, "reason": letter.reason, "text": text, "base64": coded}
        )
    return pa.RecordBatch.from_pylist(rows, LETTERS)


LETTERS = pa.schema([(name, pa.string()) for name in ("source", "place", "reason", "text", "base64")])
"""The columns of dead letters."""
