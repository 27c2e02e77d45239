"""What conjunctive queries mean, case by case."""

from __future__ import annotations

import math

from estero.language.syntax.parser import parse_conjunctive
from estero.reference.conjunctive import evaluate_conjunctive
from estero.reference.queries import Event
from reference.notation import stream


def answers(text: str, events: list[Event], *, tick: int = 1) -> set[str]:
    found = evaluate_conjunctive(parse_conjunctive(text), events, tick=tick)
    return {str(each) for at_end in found.values() for each in at_end}


def test_an_answer_is_found_at_its_last_event_whatever_the_order() -> None:
    found = evaluate_conjunctive(parse_conjunctive("Q(x) <- T(x), S(x)"), stream("S T S", k=[1, 1, 1]))
    assert {end: {str(each) for each in at_end} for end, at_end in found.items()} == {
        1: {"[0, 1] {S: [0], T: [1]}"},
        2: {"[1, 2] {S: [2], T: [1]}"},
    }


def test_equal_events_are_different_answers() -> None:
    assert answers("Q(x) <- T(x)", stream("T T", k=[1, 1])) == {"[0, 0] {T: [0]}", "[1, 1] {T: [1]}"}


def test_one_event_may_serve_several_atoms() -> None:
    assert answers("Q(x) <- T(x), T(x)", stream("T T", k=[1, 2])) == {
        "[0, 0] {0: [0], 1: [0]}",
        "[1, 1] {0: [1], 1: [1]}",
    }


def test_constants_and_repeated_variables_require_equal_values() -> None:
    events = stream("T T T", a=[1, 1, 2], b=[1, 2, 2])
    assert answers("Q(x) <- T(x, x)", events) == {"[0, 0] {T: [0]}", "[2, 2] {T: [2]}"}
    assert answers("Q(x) <- T(x, 2)", events) == {"[1, 1] {T: [1]}", "[2, 2] {T: [2]}"}
    assert answers("Q() <- T(b: 1)", events) == {"[0, 0] {T: [0]}"}


def test_null_equals_nothing_but_a_value_that_is_not_compared_may_be_missing() -> None:
    events = stream("T S", a=[None, None])
    assert answers("Q(x) <- T(x), S(x)", events) == set()
    assert answers("Q(x) <- T(x), T(x)", events) == set()
    assert answers("Q(x, y) <- T(x), S(y)", events) == {"[0, 1] {S: [1], T: [0]}"}


def test_numbers_are_equal_as_numbers() -> None:
    events = stream("T S T S", a=[1, 1.0, math.nan, math.nan])
    assert answers("Q(x) <- T(x), S(x)", events) == {"[0, 1] {S: [1], T: [0]}", "[2, 3] {S: [3], T: [2]}"}


def test_the_smallest_position_is_inside_the_window() -> None:
    events = stream("T X S S", k=[1, 0, 1, 1])
    assert answers("Q(x) <- T(x), S(x) WITHIN 2 EVENTS", events) == {"[0, 2] {S: [2], T: [0]}"}


def test_a_window_in_time() -> None:
    events = stream("T S S", k=[1, 1, 1], time=[0, 5, 6])
    text = "Q(x) <- T(k: x), S(k: x) WITHIN"
    assert answers(f"{text} 5 [time]", events) == {"[0, 1] {S: [1], T: [0]}"}
    assert answers(f"{text} 10 SECONDS", events, tick=2 * 10**9) == {"[0, 1] {S: [1], T: [0]}"}


def test_parts_that_share_nothing_are_all_combined() -> None:
    assert len(answers("Q() <- T(), T(), S()", stream("T T S", k=[1, 2, 3]))) == 4


def test_limit_is_for_each_end() -> None:
    events = stream("T T S S", k=[1, 1, 1, 1])
    found = evaluate_conjunctive(parse_conjunctive("Q(x) <- T(x), S(x) LIMIT 1"), events)
    assert {end: len(at_end) for end, at_end in found.items()} == {2: 1, 3: 1}
