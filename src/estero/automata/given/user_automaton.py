"""Turns an automaton as users give it, by transitions between named states, into a complex event automaton.

It may have several initial states, which transitions may enter, and final states, which transitions may
leave; these become one initial state that no transition enters and one final state that none leaves (cea.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from estero.automata.cea import CEA, FIRST, EventPredicate, Guard, LabelSet, Transition
from estero.automata.compile.compile_pattern import Compiled
from estero.automata.exploration import between, reached
from estero.automata.given.event_text import Clause, clauses_of
from estero.automata.residual import BEFORE, NO_HIDDEN, Apartness, Hidden, Residual
from estero.errors import QueryError
from estero.language.syntax.parser import parse_pattern
from estero.language.tree import pattern as p
from estero.language.tree.distances import Distance

INITIAL, FINAL = object(), object()
"""The states that replace all initial states and all final states."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A transition as it was given: from `source` on an event that satisfies `clause`, to `target`."""

    source: Hashable
    clause: Clause
    labels: LabelSet
    target: Hashable
    given: tuple[Hashable, Hashable]
    apart: tuple[Distance, ...] = ()

    @property
    def passes_over(self) -> bool:
        """Whether the transition is a loop that marks nothing."""
        return self.source == self.target and not self.labels


def automaton_of(
    transitions: Iterable[Sequence[object]],
    initial: object,
    final: object,
    types: Sequence[str] | None = None,
) -> Compiled:
    """The automaton with these transitions, each a tuple (state, event, labels, state[, distance]).

    `initial` and `final` are one state or a collection of states; any hashable value names a state. The event
    is a text (event_text.py); an event without labels is read and not reported. `types` are all types of
    events. A distance, ``[<= 5 MINUTES]``, is the distance from the last marked event of the run; it becomes
    a residual.

    Raises `QueryError` for a mistake in a text, with its position, and `ValueError`, with the names of
    states, for transitions that do not fit together.
    """
    steps = [step for transition in transitions for step in _steps(transition, types)]
    if not steps:
        raise ValueError("an automaton needs at least one transition")
    states = dict.fromkeys(state for step in steps for state in step.given)
    begins = chosen_states("initial", initial, states)
    ends = chosen_states("final", final, states)
    _check_reached(steps, begins, ends)
    _check_distances(steps, begins)
    steps = _normal(steps, begins, ends)
    states_of_runs = between(INITIAL, FINAL, ((step.source, step.target) for step in steps))
    useful = [step for step in steps if states_of_runs.issuperset((step.source, step.target))]
    if not any(step.labels for step in useful):
        raise ValueError(
            "no run marks an event: a transition between an initial and a final state needs a label"
        )
    return _numbered(useful, types)


def _steps(given: Sequence[object], types: Sequence[str] | None) -> list[_Step]:
    if isinstance(given, str) or len(given) != 4 + (len(given) == 5 and is_distance(given[4])):
        raise ValueError(f"a transition is (state, event, labels, state), not {given!r}")
    source, event, labels, target, *distance = given
    for state in (source, target):
        if not isinstance(state, Hashable):
            raise ValueError(f"a state is a hashable value, not {state!r}")  # noqa: TRY004
    between = f"the transition from {source!r} to {target!r}"
    if not isinstance(event, str):
        raise ValueError(f"{between} takes its event as a text, not {event!r}")  # noqa: TRY004
    names = labels_of(labels, between)
    assert isinstance(source, Hashable) and isinstance(target, Hashable)  # noqa: PT018, S101 (for the type checker)
    apart = _distances(str(distance[0]), between) if distance else ()
    return [
        _Step(source, clause, names, target, (source, target), apart)
        for clause in clauses_of(event, types, between)
    ]


def is_distance(given: object) -> bool:
    """Whether the last element of a transition is a distance, and not a comparison."""
    return isinstance(given, str) and given.lstrip().startswith("[")


def _distances(text: str, between: str) -> tuple[Distance, ...]:
    """The conditions on the distance from the last marked event of the run."""
    try:
        read = parse_pattern(f"x ;{text} x")
    except QueryError:
        read = None
    if (
        not isinstance(read, p.Sequence)
        or len(read.links) != 1
        or read.links[0].absent
        or read.links[0].lacking
    ):
        raise ValueError(
            f"{between} asks for {text}, which is not a distance: write [<= 5 MINUTES] or [> 2 EVENTS]"
        )
    return read.links[0].distances


def labels_of(given: object, between: str) -> LabelSet:
    """The labels of a transition: None, one label, or a collection of labels."""
    if given is None:
        return frozenset()
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    for name in names:
        if not isinstance(name, str) or not name:
            raise ValueError(f"{between} has a label that is not a name: {name!r}")
    return frozenset(names)


def chosen_states(which: str, given: object, states: Mapping[Hashable, None]) -> list[Hashable]:
    """The states that `given` names: one state, which may be a tuple, or a collection of states."""
    if isinstance(given, Hashable) and given in states:
        return [given]
    alone = isinstance(given, str) or not isinstance(given, Iterable)
    chosen = [given] if alone else list(given)  # type: ignore[call-overload]
    if not chosen:
        raise ValueError(f"an automaton needs at least one {which} state")
    for state in chosen:
        if not isinstance(state, Hashable) or state not in states:
            raise ValueError(f"the {which} state {state!r} is in no transition; there are {_some(states)}")
    return chosen


def _some(states: Iterable[Hashable]) -> str:
    names = [repr(state) for state in states]
    return ", ".join([*names[:8], "…"] if len(names) > 8 else names)


def _check_reached(steps: Sequence[_Step], begins: Sequence[Hashable], ends: Sequence[Hashable]) -> None:
    after: dict[Hashable, list[Hashable]] = {}
    for step in steps:
        after.setdefault(step.source, []).append(step.target)
    entered = [target for state in begins for target in after.get(state, ())]
    useful = set(reached(entered, lambda state: after.get(state, ())))
    for state in ends:
        if state not in useful:
            origin = f"the initial state {begins[0]!r}" if len(begins) == 1 else "any initial state"
            raise ValueError(f"the final state {state!r} cannot be reached from {origin}")


def _check_distances(steps: Sequence[_Step], begins: Sequence[Hashable]) -> None:
    """Checks that every run has marked an event before each distance."""
    after: dict[Hashable, list[Hashable]] = {}
    for step in steps:
        if not step.labels:
            after.setdefault(step.source, []).append(step.target)
    unmarked = set(reached(begins, lambda state: after.get(state, ())))
    for step in steps:
        if step.apart and step.source in unmarked:
            source, target = step.given
            raise ValueError(
                f"the transition from {source!r} to {target!r} requires the distance from the event that the "
                "run has marked before, but a run may have marked none there"
            )


def _normal(steps: Iterable[_Step], begins: Sequence[Hashable], ends: Sequence[Hashable]) -> list[_Step]:
    """The steps with INITIAL, which no step enters, and FINAL, which no step leaves."""
    normal = []
    for step in steps:
        sources = [*([INITIAL] if step.source in begins else []), step.source]
        targets = [step.target, *([FINAL] if step.target in ends else [])]
        normal += [replace(step, source=source, target=target) for source in sources for target in targets]
    return normal


def _numbered(steps: Sequence[_Step], types: Sequence[str] | None) -> Compiled:
    """The automaton with states and predicates numbered breadth first; the final state is the last one.

    An event that is not marked may be of any type.
    """
    after: dict[Hashable, list[Hashable]] = {FINAL: []}
    for step in steps:
        after.setdefault(step.source, []).append(step.target)
    order = [state for state in reached([INITIAL], after.__getitem__) if state is not FINAL]
    number = {state: place for place, state in enumerate([*order, FINAL])}
    steps = sorted(steps, key=lambda step: (number[step.source], number[step.target]))
    clauses = [_with_types(step, types) for step in steps]
    predicates = dict.fromkeys(
        predicate for clause in clauses for predicate in (*clause.present, *clause.absent)
    )
    ordered = [
        *(predicate for predicate in predicates if predicate != FIRST),
        *([FIRST] if FIRST in predicates else []),
    ]
    places = {
        distances: place
        for place, distances in enumerate(dict.fromkeys(step.apart for step in steps if step.apart))
    }
    before = frozenset(Hidden(place, BEFORE) for place in places.values())
    numbered: dict[Transition, None] = {}
    for step, clause in zip(steps, clauses, strict=True):
        present, absent = (frozenset(map(ordered.index, group)) for group in (clause.present, clause.absent))
        hidden = frozenset({Hidden(places[step.apart])}) if step.apart else NO_HIDDEN
        hidden |= before if step.labels else NO_HIDDEN
        numbered[
            Transition(number[step.source], Guard(present, absent), step.labels, number[step.target], hidden)
        ] = None
    last = number[FINAL]
    automaton = CEA(last + 1, frozenset({0}), frozenset({last}), tuple(numbered), tuple(ordered))
    residuals = (
        Residual(Apartness(distances), ((BEFORE, Hidden(place, BEFORE)),), place)
        for distances, place in places.items()
    )
    return Compiled(automaton, tuple(residuals))


def _with_types(step: _Step, types: Sequence[str] | None) -> Clause:
    """The clause of a transition, with all types of events if it names none and they must be known."""
    clause = step.clause
    if any(predicate != FIRST for predicate in clause.present) or (step.passes_over and not step.apart):
        return clause
    if types is None:
        if not step.labels and not step.apart:
            return clause
        source, target = step.given
        raise ValueError(
            f"the transition from {source!r} to {target!r} reads events of any type: "
            "say with types=[…] which types there are"
        )
    return replace(clause, present=(EventPredicate(tuple(dict.fromkeys(types))), *clause.present))
