"""Several partitions of a topic, read in parallel so that none runs ahead of the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice, repeat, takewhile
from operator import itemgetter
from typing import Generic, TypeVar

Message = TypeVar("Message")
Partition = tuple[str, int]


@dataclass(slots=True)
class Alignment(Generic[Message]):
    """Messages that wait until no other partition can have earlier ones, by the times of the broker.

    `time` returns the time of a message. Without alignment, reading a backlog would return hours of one
    partition and then those of the next one, whose events would be late. A partition that is read to its end
    does not delay others.
    """

    time: Callable[[Message], int]
    _waiting: dict[Partition, deque[tuple[int, Message]]] = field(default_factory=dict)
    _latest: dict[Partition, int] = field(default_factory=dict)

    def add(self, partition: Partition, message: Message) -> None:
        """Adds the next message of a partition."""
        latest = max(self._latest.get(partition, 0), self.time(message))
        self._latest[partition] = latest  # times in a partition may decrease; offsets do not
        self._waiting.setdefault(partition, deque()).append((latest, message))

    def take(
        self, partitions: Collection[Partition], ends: Collection[Partition], most: int
    ) -> list[Message]:
        """The earliest messages that need not wait, in order; partitions in `ends` are read to their ends."""
        behind = [self._latest.get(name, -1) for name in partitions if name not in ends]
        limit = min(behind, default=None)
        queues = [
            zip(map(itemgetter(0), waiting), repeat(name), strict=False)
            for name, waiting in self._waiting.items()
        ]
        ready = islice(merge(*queues), most)
        names = [name for time, name in takewhile(lambda one: limit is None or one[0] <= limit, ready)]
        return [self._waiting[name].popleft()[1] for name in names]

    def crowded(self, most: int) -> set[Partition]:
        """The partitions with at least `most` waiting messages."""
        return {name for name, waiting in self._waiting.items() if len(waiting) >= most}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))
