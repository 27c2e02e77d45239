"""MAX inside one start: the pruned automaton against all runs of the one it prunes."""

from __future__ import annotations

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
from strategies import patterns

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
    """Those whose positions no other with the same start and end strictly contains."""
    supports = [(start, end, frozenset(place for place, _ in marks)) for start, end, marks in found]
    return [
        each
        for each, (start, end, support) in zip(found, supports, strict=True)
        if not any(other[:2] == (start, end) and other[2] > support for other in supports)
    ]


def assert_maximal(automaton: CEA, stream: list[int]) -> None:
    wanted = maximal(complex_events(LazyAutomaton(automaton), stream))
    assert sorted(complex_events(MaxAutomaton(LazyAutomaton(automaton)), stream)) == sorted(wanted)


@given(patterns(max_operators=5), st.lists(st.integers(0, 2**12), max_size=7))
def test_max_finds_the_maximal_complex_events_of_each_start(pattern: Pattern, stream: list[int]) -> None:
    assert_maximal(compile_pattern(pattern).automaton, stream)


@st.composite
def automata(draw: st.DrawFn) -> CEA:
    """Automata that no pattern gives: every state may pass over an event, also before the first mark."""
    states = draw(st.integers(2, 5))
    labels = st.sampled_from([frozenset(), frozenset(), frozenset({"x"}), frozenset({"x", "y"})])
    guards = st.sampled_from([Guard(), Guard(frozenset({0})), Guard(frozenset({1}), frozenset({0}))])
    steps = st.builds(Transition, st.integers(0, states - 2), guards, labels, st.integers(1, states - 1))
    transitions = tuple(dict.fromkeys(draw(st.lists(steps, min_size=2, max_size=9))))
    predicates = (EventPredicate(("A",)), EventPredicate(("B",)))
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
    assert len(complex_events(automaton, [1, 1, 1, 1, 2])) == 4


def test_too_many_states_to_compare_are_an_error() -> None:
    automaton = LazyAutomaton(compile_pattern(parse_pattern("A ; B ; C")).automaton)
    limited = MaxAutomaton(automaton, state_cap=2)
    [(_, state)] = limited.row(0, limited.class_of(1)).edges
    with pytest.raises(LimitExceeded) as caught:
        limited.row(state, limited.class_of(2))
    assert str(caught.value) == (
        "MAX needs more than 2 states to compare complex events with the same start; what grows is A: "
        "bound the iterations of the pattern or make its predicates exclude one another"
    )


def test_hidden_labels_are_not_compared() -> None:
    step = Transition(0, Guard(), frozenset(), 1, frozenset({Hidden(0)}))
    with pytest.raises(ValueError, match="hidden labels are marks that MAX does not compare"):
        MaxAutomaton(LazyAutomaton(CEA(2, frozenset({0}), frozenset({1}), (step,), ())))
