"""Classified events in, answers out: the recognise and report stages of one run over one stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.determinize import LazyAutomaton
from estero.automata.registers import tables
from estero.automata.strategies import MaxAutomaton
from estero.engine.enumerate import Matches
from estero.engine.recognizer import EventBatch, Recognizer, Settings
from estero.engine.registers import RegisterTables
from estero.engine.roots import Roots
from estero.engine.run_cea import (
    CONSUME_ANY,
    CONSUME_ANY_ASKED,
    CONSUME_NONE,
    CONSUME_PARTITION,
    CONSUME_PARTITION_ASKED,
)
from estero.engine.run_split import LAST, NEXT, NO_ORDER
from estero.language.query import Consume, Strategy
from estero.pipeline.bits import WORD
from estero.pipeline.classify import KEYS, POSITION, TIME
from estero.pipeline.going_on import Holding
from estero.pipeline.report import EventStore, Reporter
from estero.pipeline.sieve import Sieve
from estero.pipeline.values import VALUES, as_integers
from estero.plan import Plan

ORDINAL = "__ordinal"
"""An optional column of classified events: each one's place in its partition's stream."""

_CONSUME = {
    Consume.NONE: CONSUME_NONE,
    Consume.ANY: CONSUME_ANY,
    Consume.PARTITION: CONSUME_PARTITION,
}
_CONSUME_ASKED = {
    Consume.NONE: CONSUME_NONE,
    Consume.ANY: CONSUME_ANY_ASKED,
    Consume.PARTITION: CONSUME_PARTITION_ASKED,
}
_ORDER = {Strategy.NEXT: NEXT, Strategy.LAST: LAST}
_FIRST_ROOM, _LARGEST_ROOM = 256, 1 << 16


@dataclass(frozen=True, slots=True)
class Ended:
    """Compact sets of complex events that end in one batch; `position` is the stream position of each end."""

    roots: Roots
    position: NDArray[np.int64]
    sifted: list[Matches] | None = None
    """The answers among them, where they had to be known before going on (CONSUME BY)."""


class Recognition:
    """One pass over a stream of classified batches; `events` is their schema.

    `push` yields the public table; `recognize` yields compact sets instead, for counting and picking.
    Each must be read to its end before the next batch. `time` is the type in which times are shown;
    `counting` says that `counts` will be asked for. With `state`, from `snapshot`, it goes on from there;
    raises `DataError` where that is of another query, plan or version.
    """

    def __init__(
        self,
        plan: Plan,
        events: pa.Schema,
        *,
        time: pa.DataType | None = None,
        positions_only: bool = False,
        counting: bool = False,
        state: bytes | None = None,
    ) -> None:
        self.plan = plan
        self._events = events
        self._words = [name for name in events.names if name.startswith("__bits")]
        self._values = [name for name in events.names if name.startswith(VALUES)]
        self._ordinals = ORDINAL in events.names
        automaton = plan.deterministic()
        self.recognizer = Recognizer(automaton, self._settings(automaton, counting=counting))
        self.store = EventStore(events)
        self.reporter = Reporter(
            plan.shown,
            automaton.label_sets,
            events,
            keys=plan.shown_keys,
            time=time,
            positions_only=positions_only,
        )
        self._sieve = self._new_sieve(automaton) if plan.sieved else None
        self._room = _FIRST_ROOM
        self._holding = Holding(self.recognizer, self.store, automaton)
        if state is not None:
            self._holding.resume(state, plan, events)

    def _settings(self, automaton: LazyAutomaton | MaxAutomaton, *, counting: bool) -> Settings:
        plan = self.plan
        first_bit = len(plan.automaton.predicates) - 1 if plan.from_first else None
        if first_bit is not None and first_bit // WORD >= len(self._words):
            self._words.append("")  # a word of its own, which no SQL has written
        return Settings(
            window=plan.window,
            consume=(_CONSUME_ASKED if plan.sieved else _CONSUME)[plan.consume],
            gaps=plan.gaps or self._ordinals,
            keyed=plan.keyed,
            words=len(self._words),
            counting=counting,
            registers=self._registers(automaton),
            order=_ORDER[plan.strategy] if plan.ordered else NO_ORDER,
            visible=np.array([bool(labels) for labels in automaton.label_sets], np.bool_),
            first_bit=first_bit,
            ordinals=self._ordinals,
        )

    def _registers(self, automaton: LazyAutomaton | MaxAutomaton) -> RegisterTables | None:
        program = self.plan.registers
        if program is None:
            return None
        steps = tables(program, automaton.label_sets, automaton.hidden_sets)
        flat = np.array([step for each in steps for step in each], np.int32).reshape(-1, 3)
        first = np.cumsum([0, *map(len, steps)], dtype=np.int32)
        return RegisterTables(program.registers, first, flat[:, 0], flat[:, 1], flat[:, 2])

    def _new_sieve(self, automaton: LazyAutomaton | MaxAutomaton) -> Sieve:
        plan = self.plan
        return Sieve(
            plan.residuals,
            automaton.label_sets,
            automaton.hidden_sets,
            classification=plan.classification,
            strategy=plan.strategy,
            limit=plan.limit,
            predicates=plan.predicates,
        )

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
        for matches in self._matches(ended):
            yield self.reporter.table(matches, self.store)
            self._room = min(4 * self._room, _LARGEST_ROOM)

    def _matches(self, ended: Ended) -> Iterator[Matches]:
        """The complex events of `ended` that are answers."""
        if ended.sifted is not None:
            yield from ended.sifted
        elif self._sieve is None:
            yield from self.recognizer.matches(ended.roots, self.plan.limit, self._room)
        else:
            found = self.recognizer.matches(ended.roots, None, self._room)
            yield from self._sieve.sift_all(found, self.store)

    def recognize(self, classified: pa.RecordBatch) -> Iterator[Ended]:
        """The compact sets that end in this batch."""
        if classified.num_rows == 0:
            return
        self.store.append(classified)
        first = self.recognizer.seen
        positions = numbers_of(classified, POSITION)
        for roots in self.recognizer.push(self._event_batch(classified, positions)):
            ended = Ended(roots, positions[roots.event - first])
            if self._sieve is not None and self.plan.consume is not Consume.NONE:
                ended = replace(ended, sifted=list(self._matches(ended)))
            yield ended
            if ended.sifted:
                self.recognizer.consume()
        if self.plan.window is not None:
            self.store.trim(self.recognizer.oldest)

    def snapshot(self) -> bytes:
        """All that is needed to go on; nothing that has left the window is in it."""
        return self._holding.written(self.plan, self._events)

    def advance(self, time: int) -> None:
        """No event before `time`, in ticks, comes any more: windows close, and memory is freed.

        What was recognized before must have been read.
        """
        if not self.plan.window_in_positions:
            self.recognizer.expire(time)
            self.store.trim(self.recognizer.oldest)
        self._holding.compact()

    @property
    def idle(self) -> bool:
        """Whether nothing is open: to begin anew would change no later answer."""
        return self.recognizer.idle

    def counts(self, ended: Ended) -> list[tuple[int, int]]:
        """(end position, exact number of complex events), each end once, LIMIT respected."""
        if self._sieve is not None:
            return self._counts_of_sifted(ended)
        ends, numbers = self.recognizer.counts_by_end(ended.roots, self.plan.limit)
        positions = ended.position[np.searchsorted(ended.roots.event, ends)].tolist()
        return list(zip(positions, numbers, strict=True))

    def _counts_of_sifted(self, ended: Ended) -> list[tuple[int, int]]:
        """By enumeration: nothing else tells which complex events the sieve leaves."""
        numbers: Counter[int] = Counter()
        for matches in self._matches(ended):
            ends, counts = np.unique(matches.end, return_counts=True)
            numbers.update(dict(zip(ends.tolist(), counts.tolist(), strict=True)))
        places = np.searchsorted(ended.roots.event, list(numbers))
        return list(zip(ended.position[places].tolist(), numbers.values(), strict=True))

    def pick(self, ended: Ended, indexes: list[int]) -> pa.RecordBatch:
        """The complex events with these indexes in the enumeration of `ended`, ascending.

        They are counted without LIMIT, except where there is a sieve, which does it.
        """
        if self._sieve is not None:
            return self._pick_of_sifted(ended, indexes)
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

    def _pick_of_sifted(self, ended: Ended, indexes: list[int]) -> pa.RecordBatch:
        picked = []
        before = 0
        wanted = np.array(indexes, np.int64)
        for table in self.tables(ended):
            here = wanted[(wanted >= before) & (wanted < before + table.num_rows)] - before
            picked.append(table.take(pa.array(here)))
            before += table.num_rows
            if before > indexes[-1]:
                break
        return pa.Table.from_batches(picked, schema=self.schema).combine_chunks().to_batches()[0]

    def _event_batch(self, classified: pa.RecordBatch, positions: NDArray[np.int64]) -> EventBatch:
        in_positions = self.plan.window_in_positions or self.plan.window is None
        count = classified.num_rows
        words = [
            numbers_of(classified, name).view(np.uint64) if name else np.zeros(count, np.uint64)
            for name in self._words
        ]
        values, valid = self._compared(classified)
        keys = np.empty((count, 2), np.uint64)
        if self.plan.keyed:
            for place, name in enumerate(KEYS):
                keys[:, place] = numbers_of(classified, name).view(np.uint64)
        return EventBatch(
            stamps=positions if in_positions else numbers_of(classified, TIME),
            ordinal=numbers_of(classified, ORDINAL) if self._ordinals else positions,
            words=words[0].reshape(count, 1) if len(words) == 1 else np.column_stack(words),
            keys=keys,
            values=values,
            valid=valid,
        )

    def _compared(self, classified: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """What registers compare, [events, values]."""
        columns = [as_integers(classified.column(name)) for name in self._values]
        if not columns:
            return np.empty((classified.num_rows, 0), np.int64), np.empty((classified.num_rows, 0), np.bool_)
        return np.column_stack([each for each, _ in columns]), np.column_stack(
            [known for _, known in columns]
        )


def numbers_of(batch: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    """A column as an array of its own, because kernels are compiled for writable memory."""
    return np.array(batch.column(name).to_numpy(zero_copy_only=False))
