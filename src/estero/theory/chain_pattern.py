"""Turns a chain automaton into a pattern: one sequence, with the comparisons as filter, for each path.

Chains with loops, or with too many paths, have no pattern of this form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from estero.automata.chain import Chain, ChainTransition
from estero.automata.reads import event_type
from estero.errors import LimitExceeded
from estero.language.tree import expressions as e
from estero.language.tree import pattern as p
from estero.theory.rational import either

MOST_WAYS: Final = 64


def chain_to_pattern(chain: Chain) -> p.Pattern:
    """The pattern with the complex events of `chain`.

    Raises `LimitExceeded` where the chain has a loop, or more than `MOST_WAYS` paths to its end.
    """
    if chain.most_events is None:
        raise LimitExceeded("this automaton has a loop that compares events, which no pattern can say")
    ways: list[p.Pattern] = []
    for way in _ways(chain):
        if len(ways) == MOST_WAYS:
            raise LimitExceeded(
                f"this automaton has more than {MOST_WAYS} paths from its beginning to its end"
            )
        ways.append(_pattern(chain, way))
    return ways[0] if len(ways) == 1 else p.Disjunction(tuple(ways))


def _ways(chain: Chain) -> Iterator[tuple[ChainTransition, ...]]:
    open_ways: list[tuple[ChainTransition, ...]]
    open_ways = [(transition,) for transition in chain.transitions if transition.source is None]
    while open_ways:
        way = open_ways.pop(0)
        if way[-1].target in chain.final:
            yield way
        open_ways += [
            (*way, transition) for transition in chain.transitions if transition.source == way[-1].target
        ]


def _pattern(chain: Chain, way: Sequence[ChainTransition]) -> p.Pattern:
    """The sequence of one path, with a name for each event and a filter for the comparisons of neighbours."""
    labels = sorted({label for transition in way for label in transition.labels})
    taken = {*labels, *(name for predicate in chain.predicates for name in predicate.types)}
    names = []
    for place in range(len(way)):
        name = f"e{place + 1}"
        while name in taken:
            name = f"{name}_"
        names.append(name)
        taken.add(name)
    parts = []
    conditions: list[e.Node] = []
    for place, (name, transition) in enumerate(zip(names, way, strict=True)):
        predicate = chain.predicates[transition.predicate]
        part = either([event_type(of) for of in predicate.types])
        for label in (name, *sorted(transition.labels - {str(part)})):
            part = p.As(part, label)
        parts.append(part)
        if predicate.condition is not None:
            conditions.append(e.EventFilter(name, predicate.condition))
        before = names[place - 1]
        conditions += [
            replace(one, right=e.with_variable(one.right, name)).said(before)
            for one in transition.comparisons
        ]
    whole = parts[0] if len(parts) == 1 else p.Sequence(tuple(parts), (p.Link(),) * (len(parts) - 1))
    whole = p.Start(whole) if chain.anchored else whole
    if conditions:
        whole = p.Filter(whole, conditions[0] if len(conditions) == 1 else e.And(tuple(conditions)))
    return p.Keep(whole, tuple(labels))
