"""Expressions mean as docs/semantics.md says on DuckDB, Spark, in Python and the reference."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classify.everywhere import (
    COLUMNS,
    FLOATS,
    INTEGERS,
    MAX,
    MIN,
    SMALL,
    STRINGS,
    TIMES,
    B,
    C,
    Evaluate,
    F,
    G,
    I,
    J,
    R,
    S,
    T,
    U,
    assert_same,
    comparisons,
    on_duckdb,
    on_reference,
    on_rows,
    on_spark,
)
from estero.errors import DataError
from estero.language.tree.expressions import (
    And,
    Arithmetic,
    ArithmeticOperator,
    Attribute,
    Between,
    Call,
    Comparison,
    Element,
    Ilike,
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
    SomeElement,
)
from estero.reference.queries import Event
from strategies.patterns import TABLE, predicates, streams, to_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# ---------------------------------------------------------------------------------- one law, one test


def test_integers_and_floats_compare_as_exact_numbers(evaluate: Evaluate) -> None:
    assert_same(evaluate, [*comparisons(I, F), *comparisons(F, I)])


@pytest.mark.parametrize("number", [number for number in FLOATS if number is not None])
def test_integers_compare_exactly_with_float_literals(number: float) -> None:
    for evaluate in (on_duckdb, on_rows):
        assert_same(evaluate, [*comparisons(I, Literal(number)), *comparisons(Literal(number), I)])


def test_literals_of_either_kind_compare_exactly(evaluate: Evaluate) -> None:
    floats = [node for number in FLOATS for node in comparisons(I, Literal(number))]
    integers = [node for number in INTEGERS for node in comparisons(F, Literal(number))]
    assert_same(evaluate, floats + integers)


def test_nan_equals_itself_and_is_the_largest(evaluate: Evaluate) -> None:
    assert_same(evaluate, comparisons(F, G))


def test_division_is_of_floats_and_by_zero_unknown(evaluate: Evaluate) -> None:
    nodes = [Arithmetic("/", left, right) for left, right in [(I, J), (I, F), (F, I), (F, G)]]
    assert_same(evaluate, [*nodes, Arithmetic("/", I, Literal(0)), Arithmetic("/", Literal(1), J)])


def test_remainder_has_the_sign_of_the_dividend_and_by_zero_is_unknown(evaluate: Evaluate) -> None:
    nodes = [Arithmetic("%", left, right) for left, right in [(I, J), (I, F), (F, I), (F, G)]]
    assert_same(evaluate, [*nodes, Arithmetic("%", I, Literal(0)), Arithmetic("%", I, Literal(-1))])


def test_arithmetic_on_floats_follows_ieee(evaluate: Evaluate) -> None:
    operators: tuple[ArithmeticOperator, ...] = ("+", "-", "*")
    nodes = [Arithmetic(operator, *sides) for operator in operators for sides in [(F, G), (I, F), (F, I)]]
    assert_same(
        evaluate, [*nodes, Negative(F), Arithmetic("+", F, Literal(1)), Arithmetic("*", I, Literal(0.5))]
    )


def test_arithmetic_on_integers_has_64_bits(evaluate: Evaluate) -> None:
    big = Literal(2**40)
    nodes: list[Node] = [
        Arithmetic("+", I, J),
        Arithmetic("-", I, J),
        Arithmetic("*", I, J),
        Arithmetic("*", Arithmetic("+", I, Literal(2)), big),
        Arithmetic("*", Literal(2**31), Literal(2**31)),
        Arithmetic("+", Literal(2**31 - 1), Literal(1)),
        Arithmetic("-", Arithmetic("-", I, J), Arithmetic("%", I, J)),
        Negative(I),
        Negative(Arithmetic("+", I, big)),
        Literal(MIN),
        Call("abs", (I,)),
    ]
    assert_same(evaluate, nodes, SMALL)


@pytest.mark.parametrize(
    "node",
    [
        Arithmetic("+", I, Literal(1)),
        Arithmetic("+", Literal(1), I),
        Arithmetic("-", Literal(-2), I),
        Arithmetic("*", I, I),
        Arithmetic("*", Arithmetic("-", I, Literal(1)), Literal(2)),
        Negative(Arithmetic("-", Negative(I), Literal(1))),
        Call("abs", (Arithmetic("-", Negative(I), Literal(1)),)),
    ],
    ids=str,
)
def test_an_overflow_is_an_error(evaluate: Evaluate, node: Node) -> None:
    rows = pa.Table.from_pylist([{"i": 1}, {"i": None}, {"i": MAX}], schema=COLUMNS)
    with pytest.raises(DataError):
        on_reference([node], rows)
    with pytest.raises(Exception, match=r"(?i)overflow"):
        evaluate([node], rows)


def test_a_null_beside_a_number_at_the_edge_is_no_overflow(evaluate: Evaluate) -> None:
    rows = pa.Table.from_pylist([{"i": MAX, "j": None}, {"i": None, "j": MAX}], schema=COLUMNS)
    nodes = [Arithmetic(operator, I, J) for operator in ("+", "-", "*")]
    over_null = Arithmetic("+", Arithmetic("%", I, Literal(0)), Literal(MAX))
    assert_same(evaluate, [*nodes, over_null, Arithmetic("+", Literal(MAX), Literal(None))], rows)


def test_strings_compare_by_code_point_and_with_case(evaluate: Evaluate) -> None:
    literals = [node for text in STRINGS for node in comparisons(S, Literal(text))]
    assert_same(evaluate, [*comparisons(S, R), *literals])


LIKES = [
    *("", "%", "_", "a%", "%b", "a_b", "a\\_b", "a\\%b", "a\\\\b", "A", "__", "a%b%", "\\a\\%b", "it's", "é"),
    *("%'%", "\U0001d11e"),
]
REGEXES = ["a", "^a$", "a.b", "^.$", "[aé]", "\\\\", "^$", "(a|b){1,2}", "it'", "a\\nb", "[^a]"]


def test_like_has_two_wildcards_and_an_escape(evaluate: Evaluate) -> None:
    likes = [Like(S, pattern) for pattern in LIKES]
    assert_same(evaluate, [*likes, *map(Not, likes)])


def test_ilike_takes_letters_of_both_cases(evaluate: Evaluate) -> None:
    likes = [Ilike(S, pattern) for pattern in (*LIKES, "É", "IT'S", "%İ", "ς%")]
    assert_same(evaluate, [*likes, *map(Not, likes)])


def test_a_regular_expression_is_searched_unanchored(evaluate: Evaluate) -> None:
    assert_same(evaluate, [Matches(S, regex) for regex in REGEXES])


def test_timestamps_are_instants_in_utc(evaluate: Evaluate) -> None:
    literals = [node for moment in TIMES for node in comparisons(T, Literal(moment))]
    elsewhere = datetime(2019, 9, 23, 15, 12, 45, tzinfo=UTC).astimezone() + timedelta(hours=3)
    assert_same(evaluate, [*comparisons(T, U), *literals, *comparisons(T, Literal(elsewhere))])


@pytest.mark.parametrize("column", [pa.timestamp("us"), pa.timestamp("us", "America/Santiago"), pa.date32()])
def test_columns_without_a_zone_are_in_utc_and_others_are_instants(
    evaluate: Evaluate, column: pa.DataType
) -> None:
    moments = [TIMES[2], TIMES[3], None]
    rows = pa.table({"t": pa.array(moments, pa.timestamp("us", "UTC")).cast(pa.timestamp("us")).cast(column)})
    wanted = [None if moment is None else moment for moment in moments]
    if column == pa.date32():
        wanted = [moment and moment.replace(hour=0, minute=0, second=0, microsecond=0) for moment in wanted]
    elif column.tz:
        rows = pa.table({"t": pa.array(moments, column)})
    found = evaluate([Comparison("=", T, Literal(moment)) for moment in wanted], rows)
    assert [found[0][0], found[1][1], found[2][2]] == [True, True, None]
    assert found[0][1] is False


def test_calendar_and_clock_are_in_utc(evaluate: Evaluate) -> None:
    parts = ("year", "month", "day", "hour", "minute", "second")
    assert_same(evaluate, [Call(part, (T,)) for part in parts])


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_nanoseconds_count(zone: str | None) -> None:
    second = 1_600_000_000
    ticks = [second * 10**9 - 1, second * 10**9, second * 10**9 + 1, None]
    rows = pa.table(
        {
            "t": pa.array(ticks, pa.timestamp("ns", zone)),
            "u": pa.array([second * 10**6] * 4, pa.timestamp("us", "UTC")),
        }
    )
    moment = Literal(datetime.fromtimestamp(second, UTC))
    nodes = [Comparison("<", T, moment), Comparison("=", T, U), In(T, (moment,)), Between(T, U, moment)]
    nodes += [Comparison(">=", U, T), Comparison("<", T, Literal(datetime(9999, 1, 1, tzinfo=UTC)))]
    nodes.append(Call("second", (T,)))
    assert (
        on_rows(nodes, rows)
        == on_duckdb(nodes, rows)
        == [
            [True, False, False, None],
            [False, True, False, None],
            [False, True, False, None],
            [False, True, False, None],
            [True, True, False, None],
            [True, True, True, None],
            [39, 40, 40, None],
        ]
    )
    early = pa.table({"t": pa.array([-1, -1000, -61_000_000_001, 0], pa.timestamp("ns", zone))})
    parts = [Call("second", (T,)), Call("year", (T,))]
    assert (
        on_rows(parts, early)
        == on_duckdb(parts, early)
        == [
            [59, 59, 58, 0],
            [1969, 1969, 1969, 1970],
        ]
    )


def test_truth_has_three_values(evaluate: Evaluate) -> None:
    nodes: list[Node] = [And((B, C)), Or((B, C)), Not(B), Not(And((B, Not(C)))), Or((B, C, Literal(None)))]
    assert_same(evaluate, [*nodes, And((B, Literal(None))), IsNull(B), Not(IsNull(B)), *comparisons(B, C)])


def test_null_makes_a_comparison_unknown(evaluate: Evaluate) -> None:
    missing = Attribute("no_such_attribute")
    nodes: list[Node] = [
        Comparison("=", missing, Literal(1)),
        Comparison("=", Literal(None), I),
        IsNull(missing),
    ]
    nodes += [
        In(missing, (Literal(1),)),
        Like(missing, "%"),
        Between(I, missing, J),
        Not(In(I, (Literal(None),))),
    ]
    assert_same(evaluate, [*nodes, IsNull(Arithmetic("/", I, J)), IsNull(Arithmetic("%", I, J)), IsNull(S)])


def test_membership_and_ranges_compare_as_equality_does(evaluate: Evaluate) -> None:
    members = (Literal(1), Literal(1.5), Literal(2.0**53), Range(Literal(-7), Literal(-0.5)), Literal(None))
    texts = (Literal("a"), Literal("it's"), Range(Literal("b"), Literal("z")))
    nodes: list[Node] = [
        In(I, members),
        In(F, members),
        Not(In(F, members[:3])),
        In(S, texts),
        In(T, (Literal(TIMES[2]),)),
    ]
    assert_same(
        evaluate,
        [*nodes, Between(I, F, J), Between(F, I, G), Between(S, Literal("a"), R), In(I, (Literal(7),))],
    )


# -------------------------------------------------------------------------------------- random ones


@settings(max_examples=40)
@given(st.lists(predicates(), min_size=1, max_size=4), streams(min_size=1))
def test_random_predicates_on_duckdb_mean_what_the_reference_says(
    nodes: list[Node], events: list[Event]
) -> None:
    table = to_table(events)
    assert_same(on_duckdb, nodes, table)
    assert_same(on_rows, nodes, table)


@settings(max_examples=4)
@given(st.lists(predicates(), min_size=20, max_size=30), streams(min_size=8, max_size=12))
def test_random_predicates_on_spark_mean_what_the_reference_says(
    spark: SparkSession, nodes: list[Node], events: list[Event]
) -> None:
    assert_same(on_spark(spark), nodes, to_table(events).cast(TABLE))


def test_some_element_satisfies_a_condition() -> None:
    lists = [["a", "Bc", None], [], None, [None], ["b", "aa"], ["", "bB"]]
    rows = pa.table({"s": ["a", "b", None, "aa", "aa", ""], "l": pa.array(lists, pa.list_(pa.string()))})
    whole, element = Attribute("l"), Element("t")
    conditions: list[Node] = [
        Comparison("=", element, Literal("a")),
        Comparison("<", element, S),
        In(element, (Literal("a"), Literal("bB"))),
        Ilike(element, "b%"),
        Not(Comparison("=", element, Literal("a"))),
        IsNull(element),
        Comparison(">", Call("length", (Call("concat", (element, element)),)), Literal(2)),
        SomeElement(whole, "u", Comparison("=", Element("u"), Call("upper", (element,)))),
    ]
    tests: list[Node] = [SomeElement(whole, "t", condition) for condition in conditions]
    assert_same(on_duckdb, [*tests, *map(Not, tests), *map(IsNull, tests)], rows)
