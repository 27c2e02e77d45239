"""A query over a stream without an end, in this process: events are pushed, and answers come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.answer import Answer
from estero.answers.shown_values import shown_values
from estero.answers.wait import times_after
from estero.arguments import checked
from estero.classify.column_names import HELD_RELEVANT, POSITION, TIME, attribute_in, event_column
from estero.classify.rows.classified import ClassifiedRow
from estero.classify.rows.typed import AskSqlError, NotInPythonError
from estero.errors import DataError
from estero.events.sources import Source
from estero.events.streams.batch_classifier import Classifier, Incoming
from estero.events.streams.reorder_buffer import ReorderBuffer
from estero.events.streams.single_events import SingleEvents
from estero.events.streams.stream_layout import StreamLayout
from estero.events.tables.shown_types import plain_type
from estero.plan.plan import Plan
from estero.recognize.consumed import Consumed
from estero.recognize.ended_sets import EndedSets
from estero.recognize.increment import EmptyRun, PushedRun
from estero.recognize.progress import RecognizerProgress
from estero.recognize.recognition import Recognition
from estero.recognize.source_run import time_type
from estero.recognize.state import plan_about
from estero.recognize.state_bytes import (
    State,
    batch_as_array,
    batch_of_array,
    refuse_other,
    sound_content,
    written,
)
from estero.recognize.stream_recognizer import StreamRecognizer
from estero.recognize.until import Until, check_until, known_until, passed_time

KIND = "a recognizer"
"""What such a state says that it is of."""

LAYOUT = "layout"
"""The name under which a state says how events are laid out."""

_MOST = 1 << 62
"""More events than any stream has: positions of further ones still fit their type."""


@checked
class ContinuousRecognizer(StreamRecognizer):
    """Recognizes a query over events that are pushed batch by batch (`Query.recognizer` makes one).

    Events are numbered over all batches in stream order; late ones have no number. With a lateness, events
    are held back until the greatest time seen is so much later; without one, a batch is sorted and let go.
    Without a time column, batches follow one another and nothing is late.

    An answer can be asked any number of questions until the next `push` or `flush`. A batch that is refused
    changes nothing. If something goes wrong behind that, such as a predicate of the user's that fails, the
    recognizer says so from then on: go on from the last snapshot. It is `strict` about what is late where the
    query itself does not ask for it: see `ReorderBuffer`.
    """

    def __init__(
        self,
        plan: Plan,
        layout: StreamLayout,
        source: Source,
        *,
        state: State | None = None,
        consumed: Consumed | None = None,
        strict: bool = False,
    ) -> None:
        super().__init__()
        self._plan = plan
        self._layout = layout
        self._classifier = Classifier(layout, source, plan.classification)
        self._events = self._classifier.schema
        order = [event_column(name) for name in layout.columns.order]
        types = [plain_type(self._classifier.columns.field(name).type) for name in order]
        self._decides_by_time = strict or plan.decides_later or bool(plan.deadlines)
        self._held = ReorderBuffer(
            _held_columns(self._events), types, layout.lateness, strict=self._decides_by_time
        )
        self._position = 0
        self._ended = False
        self._until: int | None = None
        self._late = 0
        self._late_events = self._classifier.columns.empty_table()
        self._no_events = self._late_events
        self._time = time_type(source)
        self._recognition: Recognition = Recognition(
            plan,
            self._events,
            time=self._time,
            endless=True,
            state=None if state is None else self._taken_up(state),
            consumed=consumed,
        )
        self._recognition.recognizer.holding = True
        self._sets: list[EndedSets] = []
        self._nothing = Answer(EmptyRun(self._recognition.reader))
        self._single: SingleEvents | None = None
        self._why_slow: str | None = None
        try:
            self._single = SingleEvents(
                layout, source, plan.classification, self._events, self._classifier.ask
            )
        except NotInPythonError as reason:
            self._why_slow = str(reason)

    @property
    def schema(self) -> pa.Schema:
        """The columns of answers."""
        return self._recognition.schema

    @property
    def late(self) -> int:
        """How many events came too late, of all that were pushed."""
        return self._late

    @property
    def held_back(self) -> int:
        """How many events wait for earlier ones that may still come."""
        return len(self._held)

    @property
    def watermark(self) -> int | None:
        """The time before which no event is expected any more, in ticks; None where none is known."""
        return self._held.watermark

    @property
    def greatest(self) -> int | None:
        """The greatest time seen, in ticks; None before the first event."""
        return self._held.greatest

    @property
    def watermark_at_end(self) -> int | None:
        """What the watermark is once nothing is held back; None where no time is known."""
        return self._held.watermark_at_end

    @property
    def time_type(self) -> pa.DataType | None:
        """The type in which times are shown; None where events have none."""
        return self._time

    @property
    def position(self) -> int:
        """The position that the next event gets."""
        return self._position

    @property
    def known_position(self) -> int:
        """The position up to which no event waits for a deadline; -1 before the first event."""
        known = self._recognition.known_through(self._position - 1, None)
        return self._position - 1 if known is None else known

    @property
    def why_slow(self) -> str | None:
        """Why single events go the way of batches, through DuckDB; None where they do not."""
        return self._why_slow

    def _progress(self) -> RecognizerProgress:
        self._recognition.expire(position=self._position, time=self._held.passed)
        (steps, oldest), window = self._recognition.open_runs(), self._plan.window
        expires: Any = None
        if oldest is not None and window is not None and window.in_positions:
            expires = oldest[0] + window.length
        elif oldest is not None and window is not None and self._time is not None:
            after = times_after(np.array([oldest[1]], np.int64), window.length, self._time)
            (expires,) = shown_values(after)
        return RecognizerProgress(
            position=self._position,
            held_back=len(self._held),
            late=self._late,
            waiting=self._recognition.waiting,
            steps=steps,
            oldest_start=None if oldest is None else oldest[0],
            oldest_time=None if oldest is None else self._shown_time(oldest[1]),
            expires=expires,
        )

    def _shown_time(self, ticks: int | None) -> Any:
        """A time as answers show it; None where there is none."""
        if ticks is None or self._time is None:
            return None
        (shown,) = shown_values(pa.array([ticks], pa.int64()).cast(self._time))
        return shown

    def late_events(self) -> pa.Table:
        """The events of the last push that came too late, as they were pushed."""
        return self._late_events.rename_columns(list(map(attribute_in, self._late_events.column_names)))

    def _pushed_one(self, events: object, single: SingleEvents) -> Answer | None:
        """The answer to a single event, None for what has to go the way of batches."""
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
        position, self._position = self._position, self._position + 1
        if event is None and not self._decides_by_time:
            self._turn.next()
            return self._nothing
        return self._answer(lambda: self._ended_in_one(position, event, single))

    def _ended_in_one(
        self, position: int, event: ClassifiedRow | None, single: SingleEvents
    ) -> list[EndedSets]:
        """What ends with one event, None where it is not relevant, or is decided by its time."""
        ended: list[EndedSets] = []
        if event is not None:
            ended += self._recognition.recognize_one((position, event), single.batch)
        if self._decides_by_time:
            ended += self._recognition.decided(position=position, time=self._held.watermark)
        return ended

    def _pushed(self, events: object) -> Answer:
        answer = None if self._single is None else self._pushed_one(events, self._single)
        return self._pushed_batch(events) if answer is None else answer

    def _pushed_batch(self, events: object) -> Answer:
        """The answer to a batch."""
        incoming = self._classifier.classified(events)
        order = [
            _one_array(incoming.events.column(event_column(name))) for name in self._layout.columns.order
        ]
        late = self._held.late(incoming.times, order)
        on_time = np.flatnonzero(~late)
        self._late += late.size - on_time.size
        self._late_events = incoming.events.filter(pa.array(late)) if late.any() else self._no_events
        if on_time.size == late.size and self._held.passes(incoming.times, order):
            return self._recognized(incoming.classified, incoming.events.num_rows)
        held = _held(incoming, on_time)
        self._held.add(held, incoming.times[on_time], [each.take(pa.array(on_time)) for each in order])
        return self._let_go()

    def _flushed(self) -> Answer:
        self._late_events = self._no_events
        return self._let_go(everything=True)

    def _advanced(self, time: Until) -> Answer:
        ticks = passed_time(time, self._time)
        self._late_events = self._no_events
        self._held.advance(ticks)
        answer = self._let_go()
        with self._turn.lock:
            self._recognition.expire(position=self._position, time=self._held.passed)
        return answer

    def _closed(self, until: Until | None) -> Answer:
        if until is not None:
            known = known_until(until, self._plan, self._time)
            check_until(known, self._held.greatest)
            self._until = known
        self._ended = True
        answer = self._flushed()
        self._classifier.close()
        return answer

    def _snapshot(self, key: bytes | None) -> bytes:
        arrays: dict[str, NDArray[Any]] = {
            "recognition": np.frombuffer(self._recognition.snapshot(), np.uint8),
            "held": batch_as_array(_one_batch(self._held.pending())),
            "reached": batch_as_array(self._held.reached()),
            "numbers": np.array([self._position, self._late], np.int64),
            "hashes": self._classifier.hashes(),
            **self._layout.as_arrays(),
        }
        return written(State({**self._about(), LAYOUT: self._layout.as_text()}, arrays), key)

    @property
    def known(self) -> str:
        """Up to when events are known, behind a comma; empty before the first one, and without a time."""
        time = self._shown_time(self._held.watermark)
        return "" if time is None else f", known up to {time}"

    def _numbers(self) -> str:
        return f"{self._position:,} events, {len(self._held):,} held back, {self._late:,} late{self.known}"

    @property
    def _text(self) -> str:
        return self._plan.text

    def _about(self) -> dict[str, str]:
        return plan_about(KIND, self._plan, self._events)

    def _taken_up(self, state: State) -> bytes:
        """Takes up what a state holds; returns the state of the recognition in it."""
        refuse_other(state.about, self._about())
        arrays = state.arrays
        with sound_content():
            hashes = arrays["hashes"]
            self._position, self._late = map(_count, arrays["numbers"].tolist())
            held = pa.Table.from_batches([batch_of_array(arrays["held"])])
            self._held.restore(held, batch_of_array(arrays["reached"]))
            recognition = arrays["recognition"].tobytes()
        if not np.array_equal(hashes, self._classifier.hashes()):
            raise DataError(
                "the keys in this state were hashed by another version of DuckDB",
                hint="use that version, or start over",
            )
        return recognition

    def _let_go(self, *, everything: bool = False) -> Answer:
        """Recognizes what is held back no longer."""
        ready = self._held.let_go(everything=everything)
        positions = np.flatnonzero(ready.column(HELD_RELEVANT).to_numpy())
        chosen = _one_batch(ready.select(self._events.names).take(pa.array(positions)))
        return self._recognized(_with_column(chosen, POSITION, pa.array(positions)), ready.num_rows)

    def _recognized(self, relevant: pa.RecordBatch, count: int) -> Answer:
        """The answer to the relevant ones of the next `count` events, which are numbered from 0."""
        answer = self._answer(lambda: self._ended_in(self._numbered(relevant), count))
        self._position += count
        return answer

    def _ended_in(self, relevant: pa.RecordBatch, count: int) -> list[EndedSets]:
        """What ends with events, the relevant ones of the next `count`, or is decided by them."""
        ended = list(self._recognition.recognize(relevant))
        if self._ended:
            ended += self._recognition.ended(self._known_at_end)
        else:
            position = self._position + count - 1
            ended += self._recognition.decided(position=position, time=self._held.watermark)
        return ended

    @property
    def _known_at_end(self) -> int | None:
        """Up to which time events are known as the stream ends."""
        known = [each for each in (self._until, self._held.watermark) if each is not None]
        return max(known, default=None)

    def _answer(self, recognize: Callable[[], list[EndedSets]]) -> Answer:
        """The answer to what ends now; from before, nothing is needed any more."""
        number = self._turn.next()
        try:
            with self._turn.lock:  # what another thread reads is read to the end of a batch
                self._recognition.let_go()
                ended = recognize()
        except BaseException:
            self._turn.fail(
                "recognition broke off in an earlier push, so that its state is not to be trusted: "
                "restore the last snapshot"
            )
            raise
        self._sets = ended
        return Answer(PushedRun(self._recognition.reader, ended, self._turn, number))

    def _is_something(self, answer: Answer) -> bool:
        if answer is self._nothing or not self._sets:
            return False
        return bool(answer) if self._plan.sieved else True

    def _numbered(self, relevant: pa.RecordBatch) -> pa.RecordBatch:
        """With positions in the whole stream, which are the times where there are none."""
        positions = pa.array(relevant.column(POSITION).to_numpy() + self._position)
        for name in (POSITION, TIME) if self._layout.columns.time is None else (POSITION,):
            relevant = _with_column(relevant, name, positions)
        return relevant


def layout_in(state: State, query: str, kind: str = KIND) -> StreamLayout:
    """How events are laid out in a state; raises `DataError` for one of another query or kind."""
    about = state.about
    refuse_other(about, {"kind": kind, "query": query, "plan": about.get("plan", "")})
    with sound_content():
        return StreamLayout.of_state(about[LAYOUT], state.arrays)


def _count(number: int) -> int:
    if not 0 <= number < _MOST:
        raise ValueError(f"there are not {number} events")
    return number


def _held_columns(events: pa.Schema) -> pa.Schema:
    """The columns of events that are held back: irrelevant ones, which only count, have NULLs."""
    nullable = [field.with_nullable(True) for field in events]
    return pa.schema([*nullable, pa.field(HELD_RELEVANT, pa.bool_())])


def _held(incoming: Incoming, rows: NDArray[np.int64]) -> pa.Table:
    """Some events of a batch, as they are held back."""
    places = np.full(incoming.events.num_rows, -1)
    places[incoming.classified.column(POSITION).to_numpy()] = np.arange(incoming.classified.num_rows)
    chosen = places[rows]
    relevant = chosen >= 0
    taken = incoming.classified.take(pa.array(chosen, mask=~relevant))
    columns = [*taken.columns, pa.array(relevant)]
    return pa.Table.from_arrays(columns, names=[*incoming.classified.schema.names, HELD_RELEVANT])


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    """One plain array, which Arrow can sort."""
    return column.cast(plain_type(column.type)).combine_chunks()


def _with_column(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    place = batch.schema.names.index(name)
    return batch.set_column(place, batch.schema.field(place), column)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    arrays = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)
