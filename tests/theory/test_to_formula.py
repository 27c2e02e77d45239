"""Automata and patterns say the same, both ways (SO-CEL, Theorem 6.2): texts, and laws against the oracle."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from automata.runs import found_by
from estero.automata.cea import ALWAYS, CEA, FIRST, EventPredicate, Guard, Transition
from estero.automata.compile.compile_pattern import compile_pattern
from estero.errors import LimitExceeded
from estero.language.check.queries import check_query
from estero.language.syntax.parser import parse_pattern
from estero.language.tree.expressions import Attribute, Comparison, Literal, Node
from estero.language.tree.pattern import Pattern
from estero.language.tree.query import QueryTree
from estero.reference.queries import Event, evaluate_pattern
from estero.theory.to_formula import automaton_to_formula
from strategies.full import full_patterns, is_valid
from strategies.patterns import SCHEMA, TYPES, patterns, streams

A, B, C = (EventPredicate((name,)) for name in "ABC")


def above(number: int) -> Node:
    return Comparison(">", Attribute("n"), Literal(number))


def on(*bits: int) -> Guard:
    return Guard(frozenset(bits))


def but(*bits: int) -> Guard:
    return Guard(absent=frozenset(bits))


# --------------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize(
    "text",
    [
        "A",
        "A ; B : C",
        "A+ ; B",
        "(A ; B)+",
        "(A ; B) :+",
        "(A : B) :+ ; C",
        "(A OR B)+ ; C",
        "A ; (B OR C) ; A",
        "A ; B? ; C",
        "A? ; B",
        "(A+ ; B+)+",
        "A AS x ; B+ FILTER x[n > 3] AND B[s = 'a']",
        "A AS x ; (A FILTER A[n > 3])",
        "A ; NOT(B FILTER B[n > 3]) ; C",
        "A ; B ; C KEEP [A, C]",
        "START(A) ; B",
        "A UNLESS START(A)",
        "S>A ; T>A",
    ],
)
def test_what_a_person_would_write_comes_back_as_it_was(text: str) -> None:
    automaton = compile_pattern(parse_pattern(text)).automaton
    assert str(automaton_to_formula(automaton, TYPES)) == text


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("A{2,3}", "A ; A ; A?"),
        ("A{3,}", "A ; A ; A+"),
        ("A [A -> x] ; B", "A AS x ; B KEEP [x, B]"),
        ("A [A -> x] ; A", "A [A -> x] ; A"),
        ("(A ; B ; A [A -> x]) KEEP [A, x]", "A ; B ; A [A -> x] KEEP [A, x]"),
        ("(A ; B) AS x FILTER x[n > 3]", "A AS x ; B AS x FILTER x[n > 3]"),
        ("STRICT(A ; B+)", "A : B :+"),
        ("(A ; B) UNLESS C", "A ; NOT(C) ; B"),
        ("(A ; B) AND (A ; B+)", "A ; B"),
        ("A ALL B", "B ; A OR A ; B"),
        ("A : NOT(B) : C", "A : (A [A -> _] OR C [C -> _]) : C KEEP [A, C]"),
        (
            "A : NOT(B FILTER B[n > 3]) : C",
            "A : (A [A -> _] OR (B FILTER B[NOT coalesce(n > 3, FALSE)]) OR C [C -> _]) : C KEEP [A, C]",
        ),
    ],
)
def test_the_formula_of_a_pattern(text: str, formula: str) -> None:
    automaton = compile_pattern(parse_pattern(text)).automaton
    assert str(automaton_to_formula(automaton, TYPES)) == formula


def test_labels_that_a_transition_does_not_give_are_dropped() -> None:
    steps = (
        Transition(0, on(0), frozenset({"x"}), 1),
        Transition(1, ALWAYS, frozenset(), 1),
        Transition(1, on(1), frozenset(), 2),
    )
    automaton = CEA(3, frozenset({0}), frozenset({2}), steps, (A, B))
    assert str(automaton_to_formula(automaton)) == "A AS x ; B KEEP [x]"


def test_reading_any_event_names_all_types() -> None:
    steps = (Transition(0, ALWAYS, frozenset({"x"}), 1),)
    automaton = CEA(2, frozenset({0}), frozenset({1}), steps, ())
    assert str(automaton_to_formula(automaton, TYPES)) == "(A OR B OR C) AS x KEEP [x]"
    with pytest.raises(
        ValueError,
        match=r"^a transition reads events of any type, and a pattern names the types it reads: "
        r"say with types=\[…\] which there are$",
    ):
        automaton_to_formula(automaton)


def test_an_automaton_that_says_nothing_has_no_formula() -> None:
    unmarked = CEA(2, frozenset({0}), frozenset({1}), (Transition(0, on(0), frozenset(), 1),), (A,))
    with pytest.raises(ValueError, match=r"^no transition marks an event, and a pattern always marks some$"):
        automaton_to_formula(unmarked)
    never = CEA(3, frozenset({0}), frozenset({1}), (Transition(0, on(0), frozenset({"A"}), 2),), (A,))
    with pytest.raises(
        ValueError, match=r"^no run of the automaton can accept, and every pattern finds something$"
    ):
        automaton_to_formula(never)


def test_a_formula_that_gets_too_long_is_given_up() -> None:
    states = 14
    steps = [
        Transition(i, on(0), frozenset({f"x{i}", f"y{j}"}), j)
        for i in range(states)
        for j in range(1, states + 1)
        if i != j
    ]
    automaton = CEA(states + 1, frozenset({0}), frozenset({states}), tuple(steps), (A,))
    with pytest.raises(
        LimitExceeded,
        match=r"^the pattern of this automaton has (more than 5,000 operators and atoms|too many)",
    ):
        automaton_to_formula(automaton)


# ---------------------------------------------------------------------------------------------- laws


@st.composite
def automata(draw: st.DrawFn) -> CEA:
    """Small automata with everything that is allowed: several ends, ways back to the beginning, dead ends."""
    states = draw(st.integers(2, 4))
    final = frozenset(draw(st.sets(st.integers(1, states - 1), min_size=1, max_size=2)))
    sources = [state for state in range(states) if state not in final]
    predicates = (A, B, EventPredicate(("A", "C"), above(0)), EventPredicate(("B",), above(1)), FIRST)
    bits = st.frozensets(st.sampled_from([0, 1, 2, 3, 0, 1, 2, 3, 4]), max_size=1)
    transition = st.builds(
        Transition,
        st.sampled_from(sources),
        st.one_of(st.just(ALWAYS), st.builds(Guard, bits, bits)),
        st.sampled_from(
            [frozenset(), frozenset(), frozenset({"A"}), frozenset({"x"}), frozenset({"x", "B"})]
        ),
        st.integers(0, states - 1),
    )
    transitions = draw(st.lists(transition, min_size=2, max_size=6))
    waits = st.sampled_from([None, ALWAYS, ALWAYS, but(0), but(2), but(1, 3)])
    waiting = [
        Transition(state, guard, frozenset(), state)
        for state in sources
        if (guard := draw(waits)) is not None
    ]
    initial = draw(st.sampled_from([frozenset({0}), frozenset({0}), frozenset(sources[:2])]))
    return CEA(states, initial, final, (*transitions, *waiting), predicates)


@given(automata(), streams(max_size=6))
def test_a_formula_finds_what_its_automaton_finds(automaton: CEA, events: list[Event]) -> None:
    try:
        formula = automaton_to_formula(automaton, TYPES)
    except ValueError:
        assume(False)
    assert evaluate_pattern(formula, events) == found_by(automaton, events)


@given(automata())
def test_a_formula_is_valid_and_reads_back(automaton: CEA) -> None:
    try:
        formula = automaton_to_formula(automaton, TYPES)
    except ValueError:
        assume(False)
    assert parse_pattern(str(formula)) == formula
    assert [str(error) for error in check_query(QueryTree(formula), SCHEMA)] == []


@given(automata(), streams(max_size=6))
def test_the_automaton_of_a_formula_finds_the_same(automaton: CEA, events: list[Event]) -> None:
    try:
        formula = automaton_to_formula(automaton, TYPES)
    except ValueError:
        assume(False)
    compiled = compile_pattern(formula)
    assert compiled.residuals == ()
    assert found_by(compiled.automaton, events) == found_by(automaton, events)


@given(st.one_of(full_patterns(max_operators=4), patterns(max_operators=4)), streams(max_size=6))
def test_from_pattern_to_automaton_and_back(pattern: Pattern, events: list[Event]) -> None:
    assume(is_valid(pattern))
    compiled = compile_pattern(pattern)
    try:
        formula = automaton_to_formula(compiled.automaton, TYPES)
    except (ValueError, LimitExceeded):
        assume(False)
    found = evaluate_pattern(formula, events)
    assert found == found_by(compiled.automaton, events)
    if not compiled.residuals:
        assert found == evaluate_pattern(pattern, events)
