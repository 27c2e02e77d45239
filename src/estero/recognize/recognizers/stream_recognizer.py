"""The common part of recognizers of streams without an end, for answers of any rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.answer import Answer
from estero.answers.shown_values import shown_values
from estero.answers.wait import times_after
from estero.arguments import checked
from estero.classify.rows.classified import ClassifiedRow
from estero.errors import EsteroError, legible
from estero.plan.plan import Plan
from estero.recognize.metrics import Extent
from estero.recognize.partial_matches.partials_recognition import PartialsRecognition
from estero.recognize.recognition import Recognition
from estero.recognize.recognizers.event_recognizer import EventRecognizer
from estero.recognize.recognizers.intake import Intake
from estero.recognize.recognizers.progress import RecognizerProgress
from estero.recognize.state import plan_about
from estero.recognize.state_bytes import State, check_key, refuse_other, sound_content, written
from estero.recognize.until import Until, check_until, known_until, passed_time

T = TypeVar("T")


@checked
class StreamRecognizer(EventRecognizer[Answer]):
    """Takes events as they are pushed and time as it passes, and gives answers; tells listeners of them.

    What differs is how relevant events are recognized, and which rows answers have: see
    `ContinuousRecognizer`, and `PartialsRecognizer` for partial matches.
    """

    _beside_pushing = "asking"
    _kind: ClassVar[str]
    """The kind of its state."""
    _tells_partials: ClassVar[bool] = False
    """Whether answers have partial matches."""
    _recognition: Recognition | PartialsRecognition

    def __init__(self, plan: Plan, intake: Intake) -> None:
        super().__init__()
        self._plan = plan
        self._events = intake

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of answers."""

    @property
    def why_slow(self) -> str | None:
        """The reason why single events are classified by DuckDB, as batches are; None if they are not."""
        return self._intake.why_slow

    def progress(self) -> RecognizerProgress:
        """The number of events read and the open partial matches; it takes as long as a snapshot."""
        with self._by_one_thread(), self._turn.lock:
            return self._progress()

    def metrics(self) -> dict[str, Any]:
        """Counters for monitoring, by name; it takes as long as a snapshot.

        - ``events``: all events pushed; ``late``: those that came too late; ``held_back``: those that wait
          for earlier ones; ``waiting``: complex events that wait for the deadline of a ``NOT(…) FOR d``.
        - Since this recognizer was made or restored: ``relevant`` events, and ``answers``, the number of
          events at which complex events ended (before conditions on whole complex events; with partial
          matches the number of rows).
        - ``open_events``, ``nodes`` of compact sets and ``partitions``: what is kept for answers to come;
          ``state_bytes``: its size in memory, including events that are held back.
        - ``states``: states of the automaton worked out so far; ``compactions``: how often unneeded memory
          was given back.
        - ``shed_partitions`` and ``shed_events``: partitions dropped to save memory, and events that only
          they needed.
        - ``seconds``: the time spent to classify and to recognize events.
        """
        with self._by_one_thread(), self._turn.lock:
            self._expire()
            counts = {**self._intake.counts(), "waiting": self._recognition.waiting}
            return self._meter.shown(counts, self._extent())

    def push(self, events: object) -> Answer:
        """Takes events and returns the answer that they decide, with events held back until now.

        `events` is one event, as a dict (a missing key is NULL) or as a tuple with a value for each column;
        a list of events; a record batch, or a list of these; a table of pyarrow, pandas or Polars; or, where
        each type has its own table, a mapping of type name to any of these. Raises `DataError`, and changes
        nothing, for events without a time or with other columns and types than declared.
        """
        with self._by_one_thread():
            return self._within_limit(self._notify(self._pushed(events)))

    def flush(self) -> Answer:
        """Recognizes all events that are held back and returns their answer.

        Earlier events that come afterwards are late.
        """
        with self._by_one_thread():
            return self._notify(self._flushed())

    def advance(self, time: Until) -> Answer:
        """Moves the watermark up to `time`, also of an idle stream, and returns what that decides.

        `time` has the type of the time column, or is its text. Events that were held back until then are
        recognized, windows and deadlines before it have passed, and earlier events are late from now on. A
        `time` that is not later than the watermark changes nothing. Raises `DataError` for a value that is
        not a time, and where events have no time.
        """
        with self._by_one_thread():
            return self._notify(self._advanced(time))

    def close(self, *, until: Until | None = None) -> Answer:
        """Ends the stream: recognizes all events that are held back and returns the last answers.

        Nothing can be pushed afterwards. Deadlines of ``NOT(…) FOR d`` and windows of partial matches are
        decided up to the last event, or up to `until`: a time, or "end" if no events will follow. Raises
        `DataError` for a time before the last event.
        """
        with self._by_one_thread():
            answer = self._notify(self._closed(until))
            self._turn.fail("the recognizer is closed: make a new one, or restore a snapshot of it")
            return answer

    async def over(self, events: AsyncIterable[object]) -> AsyncIterator[Answer]:
        """Pushes all batches, flushes at the end, and yields the answers that are not empty.

        Each answer is valid until the next one is asked for.
        """
        async for event in events:
            answer = self.push(event)
            if self._is_something(answer):
                yield answer
        answer = self.flush()
        if self._is_something(answer):
            yield answer

    def snapshot(self, *, key: bytes | None = None) -> bytes:
        """The state as bytes, from which `estero.restore` resumes, in this or in another process.

        A `key` of at least 16 bytes signs it: `restore` needs the same key, and nobody without it can write
        or change such a state. Raises ValueError for a key that is too short.
        """
        with self._by_one_thread():
            check_key(key)
            with self._turn.lock:
                return self._snapshot(key)

    def __repr__(self) -> str:
        try:
            with self._by_one_thread(sound=False):
                numbers = self._numbers()
        except EsteroError:
            numbers = "busy in another thread"
        return legible(f"{type(self).__name__}({numbers})\n{self._plan.text}", lines=True)

    def _repr_html_(self) -> str:
        from estero.markup.colours import LabelColours
        from estero.markup.html import element
        from estero.markup.query_text import highlighted, in_lines
        from estero.markup.style import shown
        from estero.markup.tables import named_values

        rows: list[tuple[str, object]] = []
        try:
            with self._by_one_thread(sound=False):
                intake = self._intake
                numbers = {"events": intake.position, "held back": intake.held_back, "late": intake.late}
                rows += [(name, f"{number:,}") for name, number in numbers.items()]
                rows += [("known up to", intake.known_time)] if intake.known_time is not None else []
        except EsteroError:
            rows.append(("events", "busy in another thread"))
        head = element("p", element("b", type(self).__name__))
        query = highlighted(in_lines(self._plan.text), LabelColours.of_query(self._plan.tree).places)
        return shown(head, named_values(rows, named=type(self).__name__), element("pre", query))

    def _notify(self, answer: Answer) -> Answer:
        """Tells the listeners of an answer that is not empty; returns it."""
        if self._listeners and self._is_something(answer):
            self._tell(answer)
        return answer

    # ------------------------------------------------------------------------------ what all of them do

    def _pushed(self, events: object) -> Answer:
        self._meter.begin()
        one = self._intake.take_one(events)
        if one is None:
            return self._metered(self._intake.take(events))
        position, event = one
        self._meter.classified(event is not None)
        answer = self._recognized_one(position, event)
        self._meter.recognized(self._ends(answer))
        return answer

    def _metered(self, relevant: pa.RecordBatch) -> Answer:
        """The answer to relevant events that were classified since the meter began."""
        self._meter.classified(relevant.num_rows)
        answer = self._recognized(relevant)
        self._meter.recognized(self._ends(answer))
        return answer

    def _flushed(self) -> Answer:
        self._meter.begin()
        return self._metered(self._intake.flush())

    def _advanced(self, time: Until) -> Answer:
        ticks = passed_time(time, self._intake.time_type)
        self._meter.begin()
        answer = self._metered(self._intake.advance(ticks))
        with self._turn.lock:
            self._expire()
        return answer

    def _closed(self, until: Until | None) -> Answer:
        known = None
        if until is not None:
            time = self._intake.time_type
            known = known_until(until, self._plan, time, partials=self._tells_partials)
            check_until(known, self._intake.greatest)
        self._meter.begin()
        relevant = self._intake.flush()
        times = [time for time in (known, self._intake.watermark) if time is not None]
        self._meter.classified(relevant.num_rows)
        answer = self._recognized_last(relevant, max(times, default=None))
        self._meter.recognized(self._ends(answer))
        self._intake.close()
        return answer

    def _in_turn(self, recognize: Callable[[], T]) -> tuple[int, T]:
        """The number of this turn, and what is recognized in it."""
        with self._next_turn() as number:
            return number, recognize()

    @property
    def _intake(self) -> Intake:
        return self._events

    def _let_go(self) -> None:
        self._recognition.let_go()

    def _shed_some(self) -> int:
        return self._recognition.shed()

    def _expire(self) -> None:
        """Closes windows before which no event comes any more."""
        self._recognition.expire(position=self._intake.position, time=self._intake.passed)

    def _within_limit(self, answer: Answer) -> Answer:
        if self._guard is not None:
            size = self._recognition.size + self._intake.held_back
            read = self._intake.position + self._intake.held_back
            can_shed = self._recognition.can_shed
            self._guard.check(read, size, self._extent, answer, can_shed=can_shed)
        return answer

    def _extent(self) -> Extent:
        extent = self._recognition.extent()
        return extent._replace(bytes=extent.bytes + self._intake.held_bytes)

    def _progress(self) -> RecognizerProgress:
        self._expire()
        intake, window = self._intake, self._plan.window
        steps, oldest = self._recognition.open_runs()
        expires: Any = None
        if oldest is not None and window is not None and window.in_positions:
            expires = oldest[0] + window.length
        elif oldest is not None and window is not None and intake.time_type is not None:
            after = times_after(np.array([oldest[1]], np.int64), window.length, intake.time_type)
            (expires,) = shown_values(after)
        return RecognizerProgress(
            position=intake.position,
            held_back=intake.held_back,
            late=intake.late,
            waiting=self._recognition.waiting,
            steps=steps,
            oldest_start=None if oldest is None else oldest[0],
            oldest_time=None if oldest is None else intake.shown_time(oldest[1]),
            expires=expires,
        )

    def _numbers(self) -> str:
        """The number of events, and up to when they are known, in words."""
        intake = self._intake
        return (
            f"{intake.position:,} events, {intake.held_back:,} held back, {intake.late:,} late{intake.known}"
        )

    def _about(self) -> dict[str, str]:
        return plan_about(self._kind, self._plan, self._intake.schema)

    def _snapshot(self, key: bytes | None) -> bytes:
        arrays: dict[str, NDArray[Any]] = {
            "recognition": np.frombuffer(self._recognition.snapshot(), np.uint8),
            **self._intake.snapshot(),
            **self._intake.schemas(),
        }
        return written(State({**self._about(), **self._intake.about()}, arrays), key)

    def _taken_up(self, state: State | None) -> bytes | None:
        """Takes up what a state holds of events, if there is one; the state of the recognition in it."""
        if state is None:
            return None
        refuse_other(state.about, self._about())
        self._intake.resume(state.arrays)
        with sound_content():
            recognition: bytes = state.arrays["recognition"].tobytes()
        return recognition

    # ------------------------------------------------------------------------------- where they differ

    @abstractmethod
    def _recognized_one(self, position: int, event: ClassifiedRow | None) -> Answer:
        """The answer to a single event, None where it is not relevant."""

    @abstractmethod
    def _recognized(self, relevant: pa.RecordBatch) -> Answer:
        """The answer to the relevant ones of the next events, in stream order."""

    @abstractmethod
    def _recognized_last(self, relevant: pa.RecordBatch, known: int | None) -> Answer:
        """The answer to the last events of the stream, which is known up to time `known`."""

    @abstractmethod
    def _ends(self, answer: Answer) -> int:
        """At how many events the answer of the last turn ends, or how many rows it has."""

    @abstractmethod
    def _is_something(self, answer: Answer) -> bool:
        """Whether the answer of the last turn is not empty."""
