"""Compiled pattern → chain automaton, where its comparisons are between neighbours, or why there is none.

The states are those of the pattern's automaton together with what the last event carries (neighbours.py).
This is the transition-to-state construction of the paper's Proposition 7, for every comparison and not
PART-BY alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, count
from typing import Final, NamedTuple

from estero.automata.cea import CEA, EventPredicate, Transition, why_others_matter
from estero.automata.chain import ORDERS, Chain, ChainTransition, Neighbours, is_range
from estero.automata.correlated.conditions import ANY, Terms
from estero.automata.correlated.deterministic import (
    BEGIN,
    Edge,
    Machine,
    Marked,
    TooManyError,
    ambiguous,
    determinised,
    minimal,
)
from estero.automata.correlated.neighbours import Carried, Fact, NotCarriedError, Register, Step, event_name
from estero.automata.correlated.push_down import Decision
from estero.automata.exploration import explore, leaving, merged
from estero.automata.formulas.atoms import read_of
from estero.automata.growth import what_grows
from estero.automata.registers import Action
from estero.automata.residual import HiddenSet, Key, Residual, needed_hidden
from estero.language.check.kinds import kind_of
from estero.language.tree.conditions import conjoined, conjuncts, variables_of
from estero.language.tree.expressions import Between, Comparison, ComparisonOperator, IsNull, Node, Not
from estero.language.tree.schema import Schema

STATE_CAP: Final = 1_000
"""The most states of a chain, before equal ones are made one."""

_TOO_MANY: Final = f"its chain automaton has more than {STATE_CAP:,} states"

MOST_TRANSITIONS: Final = 4_000
"""The most transitions of a chain."""

MOST_DIFFERENT: Final = 4
"""The most disequalities of one transition: an index of them has a pointer for each sequence of them."""

SECOND_ORDER: Final = "the same neighbours are already compared by another order"
MORE_DIFFERENT: Final = (
    f"the same neighbours are already compared by {MOST_DIFFERENT} disequalities, the most that an index has"
)
"""Why a comparison that no index serves stays residual."""


class _NoChainError(Exception):
    """Why a pattern has no chain automaton, as a phrase."""


def chain_of(
    automaton: CEA, residuals: Sequence[Residual], schema: Schema, *, windowed: bool = False
) -> Chain | str:
    """The chain automaton of a compiled pattern, or a phrase on why there is none.

    It finds the complex events of the pattern once its `residuals` are checked: those that registers cannot
    say either, those between events that are no neighbours, and those of a second order between the same
    neighbours. A range counts as one order. Disequalities count as none where there is no order and the
    query is not `windowed`, else each of them counts as one.
    """
    why = why_others_matter(automaton)
    if why:
        return why
    if any(each.labels and not each.guard.present for each in automaton.transitions):
        return "its events can be of any type"
    if automaton.states > STATE_CAP:
        return _TOO_MANY
    try:
        found, reasons = _neighbours(automaton, residuals, schema)
    except _NoChainError as reason:
        return str(reason)
    listed = not windowed and not any(_orders(each) for each in found)
    served = [_served(each, MOST_DIFFERENT if listed else 1) for each in found]
    for each, comparisons in zip(found, served, strict=True):
        for neighbours in each.step.comparisons.keys() - set(comparisons):
            why = SECOND_ORDER if not listed else MORE_DIFFERENT
            reasons |= dict.fromkeys(each.step.comparisons[neighbours], why)
    left = [number for number in range(len(residuals)) if number in reasons]
    hidden = frozenset(needed_hidden(residuals[number] for number in left))
    try:
        made = _Builder(automaton, schema, listed=listed).chain(list(zip(found, served, strict=True)), hidden)
    except _NoChainError as reason:
        return str(reason)
    return replace(
        made,
        residuals=tuple(residuals[number] for number in left),
        reasons=tuple(reasons[number] for number in left),
    )


# -------------------------------------------------------------------------------------- registers


def _neighbours(
    automaton: CEA, residuals: Sequence[Residual], schema: Schema
) -> tuple[list[_Found], dict[int, str]]:
    """All transitions, with comparisons for as many residuals as can be; and why the others stay residual.

    What cannot be said by neighbours together is left out one by one, the last written first, and then
    tried again beside what could.
    """
    drafted, reasons = _drafted(automaton, residuals, schema)
    if residuals and not drafted:
        raise _NoChainError(reasons[0])

    def transitions(of: Iterable[int]) -> list[_Found]:
        registers = _same_checks(each for number in of for each in drafted[number])
        return _transitions(automaton, _joined(registers, automaton))

    numbers = list(drafted)
    while True:  # without any register nothing fails
        try:
            found = transitions(numbers)
            break
        except NotCarriedError as failed:
            last = max(failed.origins)
            reasons[last] = str(failed)
            numbers.remove(last)
    for number in sorted(drafted.keys() - set(numbers)):
        with suppress(NotCarriedError, _NoChainError):
            found = transitions(sorted((*numbers, number)))
            numbers.append(number)
            del reasons[number]
    if residuals and not numbers:
        raise _NoChainError(reasons[min(drafted)])
    return found, reasons


def _drafted(
    automaton: CEA, residuals: Sequence[Residual], schema: Schema
) -> tuple[dict[int, list[Register]], dict[int, str]]:
    """What registers would do for each residual, by its number; and why they cannot for the others."""
    decide = Decision(automaton, schema, by_keys=True)
    found: dict[int, list[Register]] = {}
    reasons: dict[int, str] = {}
    for number, residual in enumerate(residuals):
        drafts = [decide.drafts(part) for part in _parts(residual)]
        why = next((each for each in drafts if isinstance(each, str)), None)
        if why is not None:
            reasons[number] = why
            continue
        found[number] = [
            Register(draft.scope, draft.stores, draft.checks, frozenset({number}))
            for each in drafts
            if not isinstance(each, str)
            for draft in each
        ]
    return found, reasons


def _parts(residual: Residual) -> list[Residual]:
    """BETWEEN as its two comparisons, where both are about the same variables."""
    match residual.condition:
        case Between(operand, low, high) if variables_of(low) == variables_of(high):
            parts = (Comparison(">=", operand, low), Comparison("<=", operand, high))
            return [replace(residual, condition=part) for part in parts]
        case _:
            return [residual]


def _same_checks(registers: Iterable[Register]) -> list[Register]:
    """Equalities with the same later event made one: what comes before it has to be the same as well."""
    found: dict[object, Register] = {}
    for number, each in enumerate(registers):
        together = (each.scope, each.checks) if each.of_equality else number
        other = found.setdefault(together, each)
        stores = tuple(dict.fromkeys((*other.stores, *each.stores)))
        found[together] = replace(each, stores=stores, origins=each.origins | other.origins)
    return list(found.values())


def _joined(registers: Sequence[Register], automaton: CEA) -> list[Register]:
    """Equality classes of values that every run has, as one register each: they are all the same."""
    terms: dict[tuple[Key, Node], set[int]] = {}
    whole = [number for number, each in enumerate(registers) if each.of_equality and each.scope is None]
    for number in whole:
        for key, _, value in (*registers[number].stores, *registers[number].checks):
            terms.setdefault((key, value), set()).add(number)
    classes = map(sorted, merged([*([number] for number in whole), *terms.values()]))
    found = [each for number, each in enumerate(registers) if number not in whole]
    for each in classes:
        together = [term for term, numbers in terms.items() if not numbers.isdisjoint(each)]
        if len(each) > 1 and _is_one_value(together, automaton):
            stores = tuple((key, Action.STORE_SAME, value) for key, value in together)
            equal = tuple((key, Action.EQUAL, value) for key, value in together)
            other = tuple(use for number in each for use in registers[number].checks if use not in equal)
            origins = frozenset().union(*(registers[number].origins for number in each))
            found.append(Register(None, stores, (*equal, *dict.fromkeys(other)), origins))
        else:
            found += [registers[number] for number in each]
    return found


def _is_one_value(terms: Sequence[tuple[Key, Node]], automaton: CEA) -> bool:
    """Whether every run has an event of each key, and no event has two different values of the class."""
    values: dict[Key, Node] = {}
    for key, value in terms:
        if values.setdefault(key, value) != value:
            return False
    for each in automaton.transitions:
        if len({value for key, value in values.items() if each.carries(key)}) > 1:
            return False
    return all(_is_in_every_run(key, automaton) for key in values)


def _is_in_every_run(key: Key, automaton: CEA) -> bool:
    without = automaton.leading_to(automaton.final, lambda each: not each.carries(key))
    return automaton.initial.isdisjoint(without)


# ---------------------------------------------------------------------------------------- exploring


class _Place(NamedTuple):
    """A state of the pattern's automaton, and what the last marked event says of registers there."""

    state: int
    facts: frozenset[tuple[int, frozenset[Fact]]]
    begun: bool = True


class _Found(NamedTuple):
    """A transition between places, which are numbered; the source may be `BEGIN`."""

    source: int
    by: Transition
    step: Step
    target: int


def _transitions(automaton: CEA, registers: Sequence[Register]) -> list[_Found]:
    """All transitions of the chain, from `BEGIN` on.

    Raises `NotCarriedError` where a comparison is none of neighbours, `_NoChainError` where there are
    too many.
    """
    carried = Carried(automaton, registers)
    marking = leaving(each for each in automaton.transitions if each.labels)

    def steps(place: _Place) -> Iterator[tuple[tuple[Transition, Step], _Place]]:
        for transition in marking[place.state]:
            step = carried.take(dict(sorted(place.facts)), transition)
            yield (transition, step), _Place(transition.target, frozenset(step.facts.items()))

    numbers: dict[_Place, int] = {}
    found: list[_Found] = []
    start = [_Place(state, frozenset(), begun=False) for state in sorted(automaton.initial)]
    for source, (transition, step), target in explore(start, steps):
        number = numbers.setdefault(target, len(numbers))
        if number >= STATE_CAP:
            raise _NoChainError(_TOO_MANY)
        found.append(_Found(numbers[source] if source.begun else BEGIN, transition, step, number))
    return found


def _orders(found: _Found) -> list[Neighbours]:
    return [each for each in found.step.comparisons if each.operator in ORDERS]


def _served(found: _Found, different: int) -> tuple[Neighbours, ...]:
    """What is compared by indices: equalities, and one order or range, or else so many disequalities."""
    asked = found.step.comparisons
    equal = sorted((each for each in asked if each.operator == "="), key=repr)
    orders = _orders(found)
    if not orders:
        return (*equal, *[each for each in asked if each.operator == "!="][:different])
    ranges = ((low, high) for low in orders for high in orders if is_range(low, high))
    return (*equal, *next(ranges, orders[:1]))


# ----------------------------------------------------------------------------------------- building


class _Builder:
    """Makes a chain of transitions between places; `listed`: runs will wait in lists, else in an order."""

    def __init__(self, automaton: CEA, schema: Schema, *, listed: bool) -> None:
        self._automaton = automaton
        self._kinds = schema.column_kinds
        self._listed = listed
        self._terms = Terms()

    def chain(self, found: Sequence[tuple[_Found, tuple[Neighbours, ...]]], hidden: HiddenSet) -> Chain:
        """The chain with fewest transitions of those that find each complex event once.

        Where indices serve none of these, one that may find some of them several times, but not without
        bound. Raises `_NoChainError` where there is none.
        """
        plain = minimal(self._machine(found, hidden), self._terms)
        if not plain.edges:
            raise _NoChainError("no events pass all its filters")
        parting = ambiguous(plain, self._terms)
        why, once = "", list[Machine]()
        try:
            apart = minimal(determinised(plain, self._terms, STATE_CAP), self._terms)
            # Hidden labels keep runs apart that show the same.
            hiding = parting is not None and bool(hidden) and ambiguous(apart, self._terms) is not None
            once += [] if hiding else [apart]
        except TooManyError as error:
            states = {each.target: each.by.target for each, _ in found}
            grows = [frozenset(states[each] for each in subset - {BEGIN}) for subset in error.subsets]
            why = (
                f"told apart, its alternatives have {error}{what_grows(self._automaton, grows)}: "
                "write fewer alternatives in one query"
            )
        once += [plain] if parting is None else []
        chains: list[Chain] = []
        for each in once:
            made = self._made(each)
            if isinstance(made, Chain):
                chains.append(made)
            else:
                why = why or made
        if chains:
            return min(chains, key=lambda each: len(each.transitions))
        repeating = self._made(plain)
        if isinstance(repeating, Chain) and repeating.most_events is not None and parting is not None:
            return replace(repeating, repeats="; ".join(filter(None, (_two_ways(parting), why))))
        raise _NoChainError(why or (_two_ways(parting) if parting else ""))

    def _machine(self, found: Iterable[tuple[_Found, tuple[Neighbours, ...]]], hidden: HiddenSet) -> Machine:
        """Transitions with what is asked of events in each of them by indices."""
        edges: dict[Edge, None] = {}
        final: set[int] = set()
        for each, comparisons in found:
            if each.by.target in self._automaton.final:
                final.add(each.target)
            asked = self._terms.of_neighbours(comparisons)
            known = [Not(IsNull(value)) for value in each.step.not_null]
            read = read_of(each.by.guard, each.by.labels, self._automaton, ())
            for name, condition in read.cases if read is not None and asked is not None else ():
                marked = Marked(name, each.by.labels, each.by.hidden & hidden)
                for way in self._terms.of_event([*conjuncts(condition), *known]):
                    both = self._terms.all_of((asked or ANY, way))
                    if both is not None:
                        edges[Edge(each.source, marked, both, each.target)] = None
        return Machine(tuple(edges), frozenset(final))

    def _made(self, machine: Machine) -> Chain | str:
        """The chain, or why indices do not serve it, as a phrase."""
        numbers = {state: number for number, state in enumerate(machine.states)}
        types: dict[Edge, dict[str, None]] = {}
        for edge in machine.edges:
            alike = edge._replace(marked=edge.marked._replace(event_type=""))
            types.setdefault(alike, {})[edge.marked.event_type] = None
        predicates: dict[EventPredicate, int] = {}
        transitions: list[ChainTransition] = []
        for edge, names in types.items():
            for asked, comparisons in self._terms.written(edge.condition, null_differs=self._listed):
                predicate = EventPredicate(tuple(names), conjoined(asked))
                transitions.append(
                    ChainTransition(
                        None if edge.source == BEGIN else numbers[edge.source],
                        predicates.setdefault(predicate, len(predicates)),
                        tuple(sorted(comparisons, key=lambda each: _WRITTEN.index(each.operator))),
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
        """Why no index serves what a transition compares, as a phrase; empty where one does."""
        different, orders = len(transition.different), transition.by(*ORDERS)
        if self._listed:
            most, where = MOST_DIFFERENT, ""
        else:
            most, where = 1 - bool(orders), " under a window or beside an order"
            if len(orders) > 2 or (len(orders) == 2 and not is_range(*orders)):
                return "told apart, its alternatives compare the same neighbours by several orders"
        if different > most:
            return (
                f"told apart, its alternatives compare the same neighbours by {different} disequalities, "
                f"and an index has {most} at most{where}"
            )
        kinds = (kind_of(each, self._kinds) for one in transition.different for each in (one.left, one.right))
        if not self._listed and len(set(kinds)) > 1:
            return "an integer and a float that must differ have no index under a window or beside an order"
        return ""


_WRITTEN: Final[tuple[ComparisonOperator, ...]] = ("=", ">", ">=", "<", "<=", "!=")
"""The order in which the comparisons of a transition stand: the lower end of a range before the upper one."""


def _two_ways(parting: tuple[Edge, Edge]) -> str:
    marks = ", ".join(sorted(parting[0].marked.labels))
    return f"the same marks can be made in two ways, as an event {marks} can be read in two places"


def _names(transitions: Sequence[ChainTransition], predicates: Iterable[EventPredicate]) -> dict[str, None]:
    """For each state what enters it, with a number where several states are called the same."""
    known = list(predicates)
    entering: dict[int, dict[str, None]] = {}
    for each in transitions:
        name = event_name(each.labels, known[each.predicate].types)
        entering.setdefault(each.target, {})[name] = None
    names: dict[str, None] = {}
    for state in sorted(entering):
        plain = " or ".join(entering[state])
        tries = chain((plain,), (f"{plain} {number}" for number in count(2)))
        names[next(name for name in tries if name not in names)] = None
    return names
