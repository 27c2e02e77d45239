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
"""What a push gives."""
T = TypeVar("T")


@checked
class EventRecognizer(ABC, Generic[Given]):
    """Counts the events that are pushed, keeps to one thread and a limit of memory, and tells listeners."""

    _beside_pushing: ClassVar[str]
    """What another thread may do meanwhile, in a word."""

    def __init__(self) -> None:
        self._turn = Turn()
        self._meter = Meter()
        self._guard: MemoryGuard | None = None
        self._listeners: list[Callable[[Given], object]] = []
        self._thread = RLock()

    @property
    def late(self) -> int:
        """The number of events that came too late, of all that were pushed."""
        return self._intake.late

    @property
    def held_back(self) -> int:
        """The number of events that wait for earlier ones that may still come."""
        return self._intake.held_back

    @property
    def watermark(self) -> int | None:
        """The time before which no event is expected any more, in ticks; None where none is known."""
        return self._intake.watermark

    @property
    def position(self) -> int:
        """The position that the next event gets."""
        return self._intake.position

    def limit_memory(self, limit: int | str, policy: MemoryPolicy = "error") -> None:
        """Has pushes raise `LimitExceeded` from now on where the state behind them takes more.

        `limit` is in bytes, or a text such as "500 MB". The events of such a push are recognized, and the
        answer is in the error. The state, of a set that of all rules, is measured as a snapshot has it, again
        and again as events come, so that this takes a part of the time only. With the policy "shed" the next
        push first sheds, as `shed` does, and the error comes only where there is nothing to shed. Raises
        ValueError for what is no size or policy.
        """
        self._guard = MemoryGuard(bytes_of(limit), policy)

    @property
    def over_limit(self) -> bool:
        """Whether the state takes more than it may, so that the next push sheds some of it."""
        return self._guard is not None and self._guard.over

    def shed(self, limit: int | str) -> int:
        """Drops what is open in the oldest partitions until the state takes no more than that; how many.

        These are the partitions in which nothing has begun for longest, a quarter of them at a time; in a set
        a partition is one of one rule. They begin anew with their next events; all others have the answers
        that they would have anyway. `limit` is as for `limit_memory`. Queries without PARTITION BY, and those
        that choose by start, join by keys, or give partial matches have nothing to shed. Answers from before
        cannot be asked any more.
        """
        size = bytes_of(limit)
        with self._going_on():
            if self._guard is not None:
                self._guard.over = False  # to be shed now, and not once more
            with self._next_turn():
                return self._shed_to(size)

    def late_events(self) -> pa.Table:
        """The events of the last push that came too late, as they were pushed."""
        return self._intake.late_events()

    def on_match(self, tell: Callable[[Given], T]) -> Callable[[Given], T]:
        """Has `tell` called, from now on, with each answer that is not empty, before it is returned.

        Several are called in the order in which they came. Returns `tell`, so it can decorate a function.
        """
        self._listeners.append(tell)
        return tell

    @contextmanager
    def _by_one_thread(self, *, sound: bool = True) -> Iterator[None]:
        """Inside it the recognizer is this thread's; raises `EsteroError` while it is another one's.

        So it does where the recognizer cannot go on, unless it need not be `sound`.
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
        """As `_by_one_thread`, behind what the last change has left to do."""
        with self._by_one_thread():
            with self._unbroken():
                self._catch_up()
            yield

    @contextmanager
    def _next_turn(self) -> Iterator[int]:
        """The number of this turn, which needs nothing of those before; one that breaks is the last."""
        number = self._turn.next()
        with self._unbroken():
            self._let_go()
            if self._guard is not None and self._guard.over:
                self._shed_to(self._guard.limit)
            yield number

    @contextmanager
    def _unbroken(self) -> Iterator[None]:
        """Holds the lock of the turn: another thread reads to the end of a batch. An error is the last."""
        try:
            with self._turn.lock:
                yield
        except BaseException:
            self._turn.fail(
                "recognition broke off in an earlier push, so that its state is not to be trusted: "
                "restore the last snapshot"
            )
            raise

    def _shed_to(self, limit: int) -> int:
        shed = shed_to(limit, self._extent, self._shed_some)
        self._meter.shed(*shed)
        if self._guard is not None:
            self._guard.over = False
        return shed.partitions

    def _tell(self, given: Given) -> None:
        """Tells the listeners of what is given."""
        for tell in self._listeners:
            tell(given)

    # ------------------------------------------------------------------------------- where they differ

    def _catch_up(self) -> None:
        """Does what a change has left for the next call."""

    @property
    @abstractmethod
    def _intake(self) -> Intake:
        """The events as they come."""

    @abstractmethod
    def _let_go(self) -> None:
        """Frees what only answers of earlier turns needed."""

    @abstractmethod
    def _shed_some(self) -> int:
        """Drops some of the oldest partitions; how many, 0 where there is nothing to shed."""

    @abstractmethod
    def _extent(self) -> Extent:
        """How much is needed to go on, with what is held back."""
