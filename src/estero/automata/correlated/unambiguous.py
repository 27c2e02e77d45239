"""Chain automata with one accepting run at most for each set of marks.

This is Theorem 8 of "Towards streaming evaluation of queries with correlation", as far as it goes without
negated comparisons.
Transitions are told apart by their *letters*: all of a transition but its two states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

from estero.automata.cea import EventPredicate, LabelSet
from estero.automata.chain import Neighbours
from estero.automata.exploration import explore, leaving, reached
from estero.automata.formulas.atoms import not_true
from estero.automata.residual import HiddenSet
from estero.language.tree.conditions import conjuncts
from estero.language.tree.expressions import Call, Not

BEGIN = -1
"""The state of a run that has not begun."""


class Letter(NamedTuple):
    """What a transition reads: its event, the comparisons with the one before, and the labels."""

    predicate: EventPredicate
    comparisons: tuple[Neighbours, ...]
    labels: LabelSet
    hidden: HiddenSet


class Edge(NamedTuple):
    """A transition; the source may be `BEGIN`."""

    source: int
    letter: Letter
    target: int


class Machine(NamedTuple):
    """States are the integers that edges go to, and `BEGIN`."""

    edges: tuple[Edge, ...]
    final: frozenset[int]

    @property
    def states(self) -> tuple[int, ...]:
        """The states that edges go to, in the order in which they are found."""
        return tuple(dict.fromkeys(edge.target for edge in self.edges))


def unambiguous(machine: Machine, cap: int) -> Machine | str:
    """An equivalent machine with one accepting run at most for each set of marks, or a phrase on why not.

    Of two it is the one with fewer transitions: each of them that an event passes costs a node.
    """
    machine = merged(machine)
    determinised = by_letters(machine, cap)
    candidates = [machine] if determinised is None else [merged(determinised), machine]
    parted = [ambiguous(each) for each in candidates]
    good = [each for each, pair in zip(candidates, parted, strict=True) if pair is None]
    if good:
        return min(good, key=lambda each: len(each.edges))
    one = next(pair[0] for pair in parted if pair is not None)
    marks = ", ".join(sorted(one.letter.labels))
    return f"the same marks can be made in two ways, as an event {marks} can be read in two places"


def merged(machine: Machine) -> Machine:
    """States with the same future made one (Moore); `BEGIN` stays alone, as no event is before it."""
    block = {BEGIN: 2, **{state: int(state in machine.final) for state in machine.states}}
    after = leaving(machine.edges)
    while True:
        futures = {
            state: (block[state], frozenset((edge.letter, block[edge.target]) for edge in after[state]))
            for state in block
        }
        numbers: dict[tuple[int, frozenset[tuple[Letter, int]]], int] = {}
        finer = {state: numbers.setdefault(future, len(numbers)) for state, future in futures.items()}
        if len(numbers) == len(set(block.values())):
            break
        block = finer
    first: dict[int, int] = {}
    for state in block:
        first.setdefault(block[state], state)
    stands_for = {state: state if state == BEGIN else first[number] for state, number in block.items()}
    edges = dict.fromkeys(
        Edge(stands_for[edge.source], edge.letter, stands_for[edge.target])
        for edge in machine.edges
        if stands_for[edge.source] == edge.source
    )
    return Machine(tuple(edges), frozenset(stands_for[state] for state in machine.final))


def by_letters(machine: Machine, cap: int) -> Machine | None:
    """The subset construction with letters as the alphabet; None where there are more than `cap` subsets."""
    after = leaving(machine.edges)

    def steps(subset: frozenset[int]) -> Iterator[tuple[Letter, frozenset[int]]]:
        targets: defaultdict[Letter, set[int]] = defaultdict(set)
        for state in sorted(subset):
            for edge in after[state]:
                targets[edge.letter].add(edge.target)
        return ((letter, frozenset(targets[letter])) for letter in targets)

    begin = frozenset({BEGIN})
    numbers = {begin: BEGIN}
    edges: list[Edge] = []
    for subset, letter, target in explore([begin], steps):
        number = numbers.setdefault(target, len(numbers) - 1)
        if number >= cap:
            return None
        edges.append(Edge(numbers[subset], letter, number))
    final = frozenset(number for subset, number in numbers.items() if subset & machine.final)
    return Machine(tuple(edges), final)


def ambiguous(machine: Machine) -> tuple[Edge, Edge] | None:
    """Where two accepting runs with the same marks part, or None if there are none that can be told.

    The product of the machine with itself, over pairs of transitions that one event may pass with the same
    labels.
    """
    after = leaving(machine.edges)
    parting: dict[tuple[int, int], tuple[Edge, Edge]] = {}
    for state in reached([BEGIN], lambda state: [edge.target for edge in after[state]]):
        for one, other in combinations(after[state], 2):
            if may_meet(one.letter, other.letter):
                parting.setdefault((one.target, other.target), (one, other))

    def steps(pair: tuple[int, int]) -> Iterator[tuple[None, tuple[int, int]]]:
        for one, other in product(after[pair[0]], after[pair[1]]):
            if may_meet(one.letter, other.letter):
                yield None, (one.target, other.target)

    for before, _, pair in explore(parting, steps):
        parting.setdefault(pair, parting[before])
    return next((both for pair, both in parting.items() if machine.final.issuperset(pair)), None)


def may_meet(one: Letter, other: Letter) -> bool:
    """Whether one event may pass both with the same labels, as far as the form shows it."""
    if one.labels != other.labels or set(one.predicate.types).isdisjoint(other.predicate.types):
        return False
    return not (_excludes(one.predicate, other.predicate) or _excludes(other.predicate, one.predicate))


def _excludes(one: EventPredicate, other: EventPredicate) -> bool:
    """Whether the condition of `other` asks that something is not true which `one` asks for."""
    true = set(conjuncts(one.condition))
    for part in conjuncts(other.condition):
        match part:
            case Not(Call("coalesce", (refuted, _))) if part == not_true(refuted):
                if true.issuperset(conjuncts(refuted)):
                    return True
            case _:
                pass
    return False
