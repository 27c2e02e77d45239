"""An automaton as users give it (transitions between states of any name) → a complex event automaton.

Users may have several initial states, ways back to them, and final states that go on; here all of these
become one initial state that nothing enters and one final state that nothing leaves (cea.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from estero.automata.cea import CEA, EventPredicate, Guard, LabelSet, Transition
from estero.automata.exploration import between, reached
from estero.automata.formulas.event_text import Clause, clauses_of

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

    @property
    def passes_over(self) -> bool:
        """Whether it merely waits."""
        return self.source == self.target and not self.labels


def automaton_of(
    transitions: Iterable[Sequence[object]],
    initial: object,
    final: object,
    types: Sequence[str] | None = None,
) -> CEA:
    """The automaton with these transitions, each a tuple (state, event, labels, state).

    `initial` and `final` are one state or a collection of states; any hashable value names a state. The
    event is a text (event_text.py); no labels means that it is read and not reported. `types` are the
    types of events that there are.

    Raises `QueryError` for a wrong text, with the place in it, and `ValueError`, with the names of the
    states, for what does not fit together.
    """
    steps = [step for each in transitions for step in _steps(each, types)]
    if not steps:
        raise ValueError("an automaton needs at least one transition")
    states = dict.fromkeys(state for step in steps for state in step.given)
    begins = chosen_states("initial", initial, states)
    ends = chosen_states("final", final, states)
    _check_reached(steps, begins, ends)
    steps = _normal(steps, begins, ends)
    states_of_runs = between(INITIAL, FINAL, ((step.source, step.target) for step in steps))
    useful = [step for step in steps if states_of_runs.issuperset((step.source, step.target))]
    if not any(step.labels for step in useful):
        raise ValueError(
            "no run marks an event: a transition between an initial and a final state needs a label"
        )
    return _numbered(useful, types)


def _steps(given: Sequence[object], types: Sequence[str] | None) -> list[_Step]:
    if isinstance(given, str) or len(given) != 4:
        raise ValueError(f"a transition is (state, event, labels, state), not {given!r}")
    source, event, labels, target = given
    for state in (source, target):
        if not isinstance(state, Hashable):
            raise ValueError(f"a state is a hashable value, not {state!r}")  # noqa: TRY004
    between = f"the transition from {source!r} to {target!r}"
    if not isinstance(event, str):
        raise ValueError(f"{between} has no text for its event: {event!r}")  # noqa: TRY004
    names = labels_of(labels, between)
    assert isinstance(source, Hashable) and isinstance(target, Hashable)  # noqa: PT018, S101 (for the type checker)
    return [
        _Step(source, clause, names, target, (source, target)) for clause in clauses_of(event, types, between)
    ]


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
    found = set(reached(entered, lambda state: after.get(state, ())))
    for state in ends:
        if state not in found:
            origin = f"the initial state {begins[0]!r}" if len(begins) == 1 else "any initial state"
            raise ValueError(f"the final state {state!r} cannot be reached from {origin}")


def _normal(steps: Iterable[_Step], begins: Sequence[Hashable], ends: Sequence[Hashable]) -> list[_Step]:
    """Runs begin in INITIAL, which nothing enters, and accept in FINAL, which nothing leaves."""
    found = []
    for step in steps:
        sources = [*([INITIAL] if step.source in begins else []), step.source]
        targets = [step.target, *([FINAL] if step.target in ends else [])]
        found += [
            _Step(source, step.clause, step.labels, target, step.given)
            for source in sources
            for target in targets
        ]
    return found


def _numbered(steps: Sequence[_Step], types: Sequence[str] | None) -> CEA:
    """States and predicates numbered in the order in which runs meet them; the final state is the last."""
    after: dict[Hashable, list[Hashable]] = {FINAL: []}
    for step in steps:
        after.setdefault(step.source, []).append(step.target)
    order = [state for state in reached([INITIAL], after.__getitem__) if state is not FINAL]
    number = {state: place for place, state in enumerate([*order, FINAL])}
    predicates: dict[EventPredicate, int] = {}
    found: dict[Transition, None] = {}
    for step in sorted(steps, key=lambda step: (number[step.source], number[step.target])):
        present = step.clause.present
        if not present and not step.passes_over:
            present = (EventPredicate(_any_type(step, types)),)
        bits = [predicates.setdefault(each, len(predicates)) for each in (*present, *step.clause.absent)]
        guard = Guard(frozenset(bits[: len(present)]), frozenset(bits[len(present) :]))
        found[Transition(number[step.source], guard, step.labels, number[step.target])] = None
    last = number[FINAL]
    return CEA(last + 1, frozenset({0}), frozenset({last}), tuple(found), tuple(predicates))


def _any_type(step: _Step, types: Sequence[str] | None) -> tuple[str, ...]:
    if types is None:
        source, target = step.given
        raise ValueError(
            f"the transition from {source!r} to {target!r} reads events of any type: "
            "say with types=[…] which types there are"
        )
    return tuple(dict.fromkeys(types))
