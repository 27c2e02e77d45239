"""How many complex events are to be expected, beside the average of the reference over all streams."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import pytest

from estero.automata.cea import CEA
from estero.automata.expectation import HUGE, MOST_STATES, expected_matches
from estero.language.syntax.parser import parse_query
from estero.language.tree.schema import Kind, Schema
from estero.plan.automaton import with_registers
from estero.plan.draft import Draft
from estero.plan.plan import Layout
from estero.reference.queries import Event, evaluate_query

LAYOUT = Layout(Schema({name: {"n": Kind.INT} for name in "ABC"}))
KINDS = {"A": 2, "B": 2, "C": 1}
"""How many events there are of each type."""


def automaton_of(text: str) -> CEA:
    return with_registers(Draft(parse_query(text), LAYOUT)).automaton


def classes_of(automaton: CEA, kinds: dict[str, int]) -> Counter[int]:
    """How many events have which bits, where conditions are all true."""
    classes: Counter[int] = Counter()
    for kind, number in kinds.items():
        bits = sum(1 << k for k, each in enumerate(automaton.predicates) if kind in each.types)
        classes[bits] += number
    return classes


def average(text: str, length: int) -> float:
    """How many complex events the reference finds in a random stream with these shares of types."""
    tree, total = parse_query(text), 0.0
    for types in product(KINDS, repeat=length):
        answers = evaluate_query(tree, [Event(each, {"n": 1}) for each in types])
        found = sum(map(len, answers.values()))
        total += found * math.prod(KINDS[each] / sum(KINDS.values()) for each in types)
    return total


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE A",
        "SELECT * WHERE A ; B",
        "SELECT * WHERE A ; A ; B",
        "SELECT * WHERE A+",
        "SELECT * WHERE (A ; B)+",
        "SELECT * WHERE (A OR B)+ ; B",
        "SELECT * WHERE A OR (A ; B?)",
        "SELECT * WHERE A : B",
        "SELECT * WHERE START(A ; B)",
        "SELECT * WHERE A AND (A OR B)",
        "SELECT * WHERE A ALL B",
        "SELECT * WHERE (A OR B OR C) ; C",
        "SELECT * WHERE A AS x ; B AS x FILTER x[n > 0]",
    ],
)
def test_it_is_the_average_over_all_streams(text: str) -> None:
    automaton = automaton_of(text)
    assert expected_matches(automaton, classes_of(automaton, KINDS)) == pytest.approx(average(text, 5))


def test_it_is_right_for_streams_of_any_length() -> None:
    automaton = automaton_of("SELECT * WHERE A ; A ; B")
    classes = classes_of(automaton, {"A": 10**9, "B": 10**9})
    assert expected_matches(automaton, classes) == pytest.approx((2e9) ** 3 / 6 / 8)
    assert expected_matches(automaton_of("SELECT * WHERE A+"), Counter({1: 10**9})) == HUGE
    assert expected_matches(automaton, Counter()) == 0


def test_what_a_type_without_events_ends_is_not_expected() -> None:
    automaton = automaton_of("SELECT * WHERE A ; A ; C")
    assert expected_matches(automaton, classes_of(automaton, {"A": 10**6})) == 0


def test_with_a_window_each_stretch_counts_alone() -> None:
    automaton = automaton_of("SELECT * WHERE A ; B")
    classes = classes_of(automaton, {"A": 500, "B": 500})
    pairs = expected_matches(automaton, classes_of(automaton, {"A": 5, "B": 5}))
    assert expected_matches(automaton, classes, window=9) == pytest.approx(100 * pairs)
    assert expected_matches(automaton, classes, window=5000) == expected_matches(automaton, classes)


def test_nothing_is_expected_of_an_automaton_that_is_too_large() -> None:
    long = automaton_of("SELECT * WHERE " + " ; ".join(["A"] * (MOST_STATES + 5)))
    assert expected_matches(long, Counter({1: 10**6})) == 0
