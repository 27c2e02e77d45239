"""A question to a classified stream, divided among threads that recognize parts of it side by side.

Kernels, Arrow and NumPy let other threads run while they work. Items come in the order in which one thread
gives them, lazily, and what waits is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TypeVar

import numpy as np
import pyarrow as pa

from estero.classify.arrays import array_of
from estero.classify.column_names import KEYS, POSITION, TIME
from estero.plan.division import ThreadDivision
from estero.recognize.batch_columns import numbers_of, side_by_side
from estero.recognize.ended_sets import EndedSets
from estero.recognize.recognition import Recognition
from estero.recognize.set_reader import SetReader
from estero.recognize.threads import ranges
from estero.recognize.threads.channels import Channel, Channels
from estero.recognize.threads.questions import Question
from estero.recognize.threads.ranges import Range, RangeCutter

_AHEAD = 2
"""How many parts are begun for each thread before the first of them has been read."""
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Divided:
    """A stream that `threads` recognize; each of them opens recognitions of its own.

    `known` tells up to which time events are known once all batches are read, and `read` is told of each
    batch whose answers have been read; None when all have been.
    """

    open: Callable[[], Recognition]
    batches: Iterator[pa.RecordBatch]
    division: ThreadDivision
    threads: int
    known: Callable[[], int | None]
    read: Callable[[pa.RecordBatch | None], None]

    def ask(self, question: Question[T]) -> Iterator[T]:
        """The items of a question, in order."""
        yield from self._items(question)
        self.read(None)

    def _items(self, question: Question[T]) -> Iterator[T]:
        first, batches = _at_least(self.batches, ranges.SHORTEST)
        if first is None:  # a short stream: threads would take longer to begin
            return self._alone(question, batches)
        division = self.division
        if division.window is not None:
            cutter = RangeCutter(first, division.window.length, self._stamps)
            if cutter.pays:
                return self._by_ranges(question, cutter.cut(batches))
        if division.by_keys and (division.in_order or not question.ordered):
            return self._by_keys(question, batches)
        return self._alone(question, batches)

    def _stamps(self, batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        window = self.division.window
        return numbers_of(batch, POSITION if window is None or window.in_positions else TIME)

    def _alone(self, question: Question[T], batches: Iterable[pa.RecordBatch]) -> Iterator[T]:
        recognition = self.open()
        for batch in batches:
            yield from _asked(question, recognition.reader, recognition.recognize(batch))
            self.read(batch)
        yield from _last(question, recognition, self.known())

    # --------------------------------------------------------------------------------- by ranges

    def _by_ranges(self, question: Question[T], stretches: Iterator[Range]) -> Iterator[T]:
        idle: deque[_Reused] = deque()
        begun: deque[tuple[Range, Channel[T]]] = deque()
        with ExitStack() as stack:
            workers = stack.enter_context(_threads(self.threads))
            channels: Channels[T] = stack.enter_context(Channels())
            for stretch in stretches:
                items = partial(self._of_range, idle, question, stretch)
                begun.append((stretch, channels.begin(workers, items)))
                if len(begun) > _AHEAD * self.threads:
                    yield from self._read(channels, *begun.popleft())
            while begun:
                yield from self._read(channels, *begun.popleft())

    def _read(self, channels: Channels[T], stretch: Range, channel: Channel[T]) -> Iterator[T]:
        yield from channels.read(channel)
        self.read(stretch.own[-1])

    def _of_range(self, idle: deque[_Reused], question: Question[T], stretch: Range) -> Iterator[T]:
        try:
            reused = idle.popleft()
        except IndexError:  # a thread's first range
            reused = _Reused(self.open())
        recognition = reused.recognition
        for batch in stretch.halo:
            for _ in recognition.recognize(reused.unread(batch)):
                pass  # it ends in the range before
        for batch in stretch.own:
            yield from _asked(question, recognition.reader, recognition.recognize(reused.unread(batch)))
        yield from question.rest(recognition.reader)
        idle.append(reused)

    # ----------------------------------------------------------------------------------- by keys

    def _by_keys(self, question: Question[T], batches: Iterable[pa.RecordBatch]) -> Iterator[T]:
        """Each thread has the partitions of some keys, from the first event to the last."""
        begun: deque[tuple[pa.RecordBatch, list[Channel[T]]]] = deque()
        recognitions = [self.open() for _ in range(self.threads)]
        with ExitStack() as stack:
            workers = [stack.enter_context(_threads(1)) for _ in recognitions]
            channels: Channels[T] = stack.enter_context(Channels())
            for batch in batches:
                parts = zip(workers, recognitions, _dealt(batch, self.threads), strict=True)
                begun.append(
                    (
                        batch,
                        [
                            channels.begin(worker, partial(_of_batch, question, recognition, part))
                            for worker, recognition, part in parts
                        ],
                    )
                )
                if len(begun) > _AHEAD:
                    yield from self._merged(question, channels, *begun.popleft())
            while begun:
                yield from self._merged(question, channels, *begun.popleft())
            known = self.known()
            last = [
                channels.begin(worker, partial(_last, question, recognition, known))
                for worker, recognition in zip(workers, recognitions, strict=True)
            ]
            yield from question.merged([channels.read(channel) for channel in last])

    def _merged(
        self, question: Question[T], channels: Channels[T], batch: pa.RecordBatch, parts: list[Channel[T]]
    ) -> Iterator[T]:
        yield from question.merged([channels.read(part) for part in parts])
        self.read(batch)


@dataclass(slots=True)
class _Reused:
    """A recognition of one range after the other, some of which are another thread's.

    What it has read of earlier ranges lies outside of all windows that end in the next one, or is the next
    one's halo, and is not read again: `last` is the position of the last event that it has read.
    """

    recognition: Recognition
    last: int = -1

    def unread(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a later batch that it has not read."""
        positions = numbers_of(batch, POSITION)
        unread = batch.slice(int(np.searchsorted(positions, self.last, "right")))
        self.last = max(self.last, int(positions[-1]))
        return unread


def _threads(number: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(number, thread_name_prefix="estero-recognize")


def _at_least(
    batches: Iterator[pa.RecordBatch], rows: int
) -> tuple[list[pa.RecordBatch] | None, Iterator[pa.RecordBatch]]:
    """The first batches, with more than so many rows (None where the stream has no more), and all batches."""
    first: list[pa.RecordBatch] = []
    number = 0
    for batch in batches:
        if batch.num_rows:
            first.append(batch)
            number += batch.num_rows
        if number > rows:
            return first, chain(first, batches)
    return None, iter(first)


def _asked(question: Question[T], reader: SetReader, sets: Iterable[EndedSets]) -> Iterator[T]:
    for ended in sets:
        yield from question.items(reader, ended)


def _of_batch(question: Question[T], recognition: Recognition, batch: pa.RecordBatch) -> Iterator[T]:
    return _asked(question, recognition.reader, recognition.recognize(batch))


def _last(question: Question[T], recognition: Recognition, known: int | None) -> Iterator[T]:
    yield from _asked(question, recognition.reader, recognition.ended(known))
    yield from question.rest(recognition.reader)


def _dealt(batch: pa.RecordBatch, threads: int) -> Iterator[pa.RecordBatch]:
    """The rows of each thread, in order; those of one key are one thread's."""
    mixed = np.bitwise_xor.reduce(side_by_side(batch, KEYS), axis=1) * _MIX
    lane = (mixed >> np.uint64(32)) % np.uint64(threads)
    for thread in range(threads):
        yield batch.take(array_of(np.flatnonzero(lane == thread)))
