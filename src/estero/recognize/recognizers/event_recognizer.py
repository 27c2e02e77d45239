"""The common part of recognizers to which events are pushed: of one query, or of a set of rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import pyarrow as pa

from estero.arguments import checked
from estero.errors import EsteroError
from estero.recognize.metrics import Extent, Meter
from estero.recognize.recognizers.increment import Turn
from estero.recognize.recognizers.memory_limit import MemoryGuard, MemoryPolicy, bytes_of, shed_to

if TYPE_CHECKING:
    from estero.recognize.recognizers.intake import Intake

Given = TypeVar("Given")
"""The result of a push."""
T = TypeVar("T")


class _Unbroken:
    """Holds the lock of a turn: other threads finish a batch first. After an error no turn follows.

    A class rather than a generator, whose cost shows in pushes of a few events.
    """

    __slots__ = ("_turn",)

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def __enter__(self) -> None:
        self._turn.lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        self._turn.lock.release()
        if kind is not None:
            self._turn.fail(
                "recognition broke off in an earlier push, so that its state is not to be trusted: "
                "restore the last snapshot"
            )


@checked
class EventRecognizer(ABC, Generic[Given]):
    """Counts pushed events, is restricted to one thread and a limit of memory, and notifies listeners."""

    _beside_pushing: ClassVar[str]
    """What another thread may do at the same time, in a word."""

    def __init__(self) -> None:
        self._turn = Turn()
        self._meter = Meter()
        self._guard: MemoryGuard | None = None
        self._listeners: list[Callable[[Given], object]] = []
        self._thread = RLock()

    @property
    def late(self) -> int:
        """The number of all events so far that came too late."""
        return self._intake.late

    @property
    def held_back(self) -> int:
        """The number of events held back, because earlier ones may still come."""
        return self._intake.held_back

    @property
    def watermark(self) -> int | None:
        """The time before which no more events are expected, in ticks; None where there is none yet."""
        return self._intake.watermark

    @property
    def position(self) -> int:
        """The position of the next event."""
        return self._intake.position

    def limit_memory(self, limit: int | str, policy: MemoryPolicy = "error") -> None:
        """Limits the state: from now on a push that leaves a larger one raises `LimitExceeded`.

        `limit` is in bytes, or a text such as "500 MB". The events of that push are recognized, and the error
        holds their answer. The size is that of a snapshot, of all rules for a set, and is measured from time
        to time as events come. With the policy "shed" the next push first drops partitions, as `shed` does,
        and the error is raised only if there are none. Raises ValueError for an invalid size or policy.
        """
        self._guard = MemoryGuard(bytes_of(limit), policy)

    @property
    def over_limit(self) -> bool:
        """Whether the state is above its limit, so that the next push sheds some of it."""
        return self._guard is not None and self._guard.over

    def shed(self, limit: int | str) -> int:
        """Drops the oldest partitions until the state is within `limit`, and returns how many.

        The oldest are those in which nothing has begun for the longest time; a quarter goes at a time, and in
        a set of rules a partition belongs to one rule. A dropped partition begins anew with its next event,
        and all others keep their answers. `limit` is as in `limit_memory`. There is nothing to drop for
        queries without PARTITION BY, and for those that choose by start, join by keys, or give partial
        matches. Earlier answers can no longer be read.
        """
        size = bytes_of(limit)
        with self._going_on():
            if self._guard is not None:
                self._guard.over = False  # shed once, not again
            with self._next_turn():
                return self._shed_to(size)

    def late_events(self) -> pa.Table:
        """The late events of the last push, as they were pushed."""
        return self._intake.late_events()

    def on_match(self, tell: Callable[[Given], T]) -> Callable[[Given], T]:
        """Registers a function to be called with every answer that is not empty, before it is returned.

        Functions are called in the order of their registration. Returns `tell`, so it can be a decorator.
        """
        self._listeners.append(tell)
        return tell

    @contextmanager
    def _by_one_thread(self, *, sound: bool = True) -> Iterator[None]:
        """Reserves the recognizer for this thread; raises `EsteroError` while another thread uses it.

        Also raises it if the recognizer cannot continue, unless it need not be `sound`.
        """
        if not self._thread.acquire(blocking=False):
            raise EsteroError(
                f"another thread is pushing to this recognizer or {self._beside_pushing} it, and events have "
                "one order: use it from one thread, or hold a lock of your own around each call"
            )
        try:
            if sound:
                self._turn.check_sound()
            yield
        finally:
            self._thread.release()

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """As `_by_one_thread`, after what the last change has left to do."""
        with self._by_one_thread():
            with _Unbroken(self._turn):
                self._catch_up()
            yield

    @contextmanager
    def _next_turn(self) -> Iterator[int]:
        """The number of this turn, which does not depend on earlier ones; an error makes it the last."""
        number = self._turn.next()
        with _Unbroken(self._turn):
            self._let_go()
            if self._guard is not None and self._guard.over:
                self._shed_to(self._guard.limit)
            yield number

    def _shed_to(self, limit: int) -> int:
        shed = shed_to(limit, self._extent, self._shed_some)
        self._meter.shed(*shed)
        if self._guard is not None:
            self._guard.over = False
        return shed.partitions

    def _tell(self, given: Given) -> None:
        """Notifies the listeners of a result."""
        for tell in self._listeners:
            tell(given)

    # ------------------------------------------------------------------------------- where they differ

    def _catch_up(self) -> None:
        """Does what a change has left for the next call."""

    @property
    @abstractmethod
    def _intake(self) -> Intake:
        """The intake of events."""

    @abstractmethod
    def _let_go(self) -> None:
        """Frees what only answers of earlier turns needed."""

    @abstractmethod
    def _shed_some(self) -> int:
        """Drops some of the oldest partitions; returns how many, 0 if there is nothing to shed."""

    @abstractmethod
    def _extent(self) -> Extent:
        """The size of the state needed to continue, including events held back."""
