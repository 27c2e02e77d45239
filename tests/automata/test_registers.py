"""Registers against residual filters: on every run of every automaton they agree, and with the oracle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estero.automata.cea import CEA, FIRST, EventPredicate, Guard, Transition
from estero.automata.compile.compile_pattern import compile_pattern
from estero.automata.correlated.push_down import PushedDown, push_down
from estero.automata.determinize import LazyAutomaton
from estero.automata.registers import (
    Action,
    RegisterProgram,
    Step,
    Value,
    drop_hidden,
    live_registers,
    tables,
)
from estero.automata.residual import Agreement, Apartness, Hidden, Key, Residual
from estero.classify.compared import as_integers
from estero.language.syntax.parser import parse_condition, parse_pattern
from estero.language.tree.expressions import Attribute
from estero.language.tree.schema import Kind, Schema
from estero.reference.filters import evaluate_filter
from estero.reference.patterns import Stream, find
from estero.reference.queries import Event
from estero.reference.values import all_true, compare, evaluate_expression, evaluate_predicate
from strategies.patterns import SCHEMA, streams

PUSHED = (
    "A AS u ; B AS v FILTER u.n < v.n",
    "A+ AS u ; B+ AS v FILTER u.x >= v.x",
    "A+ AS u ; B+ AS v FILTER v.x > u.x AND u.n <= v.n",
    "(A AS u OR B AS v)+ FILTER u.n < v.n",
    "(A AS u OR B AS v)+ FILTER u.x <= v.x",
    "(A AS u OR B AS v)+ FILTER u.s = v.s",
    "(A AS u OR B AS v)+ FILTER u.x = v.x",
    "A AS u ; B+ AS v FILTER u.x != v.x",
    "A+ AS u ; B AS v FILTER v.n != 1 AND u.x + 1.5 < v.x * 2.0",
    "A+ AS u ; B AS v FILTER length(u.s) / 1 <= abs(v.x) / 2 + 0.5 AND v.n / 2 > u.x",
    "(A OR B)+ AS u FILTER increasing(u.x)",
    "(A OR B)+ AS u ; C FILTER decreasing(u.n)",
    "(A AS u OR B AS v)+ PARTITION BY [u.k, v.n]",
    "(A OR B AS v)+ PARTITION BY [s]",
    "(A OR B AS v)+ PARTITION BY [v.x, x]",
    "A AS u ; (B AS v FILTER v.n > u.n)+",
    "A AS u ; (B AS v FILTER v.n != u.n)+",
    "(A AS u ; B+ AS v FILTER u.n < v.n)+",
    "(A AS u ; B+ AS v FILTER u.x != v.x)+ ; C",
    "((B AS v FILTER v.n < u.n)+ ; A AS u)+",
    "(A AS u ; (B AS v FILTER v.x < u.x)+ ; A AS u)+",
    "(A AS u ; ((C ; B AS v) FILTER v.x = u.x)+ ; C)+",
    "((A+ AS u ; B) FILTER increasing(u.n))+",
    "((A+ AS u ; B) PARTITION BY [u.s])+",
    "(((A OR B)+ PARTITION BY [k]) ; C)+",
    "A AS u ; (B AS v FILTER v.n = u.n)? ; C",
    "(A AS u ; B AS v ; C FILTER u.n < v.n) KEEP [C]",
    "((A AS u FILTER u.n < w.n)+ ALL B+ AS w)",
    "(A AS u ; (B+ AS v ; C FILTER u.x < v.x AND increasing(v.n)))+ OR B",
    "(A AS u ; B AS v ; C AS w FILTER u.n < v.n AND u.n < w.n)+",
    "A AS u ; B AS v FILTER u.n + 1 < v.n",
    "A AS u ; B AS v FILTER v.n - u.n > 1",
    "A AS u ; B AS v FILTER v.n - u.n > 0.5",
    "A AS u ; B AS v FILTER 0.5 <= v.n - u.n",
    "A AS u ; B AS v FILTER v.n - u.n <= -0.5",
    "A+ AS u FILTER u.n - prev(u.n) < 0.5",
    "A AS u ; B+ AS v FILTER v.time - u.time <= 3",
    "(A OR B)+ AS u FILTER u.n >= prev(u.k)",
    "(A OR B)+ AS u FILTER prev(u.s) = u.s",
    "(A OR B)+ AS u FILTER u.n - prev(u.n) != 1",
    "((A+ AS u ; B) FILTER u.time - prev(u.time) <= 2)+",
    "(A+ AS u ; C) FILTER abs(u.n) + 1 > prev(u.n) * 2",
    "(A OR B)+ PARTITION BY [missing, k, n]",
)
"""Patterns all of whose filters are pushed down."""

LEFT = {
    "A AS u ; B AS v ; C AS w FILTER u.x + v.x < w.x": "one side has arithmetic over two variables",
    "A AS u ; B AS v FILTER u.n < v.x": "it compares an integer with a float",
    "A AS u ; B AS v FILTER u.s < v.s": "it orders strings",
    "A AS u ; B AS v FILTER u.s != v.s": "strings are compared by !=",
    "A+ AS u FILTER increasing(u.s)": "it orders strings",
    "A+ AS u ; B AS v FILTER u.n != v.n": "a register holds one value, and this one must differ from several",
    "A+ AS u ; B AS v FILTER max(u.n) < v.n": "an aggregate is known only when all its events are present",
    "A+ AS u ; B AS v FILTER u.n > prev(u.n) + v.n": "it compares an event and the one before it with others",
    "A+ AS u FILTER prev(u.n) < 3": "one side is a constant",
    "A+ AS u FILTER u.x - prev(u.x) < 3.0": "it computes floats from two events; written as "
    "u.x - 3.0 < prev(u.x), which may round differently, it would be evaluated as runs advance",
    "A AS u ; B AS v FILTER v.n - u.n = 0.5": "it computes floats from two events; written as "
    "v.n - 0.5 = u.n, which may round differently, it would be evaluated as runs advance",
    "A+ AS u FILTER max(u.n) < 3": "an aggregate is known only when all its events are present",
    "(A AS u OR B)+ AS v FILTER u.n < v.n": "one event can belong to both variables",
    "A AS u ; B AS v FILTER u.n < v.n OR u.x < v.x": "it is more than a comparison of two variables",
    "A+ AS u FILTER some_day(u)": "a set predicate needs all its events at once",
    "A AS u ; NOT(B AS v FILTER v.n > u.n) ; C": "it must be false, which is known only when all its events "
    "are present",
    "A AS u ; B AS v ; (C OR (A FILTER u.n < v.n))": "all its variables are bound outside of the part that "
    "it filters",
    "(A OR B)+ PARTITION BY [missing, other]": "a key is the first of several attributes that an event has",
    "(A AS u OR B)+ AS v PARTITION BY [u.k, v.n]": "one event can have two of the keys",
    "(A AS u OR B AS v)+ PARTITION BY [u.k, v.x]": "it compares an integer with a float",
    "A AS u ; B AS v FILTER u.missing < v.n": "the kind of missing is not known",
}
"""Patterns whose last filter stays residual, and why."""


@dataclass(frozen=True)
class Mark:
    """An event of a run with the transition that read it."""

    position: int
    event: Event
    by: Transition

    def has(self, key: Key) -> bool:
        return self.by.carries(key)


Run = tuple[Mark, ...]


def pushed(text: str) -> tuple[CEA, tuple[Residual, ...], PushedDown]:
    compiled = compile_pattern(parse_pattern(text))
    return compiled.automaton, compiled.residuals, push_down(compiled.residuals, compiled.automaton, SCHEMA)


def bits_of(automaton: CEA, event: Event, position: int) -> int:
    def holds(predicate: EventPredicate) -> bool:
        if predicate == FIRST:
            return position == 0
        if event.type not in predicate.types:
            return False
        return predicate.condition is None or evaluate_predicate(predicate.condition, event) is True

    return sum(1 << bit for bit, each in enumerate(automaton.predicates) if holds(each))


def runs_of(automaton: CEA, events: Sequence[Event]) -> Iterator[Run]:
    """All runs that accept, from every start."""
    leaving = defaultdict(list)
    for transition in automaton.transitions:
        leaving[transition.source].append(transition)
    bits = [bits_of(automaton, event, position) for position, event in enumerate(events)]
    todo: list[tuple[int, int, Run]] = [
        (start, state, ()) for start in range(len(events)) for state in automaton.initial
    ]
    while todo:
        position, state, run = todo.pop()
        if state in automaton.final:
            yield run
        elif position < len(events):
            todo += [
                (position + 1, each.target, (*run, Mark(position, events[position], each)))
                for each in leaving[state]
                if each.guard.allows(bits[position])
            ]


# ------------------------------------------------------------------------- what residuals say of a run


def instances(run: Run, place: int) -> list[tuple[int, int]]:
    """From where to where the instances of a place reach, as places in the run."""
    begins = [number for number, mark in enumerate(run) if mark.has(Hidden(place))]
    return list(pairwise([*begins, len(run)]))


def bound(run: Run, residual: Residual, begin: int) -> dict[str, tuple[Event, ...]]:
    """The events of each variable for the instance of the residual's place that begins there."""
    found = {}
    for variable, key in residual.bindings:
        low, high = 0, len(run)
        if residual.place is not None and isinstance(key, Hidden):
            [(low, high)] = [each for each in instances(run, key.place) if each[0] <= begin < each[1]]
        found[variable] = tuple(mark.event for mark in run[low:high] if mark.has(key))
    return found


def holds(residual: Residual, run: Run) -> bool:
    """Whether the marks of a run satisfy a residual."""
    begins = [0] if residual.place is None else [low for low, _ in instances(run, residual.place)]
    return all(is_true(residual, bound(run, residual, begin)) for begin in begins)


def is_true(residual: Residual, marked: dict[str, tuple[Event, ...]]) -> bool:
    assert not isinstance(residual.condition, Apartness)
    if not isinstance(residual.condition, Agreement):
        return evaluate_filter(residual.condition, marked, {}) is True
    keys = residual.condition.keys
    values = [
        event.attributes.get(key.attribute) for key in keys if key.variable for event in marked[key.variable]
    ]
    alternatives = [key.attribute for key in keys if key.variable is None]
    values += [
        next((event.attributes[name] for name in alternatives if name in event.attributes), None)
        for event in (marked["*"] if alternatives else ())
    ]
    return all_true([compare("=", one, other) for one in values for other in values]) is True


# ----------------------------------------------------------------------------- what registers say of it

SPOILT = None
Registers = dict[int, int | None]
"""The registers that are set, or spoilt."""


def number_of(value: Value, event: Event) -> int | None:
    """The value of an event as the classified table has it. The first hash of a string is a bad one."""
    found = evaluate_expression(value.expression, event) if event.type in value.types else None
    if isinstance(found, str):
        return len(found) if value.hashed == 0 else int.from_bytes(found.encode(), "big")
    if found is None or isinstance(found, int):
        return found
    return int(as_integers(pa.array([found]))[0][0])


def passes(action: Action, held: int | None, value: int | None) -> bool:
    if held is SPOILT or value is None:
        return False
    tests = {
        Action.LESS: value < held,
        Action.LESS_OR_EQUAL: value <= held,
        Action.GREATER: value > held,
        Action.GREATER_OR_EQUAL: value >= held,
        Action.EQUAL: value == held,
        Action.NOT_EQUAL: value != held,
    }
    return tests[action]


def stored(action: Action, registers: Registers, register: int, value: int | None) -> int | None:
    if value is None or action == Action.STORE or register not in registers:
        return value
    held = registers[register]
    if held is SPOILT:
        return SPOILT
    if action == Action.STORE_SAME:
        return held if held == value else SPOILT
    return max(held, value) if action == Action.STORE_LARGEST else min(held, value)


def survives(program: RegisterProgram, automaton: CEA, run: Run, *, forgetful: bool) -> bool:
    """Whether a run passes all checks; `forgetful` unsets registers where they are dead."""
    marks = dict.fromkeys((each.labels, each.hidden) for each in automaton.transitions)
    steps = dict(
        zip(marks, tables(program, [each[0] for each in marks], [each[1] for each in marks]), strict=True)
    )
    live = live_registers(automaton, program)
    registers: Registers = {}
    for mark in run:
        for number, register, column, _ in steps[mark.by.labels, mark.by.hidden]:
            action = Action(number)
            value = number_of(program.values[column], mark.event)
            if action == Action.RESET:
                registers.pop(register, None)
            elif action == Action.NOT_NULL:
                if value is None:
                    return False
            elif action < Action.STORE:
                if register in registers and not passes(action, registers[register], value):
                    return False
            else:
                registers[register] = stored(action, registers, register, value)
        if forgetful:
            alive = [mark.by.target in states for states in live]
            registers = {register: held for register, held in registers.items() if alive[register]}
    return True


@settings(max_examples=400)
@given(st.sampled_from(PUSHED), streams(min_size=3, max_size=6), st.booleans())
def test_registers_pass_the_runs_that_satisfy_the_filters(
    text: str, events: list[Event], forgetful: bool
) -> None:
    automaton, residuals, (program, left, _) = pushed(text)
    assert not left
    assert program is not None
    for run in runs_of(automaton, events):
        wanted = all(holds(residual, run) for residual in residuals)
        assert survives(program, automaton, run, forgetful=forgetful) == wanted


@settings(max_examples=400)
@given(st.sampled_from(PUSHED), streams(min_size=3, max_size=6), st.booleans())
def test_with_registers_an_automaton_finds_what_the_reference_finds(
    text: str, events: list[Event], dropping: bool
) -> None:
    automaton, _, (program, _, _) = pushed(text)
    if dropping:
        automaton, program = drop_hidden(automaton, program)
    assert program is not None
    found = {
        (
            run[0].position,
            run[-1].position,
            frozenset((label, mark.position) for mark in run for label in mark.by.labels),
        )
        for run in runs_of(automaton, events)
        if survives(program, automaton, run, forgetful=True)
    }
    wanted = find(parse_pattern(text), Stream(tuple(events)))
    assert found == {(each.start, each.end, each.marks) for each in wanted}


# --------------------------------------------------------------------------------------- what is pushed


@pytest.mark.parametrize("text", LEFT)
def test_what_registers_cannot_say_stays_residual_with_its_reason(text: str) -> None:
    _, residuals, found = pushed(text)
    assert found.residuals == residuals[-1:]
    assert found.reasons == {residuals[-1]: LEFT[text]}
    assert found.program is None


def test_what_is_left_keeps_its_place_beside_what_is_pushed() -> None:
    _, residuals, found = pushed("A AS u ; B AS v FILTER u.n < v.x AND u.n < v.n AND u.s < v.s")
    assert found.residuals == (residuals[0], residuals[2])
    assert found.program is not None
    assert found.program.registers == 1
    assert list(found.reasons) == [residuals[0], residuals[2]]


def test_one_order_of_events_needs_one_register() -> None:
    _, _, found = pushed("A AS u ; B AS v FILTER v.n > u.n")
    assert found.program == RegisterProgram(
        1,
        (Value(Attribute("n"), ("B",)), Value(Attribute("n"), ("A",))),
        (Step("v", Action.GREATER, 0, 0), Step("u", Action.STORE_LARGEST, 0, 1)),
    )


def test_both_orders_need_two() -> None:
    _, _, found = pushed("(A AS u OR B AS v)+ FILTER u.n < v.n")
    assert found.program is not None
    assert found.program.registers == 2
    actions = [step.action for step in found.program.steps]
    assert actions == [Action.GREATER, Action.STORE_LARGEST, Action.LESS, Action.STORE_SMALLEST]


def test_filters_on_the_same_value_share_its_register() -> None:
    _, _, found = pushed("A AS u ; B AS v ; C AS w FILTER u.n < v.n AND u.n < w.n")
    assert found.program is not None
    assert found.program.registers == 1


def test_events_that_never_meet_need_nothing() -> None:
    automaton, _, found = pushed("A AS u OR B AS v FILTER u.n < v.n")
    assert found == (None, (), {})
    assert automaton.states == 2


def test_a_register_is_unset_where_an_instance_begins() -> None:
    _, residuals, found = pushed("(A AS u ; B AS v FILTER u.n < v.n)+")
    place = residuals[0].place
    assert place is not None
    assert found.program is not None
    assert Step(Hidden(place), Action.RESET, 0, 0) in found.program.steps


def test_a_variable_bound_around_keeps_its_register_through_the_rounds() -> None:
    _, _, found = pushed("A AS u ; (B AS v FILTER u.n < v.n)+")
    assert found.program is not None
    assert Action.RESET not in [step.action for step in found.program.steps]


def test_a_variable_that_can_be_of_any_type_stays_residual() -> None:
    steps = (
        Transition(0, Guard(), frozenset({"u"}), 1),
        Transition(1, Guard(frozenset({0})), frozenset({"v"}), 2),
    )
    automaton = CEA(3, frozenset({0}), frozenset({2}), steps, (EventPredicate(("A",)),))
    residual = Residual(parse_condition("u.n < v.n"), (("u", "u"), ("v", "v")))
    assert push_down([residual], automaton, SCHEMA).reasons == {residual: "its events can be of any type"}


def test_a_column_of_two_kinds_stays_residual() -> None:
    kinds = {"A": {"n": Kind.INT}, "B": {"n": Kind.INT}, "C": {"n": Kind.FLOAT}}
    compiled = compile_pattern(parse_pattern("A AS u ; B AS v FILTER u.n < v.n"))
    found = push_down(compiled.residuals, compiled.automaton, Schema(types=kinds, closed=True))
    assert list(found.reasons.values()) == ["the kind of n is not known"]
    kinds["C"] = {"n": Kind.NULL}
    found = push_down(compiled.residuals, compiled.automaton, Schema(types=kinds, closed=True))
    assert not found.residuals


# -------------------------------------------------------------------------------------- hidden labels


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("A AS u ; (B AS v FILTER u.n < v.n)+", 0),
        ("(A AS u ; B+ AS v FILTER u.n < v.n)+", 0),
        ("(((A OR B)+ PARTITION BY [k]) ; C)+", 2),
        ("((B AS v FILTER v.n < u.n)+ ; A AS u)+", 1),
        ("((A+ AS u ; B) FILTER increasing(u.n))+ ; A AS u", 2),
    ],
)
def test_a_hidden_label_is_dropped_where_a_label_of_the_answer_says_the_same(text: str, left: int) -> None:
    automaton, _, found = pushed(text)
    shown, program = drop_hidden(automaton, found.program, found.residuals)
    assert len({label for each in shown.transitions for label in each.hidden}) == left
    assert program is not None
    assert found.program is not None
    assert program.registers == found.program.registers


def test_residuals_keep_their_hidden_labels() -> None:
    automaton, residuals, found = pushed("(A AS u ; B AS v FILTER u.n < v.n AND u.s < v.s)+")
    shown, program = drop_hidden(automaton, found.program, found.residuals)
    assert program is not None
    hidden = {label for each in shown.transitions for label in each.hidden}
    place = residuals[1].place
    assert place is not None
    assert hidden == {Hidden(place), Hidden(place, "u"), Hidden(place, "v")}
    without, none = drop_hidden(automaton, None)
    assert none is None
    assert not any(each.hidden for each in without.transitions)


# ----------------------------------------------------------------------------------------- for the engine


def test_steps_of_an_event_come_in_the_order_of_their_actions() -> None:
    automaton, _, found = pushed("((A+ AS u FILTER increasing(u.n)) ; B)+")
    assert found.program is not None
    lazy = LazyAutomaton(automaton)
    steps = tables(found.program, lazy.label_sets, lazy.hidden_sets)
    actions = [[Action(action) for action, *_ in each] for each in steps]
    assert [Action.RESET, Action.GREATER, Action.STORE] in actions
    assert [Action.GREATER, Action.STORE] in actions
    assert [] in actions
    assert [Action.RESET] not in actions


def test_a_register_is_live_until_its_last_check() -> None:
    automaton, _, found = pushed("A AS u ; B AS v ; C FILTER u.n < v.n")
    assert found.program is not None
    live = live_registers(automaton, found.program)
    assert live == [{0, 1}]
    lazy = LazyAutomaton(automaton, registers=found.program)
    [(_, after_a)] = lazy.row(0, lazy.class_of(0b1)).edges
    [(_, after_b)] = lazy.row(after_a, lazy.class_of(0b10)).edges
    assert [lazy.live_registers(state) for state in (after_a, after_b)] == [[True], [False]]
    assert LazyAutomaton(automaton).live_registers(0) == []


def test_a_register_is_dead_where_it_will_be_unset_first() -> None:
    automaton, _, found = pushed("(A AS u : B AS v : C FILTER u.n < v.n):+")
    assert found.program is not None
    live = live_registers(automaton, found.program)
    after = {
        next(iter(each.labels - {"u", "v"})): [each.target in states for states in live]
        for each in automaton.transitions
        if each.target not in automaton.final
    }
    assert after == {"A": [True], "B": [False], "C": [False]}


def test_states_with_unknown_keys_are_not_asked() -> None:
    steps = (Step("nobody", Action.LESS, 0, 0),)
    program = RegisterProgram(1, (Value(Attribute("n"), ("A",)),), steps)
    automaton, _, _ = pushed("A ; B")
    assert live_registers(automaton, program) == [set()]
