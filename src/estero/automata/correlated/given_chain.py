"""Chain automata as users give them, made unambiguous or turned into automata with filters.

A chain that indices serve is made deterministic if it is ambiguous (Theorem 8 of "Towards streaming
evaluation of queries with correlation in complex event processing", docs/papers.md). Any other becomes an
automaton in which each event that enters a state begins an instance, to which the next marked event belongs
as well; the comparisons of the two are filters inside that instance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from estero.automata.cea import ALWAYS, CEA, NO_LABELS, Guard, Transition, from_first
from estero.automata.chain import ORDERS, Chain, ChainTransition, Neighbours, is_range
from estero.automata.compile.compile_pattern import Compiled
from estero.automata.correlated.chain_builder import MIXED, ChainBuilder, NoChainError, in_written_order
from estero.automata.residual import Hidden, Residual
from estero.language.check.kinds import kind_of
from estero.language.tree import expressions as e
from estero.language.tree.schema import HASHED, Kind, Schema

MOST_POINTED: Final = 6
"""The most disequalities of a transition in an ED-index: they take 1,956 skip pointers for each event."""

BEFORE, HERE = "before", "here"
"""The variables of a filter between neighbours."""


def indexed(chain: Chain, schema: Schema, *, windowed: bool) -> Chain | str:
    """The chain, made deterministic if it is ambiguous, or the reason why no index serves it, as a phrase."""
    if chain.anchored:
        return "its runs begin at the first event only, and there are few of these"
    listed = not windowed and not chain.ordered
    chain = replace(chain, transitions=tuple(map(_written, chain.transitions)))
    for transition in chain.transitions:
        why = _unserved(transition, schema.column_kinds, listed=listed)
        if why:
            return why
    builder = ChainBuilder(schema, listed=listed, different=MOST_POINTED)
    try:
        return builder.unambiguous(chain)
    except NoChainError as reason:
        return str(reason)


def _written(transition: ChainTransition) -> ChainTransition:
    """The transition with its comparisons in the order that indices require."""
    return replace(transition, comparisons=in_written_order(transition.comparisons))


def _unserved(transition: ChainTransition, kinds: Mapping[str, Kind], *, listed: bool) -> str:
    """The reason why no index serves the comparisons of a transition, as a phrase; empty if one does."""
    different = transition.different
    if listed:
        if len(different) > MOST_POINTED:
            return (
                f"an event and the one before it are compared by {len(different)} disequalities, and an "
                f"index has {MOST_POINTED} at most: seven would take 13,699 pointers for each event"
            )
        return ""
    orders = transition.by(*ORDERS)
    one = len(orders) + len(different) <= 1 or (not different and len(orders) == 2 and is_range(*orders))
    if not one:
        asked = " and ".join(comparison.operator for comparison in (*orders, *different))
        return (
            f"an event and the one before it are compared by {asked}: with a window or an order, an index "
            "serves one of these, or one range"
        )
    for comparison in (*orders, *different):
        left, right = (
            kind_of(side, kinds) if _known(side, kinds) else None
            for side in (comparison.left, comparison.right)
        )
        if left is not None and right is not None and left is not right:
            return MIXED if comparison in different else "it compares an integer with a float"
        if comparison in orders and {left, right} & HASHED:
            return "it orders strings or decimals"
    return ""


def _known(side: e.Node, kinds: Mapping[str, Kind]) -> bool:
    return all(node.name in kinds for node in side.walk() if isinstance(node, e.Attribute))


# ---------------------------------------------------------------------------------------- as filters


def with_filters(chain: Chain) -> Compiled:
    """An automaton with the marks of the chain, and with filters for its comparisons."""
    return _Filtered(chain).compiled()


class _Filtered:
    """The automaton of a chain: an initial state 0, copies of the states of the chain, and a final state.

    A state with a transition to itself has two copies, which take turns: else an event would begin the next
    instance of a place before it could belong to the last one.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        again = {
            transition.source for transition in chain.transitions if transition.source == transition.target
        }
        copies = [(state, turn) for state in range(len(chain.states)) for turn in range(1 + (state in again))]
        self._number = {copy: number for number, copy in enumerate(copies, start=1)}

    def compiled(self) -> Compiled:
        """The automaton and its residuals."""
        chain, last = self._chain, len(self._number) + 1
        marking = [
            Transition(
                source, Guard(frozenset({transition.predicate})), transition.labels, target, frozenset(hidden)
            )
            for number, transition in enumerate(chain.transitions)
            for source, entered in self._ways(transition)
            for target, hidden in self._marks(number, source, entered, last)
        ]
        going_on = {transition.source for transition in marking} - {0}
        kept = [
            transition for transition in marking if transition.target == last or transition.target in going_on
        ]
        waiting = [Transition(state, ALWAYS, NO_LABELS, state) for state in sorted(going_on)]
        transitions = tuple(dict.fromkeys((*kept, *waiting)))
        automaton = CEA(last + 1, frozenset({0}), frozenset({last}), transitions, chain.predicates)
        automaton = from_first(automaton) if chain.anchored else automaton
        return Compiled(automaton, tuple(dict.fromkeys(self._residuals())))

    def _ways(self, transition: ChainTransition) -> Iterator[tuple[int, int]]:
        """The pairs of copies that a transition leads from and to."""
        for (state, turn), number in self._number.items():
            if state == transition.source:
                yield number, self._number[transition.target, 1 - turn if state == transition.target else 0]
        if transition.source is None:
            yield 0, self._number[transition.target, 0]

    def _marks(
        self, number: int, source: int, entered: int, last: int
    ) -> Iterator[tuple[int, tuple[Hidden, ...]]]:
        """The targets of a transition that enters a copy, with the hidden labels of its event."""
        transition = self._chain.transitions[number]
        belongs = (Hidden(source, f"{HERE} {number}"),) if transition.comparisons else ()
        yield entered, (*belongs, Hidden(entered), Hidden(entered, BEFORE))
        if transition.target in self._chain.final:
            yield last, belongs

    def _residuals(self) -> Iterator[Residual]:
        for number, transition in enumerate(self._chain.transitions):
            for source, _ in self._ways(transition):
                bindings = (
                    (BEFORE, Hidden(source, BEFORE)),
                    (HERE, Hidden(source, f"{HERE} {number}")),
                )
                for one in transition.comparisons:
                    yield Residual(_compared(one), bindings, place=source)


def _compared(neighbours: Neighbours) -> e.Node:
    return replace(neighbours, right=e.with_variable(neighbours.right, HERE)).said(BEFORE)
