"""Fragments of an automaton under construction, with one initial and one final state each.

Invariants of every fragment: no transition enters `initial`, none leaves `final`, and a state number
belongs to one fragment only. Joining two fragments is therefore a renaming of states, as in Thompson's
construction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Final, NamedTuple

from estero.automata.cea import (
    CEA,
    FIRST,
    NO_LABELS,
    EventPredicate,
    Guard,
    LabelSet,
    Origin,
    Transition,
    in_text_order,
)
from estero.automata.compile.symbolic_guard import ANYTHING, SymbolicGuard, guard_of
from estero.automata.exploration import between
from estero.automata.growth import too_large
from estero.automata.lacking import lacking
from estero.automata.residual import NO_HIDDEN, HiddenSet
from estero.language.tree.pattern import Pattern

STATE_CAP: Final = 50_000
"""The most states, copies included, of an automaton under construction."""

ARC_CAP: Final = 200_000
"""The most transitions that a construction may make in all its steps, which takes less than a second."""


class Arc(NamedTuple):
    """A transition of a fragment; answers do not show its labels in `hidden`."""

    source: int
    guard: SymbolicGuard
    labels: LabelSet
    target: int
    hidden: HiddenSet = NO_HIDDEN

    def moved(self, source: int, target: int) -> Arc:
        """The same arc between other states."""
        return Arc(source, self.guard, self.labels, target, self.hidden)

    def hiding(self, hidden: HiddenSet) -> Arc:
        """The arc with further hidden labels."""
        return self._replace(hidden=self.hidden | hidden) if hidden else self


Pass = tuple[SymbolicGuard, HiddenSet]
"""A guard of events that are passed over between two parts, and the hidden labels that they get."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of an automaton, with the invariants at the top of the module."""

    initial: int
    final: int
    arcs: tuple[Arc, ...]


class Passed(NamedTuple):
    """A step between two parts or rounds: hidden labels of the end before it and the beginning after it."""

    ended: HiddenSet = NO_HIDDEN
    begun: HiddenSet = NO_HIDDEN


FREE: Final = Passed()
"""A step without a distance."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a sequence, with the events that may be passed over before it and the step to it."""

    fragment: Fragment
    skips: tuple[Pass, ...] = ()
    nullable: bool = False
    passed: Passed = FREE


@dataclass(slots=True)
class Workshop:
    """Makes fragments from fragments, with fresh numbers for all new states.

    `origins` maps each state to the parts of the pattern that it was made for. `arcs` is the number of
    transitions that were ever made, also of those that have been replaced: a measure of the work.
    """

    origins: dict[int, Origin] = field(default_factory=dict)
    arcs: int = 0
    _inside: list[Pattern] = field(default_factory=list)
    _origin: Origin = ()

    def state(self) -> int:
        """A fresh state."""
        self.reserve(1)
        number = len(self.origins)
        self.origins[number] = self._origin
        return number

    def reserve(self, states: int) -> None:
        """Raises `LimitExceeded`, naming the part, if that many more states exceed the cap."""
        if len(self.origins) + states > STATE_CAP:
            raise too_large(STATE_CAP, "states", self._inside)

    def spend(self, arcs: int) -> None:
        """Counts transitions; raises `LimitExceeded`, naming the part, if they exceed the cap."""
        self.arcs += arcs
        if self.arcs > ARC_CAP:
            raise too_large(ARC_CAP, "transitions", self._inside)

    @contextmanager
    def making(self, pattern: Pattern) -> Iterator[None]:
        """A context in which new states, copies included, have `pattern` as their origin."""
        before = self._origin
        self._inside.append(pattern)
        self._origin = tuple(self._inside)
        try:
            yield
        finally:
            self._inside.pop()
            self._origin = before

    def atom(self, guard: SymbolicGuard, labels: LabelSet) -> Fragment:
        """The fragment of one event."""
        initial, final = self.state(), self.state()
        return Fragment(initial, final, (Arc(initial, guard, labels, final),))

    def copy(self, fragment: Fragment) -> Fragment:
        """A copy of a fragment with fresh states."""
        self.spend(len(fragment.arcs))
        fresh = defaultdict[int, int](self.state)
        arcs = tuple(arc.moved(fresh[arc.source], fresh[arc.target]) for arc in fragment.arcs)
        return Fragment(fresh[fragment.initial], fresh[fragment.final], arcs)

    def union(self, parts: Iterable[Fragment]) -> Fragment:
        """The union of the parts: their initial states become one, and so do their final states."""
        initial, final = self.state(), self.state()
        arcs: list[Arc] = []
        for part in parts:
            self.spend(len(part.arcs))
            same = {part.initial: initial, part.final: final}
            arcs += [
                arc.moved(same.get(arc.source, arc.source), same.get(arc.target, arc.target))
                for arc in part.arcs
            ]
        return Fragment(initial, final, tuple(arcs))

    def sequence(self, parts: Sequence[Part]) -> Fragment:
        """The concatenation of the parts, at least one of them not optional.

        No part is copied: the end of a part leads to all parts that may follow it, so that the number of arcs
        is quadratic in the number of consecutive optional parts, and linear without such parts.
        """
        initial, final = parts[0].fragment.initial, parts[-1].fragment.final
        arcs: list[Arc] = []
        may_begin = True
        for number, part in enumerate(parts):
            first, last = part.fragment.initial, part.fragment.final
            begun = part.passed.begun if number else NO_HIDDEN
            targets = _entered_after(parts, number)
            sources = [(initial, NO_HIDDEN), (first, begun)] if may_begin and number else [(first, begun)]
            for arc in part.fragment.arcs:
                begins = sources if arc.source == first else [(arc.source, NO_HIDDEN)]
                ends = targets if arc.target == last else [(arc.target, NO_HIDDEN)]
                arcs += [arc.moved(a, b).hiding(x | y) for a, x in begins for b, y in ends]
                self.spend(len(begins) * len(ends))
            if number:
                arcs.extend(Arc(first, guard, NO_LABELS, first, hidden) for guard, hidden in part.skips)
            may_begin = may_begin and part.nullable
        return Fragment(initial, final, tuple(arcs))

    def in_turn(
        self, rounds: Sequence[Fragment], skips: Sequence[Pass], least: int, passed: Passed = FREE
    ) -> Fragment:
        """The concatenation of the rounds, linked by `skips`; any from number `least` on may be the last."""
        self.spend(sum(len(round_.arcs) for round_ in rounds))
        arcs: list[Arc] = []
        links: list[list[Arc]] = []
        final = rounds[-1].final
        rounds = [rounds[0], *(self._begun(round_, passed) for round_ in rounds[1:])]
        for number, (round_, following) in enumerate(pairwise(rounds), start=1):
            middle = following.initial
            ends = [arc for arc in round_.arcs if arc.target == round_.final]
            arcs += [
                arc._replace(target=middle).hiding(passed.ended) if arc.target == round_.final else arc
                for arc in round_.arcs
            ]
            links.append([Arc(middle, guard, NO_LABELS, middle, hidden) for guard, hidden in skips])
            if number >= least:
                links[-1] += [arc._replace(target=final) for arc in ends]
        arcs += rounds[-1].arcs
        return Fragment(rounds[0].initial, final, (*arcs, *chain.from_iterable(reversed(links))))

    def iteration(self, body: Fragment, skips: Iterable[Pass], passed: Passed = FREE) -> Fragment:
        """One or more rounds of `body`, linked by `skips`; between two rounds is a copy of `initial`."""
        middle = self.state()
        arcs: list[Arc] = []
        for arc in body.arcs:
            begins, ends = [(arc.source, NO_HIDDEN)], [(arc.target, NO_HIDDEN)]
            begins += [(middle, passed.begun)] if arc.source == body.initial else []
            ends += [(middle, passed.ended)] if arc.target == body.final else []
            arcs += [arc.moved(a, b).hiding(x | y) for a, x in begins for b, y in ends]
        self.spend(len(arcs))
        arcs.extend(Arc(middle, guard, NO_LABELS, middle, hidden) for guard, hidden in skips)
        return Fragment(body.initial, body.final, tuple(arcs))

    def _begun(self, fragment: Fragment, passed: Passed) -> Fragment:
        """The fragment with the hidden labels of a step at its beginning."""
        if not passed.begun:
            return fragment
        return self.relabel(
            fragment, lambda arc: arc.hiding(passed.begun) if arc.source == fragment.initial else arc
        )

    def relabel(self, fragment: Fragment, change: Callable[[Arc], Arc]) -> Fragment:
        """The fragment with each arc replaced by `change`, which keeps its source and target."""
        self.spend(len(fragment.arcs))
        return replace(fragment, arcs=tuple(change(arc) for arc in fragment.arcs))


def _entered_after(parts: Sequence[Part], number: int) -> list[tuple[int, HiddenSet]]:
    """The states that can follow the end of a part: the initial ones of later parts, and the final one.

    Each comes with the hidden labels of the arcs that lead there.
    """
    entered: list[tuple[int, HiddenSet]] = []
    for following in parts[number + 1 :]:
        entered.append((following.fragment.initial, following.passed.ended))
        if not following.nullable:
            return entered
    return [*entered, (parts[-1].fragment.final, NO_HIDDEN)]


def freeze(fragment: Fragment, origins: Mapping[int, Origin] | None = None) -> CEA:
    """The automaton of a fragment without useless states; its states and predicates are numbered in order.

    `origins` are those of the workshop, if the automaton shall have them.
    """
    useful = between(fragment.initial, fragment.final, ((arc.source, arc.target) for arc in fragment.arcs))
    arcs = [arc for arc in fragment.arcs if arc.source in useful and arc.target in useful]
    numbers: dict[int, int] = {fragment.initial: 0}
    for arc in arcs:
        for state in (arc.source, arc.target):
            numbers.setdefault(state, len(numbers))
    numbers.setdefault(fragment.final, len(numbers))
    symbolic = {id(arc.guard): arc.guard for arc in arcs}
    asked = [
        predicate
        for guard in symbolic.values()
        for predicate in (*guard.present, *in_text_order(guard.absent))
    ]
    asked += [absence.forbidden for predicate in dict.fromkeys(asked) for absence in lacking(predicate)]
    named = [predicate for predicate in dict.fromkeys(asked) if predicate != FIRST]
    bits = {predicate: bit for bit, predicate in enumerate([*named, FIRST] if FIRST in asked else named)}
    guards = {
        number: Guard(
            frozenset(bits[predicate] for predicate in guard.present),
            frozenset(bits[predicate] for predicate in guard.absent),
        )
        for number, guard in symbolic.items()
    }
    transitions = dict.fromkeys(
        Transition(numbers[arc.source], guards[id(arc.guard)], arc.labels, numbers[arc.target], arc.hidden)
        for arc in arcs
    )
    return CEA(
        states=len(numbers),
        initial=frozenset({numbers[fragment.initial]}),
        final=frozenset({numbers[fragment.final]}),
        transitions=tuple(transitions),
        predicates=tuple(bits),
        origins=() if origins is None else tuple(origins[state] for state in numbers),
    )


def thaw(workshop: Workshop, automaton: CEA) -> Fragment:
    """An automaton as a fragment, with an initial state of its own and one final state."""
    fresh = {state: workshop.state() for state in range(automaton.states)}
    initial, final = workshop.state(), workshop.state()
    fresh.update(dict.fromkeys(automaton.final, final))
    arcs: list[Arc] = []
    for transition in automaton.transitions:
        guard = _symbolic(transition.guard, automaton.predicates)
        if guard is None:
            continue
        sources = [fresh[transition.source], *([initial] if transition.source in automaton.initial else [])]
        arcs.extend(
            Arc(source, guard, transition.labels, fresh[transition.target], transition.hidden)
            for source in sources
        )
    return Fragment(initial, final, tuple(arcs))


def _symbolic(guard: Guard, predicates: Sequence[EventPredicate]) -> SymbolicGuard | None:
    symbolic: SymbolicGuard | None = ANYTHING
    for bit in sorted(guard.present):
        symbolic = None if symbolic is None else symbolic.meet(guard_of(predicates[bit]))
    return None if symbolic is None else symbolic.without(predicates[bit] for bit in sorted(guard.absent))
