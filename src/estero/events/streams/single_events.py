"""Single events, as users push them → classified events, without Arrow and DuckDB.

Measured for an event of five columns: 5 µs, and 1 ms by a statement (batch_classifier.py). Uncertain cases
use that statement: all events of a stream if `NotInPythonError` says why, and single events that have a value
that only SQL can interpret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from estero.classify.column_names import BITS, KEYS, POSITION, TIME, VALUES, WORD, attribute_in, numbered
from estero.classify.rows.classified import ClassifiedRow
from estero.classify.rows.classifier import RowClassifier
from estero.classify.rows.functions import RowColumn
from estero.classify.rows.hashes import Ask
from estero.classify.rows.typed import AskSqlError, NotInPythonError
from estero.events.sources import Source
from estero.events.streams.row_types import Change, RowType, row_type, same
from estero.events.streams.stream_layout import StreamLayout
from estero.language.tree.exact_names import given_name
from estero.plan.plan import Classification

_SCALES: Final = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}
_DAY: Final = 86_400 * 10**6
_NO_KEY: Final = (0, 0)
_FULL_WORD: Final = (1 << WORD) - 1
_MOST_COMBINATIONS: Final = 1 << 10
"""The number of combinations of Python types in one event that are remembered."""


class SingleEvents:
    """Reads and classifies single events; `schema` is that of the classified batches made of them.

    Raises `NotInPythonError` if all events have to be classified by SQL.
    """

    def __init__(
        self,
        layout: StreamLayout,
        source: Source,
        classification: Classification,
        schema: pa.Schema,
        ask: Ask,
    ) -> None:
        if layout.mapped:
            raise NotInPythonError("types have tables of their own")
        if layout.columns.order:
            raise NotInPythonError("columns break ties of time")
        if layout.lateness:
            raise NotInPythonError("events are held back for late ones")
        self._declared = layout.schemas[""]
        self._names = self._declared.names
        self._given = list(map(given_name, self._names))
        self._types = [_typed(field) for field in self._declared]
        columns = {
            name: _column(place, name, declared, source)
            for place, (name, declared) in enumerate(zip(self._names, self._types, strict=True))
        }
        self._classifier = RowClassifier(classification, columns, ask)
        self._schema = schema
        self._timed = layout.columns.time is not None
        self._changes: dict[tuple[type, ...], tuple[tuple[int, Change], ...]] = {}

    def row(self, event: object) -> tuple[Any, ...] | None:
        """The values of a single event, None for anything else; `AskSqlError` as for `classified`.

        An event is a mapping of names to values, a tuple of values in the order of the columns, or a batch or
        table of one row.
        """
        if type(event) is dict or isinstance(event, Mapping):
            return self._checked([*map(event.get, self._given)])
        if isinstance(event, tuple):
            return self._checked([*event]) if len(event) == len(self._names) else None
        if isinstance(event, pa.RecordBatch | pa.Table) and event.num_rows == 1:
            if not event.schema.equals(self._declared):
                return None
            columns = zip(self._types, event.columns, strict=True)
            return tuple([declared.of_scalar(column[0]) for declared, column in columns])
        return None

    def time(self, row: Sequence[Any]) -> int:
        """The time in ticks; raises `AskSqlError` if there is none."""
        time = self._classifier.time(row)
        if time is None:
            raise AskSqlError
        return time

    def classified(self, row: Sequence[Any], time: int) -> ClassifiedRow | None:
        """The event with that time, None if it is not relevant.

        Raises `AskSqlError` if only SQL can classify it, or explain the error.
        """
        return self._classifier.classified(row, time)

    def batch(self, events: Sequence[tuple[int, ClassifiedRow]]) -> pa.RecordBatch:
        """Classified events with their positions, as the batch that DuckDB would give."""
        rows = [event.row for _, event in events]
        positions = [position for position, _ in events]
        return pa.RecordBatch.from_arrays(
            [self._array(field, rows, positions, [event for _, event in events]) for field in self._schema],
            schema=self._schema,
        )

    def _array(
        self,
        field: pa.Field,
        rows: Sequence[Sequence[Any]],
        positions: Sequence[int],
        events: Sequence[ClassifiedRow],
    ) -> pa.Array:
        """One column of classified events."""
        name = field.name
        if name == POSITION or (name == TIME and not self._timed):
            return pa.array(positions, field.type)
        if name == TIME:
            return pa.array([event.time for event in events], field.type)
        if name in KEYS:
            half = KEYS.index(name)
            return pa.array([(event.key or _NO_KEY)[half] for event in events], field.type)
        if numbered(BITS, [name]):
            shift = WORD * int(name.removeprefix(BITS))
            return pa.array([event.bits >> shift & _FULL_WORD for event in events], field.type)
        if numbered(VALUES, [name]):
            number = int(name.removeprefix(VALUES))
            return pa.array([event.values[number] for event in events], field.type)
        attribute = attribute_in(name)
        if attribute not in self._names:  # a path: with these types only NULL has fields
            return pa.nulls(len(rows), field.type)
        place = self._names.index(attribute)
        array = self._types[place].array([row[place] for row in rows])
        return array if array.type.equals(field.type) else array.cast(field.type)

    def _checked(self, values: list[Any]) -> tuple[Any, ...]:
        types = tuple(map(type, values))
        changes = self._changes.get(types)
        if changes is None:
            changes = self._changes_of(types)
        for place, change in changes:
            values[place] = change(values[place])
        return tuple(values)

    def _changes_of(self, types: tuple[type, ...]) -> tuple[tuple[int, Change], ...]:
        """The conversions of values of these types of Python, remembered."""
        changes = [
            (place, declared.takes.get(kind, declared.by_arrow))
            for place, (kind, declared) in enumerate(zip(types, self._types, strict=True))
            if kind is not type(None)
        ]
        applied = tuple((place, change) for place, change in changes if change is not same)
        if len(self._changes) < _MOST_COMBINATIONS:
            self._changes[types] = applied
        return applied


def _typed(field: pa.Field) -> RowType:
    known = row_type(field.type)
    if known is None:
        raise NotInPythonError(f"the column {field.name!r} holds {field.type}")
    return known


def _column(place: int, name: str, declared: RowType, source: Source) -> RowColumn:
    """How expressions read a column; `declared` is its type."""
    column = source.column_types[name]
    if pa.types.is_timestamp(declared.arrow):
        return RowColumn(place, column.kind, column.tick, _SCALES[declared.arrow.unit])
    return RowColumn(place, column.kind, scale=_DAY if declared.arrow == pa.date32() else 1)
