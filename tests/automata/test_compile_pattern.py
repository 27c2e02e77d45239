"""From patterns to automata: what comes out for each operator, small enough to draw by hand."""

from __future__ import annotations

import pytest

from estero.automata.cea import CEA, EventPredicate, Guard, Transition
from estero.automata.compile.compile_pattern import compile_pattern
from estero.automata.determinize import DEAD, LazyAutomaton
from estero.automata.marking import has_contiguity
from estero.language.syntax.parser import parse_pattern
from estero.language.tree.marks import Marks, marks_of


def compiled(text: str) -> CEA:
    return compile_pattern(parse_pattern(text)).automaton


def words(automaton: CEA, length: int) -> set[str]:
    """The type sequences that the automaton accepts contiguously, `-` standing for an event passed over."""
    found: set[str] = set()
    runs = [(state, "") for state in automaton.initial]
    for _ in range(length):
        runs = [
            (each.target, word + ("".join(sorted(each.labels)) or "-"))
            for state, word in runs
            for each in automaton.transitions
            if each.source == state
        ]
        found.update(word for state, word in runs if state in automaton.final)
    return found


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("A", {"A"}),
        ("A ; B", {"AB", "A-B"}),
        ("A : B", {"AB"}),
        ("A OR B", {"A", "B"}),
        ("A+", {"A", "AA", "AAA", "A-A"}),
        ("A:+", {"A", "AA", "AAA"}),
        ("A:{2,3}", {"AA", "AAA"}),
        ("A{2}", {"AA", "A-A"}),
        ("A:{2,}", {"AA", "AAA"}),
        ("A : B? : C", {"AC", "ABC"}),
        ("A? : B", {"B", "AB"}),
        ("A : (B? : C)", {"AC", "ABC"}),
        ("(A : B):+", {"AB"}),
    ],
)
def test_an_operator_accepts_these_words(text: str, accepted: set[str]) -> None:
    assert words(compiled(text), 3) == accepted


def test_a_filter_narrows_the_events_of_its_variable_only() -> None:
    automaton = compiled("A AS x ; B FILTER x[n > 3]")
    assert [str(predicate) for predicate in automaton.predicates] == ["A[n > 3]", "B"]


def test_filters_on_one_event_join_into_one_predicate() -> None:
    automaton = compiled("A AS x FILTER x[n > 3] OR NOT (x[n < 0] AND x[s = 'a'])")
    assert automaton.states == 2
    assert len(automaton.predicates) == 1


def test_a_negated_filter_on_many_events_asks_for_one_that_refutes_it() -> None:
    automaton = compiled("A+ AS x FILTER NOT x[n > 3]")
    assert {str(predicate) for predicate in automaton.predicates} == {"A", "A[NOT n > 3]"}


def test_as_marks_what_is_marked() -> None:
    automaton = compiled("(A ; B) AS x")
    assert {each.labels for each in automaton.transitions} == {
        frozenset({"A", "x"}),
        frozenset({"B", "x"}),
        frozenset(),
    }


def test_states_grow_with_the_length_of_a_sequence() -> None:
    assert compiled(" ; ".join("ABCDEFGHIJKL" * 2)).states == 25


@pytest.mark.parametrize(
    ("text", "variable", "expected"),
    [
        ("A AS x ; B", "x", Marks(1, 1)),
        ("A+ AS x", "x", Marks(1, 2)),
        ("A AS x OR B", "x", Marks(0, 1)),
        ("(A ; B) AS x", "x", Marks(2, 2)),
        ("A ; (B AS x)?", "x", Marks(0, 1)),
        ("A{1,1} AS x", "x", Marks(1, 1)),
        ("A ; B", "x", Marks(0, 0)),
    ],
)
def test_how_many_events_a_variable_marks(text: str, variable: str, expected: Marks) -> None:
    assert marks_of(parse_pattern(text), variable) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("A ; B+", False), ("A : B", True), ("A:+", True), ("A", False)]
)
def test_contiguity_is_noticed(text: str, expected: bool) -> None:
    assert has_contiguity(compiled(text)) is expected


def test_determinisation_reads_and_marks_in_one_way_only() -> None:
    automaton = LazyAutomaton(compiled("A ; (B OR B) ; C OR A ; B"))
    a, b = (1 << bit for bit in range(2))
    after_a = automaton.row(0, automaton.class_of(a))
    assert after_a.skip == DEAD
    [(marks, waiting)] = after_a.edges
    assert automaton.label_sets[marks] == {"A"}
    row = automaton.row(waiting, automaton.class_of(b))
    assert row.skip == waiting
    [(_, reached)] = row.edges
    assert automaton.accepts(reached)
    assert automaton.continues(reached)


def test_an_automaton_names_what_is_wrong_with_it() -> None:
    a = EventPredicate(("A",))
    step = Transition(0, Guard(frozenset({0})), frozenset({"A"}), 2)
    with pytest.raises(ValueError, match=r"^state 2 is named, but the states are 0 to 1$"):
        CEA(2, frozenset({0}), frozenset({1}), (step,), (a,))
    with pytest.raises(ValueError, match=r"^bit 0 has no predicate: Transition"):
        CEA(3, frozenset({0}), frozenset({2}), (step,), ())
    with pytest.raises(ValueError, match=r"^final state 0 has a transition: Transition"):
        CEA(3, frozenset({0}), frozenset({0}), (step,), (a,))
