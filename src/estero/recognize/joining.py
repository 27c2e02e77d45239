"""Classified events in, answers out, by an automaton that joins: `recognition` for a `KeyedPlan`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.report import Reporter
from estero.automata.cea import LabelSet
from estero.automata.chain import ColumnTransition
from estero.automata.pcea import PceaTransition
from estero.automata.pcea import Source as RunSource
from estero.automata.residual import NO_HIDDEN, HiddenSet
from estero.classify.column_names import BITS, KEYS, POSITION, TIME, VALUES, numbered
from estero.classify.join_keys import join_keys
from estero.classify.values import as_integers
from estero.engine.chain_recognizer import ChainRecognizer
from estero.engine.pcea_recognizer import PceaBatch, PceaRecognizer
from estero.engine.runs.run_cea import (
    CONSUME_ANY,
    CONSUME_ANY_ASKED,
    CONSUME_NONE,
    CONSUME_PARTITION,
    CONSUME_PARTITION_ASKED,
)
from estero.engine.runs.run_chain import ChainStep, chain_tables
from estero.engine.runs.run_pcea import Source, Transition, pcea_tables
from estero.engine.walk.roots import Roots
from estero.language.tree.query import Consume
from estero.plan.plan_chains import ChainPlan, Order
from estero.plan.plan_joins import AnyPlan, JoinPlan, KeyedPlan
from estero.recognize.answering import Answering, numbers_of, sieve_of
from estero.recognize.recognition import Recognition


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


class Joining(Answering[KeyedPlan, PceaRecognizer | ChainRecognizer]):
    """One pass over a stream of classified batches, by an automaton that joins; `events` is their schema.

    `time` is the type in which times are shown. With `state` it goes on from a snapshot.
    """

    def __init__(
        self,
        plan: KeyedPlan,
        events: pa.Schema,
        *,
        time: pa.DataType | None = None,
        state: bytes | None = None,
    ) -> None:
        self._words = numbered(BITS, events.names)
        self._values = numbered(VALUES, events.names)
        self._ordered = isinstance(plan, ChainPlan) and any(plan.orders)
        recognizer, marks = _recognizer_of(plan)
        label_sets = [labels for labels, _ in marks]
        reporter = Reporter(plan.shown, label_sets, events, keys=plan.shown_keys, time=time)
        sieve = sieve_of(plan, label_sets, [hidden for _, hidden in marks])
        super().__init__(plan, events, recognizer, reporter, sieve=sieve, state=state)

    def _roots(self, classified: pa.RecordBatch) -> Iterator[Roots]:
        return self.recognizer.push(self._batch(classified))

    def _batch(self, classified: pa.RecordBatch) -> PceaBatch:
        in_positions = self.plan.window_in_positions or self.plan.window is None
        partition = self._partition(classified)
        keys, known = join_keys(self.plan.columns, classified, partition)
        words = [numbers_of(classified, name).view(np.uint64) for name in self._words]
        batch = PceaBatch(
            numbers_of(classified, POSITION if in_positions else TIME), np.column_stack(words), keys, known
        )
        if partition is not None:
            batch = batch._replace(partition=partition)
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


_Mark = tuple[LabelSet, HiddenSet]


def _recognizer_of(plan: KeyedPlan) -> tuple[PceaRecognizer | ChainRecognizer, list[_Mark]]:
    """What runs the automaton of a plan, and what each mark stands for."""
    marks: dict[_Mark, int] = {}
    match plan:
        case ChainPlan(chain=chain, steps=steps) if steps:
            tables = chain_tables(
                len(chain.states), [_step(each, marks) for each in steps], sorted(chain.final)
            )
            return ChainRecognizer(tables, consume=_consume(plan)), list(marks)
        case ChainPlan(chain=chain):
            by_number = zip(plan.transitions, chain.transitions, plan.orders, strict=True)
            transitions = [
                _transition(each, _mark(marks, each.labels, of.hidden), order)
                for each, of, order in by_number
            ]
            states, final = len(chain.states), sorted(chain.final)
        case JoinPlan(automaton=automaton):
            transitions = [
                _transition(each, _mark(marks, each.labels), None) for each in automaton.transitions
            ]
            states, final = len(automaton.states), sorted(automaton.final)
        case _:
            raise TypeError(f"no recognizer for a {type(plan).__name__}")
    tables_of_joins = pcea_tables(states, transitions, final)
    return PceaRecognizer(tables_of_joins, plan.window, consume=_consume(plan)), list(marks)


def _consume(plan: KeyedPlan) -> int:
    """What is forgotten after an answer."""
    match plan.consume:
        case Consume.NONE:
            return CONSUME_NONE
        case Consume.PARTITION:
            return CONSUME_PARTITION_ASKED if plan.sieved else CONSUME_PARTITION
        case Consume.ANY:
            return CONSUME_ANY_ASKED if plan.sieved else CONSUME_ANY


def _mark(marks: dict[_Mark, int], labels: LabelSet, hidden: HiddenSet = NO_HIDDEN) -> int:
    """The number of a mark."""
    return marks.setdefault((labels, hidden), len(marks))


def _transition(each: PceaTransition, mark: int, order: Order | None) -> Transition:
    sources = [_source(source, order) for source in each.sources]
    return Transition(sources, each.predicate, mark, each.target)


def _source(source: RunSource, order: Order | None) -> Source:
    plain = source.state, source.left, source.right
    if order is None:
        return plain
    if order.upper is None:
        return (*plain, order.operator, order.left, order.right)
    upper, operator = order.upper
    return (*plain, f"{order.operator} {operator}", order.left, order.right, upper)


def _step(each: ColumnTransition, marks: dict[_Mark, int]) -> ChainStep:
    mark = _mark(marks, each.labels, each.hidden)
    return ChainStep(each.source, each.predicate, mark, each.target, each.left, each.right, each.unequal)
