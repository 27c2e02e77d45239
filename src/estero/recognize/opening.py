"""What runs the automaton of a plan: its integer tables, and what its marks stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
from estero.plan.plan import Plan
from estero.plan.plan_chains import ChainPlan, Order
from estero.plan.plan_joins import AnyPlan, JoinPlan, KeyColumn, KeyedPlan

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


def opened(plan: AnyPlan, words: int, *, ordinals: bool, counting: bool) -> Opened:
    """What runs the automaton of a plan.

    Classified events have so many bit words, and each one's place in its partition's stream if `ordinals`;
    `counting` says that counts will be asked for.
    """
    if isinstance(plan, KeyedPlan):
        return _opened_by_keys(plan, words)
    return _opened_by_states(plan, words, ordinals=ordinals, counting=counting)


def _opened_by_states(plan: Plan, words: int, *, ordinals: bool, counting: bool) -> Opened:
    """The runs of a CEA. The bit of the first event has a word of its own where the others are full."""
    automaton = plan.deterministic()
    first_bit = len(plan.automaton.predicates) - 1 if plan.from_first else None
    if first_bit is not None and first_bit // BITS_IN_WORD >= words:
        words += 1
    settings = Settings(
        window=plan.window,
        consume=_CONSUME[plan.consume][plan.sieved],
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


def _registers(plan: Plan, automaton: LazyAutomaton | MaxAutomaton) -> RegisterTables | None:
    program = plan.registers
    if program is None:
        return None
    steps = registers.tables(program, automaton.label_sets, automaton.hidden_sets)
    flat = np.array([step for each in steps for step in each], np.int32).reshape(-1, 3)
    first = np.cumsum([0, *map(len, steps)], dtype=np.int32)
    return RegisterTables(program.registers, first, flat[:, 0], flat[:, 1], flat[:, 2])


_Mark = tuple[LabelSet, HiddenSet]


def _opened_by_keys(plan: KeyedPlan, words: int) -> Opened:
    """The runs of an automaton that joins."""
    marks: dict[_Mark, int] = {}
    consume = _CONSUME[plan.consume][plan.sieved]
    runs: Runs
    match plan:
        case ChainPlan(chain=chain, steps=steps) if steps:
            chained = [_step(each, marks) for each in steps]
            tables = chain_tables(len(chain.states), chained, sorted(chain.final))
            runs = ChainRuns(tables, consume=consume)
        case ChainPlan(chain=chain):
            by_number = zip(plan.transitions, chain.transitions, plan.orders, strict=True)
            transitions = [
                _transition(each, _mark(marks, each.labels, of.hidden), order)
                for each, of, order in by_number
            ]
            gathering = pcea_tables(len(chain.states), transitions, sorted(chain.final))
            runs = PceaRuns(gathering, plan.window, consume=consume)
        case JoinPlan(automaton=automaton):
            transitions = [
                _transition(each, _mark(marks, each.labels), None) for each in automaton.transitions
            ]
            gathering = pcea_tables(len(automaton.states), transitions, sorted(automaton.final))
            runs = PceaRuns(gathering, plan.window, consume=consume)
        case _:
            raise TypeError(f"no runs for a {type(plan).__name__}")
    return Opened(
        runs,
        [labels for labels, _ in marks],
        [hidden for _, hidden in marks],
        words,
        partitioned=bool(plan.shown_keys),
        compared=isinstance(plan, ChainPlan) and any(plan.orders),
        keys=plan.columns,
    )


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
