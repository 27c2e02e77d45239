"""A question to a classified stream, divided among threads that recognize its parts concurrently.

Kernels, Arrow and NumPy release the GIL while they work. Items come in the same order as from one thread,
lazily, and the number of waiting items is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.column_names import POSITION, TIME
from estero.plan.division import ThreadDivision
from estero.recognize.batch_columns import numbers_of
from estero.recognize.ended_sets import EndedSets
from estero.recognize.recognition import Recognition
from estero.recognize.set_reader import SetReader
from estero.recognize.threads import ranges
from estero.recognize.threads.channels import Channel, Channels
from estero.recognize.threads.lanes import AHEAD, along_lanes, started
from estero.recognize.threads.questions import Question
from estero.recognize.threads.ranges import Range, RangeCutter

T = TypeVar("T")
_Items = Callable[[SetReader, EndedSets], Iterable[T]]


@dataclass(frozen=True, slots=True)
class Divided:
    """A stream that `threads` recognize; each of them opens recognitions of its own.

    `known` returns the time up to which events are known once all batches are read, and `read` is called with
    each batch whose answers have been read; with None when all have been.
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
        first, batches = at_least(self.batches, ranges.SHORTEST)
        if first is None:  # a short stream: starting threads would take longer
            return self._alone(question, batches)
        division = self.division
        if division.window is not None:
            cutter = RangeCutter(first, division.window.length, self._stamps)
            if cutter.pays:
                return self._by_ranges(question, cutter.cut(batches))
        if division.by_keys and (division.in_order or not question.ordered):
            lanes = [_KeyLane(question, self.open(), self.known) for _ in range(self.threads)]
            return along_lanes(lanes, batches, question.merged, self.read)
        return self._alone(question, batches)

    def _stamps(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        window = self.division.window
        return numbers_of(batch, POSITION if window is None or window.in_positions else TIME)

    def _alone(self, question: Question[T], batches: Iterable[pa.RecordBatch]) -> Iterator[T]:
        recognition = self.open()
        for batch in batches:
            yield from _asked(question.in_order, recognition.reader, recognition.recognize(batch))
            self.read(batch)
        yield from _last(question, question.in_order, recognition, self.known())

    # --------------------------------------------------------------------------------- by ranges

    def _by_ranges(self, question: Question[T], stretches: Iterator[Range]) -> Iterator[T]:
        idle = _Idle(self.open)
        begun: deque[tuple[Range, Channel[T]]] = deque()
        with ExitStack() as stack:
            workers = stack.enter_context(started(self.threads))
            channels: Channels[T] = stack.enter_context(Channels())
            for stretch in stretches:
                items = partial(self._of_range, idle, question, stretch)
                begun.append((stretch, channels.begin(workers, items)))
                if len(begun) > AHEAD * self.threads:
                    yield from self._read(channels, *begun.popleft())
            while begun:
                yield from self._read(channels, *begun.popleft())

    def _read(self, channels: Channels[T], stretch: Range, channel: Channel[T]) -> Iterator[T]:
        yield from channels.read(channel)
        self.read(stretch.own[-1])

    def _of_range(self, idle: _Idle, question: Question[T], stretch: Range) -> Iterator[T]:
        reused = idle.taken_for(stretch)
        recognition = reused.recognition
        for batch in stretch.halo:
            for _ in recognition.recognize(reused.unread(batch)):
                pass  # it ends in the range before
        for batch in stretch.own:
            sets = recognition.recognize(reused.unread(batch))
            yield from _asked(question.in_order, recognition.reader, sets)
        yield from question.rest(recognition.reader)
        idle.put(reused)


@dataclass(frozen=True, slots=True)
class _KeyLane(Generic[T]):
    """The recognition of some partitions, and the question to it; `known` is as in `Divided`."""

    question: Question[T]
    recognition: Recognition
    known: Callable[[], int | None]

    def push(self, batch: pa.RecordBatch) -> Iterator[T]:
        """What ends in the next batch."""
        return _asked(self.question.items, self.recognition.reader, self.recognition.recognize(batch))

    def rest(self) -> Iterator[T]:
        """What is decided as the stream ends."""
        return _last(self.question, self.question.items, self.recognition, self.known())


@dataclass(slots=True)
class _Reused:
    """A recognition that reads one range after another, though not every range.

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


class _Idle:
    """Recognitions that threads have finished with, for their next ranges; `opened` makes a new one."""

    def __init__(self, opened: Callable[[], Recognition]) -> None:
        self._opened = opened
        self._lock = Lock()
        self._idle: list[_Reused] = []

    def taken_for(self, stretch: Range) -> _Reused:
        """A recognition that has read nothing after a range's beginning, as threads may overtake others."""
        begin = int(numbers_of(stretch.own[0], POSITION)[0])
        with self._lock:
            for place, reused in enumerate(self._idle):
                if reused.last < begin:
                    return self._idle.pop(place)
        return _Reused(self._opened())

    def put(self, reused: _Reused) -> None:
        """Returns one."""
        with self._lock:
            self._idle.append(reused)


def at_least(
    batches: Iterator[pa.RecordBatch], rows: int
) -> tuple[list[pa.RecordBatch] | None, Iterator[pa.RecordBatch]]:
    """The first batches, of more than `rows` rows in all, and all batches; None for a shorter stream."""
    first: list[pa.RecordBatch] = []
    number = 0
    for batch in batches:
        if batch.num_rows:
            first.append(batch)
            number += batch.num_rows
        if number > rows:
            return first, chain(first, batches)
    return None, iter(first)


def _asked(items: _Items[T], reader: SetReader, sets: Iterable[EndedSets]) -> Iterator[T]:
    for ended in sets:
        yield from items(reader, ended)


def _last(
    question: Question[T], items: _Items[T], recognition: Recognition, known: int | None
) -> Iterator[T]:
    yield from _asked(items, recognition.reader, recognition.ended(known))
    yield from question.rest(recognition.reader)
