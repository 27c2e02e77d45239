"""Product constructions: AND, ALL, UNLESS and STRICT.

They are those of "A Second-Order Approach to Complex Event Recognition", section 6, over the reachable pairs
of states, and keep the invariants of fragments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from enum import Enum
from typing import Any

from estero.automata.cea import CEA, NO_LABELS, EventPredicate, LabelSet, in_text_order
from estero.automata.compile.fragment import Arc, Fragment, Workshop, freeze, thaw
from estero.automata.compile.symbolic_guard import SymbolicGuard
from estero.automata.exploration import explore, leaving
from estero.automata.residual import NO_HIDDEN, Hidden, HiddenSet

Step = tuple[tuple[SymbolicGuard, LabelSet, HiddenSet], Hashable]
"""The guard and the labels of a transition, and the state after it."""


def conjunction(workshop: Workshop, one: Fragment, two: Fragment) -> Fragment:
    """The intersection: complex events of both fragments, which read and mark the same events alike."""
    leaving_one, leaving_two = leaving(one.arcs), leaving(two.arcs)
    met = _Met(workshop)

    def steps(state: tuple[int, int]) -> Iterator[Step]:
        for a in leaving_one[state[0]]:
            for b in leaving_two[state[1]]:
                guard = met(a.guard, b.guard) if a.labels == b.labels else None
                if guard is not None:
                    yield (guard, a.labels, a.hidden | b.hidden), (a.target, b.target)

    return _product(workshop, (one.initial, two.initial), steps, (one.final, two.final))


def all_of(workshop: Workshop, one: Fragment, two: Fragment) -> Fragment:
    """The unions of a complex event of each fragment; one may wait in its initial or its final state."""
    leaving_one, leaving_two = leaving(one.arcs), leaving(two.arcs)
    stand_still = SymbolicGuard()
    met = _Met(workshop)

    def moves(part: Fragment, arcs: dict[int, list[Arc]], state: int) -> Iterator[Arc]:
        yield from arcs[state]
        if state in (part.initial, part.final):
            yield Arc(state, stand_still, NO_LABELS, state)

    def steps(state: tuple[int, int]) -> Iterator[Step]:
        for a in moves(one, leaving_one, state[0]):
            for b in moves(two, leaving_two, state[1]):
                guard = met(a.guard, b.guard)
                target = (a.target, b.target)
                if guard is not None and target != (one.initial, two.initial):
                    yield (guard, a.labels | b.labels, a.hidden | b.hidden), target

    return _product(workshop, (one.initial, two.initial), steps, (one.final, two.final))


def unless(workshop: Workshop, wanted: Fragment, forbidden: Fragment) -> Fragment:
    """The complex events of `wanted` between whose start and end `forbidden` has no complex event.

    A state is a pair: a state of `wanted`, and the set of states of the runs of `forbidden`, which begin anew
    at every event. Each transition is split by the predicates of those runs.
    """
    after_wanted, after_forbidden = leaving(wanted.arcs), leaving(forbidden.arcs)
    nothing: frozenset[int] = frozenset()

    def steps(state: tuple[int, frozenset[int]]) -> Iterator[Step]:
        open_runs = [arc for source in (forbidden.initial, *state[1]) for arc in after_forbidden[source]]
        asked = _asked(open_runs)
        for arc in after_wanted[state[0]]:
            for guard in _cases(workshop, arc.guard, asked):
                reached = frozenset(run.target for run in open_runs if _passes(guard, run.guard))
                if forbidden.final not in reached:
                    after = nothing if arc.target == wanted.final else reached
                    yield (guard, arc.labels, arc.hidden), (arc.target, after)

    return _product(workshop, (wanted.initial, nothing), steps, (wanted.final, nothing))


class _Marked(Enum):
    NOT_YET, NOW, NO_MORE = range(3)


def strict(workshop: Workshop, fragment: Fragment) -> Fragment:
    """The complex events whose marked positions form an interval, without gaps between marks."""
    arcs = leaving(fragment.arcs)

    def steps(state: tuple[int, _Marked]) -> Iterator[Step]:
        for arc in arcs[state[0]]:
            if arc.labels and state[1] is _Marked.NO_MORE:
                continue
            after = _Marked.NOW if arc.labels else state[1]
            if state[1] is _Marked.NOW and not arc.labels:
                after = _Marked.NO_MORE
            after = _Marked.NOT_YET if arc.target == fragment.final else after
            yield (arc.guard, arc.labels, arc.hidden), (arc.target, after)

    return _product(workshop, (fragment.initial, _Marked.NOT_YET), steps, (fragment.final, _Marked.NOT_YET))


def intervals_only(automaton: CEA) -> CEA:
    """The complex events of an automaton whose marked positions form an interval."""
    workshop = Workshop()
    return freeze(strict(workshop, thaw(workshop, automaton)))


def also_seen(
    workshop: Workshop, fragment: Fragment, predicate: EventPredicate, hidden: Iterable[Hidden]
) -> Fragment:
    """The fragment in which each event that satisfies `predicate` gets the labels `hidden`."""
    added = frozenset(hidden)
    arcs: list[Arc] = []
    for arc in fragment.arcs:
        true, false = arc.guard.split(predicate)
        if true is not None:
            arcs.append(Arc(arc.source, true, arc.labels, arc.target, arc.hidden | added))
        if false is not None:
            arcs.append(Arc(arc.source, false, arc.labels, arc.target, arc.hidden))
    return workshop.copy(Fragment(fragment.initial, fragment.final, tuple(arcs)))


def passed_over(
    workshop: Workshop,
    forbidden: Iterable[EventPredicate],
    watched: Iterable[tuple[EventPredicate, HiddenSet]],
) -> list[tuple[SymbolicGuard, HiddenSet]]:
    """Guards of events between two parts: none is `forbidden`, and `watched` ones get hidden labels."""
    base = SymbolicGuard().without(forbidden)
    cases: list[tuple[SymbolicGuard, HiddenSet]] = [] if base is None else [(base, NO_HIDDEN)]
    for predicate, hidden in watched:
        workshop.spend(2 * len(cases))
        split = [(guard.split(predicate), before) for guard, before in cases]
        cases = [(true, before | hidden) for (true, _), before in split if true is not None]
        cases += [(false, before) for (_, false), before in split if false is not None]
    return cases


# ------------------------------------------------------------------------------------------- pieces


def _product(
    workshop: Workshop,
    initial: Hashable,
    steps: Callable[[Any], Iterable[Step]],
    final: Hashable,
) -> Fragment:
    """The fragment of the states that are reachable from `initial`; no arc leaves `final`."""
    names = defaultdict[Hashable, int](workshop.state)
    start, names[final] = names[initial], workshop.state()
    arcs: dict[tuple[int, int, LabelSet, int, HiddenSet], Arc] = {}
    same = _Same()
    for source, (guard, labels, hidden), target in explore(
        [initial], lambda state: () if state == final else steps(state)
    ):
        workshop.spend(1)
        known = same(guard)
        arc = Arc(names[source], known, labels, names[target], hidden)
        arcs[arc.source, id(known), labels, arc.target, hidden] = arc
    return Fragment(start, names[final], tuple(arcs.values()))


class _Same:
    """Interns guards, as hashing one takes longer than the rest of making a transition."""

    def __init__(self) -> None:
        self._by_id: dict[int, tuple[SymbolicGuard, SymbolicGuard]] = {}
        self._by_value: dict[SymbolicGuard, SymbolicGuard] = {}

    def __call__(self, guard: SymbolicGuard) -> SymbolicGuard:
        if id(guard) not in self._by_id:
            # The guard is kept as well, so that its id is not reused.
            self._by_id[id(guard)] = self._by_value.setdefault(guard, guard), guard
        return self._by_id[id(guard)][0]


class _Met:
    """The conjunction of two guards, computed once for each pair."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._same = _Same()
        self._met: dict[tuple[int, int], SymbolicGuard | None] = {}

    def __call__(self, one: SymbolicGuard, two: SymbolicGuard) -> SymbolicGuard | None:
        self._workshop.spend(1)
        one, two = self._same(one), self._same(two)
        pair = id(one), id(two)
        if pair not in self._met:
            self._met[pair] = one.meet(two)
        return self._met[pair]


def _asked(arcs: Iterable[Arc]) -> list[EventPredicate]:
    return list(
        dict.fromkeys(
            predicate for arc in arcs for predicate in (*arc.guard.present, *in_text_order(arc.guard.absent))
        )
    )


def _cases(workshop: Workshop, guard: SymbolicGuard, asked: list[EventPredicate]) -> list[SymbolicGuard]:
    """Splits a guard into disjoint cases that each decide all predicates in `asked`."""
    cases = [guard]
    for predicate in asked:
        workshop.spend(2 * len(cases))
        cases = [part for case in cases for part in case.split(predicate) if part is not None]
    return cases


def _passes(case: SymbolicGuard, guard: SymbolicGuard) -> bool:
    """Whether all events of a case pass a guard; the case decides every predicate of the guard."""
    return all(case.implies(predicate) for predicate in guard.present) and not any(
        case.implies(predicate) for predicate in guard.absent
    )
