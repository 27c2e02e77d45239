"""What every recognizer of a stream without an end does, whatever rows its answers have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from html import escape
from threading import RLock
from typing import TypeVar

import pyarrow as pa

from estero.answers.answer import Answer
from estero.arguments import checked
from estero.errors import EsteroError, legible
from estero.recognize.increment import Turn
from estero.recognize.progress import RecognizerProgress
from estero.recognize.state_bytes import check_key
from estero.recognize.until import Until

T = TypeVar("T")


@checked
class StreamRecognizer(ABC):
    """Events are pushed, time passes, and answers come back; who wants to be told of them is.

    What differs is what `push`, `flush`, `advance` and `close` give: see `ContinuousRecognizer`, and
    `PartialsRecognizer` for partial matches.
    """

    def __init__(self) -> None:
        self._turn = Turn()
        self._told: list[Callable[[Answer], object]] = []
        self._thread = RLock()

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of answers."""

    @property
    @abstractmethod
    def late(self) -> int:
        """How many events came too late, of all that were pushed."""

    @property
    @abstractmethod
    def held_back(self) -> int:
        """How many events wait for earlier ones that may still come."""

    @property
    @abstractmethod
    def watermark(self) -> int | None:
        """The time before which no event is expected any more, in ticks; None before the first event."""

    @property
    @abstractmethod
    def position(self) -> int:
        """The position that the next event gets."""

    @property
    @abstractmethod
    def why_slow(self) -> str | None:
        """Why single events go the way of batches, through DuckDB; None where they do not."""

    def progress(self) -> RecognizerProgress:
        """What was read, and which partial matches are open; it takes as long as a snapshot."""
        with self._by_one_thread():
            self._turn.check_sound()
            with self._turn.lock:
                return self._progress()

    @abstractmethod
    def late_events(self) -> pa.Table:
        """The events of the last push that came too late, as they were pushed."""

    def push(self, events: object) -> Answer:
        """What these events decide: complex events that end with them, or with what was held back until now.

        `events` is one event, as a dict (a missing key is NULL) or as a tuple with a value for each column;
        or a list of these, a record batch, a table of pyarrow, pandas or Polars, a list of batches; where
        each type has its own table, a mapping of type name to these. Raises `DataError` where an event does
        not have the columns and types that were declared, or no time; nothing is changed then.
        """
        with self._by_one_thread():
            self._turn.check_sound()
            return self._told_of(self._pushed(events))

    def flush(self) -> Answer:
        """Lets all events go that are held back, and gives what they decide.

        No earlier events are expected any more: those that come are late.
        """
        with self._by_one_thread():
            self._turn.check_sound()
            return self._told_of(self._flushed())

    def advance(self, time: Until) -> Answer:
        """What is decided as no event before `time` comes any more, on a stream that is idle, too.

        `time` is in the type of the time column, or its text. The watermark moves up to it: events that were
        held back so long are let go, windows and deadlines before it have passed, and events before it are
        late from now on. Nothing happens where the watermark is as late already. Raises `DataError` for what
        is no time, and where events have none.
        """
        with self._by_one_thread():
            self._turn.check_sound()
            return self._told_of(self._advanced(time))

    def close(self, *, until: Until | None = None) -> Answer:
        """As `flush`; nothing can be pushed afterwards, so that all is decided that was not.

        What waits for a deadline of ``NOT(…) FOR d`` is decided if that is before the last event, or before
        `until`: a time, or "end" where nothing comes any more; so are windows of partial matches. Raises
        `DataError` for a time before the last event.
        """
        with self._by_one_thread():
            self._turn.check_sound()
            answer = self._told_of(self._closed(until))
            self._turn.fail("the recognizer is closed: make a new one, or restore a snapshot of it")
            return answer

    def on_match(self, tell: Callable[[Answer], T]) -> Callable[[Answer], T]:
        """Has `tell` called, from now on, with each answer that is not empty, before it is returned.

        Several are called in the order in which they came. Returns `tell`, so it can decorate a function.
        """
        self._told.append(tell)
        return tell

    async def over(self, events: AsyncIterable[object]) -> AsyncIterator[Answer]:
        """The answers that are not empty, of pushing all that comes, and of a flush where that ends.

        Each is good until the next one is asked for.
        """
        async for each in events:
            answer = self.push(each)
            if self._is_something(answer):
                yield answer
        answer = self.flush()
        if self._is_something(answer):
            yield answer

    def snapshot(self, *, key: bytes | None = None) -> bytes:
        """All that is needed to go on in another process (`estero.restore`), and nothing that is over.

        With a `key`, bytes of which at least 16, only who has it can write such a state or change it, and
        `restore` asks for it. Raises ValueError for a key that is none.
        """
        with self._by_one_thread():
            self._turn.check_sound()
            check_key(key)
            with self._turn.lock:
                return self._snapshot(key)

    def __repr__(self) -> str:
        try:
            with self._by_one_thread():
                numbers = self._numbers()
        except EsteroError:
            numbers = "busy in another thread"
        return legible(f"{type(self).__name__}({numbers})\n{self._text}", lines=True)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(legible(repr(self), lines=True))}</pre>"

    @contextmanager
    def _by_one_thread(self) -> Iterator[None]:
        """Inside it the recognizer is this thread's; raises `EsteroError` while it is another one's."""
        if not self._thread.acquire(blocking=False):
            raise EsteroError(
                "another thread is pushing to this recognizer or asking it, and events have one order: "
                "use it from one thread, or hold a lock of your own around each call"
            )
        try:
            yield
        finally:
            self._thread.release()

    def _told_of(self, answer: Answer) -> Answer:
        if self._told and self._is_something(answer):
            for tell in self._told:
                tell(answer)
        return answer

    # ------------------------------------------------------------------------------- where they differ

    @abstractmethod
    def _pushed(self, events: object) -> Answer:
        """The answer to events."""

    @abstractmethod
    def _flushed(self) -> Answer:
        """The answer to all that is held back."""

    @abstractmethod
    def _advanced(self, time: Until) -> Answer:
        """The answer to time that passes."""

    @abstractmethod
    def _closed(self, until: Until | None) -> Answer:
        """The last answer."""

    @abstractmethod
    def _progress(self) -> RecognizerProgress:
        """What `progress` gives."""

    @abstractmethod
    def _snapshot(self, key: bytes | None) -> bytes:
        """What `snapshot` gives."""

    @abstractmethod
    def _numbers(self) -> str:
        """How many events there were, and up to when they are known, in words."""

    @property
    @abstractmethod
    def _text(self) -> str:
        """The canonical text of the query."""

    @abstractmethod
    def _is_something(self, answer: Answer) -> bool:
        """Whether the answer of the last turn is not empty."""
