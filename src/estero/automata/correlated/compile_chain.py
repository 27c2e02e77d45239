"""Compiles a pattern whose comparisons are between neighbours into a chain automaton.

The states are those of the pattern's automaton together with facts about the last event (neighbours.py). This
is the construction of Proposition 7 of "Towards streaming evaluation of queries with correlation in complex
event processing" (docs/papers.md), for all comparisons and not only for PART-BY.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from estero.automata.cea import CEA, Transition, why_others_matter
from estero.automata.chain import ORDERS, Chain, Neighbours, is_range
from estero.automata.correlated.chain_builder import (
    MIXED,
    MOST_DIFFERENT,
    STATE_CAP,
    ChainBuilder,
    NoChainError,
    PlacedTransition,
)
from estero.automata.correlated.deterministic import BEGIN
from estero.automata.correlated.neighbours import Carried, Fact, NotCarriedError, Register, Step
from estero.automata.correlated.push_down import Decision
from estero.automata.exploration import explore, leaving, merged
from estero.automata.registers import Action
from estero.automata.residual import Key, Residual, needed_hidden
from estero.language.check.kinds import kind_of
from estero.language.tree.conditions import variables_of
from estero.language.tree.expressions import Between, Comparison, Node
from estero.language.tree.schema import Schema

_TOO_MANY: Final = f"its chain automaton has more than {STATE_CAP:,} states"

SECOND_ORDER: Final = "the same neighbours are already compared by another order"
MORE_DIFFERENT: Final = (
    f"the same neighbours are already compared by {MOST_DIFFERENT} disequalities, the most that an index has"
)
"""The reasons why comparisons that no index serves stay residual."""


def chain_of(
    automaton: CEA, residuals: Sequence[Residual], schema: Schema, *, windowed: bool = False
) -> Chain | str:
    """The chain automaton of a compiled pattern, or the reason why there is none, as a phrase.

    It finds the complex events of the pattern once its `residuals` are checked: those that registers cannot
    express either, those between events that are not neighbours, and those of a second order between the same
    neighbours. A range counts as one order. If there is no order and the query is not `windowed`,
    disequalities do not count; otherwise each of them counts as an order.
    """
    why = why_others_matter(automaton)
    if why:
        return why
    if any(transition.labels and not transition.guard.present for transition in automaton.transitions):
        return "its events can be of any type"
    if automaton.states > STATE_CAP:
        return _TOO_MANY
    try:
        placed, reasons = _neighbours(automaton, residuals, schema)
    except NoChainError as reason:
        return str(reason)
    listed = not windowed and not any(_orders(transition) for transition in placed)
    kinds = schema.column_kinds

    def is_mixed(neighbours: Neighbours) -> bool:
        return not listed and kind_of(neighbours.left, kinds) is not kind_of(neighbours.right, kinds)

    served = [_served(transition, MOST_DIFFERENT if listed else 1, is_mixed) for transition in placed]
    for transition, comparisons in zip(placed, served, strict=True):
        for neighbours in transition.step.comparisons.keys() - set(comparisons):
            why = MORE_DIFFERENT if listed else MIXED if is_mixed(neighbours) else SECOND_ORDER
            reasons |= dict.fromkeys(transition.step.comparisons[neighbours], why)
    left = [number for number in range(len(residuals)) if number in reasons]
    hidden = frozenset(needed_hidden(residuals[number] for number in left))
    try:
        made = ChainBuilder(schema, listed=listed).chain(
            automaton, list(zip(placed, served, strict=True)), hidden
        )
    except NoChainError as reason:
        return str(reason)
    return replace(
        made,
        residuals=tuple(residuals[number] for number in left),
        reasons=tuple(reasons[number] for number in left),
    )


# -------------------------------------------------------------------------------------- registers


def _neighbours(
    automaton: CEA, residuals: Sequence[Residual], schema: Schema
) -> tuple[list[PlacedTransition], dict[int, str]]:
    """All transitions, with the comparisons of as many residuals as possible, and the reasons for the others.

    Residuals that neighbours cannot express together are left out one by one, the last written first, and
    then each of them is tried again together with the others.
    """
    drafted, reasons = _drafted(automaton, residuals, schema)
    if residuals and not drafted:
        raise NoChainError(reasons[0])

    def transitions(of: Iterable[int]) -> list[PlacedTransition]:
        registers = _same_checks(register for number in of for register in drafted[number])
        return _transitions(automaton, _joined(registers, automaton))

    numbers = list(drafted)
    while True:  # terminates: without registers there is no error
        try:
            placed = transitions(numbers)
            break
        except NotCarriedError as failed:
            last = max(failed.origins)
            reasons[last] = str(failed)
            numbers.remove(last)
    for number in sorted(drafted.keys() - set(numbers)):
        with suppress(NotCarriedError, NoChainError):
            placed = transitions(sorted((*numbers, number)))
            numbers.append(number)
            del reasons[number]
    if residuals and not numbers:
        raise NoChainError(reasons[min(drafted)])
    return placed, reasons


def _drafted(
    automaton: CEA, residuals: Sequence[Residual], schema: Schema
) -> tuple[dict[int, list[Register]], dict[int, str]]:
    """The registers of each residual by its number, and for the others the reasons why they have none."""
    decide = Decision(automaton, schema, by_keys=True)
    drafted: dict[int, list[Register]] = {}
    reasons: dict[int, str] = {}
    for number, residual in enumerate(residuals):
        drafts = [decide.drafts(part) for part in _parts(residual)]
        why = next((decided for decided in drafts if isinstance(decided, str)), None)
        if why is not None:
            reasons[number] = why
            continue
        drafted[number] = [
            Register(draft.scope, draft.stores, draft.checks, frozenset({number}))
            for decided in drafts
            if not isinstance(decided, str)
            for draft in decided
        ]
    return drafted, reasons


def _parts(residual: Residual) -> list[Residual]:
    """Splits BETWEEN into its two comparisons if both refer to the same variables."""
    match residual.condition:
        case Between(operand, low, high) if variables_of(low) == variables_of(high):
            parts = (Comparison(">=", operand, low), Comparison("<=", operand, high))
            return [replace(residual, condition=part) for part in parts]
        case _:
            return [residual]


def _same_checks(registers: Iterable[Register]) -> list[Register]:
    """Merges equalities with the same later event, as the values before it are then equal as well."""
    joined: dict[object, Register] = {}
    for number, register in enumerate(registers):
        together = (register.scope, register.checks) if register.of_equality else number
        other = joined.setdefault(together, register)
        stores = tuple(dict.fromkeys((*other.stores, *register.stores)))
        joined[together] = replace(register, stores=stores, origins=register.origins | other.origins)
    return list(joined.values())


def _joined(registers: Sequence[Register], automaton: CEA) -> list[Register]:
    """Makes one register of each equality class of values that every run has, as they are all equal."""
    terms: dict[tuple[Key, Node], set[int]] = {}
    whole = [
        number for number, register in enumerate(registers) if register.of_equality and register.scope is None
    ]
    for number in whole:
        for key, _, value in (*registers[number].stores, *registers[number].checks):
            terms.setdefault((key, value), set()).add(number)
    classes = map(sorted, merged([*([number] for number in whole), *terms.values()]))
    joined = [register for number, register in enumerate(registers) if number not in whole]
    for event_class in classes:
        together = [term for term, numbers in terms.items() if not numbers.isdisjoint(event_class)]
        if len(event_class) > 1 and _is_one_value(together, automaton):
            stores = tuple((key, Action.STORE_SAME, value) for key, value in together)
            equal = tuple((key, Action.EQUAL, value) for key, value in together)
            other = tuple(
                use for number in event_class for use in registers[number].checks if use not in equal
            )
            origins = frozenset().union(*(registers[number].origins for number in event_class))
            joined.append(Register(None, stores, (*equal, *dict.fromkeys(other)), origins))
        else:
            joined += [registers[number] for number in event_class]
    return joined


def _is_one_value(terms: Sequence[tuple[Key, Node]], automaton: CEA) -> bool:
    """Whether every run has an event of each key, and no event has two different values of the class."""
    values: dict[Key, Node] = {}
    for key, value in terms:
        if values.setdefault(key, value) != value:
            return False
    for transition in automaton.transitions:
        if len({value for key, value in values.items() if transition.carries(key)}) > 1:
            return False
    return all(_is_in_every_run(key, automaton) for key in values)


def _is_in_every_run(key: Key, automaton: CEA) -> bool:
    without = automaton.leading_to(automaton.final, lambda transition: not transition.carries(key))
    return automaton.initial.isdisjoint(without)


# ---------------------------------------------------------------------------------------- exploring


class _Place(NamedTuple):
    """A state of the pattern's automaton, and the facts about registers that hold there."""

    state: int
    facts: frozenset[tuple[int, frozenset[Fact]]]
    begun: bool = True


def _transitions(automaton: CEA, registers: Sequence[Register]) -> list[PlacedTransition]:
    """All reachable transitions of the chain, from `BEGIN` on.

    Raises `NotCarriedError` if a comparison is not between neighbours, and `NoChainError` if there are too
    many states.
    """
    carried = Carried(automaton, registers)
    marking = leaving(transition for transition in automaton.transitions if transition.labels)

    def steps(place: _Place) -> Iterator[tuple[tuple[Transition, Step], _Place]]:
        for transition in marking[place.state]:
            step = carried.take(dict(sorted(place.facts)), transition)
            yield (transition, step), _Place(transition.target, frozenset(step.facts.items()))

    numbers: dict[_Place, int] = {}
    placed: list[PlacedTransition] = []
    start = [_Place(state, frozenset(), begun=False) for state in sorted(automaton.initial)]
    for source, (transition, step), target in explore(start, steps):
        number = numbers.setdefault(target, len(numbers))
        if number >= STATE_CAP:
            raise NoChainError(_TOO_MANY)
        placed.append(PlacedTransition(numbers[source] if source.begun else BEGIN, transition, step, number))
    return placed


def _orders(transition: PlacedTransition) -> list[Neighbours]:
    return [comparison for comparison in transition.step.comparisons if comparison.operator in ORDERS]


def _served(
    transition: PlacedTransition, different: int, is_mixed: Callable[[Neighbours], bool]
) -> tuple[Neighbours, ...]:
    """The comparisons that indices serve: equalities, and one order or range, or else some disequalities."""
    asked = transition.step.comparisons
    equal = sorted((comparison for comparison in asked if comparison.operator == "="), key=repr)
    orders = _orders(transition)
    if not orders:
        unequal = [
            comparison for comparison in asked if comparison.operator == "!=" and not is_mixed(comparison)
        ]
        return (*equal, *unequal[:different])
    ranges = ((low, high) for low in orders for high in orders if is_range(low, high))
    return (*equal, *next(ranges, orders[:1]))
