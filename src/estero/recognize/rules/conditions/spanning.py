"""The events that can be in a complex event of a rule, for runs that read a whole stream for its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from estero.automata.cea import CEA, Transition, why_others_matter
from estero.engine.pairs import Pairs
from estero.engine.spanned_pairs import NO_STEPS, OUTSIDE, Asking, SpannedPairs, Steps
from estero.plan.automaton import AutomatonPlan
from estero.plan.plan import Plan
from estero.plan.reach import asks_others
from estero.recognize.rules.conditions.begun_rules import RuleConditions
from estero.recognize.rules.conditions.dispatch import HeldRows


class SpanningEvents:
    """The events that matter to the rules of a group, batch by batch.

    - `plan`: the plan of one of the rules, which differ only in their conditions.
    - `conditions`: the conditions of each rule.
    - `rules`: the number of rules.
    """

    def __init__(self, plan: Plan, conditions: Sequence[RuleConditions], rules: int) -> None:
        pairs = [
            (place, asked.rule, bit) for asked in conditions for bit, place in (*asked.opening, *asked.others)
        ]
        self._places = tuple(sorted({place for place, _, _ in pairs}))
        numbers = {place: number for number, place in enumerate(self._places)}
        asking = Asking.of((numbers[place], rule, bit) for place, rule, bit in pairs)
        window = 0 if plan.window is None else plan.window.length
        self._pairs = SpannedPairs(asking, rules, _steps_of(plan), window)

    def prepare(self, held: HeldRows) -> None:
        """Computes what all threads need of a batch."""
        held.by_row(self._places)

    def of(self, held: HeldRows, stamps: NDArray[np.int64]) -> Iterator[Pairs]:
        """The pairs of an event and a rule to which it matters; `stamps` are positions or times of events."""
        yield from self._pairs.of(held.by_row(self._places), stamps)


def _steps_of(plan: Plan) -> Steps:
    """The transitions on the events of a complex event; none if other events matter as well."""
    if (
        not isinstance(plan, AutomatonPlan)
        or plan.window is None
        or asks_others(plan)
        or plan.needs_enumeration
        or why_others_matter(plan.automaton)
    ):
        return NO_STEPS
    automaton = plan.automaton
    moves = sorted(filter(_marks, automaton.transitions), key=_ranks(automaton))
    ends = automaton.initial | automaton.final
    states = {state: place for place, state in enumerate(sorted(set(range(automaton.states)) - ends))}
    steps = [
        (
            states.get(move.source, OUTSIDE),
            states.get(move.target, OUTSIDE),
            sum(1 << bit for bit in move.guard.present),
            sum(1 << bit for bit in move.guard.absent),
        )
        for move in moves
    ]
    return Steps.of(steps, len(states))


def _marks(move: Transition) -> bool:
    return bool(move.labels or move.hidden)


def _ranks(automaton: CEA) -> Callable[[Transition], int]:
    """The place of a transition, by its source: those from later states come first."""
    before: dict[int, set[int]] = {state: set() for state in range(automaton.states)}
    for move in automaton.transitions:
        if move.source != move.target:
            before[move.target].add(move.source)
    try:
        order = list(TopologicalSorter(before).static_order())
    except CycleError:  # then too many runs count as going on, so that no event that matters is left out
        order = list(range(automaton.states))
    rank = {state: -place for place, state in enumerate(order)}
    return lambda move: rank[move.source]
