"""Classified events in, answers out: the recognise and report stages of one run over one stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.engine.recognizer import EventBatch, Recognizer, Roots, Settings
from estero.engine.run_cea import CONSUME_ANY, CONSUME_NONE, CONSUME_PARTITION
from estero.language.query import Consume
from estero.pipeline.classify import KEYS, POSITION, TIME
from estero.pipeline.report import EventStore, Reporter
from estero.plan import Plan

ORDINAL = "__ordinal"
"""An optional column of classified events: each one's place in its partition's stream."""

_CONSUME = {
    Consume.NONE: CONSUME_NONE,
    Consume.ANY: CONSUME_ANY,
    Consume.PARTITION: CONSUME_PARTITION,
}
_FIRST_ROOM, _LARGEST_ROOM = 256, 1 << 14


@dataclass(frozen=True, slots=True)
class Ended:
    """Compact sets of complex events that end in one batch; `position` is the stream position of each end."""

    roots: Roots
    position: NDArray[np.int64]


class Recognition:
    """One pass over a stream of classified batches; `events` is their schema.

    `push` yields the public table; `recognize` yields compact sets instead, for counting and picking.
    Each must be read to its end before the next batch. `time` is the type in which times are shown;
    `counting` says that `counts` will be asked for.
    """

    def __init__(
        self,
        plan: Plan,
        events: pa.Schema,
        *,
        time: pa.DataType | None = None,
        positions_only: bool = False,
        counting: bool = False,
    ) -> None:
        self.plan = plan
        self._words = [name for name in events.names if name.startswith("__bits")]
        self._ordinals = ORDINAL in events.names
        automaton = plan.deterministic()
        self.recognizer = Recognizer(
            automaton,
            Settings(
                window=plan.window,
                consume=_CONSUME[plan.consume],
                gaps=plan.gaps or self._ordinals,
                keyed=plan.keyed,
                words=len(self._words),
                counting=counting,
            ),
        )
        self.store = EventStore(events)
        self.reporter = Reporter(
            plan.shown,
            automaton.label_sets,
            events,
            keys=plan.classification.keys,
            time=time,
            positions_only=positions_only,
        )
        self._room = _FIRST_ROOM

    @property
    def schema(self) -> pa.Schema:
        """The schema of the public table."""
        return self.reporter.schema

    def push(self, classified: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The complex events that end in this batch, as tables in order of their end."""
        for ended in self.recognize(classified):
            yield from self.tables(ended)

    def tables(self, ended: Ended) -> Iterator[pa.RecordBatch]:
        """The complex events of `ended`, as tables."""
        for matches in self.recognizer.matches(ended.roots, self.plan.limit, self._room):
            yield self.reporter.table(matches, self.store)
            self._room = min(4 * self._room, _LARGEST_ROOM)

    def recognize(self, classified: pa.RecordBatch) -> Iterator[Ended]:
        """The compact sets that end in this batch."""
        if classified.num_rows == 0:
            return
        self.store.append(classified)
        first = self.recognizer.seen
        positions = _numbers(classified, POSITION)
        for roots in self.recognizer.push(self._event_batch(classified, positions)):
            yield Ended(roots, positions[roots.event - first])
        if self.plan.window is not None:
            self.store.trim(self.recognizer.oldest)

    def counts(self, ended: Ended) -> list[tuple[int, int]]:
        """(end position, exact number of complex events), each end once, LIMIT respected."""
        ends, numbers = self.recognizer.counts_by_end(ended.roots, self.plan.limit)
        positions = ended.position[np.searchsorted(ended.roots.event, ends)].tolist()
        return list(zip(positions, numbers, strict=True))

    def pick(self, ended: Ended, indexes: list[int]) -> pa.RecordBatch:
        """The complex events with these indexes in the enumeration of `ended`, without LIMIT, ascending."""
        picked = []
        counts = self.recognizer.counts(ended.roots)
        place, before = 0, 0
        for index in indexes:
            while index >= before + counts[place]:
                before += counts[place]
                place += 1
            match = self.recognizer.match_at(ended.roots, place, index - before)
            picked.append(self.reporter.table(match, self.store))
        return pa.Table.from_batches(picked, schema=self.schema).combine_chunks().to_batches()[0]

    def _event_batch(self, classified: pa.RecordBatch, positions: NDArray[np.int64]) -> EventBatch:
        in_positions = self.plan.window_in_positions or self.plan.window is None
        words = [_numbers(classified, name).view(np.uint64) for name in self._words]
        count = classified.num_rows
        keys = np.empty((count, 2), np.uint64)
        if self.plan.keyed:
            for place, name in enumerate(KEYS):
                keys[:, place] = _numbers(classified, name).view(np.uint64)
        return EventBatch(
            stamps=positions if in_positions else _numbers(classified, TIME),
            ordinal=_numbers(classified, ORDINAL) if self._ordinals else positions,
            words=words[0].reshape(count, 1) if len(words) == 1 else np.column_stack(words),
            keys=keys,
        )


def _numbers(batch: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    """A column as an array of its own, because kernels are compiled for writable memory."""
    return np.array(batch.column(name).to_numpy(zero_copy_only=False))
