"""Expressions mean the same on every engine: semantics.md on DuckDB, Spark, in Python and the reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estero.classify.duckdb_dialect import DUCKDB
from estero.classify.expressions import ExpressionWriter
from estero.classify.rows.functions import FunctionWriter, NotInPythonError, RowColumn
from estero.classify.spark_dialect import SPARK
from estero.errors import DataError
from estero.events.streams.row_types import row_type
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
from estero.language.tree.schema import Kind
from estero.reference.queries import Event, evaluate_expression
from strategies import TABLE, predicates, streams, to_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = Mapping[str, Value]
Evaluate = Callable[[Sequence[Node], pa.Table], list[list[Value]]]
"""From expressions and rows to one list of values, row by row, for each expression."""

MAX, MIN = 2**63 - 1, -(2**63)
INTEGERS = [0, 1, -1, 7, -7, 2**53, 2**53 + 1, -(2**53) - 1, MAX, MIN, None]
FLOATS = [0.0, -0.0, 1.5, -2.5, 2.0**53, 2.0**63, -(2.0**63), 1e300, math.inf, -math.inf, math.nan, None]
STRINGS = ["", "a", "A", "b", "a_b", "axb", "a%b", "a\\b", "a\nb", "é", "\uffff", "\U0001d11e", "it's", None]
TIMES = [
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1, 1, 2, tzinfo=UTC),
    datetime(2019, 9, 23, 18, 12, 45, tzinfo=UTC),
    datetime(2020, 2, 29, 23, 59, 59, 123_456, tzinfo=UTC),
    datetime(9999, 12, 30, tzinfo=UTC),
    None,
]
COLUMNS = pa.schema(
    [
        ("i", pa.int64()),
        ("j", pa.int64()),
        ("f", pa.float64()),
        ("g", pa.float64()),
        ("s", pa.string()),
        ("r", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("u", pa.timestamp("us", "UTC")),
        ("b", pa.bool_()),
        ("c", pa.bool_()),
    ]
)
OPERATORS: tuple[ComparisonOperator, ...] = ("=", "!=", "<", "<=", ">", ">=")
I, J, F, G, S, R, T, U, B, C = (Attribute(name) for name in COLUMNS.names)


def pairs(left: str, right: str, one: Sequence[Value], other: Sequence[Value]) -> list[Row]:
    return [{left: a, right: b} for a, b in product(one, other)]


EDGES = pa.Table.from_pylist(
    [
        *pairs("i", "f", INTEGERS, FLOATS),
        *pairs("f", "g", FLOATS, FLOATS),
        *pairs("i", "j", INTEGERS, INTEGERS),
        *pairs("s", "r", STRINGS, STRINGS),
        *pairs("t", "u", TIMES, TIMES),
        *pairs("b", "c", [True, False, None], [True, False, None]),
    ],
    schema=COLUMNS,
)
SMALL = pa.Table.from_pylist(
    pairs("i", "j", [0, 1, -1, 7, -7, 10**6, None], [0, 3, -3, -1, None]), schema=COLUMNS
)


# ---------------------------------------------------------------------------------------- three ways


def on_reference(nodes: Sequence[Node], rows: pa.Table) -> list[list[Value]]:
    events = [Event("E", row) for row in rows.to_pylist()]
    return [[evaluate_expression(node, event) for event in events] for node in nodes]


def on_duckdb(nodes: Sequence[Node], rows: pa.Table) -> list[list[Value]]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", rows)
        types = {
            name: DUCKDB.column_type(kind)
            for name, kind, *_ in connection.execute("DESCRIBE rows").fetchall()
        }
        writer = ExpressionWriter(types, DUCKDB)
        selected = [f"{writer.value(node).sql.sql('duckdb')} AS v{n}" for n, node in enumerate(nodes)]
        answer = connection.sql(f"SELECT {', '.join(selected)} FROM rows").to_arrow_table()
    return [answer.column(n).to_pylist() for n in range(len(nodes))]


def on_rows(nodes: Sequence[Node], rows: pa.Table) -> list[list[Value]]:
    """In Python, as single events are classified; what Python refuses is asked of DuckDB."""
    columns = {field.name: _row_column(place, field.type) for place, field in enumerate(rows.schema)}
    readers = [row_type(field.type) for field in rows.schema]
    values = [
        tuple(
            [
                reader.of_scalar(column[row])
                for reader, column in zip(readers, rows.columns, strict=True)
                if reader
            ]
        )
        for row in range(rows.num_rows)
    ]
    writer = FunctionWriter(columns)
    found = []
    for node in nodes:
        try:
            function = writer.value(node).function
        except NotInPythonError:
            found += on_duckdb([node], rows)
        else:
            found.append([function(row) for row in values])
    return found


def _row_column(place: int, of: pa.DataType) -> RowColumn:
    if pa.types.is_timestamp(of):
        return RowColumn(place, Kind.TIMESTAMP, "ns" if of.unit == "ns" else "us")
    if of == pa.date32():
        return RowColumn(place, Kind.TIMESTAMP, scale=86_400_000_000)
    return RowColumn(place, _KINDS[of])


_KINDS = {pa.int64(): Kind.INT, pa.float64(): Kind.FLOAT, pa.string(): Kind.STRING, pa.bool_(): Kind.BOOL}


def on_spark(spark: SparkSession) -> Evaluate:
    def evaluate(nodes: Sequence[Node], rows: pa.Table) -> list[list[Value]]:
        frame = _frame(spark, rows)
        writer = ExpressionWriter({name: SPARK.column_type(kind) for name, kind in frame.dtypes}, SPARK)
        selected = [f"{writer.value(node).sql.sql('spark')} AS v{n}" for n, node in enumerate(nodes)]
        answer = frame.selectExpr(*selected).toArrow()
        return [answer.column(n).to_pylist() for n in range(len(nodes))]

    return evaluate


def _frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows as a frame of one partition; a timestamp without a zone stays one, whatever the session's."""
    local = [field.name for field in rows.schema if field.type == pa.timestamp("us")]
    for name in local:
        rows = rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.string()))
    frame = spark.createDataFrame(rows).coalesce(1)
    for name in local:
        frame = frame.withColumn(name, frame[name].cast("timestamp_ntz"))
    return frame


@pytest.fixture(params=["duckdb", "rows", "spark", "spark-otherwise-set"])
def evaluate(request: pytest.FixtureRequest) -> Iterator[Evaluate]:
    """Expressions on the engine of the test; Spark also in another zone and without its ANSI mode."""
    if request.param in {"duckdb", "rows"}:
        yield on_duckdb if request.param == "duckdb" else on_rows
        return
    spark: SparkSession = request.getfixturevalue("spark")
    changed = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/Santiago"}
    before = {name: spark.conf.get(name) for name in changed}
    for name in changed if request.param == "spark-otherwise-set" else ():
        spark.conf.set(name, changed[name])
    yield on_spark(spark)
    for name, value in before.items():
        if value is not None:
            spark.conf.set(name, value)


def assert_same(evaluate: Evaluate, nodes: Sequence[Node], rows: pa.Table = EDGES) -> None:
    """The engine gives the value of the reference for each expression and row."""
    wanted, found = on_reference(nodes, rows), evaluate(nodes, rows)
    for node, expected, values in zip(nodes, wanted, found, strict=True):
        for row, one, other in zip(rows.to_pylist(), expected, values, strict=True):
            shown = {name: value for name, value in row.items() if value is not None}
            assert _same(one, other), f"{node} of {shown}: {other!r}, not {one!r}"


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and one == other


def comparisons(left: Node, right: Node) -> list[Node]:
    return [Comparison(operator, left, right) for operator in OPERATORS]


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


def test_functions_of_numbers_and_strings(evaluate: Evaluate) -> None:
    nodes: list[Node] = [Call(name, (F,)) for name in ("abs", "floor", "ceil")]
    nodes += [Call("floor", (I,)), Call("ceil", (I,)), Call("length", (S,)), Call("coalesce", (S, R))]
    nodes += [Call("coalesce", (I, J, Literal(5))), Call("coalesce", (Literal(None), F, G))]
    assert_same(evaluate, nodes)


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
