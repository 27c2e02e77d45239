"""Threads that produce streams of items ahead of their reader, up to a bound."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from threading import Condition
from typing import Generic, TypeVar

from estero.events.fetching import SIGNALS_S, refuse_forked

_CAPACITY = 8
"""The most items that wait in a channel; a table has up to 65,536 rows."""

T = TypeVar("T")


class Channel(Generic[T]):
    """A bounded queue between a thread that puts items and one that iterates over them, once.

    An error in the thread is raised at the reader, after the items before it. A forked process lacks the
    thread: reading on there raises `EnvironmentProblem`.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._changed = Condition()
        self._items: deque[T] = deque()
        self._ended = self._closed = False
        self._error: BaseException | None = None

    def fill(self, items: Callable[[], Iterable[T]]) -> None:
        """Puts all items, and waits while the channel is full; ends early if it is closed."""
        error = None
        try:
            if not self._closed:
                for item in items():
                    if not self._put(item):
                        break
        except BaseException as raised:  # noqa: BLE001 - raised again where the items are read
            error = raised
        with self._changed:
            self._error, self._ended = error, True
            self._changed.notify_all()

    def _put(self, item: T) -> bool:
        """Puts an item; returns whether there is still a reader."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._items) < _CAPACITY)
            self._items.append(item)
            self._changed.notify_all()
            return not self._closed

    def __iter__(self) -> Iterator[T]:
        while True:
            refuse_forked(self._process)
            with self._changed:
                while not self._changed.wait_for(lambda: self._items or self._ended, SIGNALS_S):
                    pass
                if not self._items:
                    break
                item = self._items.popleft()
                self._changed.notify_all()
            yield item
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Ends the reading, and so the thread at its next item."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()


class Channels(Generic[T]):
    """Channels that executors fill; all are closed when the block is left."""

    def __init__(self) -> None:
        self._open: list[Channel[T]] = []
        self._process = os.getpid()

    def __enter__(self) -> Channels[T]:
        return self

    def __exit__(self, *_: object) -> None:
        if os.getpid() == self._process:  # the locks of a forked process may be held by threads that it lacks
            for channel in self._open:
                channel.close()

    def begin(self, executor: Executor, items: Callable[[], Iterable[T]]) -> Channel[T]:
        """A channel that a thread of the executor fills."""
        channel: Channel[T] = Channel()
        self._open.append(channel)
        executor.submit(channel.fill, items)
        return channel

    def read(self, channel: Channel[T]) -> Iterator[T]:
        """The items of a channel, which is closed after them."""
        yield from channel
        self._open.remove(channel)
