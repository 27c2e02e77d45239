"""Classified events → the integers that an automaton reads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.event_store import Single
from estero.classify.column_names import BITS, KEYS, ORDINAL, TIME, VALUES, numbered
from estero.classify.compared import as_integer, as_integers
from estero.classify.join_keys import join_keys
from estero.classify.list_keys import has_lists, spread_keys
from estero.engine.batch import NO_PARTITION, EventBatch, OneEvent
from estero.plan.plan import Opened, Plan
from estero.recognize.batch_columns import numbers_of, side_by_side


class EngineInput:
    """Converts classified events to the integers that a plan's automaton reads; `events` is their schema."""

    def __init__(self, plan: Plan, opened: Opened, events: pa.Schema) -> None:
        self._opened = opened
        self._words = numbered(BITS, events.names)
        self._values = numbered(VALUES, events.names) if opened.compared else []
        self._in_positions = plan.by_position
        self._ordinals = ORDINAL in events.names
        self._has_lists = has_lists(opened.keys)

    def stamps(self, classified: pa.RecordBatch, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The unit of windows: the positions of the events, or their times."""
        return positions if self._in_positions else numbers_of(classified, TIME)

    def batch(self, classified: pa.RecordBatch, positions: NDArray[np.int64]) -> EventBatch:
        """The columns of the events at these positions."""
        opened = self._opened
        partition = side_by_side(classified, KEYS) if opened.partitioned else None
        words = side_by_side(classified, self._words)
        if (missing := opened.words - len(self._words)) > 0:  # not written by SQL
            words = np.pad(words, ((0, 0), (0, missing)))
        batch = EventBatch(
            stamps=self.stamps(classified, positions),
            words=words,
            partition=NO_PARTITION if partition is None else partition,
            ordinal=numbers_of(classified, ORDINAL) if self._ordinals else positions,
        )
        if self._has_lists:
            keys, known, spread = spread_keys(opened.keys, classified)
            batch = batch._replace(keys=keys, known=known, spread=spread)
        elif opened.keys:
            keys, known = join_keys(opened.keys, classified, partition)
            batch = batch._replace(keys=keys, known=known)
        values = [as_integers(classified.column(name)) for name in self._values]
        if opened.clocks:
            always_valid = np.ones(positions.size, np.bool_)
            clocks = [positions if shown else numbers_of(classified, TIME) for shown in opened.clocks]
            values += [(clock, always_valid) for clock in clocks]
        if values:
            batch = batch._replace(
                values=np.column_stack([column for column, _ in values]),
                valid=np.column_stack([known for _, known in values]),
            )
        return batch

    def one(self, event: Single) -> OneEvent:
        """The numbers of a single event."""
        position, row = event
        opened = self._opened
        values = row.values if self._values else ()
        one = OneEvent(
            position if self._in_positions else row.time,
            row.bits,
            opened.words,
            row.key if opened.partitioned else None,
            position,
            tuple(map(as_integer, values)),
            tuple([value is not None for value in values]),
        )
        if not opened.clocks:
            return one
        shown = tuple([position if in_positions else row.time for in_positions in opened.clocks])
        return one._replace(values=(*one.values, *shown), valid=(*one.valid, *(True for _ in shown)))
