"""Classified events in, answers out, by an automaton that joins: `recognition` for a `KeyedPlan`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.cea import LabelSet
from estero.automata.chain_columns import ColumnTransition
from estero.automata.pcea import PceaTransition
from estero.engine.chain_recognizer import ChainRecognizer
from estero.engine.pcea_recognizer import PceaBatch, PceaRecognizer
from estero.engine.run_chain import ChainStep, chain_tables
from estero.engine.run_pcea import Source, Transition, pcea_tables
from estero.pipeline.classify import KEYS, POSITION, TIME
from estero.pipeline.going_on import Holding
from estero.pipeline.join_keys import join_keys
from estero.pipeline.recognition import Ended, Recognition, numbers_of
from estero.pipeline.report import EventStore, Reporter
from estero.pipeline.values import VALUES, as_integers
from estero.plan_chains import ChainPlan, Order
from estero.plan_joins import AnyPlan, JoinPlan, KeyedPlan

_FIRST_ROOM, _LARGEST_ROOM = 256, 1 << 16


def recognition_of(
    plan: AnyPlan,
    events: pa.Schema,
    *,
    time: pa.DataType | None = None,
    counting: bool = False,
    state: bytes | None = None,
) -> Recognition | Joining:
    """What recognizes a plan; the arguments are those of `Recognition`."""
    if isinstance(plan, KeyedPlan):
        return Joining(plan, events, time=time, state=state)
    return Recognition(plan, events, time=time, counting=counting, state=state)


class Joining:
    """One pass over a stream of classified batches; `events` is their schema.

    It is used as `Recognition` is: each answer is to be read to its end before the next batch, and with
    `state` it goes on from a snapshot.
    """

    def __init__(
        self,
        plan: KeyedPlan,
        events: pa.Schema,
        *,
        time: pa.DataType | None = None,
        state: bytes | None = None,
    ) -> None:
        self.plan = plan
        self._events = events
        self._words = [name for name in events.names if name.startswith("__bits")]
        self._values = [name for name in events.names if name.startswith(VALUES)]
        self._ordered = isinstance(plan, ChainPlan) and any(plan.orders)
        self.recognizer, label_sets = _recognizer_of(plan)
        self.store = EventStore(events)
        self.reporter = Reporter(plan.shown, label_sets, events, keys=plan.shown_keys, time=time)
        self._room = _FIRST_ROOM
        self._holding = Holding(self.recognizer, self.store, None)
        if state is not None:
            self._holding.resume(state, plan, events)

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
        keys, known = join_keys(self.plan.columns, classified, self._partition(classified))
        words = [numbers_of(classified, name).view(np.uint64) for name in self._words]
        batch = PceaBatch(
            numbers_of(classified, POSITION if in_positions else TIME), np.column_stack(words), keys, known
        )
        if not self._ordered:
            return batch
        values = [as_integers(classified.column(name)) for name in self._values]
        return batch._replace(
            values=np.column_stack([each for each, _ in values]),
            valid=np.column_stack([there for _, there in values]),
        )

    def _partition(self, classified: pa.RecordBatch) -> NDArray[np.uint64] | None:
        """The keys of the partitions that the query asks for; None where it asks for none."""
        if not self.plan.shown_keys:
            return None
        return np.column_stack([numbers_of(classified, name).view(np.uint64) for name in KEYS])


def _recognizer_of(plan: KeyedPlan) -> tuple[PceaRecognizer | ChainRecognizer, list[LabelSet]]:
    """What runs the automaton of a plan, and the label set of each mark."""
    marks: dict[LabelSet, int] = {}
    match plan:
        case ChainPlan(chain=chain, steps=steps) if steps:
            tables = chain_tables(
                len(chain.states), [_step(each, marks) for each in steps], sorted(chain.final)
            )
            return ChainRecognizer(tables), list(marks)
        case ChainPlan(chain=chain):
            orders = zip(plan.transitions, plan.orders, strict=True)
            transitions = [_transition(each, marks, order) for each, order in orders]
            states, final = len(chain.states), sorted(chain.final)
        case JoinPlan(automaton=automaton):
            transitions = [_transition(each, marks, None) for each in automaton.transitions]
            states, final = len(automaton.states), sorted(automaton.final)
        case _:
            raise TypeError(f"no recognizer for a {type(plan).__name__}")
    return PceaRecognizer(pcea_tables(states, transitions, final), plan.window), list(marks)


def _transition(each: PceaTransition, marks: dict[LabelSet, int], order: Order | None) -> Transition:
    sources: list[Source] = [
        (source.state, source.left, source.right)
        if order is None
        else (source.state, source.left, source.right, order.operator, order.left, order.right)
        for source in each.sources
    ]
    return Transition(sources, each.predicate, marks.setdefault(each.labels, len(marks)), each.target)


def _step(each: ColumnTransition, marks: dict[LabelSet, int]) -> ChainStep:
    mark = marks.setdefault(each.labels, len(marks))
    return ChainStep(each.source, each.predicate, mark, each.target, each.left, each.right, each.unequal)
