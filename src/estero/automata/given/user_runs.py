"""Turns automata of users whose transitions compare events or gather several runs into a Chain or a PCEA.

All events between marked ones are passed over, so every transition marks ("Towards streaming evaluation of
queries with correlation in complex event processing", section 4; "Complex event recognition meets
hierarchical conjunctive queries", section 3; docs/papers.md). With a transition that gathers several states
the automaton is a parallelized one, and otherwise a chain automaton.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from estero.automata.cea import FIRST, EventPredicate, LabelSet
from estero.automata.chain import Chain, ChainTransition, Neighbours, asked_before
from estero.automata.exploration import reached
from estero.automata.given.event_text import Clause, clauses_of
from estero.automata.given.user_automaton import chosen_states, is_distance, labels_of
from estero.automata.pcea import PCEA, JoinKey, PceaTransition, Source
from estero.automata.skeleton import BEFORE
from estero.errors import QueryError
from estero.language.syntax.parser import parse_condition
from estero.language.tree import expressions as e


@dataclass(frozen=True, slots=True)
class _Step:
    """A transition as it was given, from all of `sources`; without sources a run begins."""

    sources: tuple[Hashable, ...]
    predicate: EventPredicate
    labels: LabelSet
    target: Hashable
    comparisons: Mapping[Hashable, tuple[Neighbours, ...]]
    where: str


def compares_or_gathers(transitions: Iterable[Sequence[object]]) -> bool:
    """Whether some transition has a comparison, or a list or set of states to leave."""
    return any(
        not isinstance(transition, str)
        and (_gathers(transition) or (len(transition) == 5 and not is_distance(transition[4])))
        for transition in transitions
    )


def _gathers(given: Sequence[object]) -> bool:
    return bool(given) and isinstance(given[0], list | set)


def runs_of(
    transitions: Iterable[Sequence[object]],
    initial: object,
    final: object,
    types: Sequence[str] | None = None,
    *,
    anchored: bool = False,
) -> Chain | PCEA:
    """The automaton with these transitions, each ``(state or states, event, labels, state[, comparison])``.

    Raises `QueryError` for a mistake in a text, with its position, and `ValueError`, with the names of
    states, for transitions that do not fit together.
    """
    given = list(transitions)
    begins = _begins(given, initial)
    entered = [
        transition[3] for transition in given if not isinstance(transition, str) and len(transition) in (4, 5)
    ]
    steps = [step for transition in given for step in _steps(transition, begins, entered, types)]
    if not steps:
        raise ValueError("an automaton needs at least one transition")
    states = list(dict.fromkeys(step.target for step in steps))
    ends = chosen_states("final", final, dict.fromkeys(states))
    _check_ways(steps, states, ends)
    if any(len(step.sources) > 1 for step in steps):
        if anchored:
            raise ValueError(
                "anchored=True is for runs with one beginning: of runs that are gathered, only one could "
                "begin at the first event"
            )
        return _parallelized(steps, states, ends)
    return replace(_chain(steps, states, ends), anchored=anchored)


def _sources(given: object) -> tuple[Any, ...]:
    """The states that a transition leaves, in an order that does not depend on hashes."""
    if isinstance(given, set):
        return tuple(sorted(given, key=repr))
    return tuple(given) if isinstance(given, list) else (given,)


def _begins(given: Sequence[Sequence[object]], initial: object) -> list[Hashable]:
    if initial is None:
        return []
    whole = [transition for transition in given if not isinstance(transition, str) and transition]
    left = [state for transition in whole for state in _sources(transition[0])]
    return chosen_states("initial", initial, {state: None for state in left if isinstance(state, Hashable)})


def _steps(
    given: Sequence[object],
    begins: Sequence[Hashable],
    entered: Sequence[object],
    types: Sequence[str] | None,
) -> Iterator[_Step]:
    if isinstance(given, str) or len(given) not in (4, 5):
        raise ValueError(
            f"a transition is (state or states, event, labels, state[, comparison]), not {given!r}"
        )
    origin, event, labels, target, *compared = given
    sources = _sources(origin)
    for state in (*sources, target):
        if not isinstance(state, Hashable):
            raise ValueError(f"a state is a hashable value, not {state!r}")  # noqa: TRY004
    names = " and ".join(map(repr, sources)) or "the beginning"
    where = f"the transition from {names} to {target!r}"
    if not isinstance(event, str):
        raise ValueError(f"{where} takes its event as a text, not {event!r}")  # noqa: TRY004
    marks = labels_of(labels, where)
    if not marks:
        raise ValueError(f"{where} marks nothing; events that are not marked are passed over by themselves")
    beginning = [source for source in sources if source in begins]
    if beginning and len(sources) > 1:
        raise ValueError(f"{where} gathers the initial state {beginning[0]!r}, where nothing is marked yet")
    predicates = [_one_predicate(clause, types, where) for clause in clauses_of(event, types, where)]
    waiting = tuple(source for source in sources if source not in begins or source in entered)
    if compared and not waiting:
        raise ValueError(f"{where} compares the first event of a run with one before it")
    if beginning or not sources:
        yield from (_Step((), predicate, marks, target, {}, where) for predicate in predicates)
    if waiting:
        comparisons = _comparisons(compared[0] if compared else None, waiting, where)
        yield from (_Step(waiting, predicate, marks, target, comparisons, where) for predicate in predicates)


def _one_predicate(clause: Clause, types: Sequence[str] | None, where: str) -> EventPredicate:
    """A clause as one predicate."""
    if FIRST in clause.present or FIRST in clause.absent:
        raise ValueError(f"{where} asks for START(): automata that compare events take anchored=True instead")
    if any(predicate.condition is not None for predicate in clause.absent):
        raise ValueError(f"{where}: write TYPE[NOT …] for NOT TYPE[…], with each type that there is")
    if not clause.present and types is None:
        raise ValueError(f"{where} reads events of any type: say with types=[…] which types there are")
    allowed = [predicate.types for predicate in clause.present] or [tuple(types or ())]
    refused = {name for predicate in clause.absent for name in predicate.types}
    names = tuple(
        name for name in allowed[0] if name not in refused and all(name in options for options in allowed)
    )
    if not names:
        raise ValueError(f"{where} reads no event: its types exclude one another")
    conditions = tuple(predicate.condition for predicate in clause.present if predicate.condition is not None)
    return EventPredicate(names, e.And(conditions) if len(conditions) > 1 else next(iter(conditions), None))


# ----------------------------------------------------------------------------------------- comparisons


def _comparisons(
    given: object, sources: Sequence[Hashable], where: str
) -> dict[Hashable, tuple[Neighbours, ...]]:
    """The comparisons of the current event with the event of each source."""
    comparisons: dict[Hashable, list[Neighbours]] = {state: [] for state in sources}
    if given is not None:
        if not isinstance(given, str):
            raise ValueError(f'{where} compares by a text such as "{BEFORE}.k = k", not {given!r}')
        names = {str(state): state for state in sources}
        if len(sources) == 1:
            names.setdefault(BEFORE, sources[0])
        try:
            condition = parse_condition(given)
            for part in condition.parts if isinstance(condition, e.And) else (condition,):
                state, neighbours = _neighbours(part, names)
                comparisons[state].append(neighbours)
        except QueryError as error:
            error.text = given
            error.message = f"{where}: {error.message}"
            raise
    return {state: tuple(compared) for state, compared in comparisons.items()}


def _neighbours(part: e.Node, names: Mapping[str, Hashable]) -> tuple[Hashable, Neighbours]:
    variables = _variables(part)
    if (
        len(variables) == 1
        and not isinstance(part, e.Attribute)
        and (name := min(variables, key=str)) in names
    ):
        return names[name or ""], asked_before(e.without_variable(part))
    match part:
        case e.Call("coalesce", (e.Comparison("!=") as compared, e.Literal(True))):
            state, neighbours = _neighbours(compared, names)
            return state, replace(neighbours, or_null=True)
        case e.Comparison():
            pass
        case _:
            raise _wrong("this does not compare two events", part)
    sides = [_variables(side) for side in (part.left, part.right)]
    for side, other, operator in ((0, 1, part.operator), (1, 0, e.MIRRORED[part.operator])):
        before, here = sides[side], sides[other]
        if len(before) == 1 and None not in before and here == {None}:
            (name,) = before
            if name not in names:
                raise _wrong(f"{name} is not a state that this transition leaves", part, names)
            left, right = (part.left, part.right) if side == 0 else (part.right, part.left)
            return names[name or ""], Neighbours(operator, e.without_variable(left), right)
    raise _wrong("one side must refer to an event before, and the other to the event at hand", part, names)


def _variables(node: e.Node) -> set[str | None]:
    return {inner.variable for inner in node.walk() if isinstance(inner, e.Attribute)}


def _wrong(message: str, node: e.Node, names: Iterable[str] = (BEFORE,)) -> QueryError:
    expected = " or ".join(f"{name}.attribute = attribute" for name in names)
    return QueryError(message, span=node.span, expected=expected)


# -------------------------------------------------------------------------------------------- automata


def _check_ways(steps: Sequence[_Step], states: Sequence[Hashable], ends: Sequence[Hashable]) -> None:
    for step in steps:
        for state in step.sources:
            if state not in states:
                raise ValueError(f"{step.where} leaves a state that no transition enters: {state!r}")
    begun = [step.target for step in steps if not step.sources]
    reachable = set(begun)
    for _ in states:
        reachable |= {step.target for step in steps if reachable.issuperset(step.sources)}
    for state in ends:
        if state not in reachable:
            raise ValueError(f"the final state {state!r} cannot be reached from the beginning of a run")
    after: dict[Hashable, list[Hashable]] = {}
    for step in steps:
        for state in step.sources:
            after.setdefault(step.target, []).append(state)
    useful = set(reached(ends, lambda state: after.get(state, ())))
    idle = next((state for state in states if state not in useful), None)
    if idle is not None:
        raise ValueError(f"no final state can be reached from the state {idle!r}")


def _numbered(
    steps: Sequence[_Step], states: Sequence[Hashable], ends: Sequence[Hashable]
) -> tuple[dict[Hashable, int], dict[EventPredicate, int], frozenset[int]]:
    number = {state: place for place, state in enumerate(states)}
    predicates: dict[EventPredicate, int] = {}
    for step in steps:
        predicates.setdefault(step.predicate, len(predicates))
    return number, predicates, frozenset(number[state] for state in ends)


def _chain(steps: Sequence[_Step], states: Sequence[Hashable], ends: Sequence[Hashable]) -> Chain:
    number, predicates, final = _numbered(steps, states, ends)
    transitions = [
        ChainTransition(
            number[step.sources[0]] if step.sources else None,
            predicates[step.predicate],
            step.comparisons[step.sources[0]] if step.sources else (),
            step.labels,
            number[step.target],
        )
        for step in steps
    ]
    return Chain(tuple(map(str, states)), final, tuple(dict.fromkeys(transitions)), tuple(predicates))


def _parallelized(steps: Sequence[_Step], states: Sequence[Hashable], ends: Sequence[Hashable]) -> PCEA:
    number, predicates, final = _numbered(steps, states, ends)
    entered: dict[Hashable, dict[str, None]] = {}
    for step in steps:
        entered.setdefault(step.target, {}).update(dict.fromkeys(step.predicate.types))
    keys: dict[JoinKey, int] = {}

    def key(types: Iterable[str], values: Sequence[e.Node]) -> int:
        return keys.setdefault(JoinKey(dict.fromkeys(types, tuple(values))), len(keys))

    transitions = []
    for step in steps:
        sources = []
        for state in step.sources:
            compared = step.comparisons[state]
            other = next((neighbours for neighbours in compared if neighbours.operator != "="), None)
            if other is not None:
                raise ValueError(f"{step.where} compares by {other.operator}; gathered runs are joined by =")
            left = key(entered[state], [neighbours.left for neighbours in compared])
            sources.append(
                Source(
                    number[state],
                    left,
                    key(step.predicate.types, [neighbours.right for neighbours in compared]),
                )
            )
        transitions.append(
            PceaTransition(tuple(sources), predicates[step.predicate], step.labels, number[step.target])
        )
    return PCEA(
        tuple(map(str, states)), final, tuple(dict.fromkeys(transitions)), tuple(predicates), tuple(keys)
    )
