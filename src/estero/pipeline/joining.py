"""Classified events in, answers out, by an automaton that joins: `recognition` for a `JoinPlan`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from estero.automata.pcea import PCEA
from estero.engine.pcea_recognizer import PceaBatch, PceaRecognizer
from estero.engine.run_pcea import Transition, pcea_tables
from estero.pipeline.classify import POSITION, TIME
from estero.pipeline.join_keys import join_keys
from estero.pipeline.recognition import Ended, Recognition, numbers_of
from estero.pipeline.report import EventStore, Reporter
from estero.plan_joins import AnyPlan, JoinPlan

_FIRST_ROOM, _LARGEST_ROOM = 256, 1 << 16


def recognition_of(
    plan: AnyPlan, events: pa.Schema, *, time: pa.DataType | None = None, counting: bool = False
) -> Recognition | Joining:
    """What recognizes a plan; the arguments are those of `Recognition`."""
    if isinstance(plan, JoinPlan):
        return Joining(plan, events, time=time)
    return Recognition(plan, events, time=time, counting=counting)


class Joining:
    """One pass over a stream of classified batches; `events` is their schema.

    It is used as `Recognition` is: each answer is to be read to its end before the next batch.
    """

    def __init__(self, plan: JoinPlan, events: pa.Schema, *, time: pa.DataType | None = None) -> None:
        self.plan = plan
        self._words = [name for name in events.names if name.startswith("__bits")]
        transitions, label_sets = _numbered(plan.automaton)
        tables = pcea_tables(len(plan.automaton.states), transitions, sorted(plan.automaton.final))
        self.recognizer = PceaRecognizer(tables, plan.window)
        self.store = EventStore(events)
        self.reporter = Reporter(plan.shown, label_sets, events, time=time)
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
        positions = numbers_of(classified, POSITION)
        for roots in self.recognizer.push(self._batch(classified)):
            yield Ended(roots, positions[roots.event - first])
        if self.plan.window is not None:
            self.store.trim(self.recognizer.oldest)

    def counts(self, ended: Ended) -> list[tuple[int, int]]:
        """(end position, exact number of complex events), each end once, LIMIT respected."""
        ends, numbers = self.recognizer.counts_by_end(ended.roots, self.plan.limit)
        positions = ended.position[np.searchsorted(ended.roots.event, ends)].tolist()
        return list(zip(positions, numbers, strict=True))

    def pick(self, ended: Ended, indexes: list[int]) -> pa.RecordBatch:
        """The complex events with these ascending indexes in the enumeration of `ended`, without LIMIT."""
        counts = self.recognizer.counts(ended.roots)
        place, before = 0, 0
        picked = []
        for index in indexes:
            while index >= before + counts[place]:
                before += counts[place]
                place += 1
            match = self.recognizer.match_at(ended.roots, place, index - before)
            picked.append(self.reporter.table(match, self.store))
        return pa.Table.from_batches(picked, schema=self.schema).combine_chunks().to_batches()[0]

    def _batch(self, classified: pa.RecordBatch) -> PceaBatch:
        in_positions = self.plan.window_in_positions or self.plan.window is None
        keys, known = join_keys(self.plan.columns, classified)
        words = [numbers_of(classified, name).view(np.uint64) for name in self._words]
        return PceaBatch(
            numbers_of(classified, POSITION if in_positions else TIME), np.column_stack(words), keys, known
        )


def _numbered(automaton: PCEA) -> tuple[list[Transition], list[frozenset[str]]]:
    """The transitions for the engine, and the label set of each mark."""
    marks: dict[frozenset[str], int] = {}
    transitions = [
        Transition(
            [(source.state, source.left, source.right) for source in each.sources],
            each.predicate,
            marks.setdefault(each.labels, len(marks)),
            each.target,
        )
        for each in automaton.transitions
    ]
    return transitions, list(marks)
