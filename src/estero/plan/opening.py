"""What runs the automaton of a plan: its integer tables, and what its marks stand for.

Only who recognizes imports this, as it loads the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from estero.automata import registers
from estero.automata.cea import LabelSet
from estero.automata.chain import ColumnTransition
from estero.automata.determinize import LazyAutomaton
from estero.automata.pcea import PceaTransition
from estero.automata.pcea import Source as RunSource
from estero.automata.residual import NO_HIDDEN, HiddenSet
from estero.automata.strategies import MaxAutomaton
from estero.engine.batch import BITS_IN_WORD
from estero.engine.cursor import (
    CONSUME_ANY,
    CONSUME_ANY_ASKED,
    CONSUME_NONE,
    CONSUME_PARTITION,
    CONSUME_PARTITION_ASKED,
)
from estero.engine.recognizer import Runs
from estero.engine.runs.cea_runs import Settings
from estero.engine.runs.chain_runs import ChainRuns
from estero.engine.runs.pcea_runs import PceaRuns
from estero.engine.runs.registers import RegisterTables
from estero.engine.runs.run_chain import ChainStep, chain_tables
from estero.engine.runs.run_pcea import Source, Transition, pcea_tables
from estero.engine.runs.run_split import LAST, NEXT, NO_ORDER
from estero.engine.runs.split_runs import cea_runs
from estero.language.tree.query import Consume, Strategy

if TYPE_CHECKING:
    from estero.plan.automaton import AutomatonPlan
    from estero.plan.chains import ChainPlan, Order
    from estero.plan.joins import JoinPlan, KeyedPlan
    from estero.plan.keys import KeyColumn
    from estero.plan.plan import Plan

_CONSUME = {
    Consume.NONE: (CONSUME_NONE, CONSUME_NONE),
    Consume.ANY: (CONSUME_ANY, CONSUME_ANY_ASKED),
    Consume.PARTITION: (CONSUME_PARTITION, CONSUME_PARTITION_ASKED),
}
"""What is forgotten after an answer: by itself, and where filters are left that say what an answer is."""

_ORDER = {Strategy.NEXT: NEXT, Strategy.LAST: LAST}


class Opened(NamedTuple):
    """A plan, ready to recognize. Mark `id` stands for `label_sets[id]` and `hidden_sets[id]`.

    `automaton` is what works out states on demand, None where they are all known. Batches have `words` bit
    words, partition keys if `partitioned`, values if `compared` and a key column for each of `keys`.
    """

    runs: Runs
    label_sets: Sequence[LabelSet]
    hidden_sets: Sequence[HiddenSet]
    words: int
    partitioned: bool
    compared: bool
    keys: Sequence[KeyColumn] = ()
    automaton: LazyAutomaton | MaxAutomaton | None = None


def opened_automaton(plan: AutomatonPlan, words: int, *, ordinals: bool, counting: bool) -> Opened:
    """The runs of a CEA. The bit of the first event has a word of its own where the others are full."""
    automaton = plan.deterministic()
    first_bit = len(plan.automaton.predicates) - 1 if plan.from_first else None
    if first_bit is not None and first_bit // BITS_IN_WORD >= words:
        words += 1
    settings = Settings(
        window=_length(plan),
        consume=_consume(plan),
        gaps=plan.gaps or ordinals,
        keyed=plan.keyed,
        words=words,
        counting=counting,
        registers=_registers(plan, automaton),
        order=_ORDER[plan.strategy] if plan.ordered else NO_ORDER,
        visible=np.array([bool(labels) for labels in automaton.label_sets], np.bool_),
        first_bit=first_bit,
        ordinals=ordinals,
    )
    runs = cea_runs(automaton, settings)
    marks = automaton.label_sets, automaton.hidden_sets
    return Opened(runs, *marks, words, plan.keyed, compared=True, automaton=automaton)


def opened_chain(plan: ChainPlan, words: int) -> Opened:
    """The runs of a chain automaton: in an ED-index, or in heaps and ordered indexes."""
    marks: dict[_Mark, int] = {}
    chain = plan.chain
    final = sorted(chain.final)
    if plan.steps:
        steps = chain_tables(len(chain.states), [_step(each, marks) for each in plan.steps], final)
        return _opened_by_keys(plan, ChainRuns(steps, consume=_consume(plan)), marks, words)
    by_number = zip(plan.transitions, chain.transitions, plan.orders, strict=True)
    transitions = [
        _transition(each, _mark(marks, each.labels, of.hidden), order) for each, of, order in by_number
    ]
    tables = pcea_tables(len(chain.states), transitions, final)
    runs = PceaRuns(tables, _length(plan), consume=_consume(plan))
    return _opened_by_keys(plan, runs, marks, words, compared=plan.ordered)


def opened_joins(plan: JoinPlan, words: int) -> Opened:
    """The runs of an automaton that joins, in heaps."""
    marks: dict[_Mark, int] = {}
    automaton = plan.automaton
    transitions = [_transition(each, _mark(marks, each.labels), None) for each in automaton.transitions]
    tables = pcea_tables(len(automaton.states), transitions, sorted(automaton.final))
    return _opened_by_keys(plan, PceaRuns(tables, _length(plan), consume=_consume(plan)), marks, words)


_Mark = tuple[LabelSet, HiddenSet]


def _opened_by_keys(
    plan: KeyedPlan, runs: Runs, marks: Mapping[_Mark, int], words: int, *, compared: bool = False
) -> Opened:
    return Opened(
        runs,
        [labels for labels, _ in marks],
        [hidden for _, hidden in marks],
        words,
        partitioned=bool(plan.shown_keys),
        compared=compared,
        keys=plan.columns,
    )


def _length(plan: Plan) -> int | None:
    return None if plan.window is None else plan.window.length


def _consume(plan: Plan) -> int:
    """What is forgotten after an answer: by itself, or when asked where a filter says what an answer is."""
    return _CONSUME[plan.consume][plan.sieved]


def _registers(plan: AutomatonPlan, automaton: LazyAutomaton | MaxAutomaton) -> RegisterTables | None:
    program = plan.registers
    if program is None:
        return None
    steps = registers.tables(program, automaton.label_sets, automaton.hidden_sets)
    flat = np.array([step for each in steps for step in each], np.int32).reshape(-1, 3)
    first = np.cumsum([0, *map(len, steps)], dtype=np.int32)
    return RegisterTables(program.registers, first, flat[:, 0], flat[:, 1], flat[:, 2])


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
