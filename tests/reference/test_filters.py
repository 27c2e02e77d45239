"""Filters over complex events: universal and three-valued, aggregates, set predicates, scopes of FO-CEL."""

from __future__ import annotations

import math

import pytest

from estero.errors import QueryError
from estero.language.tree.expressions import (
    Aggregate,
    AggregateFunction,
    And,
    Arithmetic,
    Attribute,
    Comparison,
    Literal,
    Node,
    Not,
    Or,
    SetPredicate,
    VariableReference,
)
from estero.language.tree.literals import Value
from estero.language.tree.pattern import (
    All,
    As,
    Disjunction,
    Filter,
    Iteration,
    Link,
    Optional,
    Pattern,
    Sequence,
    Unless,
)
from estero.reference.queries import Event, evaluate_pattern
from reference.notation import A, B, C, each, found, holds, seq, shown, stream

PLUS = Iteration(A)


def of(variable: str, attribute: str = "n") -> Attribute:
    return Attribute(attribute, variable)


def supports(condition: Node, values: list[Value], pattern: Pattern = PLUS) -> list[list[int]]:
    """What ``A+ FILTER condition`` marks over events of type A with these values of n."""
    events = stream("A " * len(values), n=values)
    return sorted(sorted(one.support) for one in evaluate_pattern(Filter(pattern, condition), events))


def test_a_filter_holds_for_every_event_of_its_variable() -> None:
    assert supports(each("A", "n", ">", 1), [2, 1, 3]) == [[0], [0, 2], [2]]


def test_unknown_is_not_kept_and_neither_is_its_negation() -> None:
    assert supports(each("A", "n", ">", 1), [2, None]) == [[0]]
    assert supports(Not(each("A", "n", ">", 1)), [1, None]) == [[0], [0, 1]]
    assert supports(Not(each("A", "n", ">", 1)), [2, None]) == []


def test_the_negation_of_a_filter_requires_one_event_that_fails() -> None:
    assert supports(Not(each("A", "n", ">", 1)), [2, 1]) == [[0, 1], [1]]


def test_or_of_filters_keeps_what_satisfies_either_as_a_whole() -> None:
    low_or_high = Or((each("A", "n", "<", 1), each("A", "n", ">", 1)))
    assert supports(low_or_high, [0, 2, 0]) == [[0], [0, 2], [1], [2]]


def test_and_and_or_of_filters_are_three_valued() -> None:
    small, large = each("A", "n", "<", 1), each("A", "m", ">", 1)
    events = stream("A A", n=[0, None], m=[None, 2])
    assert found(Filter(A, And((small, large))), events) == []
    assert found(Filter(A, Or((small, large))), events) == ["[0, 0] {A: [0]}", "[1, 1] {A: [1]}"]
    assert found(Filter(A, Not(And((small, Not(large))))), events) == ["[1, 1] {A: [1]}"]


def test_a_filter_on_nothing_is_true() -> None:
    pattern = Filter(seq(A, Optional(B)), each("B", "n", ">", 5))
    assert found(pattern, stream("A B", n=[0, 0])) == ["[0, 0] {A: [0]}"]
    assert found(Filter(Disjunction((A, B)), Not(each("B", "n", ">", 5))), stream("A", n=[0])) == []


def test_a_variable_that_names_several_types_covers_them_all() -> None:
    pattern = Filter(As(seq(A, B), "x"), each("x", "n", ">", 1))
    assert found(pattern, stream("A B B", n=[2, 1, 2])) == ["[0, 2] {A: [0], B: [2], x: [0, 2]}"]


def test_a_comparison_of_variables_holds_for_all_pairs() -> None:
    pattern = Filter(seq(Iteration(A), B), Comparison("<", of("A"), of("B")))
    answer = found(pattern, stream("A A B", n=[1, 5, 3]))
    assert answer == ["[0, 2] {A: [0], B: [2]}"]
    in_itself = Comparison("=", of("A"), of("A", "m"))
    assert found(Filter(Iteration(A), in_itself), stream("A A", n=[1, 2], m=[1, 2])) == [
        "[0, 0] {A: [0]}",
        "[0, 1] {A: [0, 1]}",
        "[1, 1] {A: [1]}",
    ]


def test_arithmetic_joins_three_variables() -> None:
    total = Comparison("=", Arithmetic("+", of("A"), of("B")), of("C"))
    assert found(Filter(seq(A, B, C), total), stream("A B B C", n=[1, 2, 3, 3])) == [
        "[0, 3] {A: [0], B: [1], C: [3]}"
    ]


@pytest.mark.parametrize(
    ("function", "attribute", "values", "expected"),
    [
        ("count", None, [1, None, 3], 3),
        ("count", "n", [1, None, 3], 2),
        ("sum", "n", [1, None, 3], 4),
        ("sum", "n", [None], None),
        ("avg", "n", [1, 2, None], 1.5),
        ("stddev", "n", [1, 3], math.sqrt(2)),
        ("stddev", "n", [1], None),
        ("min", "n", [2, 1, math.nan], 1),
        ("max", "n", [2, 1, math.nan], math.nan),
        ("first", "n", [2, 1, 3], 2),
        ("last", "n", [2, 1, 3], 3),
        ("median", "n", [3, None, 1, 2], 2.0),
        ("median", "n", [4, 1, 2, 3], 2.5),
        ("median", "n", [math.nan, 1, 2], 2.0),
        ("median", "n", [None], None),
    ],
)
def test_aggregates_are_of_the_set_of_events(
    function: AggregateFunction, attribute: str | None, values: list[Value], expected: Value
) -> None:
    everything = list(range(len(values)))
    equal = Comparison(
        "=", Aggregate(function, "A", None if attribute is None else Attribute(attribute)), Literal(expected)
    )
    assert (everything in supports(equal, values)) is (expected is not None)


def test_an_aggregate_may_be_compared_with_each_event() -> None:
    above = Comparison(">", of("B"), Aggregate("avg", "A", Attribute("n")))
    assert found(Filter(seq(Iteration(A), B), above), stream("A A B", n=[1, 4, 3])) == [
        "[0, 2] {A: [0, 1], B: [2]}",
        "[0, 2] {A: [0], B: [2]}",
    ]


def test_increasing_and_decreasing_are_strict_and_follow_the_stream() -> None:
    assert supports(SetPredicate("increasing", (of("A"),)), [1, 1, 2]) == [[0], [0, 2], [1], [1, 2], [2]]
    assert supports(SetPredicate("decreasing", (of("A"),)), [2, 1, None]) == [[0], [0, 1], [1], [2]]


def test_a_registered_set_predicate_receives_events_and_values() -> None:
    def at_most(events: tuple[Event, ...], values: tuple[Value, ...], limit: int) -> bool:
        return len(events) == len(values) <= limit

    condition = SetPredicate("at_most", (VariableReference("A"), of("A"), Literal(1)))
    answer = evaluate_pattern(
        Filter(PLUS, condition), stream("A A", n=[1, 2]), predicates={"at_most": at_most}
    )
    assert shown(answer) == ["[0, 0] {A: [0]}", "[1, 1] {A: [1]}"]


# ------------------------------------------------------------------- variables bound further outside


def test_a_variable_bound_outside_is_visible_in_each_round() -> None:
    same = Filter(As(B, "y"), Comparison("=", of("y"), of("x")))
    pattern = seq(As(A, "x"), Iteration(same))
    assert found(pattern, stream("A B B B", n=[1, 1, 2, 1])) == [
        "[0, 1] {A: [0], B: [1], x: [0], y: [1]}",
        "[0, 3] {A: [0], B: [1, 3], x: [0], y: [1, 3]}",
        "[0, 3] {A: [0], B: [3], x: [0], y: [3]}",
    ]


def test_an_outer_variable_is_that_of_its_own_round() -> None:
    same = Filter(As(B, "y"), Comparison("=", of("y"), of("x")))
    rounds = Iteration(seq(As(A, "x"), same), minimum=2)
    assert found(rounds, stream("A B A B", n=[1, 1, 2, 2])) == [
        "[0, 3] {A: [0, 2], B: [1, 3], x: [0, 2], y: [1, 3]}"
    ]


def test_what_must_be_absent_may_speak_of_variables_outside() -> None:
    same = Filter(B, Comparison("=", of("B"), of("A")))
    pattern = Sequence((A, C), (Link(absent=(same,)),))
    assert found(pattern, stream("A B C", n=[1, 2, 0])) == ["[0, 2] {A: [0], C: [2]}"]
    assert found(pattern, stream("A B C", n=[1, 1, 0])) == []
    assert found(seq(A, Unless(seq(C, C), same)), stream("A C B C", n=[1, 0, 1, 0])) == []
    assert len(found(seq(A, Unless(seq(C, C), same)), stream("A C B C", n=[1, 0, 2, 0]))) == 1


def test_filters_still_open_meet_in_all() -> None:
    same = Filter(As(B, "y"), Comparison("=", of("y"), of("x")))
    assert found(All((As(A, "x"), same)), stream("B A B", n=[1, 2, 2])) == [
        "[1, 2] {A: [1], B: [2], x: [1], y: [2]}"
    ]


def test_a_variable_that_nothing_binds_is_an_error() -> None:
    with pytest.raises(QueryError, match="nothing binds the variable z"):
        evaluate_pattern(Filter(A, each("z", "n", "=", 1)), stream("A", n=[1]))
    with pytest.raises(QueryError, match="unknown set predicate steady"):
        evaluate_pattern(Filter(A, SetPredicate("steady", (of("A"),))), stream("A", n=[1]))
    with pytest.raises(QueryError, match="n belongs to no variable"):
        evaluate_pattern(Filter(A, holds("n", "=", 1)), stream("A", n=[1]))
