"""Lanes: threads that have the partitions of some keys each, from the first event of a stream to the last."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from estero.classify.column_names import KEYS
from estero.classify.vectors.taking import taken
from estero.recognize.batch_columns import side_by_side
from estero.recognize.threads.channels import Channel, Channels

AHEAD = 2
"""Parts that are begun for a thread before the first of them has been read."""
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
Part_contra = TypeVar("Part_contra", contravariant=True)
Part = TypeVar("Part")
Batch = TypeVar("Batch")


class Lane(Protocol[Part_contra, T_co]):
    """What one thread does with its part of the stream."""

    def push(self, part: Part_contra, /) -> Iterable[T_co]:
        """The items of its part of the next batch."""

    def rest(self) -> Iterable[T_co]:
        """The items that the end of the stream gives."""


def along_lanes(
    lanes: Sequence[Lane[pa.RecordBatch, T]],
    batches: Iterable[pa.RecordBatch],
    merged: Callable[[Sequence[Iterator[T]]], Iterator[T]],
    read: Callable[[pa.RecordBatch], None] | None = None,
) -> Iterator[T]:
    """The items of all lanes, `merged` batch by batch; `read` is called with each batch behind its items."""
    return dealt_to_lanes(lanes, batches, rows_of_lanes, merged, read)


def dealt_to_lanes(
    lanes: Sequence[Lane[Part, T]],
    batches: Iterable[Batch],
    deal: Callable[[Batch, int], Iterable[Part]],
    merged: Callable[[Sequence[Iterator[T]]], Iterator[T]],
    read: Callable[[Batch], None] | None = None,
) -> Iterator[T]:
    """As `along_lanes`, for batches of any kind: `deal` makes as many parts of one as there are lanes."""
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
    """The items of the lanes, for `along_lanes` where their order does not matter."""
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


def rows_of_lanes(batch: pa.RecordBatch, lanes: int) -> Iterator[pa.RecordBatch]:
    """The rows of each lane, in order; those of one key are in one lane."""
    mixed = np.bitwise_xor.reduce(side_by_side(batch, KEYS), axis=1) * _MIX
    lane_of = (mixed >> np.uint64(32)) % np.uint64(lanes)
    for lane in range(lanes):
        yield taken(batch, np.flatnonzero(lane_of == lane))
