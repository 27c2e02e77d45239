"""An automaton as users give it (transitions between states of any name) → a complex event automaton.

Users may have several initial states, ways back to them, and final states that go on; here all of these
become one initial state that nothing enters and one final state that nothing leaves (cea.py).
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
"""The states that stand for all initial and all final ones."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A transition as it was given: from `source` on an event that passes `clause`, to `target`."""

    source: Hashable
    clause: Clause
    labels: LabelSet
    target: Hashable
    given: tuple[Hashable, Hashable]
    apart: tuple[Distance, ...] = ()

    @property
    def passes_over(self) -> bool:
        """Whether it merely waits."""
        return self.source == self.target and not self.labels


def automaton_of(
    transitions: Iterable[Sequence[object]],
    initial: object,
    final: object,
    types: Sequence[str] | None = None,
) -> Compiled:
    """The automaton with these transitions, each a tuple (state, event, labels, state[, distance]).

    `initial` and `final` are one state or a collection of states; any hashable value names a state. The
    event is a text (event_text.py); no labels means that it is read and not reported. `types` are the
    types of events that there are. A distance, ``[<= 5 MINUTES]``, is that from the event which the run has
    marked before; what asks for it is a residual.

    Raises `QueryError` for a wrong text, with the place in it, and `ValueError`, with the names of the
    states, for what does not fit together.
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
    """Whether the last of a transition is a distance, and not a comparison."""
    return isinstance(given, str) and given.lstrip().startswith("[")


def _distances(text: str, between: str) -> tuple[Distance, ...]:
    """What is asked of the distance from the event that the run has marked before."""
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
    """A single label may stand for itself; None is no label."""
    if given is None:
        return frozenset()
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    for name in names:
        if not isinstance(name, str) or not name:
            raise ValueError(f"{between} has a label that is not a name: {name!r}")
    return frozenset(names)


def chosen_states(which: str, given: object, states: Mapping[Hashable, None]) -> list[Hashable]:
    """What is a state itself is that state, also if it is a tuple; anything else is a collection of them."""
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
    """Distances are from an event that the run has marked."""
    after: dict[Hashable, list[Hashable]] = {}
    for step in steps:
        if not step.labels:
            after.setdefault(step.source, []).append(step.target)
    unmarked = set(reached(begins, lambda state: after.get(state, ())))
    for step in steps:
        if step.apart and step.source in unmarked:
            source, target = step.given
            raise ValueError(
                f"the transition from {source!r} to {target!r} asks for the distance from the event that the "
                "run has marked before, but a run may have marked none there"
            )


def _normal(steps: Iterable[_Step], begins: Sequence[Hashable], ends: Sequence[Hashable]) -> list[_Step]:
    """Runs begin in INITIAL, which nothing enters, and accept in FINAL, which nothing leaves."""
    normal = []
    for step in steps:
        sources = [*([INITIAL] if step.source in begins else []), step.source]
        targets = [step.target, *([FINAL] if step.target in ends else [])]
        normal += [replace(step, source=source, target=target) for source in sources for target in targets]
    return normal


def _numbered(steps: Sequence[_Step], types: Sequence[str] | None) -> Compiled:
    """States and predicates numbered in the order in which runs meet them; the final state is the last.

    Where an event is not marked, it may be of any type.
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
    """What a transition reads, with the types there are where it names none and that has to be known."""
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
