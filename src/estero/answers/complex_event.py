"""The rows of an answer as the objects that iteration gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from estero.answers.answer_columns import AnswerColumns
from estero.answers.report import positions_in
from estero.answers.shown_values import BEYOND_PYTHON, not_held, shown_values
from estero.errors import legible

Events = list[dict[str, Any]]


class ComplexEvent:
    """A complex event: where it starts and ends, and the events under each label.

    ``ce["b"]`` are the events marked b as dicts in stream order, ``ce.positions["b"]`` their positions, and
    ``ce["n"]`` is the value that SELECT shows as n.
    A value that Python cannot hold (a time after the year 9999) is a `DataError` when it is asked for.
    `rule` is the name of its rule in a set of them, else None.
    Equal complex events have the same start, end and positions under the same labels.
    """

    __slots__ = ("_batch", "_layout", "_row", "end", "rule", "start")

    def __init__(self, batch: pa.RecordBatch, row: int, layout: AnswerColumns, start: int, end: int) -> None:
        self._batch = batch
        self._row = row
        self._layout = layout
        self.start: int = start
        self.end: int = end
        self.rule: str | None = None

    @property
    def start_time(self) -> Any:
        """The time of the first event read, or None where the stream has no time."""
        return self._value(2) if self._layout.has_time else None

    @property
    def end_time(self) -> Any:
        """The time of the last event read, or None where the stream has no time."""
        return self._value(3) if self._layout.has_time else None

    @property
    def labels(self) -> tuple[str, ...]:
        """The selected labels, in order."""
        return tuple(self._layout.labels)

    @property
    def partition(self) -> dict[str, Any]:
        """The values of the partition columns, by name."""
        return {name: self._value(column) for name, column in self._layout.partition.items()}

    @property
    def suppressed(self) -> int | None:
        """The number left out in the partition since the one given before, None without LIMIT … PER."""
        if self._layout.suppressed is None:
            return None
        return int(self._value(self._layout.suppressed))

    @property
    def decided_time(self) -> Any:
        """The time at which the last deadline after its end passed, None for a query without deadlines."""
        column = self._layout.decided_time
        return None if column is None else self._value(column)

    @property
    def steps(self) -> int | None:
        """The number of steps that a partial match completed, from 1; None for a complex event."""
        column = self._layout.steps
        return None if column is None else int(self._value(column))

    @property
    def expired_time(self) -> Any:
        """The time at which the window of a partial match passed, None for a complex event."""
        column = self._layout.expired_time
        return None if column is None else self._value(column)

    @property
    def complete(self) -> bool:
        """Whether it is a complex event of the query, not a partial match."""
        if self._layout.complete is None:
            return self._layout.steps is None
        return bool(self._value(self._layout.complete))

    @property
    def positions(self) -> dict[str, tuple[int, ...]]:
        """The positions of the events under each selected label."""
        row = self._row
        lists = {label: self._batch.column(column)[row] for label, column in self._layout.labels.items()}
        return {label: tuple(positions_in(marked.values).to_pylist()) for label, marked in lists.items()}

    @property
    def all_positions(self) -> tuple[int | None, ...]:
        """The positions of all its events under the selected labels, in order.

        A sequence in EQL has one for each stage, None where an event must be missing.
        """
        if not self._layout.stages:
            return tuple(sorted({place for places in self.positions.values() for place in places}))
        marked = (self._batch.column(column)[self._row].values for column in self._layout.stages)
        return tuple(positions_in(events)[0].as_py() if len(events) else None for events in marked)

    @property
    def measures(self) -> dict[str, Any]:
        """The values of the expressions that SELECT names, by name."""
        return {name: self._value(column) for name, column in self._layout.measures.items()}

    def __getitem__(self, name: str) -> Any:
        """The events under a label, or the value of an expression that SELECT names."""
        column = self._layout.labels.get(name, self._layout.measures.get(name))
        if column is None:
            shown = ", ".join((*self._layout.labels, *self._layout.measures)) or "none"
            raise KeyError(f"{name} is not among the selected labels: {shown}")
        return self._value(column)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ComplexEvent):
            return NotImplemented
        return (self.start, self.end, self.positions) == (other.start, other.end, other.positions)

    def __hash__(self) -> int:
        return hash((self.start, self.end))

    def __repr__(self) -> str:
        parts = [f"{self.start}–{self.end}"]
        parts += [] if self.rule is None else [f"rule={self.rule!r}"]
        if self._layout.has_time:
            parts.append(f"{self._shown(2)} – {self._shown(3)}")
        parts += [f"{name}={self._shown(column)!r}" for name, column in self._layout.partition.items()]
        parts += [f"suppressed={self.suppressed}"] if self.suppressed else []
        parts += [f"{name}={self._shown(column)!r}" for name, column in self._layout.measures.items()]
        parts += [f"{label}={_shortened(places)}" for label, places in self.positions.items()]
        return legible(f"ComplexEvent({', '.join(parts)})")

    def _repr_html_(self) -> str:
        from estero.answers.as_html import complex_event_html  # for notebooks only

        return complex_event_html(self._batch, self._row)

    def places_shown(self) -> dict[str, Any]:
        """Start and end, times, values of the partition and of SELECT, printable (`shown_values`)."""
        first = 4 if self._layout.has_time else 2
        columns = [*range(first), *self._layout.partition.values()]
        columns += [] if self._layout.suppressed is None else [self._layout.suppressed]
        columns += self._layout.measures.values()
        return {self._batch.schema.names[column]: self._shown(column) for column in columns}

    def events_shown(self, label: str) -> Events:
        """The events under a label, in printable form."""
        events: Events = self._shown(self._layout.labels[label])
        return events

    def _shown(self, column: int) -> Any:
        return shown_values(self._batch.column(column).slice(self._row, 1))[0]

    def _value(self, column: int) -> Any:
        try:
            return self._batch.column(column)[self._row].as_py()
        except BEYOND_PYTHON as error:
            what = f"{self._batch.schema.names[column]} of the complex event {self.start}–{self.end}"
            raise not_held(what, error) from error


def complex_events(batch: pa.RecordBatch, layout: AnswerColumns) -> Iterator[ComplexEvent]:
    """The rows of one batch of an answer, in order."""
    starts, ends = batch.column(0).to_pylist(), batch.column(1).to_pylist()
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        yield ComplexEvent(batch, row, layout, start, end)


def _shortened(positions: tuple[int, ...]) -> str:
    if len(positions) <= 8:
        return str(list(positions))
    shown = ", ".join(map(str, positions[:4]))
    return f"[{shown}, … {positions[-1]}] ({len(positions)} events)"
