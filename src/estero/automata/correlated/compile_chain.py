"""Compiled pattern → chain automaton, where its comparisons are between neighbours, or why there is none.

The states are those of the pattern's automaton together with what the last event carries (carried.py). This
is the transition-to-state construction of the paper's Proposition 7, for every comparison and not PART-BY
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Final

from estero.automata.cea import CEA, EventPredicate, Transition, why_others_matter
from estero.automata.chain import Chain, ChainTransition, Neighbours, is_range
from estero.automata.correlated.carried import Carried, Facts, NotCarried, Register, event_name
from estero.automata.correlated.push_down import Decision, Draft
from estero.automata.correlated.unambiguous import BEGIN, Edge, Letter, Machine, unambiguous
from estero.automata.formulas.reads import read_of
from estero.automata.registers import Action
from estero.automata.residual import HiddenSet, Key, Residual, carries, needed_hidden
from estero.language.tree.conditions import conjuncts, variables_of
from estero.language.tree.expressions import And, Between, Comparison, IsNull, Node, Not
from estero.language.tree.schema import Schema

STATE_CAP: Final = 1_000
"""The most states of a chain, before equal ones are made one."""

_TOO_MANY: Final = f"its chain automaton has more than {STATE_CAP:,} states"

MOST_DIFFERENT: Final = 4
"""The most disequalities of one transition: an index of them has a pointer for each sequence of them."""

SECOND_ORDER: Final = "the same neighbours are compared by another order already"
"""Why a comparison that no index serves stays residual."""


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
    found = _neighbours(automaton, residuals, schema)
    if isinstance(found, str):
        return found
    raw, reasons = found
    listed = not windowed and not any(_orders(each) for each in raw)
    served = [_served(each, MOST_DIFFERENT if listed else 1) for each in raw]
    for each, comparisons in zip(raw, served, strict=True):
        for neighbours in each.comparisons.keys() - set(comparisons):
            reasons |= dict.fromkeys(each.comparisons[neighbours], SECOND_ORDER)
    left = [number for number in range(len(residuals)) if number in reasons]
    hidden = frozenset(needed_hidden(residuals[number] for number in left))
    machine = unambiguous(_machine(zip(raw, served, strict=True), automaton, hidden), STATE_CAP)
    if isinstance(machine, str):
        return machine
    return _chain(machine, [residuals[number] for number in left], [reasons[number] for number in left])


# -------------------------------------------------------------------------------------- registers


@dataclass(slots=True)
class _Drafted:
    """What registers would do for each residual, by its number; and why they cannot for the others."""

    registers: dict[int, list[Register]]
    reasons: dict[int, str]

    def of(self, numbers: Iterable[int], automaton: CEA) -> list[Register]:
        """The registers for some of the residuals."""
        return _joined(_same_checks(each for number in numbers for each in self.registers[number]), automaton)


def _neighbours(
    automaton: CEA, residuals: Sequence[Residual], schema: Schema
) -> tuple[list[_Raw], dict[int, str]] | str:
    """All transitions, with comparisons for as many residuals as can be; and why the others stay residual.

    What cannot be said by neighbours together is left out one by one, the last written first, and then
    tried again beside what could.
    """
    drafted = _drafted(automaton, residuals, schema)
    reasons = drafted.reasons
    if residuals and not drafted.registers:
        return reasons[0]
    numbers = list(drafted.registers)
    raw = _explore(automaton, drafted.of(numbers, automaton))
    while isinstance(raw, _Failed):  # without any register nothing fails
        last = max(raw.origins)
        reasons[last] = raw.reason
        numbers.remove(last)
        raw = _explore(automaton, drafted.of(numbers, automaton))
    for number in sorted(drafted.registers.keys() - set(numbers)):
        more = _explore(automaton, drafted.of(sorted((*numbers, number)), automaton))
        if isinstance(more, list):
            raw = more
            numbers.append(number)
            del reasons[number]
    if residuals and not numbers:
        return reasons[min(drafted.registers)]
    return raw if isinstance(raw, str) else (raw, reasons)


def _drafted(automaton: CEA, residuals: Sequence[Residual], schema: Schema) -> _Drafted:
    """What registers would do, and by number of residual why they cannot."""
    decide = Decision(automaton, schema, strings_differ=True)
    found = _Drafted({}, {})
    for number, residual in enumerate(residuals):
        new: list[Register] = []
        for part in _parts(residual):
            drafts = decide.drafts(part)
            if isinstance(drafts, str):
                found.reasons[number] = drafts
                break
            new += [each for draft in drafts if (each := _register(draft, number)) is not None]
        else:
            found.registers[number] = new
    return found


def _parts(residual: Residual) -> list[Residual]:
    """BETWEEN as its two comparisons, where both are about the same variables."""
    match residual.condition:
        case Between(operand, low, high) if variables_of(low) == variables_of(high):
            parts = (Comparison(">=", operand, low), Comparison("<=", operand, high))
            return [replace(residual, condition=part) for part in parts]
        case _:
            return [residual]


def _register(draft: Draft, origin: int) -> Register | None:
    """A draft on the values themselves; None for the second hash of a string."""
    stores, checks = (
        tuple((key, action, value.expression) for key, action, value in uses if not value.hashed)
        for uses in (draft.stores, draft.checks)
    )
    return Register(draft.scope, stores, checks, frozenset({origin})) if checks else None


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
    classes: list[set[int]] = [{number} for number in whole]
    for numbers in terms.values():
        touched = [each for each in classes if each & numbers]
        classes = [each for each in classes if not each & numbers] + [set().union(*touched)]
    found = [each for number, each in enumerate(registers) if number not in whole]
    for each in classes:
        together = {term: None for term, numbers in terms.items() if numbers & each}
        if len(each) > 1 and _is_one_value(list(together), automaton):
            stores = tuple((key, Action.STORE_SAME, value) for key, value in together)
            equal = tuple((key, Action.EQUAL, value) for key, value in together)
            other = tuple(use for number in each for use in registers[number].checks if use not in equal)
            origins = frozenset().union(*(registers[number].origins for number in each))
            found.append(Register(None, stores, (*equal, *dict.fromkeys(other)), origins))
        else:
            found += [registers[number] for number in sorted(each)]
    return found


def _is_one_value(terms: Sequence[tuple[Key, Node]], automaton: CEA) -> bool:
    """Whether every run has an event of each key, and no event has two different values of the class."""
    values: dict[Key, Node] = {}
    for key, value in terms:
        if values.setdefault(key, value) != value:
            return False
    for each in automaton.transitions:
        if len({value for key, value in values.items() if carries(each.labels, each.hidden, key)}) > 1:
            return False
    return all(_is_in_every_run(key, automaton) for key in values)


def _is_in_every_run(key: Key, automaton: CEA) -> bool:
    without: dict[int, list[int]] = {}
    for each in automaton.transitions:
        if not carries(each.labels, each.hidden, key):
            without.setdefault(each.source, []).append(each.target)
    reached = list(automaton.initial)
    for state in reached:
        reached += [target for target in without.get(state, ()) if target not in reached]
    return automaton.final.isdisjoint(reached)


# ---------------------------------------------------------------------------------------- exploring


@dataclass(frozen=True, slots=True)
class _Raw:
    """A transition between states with facts."""

    source: int
    by: Transition
    comparisons: dict[Neighbours, frozenset[int]]
    not_null: tuple[Node, ...]
    target: int


@dataclass(frozen=True, slots=True)
class _Failed:
    """Why the residuals with these numbers are not about neighbours."""

    origins: frozenset[int]
    reason: str


_Place = tuple[int, frozenset[tuple[int, object]]]
"""A state and the facts there, as a value."""


def _explore(automaton: CEA, registers: Sequence[Register]) -> list[_Raw] | _Failed | str:
    """All transitions of the chain, from `BEGIN` on; or why a comparison is none of neighbours.

    A string says that there are too many.
    """
    carried = Carried(automaton, registers)
    leaving: dict[int, list[Transition]] = {}
    for each in automaton.transitions:
        if each.labels:
            leaving.setdefault(each.source, []).append(each)
    numbers: dict[_Place, int] = {}
    todo: list[tuple[int, int, Facts]] = [(BEGIN, state, {}) for state in sorted(automaton.initial)]
    found: list[_Raw] = []
    for number, state, facts in todo:
        for transition in leaving.get(state, ()):
            step = carried.take(facts, transition)
            if isinstance(step, NotCarried):
                return _Failed(registers[step.register].origins, step.reason)
            place: _Place = (transition.target, frozenset(step.facts.items()))
            if place not in numbers:
                if len(numbers) >= STATE_CAP:
                    return _TOO_MANY
                numbers[place] = len(numbers)
                todo.append((numbers[place], transition.target, step.facts))
            comparisons = dict(step.comparisons)
            found.append(_Raw(number, transition, comparisons, step.not_null, numbers[place]))
    return found


def _orders(raw: _Raw) -> list[Neighbours]:
    return [each for each in raw.comparisons if each.operator not in ("=", "!=")]


def _served(raw: _Raw, different: int) -> tuple[Neighbours, ...]:
    """What is compared by indices: equalities, and one order or range, or else so many disequalities."""
    equal = sorted((each for each in raw.comparisons if each.operator == "="), key=repr)
    orders = _orders(raw)
    if not orders:
        return (*equal, *[each for each in raw.comparisons if each.operator == "!="][:different])
    for low in orders:
        for high in orders:
            if is_range(low, high):
                return (*equal, low, high)
    return (*equal, orders[0])


# ----------------------------------------------------------------------------------------- building


def _machine(
    raw: Iterable[tuple[_Raw, tuple[Neighbours, ...]]], automaton: CEA, hidden: HiddenSet
) -> Machine:
    """Transitions with what is compared in each of them by indices."""
    edges: list[Edge] = []
    final: set[int] = set()
    for each, comparisons in raw:
        if each.by.target in automaton.final:
            final.add(each.target)
        for predicate in _predicates(each, automaton):
            letter = Letter(predicate, comparisons, each.by.labels, each.by.hidden & hidden)
            edges.append(Edge(each.source, letter, each.target))
    return Machine(tuple(dict.fromkeys(edges)), frozenset(final))


def _predicates(raw: _Raw, automaton: CEA) -> Iterator[EventPredicate]:
    """What is asked of the event alone, one predicate for all types of which the same is asked."""
    read = read_of(raw.by.guard, raw.by.labels, automaton.predicates, ())
    types: dict[Node | None, list[str]] = {}
    for name, condition in read.cases if read is not None else ():
        types.setdefault(condition, []).append(name)
    known = tuple(Not(IsNull(value)) for value in raw.not_null)
    for condition, names in types.items():
        parts = (*(conjuncts(condition) if condition is not None else ()), *known)
        whole = And(parts) if len(parts) > 1 else parts[0] if parts else None
        yield EventPredicate(tuple(names), whole)


def _chain(machine: Machine, residuals: Sequence[Residual], reasons: Sequence[str]) -> Chain:
    numbers = {state: number for number, state in enumerate(machine.states)}
    predicates: dict[EventPredicate, int] = {}
    transitions = []
    for edge in machine.edges:
        letter = edge.letter
        keys = [each for each in letter.comparisons if each.operator == "="]
        orders = [each for each in letter.comparisons if each.operator not in ("=", "!=")]
        transitions.append(
            ChainTransition(
                source=None if edge.source == BEGIN else numbers[edge.source],
                predicate=predicates.setdefault(letter.predicate, len(predicates)),
                left=tuple(each.left for each in keys),
                right=tuple(each.right for each in keys),
                order=orders[0] if orders else None,
                labels=letter.labels,
                target=numbers[edge.target],
                hidden=letter.hidden,
                upper=orders[1] if len(orders) > 1 else None,
                different=tuple(each for each in letter.comparisons if each.operator == "!="),
            )
        )
    names = tuple(_names(machine))
    final = frozenset(numbers[state] for state in machine.final)
    return Chain(names, final, tuple(transitions), tuple(predicates), tuple(residuals), tuple(reasons))


def _names(machine: Machine) -> dict[str, None]:
    """For each state what enters it, with a number where several states are called the same."""
    names: dict[str, None] = {}
    for state in machine.states:
        entering = [edge.letter for edge in machine.edges if edge.target == state]
        events = dict.fromkeys(event_name(each.labels, each.predicate.types) for each in entering)
        plain = " or ".join(events)
        tries = chain((plain,), (f"{plain} {number}" for number in count(2)))
        names[next(name for name in tries if name not in names)] = None
    return names
