"""The stage of deadlines: events wait, and pass when their deadlines have passed.

An event that a query forbids within a time before or after another one is a bit of the latter
(`plan.deadlines`). SQL sets it as if nothing were forbidden, and this stage removes it if a forbidden event
is near. Looking ahead takes time: all events wait until time has passed the longest deadline, so that their
order is preserved.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import array_of, one_batch
from estero.classify.column_names import BITS, KEYS, POSITION, TIME, numbered
from estero.engine.batch import words_of
from estero.engine.deadlines import Deadlines, asked_of
from estero.engine.int64 import LEAST, count_before, fall
from estero.engine.store.checks import Arrays, need
from estero.plan.plan import Plan
from estero.recognize.batch_columns import numbers_of, side_by_side
from estero.recognize.stages.stage import Stage
from estero.recognize.state_bytes import batch_as_array, batch_of_array

_FEW = 1 << 14
_WAITING = "deadline_events"


class DeadlineHold(Stage[pa.RecordBatch]):
    """Holds the events of one stream that wait; `events` are the columns of classified batches.

    Events that ask for nothing any more are dropped, unless the plan needs all of them.
    """

    def __init__(self, plan: Plan, events: pa.Schema) -> None:
        self._events = events
        self._wait = plan.wait
        self._names = numbered(BITS, events.names)
        self._places = [events.names.index(name) for name in self._names]
        self._partitioned = bool(plan.shown_keys)
        self._keeps_all = plan.classification.keep_all
        asked = sorted((one for one in plan.deadlines if not one.compared), key=lambda one: one.ahead)
        deadlines = [(one.asking, one.forbidden, one.ticks, one.ahead) for one in asked]
        self._deadlines = Deadlines(asked_of(deadlines, len(self._names)))
        self._idle_bits = ~words_of(sum(1 << bit for bit in plan.bits_for_deadlines), len(self._names))[0]
        self._chunks: list[pa.RecordBatch] = []
        self._kept = 0

    @property
    def waiting(self) -> int:
        """The number of events that wait and ask for something."""
        return int(self._alive().size)

    @property
    def first_time(self) -> int | None:
        """The time of the first event that waits and asks for something; None if there is none."""
        rows = self._alive()
        return int(self._deadlines.times[rows[0]]) if rows.size else None

    @property
    def first_position(self) -> int | None:
        """The position of that event."""
        rows = self._alive()
        if not rows.size:
            return None
        row = int(rows[0])
        for batch in self._chunks:
            if row < batch.num_rows:
                return int(batch.column(POSITION)[row].as_py())
            row -= batch.num_rows
        raise IndexError("what waits has no position")

    def push(self, item: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The events whose deadlines have passed once these arrive, which are in order of time."""
        self._enter(item, again=False)
        if self._deadlines.held > 2 * self._kept + _FEW:
            self._sweep()
        yield from self.advance(int(numbers_of(item, TIME)[-1]))

    def advance(self, until: int | None) -> Iterator[pa.RecordBatch]:
        """The events whose deadlines are before time `until`, or all of them (None), with their bits."""
        count = self._deadlines.held
        if until is not None and self._wait is not None:
            count = count_before(self._deadlines.times, until - self._wait)
        if not count:
            return
        words = self._deadlines.words[:count].copy()
        ready = self._taken(count)
        self._deadlines.leave(count)
        self._kept = min(self._kept, self._deadlines.held)
        first = 0
        for batch in ready:
            yield from self._with_bits(batch, words[first : first + batch.num_rows])
            first += batch.num_rows

    def idle(self, time: int) -> bool:
        """Whether nothing waits, and nothing of the past matters for events from `time` on."""
        return not self._alive().size and not self._deadlines.remembered(time)["deadline_last"].size

    def snapshot(self) -> Arrays:
        """The state for `resume`."""
        waiting = [part for batch, words in self._with_words() for part in self._with_bits(batch, words)]
        batch = one_batch(pa.Table.from_batches(waiting, self._events))
        return {_WAITING: batch_as_array(batch), **self._deadlines.remembered(LEAST)}

    def resume(self, arrays: Arrays) -> None:
        """Takes the state of `snapshot` out of `arrays`; raises ValueError or KeyError for other arrays."""
        self._deadlines.resume(arrays)
        waiting = batch_of_array(arrays.pop(_WAITING))
        need(waiting.schema.equals(self._events), "what waits has the columns of events")
        checked = [POSITION, TIME, *self._names, *(KEYS if self._partitioned else ())]
        need(not any(waiting.column(name).null_count for name in checked), "nothing is NULL")
        need(not fall(numbers_of(waiting, TIME)), "what waits is in order")
        if waiting.num_rows:
            self._enter(waiting, again=True)
        self._kept = self._deadlines.held

    # --------------------------------------------------------------------------------------- what waits

    def _enter(self, classified: pa.RecordBatch, *, again: bool) -> None:
        words = side_by_side(classified, self._names)
        keys = np.zeros((classified.num_rows, 2), np.uint64)
        if self._partitioned:
            keys = side_by_side(classified, KEYS)
        self._deadlines.enter(keys, numbers_of(classified, TIME), words, again=again)
        # Bits of events that are only forbidden have served their purpose.
        self._deadlines.words[-classified.num_rows :] &= self._idle_bits
        self._chunks.append(classified)

    def _alive(self) -> NDArray[np.intp]:
        """The events that ask for something, or all if the plan needs all."""
        if self._keeps_all:
            return np.arange(self._deadlines.held)
        return np.flatnonzero(self._deadlines.words.any(axis=1))

    def _sweep(self) -> None:
        """Drops events that ask for nothing any more, if they are half of those that wait."""
        alive = self._alive()
        if 2 * alive.size < self._deadlines.held:
            together = pa.Table.from_batches(self._chunks, self._events).combine_chunks()
            self._chunks = together.take(array_of(alive)).combine_chunks().to_batches()
            self._deadlines.keep(alive)
        self._kept = self._deadlines.held

    def _taken(self, count: int) -> list[pa.RecordBatch]:
        """Removes and returns the first `count` events held."""
        taken: list[pa.RecordBatch] = []
        while count:
            batch = self._chunks[0]
            if batch.num_rows <= count:
                taken.append(self._chunks.pop(0))
            else:
                taken.append(batch.slice(0, count))
                self._chunks[0] = batch.slice(count)
            count -= taken[-1].num_rows
        return taken

    def _with_words(self) -> Iterator[tuple[pa.RecordBatch, NDArray[np.uint64]]]:
        first = 0
        for batch in self._chunks:
            yield batch, self._deadlines.words[first : first + batch.num_rows]
            first += batch.num_rows

    def _with_bits(self, batch: pa.RecordBatch, words: NDArray[np.uint64]) -> Iterator[pa.RecordBatch]:
        """Yields a batch with these bits, without the events that have none; nothing if no event is left."""
        rows = np.flatnonzero(words.any(axis=1))
        if not self._keeps_all and rows.size < batch.num_rows:
            if not rows.size:
                return
            batch, words = batch.take(array_of(rows)), words[rows]
        columns = batch.columns
        for place, column in zip(self._places, words.T, strict=True):
            columns[place] = array_of(np.ascontiguousarray(column).view(np.int64))
        yield pa.RecordBatch.from_arrays(columns, schema=self._events)
