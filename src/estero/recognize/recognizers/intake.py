"""Events of an unbounded stream, as they are pushed → the relevant ones, classified, in stream order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.event_store import Single
from estero.answers.shown_values import shown_values
from estero.classify.arrays import array_of, empty_batch, numbers_in, one_array, one_batch
from estero.classify.column_names import (
    HELD,
    HELD_ERA,
    HELD_RELEVANT,
    POSITION,
    TIME,
    attribute_in,
    event_column,
)
from estero.classify.rows.classified import ClassifiedRow
from estero.classify.rows.typed import AskSqlError, NotInPythonError
from estero.classify.vectors.batch_columns import OddValueError
from estero.engine.store.checks import Arrays
from estero.errors import DataError
from estero.events.database import hashes
from estero.events.sources import Source
from estero.events.streams.batch_classifier import Ask, Classifier, Incoming
from estero.events.streams.few_events import FewEvents
from estero.events.streams.reorder_buffer import ReorderBuffer
from estero.events.streams.single_events import SingleEvents
from estero.events.streams.stream_layout import StreamLayout
from estero.events.tables.shown_types import encoded_as, plain_type
from estero.language.tree.words import named
from estero.plan.plan import Classification
from estero.recognize.recognizers.held_events import Conversion, as_held, held_columns, in_era
from estero.recognize.source_run import time_type
from estero.recognize.state_bytes import State, batch_as_array, batch_of_array, refuse_other, sound_content

LAYOUT: Final = "layout"
"""The name under which a state describes the layout of events."""

_PART: Final = 1 << 17
"""The number of events of a long batch that are recognized together."""
FEW_ROWS: Final = 64
"""So many events are asked what conditions want before they are classified."""
_MOST: Final = 1 << 62
"""More events than any stream has, such that later positions still fit their type."""


NumberedEvent = tuple[int, ClassifiedRow | None]
"""The position of a single event, and the event; None if it is not relevant."""


class Intake:
    """Classifies, orders and numbers the events of one stream.

    Events are numbered over all batches in stream order; late ones have no number. With a lateness, an event
    is held back until the greatest time seen is that much later; without one, a batch is sorted and passed
    on. Without a time column, batches follow one another and nothing is late. It is `strict` about lateness
    if something is decided as time passes: see `ReorderBuffer`. With `eras`, classified events have the `era`
    in which they came, and none is taken singly.
    """

    def __init__(
        self,
        layout: StreamLayout,
        source: Source,
        classification: Classification,
        *,
        strict: bool,
        eras: bool = False,
    ) -> None:
        self._layout = layout
        self._asked = classification
        self._classifier = Classifier(layout, source, classification)
        self.era: int | None = 0 if eras else None
        """The number of changes of the plans so far; None if that does not matter."""
        own = [pa.field(HELD_ERA, pa.int64())] if eras else []
        self.schema: Any = pa.schema([*self._classifier.schema, *own])
        """The columns of classified events."""
        self.ask: Ask | None = None
        """What a few events that pass are asked before they are classified, if anything."""
        self.may_want: Callable[[FewEvents], bool] | None = None
        """Tells whether a condition may want one of a few events; None if there is no such test."""
        self._nothing: Any = empty_batch(self.schema)
        self._places = {name: self.schema.get_field_index(name) for name in (POSITION, TIME)}
        self.time_type: Any | None = time_type(source)
        """The type in which times are shown; None if events have none."""
        self.columns: Any = self._classifier.columns
        """The columns of events as they come."""
        types = order_types(self.columns, layout)
        self._held = ReorderBuffer(held_columns(self.schema), types, layout.lateness, strict=strict)
        self.position: int = 0
        """The position of the next event."""
        self.late: int = 0
        """The number of all events so far that came too late."""
        self._no_events = self._late_events = self._classifier.columns.empty_table()
        self._single: SingleEvents | None = None
        self.why_slow: str | None = None
        """The reason why single events are classified by DuckDB like batches; None if they are not."""
        if eras:
            return
        try:
            self._single = SingleEvents(layout, source, classification, self.schema, self._classifier.ask)
        except NotInPythonError as reason:
            self.why_slow = str(reason)

    @property
    def held_back(self) -> int:
        """The number of events held back, because earlier ones may still come."""
        return len(self._held)

    @property
    def watermark(self) -> int | None:
        """The time before which no more events are expected, in ticks; None if there is none yet."""
        return self._held.watermark

    @property
    def greatest(self) -> int | None:
        """The greatest time seen, in ticks; None before the first event."""
        return self._held.greatest

    @property
    def passed(self) -> int | None:
        """The time before which events are late; None before the first event."""
        return self._held.passed

    @property
    def known(self) -> str:
        """The known time after a comma, for messages; empty before the first event, and without a time."""
        return "" if self.known_time is None else f", known up to {self.known_time}"

    @property
    def known_time(self) -> Any:
        """The time up to which events are known, as in answers; None before the first, and without a time."""
        return self.shown_time(self._held.watermark)

    def shown_time(self, ticks: int | None) -> Any:
        """A time in the form of answers; None if there is none."""
        if ticks is None or self.time_type is None:
            return None
        (shown,) = shown_values(pa.array([ticks], pa.int64()).cast(self.time_type))
        return shown

    def late_events(self) -> pa.Table:
        """The late events of the last push, as they were pushed."""
        return self._late_events.rename_columns(
            [named(attribute_in(name)) for name in self._late_events.column_names]
        )

    # --------------------------------------------------------------------------- events that come

    def take_one(self, events: object) -> NumberedEvent | None:
        """A single event and its position; None for events that must be classified as a batch."""
        single = self._single
        if single is None:
            return None
        try:
            row = single.row(events)
            if row is None:
                return None
            time = single.time(row)
            event = single.classified(row, time)
        except AskSqlError:
            return None
        if not self._held.passes_one(time):
            return None
        self._late_events = self._no_events
        position = self.position
        self.position += 1
        return position, event

    def as_batch(self, events: Sequence[Single]) -> pa.RecordBatch:
        """The classified batch of some single events that were taken."""
        if self._single is None:
            raise TypeError("single events go the way of batches here")
        return self._single.batch(events)

    def take(self, events: object) -> pa.RecordBatch:
        """Takes a batch and returns the relevant events now released; raises `DataError` if it is invalid."""
        return self.admit(self._classifier.classified(*self._classifier.opened(events)))

    def looked_at(self, events: object) -> list[Incoming]:
        """Classifies the events of a batch; changes nothing, and raises `DataError` for an invalid one.

        A long batch that is in order is returned in parts, to be admitted one after the other: all of it is
        released then in any case.
        """
        if isinstance(events, FewEvents):
            unwanted = self._unwanted(events)
            if unwanted is not None:
                return [unwanted]
            events = events.table
        table, times = self._classifier.opened(events)
        order = self._layout.columns.order
        if self.ask is not None and times.size <= FEW_ROWS and self._held.may_pass(times, order):
            return [self._asked_about(table, times, self.ask)]
        if times.size <= _PART or order or not self._held.follows(times):
            return [self._classifier.classified(table, times)]
        return [
            self._classifier.classified(table.slice(first, _PART), times[first : first + _PART])
            for first in range(0, times.size, _PART)
        ]

    def _unwanted(self, events: FewEvents) -> Incoming | None:
        """A few events that may pass and that no condition wants; None if a condition may want one."""
        if self.may_want is None or self._layout.keep or self.may_want(events):
            return None
        opened = self._classifier.counted(events)
        if opened is None or not self._held.may_pass(opened.times, self._layout.columns.order):
            return None
        return Incoming(self._no_events, opened.times, self._nothing, passes=True, relevant=opened.relevant)

    def _asked_about(self, events: pa.Table, times: NDArray[np.int64], ask: Ask) -> Incoming:
        """A few events that may pass; those that no condition wants are not classified."""
        try:
            return self._classifier.asked(events, times, ask)
        except OddValueError:
            return self._classifier.classified(events, times)

    def admit(self, incoming: Incoming) -> pa.RecordBatch:
        """The relevant events that are let go as a batch comes that was looked at."""
        if incoming.passes:
            self._held.pass_by(incoming.times)
            self._late_events = self._no_events
            if not incoming.classified.num_rows:
                self.position += incoming.times.size
                return self._nothing
            return self._numbered(incoming.classified, incoming.events.num_rows, self.era)
        order = order_columns(incoming.events, self._layout)
        if self._held.passes(incoming.times, order):
            self._late_events = self._no_events
            return self._numbered(incoming.classified, incoming.events.num_rows, self.era)
        late = self._held.late(incoming.times, order)
        self._late_events = incoming.events.filter(pa.array(late)) if late.any() else self._no_events
        if self.era is not None:
            incoming = incoming._replace(classified=in_era(incoming.classified, self.era, self.schema))
        on_time = np.flatnonzero(~late)
        self.late += late.size - on_time.size
        held = as_held(incoming, on_time)
        self._held.add(held, incoming.times[on_time], [column.take(pa.array(on_time)) for column in order])
        return self._let_go()

    def advance(self, ticks: int) -> pa.RecordBatch:
        """Declares that no more events before a time will come; returns the relevant events now released."""
        self._late_events = self._no_events
        self._held.advance(ticks)
        return self._let_go()

    def flush(self) -> pa.RecordBatch:
        """Releases all relevant events that are held back."""
        self._late_events = self._no_events
        return self._let_go(everything=True)

    def close(self) -> None:
        """Closes the classifier: no more events come."""
        self._classifier.close()

    def _let_go(self, *, everything: bool = False) -> pa.RecordBatch:
        """The relevant events that are no longer held back."""
        ready = self._held.let_go(everything=everything)
        positions = np.flatnonzero(ready.column(HELD_RELEVANT).to_numpy())
        chosen = encoded_as(one_batch(ready.select(self.schema.names).take(pa.array(positions))), self.schema)
        return self._numbered(_with_column(chosen, POSITION, pa.array(positions)), ready.num_rows)

    def _numbered(self, relevant: pa.RecordBatch, count: int, era: int | None = None) -> pa.RecordBatch:
        """The relevant ones of the next `count` events, with positions in the whole stream."""
        first, self.position = self.position, self.position + count
        return self._placed(relevant, first, era)

    def _placed(self, relevant: pa.RecordBatch, first: int, era: int | None = None) -> pa.RecordBatch:
        """Relevant events, the first of which would be at a place in the whole stream, with positions there.

        These are the times where there are none. With an `era` they have none yet, and get this one.
        """
        positions = array_of(numbers_in(relevant.column(self._places[POSITION])) + first)
        for name in (POSITION, TIME) if self._layout.columns.time is None else (POSITION,):
            relevant = relevant.set_column(self._places[name], self.schema.field(name), positions)
        return relevant if era is None else in_era(relevant, era, self.schema)

    def times(self, events: pa.Table) -> NDArray[np.int64]:
        """The times of events in the `columns`, in ticks; 0 where there are none."""
        return self._classifier.times(events)

    def again(self, events: pa.Table, first: int) -> pa.RecordBatch:
        """The relevant ones of events that were released before, in order, the first one at a place."""
        classified = self._classifier.classified(events, self.times(events)).classified
        return self._placed(in_era(classified, 0, self.schema), first)

    def follow(self, other: Intake, *, bits: bool, held: pa.Table | None = None) -> None:
        """Continues from another intake of the same stream, which may be closed afterwards.

        What that holds back is held back here: events that are in `held`, as they came, are classified. The
        others keep the `bits` and values that they have there, or only count.
        """
        self.position, self.late, self.era = other.position, other.late, other.era
        pending = other._held.pending()
        if held is None:
            converted = Conversion(pending, other._asked, self._asked) if bits else Conversion(pending)
            pending = converted.to(self._held.schema)
        else:
            pending = self._classified_again(held, pending)
        self._held.restore(pending, other._held.reached())

    def _classified_again(self, held: pa.Table, pending: pa.Table) -> pa.Table:
        """Events that are `pending` in another intake, in their order, in the form of this one."""
        incoming = self._classifier.classified(held, self.times(held))
        incoming = incoming._replace(classified=in_era(incoming.classified, 0, self.schema))
        again = as_held(incoming, np.arange(held.num_rows))
        columns = dict(zip(again.column_names, again.columns, strict=True))
        kept = [name for name in pending.column_names if name.startswith(HELD) and name != HELD_RELEVANT]
        columns |= {name: pending.column(name) for name in kept}
        columns[HELD_ERA] = columns[HELD_ERA].fill_null(0)  # of an event that was not relevant then
        return pa.Table.from_arrays(
            [columns[name] for name in self._held.schema.names], schema=self._held.schema
        )

    # ------------------------------------------------------------------- stopping and going on

    @property
    def _eras(self) -> list[int]:
        return [] if self.era is None else [self.era]

    @property
    def held_bytes(self) -> int:
        """The bytes of the events that are held back."""
        return int(self._held.pending().nbytes) if len(self._held) else 0

    def counts(self) -> dict[str, int]:
        """The numbers of events that came, were released or are held back, or were late, by name."""
        held = self.held_back
        return {"events": self.position + held + self.late, "held_back": held, "late": self.late}

    def about(self) -> dict[str, str]:
        """The description of this intake in a state: the layout of events."""
        return {LAYOUT: self._layout.as_text()}

    def snapshot(self) -> Arrays:
        """The state for `resume`, without what `schemas` has."""
        return {
            "held": batch_as_array(one_batch(self._held.pending())),
            "reached": batch_as_array(self._held.reached()),
            "numbers": np.array([self.position, self.late, *self._eras], np.int64),
            "hashes": np.array(hashes(), np.uint64),
        }

    def schemas(self) -> Arrays:
        """The schemas of events, which a state holds once."""
        return dict(self._layout.as_arrays())

    def resume(self, arrays: Arrays) -> None:
        """Restores the state of `snapshot`; raises `DataError` if it is of another version of DuckDB."""
        with sound_content():
            hashed = arrays["hashes"]
            self.position, self.late, *eras = map(_count, arrays["numbers"].tolist())
            if len(eras) != len(self._eras):
                raise ValueError("other numbers of a stream")
            self.era = eras[0] if eras else None
            held = pa.Table.from_batches([batch_of_array(arrays["held"])])
            self._held.restore(held, batch_of_array(arrays["reached"]))
        if not np.array_equal(hashed, hashes()):
            raise DataError(
                "the keys in this state were hashed by another version of DuckDB",
                hint="use that version, or start over",
            )


def layout_in(state: State, query: str, kind: str) -> StreamLayout:
    """The layout of events in a state; raises `DataError` for one of another query or kind."""
    about = state.about
    refuse_other(about, {"kind": kind, "query": query, "plan": about.get("plan", "")})
    with sound_content():
        return StreamLayout.of_state(about[LAYOUT], state.arrays)


def _count(number: int) -> int:
    if not 0 <= number < _MOST:
        raise ValueError(f"there are not {number} events")
    return number


def order_types(columns: pa.Schema, layout: StreamLayout) -> list[pa.DataType]:
    """The types of `order_columns`."""
    return [plain_type(columns.field(event_column(name)).type) for name in layout.columns.order]


def order_columns(events: pa.Table, layout: StreamLayout) -> list[pa.Array]:
    """The columns of events that break ties, as plain arrays, which Arrow can sort."""
    columns = (events.column(event_column(name)) for name in layout.columns.order)
    return [one_array(column.cast(plain_type(column.type))) for column in columns]


def _with_column(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    place = batch.schema.get_field_index(name)
    return batch.set_column(place, batch.schema.field(place), column)
