"""Decimals are exact up to 38 digits: keys, comparisons and sums are those of the reference."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.errors import DataError, QueryError
from estero.language.syntax.parser import parse_query
from estero.reference.measures import evaluate_measures
from estero.reference.queries import Event, evaluate_query
from laws.evaluators import by_end
from laws.test_measures import same

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEAR = 9_007_199_254_740_992
"""Beyond it, not every integer is a float."""
COLUMNS: dict[str, tuple[pa.DataType, list[Decimal | None]]] = {
    "k": (pa.decimal128(20, 0), [*map(Decimal, (NEAR, NEAR + 1, -NEAR - 1, 0)), None]),
    "d": (pa.decimal128(10, 2), [*map(Decimal, ("0.10", "0.20", "0.30", "-0.10", "1.00", "12.34")), None]),
    "e": (pa.decimal128(38, 9), [*map(Decimal, ("0.1", "0.200000000", "0.300000001", "1", "-0.1")), None]),
    "w": (pa.decimal128(38, 0), [Decimal(10**37), Decimal(10**37 + 1), Decimal(1), None]),
}
NUMBERS = {"i": (pa.int64(), [0, 1, -1, NEAR + 1, None])}
SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("time", pa.int64()),
        *((name, kind) for name, (kind, _) in (COLUMNS | NUMBERS).items()),
    ]
)
LAYOUT: dict[str, Any] = {"type": "type", "time": "time", "types": ("A", "B")}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    values = {name: st.sampled_from(values) for name, (_, values) in (COLUMNS | NUMBERS).items()}
    one = st.fixed_dictionaries({"type": st.sampled_from("AB"), **values})
    rows = [row | {"time": place} for place, row in enumerate(draw(st.lists(one, max_size=8)))]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


OPERATORS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
CONSTANTS = st.sampled_from(
    ["0.1", "0.10", "-0.1", "0.3", "1", "0.125", "9007199254740993", "1e300", "1e-300", "0"]
)


@st.composite
def conditions(draw: st.DrawFn) -> str:
    one, other = draw(st.sampled_from("kdew")), draw(st.sampled_from("kdewi"))
    sign, constant = draw(OPERATORS), draw(CONSTANTS)
    return draw(
        st.sampled_from(
            [
                f"a.{one} {sign} b.{other}",
                f"a.{one} {sign} b.{one} AND a.d {draw(OPERATORS)} b.e",
                f"a[{one} {sign} {constant}]",
                f"a[{constant} {sign} {one}]",
                f"b[{one} IN {{0.1, 0.3, 1, 9007199254740993}}]",
                f"b[{one} BETWEEN {constant} AND 9007199254740993]",
                f"sum(a.{one}) {sign} {constant}",
                f"min(a.{one}) {sign} max(b.{other})",
                f"count(DISTINCT a.{one}) {sign} 2",
                f"a[CAST({one} AS STRING) = '0.1' OR CAST({one} AS INTEGER) = 9007199254740993]",
                f"a[CAST({one} AS FLOAT) {sign} 0.1] OR a[{one} IS NULL]",
                f"increasing(a.{one})",
            ]
        )
    )


@st.composite
def texts(draw: st.DrawFn) -> str:
    pattern = draw(st.sampled_from(["A AS a ; B AS b", "(A AS a)+ ; B AS b", "(A AS a ; B AS b) ALL B"]))
    key = draw(st.sampled_from(["", "", " PARTITION BY [k]", " PARTITION BY [e]", " PARTITION BY d, i"]))
    inner = (
        ""
        if "ALL" in pattern
        else draw(st.sampled_from(["", "", " PARTITION BY [a.e, b.d]", " PARTITION BY [a.d, b.i]"]))
    )
    window = draw(st.sampled_from(["", " WITHIN 3 EVENTS", " WITHIN 4 [time]"]))
    select = draw(
        st.sampled_from(["*", "sum(a.d) AS s, min(a.e) AS lo, max(b.k) AS hi, last(b.w) AS l, A, B, a, b"])
    )
    return f"SELECT {select} WHERE (({pattern}){inner}) FILTER {draw(conditions())}{key}{window}"


def check(text: str, table: pa.Table, batches: list[pa.RecordBatch]) -> None:
    """Each complex event comes once, with the values of the reference."""
    events = [Event(str(row["type"]), row, row["time"]) for row in table.to_pylist()]
    tree = parse_query(text)
    assert by_end(batches) == evaluate_query(tree, events)
    for batch in batches:
        for place, row in enumerate(batch.to_pylist()):
            ((complex_event,),) = by_end([batch.slice(place, 1)]).values()
            for name, value in evaluate_measures(tree, complex_event, events).items():
                assert same(row[name], value), f"{name}: {row[name]!r}, not {value!r}"


@given(texts(), tables())
def test_decimals_are_those_of_the_reference(text: str, table: pa.Table) -> None:
    check(text, table, list(estero.query(text).run(table, **LAYOUT).batches()))


@settings(max_examples=30)
@given(texts(), tables())
def test_so_they_are_pushed_one_by_one(text: str, table: pa.Table) -> None:
    recognizer = estero.query(text).recognizer(SCHEMA, **LAYOUT)
    found = [batch for row in table.to_pylist() for batch in recognizer.push(row).batches()]
    check(text, table, [*found, *recognizer.close().batches()])


EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "B"],
        "time": [1, 2, 3, 4],
        "k": pa.array(map(Decimal, (NEAR + 1, NEAR, NEAR, NEAR + 1)), pa.decimal128(20, 0)),
        "d": pa.array([Decimal("0.10"), Decimal("0.20"), Decimal("0.30"), None], pa.decimal128(10, 2)),
        "e": pa.array(map(Decimal, ("0.1", "0.2", "1E-9", "1")), pa.decimal128(38, 9)),
        "f": [0.1, 0.2, 0.3, 1.0],
    }
)
ON_SPARK = [
    ("SELECT a, b WHERE A AS a ; B AS b PARTITION BY [k]", 1),
    ("SELECT a, b WHERE A AS a ; B AS b FILTER a.k = b.k", 1),
    ("SELECT a, b WHERE A AS a ; B AS b FILTER a.k != b.k", 2),
    ("SELECT a, b WHERE A AS a ; B AS b FILTER a.k > b.k AND a.d < b.e", 1),
    ("SELECT a WHERE (A OR B)+ AS a FILTER sum(a.d) = 0.3", 4),
    ("SELECT a WHERE A AS a FILTER a[d < 0.125 AND d = 0.1 AND d > 1e-300 AND d != 1e300]", 1),
    ("SELECT a WHERE A AS a FILTER a[CAST(e AS STRING) = '0.000000001' AND CAST(e AS INTEGER) = 0]", 1),
    ("SELECT a WHERE A AS a FILTER a[CAST(k AS FLOAT) = 9007199254740992.0]", 2),
    ("SELECT a, b WHERE (A AS a ; B AS b) PARTITION BY [a.d, b.e]", 0),
    ("SELECT a WHERE (A OR B)+ AS a FILTER count(DISTINCT a.k) = 1 AND a[k >= 9007199254740993]", 3),
]


@pytest.mark.spark
@pytest.mark.parametrize(("text", "count"), ON_SPARK)
def test_they_are_exact_on_spark(spark: SparkSession, text: str, count: int) -> None:
    from estero.spark import recognize

    assert estero.query(text).run(EVENTS, type="type", time="time").count() == count
    frame = spark.createDataFrame(EVENTS)
    assert recognize(frame, text, type="type", time="time").count() == count


@pytest.mark.spark
def test_answers_have_them_as_they_are(spark: SparkSession) -> None:
    from estero.spark import recognize

    text = "SELECT sum(a.d) AS s, min(a.k) AS least, a[d] WHERE A AS a ; B PARTITION BY [k]"
    here = estero.query(text).run(EVENTS, type="type", time="time").to_arrow()
    there = recognize(spark.createDataFrame(EVENTS), text, type="type", time="time").toArrow()
    assert here.schema.field("s").type == there.schema.field("s").type == pa.decimal128(38, 2)
    names = ["k", "s", "least"]
    assert here.select(names).to_pylist() == there.select(names).to_pylist()
    assert here["s"].to_pylist() == [Decimal("0.10")]


def test_a_parameter_is_the_decimal_that_it_is() -> None:
    query = estero.query("SELECT a WHERE A AS a FILTER a[d = $v] OR a[k IN $ks]")
    bound = query.bind(v=Decimal("0.30"), ks=[Decimal(NEAR + 1), 0.5])
    assert [each.start for each in bound.run(EVENTS, type="type", time="time")] == [0, 2]
    many = query.bind(v=Decimal(5), ks=[*range(2_000), NEAR + 1, 0.5])
    assert [each.start for each in many.run(EVENTS, type="type", time="time")] == [0]
    with pytest.raises(QueryError, match=r"\$v cannot be a decimal of more digits here"):
        query.bind(v=Decimal("0.1234567890123456789"))


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("a[d + 1 > 1]", r"\+ takes numbers, and d is a decimal"),
        ("a[d = f]", "a decimal cannot be compared with a float"),
        ("a[coalesce(d, 1) = 1]", "and d is a decimal"),
        ("a[CASE WHEN f > 0 THEN d END = 1]", "CASE does not choose among decimals"),
        ("a[d = 0.1234567890123456789]", "this constant has more digits than are kept"),
        ("sum(a.d * 2) > 5", r"\* takes numbers, and .*d is a decimal"),
    ],
)
def test_what_would_not_be_exact_is_an_error(condition: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        estero.query(f"SELECT a WHERE A AS a FILTER {condition}").run(EVENTS, type="type", time="time")


def test_a_sum_of_more_than_38_digits_is_an_error() -> None:
    large = pa.array([Decimal(10**38 - 1), Decimal(1)], pa.decimal128(38, 0))
    events = pa.table({"d": large, "s": [1, 2]})
    query = estero.query("SELECT sum(a.d) AS s WHERE Event{2} AS a")
    with pytest.raises(DataError, match="a sum of decimals has more than 38 digits"):
        query.run(events).to_arrow()
    lower = events.set_column(0, "d", pa.array([Decimal(-(10**38) + 1), Decimal(0)], large.type))
    assert query.run(lower).to_arrow()["s"].to_pylist() == [Decimal(-(10**38) + 1)]


def test_keys_of_decimals_and_integers_are_alike_where_they_are_equal() -> None:
    whole = pa.table({"time": [1, 2], "i": [1, 2]})
    broken = pa.table(
        {"time": [3, 4], "d": pa.array([Decimal("1.00"), Decimal("2.50")], pa.decimal128(9, 2))}
    )
    query = estero.query("SELECT * WHERE A ; B PARTITION BY [i, d]")
    found = query.run({"A": whole, "B": broken}, time="time").to_arrow()
    assert found["i"].to_pylist() == [Decimal(1)]
    assert found.num_rows == 1


def test_a_float_is_not_rounded_into_a_column_of_decimals() -> None:
    recognizer = estero.query("SELECT a WHERE A AS a").recognizer(EVENTS.schema, type="type", time="time")
    floats = EVENTS.set_column(EVENTS.column_names.index("d"), "d", EVENTS["f"])
    with pytest.raises(DataError, match="'d'"):
        recognizer.push(floats)


def test_decimals_join_integers_that_they_are_equal_to() -> None:
    events = EVENTS.append_column("i", pa.array([NEAR + 1, NEAR, NEAR, NEAR + 1]))
    for condition, count in (("before.k = i", 1), ("before.k != i", 2), ("before.i = k", 1)):
        steps = [("p", "A", "a", "q"), ("q", "B", "b", "r", condition)]
        query = estero.automaton(steps, initial="p", final="r")
        assert query.run(events, type="type", time="time").count() == count
    joined = estero.conjunctive("Q(x) <- A(k: x), B(i: x)")
    assert joined.run(events, type="type", time="time").count() == 2
