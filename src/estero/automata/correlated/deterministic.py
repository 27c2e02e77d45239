"""Determinization of chain automata, so that each set of marks has at most one accepting run.

This is Theorem 8 of "Towards streaming evaluation of queries with correlation in complex event processing"
(docs/papers.md): the subset construction over disjoint conditions, which are computed for each state from the
conditions of its transitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations, product
from typing import Final, NamedTuple

from estero.automata.cea import LabelSet
from estero.automata.correlated.conditions import ANY, Condition, Terms
from estero.automata.exploration import explore, leaving, reached
from estero.automata.residual import HiddenSet

BEGIN = -1
"""The state of a run that has not begun."""

MOST_CASES: Final = 256
"""The most disjoint conditions of one state, kind of event and set of labels."""


class Marked(NamedTuple):
    """An event of one type, and the labels that it gets."""

    event_type: str
    labels: LabelSet
    hidden: HiddenSet


class Edge(NamedTuple):
    """A transition where `condition` is true; the source may be `BEGIN`."""

    source: int
    marked: Marked
    condition: Condition
    target: int


class Machine(NamedTuple):
    """A chain automaton whose states are the targets of its edges, and `BEGIN`."""

    edges: tuple[Edge, ...]
    final: frozenset[int]

    @property
    def states(self) -> tuple[int, ...]:
        """The targets of edges, in the order in which they first occur."""
        return tuple(dict.fromkeys(edge.target for edge in self.edges))


class TooManyError(Exception):
    """An error: the deterministic machine, with `subsets` as states, has too many states or cases."""

    def __init__(self, what: str, subsets: Iterable[frozenset[int]]) -> None:
        super().__init__(what)
        self.subsets: tuple[frozenset[int], ...] = tuple(subsets)


def minimal(machine: Machine, terms: Terms) -> Machine:
    """Minimizes a machine: merges states with the same future (Moore), and conditions of parallel edges.

    States on no accepting run are left out. `BEGIN` is never merged, as no event comes before it.
    """
    before, after = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for edge in machine.edges:
        before[edge.target].append(edge.source)
        after[edge.source].append(edge.target)
    useful = {*reached(machine.final, before.__getitem__)} & {*reached([BEGIN], after.__getitem__)}
    edges = (edge for edge in machine.edges if {edge.source, edge.target} <= useful)
    machine = Machine(tuple(edges), machine.final & useful)
    smaller = _fused(_merged(machine), terms)
    while len(smaller.edges) < len(machine.edges):
        machine, smaller = smaller, _fused(_merged(smaller), terms)
    return smaller


def _fused(machine: Machine, terms: Terms) -> Machine:
    """Replaces parallel edges by fewer equivalent ones, as far as these are easy to compute."""
    parallel: defaultdict[tuple[int, Marked, int], list[Condition]] = defaultdict(list)
    for edge in machine.edges:
        parallel[edge.source, edge.marked, edge.target].append(edge.condition)
    edges = []
    for (source, marked, target), conditions in parallel.items():
        cases = _cases(((condition, 0) for condition in conditions), terms) if len(conditions) > 1 else None
        fewer = (
            conditions
            if cases is None or len(cases) > len(conditions)
            else [condition for condition, _ in cases]
        )
        edges += [Edge(source, marked, condition, target) for condition in fewer]
    return Machine(tuple(edges), machine.final)


def _merged(machine: Machine) -> Machine:
    block = {BEGIN: 2, **{state: int(state in machine.final) for state in machine.states}}
    after = leaving(machine.edges)
    while True:
        futures = {
            state: (
                block[state],
                frozenset((edge.marked, edge.condition, block[edge.target]) for edge in after[state]),
            )
            for state in block
        }
        numbers: dict[object, int] = {}
        finer = {state: numbers.setdefault(future, len(numbers)) for state, future in futures.items()}
        if len(numbers) == len(set(block.values())):
            break
        block = finer
    first: dict[int, int] = {}
    for state in block:
        first.setdefault(block[state], state)
    stands_for = {state: state if state == BEGIN else first[number] for state, number in block.items()}
    edges = dict.fromkeys(
        edge._replace(target=stands_for[edge.target])
        for edge in machine.edges
        if stands_for[edge.source] == edge.source
    )
    kept = {edge.target for edge in edges}
    return Machine(tuple(edges), frozenset(stands_for[state] for state in machine.final) & kept)


def determinized(machine: Machine, terms: Terms, cap: int) -> Machine:
    """The subset construction; raises `TooManyError` if there are more than `cap` subsets."""
    after = leaving(machine.edges)
    met: list[frozenset[int]] = []

    def steps(
        subset: frozenset[int],
    ) -> Iterator[tuple[tuple[Marked, Condition], frozenset[int]]]:
        met.append(subset)
        asked: defaultdict[Marked, list[tuple[Condition, int]]] = defaultdict(list)
        for state in sorted(subset):
            for edge in after[state]:
                asked[edge.marked].append((edge.condition, edge.target))
        for marked, ways in asked.items():
            cases = _cases(ways, terms)
            if cases is None:
                raise TooManyError(f"more than {MOST_CASES} cases", met)
            for condition, targets in cases:
                yield (marked, condition), targets

    begin = frozenset({BEGIN})
    numbers = {begin: BEGIN}
    edges: list[Edge] = []
    for subset, (marked, condition), target in explore([begin], steps):
        number = numbers.setdefault(target, len(numbers) - 1)
        if number >= cap:
            raise TooManyError(f"more than {cap:,} states", met)
        edges.append(Edge(numbers[subset], marked, condition, number))
    final = frozenset(number for subset, number in numbers.items() if subset & machine.final)
    return Machine(tuple(edges), final)


def _cases(
    ways: Iterable[tuple[Condition, int]], terms: Terms
) -> list[tuple[Condition, frozenset[int]]] | None:
    """Disjoint conditions, each with all its targets; None if there are too many.

    Conditions without a target are left out.
    """
    nowhere = frozenset[int]()
    disjoint: list[tuple[Condition, frozenset[int]]] = [(ANY, nowhere)]
    for asked, target in sorted(ways, key=lambda way: len(way[0])):
        parted: list[tuple[Condition, frozenset[int]]] = []
        for case, targets in disjoint:
            inside = None if target in targets else terms.both(case, asked)
            if inside is None:
                parted.append((case, targets))
            else:
                parted.append((inside, targets | {target}))
                parted += [(outside, targets) for outside in terms.without(case, asked)]
        if len(parted) > MOST_CASES:
            return None
        disjoint = parted
    by_targets: dict[frozenset[int], list[Condition]] = {}
    for case, targets in disjoint:
        if targets:
            by_targets.setdefault(targets, []).append(case)
    return [(case, targets) for targets, cases in by_targets.items() for case in terms.fused(cases)]


def ambiguous(machine: Machine, terms: Terms) -> tuple[Edge, Edge] | None:
    """Two edges where two accepting runs with the same marks part; None if no such runs are found.

    They are searched in the product of the machine with itself, over pairs of edges that one event may pass
    with the same labels.
    """
    after = leaving(machine.edges)

    def meet(one: Edge, other: Edge) -> bool:
        alike = one.marked[:2] == other.marked[:2]
        return alike and terms.both(one.condition, other.condition) is not None

    parting: dict[tuple[int, int], tuple[Edge, Edge]] = {}
    for state in reached([BEGIN], lambda state: [edge.target for edge in after[state]]):
        for one, other in combinations(after[state], 2):
            if meet(one, other):
                parting.setdefault((one.target, other.target), (one, other))

    def steps(pair: tuple[int, int]) -> Iterator[tuple[None, tuple[int, int]]]:
        for one, other in product(after[pair[0]], after[pair[1]]):
            if meet(one, other):
                yield None, (one.target, other.target)

    for before, _, pair in explore(parting, steps):
        parting.setdefault(pair, parting[before])
    return next((both for pair, both in parting.items() if machine.final.issuperset(pair)), None)
