"""Durations mean the same on every engine: on DuckDB, Spark, in Python and the reference."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classify.everywhere import (
    COLUMNS,
    TIMES,
    B,
    Evaluate,
    F,
    I,
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
from estero.language.syntax.parser import parse_condition
from estero.language.tree.durations import Duration
from estero.language.tree.expressions import (
    Arithmetic,
    Between,
    Call,
    Case,
    Comparison,
    In,
    IsNull,
    Literal,
    Negative,
    Node,
    Range,
    When,
)
from estero.language.tree.literals import Value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LENGTHS = [
    timedelta(0),
    timedelta(microseconds=1),
    timedelta(seconds=-1),
    timedelta(minutes=5),
    timedelta(days=-3, hours=2),
    timedelta(days=3_000_000),
]


def duration(length: timedelta) -> Literal:
    return Literal(Duration(length // timedelta(microseconds=1) * 1000))


CONSTANTS = [duration(length) for length in LENGTHS]
MINUTE = duration(timedelta(minutes=1))
APART = Arithmetic("-", T, U)
"""How much later t is than u."""

NEAR = [
    datetime(2020, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2020, 3, 1, tzinfo=UTC),
    datetime(2020, 3, 1, 0, 5, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1, 1, 2, tzinfo=UTC),
    None,
]


def rows_of(**columns: Sequence[Value]) -> pa.Table:
    """Each way to take one value of each column."""
    rows = [dict(zip(columns, values, strict=True)) for values in product(*columns.values())]
    return pa.Table.from_pylist(rows, schema=pa.schema([COLUMNS.field(name) for name in columns]))


def test_timestamps_have_a_difference(evaluate: Evaluate) -> None:
    nodes: list[Node] = [APART, *(node for each in CONSTANTS for node in comparisons(APART, each))]
    nodes += [Negative(APART), Call("abs", (APART,)), Call("seconds", (APART,)), IsNull(APART)]
    assert_same(evaluate, nodes, rows_of(t=TIMES, u=NEAR))


def test_a_timestamp_and_a_duration_are_a_timestamp(evaluate: Evaluate) -> None:
    few = CONSTANTS[:-2]
    later: list[Node] = [Arithmetic(sign, T, each) for each in few for sign in ("+", "-")]
    later += [Arithmetic("+", each, T) for each in few]
    nodes = [*later, *(Comparison("<=", U, each) for each in later), Arithmetic("-", later[6], T)]
    assert_same(evaluate, nodes, rows_of(t=NEAR, u=NEAR))


def test_durations_are_added_and_subtracted(evaluate: Evaluate) -> None:
    nodes: list[Node] = [Arithmetic(sign, APART, each) for each in CONSTANTS for sign in ("+", "-")]
    nodes += [Arithmetic(sign, one, MINUTE) for one in CONSTANTS for sign in ("+", "-")]
    assert_same(evaluate, [*nodes, *map(Negative, nodes)], rows_of(t=TIMES, u=NEAR))


def test_durations_are_multiplied_by_numbers(evaluate: Evaluate) -> None:
    numbers = [I, F, Literal(3), Literal(-0.5), Literal(None)]
    nodes: list[Node] = [Arithmetic("*", APART, number) for number in numbers]
    nodes += [Arithmetic("*", number, MINUTE) for number in numbers]
    nodes += [Arithmetic("/", APART, number) for number in numbers]
    nodes += [Arithmetic("/", each, number) for number in (I, F) for each in CONSTANTS]
    floats = [0.0, 1.0, -1.5, 0.1, 0.29, float("nan"), None]
    rows = rows_of(t=NEAR[:4], u=NEAR[1:4], i=[0, 1, -7, 1000, None], f=floats)
    assert_same(evaluate, nodes, rows)


def test_a_duration_is_a_multiple_of_another(evaluate: Evaluate) -> None:
    nodes: list[Node] = [Arithmetic("/", APART, each) for each in (*CONSTANTS, APART)]
    nodes += [Arithmetic("/", MINUTE, APART), Call("floor", (Arithmetic("/", APART, MINUTE),))]
    assert_same(evaluate, nodes, rows_of(t=TIMES, u=NEAR))


def test_durations_are_chosen_among(evaluate: Evaluate) -> None:
    days = duration(timedelta(days=2))
    nodes: list[Node] = [Call(name, (APART, days)) for name in ("greatest", "least", "coalesce", "nullif")]
    nodes += [Call("nullif", (days, APART)), Call("coalesce", (Literal(None), APART, MINUTE))]
    nodes += [Case((When(B, APART),), MINUTE), Case((When(B, MINUTE), When(IsNull(B), Negative(APART))))]
    nodes += [Arithmetic("*", node, Literal(100)) for node in nodes]
    assert_same(evaluate, nodes, rows_of(t=NEAR, u=NEAR, b=[True, False, None]))


def test_durations_are_members_of_sets_and_ranges(evaluate: Evaluate) -> None:
    second, minutes = duration(timedelta(seconds=1)), duration(timedelta(minutes=5))
    nodes: list[Node] = [
        In(APART, (minutes, second)),
        In(APART, (Range(second, minutes), duration(timedelta(microseconds=1)))),
        Between(APART, Negative(second), minutes),
        Between(MINUTE, APART, minutes),
    ]
    assert_same(evaluate, nodes, rows_of(t=NEAR, u=NEAR))


@pytest.mark.parametrize(
    "text",
    [
        "t + 5 MINUTES",
        "t - (t - u) * 2",
        "(t - u) * i",
        "(t - u) * i + 100000000 DAYS",
        "-(100000000 DAYS * -1) * i",
        "(t - u) * f",
        "1 SECOND * (-f)",
        "(t - u) / (1 / f)",
        "1 SECOND * f * 0.0",
        "1 MICROSECOND * 9223372036854775808.0",
        "(t - u) * (f * f)",
        "CASE WHEN b THEN 1 SECOND * f END",
        "(1 SECOND * f) IS NULL",
    ],
)
def test_an_overflow_is_an_error(evaluate: Evaluate, text: str) -> None:
    node = parse_condition(text)
    last, first = datetime(9999, 12, 31, 23, 58, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)
    rows = pa.Table.from_pylist([{"t": last, "u": first, "i": 60_000, "f": 1e300, "b": True}], schema=COLUMNS)
    if "t -" in text and "i" not in text:
        rows = pa.Table.from_pylist([{"t": first, "u": last - timedelta(days=9), "i": 1}], schema=COLUMNS)
        node = parse_condition("t - 2 DAYS")
    with pytest.raises(DataError):
        on_reference([node], rows)
    with pytest.raises(Exception, match=r"(?i)overflow|out of range"):
        evaluate([node], rows)


def test_durations_of_63_bits_fit(evaluate: Evaluate) -> None:
    nodes = [
        parse_condition(text)
        for text in ("1 MICROSECOND * f", "CASE WHEN abs(f) < 1e7 THEN 1 DAY / f ELSE -1 MICROSECOND * f END")
    ]
    below = 2.0**63 - 1024
    assert_same(evaluate, nodes, rows_of(f=[below, -below, 1.5, float("nan"), None]))
    least = [parse_condition("1 MICROSECOND * f"), parse_condition("-1 MICROSECOND * (-f)")]
    assert_same(evaluate, least, rows_of(f=[-(2.0**63)]))


def _larger(parts: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    factors = st.sampled_from([I, F, Literal(2), Literal(-0.5)])
    return st.one_of(
        st.builds(Arithmetic, st.sampled_from(["+", "-"]), parts, parts),
        st.builds(Arithmetic, st.sampled_from(["*", "/"]), parts, factors),
        st.builds(lambda part, by: Arithmetic("*", by, part), parts, factors),
        st.builds(Negative, parts),
        st.builds(Call, st.just("abs"), st.tuples(parts)),
        st.builds(
            Call, st.sampled_from(["greatest", "least", "coalesce", "nullif"]), st.tuples(parts, parts)
        ),
        st.builds(lambda one, other: Case((When(Comparison("<", one, other), one),), MINUTE), parts, parts),
        st.builds(lambda moved: Arithmetic("-", Arithmetic("+", T, moved), U), parts),
    )


DURATIONS = st.recursive(
    st.sampled_from([APART, *CONSTANTS[:-1], Arithmetic("-", U, T)]), _larger, max_leaves=5
)
SOME = st.lists(DURATIONS, min_size=4, max_size=8)
ROWS = rows_of(t=NEAR[:4], u=NEAR[1:4], i=[0, -7, None], f=[0.0, -1.5, float("nan"), None])


@settings(max_examples=30)
@given(SOME)
def test_random_durations_mean_what_the_reference_says(nodes: list[Node]) -> None:
    nodes = [*nodes, *(Comparison("<=", *pair) for pair in pairwise(nodes))]
    assert_same(on_duckdb, nodes, ROWS)
    assert_same(on_rows, nodes, ROWS)


@settings(max_examples=4)
@given(st.lists(DURATIONS, min_size=15, max_size=20))
def test_random_durations_on_spark_mean_what_the_reference_says(
    spark: SparkSession, nodes: list[Node]
) -> None:
    assert_same(on_spark(spark), nodes, ROWS)


def test_nanoseconds_count_in_durations() -> None:
    second = 1_600_000_000
    ticks = [second * 10**9 - 1, second * 10**9, second * 10**9 + 2000, None]
    rows = pa.table(
        {
            "t": pa.array(ticks, pa.timestamp("ns")),
            "u": pa.array([second * 10**6] * 4, pa.timestamp("us", "UTC")),
        }
    )
    nodes = [
        parse_condition(text)
        for text in (
            "t - u",
            "(t - u) * 3 < 0 SECONDS",
            "t - u <= 2 MICROSECONDS",
            "t - u > 1999 NANOSECONDS",
            "seconds(t - u)",
            "t + 1 NANOSECOND = u",
            "u + 1 NANOSECOND - u",
            "(t - u) * 0.5",
            "abs(t - u) / 1 MICROSECOND",
            "greatest(t - u, 1 NANOSECOND, 1 MICROSECOND)",
            "CASE WHEN t < u THEN 1 MICROSECOND ELSE t - u END",
        )
    ]
    assert (
        on_rows(nodes, rows)
        == on_duckdb(nodes, rows)
        == [
            [-1, 0, 2000, None],
            [True, False, False, None],
            [True, True, True, None],
            [False, False, True, None],
            [-1e-09, 0.0, 2e-06, None],
            [True, False, False, None],
            [1, 1, 1, 1],
            [-1, 0, 1000, None],
            [0.001, 0.0, 2.0, None],
            [1000, 1000, 2000, 1000],
            [1000, 0, 2000, None],
        ]
    )
