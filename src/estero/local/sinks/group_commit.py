"""Transactions with the items of several batches, committed while later batches are recognized."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Condition, Thread
from time import monotonic
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_MOST: Final = 20_000
"""The largest number of items that wait for their transaction; a batch that exceeds it waits, too."""
_BETWEEN: Final = 0.003
"""The seconds that a broker needs to close a transaction; beginning earlier costs 20 ms in librdkafka."""


class GroupCommit(Generic[T]):
    """A thread that commits the waiting items, with the number of the last batch, after each commit.

    A batch thus waits for at most one transaction before its own begins. Transactions are at least `interval`
    seconds apart, unless `wait` is called. Errors of `commit` are raised by the next `put`, `check` or
    `wait`, and nothing is committed afterwards. `committed` is the last committed batch.
    """

    def __init__(self, commit: Callable[[Sequence[T], int], None], committed: int, interval: float) -> None:
        self.committed = committed
        self._commit = commit
        self._interval = interval
        self._changed = Condition()
        self._items: list[T] = []
        self._last = committed
        self._is_busy = self._is_urgent = self._is_closed = False
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._run, name="estero-commits", daemon=True)
        self._thread.start()

    def put(self, number: int, items: Sequence[T]) -> None:
        """Adds the items of a batch; waits if many are waiting already."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure or len(self._items) < _MOST)
            self.check()
            self._items += items
            self._last = number
            if not self._items and not self._is_busy:
                self.committed = number
            self._changed.notify_all()

    def wait(self) -> None:
        """Waits until everything is committed."""
        with self._changed:
            self._is_urgent = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._failure or not (self._items or self._is_busy))
            self._is_urgent = False
            self.check()

    def close(self) -> None:
        """Ends the thread after the current transaction; waiting items are dropped."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def check(self) -> None:
        """Raises the error of a commit, if there was one."""
        if self._failure is not None:
            raise self._failure

    def _waits_for_no_time(self) -> bool:
        return self._is_urgent or self._is_closed or len(self._items) >= _MOST

    def _run(self) -> None:
        earliest = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._is_closed)
                left = max(0.0, earliest - monotonic())
                self._changed.wait_for(self._waits_for_no_time, left)
                if self._is_closed:
                    return
                items, number = self._items, self._last
                self._items, self._is_busy = [], True
                self._changed.notify_all()
            begun = monotonic()
            failure: BaseException | None = None
            try:
                self._commit(items, number)
            except BaseException as error:  # noqa: BLE001 (raised where the stream is)
                failure = error
            earliest = max(begun + self._interval, monotonic() + _BETWEEN)
            with self._changed:
                self._is_busy = False
                if failure is None:
                    self.committed = number if self._items else self._last
                self._failure = failure
                self._changed.notify_all()
                if failure is not None:
                    return
