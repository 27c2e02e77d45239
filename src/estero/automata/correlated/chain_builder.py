"""Builds an unambiguous chain automaton from transitions between neighbours, if indices serve it.

The conditions of transitions are split into disjoint ones (conditions.py), the automaton is made
deterministic (deterministic.py), and each condition becomes a bit of the event and comparisons that an index
serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Final, NamedTuple

from estero.automata.cea import CEA, EventPredicate, Transition
from estero.automata.chain import ORDERS, Chain, ChainTransition, Neighbours, is_range
from estero.automata.correlated.conditions import ANY, Terms
from estero.automata.correlated.deterministic import (
    BEGIN,
    Edge,
    Machine,
    Marked,
    TooManyError,
    ambiguous,
    determinized,
    minimal,
)
from estero.automata.correlated.neighbours import Step, event_name
from estero.automata.growth import what_grows
from estero.automata.reads import read_of
from estero.automata.residual import NO_HIDDEN, HiddenSet
from estero.language.check.kinds import kind_of
from estero.language.tree.conditions import conjoined, conjuncts
from estero.language.tree.expressions import ComparisonOperator, IsNull, Not
from estero.language.tree.schema import Schema

STATE_CAP: Final = 1_000
"""The most states of a chain before it is minimized."""

MOST_NULL_WAYS: Final = 256
"""The most cases of one condition: a value that is equal or NULL has three, and n such values have 3^n."""

MOST_TRANSITIONS: Final = 4_000
"""The most transitions of a chain."""

MOST_DIFFERENT: Final = 4
"""The most disequalities of one transition: an index of them has a pointer for each sequence of them."""

MIXED: Final = "no index serves an integer and a float that must differ, with a window or an order"
"""The reason why no index serves a comparison."""


class NoChainError(Exception):
    """The reason why a pattern has no chain automaton, as a phrase."""


class PlacedTransition(NamedTuple):
    """A transition between numbered places; the source may be `BEGIN`."""

    source: int
    by: Transition
    step: Step
    target: int


class ChainBuilder:
    """Builds chains for an index of lists (`listed`), or else for an ordered index.

    `different` is the most disequalities of one transition that the index of lists serves.
    """

    def __init__(self, schema: Schema, *, listed: bool, different: int = MOST_DIFFERENT) -> None:
        self._kinds = schema.column_kinds
        self._listed = listed
        self._different = different
        self._terms = Terms()

    def chain(
        self,
        automaton: CEA,
        placed: Sequence[tuple[PlacedTransition, tuple[Neighbours, ...]]],
        hidden: HiddenSet,
    ) -> Chain:
        """The smallest chain that finds each complex event once, given its transitions between places.

        The places are those of `automaton`. If indices serve no such chain, it is one that may find a complex
        event several times, but a bounded number. Raises `NoChainError` if there is none.
        """

        def grows(subsets: Iterable[frozenset[int]]) -> str:
            states = {transition.target: transition.by.target for transition, _ in placed}
            of = [frozenset(states[place] for place in subset - {BEGIN}) for subset in subsets]
            return what_grows(automaton, of)

        plain = minimal(self._machine(automaton, placed, hidden), self._terms)
        return self._once(plain, ambiguous(plain, self._terms), hidden, grows)

    def unambiguous(self, given: Chain) -> Chain:
        """The chain itself if it is unambiguous, else an equivalent one as by `chain`."""
        plain = self._machine_of(given)
        parting = ambiguous(plain, self._terms)
        if parting is None:
            return given
        return self._once(minimal(plain, self._terms), parting, NO_HIDDEN, lambda _: "")

    def _once(
        self,
        plain: Machine,
        parting: tuple[Edge, Edge] | None,
        hidden: HiddenSet,
        grows: Callable[[Iterable[frozenset[int]]], str],
    ) -> Chain:
        if not plain.edges:
            raise NoChainError("no events pass all its filters")
        why, once = "", list[Machine]()
        try:
            apart = minimal(determinized(plain, self._terms, STATE_CAP), self._terms)
            # Hidden labels keep runs with the same visible labels distinct.
            hiding = parting is not None and bool(hidden) and ambiguous(apart, self._terms) is not None
            once += [] if hiding else [apart]
        except TooManyError as error:
            why = (
                f"made deterministic, its chain automaton has {error}{grows(error.subsets)}: "
                "write fewer alternatives in one query"
            )
        once += [plain] if parting is None else []
        chains: list[Chain] = []
        for machine in once:
            made = self._made(machine)
            if isinstance(made, Chain):
                chains.append(made)
            else:
                why = why or made
        if chains:
            return min(chains, key=lambda candidate: len(candidate.transitions))
        repeating = self._made(plain)
        if isinstance(repeating, Chain) and repeating.most_events is not None and parting is not None:
            return replace(repeating, repeats="; ".join(filter(None, (_two_ways(parting), why))))
        raise NoChainError(why or (_two_ways(parting) if parting else ""))

    def _machine_of(self, given: Chain) -> Machine:
        """The transitions of a chain with their conditions as terms."""
        edges: dict[Edge, None] = {}
        for transition in given.transitions:
            predicate = given.predicates[transition.predicate]
            asked = self._terms.of_neighbours(transition.comparisons)
            parts = [] if predicate.condition is None else conjuncts(predicate.condition)
            for way in self._terms.of_event(parts) if asked is not None else ():
                both = self._terms.all_of((asked or ANY, way))
                source = BEGIN if transition.source is None else transition.source
                for name in predicate.types if both is not None else ():
                    edges[
                        Edge(
                            source,
                            Marked(name, transition.labels, transition.hidden),
                            both or ANY,
                            transition.target,
                        )
                    ] = None
        return Machine(tuple(edges), given.final)

    def _machine(
        self,
        automaton: CEA,
        placed: Iterable[tuple[PlacedTransition, tuple[Neighbours, ...]]],
        hidden: HiddenSet,
    ) -> Machine:
        """The machine of placed transitions, whose conditions are those that indices serve."""
        edges: dict[Edge, None] = {}
        final: set[int] = set()
        for transition, comparisons in placed:
            if transition.by.target in automaton.final:
                final.add(transition.target)
            asked = self._terms.of_neighbours(comparisons)
            known = [Not(IsNull(value)) for value in transition.step.not_null]
            read = read_of(transition.by.guard, transition.by.labels, automaton, ())
            for name, condition in read.cases if read is not None and asked is not None else ():
                marked = Marked(name, transition.by.labels, transition.by.hidden & hidden)
                for way in self._terms.of_event([*conjuncts(condition), *known]):
                    both = self._terms.all_of((asked or ANY, way))
                    if both is not None:
                        edges[Edge(transition.source, marked, both, transition.target)] = None
        return Machine(tuple(edges), frozenset(final))

    def _made(self, machine: Machine) -> Chain | str:
        """The chain of a machine, or the reason why indices do not serve it, as a phrase."""
        numbers = {state: number for number, state in enumerate(machine.states)}
        types: dict[Edge, dict[str, None]] = {}
        for edge in machine.edges:
            alike = edge._replace(marked=edge.marked._replace(event_type=""))
            types.setdefault(alike, {})[edge.marked.event_type] = None
        predicates: dict[EventPredicate, int] = {}
        transitions: list[ChainTransition] = []
        for edge, names in types.items():
            written = self._terms.written(edge.condition, null_differs=self._listed)
            for ways, (asked, comparisons) in enumerate(written):
                if ways == MOST_NULL_WAYS:
                    return f"one of its conditions has more than {ways} cases of values that are NULL"
                predicate = EventPredicate(tuple(names), conjoined(asked))
                transitions.append(
                    ChainTransition(
                        None if edge.source == BEGIN else numbers[edge.source],
                        predicates.setdefault(predicate, len(predicates)),
                        in_written_order(comparisons),
                        edge.marked.labels,
                        numbers[edge.target],
                        edge.marked.hidden,
                    )
                )
                if len(transitions) > MOST_TRANSITIONS:
                    return f"its chain automaton has more than {MOST_TRANSITIONS:,} transitions"
                unserved = self._unserved(transitions[-1])
                if unserved:
                    return unserved
        final = frozenset(numbers[state] for state in machine.final)
        return Chain(tuple(_names(transitions, predicates)), final, tuple(transitions), tuple(predicates))

    def _unserved(self, transition: ChainTransition) -> str:
        """The reason why no index serves the comparisons of a transition, as a phrase; empty if one does."""
        different, orders = len(transition.different), transition.by(*ORDERS)
        if self._listed:
            most, where = self._different, ""
        else:
            most, where = 1 - bool(orders), " under a window or beside an order"
            if len(orders) > 2 or (len(orders) == 2 and not is_range(*orders)):
                return (
                    "made deterministic, its chain automaton compares the same neighbours by several orders"
                )
        if different > most:
            return (
                f"made deterministic, its chain automaton compares the same neighbours by {different} "
                f"disequalities, and an index has {most} at most{where}"
            )
        kinds = (kind_of(side, self._kinds) for one in transition.different for side in (one.left, one.right))
        if not self._listed and len(set(kinds)) > 1:
            return MIXED
        return ""


_WRITTEN: Final[tuple[ComparisonOperator, ...]] = ("=", ">", ">=", "<", "<=", "!=")
"""The order of the comparisons of a transition: the lower end of a range before the upper one."""


def in_written_order(comparisons: Iterable[Neighbours]) -> tuple[Neighbours, ...]:
    """The comparisons in the order in which a transition has them."""
    return tuple(sorted(comparisons, key=lambda comparison: _WRITTEN.index(comparison.operator)))


def _two_ways(parting: tuple[Edge, Edge]) -> str:
    marks = ", ".join(sorted(parting[0].marked.labels))
    return f"two runs can mark the same events, because an event {marks} can be read in two ways"


def _names(transitions: Sequence[ChainTransition], predicates: Iterable[EventPredicate]) -> dict[str, None]:
    """Names of states by the events that enter them, with a number if several states have the same name."""
    known = list(predicates)
    entering: dict[int, dict[str, None]] = {}
    for transition in transitions:
        name = event_name(transition.labels, known[transition.predicate].types)
        entering.setdefault(transition.target, {})[name] = None
    names: dict[str, None] = {}
    for state in sorted(entering):
        plain = " or ".join(entering[state])
        tries = chain((plain,), (f"{plain} {number}" for number in count(2)))
        names[next(name for name in tries if name not in names)] = None
    return names
