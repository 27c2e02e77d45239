"""Pieces of an automaton under construction: one initial state, one final state, nothing shared.

Invariants of every fragment: no transition enters `initial`, none leaves `final`, and a state number
belongs to one fragment only. That makes gluing two of them a renaming of states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, count, pairwise

from estero.automata.cea import CEA, FIRST, NO_LABELS, EventPredicate, Guard, LabelSet, Origin, Transition
from estero.automata.need import ANYTHING, Need, need_of
from estero.automata.residual import NO_HIDDEN, HiddenSet
from estero.errors import LimitExceeded
from estero.language.pattern import Pattern
from estero.language.render import shortened

STATE_CAP = 200_000
"""States, copies included, after which building an automaton is given up (a few seconds)."""


@dataclass(frozen=True, slots=True)
class Arc:
    """A transition of a fragment; `hidden` are labels that answers do not show."""

    source: int
    need: Need
    labels: LabelSet
    target: int
    hidden: HiddenSet = NO_HIDDEN


Pass = tuple[Need, HiddenSet]
"""What is read and not marked between two parts."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of an automaton: see the invariants at the top of the module."""

    initial: int
    final: int
    arcs: tuple[Arc, ...]


@dataclass(slots=True)
class Workshop:
    """Makes fragments from fragments; hands out state numbers that are never used twice.

    `origins` remembers of each state which parts of the pattern it was made for.
    """

    origins: dict[int, Origin] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=count)
    _inside: list[Pattern] = field(default_factory=list)

    def state(self) -> int:
        """A fresh state."""
        number = next(self._numbers)
        if number >= STATE_CAP:
            part = f"; what grows is {shortened(self._inside[-1])}" if self._inside else ""
            raise LimitExceeded(
                f"the pattern needs more than {STATE_CAP:,} automaton states{part}: "
                "bound its iterations by smaller numbers, or make fewer of its parts optional"
            )
        self.origins[number] = tuple(self._inside)
        return number

    @contextmanager
    def making(self, pattern: Pattern) -> Iterator[None]:
        """States that are made meanwhile, copies too, are of `pattern`."""
        self._inside.append(pattern)
        yield
        self._inside.pop()

    def atom(self, need: Need, labels: LabelSet) -> Fragment:
        """One event."""
        initial, final = self.state(), self.state()
        return Fragment(initial, final, (Arc(initial, need, labels, final),))

    def copy(self, fragment: Fragment) -> Fragment:
        """The same with fresh states."""
        fresh: dict[int, int] = {}

        def rename(state: int) -> int:
            return fresh.setdefault(state, self.state()) if state not in fresh else fresh[state]

        arcs = tuple(
            replace(arc, source=rename(arc.source), target=rename(arc.target)) for arc in fragment.arcs
        )
        return Fragment(rename(fragment.initial), rename(fragment.final), arcs)

    def union(self, parts: Iterable[Fragment]) -> Fragment:
        """Any of the parts: their initial states become one, and so do their final states."""
        initial, final = self.state(), self.state()
        arcs: list[Arc] = []
        for part in parts:
            same = {part.initial: initial, part.final: final}
            arcs.extend(
                replace(arc, source=same.get(arc.source, arc.source), target=same.get(arc.target, arc.target))
                for arc in part.arcs
            )
        return Fragment(initial, final, tuple(arcs))

    def concatenation(self, first: Fragment, second: Fragment, skips: Iterable[Pass] = ()) -> Fragment:
        """`second` after `first`; `skips` says what may be passed over between them."""
        arcs = [
            replace(arc, target=second.initial) if arc.target == first.final else arc for arc in first.arcs
        ]
        arcs.extend(second.arcs)
        arcs.extend(Arc(second.initial, need, NO_LABELS, second.initial, hidden) for need, hidden in skips)
        return Fragment(first.initial, second.final, tuple(arcs))

    def in_turn(self, rounds: Sequence[Fragment], skips: Iterable[Pass], least: int) -> Fragment:
        """The rounds one after the other, linked by `skips`; from round `least` on each may be the last."""
        arcs: list[Arc] = []
        links: list[list[Arc]] = []
        final = rounds[-1].final
        for number, (round_, following) in enumerate(pairwise(rounds), start=1):
            middle = following.initial
            ends = [arc for arc in round_.arcs if arc.target == round_.final]
            arcs += [
                replace(arc, target=middle) if arc.target == round_.final else arc for arc in round_.arcs
            ]
            links.append([Arc(middle, need, NO_LABELS, middle, hidden) for need, hidden in skips])
            if number >= least:
                links[-1] += [replace(arc, target=final) for arc in ends]
        arcs += rounds[-1].arcs
        return Fragment(rounds[0].initial, final, (*arcs, *chain.from_iterable(reversed(links))))

    def iteration(self, body: Fragment, *, contiguous: bool) -> Fragment:
        """One or more of `body`. The state between two rounds does what `initial` does."""
        middle = self.state()
        arcs: list[Arc] = []
        for arc in body.arcs:
            sources = (arc.source, middle) if arc.source == body.initial else (arc.source,)
            targets = (arc.target, middle) if arc.target == body.final else (arc.target,)
            arcs.extend(replace(arc, source=a, target=b) for a in sources for b in targets)
        if not contiguous:
            arcs.append(Arc(middle, ANYTHING, NO_LABELS, middle))
        return Fragment(body.initial, body.final, tuple(arcs))

    def relabel(self, fragment: Fragment, change: Callable[[Arc], Arc]) -> Fragment:
        """Each arc changed, sources and targets kept."""
        return replace(fragment, arcs=tuple(change(arc) for arc in fragment.arcs))


def freeze(fragment: Fragment, origins: Mapping[int, Origin] | None = None) -> CEA:
    """The automaton of a fragment: useless states dropped, states and predicates numbered in order.

    `origins` are those of the workshop, where the automaton is to know them.
    """
    arcs = _useful(fragment)
    numbers: dict[int, int] = {fragment.initial: 0}
    for arc in arcs:
        for state in (arc.source, arc.target):
            numbers.setdefault(state, len(numbers))
    numbers.setdefault(fragment.final, len(numbers))
    asked = [each for arc in arcs for each in (*arc.need.present, *sorted(arc.need.absent, key=str))]
    named = [each for each in dict.fromkeys(asked) if each != FIRST]
    predicates = {each: bit for bit, each in enumerate([*named, FIRST] if FIRST in asked else named)}

    def guard(need: Need) -> Guard:
        present, absent = (frozenset(predicates[p] for p in each) for each in (need.present, need.absent))
        return Guard(present, absent)

    transitions = dict.fromkeys(
        Transition(numbers[arc.source], guard(arc.need), arc.labels, numbers[arc.target], arc.hidden)
        for arc in arcs
    )
    return CEA(
        states=len(numbers),
        initial=frozenset({numbers[fragment.initial]}),
        final=frozenset({numbers[fragment.final]}),
        transitions=tuple(transitions),
        predicates=tuple(predicates),
        origins=() if origins is None else tuple(origins[state] for state in numbers),
    )


def thaw(workshop: Workshop, automaton: CEA) -> Fragment:
    """An automaton as a fragment, with an initial state of its own and one final state."""
    fresh: dict[int, int] = {}
    for state in range(automaton.states):
        fresh[state] = workshop.state()
    initial, final = workshop.state(), workshop.state()
    fresh.update(dict.fromkeys(automaton.final, final))
    arcs: list[Arc] = []
    for each in automaton.transitions:
        need = _need(each.guard, automaton.predicates)
        if need is None:
            continue
        sources = [fresh[each.source], *([initial] if each.source in automaton.initial else [])]
        arcs.extend(Arc(source, need, each.labels, fresh[each.target], each.hidden) for source in sources)
    return Fragment(initial, final, tuple(arcs))


def _need(guard: Guard, predicates: Sequence[EventPredicate]) -> Need | None:
    need: Need | None = ANYTHING
    for bit in sorted(guard.present):
        need = None if need is None else need.meet(need_of(predicates[bit]))
    return None if need is None else need.without(predicates[bit] for bit in sorted(guard.absent))


def _useful(fragment: Fragment) -> list[Arc]:
    forward = _reach(fragment.initial, [(arc.source, arc.target) for arc in fragment.arcs])
    backward = _reach(fragment.final, [(arc.target, arc.source) for arc in fragment.arcs])
    useful = forward & backward
    return [arc for arc in fragment.arcs if arc.source in useful and arc.target in useful]


def _reach(origin: int, edges: Iterable[tuple[int, int]]) -> set[int]:
    after: dict[int, list[int]] = {}
    for source, target in edges:
        after.setdefault(source, []).append(target)
    seen, todo = {origin}, [origin]
    while todo:
        for target in after.get(todo.pop(), ()):
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return seen
