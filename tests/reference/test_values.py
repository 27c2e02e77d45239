"""The value rules of docs/semantics.md, line by line, on the reference."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given

from estero.errors import DataError, QueryError
from estero.language.tree.expressions import (
    And,
    Arithmetic,
    ArithmeticOperator,
    Attribute,
    Between,
    Call,
    Comparison,
    ComparisonOperator,
    In,
    IsNull,
    Like,
    Literal,
    Matches,
    Negative,
    Node,
    Not,
    Or,
    Range,
)
from estero.language.tree.literals import Value
from estero.reference.queries import Event, evaluate_expression, evaluate_predicate
from reference.notation import holds
from strategies.patterns import predicates, streams

NAN, INF = math.nan, math.inf
LEAST, GREATEST = -(2**63), 2**63 - 1
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def value_of(node: Node, **attributes: Value) -> Value:
    return evaluate_expression(node, Event("A", attributes))


def truth_of(node: Node, **attributes: Value) -> bool | None:
    return evaluate_predicate(node, Event("A", attributes))


def truth(value: bool | None) -> Node:
    return Literal(value)


@pytest.mark.parametrize(
    ("left", "operator", "right", "expected"),
    [
        (1, "=", 1.0, True),
        (2**53 + 1, "=", float(2**53), False),
        (2**53 + 1, ">", float(2**53), True),
        (GREATEST, "<", float(2**63), True),
        (0.0, "=", -0.0, True),
        (NAN, "=", NAN, True),
        (NAN, "!=", NAN, False),
        (NAN, ">", INF, True),
        (NAN, ">=", NAN, True),
        (5, "<", NAN, True),
        (NAN, "<", 5, False),
        ("a", "=", "A", False),
        ("Z", "<", "a", True),
        ("\uffff", "<", "\U00010000", True),
        ("é", ">", "z", True),
        ("", "<", "a", True),
        (False, "<", True, True),
        (NOON, "=", NOON.replace(tzinfo=None), True),
        (NOON, "=", NOON.astimezone(timezone(timedelta(hours=-3))), True),
        (NOON, "<", NOON + timedelta(microseconds=1), True),
        (None, "=", None, None),
        (None, "!=", 1, None),
        (1, "<", None, None),
    ],
)
def test_comparisons(left: Value, operator: ComparisonOperator, right: Value, expected: bool | None) -> None:
    assert truth_of(Comparison(operator, Attribute("a"), Attribute("b")), a=left, b=right) is expected
    mirrored: ComparisonOperator = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(operator, operator)  # type: ignore[assignment]
    assert truth_of(Comparison(mirrored, Attribute("b"), Attribute("a")), a=left, b=right) is expected


@pytest.mark.parametrize(("left", "right"), [(1, "1"), (True, 1), (NOON, 0), ("a", NOON), (False, "")])
def test_values_of_different_kinds_do_not_compare(left: Value, right: Value) -> None:
    with pytest.raises(DataError, match="cannot compare"):
        truth_of(Comparison("=", Literal(left), Literal(right)))


@pytest.mark.parametrize(
    ("left", "operator", "right", "expected"),
    [
        (7, "%", 3, 1),
        (-7, "%", 3, -1),
        (7, "%", -3, 1),
        (LEAST, "%", -1, 0),
        (7, "%", 0, None),
        (-7.5, "%", 2, -1.5),
        (7.5, "%", INF, 7.5),
        (INF, "%", 2.0, NAN),
        (1, "/", 2, 0.5),
        (4, "/", 2, 2.0),
        (2**53 + 1, "/", 1, float(2**53)),
        (1, "/", 0, None),
        (1.0, "/", -0.0, None),
        (0, "/", 0, None),
        (NAN, "/", 0, None),
        (INF, "/", INF, NAN),
        (1e300, "*", 1e300, INF),
        (1, "+", 0.5, 1.5),
        (GREATEST, "+", 0, GREATEST),
        (LEAST, "+", GREATEST, -1),
        (None, "+", 1, None),
        (1, "/", None, None),
        (None, "/", 0, None),
    ],
)
def test_arithmetic(left: Value, operator: ArithmeticOperator, right: Value, expected: Value) -> None:
    result = value_of(Arithmetic(operator, Attribute("a"), Attribute("b")), a=left, b=right)
    assert type(result) is type(expected)
    assert result == expected or (result != result and expected != expected)  # noqa: PLR0124  (NaN)


@pytest.mark.parametrize(
    "node",
    [
        Arithmetic("+", Literal(GREATEST), Literal(1)),
        Arithmetic("-", Literal(LEAST), Literal(1)),
        Arithmetic("*", Literal(2**32), Literal(2**31)),
        Negative(Literal(LEAST)),
        Call("abs", (Literal(LEAST),)),
    ],
)
def test_overflow_is_an_error(node: Node) -> None:
    with pytest.raises(DataError, match="not a 64-bit integer"):
        value_of(node)


def test_an_overflow_is_an_error_even_where_the_rest_decides() -> None:
    overflows = Comparison(">", Arithmetic("+", Literal(GREATEST), Literal(1)), Literal(0))
    with pytest.raises(DataError):
        truth_of(And((truth(False), overflows)))


def test_only_numbers_are_computed_with() -> None:
    for node in (
        Arithmetic("+", Literal("a"), Literal("b")),
        Negative(Literal(True)),
        Call("abs", (Literal("a"),)),
    ):
        with pytest.raises(DataError, match="is not a number"):
            value_of(node)
    with pytest.raises(DataError, match="is not a truth value"):
        truth_of(Attribute("a"), a=1)


T, F, U = True, False, None


@pytest.mark.parametrize(
    ("a", "b", "both", "either"),
    [
        (T, T, T, T),
        (T, F, F, T),
        (F, F, F, F),
        (T, U, U, T),
        (F, U, F, U),
        (U, U, U, U),
    ],
)
def test_three_valued_logic(a: bool | None, b: bool | None, both: bool | None, either: bool | None) -> None:
    for left, right in ((a, b), (b, a)):
        assert truth_of(And((truth(left), truth(right)))) is both
        assert truth_of(Or((truth(left), truth(right)))) is either
    assert truth_of(Not(truth(a))) is (None if a is None else not a)


def test_a_missing_attribute_is_null() -> None:
    assert truth_of(holds("a", "=", 1)) is None
    assert truth_of(IsNull(Attribute("a"))) is True
    assert truth_of(IsNull(Arithmetic("+", Attribute("a"), Literal(1))), a=1) is False
    assert truth_of(Not(IsNull(Attribute("a"))), a=None) is False


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, True), (2, None), (5, True), (9.0, True), (9.5, None), (None, None), (NAN, None)],
)
def test_membership_is_a_disjunction_of_equalities_and_ranges(value: Value, expected: bool | None) -> None:
    members = (Literal(1), Range(Literal(5), Literal(9)), Literal(None))
    assert truth_of(In(Attribute("a"), members), a=value) is expected
    without_null = members[:2]
    assert truth_of(In(Attribute("a"), without_null), a=value) is (
        expected or (None if value is None else False)
    )


def test_between_holds_its_ends_and_is_three_valued() -> None:
    def between(value: Value, low: Value, high: Value) -> bool | None:
        return truth_of(Between(Attribute("a"), Literal(low), Literal(high)), a=value)

    assert [between(value, 1, 3) for value in (0, 1, 3, 4, None)] == [False, True, True, False, None]
    assert between(5, None, 3) is False
    assert between(2, None, 3) is None
    assert between(2, 3, 1) is False


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("abc", "abc", True),
        ("abc", "ABC", False),
        ("abc", "a%", True),
        ("abc", "%c", True),
        ("abc", "b", False),
        ("abc", "a_c", True),
        ("ac", "a_c", False),
        ("é", "_", True),
        ("\U0001f600", "_", True),
        ("a\nb", "a%b", True),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
        ("100%", "100\\%", True),
        ("100x", "100\\%", False),
        ("a_b", "a\\_b", True),
        ("a\\b", "a\\\\b", True),
        ("", "%", True),
        ("", "", True),
        (None, "%", None),
    ],
)
def test_like(text: str | None, pattern: str, expected: bool | None) -> None:
    assert truth_of(Like(Attribute("a"), pattern), a=text) is expected


def test_like_refuses_what_it_cannot_mean() -> None:
    with pytest.raises(QueryError, match="ends in its escape"):
        truth_of(Like(Attribute("a"), "a\\"), a="a")
    with pytest.raises(DataError, match="is not a string"):
        truth_of(Like(Attribute("a"), "1"), a=1)


@pytest.mark.parametrize(
    ("text", "regex", "expected"),
    [
        ("abc", "b", True),
        ("abc", "^b", False),
        ("abc", "c$", True),
        ("abc", "B", False),
        ("a1", "[0-9]", True),
        ("", "a*", True),
        (None, "a", None),
    ],
)
def test_a_regular_expression_is_searched_for(text: str | None, regex: str, expected: bool | None) -> None:
    assert truth_of(Matches(Attribute("a"), regex), a=text) is expected


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("abs", (-3,), 3),
        ("abs", (-0.5,), 0.5),
        ("floor", (-1.5,), -2.0),
        ("ceil", (-1.5,), -1.0),
        ("floor", (7,), 7),
        ("ceil", (INF,), INF),
        ("length", ("é\U0001f600",), 2),
        ("year", (NOON,), 2024),
        ("month", (datetime(2024, 12, 31, 23, tzinfo=timezone(timedelta(hours=-3))),), 1),
        ("day", (NOON,), 1),
        ("hour", (NOON,), 12),
        ("minute", (NOON,), 0),
        ("second", (NOON + timedelta(seconds=59.9),), 59),
        ("coalesce", (None, 2, 3), 2),
        ("coalesce", (None, 2, 0.5), 2.0),
        ("coalesce", (None, None), None),
        ("abs", (None,), None),
        ("length", (None,), None),
    ],
)
def test_functions(name: str, arguments: tuple[Value, ...], expected: Value) -> None:
    result = value_of(Call(name, tuple(Literal(argument) for argument in arguments)))
    assert (type(result), result) == (type(expected), expected)


def test_a_function_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(QueryError, match="unknown function sinus"):
        value_of(Call("sinus", (Literal(1),)))


@given(predicates(), predicates(), streams(min_size=1, max_size=3))
def test_predicates_obey_de_morgan_and_double_negation(p: Node, q: Node, events: list[Event]) -> None:
    for event in events:
        assert evaluate_predicate(Not(And((p, q))), event) is evaluate_predicate(Or((Not(p), Not(q))), event)
        assert evaluate_predicate(Not(Not(p)), event) is evaluate_predicate(p, event)


@given(predicates(), streams(min_size=1, max_size=3))
def test_predicates_do_not_look_at_other_attributes(p: Node, events: list[Event]) -> None:
    names = {node.name for node in p.walk() if isinstance(node, Attribute)}
    for event in events:
        needed = {name: value for name, value in event.attributes.items() if name in names}
        assert evaluate_predicate(p, Event("B", needed)) is evaluate_predicate(p, event)
