"""Classified events in, answers out: the recognise and report stages of one run over one stream."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.report import Reporter
from estero.automata.determinize import LazyAutomaton
from estero.automata.registers import tables
from estero.automata.strategies import MaxAutomaton
from estero.classify.bits import WORD
from estero.classify.column_names import BITS, KEYS, ORDINAL, POSITION, TIME, VALUES, numbered
from estero.classify.values import as_integers
from estero.engine.recognizer import EventBatch, Recognizer, Settings
from estero.engine.runs.registers import RegisterTables
from estero.engine.runs.run_cea import (
    CONSUME_ANY,
    CONSUME_ANY_ASKED,
    CONSUME_NONE,
    CONSUME_PARTITION,
    CONSUME_PARTITION_ASKED,
)
from estero.engine.runs.run_split import LAST, NEXT, NO_ORDER
from estero.engine.walk.roots import Roots
from estero.language.tree.query import Consume, Strategy
from estero.plan.plan import Plan
from estero.recognize.answering import Answering, numbers_of, sieve_of

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


class Recognition(Answering[Plan, Recognizer]):
    """One pass over a stream of classified batches, by a CEA; `events` is their schema.

    `time` is the type in which times are shown; `counting` says that `counts` will be asked for. With `state`
    it goes on from a snapshot.
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
        self._words = numbered(BITS, events.names)
        self._values = numbered(VALUES, events.names)
        self._ordinals = ORDINAL in events.names
        automaton = plan.deterministic()
        recognizer = Recognizer(automaton, self._settings(plan, automaton, counting=counting))
        label_sets = automaton.label_sets
        reporter = Reporter(
            plan.shown, label_sets, events, keys=plan.shown_keys, time=time, positions_only=positions_only
        )
        sieve = sieve_of(plan, label_sets, automaton.hidden_sets)
        super().__init__(plan, events, recognizer, reporter, sieve=sieve, automaton=automaton, state=state)

    def _settings(self, plan: Plan, automaton: LazyAutomaton | MaxAutomaton, *, counting: bool) -> Settings:
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
            registers=_registers(plan, automaton),
            order=_ORDER[plan.strategy] if plan.ordered else NO_ORDER,
            visible=np.array([bool(labels) for labels in automaton.label_sets], np.bool_),
            first_bit=first_bit,
            ordinals=self._ordinals,
        )

    def _roots(self, classified: pa.RecordBatch) -> Iterator[Roots]:
        positions = numbers_of(classified, POSITION)
        return self.recognizer.push(self._event_batch(classified, positions))

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


def _registers(plan: Plan, automaton: LazyAutomaton | MaxAutomaton) -> RegisterTables | None:
    program = plan.registers
    if program is None:
        return None
    steps = tables(program, automaton.label_sets, automaton.hidden_sets)
    flat = np.array([step for each in steps for step in each], np.int32).reshape(-1, 3)
    first = np.cumsum([0, *map(len, steps)], dtype=np.int32)
    return RegisterTables(program.registers, first, flat[:, 0], flat[:, 1], flat[:, 2])
