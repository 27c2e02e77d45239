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
from estero.classify.rows.functions import FunctionWriter, RowColumn
from estero.classify.rows.typed import AskSqlError, NotInPythonError
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
    Case,
    Cast,
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
    When,
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
    if isinstance(one, datetime):
        return one == _instant(other)
    return type(one) is type(other) and one == other


def _instant(value: Value) -> Value:
    """A timestamp, also where an engine has none with a zone, or only its microseconds."""
    if isinstance(value, int):
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


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


ROUNDED = [0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 2.675, 1e15 + 0.5, 2.0**52 + 1, 4.5e15, 1e300]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -8.0, 0.5, 1e300, math.inf, -math.inf, math.nan, None]


def test_rounding_and_signs(evaluate: Evaluate) -> None:
    floats = [*ROUNDED, *SPECIAL, 12345.6789]
    integers = [0, 1, -1, 7, MAX, MIN, None]
    rows = pa.table({"f": floats, "i": [integers[place % 7] for place in range(len(floats))]})
    nodes: list[Node] = [Call("round", (F, Literal(digits))) for digits in (0, 1, 2, 15)]
    nodes += [Call(name, (each,)) for name in ("round", "sign") for each in (F, I)]
    assert_same(evaluate, nodes, rows)


def test_roots_logarithms_and_powers_are_those_of_floats(evaluate: Evaluate) -> None:
    rows = pa.table(pairs_of(SPECIAL))
    nodes: list[Node] = [Call(name, (each,)) for name in ("sqrt", "ln", "exp") for each in (F, I)]
    nodes += [Call("power", (F, G)), Call("power", (F, I)), Call("power", (I, Literal(0.5)))]
    wanted, found = on_reference(nodes, rows), evaluate_or_ask(evaluate, nodes, rows)
    for node, expected, values in zip(nodes, wanted, found, strict=True):
        for one, other in zip(expected, values, strict=True):
            assert one == other or other == pytest.approx(one, rel=1e-14, nan_ok=True), f"{node}"


def pairs_of(numbers: Sequence[float | None]) -> dict[str, list[Value]]:
    """All pairs of floats, with an integer beside each."""
    both = list(product(numbers, numbers))
    return {
        "f": [one for one, _ in both],
        "g": [other for _, other in both],
        "i": [place % 7 - 3 for place in range(len(both))],
    }


def evaluate_or_ask(evaluate: Evaluate, nodes: Sequence[Node], rows: pa.Table) -> list[list[Value]]:
    """In Python a power that is an error there is asked of DuckDB, as it is of single events."""
    if evaluate is not on_rows:
        return evaluate(nodes, rows)
    found: list[list[Value]] = []
    for node in nodes:
        values: list[Value] = []
        for place in range(rows.num_rows):
            try:
                values += evaluate([node], rows.slice(place, 1))[0]
            except AskSqlError:
                values += on_duckdb([node], rows.slice(place, 1))[0]
        found.append(values)
    return found


TEXTS = [
    *("", "a", "aA", " a b ", "\ta ", "Éé", "straße", "ΟΔΟΣ Σ", "İıI"),
    *("\ufb01n", "ᾳᾼᾀ", "a-b--c", "\U0001d11ex", "é-"),
]


def test_functions_of_strings(evaluate: Evaluate) -> None:
    rows = pa.table({"s": [*TEXTS, None], "r": [None, *reversed(TEXTS)], "i": [*range(-4, 11)]})
    nodes: list[Node] = [Call(name, (S,)) for name in ("lower", "upper", "trim", "length")]
    nodes += [Call(name, (S, R)) for name in ("starts_with", "ends_with", "contains", "concat")]
    parts = [Literal(text) for text in ("", "a", "b ", "é", "-")]
    nodes += [Call(name, (S, part)) for name in ("starts_with", "ends_with", "contains") for part in parts]
    nodes += [Call("replace", (S, part, Literal("xy"))) for part in parts]
    nodes += [Call("replace", (S, R, Literal("")))]
    nodes += [Call("split_part", (S, part, Literal(place))) for part in parts[1:] for place in (1, 2, 4)]
    edges = (-(2**63), -2, 0, 1, 2, 5, 2**31, 2**63 - 1)
    nodes += [Call("substring", (S, Literal(start))) for start in edges]
    nodes += [Call("substring", (S, Literal(start), Literal(many))) for start in edges for many in edges]
    nodes += [Call("substring", (S, I)), Call("substring", (S, I, Literal(3))), Call("substring", (S, I, I))]
    nodes += [Call("concat", (S,)), Call("concat", (S, Literal("/"), R)), Call("concat", (S, Literal(None)))]
    assert_same(evaluate, nodes, rows)


def test_every_letter_changes_its_case_in_one_way(evaluate: Evaluate) -> None:
    letters = [chr(each) for each in range(1, 0x1F000) if not 0xD800 <= each < 0xE000]
    newer = {chr(each) for each in NEWER_LETTERS}
    rows = pa.table({"s": [letter for letter in letters if letter not in newer]})
    assert_same(evaluate, [Call("lower", (S,)), Call("upper", (S,))], rows)


NEWER_LETTERS = (
    *(0x19B, 0x264, 0x1C89, 0x1C8A, 0x2C2F, 0x2C5F, 0xA7C0, 0xA7C1, *range(0xA7CB, 0xA7DD)),
    *(*range(0x10570, 0x105BD), *range(0x10D50, 0x10D90), *range(0x16EA0, 0x16ED9)),
)
"""Letters of which Unicode 13 has not both cases."""


NUMERALS = [
    *("0", "-7", "+12", "007", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("1.5", "-.5", "5.", "1e3", "1E-3", "1e999", "-1e999", "1e-999", "", " 1", "1 ", "1_0", "0x1", "--1"),
    *("e5", "1e", ".", "-", "+.5e-3", "1.e3", "1-2", "1e3.5", "+-1", "."),
    *("NaN", "inf", "Infinity", "a", "1\n", "\u0661", "1d", "1f", "1L", None),
]


def test_casts(evaluate: Evaluate) -> None:
    rows = pa.table({"s": pa.array(NUMERALS, pa.string())})
    assert_same(evaluate, [Cast(S, "INTEGER"), Cast(S, "FLOAT"), Cast(S, "STRING")], rows)
    nodes: list[Node] = [Cast(F, "INTEGER"), Cast(I, "FLOAT"), Cast(I, "STRING"), Cast(I, "BOOLEAN")]
    nodes += [Cast(B, "INTEGER"), Cast(B, "FLOAT"), Cast(B, "STRING"), Cast(T, "TIMESTAMP")]
    assert_same(evaluate, [*nodes, Cast(Literal(None), "INTEGER"), Cast(Literal(2.5), "INTEGER")])


def test_cases(evaluate: Evaluate) -> None:
    positive = When(Comparison(">", I, Literal(0)), Literal("positive"))
    zero = When(Comparison("=", I, Literal(0)), Literal("zero"))
    divided = When(Comparison("!=", J, Literal(0)), Arithmetic("%", I, J))
    nodes: list[Node] = [
        Case((positive, zero), Literal("negative or NULL")),
        Case((positive, zero)),
        Case((divided,), J),
        *comparisons(Case((divided,), F), G),
        Case((When(B, C), When(C, Literal(None)))),
        Case((When(IsNull(T), U),), T),
        Case((When(B, Literal(None)),)),
        Comparison("=", Case((positive,), S), Literal("positive")),
    ]
    assert_same(evaluate, nodes)


def test_functions_that_choose(evaluate: Evaluate) -> None:
    nodes: list[Node] = [
        Call(name, both)
        for name in ("greatest", "least", "nullif")
        for both in [(I, J), (F, G), (S, R), (T, U)]
    ]
    nodes += [Call(name, (I, Literal(0))) for name in ("greatest", "least", "nullif")]
    nodes += [Call(name, (Literal(None), F)) for name in ("greatest", "least")]
    nodes += [Call("nullif", (F, Literal(None))), Call("greatest", (F, G, Literal(0.0)))]
    assert_same(evaluate, nodes)


def test_calendars_by_weeks_and_quarters(evaluate: Evaluate) -> None:
    days = [datetime(2019, 12, 28, 12, tzinfo=UTC) + timedelta(days=day) for day in range(800)]
    rows = pa.table({"t": pa.array([*TIMES, *days], pa.timestamp("us", "UTC"))})
    units = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    nodes: list[Node] = [Call("date_trunc", (Literal(unit), T)) for unit in units]
    nodes += [Call(part, (T,)) for part in ("quarter", "week", "day_of_week", "epoch")]
    assert_same(evaluate, nodes, rows)


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
