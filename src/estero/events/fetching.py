"""Batches fetched by a separate thread, ahead of the one that consumes them."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from queue import Empty, Queue
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from estero.errors import EnvironmentProblem

if TYPE_CHECKING:
    from concurrent.futures import Future

AHEAD = 2
"""The largest number of waiting batches: neither side idles, and memory stays bounded."""

SIGNALS_S = 0.5
"""The seconds for which a thread waits at a time: a Ctrl-C just before it waits does not wake it."""

_PATIENCE_S = 5.0


class AbandonedError(Exception):
    """Raised inside a stream that is no longer read."""


T = TypeVar("T")
S = TypeVar("S")


def mapped(
    function: Callable[[S], T], items: Iterable[S], threads: int, ahead_by: int = AHEAD
) -> Iterator[T]:
    """The results of a function over items, in order, each thread at most `ahead_by` items ahead.

    With one item, or one thread, no further threads are started.
    """
    source = iter(items)
    head = list(islice(source, 2))
    if threads == 1 or len(head) < 2:
        yield from map(function, chain(head, source))
        return
    from concurrent.futures import ThreadPoolExecutor  # 15 ms, which one thread can save

    with ThreadPoolExecutor(threads, thread_name_prefix="estero-classify") as workers:
        ahead: deque[Future[T]] = deque()
        try:
            for item in chain(head, source):
                ahead.append(workers.submit(function, item))
                if len(ahead) > ahead_by * threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()


def refuse_forked(process: int) -> None:
    """Raises `EnvironmentProblem` in any process but this one, because a fork lacks its threads."""
    if os.getpid() != process:
        raise EnvironmentProblem(
            "the process was forked while these complex events were being read, and the new process "
            "cannot read on: ask the answer again there, or read it after the fork"
        )


def fetched(
    batches: Callable[[], Iterable[pa.RecordBatch]], interrupt: Callable[[], None], stopped: threading.Event
) -> Iterator[pa.RecordBatch]:
    """The values that `batches()` yields, fetched by a separate thread; its errors are raised here.

    The consuming thread only waits on a queue, where Ctrl-C reaches it at once (inside DuckDB, or inside a
    Python stream that DuckDB reads, it may be lost). If the consumer stops early, `stopped` is set and
    `interrupt()` called. Raises `EnvironmentProblem` in a forked process, which lacks the thread.
    """
    process = os.getpid()
    queue: Queue[pa.RecordBatch | BaseException | None] = Queue(AHEAD)

    def fetch() -> None:
        outcome: BaseException | None = None
        try:
            for batch in batches():
                queue.put(batch)
                if stopped.is_set():
                    break
        except BaseException as error:  # noqa: BLE001  (handed to the consumer as it is)
            outcome = error
        queue.put(outcome)

    thread = threading.Thread(target=fetch, name="estero-fetch", daemon=True)
    thread.start()
    try:
        while isinstance(item := _taken(queue), pa.RecordBatch):
            yield item
            refuse_forked(process)
        if item is not None:
            raise item
    finally:
        if os.getpid() == process:
            stopped.set()
            _end(thread, queue, interrupt)


def _taken(queue: Queue[T]) -> T:
    """The next item of a queue, however long it takes; Ctrl-C ends the wait."""
    while True:
        try:
            return queue.get(timeout=SIGNALS_S)
        except Empty:
            continue


def _end(
    thread: threading.Thread,
    queue: Queue[pa.RecordBatch | BaseException | None],
    interrupt: Callable[[], None],
) -> None:
    """Waits, for a limited time, for the thread, which may be about to put one more batch."""
    for _ in range(int(_PATIENCE_S * 100)):
        if not thread.is_alive():
            return
        interrupt()
        try:
            queue.get_nowait()
        except Empty:
            thread.join(0.01)
