"""The skeleton of a chain automaton or PCEA: the automaton without its comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from estero.automata.cea import ALWAYS, CEA, NO_LABELS, Guard, Transition, from_first
from estero.automata.chain import Chain, ChainTransition
from estero.automata.parted import parted
from estero.automata.pcea import PCEA, PceaTransition
from estero.automata.reads import event_type
from estero.language.tree import expressions as e
from estero.language.tree import pattern as p
from estero.language.tree.conditions import conjoined

BEFORE: Final = "before"
"""The name of the previous event in comparisons of a transition that leaves only one state."""
HERE: Final = "here"
"""The name of the current event in messages."""


def skeleton(automaton: Chain | PCEA, *, comparing: bool = False) -> CEA:
    """The CEA that reads and marks the events of an automaton without comparing events or gathering runs.

    State 0 is the initial state, k + 1 is state k, and the last one is final. With `comparing` the predicates
    also have the comparisons with the event `before`: for pictures, not for evaluation.
    """
    if comparing and isinstance(automaton, PCEA):
        automaton = parted(automaton)
    last = len(automaton.states) + 1
    predicates = dict.fromkeys(automaton.predicates)
    transitions: list[Transition] = []
    for transition in automaton.transitions:
        for source, comparisons in compared_before(automaton, transition) or [(-1, [])]:
            predicate = automaton.predicates[transition.predicate]
            if comparing and comparisons:
                own = [] if predicate.condition is None else [predicate.condition]
                predicate = replace(predicate, condition=conjoined([*own, *comparisons]))
                predicates[predicate] = None
            guard = Guard(frozenset({list(predicates).index(predicate)}))
            targets = [transition.target + 1, *([last] if transition.target in automaton.final else [])]
            transitions += [Transition(source + 1, guard, transition.labels, target) for target in targets]
    going_on = {transition.source for transition in transitions} - {0}
    transitions = [
        transition for transition in transitions if transition.target == last or transition.target in going_on
    ]
    transitions += [Transition(state, ALWAYS, NO_LABELS, state) for state in sorted(going_on)]
    cea = CEA(last + 1, frozenset({0}), frozenset({last}), tuple(transitions), tuple(predicates))
    return from_first(cea) if isinstance(automaton, Chain) and automaton.anchored else cea


def pairs_compared(automaton: Chain | PCEA) -> Iterator[p.Filter]:
    """The comparisons of transitions as patterns of two events, without duplicates."""
    pairs: dict[p.Filter, None] = {}
    if isinstance(automaton, Chain):
        entered = automaton.entering_types()
        for transition in automaton.transitions:
            for one in transition.comparisons if transition.source is not None else ():
                here = automaton.predicates[transition.predicate].types
                pairs[_pair(entered[transition.source or 0], one.left, one.operator, one.right, here)] = None
    else:
        for step in automaton.transitions:
            for source in step.sources:
                left, right = automaton.keys[source.left].forms, automaton.keys[source.right].forms
                sides = zip(next(iter(left.values())), next(iter(right.values())), strict=True)
                for before, other in sides:
                    pairs[_pair(tuple(left), before, "=", other, tuple(right))] = None
    yield from pairs


def _pair(
    before: Sequence[str], left: e.Node, operator: e.ComparisonOperator, right: e.Node, here: Sequence[str]
) -> p.Filter:
    parts = [p.As(_any_of(types), name) for types, name in ((before, BEFORE), (here, HERE))]
    compared = e.Comparison(operator, e.with_variable(left, BEFORE), e.with_variable(right, HERE))
    return p.Filter(p.Sequence(tuple(parts), (p.Link(),)), compared)


def _any_of(types: Sequence[str]) -> p.Pattern:
    events = tuple(dict.fromkeys(event_type(name) for name in types))
    return events[0] if len(events) == 1 else p.Disjunction(events)


def compared_before(
    automaton: Chain | PCEA, transition: ChainTransition | PceaTransition
) -> list[tuple[int, list[e.Node]]]:
    """The states that a transition leaves, each with the comparisons with the event before.

    The keys of a parallelized automaton must have one form each (`parted`).
    """
    if isinstance(transition, ChainTransition):
        if transition.source is None:
            return []
        said: list[e.Node] = [comparison.said(BEFORE) for comparison in transition.comparisons]
        return [(transition.source, said)]
    assert isinstance(automaton, PCEA)  # noqa: S101  (for the type checker)
    compared = []
    for source in transition.sources:
        sides = [next(iter(automaton.keys[key].forms.values())) for key in (source.left, source.right)]
        name = BEFORE if len(transition.sources) == 1 else automaton.states[source.state]
        joined: list[e.Node] = [
            e.Comparison("=", e.with_variable(one, name), other) for one, other in zip(*sides, strict=True)
        ]
        compared.append((source.state, joined))
    return compared
