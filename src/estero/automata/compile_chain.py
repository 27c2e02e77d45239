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

from estero.automata.carried import Carried, Facts, Register, event_name
from estero.automata.cea import CEA, EventPredicate, Transition
from estero.automata.chain import Chain, ChainTransition, Neighbours
from estero.automata.drop_hidden import needed_hidden
from estero.automata.push_down import Decision, Draft
from estero.automata.reads import read_of
from estero.automata.registers import Action, carries
from estero.automata.residual import HiddenSet, Key, Residual
from estero.automata.unambiguous import BEGIN, Edge, Letter, Machine, unambiguous
from estero.automata.unmarked import why_others_matter
from estero.language.conditions import conjuncts, variables_of
from estero.language.expressions import And, Between, Comparison, IsNull, Node, Not
from estero.language.schema import Schema

STATE_CAP: Final = 1_000
"""The most states of a chain, before equal ones are made one."""

_TOO_MANY: Final = f"its chain automaton has more than {STATE_CAP:,} states"

MOST_DIFFERENT: Final = 4
"""The most disequalities of one transition: an index of them has a pointer for each sequence of them."""

SECOND_ORDER: Final = "the same neighbours are compared by another order already"
"""Why a comparison that no index serves stays residual."""


def chain_of(automaton: CEA, residuals: Sequence[Residual], schema: Schema) -> Chain | str:
    """The chain automaton of a compiled pattern, or a phrase on why there is none.

    It finds the complex events of the pattern once its `residuals` are checked: those that registers cannot
    say either, and those of a second order between the same neighbours. A range counts as one order, and
    disequalities count as none where there is no order.
    """
    why = why_others_matter(automaton)
    if why:
        return why
    if any(each.labels and not each.guard.present for each in automaton.transitions):
        return "its events can be of any type"
    if automaton.states > STATE_CAP:
        return _TOO_MANY
    registers, reasons = _registers(automaton, residuals, schema)
    if residuals and len(reasons) == len(residuals):
        return reasons[0]
    raw = _explore(automaton, registers)
    if isinstance(raw, str):
        return raw
    for each in raw:
        for neighbours in each.comparisons.keys() - set(_served(each)):
            reasons |= dict.fromkeys(each.comparisons[neighbours], SECOND_ORDER)
    left = [number for number in range(len(residuals)) if number in reasons]
    hidden = frozenset(needed_hidden(residuals[number] for number in left))
    machine = unambiguous(_machine(raw, automaton, hidden), STATE_CAP)
    if isinstance(machine, str):
        return machine
    return _chain(machine, [residuals[number] for number in left], [reasons[number] for number in left])


# -------------------------------------------------------------------------------------- registers


def _registers(
    automaton: CEA, residuals: Sequence[Residual], schema: Schema
) -> tuple[list[Register], dict[int, str]]:
    """What registers would do, and by number of residual why they cannot."""
    decide = Decision(automaton, schema, strings_differ=True)
    found: list[Register] = []
    reasons: dict[int, str] = {}
    for number, residual in enumerate(residuals):
        new: list[Register] = []
        for part in _parts(residual):
            drafts = decide.drafts(part)
            if isinstance(drafts, str):
                reasons[number] = drafts
                break
            new += [each for draft in drafts if (each := _register(draft, number)) is not None]
        else:
            found += new
    return _joined(_same_checks(found), automaton), reasons


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


_Place = tuple[int, frozenset[tuple[int, object]]]
"""A state and the facts there, as a value."""


def _explore(automaton: CEA, registers: Sequence[Register]) -> list[_Raw] | str:
    """All transitions of the chain, from `BEGIN` on; or why a comparison is none of neighbours."""
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
            if isinstance(step, str):
                return step
            place: _Place = (transition.target, frozenset(step.facts.items()))
            if place not in numbers:
                if len(numbers) >= STATE_CAP:
                    return _TOO_MANY
                numbers[place] = len(numbers)
                todo.append((numbers[place], transition.target, step.facts))
            comparisons = dict(step.comparisons)
            found.append(_Raw(number, transition, comparisons, step.not_null, numbers[place]))
    return found


def _served(raw: _Raw) -> tuple[Neighbours, ...]:
    """What is compared by indices: equalities, and one order or some disequalities."""
    equal = sorted((each for each in raw.comparisons if each.operator == "="), key=repr)
    orders = [each for each in raw.comparisons if each.operator not in ("=", "!=")]
    if not orders:
        return (*equal, *[each for each in raw.comparisons if each.operator == "!="][:MOST_DIFFERENT])
    for low in orders:
        for high in orders:
            if (low.operator, high.operator) == (">=", "<=") and low.left == high.left:
                return (*equal, low, high)
    return (*equal, orders[0])


# ----------------------------------------------------------------------------------------- building


def _machine(raw: Iterable[_Raw], automaton: CEA, hidden: HiddenSet) -> Machine:
    edges: list[Edge] = []
    final: set[int] = set()
    for each in raw:
        if each.by.target in automaton.final:
            final.add(each.target)
        comparisons = _served(each)
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
                upper=orders[1].right if len(orders) > 1 else None,
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
