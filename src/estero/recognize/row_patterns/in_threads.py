"""Parts computed by several threads and given in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
S = TypeVar("S")


def in_threads(function: Callable[[T], S], items: Iterable[T], threads: int) -> Iterator[S]:
    """The results of a function in the order of its items; no more are begun than there are threads.

    One item, or one thread, does without further threads.
    """
    source = iter(items)
    head = list(islice(source, 2))
    if threads == 1 or len(head) < 2:
        yield from map(function, chain(head, source))
        return
    from estero.recognize.threads.lanes import started  # 15 ms

    waiting: deque[Future[S]] = deque()
    with started(threads) as workers:
        for item in chain(head, source):
            waiting.append(workers.submit(function, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
