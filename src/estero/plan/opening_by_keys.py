"""The runs of automata that wait in indexes by join keys: their tables, and the meaning of their marks.

Only recognition imports this module, because it loads the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from estero.automata.cea import LabelSet
from estero.automata.chain import ColumnTransition
from estero.automata.pcea import PceaTransition
from estero.automata.pcea import Source as RunSource
from estero.automata.residual import NO_HIDDEN, HiddenSet
from estero.engine.runs.joined.chain_runs import ChainRuns
from estero.engine.runs.joined.pcea_runs import PceaRuns
from estero.engine.runs.joined.run_chain import ChainStep, chain_tables
from estero.engine.runs.joined.run_pcea import Source, Transition, pcea_tables
from estero.engine.runs.runs import Runs
from estero.plan.keys import KeyColumn, Order
from estero.plan.opening import consume_of, length_of
from estero.plan.plan import Opened, Plan

_Mark = tuple[LabelSet, HiddenSet]
Join = tuple[PceaTransition, HiddenSet, Order | None]
"""A transition, the labels that it marks and answers do not show, and its comparisons beside its keys."""


def opened_in_lists(
    plan: Plan,
    keys: Sequence[KeyColumn],
    states: int,
    steps: Iterable[ColumnTransition],
    final: Sequence[int],
    words: int,
) -> Opened:
    """The runs of a chain automaton, in an ED-index."""
    marks: dict[_Mark, int] = {}
    tables = chain_tables(states, [_step(step, marks) for step in steps], final)
    return _by_keys(plan, ChainRuns(tables, consume=consume_of(plan)), marks, keys, words)


def opened_in_heaps(
    plan: Plan,
    keys: Sequence[KeyColumn],
    states: int,
    joins: Sequence[Join],
    final: Sequence[int],
    words: int,
) -> Opened:
    """The runs of an automaton that joins, or of a chain, in heaps and ordered indexes."""
    marks: dict[_Mark, int] = {}
    transitions = [
        _transition(transition, _mark(marks, transition.labels, hidden), order)
        for transition, hidden, order in joins
    ]
    runs = PceaRuns(pcea_tables(states, transitions, final), length_of(plan), consume=consume_of(plan))
    return _by_keys(plan, runs, marks, keys, words, compared=any(order for _, _, order in joins))


def _by_keys(
    plan: Plan,
    runs: Runs,
    marks: Mapping[_Mark, int],
    keys: Sequence[KeyColumn],
    words: int,
    *,
    compared: bool = False,
) -> Opened:
    label_sets, hidden_sets = [labels for labels, _ in marks], [hidden for _, hidden in marks]
    partitioned = bool(plan.shown_keys)
    return Opened(runs, label_sets, hidden_sets, words, partitioned, compared, keys)


def _mark(marks: dict[_Mark, int], labels: LabelSet, hidden: HiddenSet = NO_HIDDEN) -> int:
    """The number of a mark."""
    return marks.setdefault((labels, hidden), len(marks))


def _transition(transition: PceaTransition, mark: int, order: Order | None) -> Transition:
    sources = [_source(source, order) for source in transition.sources]
    return Transition(sources, transition.predicate, mark, transition.target)


def _source(source: RunSource, order: Order | None) -> Source:
    plain = source.state, source.left, source.right
    if order is None:
        return plain
    if order.upper is None:
        return (*plain, order.operator, order.left, order.right)
    upper, operator = order.upper
    return (*plain, f"{order.operator} {operator}", order.left, order.right, upper)


def _step(transition: ColumnTransition, marks: dict[_Mark, int]) -> ChainStep:
    mark = _mark(marks, transition.labels, transition.hidden)
    return ChainStep(
        transition.source,
        transition.predicate,
        mark,
        transition.target,
        transition.left,
        transition.right,
        transition.unequal,
    )
