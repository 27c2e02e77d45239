"""Lanes: threads each of which has the partitions of some keys, for the whole stream."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.column_names import KEYS
from estero.classify.vectors.taking import taken
from estero.engine.lanes import rows_by_lane
from estero.recognize.batch_columns import numbers_of
from estero.recognize.threads.channels import Channel, Channels

AHEAD = 2
"""The number of parts that are begun for a thread before the first of them has been read."""

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
Part_contra = TypeVar("Part_contra", contravariant=True)
Part = TypeVar("Part")
Batch = TypeVar("Batch")


class Lane(Protocol[Part_contra, T_co]):
    """The work of one thread on its part of the stream."""

    def push(self, part: Part_contra, /) -> Iterable[T_co]:
        """The items of its part of the next batch."""

    def rest(self) -> Iterable[T_co]:
        """The items at the end of the stream."""


def along_lanes(
    lanes: Sequence[Lane[pa.RecordBatch, T]],
    batches: Iterable[pa.RecordBatch],
    merged: Callable[[Sequence[Iterator[T]]], Iterator[T]],
    read: Callable[[pa.RecordBatch], None] | None = None,
) -> Iterator[T]:
    """The items of all lanes, `merged` batch by batch; `read` is called with each batch after its items."""
    return dealt_to_lanes([_Taking(lane) for lane in lanes], batches, _dealt, merged, read)


def dealt_to_lanes(
    lanes: Sequence[Lane[Part, T]],
    batches: Iterable[Batch],
    deal: Callable[[Batch, int], Iterable[Part]],
    merged: Callable[[Sequence[Iterator[T]]], Iterator[T]],
    read: Callable[[Batch], None] | None = None,
) -> Iterator[T]:
    """As `along_lanes`, for batches of any kind: `deal` divides one into as many parts as there are lanes."""
    begun: deque[tuple[Batch, list[Channel[T]]]] = deque()
    with ExitStack() as stack:
        workers = [stack.enter_context(started(1)) for _ in lanes]
        channels: Channels[T] = stack.enter_context(Channels())

        def first() -> Iterator[T]:
            batch, parts = begun.popleft()
            yield from merged([channels.read(part) for part in parts])
            if read is not None:
                read(batch)

        for batch in batches:
            dealt = zip(workers, lanes, deal(batch, len(lanes)), strict=True)
            parts = [channels.begin(worker, partial(lane.push, part)) for worker, lane, part in dealt]
            begun.append((batch, parts))
            if len(begun) > AHEAD:
                yield from first()
        while begun:
            yield from first()
        last = [channels.begin(worker, lane.rest) for worker, lane in zip(workers, lanes, strict=True)]
        yield from merged([channels.read(part) for part in last])


def one_after_the_other(parts: Sequence[Iterator[T]]) -> Iterator[T]:
    """The concatenated items of the lanes, for `along_lanes` if their order does not matter."""
    for part in parts:
        yield from part


@contextmanager
def started(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that end with the block, but not in a forked process, which has none of them."""
    process = os.getpid()
    workers = ThreadPoolExecutor(threads, thread_name_prefix="estero-recognize")
    try:
        yield workers
    finally:
        if os.getpid() == process:
            workers.shutdown()


class _Rows(NamedTuple):
    """Some rows of a batch, not materialized yet."""

    batch: pa.RecordBatch
    numbers: NDArray[np.int64]


class _Taking(NamedTuple, Generic[T]):
    """A lane whose thread takes its rows itself."""

    lane: Lane[pa.RecordBatch, T]

    def push(self, part: _Rows) -> Iterable[T]:
        """See `Lane`."""
        return self.lane.push(taken(*part))

    def rest(self) -> Iterable[T]:
        """See `Lane`."""
        return self.lane.rest()


def _dealt(batch: pa.RecordBatch, lanes: int) -> Iterator[_Rows]:
    """The rows of each lane, in order; those of one key are in one lane."""
    first, second = (numbers_of(batch, name).view(np.uint64) for name in KEYS)
    for numbers in rows_by_lane(first, second, lanes):
        yield _Rows(batch, numbers)
