"""MAX: the automaton that follows rivals against all runs of the one below it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estero.automata.cea import CEA, EventPredicate, Guard, Transition
from estero.automata.compile.compile_pattern import compile_pattern
from estero.automata.determinize import DEAD, LazyAutomaton
from estero.automata.residual import Hidden
from estero.automata.strategies import MaxAutomaton
from estero.engine.runs.tables import Automaton
from estero.errors import LimitExceeded
from estero.language.syntax.parser import parse_pattern
from estero.language.tree.pattern import Pattern
from strategies.patterns import patterns

Marks = tuple[tuple[int, int], ...]
"""The marked positions of a run with their marks, in order."""
Complex = tuple[int, int, Marks]
"""The start and the end of a run, and what it has marked."""


def complex_events(automaton: Automaton, stream: list[int]) -> list[Complex]:
    """All that the runs of the automaton find on events with these bits."""
    found: list[Complex] = []
    runs: list[tuple[int, int, Marks]] = []
    for position, bits in enumerate(stream):
        event_class = automaton.class_of(bits)
        moved: list[tuple[int, int, Marks]] = []
        for start, state, marks in [*runs, (position, 0, ())]:
            row = automaton.row(state, event_class)
            if row.skip != DEAD:
                moved.append((start, row.skip, marks))
            moved += [(start, target, (*marks, (position, label))) for label, target in row.edges]
        found += [(start, position, marks) for start, state, marks in moved if automaton.accepts(state)]
        runs = [run for run in moved if automaton.continues(run[1])]
    return found


def maximal(found: list[Complex]) -> list[Complex]:
    """Those whose positions no other with the same end strictly contains."""
    supports = [(end, frozenset(place for place, _ in marks)) for _, end, marks in found]
    return [
        each
        for each, (end, support) in zip(found, supports, strict=True)
        if not any(other[0] == end and other[1] > support for other in supports)
    ]


def found_by_rivals(automaton: MaxAutomaton, stream: list[int]) -> list[Complex]:
    """What the runs of the automaton find, where those that begin meet those that are there."""
    found: list[Complex] = []
    runs: list[tuple[int, int, Marks]] = []
    for position, bits in enumerate(stream):
        event_class = automaton.class_of(bits)
        moved: list[tuple[int, int, Marks]] = []
        rivals: list[tuple[int, bool, bool]] = []
        for start, state, marks in runs:
            row = automaton.row(state, event_class)
            more = not automaton.empty(state)
            moved += [(start, target, (*marks, (position, label))) for label, target in row.edges]
            rivals += [(automaton.own(target), True, more) for _, target in row.edges]
            if row.skip != DEAD:
                moved.append((start, row.skip, marks))
                rivals.append((automaton.own(row.skip), False, more))
        row = automaton.row(0, event_class)
        born = [(target, ((position, label),)) for label, target in row.edges]
        for first, marks in [*born, *([(row.skip, ())] if row.skip != DEAD else [])]:
            state = first
            for rival, marked, more in rivals:
                if state != DEAD and (marked or not marks):
                    state = automaton.beside(state, rival, more=more or (marked and not marks))
            if state != DEAD:
                moved.append((position, state, marks))
        found += [(start, position, marks) for start, state, marks in moved if automaton.accepts(state)]
        runs = [run for run in moved if automaton.continues(run[1])]
    return found


def possible(automaton: CEA, numbers: list[int]) -> list[int]:
    """A number for each event → its bits: those of one type."""
    names = sorted({name for each in automaton.predicates for name in each.types}) or [""]
    found = []
    for number in numbers:
        name = names[number % len(names)]
        mask = sum(1 << bit for bit, each in enumerate(automaton.predicates) if name in each.types)
        found.append(number // len(names) & mask)
    return found


def assert_maximal(automaton: CEA, stream: list[int]) -> None:
    wanted = maximal(complex_events(LazyAutomaton(automaton), stream))
    assert sorted(found_by_rivals(MaxAutomaton(LazyAutomaton(automaton)), stream)) == sorted(wanted)


@given(patterns(max_operators=5), st.lists(st.integers(0, 2**12), max_size=7))
def test_max_finds_the_maximal_complex_events_of_each_end(pattern: Pattern, stream: list[int]) -> None:
    automaton = compile_pattern(pattern).automaton
    assert_maximal(automaton, possible(automaton, stream))


@st.composite
def automata(draw: st.DrawFn) -> CEA:
    """Automata that no pattern gives: every state may pass over an event, also before the first mark."""
    states = draw(st.integers(2, 5))
    labels = st.sampled_from([frozenset(), frozenset(), frozenset({"x"}), frozenset({"x", "y"})])
    guards = st.sampled_from([Guard(), Guard(frozenset({0})), Guard(frozenset({1}), frozenset({0}))])
    steps = st.builds(Transition, st.integers(0, states - 2), guards, labels, st.integers(1, states - 1))
    transitions = tuple(dict.fromkeys(draw(st.lists(steps, min_size=2, max_size=9))))
    predicates = (EventPredicate(("A", "B")), EventPredicate(("A",)))
    return CEA(states, frozenset({0}), frozenset({states - 1}), transitions, predicates)


@settings(max_examples=150)
@given(automata(), st.lists(st.integers(0, 3), max_size=7))
def test_max_holds_for_runs_that_pass_over_events_anywhere(automaton: CEA, stream: list[int]) -> None:
    assert_maximal(automaton, stream)


def test_runs_that_mark_less_are_dropped_at_once() -> None:
    automaton = MaxAutomaton(LazyAutomaton(compile_pattern(parse_pattern("A+ ; B")).automaton))
    a = automaton.class_of(1)
    [(_, once)] = automaton.row(0, a).edges
    row = automaton.row(once, a)
    assert len(row.edges) == 1
    assert row.skip == DEAD
    assert automaton.beside(once, automaton.own(once), more=True) == DEAD
    assert len(found_by_rivals(automaton, [1, 1, 1, 1, 2])) == 1


@pytest.mark.parametrize(
    "text",
    [
        " ; ".join(f"A{number}+" for number in range(20)),
        " ; ".join(f"A{number}?" for number in range(20)) + " ; Z",
        " ; ".join(f"(A AS x{number})+" for number in range(20)),
        " ; ".join(random.Random(number).choice(["A+", "B+", "C+"]) for number in range(20)),
        "A{50,} ; B",
        "A{1,50} ; B",
        " ; ".join(f"(A{number}+ OR B)" for number in range(20)),
        " ; ".join(f"(A{number}+ OR A{(7 * number + 3) % 20})" for number in range(20)),
    ],
)
def test_long_patterns_have_few_states(text: str) -> None:
    automaton = MaxAutomaton(LazyAutomaton(compile_pattern(parse_pattern(text)).automaton))
    predicates = len(automaton.automaton.cea.predicates)
    draw = random.Random(3)
    active: set[int] = set()
    for _ in range(500):
        event_class = automaton.class_of(1 << draw.randrange(predicates))
        rows = [automaton.row(state, event_class) for state in sorted(active)]
        moved = [target for row in rows for _, target in row.edges]
        rivals = [automaton.own(target) for target in moved]
        moved += [row.skip for row in rows if row.skip != DEAD]
        for _, first in automaton.row(0, event_class).edges:
            state = first
            for rival in rivals:
                state = DEAD if state == DEAD else automaton.beside(state, rival, more=True)
            moved += [state] if state != DEAD else []
        active = {state for state in moved if automaton.continues(state)}
    assert len(automaton.pairs) < 500
    assert len(active) < 60


def test_too_many_states_to_compare_are_an_error() -> None:
    automaton = LazyAutomaton(compile_pattern(parse_pattern("A ; B ; C")).automaton)
    limited = MaxAutomaton(automaton, state_cap=2)
    [(_, state)] = limited.row(0, limited.class_of(1)).edges
    with pytest.raises(LimitExceeded) as caught:
        limited.row(state, limited.class_of(2))
    assert str(caught.value) == (
        "MAX needs more than 2 states to compare complex events; what grows is A: "
        "repeat fewer of its parts, make its predicates exclude one another, or ask for ALL"
    )


def test_hidden_labels_are_not_compared() -> None:
    step = Transition(0, Guard(), frozenset(), 1, frozenset({Hidden(0)}))
    with pytest.raises(ValueError, match="hidden labels are marks that MAX does not compare"):
        MaxAutomaton(LazyAutomaton(CEA(2, frozenset({0}), frozenset({1}), (step,), ())))
