"""A chain automaton as a pattern: one sequence for each way through it, with a filter for its comparisons.

A chain with loops says more than a pattern of this form can; so does one with too many ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from estero.automata.cea import ALWAYS, CEA, NO_LABELS, Guard, Transition
from estero.automata.chain import Chain, ChainTransition
from estero.automata.formulas.atoms import event_type
from estero.automata.formulas.rational import either
from estero.automata.formulas.user_runs import BEFORE
from estero.automata.pcea import PCEA, PceaTransition
from estero.errors import LimitExceeded
from estero.language.tree import expressions as e
from estero.language.tree import pattern as p
from estero.language.tree.conditions import conjoined

MOST_WAYS: Final = 64


def chain_to_pattern(chain: Chain) -> p.Pattern:
    """The pattern with the complex events of `chain`.

    Raises `LimitExceeded` where the chain has a loop, or more than `MOST_WAYS` ways from begin to end.
    """
    if chain.most_events is None:
        raise LimitExceeded("this automaton has a loop that compares events, which no pattern says")
    ways: list[p.Pattern] = []
    for way in _ways(chain):
        if len(ways) == MOST_WAYS:
            raise LimitExceeded(f"this automaton has more than {MOST_WAYS} ways from begin to end")
        ways.append(_pattern(chain, way))
    return ways[0] if len(ways) == 1 else p.Disjunction(tuple(ways))


def _ways(chain: Chain) -> Iterator[tuple[ChainTransition, ...]]:
    open_ways: list[tuple[ChainTransition, ...]]
    open_ways = [(each,) for each in chain.transitions if each.source is None]
    while open_ways:
        way = open_ways.pop(0)
        if way[-1].target in chain.final:
            yield way
        open_ways += [(*way, each) for each in chain.transitions if each.source == way[-1].target]


def _pattern(chain: Chain, way: Sequence[ChainTransition]) -> p.Pattern:
    """One way: an event after the other, each under a name of its own, and what is compared of neighbours."""
    labels = sorted({label for each in way for label in each.labels})
    taken = {*labels, *(name for each in chain.predicates for name in each.types)}
    names = []
    for place in range(len(way)):
        name = f"e{place + 1}"
        while name in taken:
            name = f"{name}_"
        names.append(name)
        taken.add(name)
    parts = []
    conditions: list[e.Node] = []
    for place, (name, each) in enumerate(zip(names, way, strict=True)):
        predicate = chain.predicates[each.predicate]
        part = either([event_type(of) for of in predicate.types])
        for label in (name, *sorted(each.labels - {str(part)})):
            part = p.As(part, label)
        parts.append(part)
        if predicate.condition is not None:
            conditions.append(e.EventFilter(name, predicate.condition))
        before = names[place - 1]
        conditions += [
            e.Comparison(one.operator, e.with_variable(one.left, before), e.with_variable(one.right, name))
            for one in each.comparisons
        ]
    whole = parts[0] if len(parts) == 1 else p.Sequence(tuple(parts), (p.Link(),) * (len(parts) - 1))
    if conditions:
        whole = p.Filter(whole, conditions[0] if len(conditions) == 1 else e.And(tuple(conditions)))
    return p.Keep(whole, tuple(labels))


def skeleton(automaton: Chain | PCEA, *, comparing: bool = False) -> CEA:
    """What an automaton reads and marks: a CEA whose runs need not compare, nor gather, what they should.

    State 0 is where runs begin, k + 1 is state k, and the last one is where they end. With `comparing` the
    predicates say what is compared with the event `before`: for pictures, not to be evaluated.
    """
    last = len(automaton.states) + 1
    predicates = dict.fromkeys(automaton.predicates)
    transitions: list[Transition] = []
    for each in automaton.transitions:
        for source, comparisons in compared_before(automaton, each) or [(-1, [])]:
            predicate = automaton.predicates[each.predicate]
            if comparing and comparisons:
                own = [] if predicate.condition is None else [predicate.condition]
                predicate = replace(predicate, condition=conjoined([*own, *comparisons]))
                predicates[predicate] = None
            guard = Guard(frozenset({list(predicates).index(predicate)}))
            targets = [each.target + 1, *([last] if each.target in automaton.final else [])]
            transitions += [Transition(source + 1, guard, each.labels, target) for target in targets]
    going_on = {each.source for each in transitions} - {0}
    transitions = [each for each in transitions if each.target == last or each.target in going_on]
    transitions += [Transition(state, ALWAYS, NO_LABELS, state) for state in sorted(going_on)]
    return CEA(last + 1, frozenset({0}), frozenset({last}), tuple(transitions), tuple(predicates))


def attributes_compared(automaton: Chain | PCEA) -> Iterator[tuple[str, str]]:
    """Pairs of a type and an attribute of its events that transitions compare."""
    sides: list[tuple[Iterable[str], e.Node]] = []
    if isinstance(automaton, Chain):
        entered = automaton.entering_types()
        for each in automaton.transitions:
            for one in each.comparisons:
                sides.append((automaton.predicates[each.predicate].types, one.right))
                sides += [] if each.source is None else [(entered[each.source], one.left)]
    else:
        sides += [((name,), side) for key in automaton.keys for name, of in key.forms.items() for side in of]
    for types, side in sides:
        for node in side.walk():
            if isinstance(node, e.Attribute):
                yield from ((name, node.name) for name in types)


def compared_before(
    automaton: Chain | PCEA, transition: ChainTransition | PceaTransition
) -> list[tuple[int, list[e.Node]]]:
    """The states that a transition leaves, each with what is compared with the event before."""
    if isinstance(transition, ChainTransition):
        if transition.source is None:
            return []
        said: list[e.Node] = [
            e.Comparison(each.operator, e.with_variable(each.left, BEFORE), each.right)
            for each in transition.comparisons
        ]
        return [(transition.source, said)]
    assert isinstance(automaton, PCEA)  # noqa: S101  (for the type checker)
    found = []
    for source in transition.sources:
        sides = [next(iter(automaton.keys[key].forms.values())) for key in (source.left, source.right)]
        name = BEFORE if len(transition.sources) == 1 else automaton.states[source.state]
        joined: list[e.Node] = [
            e.Comparison("=", e.with_variable(one, name), other) for one, other in zip(*sides, strict=True)
        ]
        found.append((source.state, joined))
    return found
