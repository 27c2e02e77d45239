"""The values that registers compare: on DuckDB and on Spark they are in order and equal as the values are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero.answers.event_store import EventStore
from estero.automata.cea import EventPredicate
from estero.automata.registers import Value
from estero.classify.classify import classify_sql
from estero.classify.compared import as_integers
from estero.errors import DataError
from estero.events.sources import Source, open_source
from estero.language.syntax.parser import parse_condition
from estero.language.tree.expressions import Attribute, Comparison, Literal
from estero.language.tree.schema import EventLayout
from estero.plan.plan import Classification
from estero.reference.queries import Event, evaluate_expression
from estero.reference.values import compare
from strategies.patterns import streams, to_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLOATS = [0.0, -0.0, 1.5, -2.5, 5e-324, -5e-324, 1e300, math.inf, -math.inf, math.nan, -math.nan, None]
INTEGERS = [0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), None, 7, 7, 8, None]
STRINGS = ["", "a", "A", "a\0", "é", "abcdefghijklmnopq", "abcdefghijklmnopr", None, "a", "é", "b", None]
TIMES = [datetime(year, 2, 3, 4, 5, 6, 7, tzinfo=UTC) for year in (1, 1969, 1970, 2024, 2024, 9999)]
TABLE = pa.table(
    {
        "type": ["A"] * 12 + ["B"],
        "f": pa.array([*FLOATS, 1.0], pa.float64()),
        "i": pa.array([*INTEGERS, 1], pa.int64()),
        "s": [*STRINGS, "a"],
        "t": pa.array([*TIMES, None, *TIMES[::-1]], pa.timestamp("us", "UTC")),
        "b": [True, False, None] * 4 + [True],
    }
)
ASKED = (EventPredicate(("A", "B")),)


def value(text: str, hashed: int | None = None, types: tuple[str, ...] = ("A",)) -> Value:
    """What a register compares: the side of a comparison ``text = 0``."""
    comparison = parse_condition(f"x[{text} = 0]")
    node = next(each for each in comparison.walk() if isinstance(each, Comparison))
    return Value(node.left, types, hashed)


VALUES = (
    *(value(name) for name in "fitb"),
    *(value("s", number) for number in (0, 1)),
    value("f - 0.5"),
    value("i / 3"),
    value("length(s)"),
    value("NULL"),
    value("missing"),
)


def asking(values: Sequence[Value], asked: tuple[EventPredicate, ...] = ASKED, **more: Any) -> Classification:
    more = {"type_column": "type", "payload": ("i",)} | more
    return Classification(
        asked, open_source(TABLE, EventLayout.of(type="type")).schema, values=tuple(values), **more
    )


def on_duckdb(source: Source, classification: Classification) -> pa.Table:
    schema = source.classified_schema(classification)
    table = pa.Table.from_batches(source.read(classification), schema=schema)
    return table.combine_chunks()


def on_spark(spark: SparkSession, table: pa.Table, classification: Classification) -> pa.Table:
    """The classified events as a worker receives them."""
    from estero.plan.division import Division
    from estero.spark.batch.tasks import whole
    from estero.spark.frames import classified_schema, laid_out
    from estero.spark.work import classified_batch

    frame = spark.createDataFrame(table).coalesce(1)
    laid = laid_out(frame, classification, every=False)
    crossed = whole(laid, Division(by_key=False), None).toArrow().combine_chunks()
    schema = classified_schema(frame.schema, classification, ordinals=False)
    (batch,) = crossed.to_batches()
    return pa.Table.from_batches([classified_batch(batch, schema, 0)], schema=schema)


def assert_in_order(found: pa.Table, values: Sequence[Value], rows: Sequence[dict[str, Any]]) -> None:
    """The columns of values compare as the values themselves do, as the reference says."""
    for number, each in enumerate(values):
        integers, known = as_integers(found[f"__value{number}"].combine_chunks())
        assert integers.dtype == np.int64
        wanted = [
            evaluate_expression(each.expression, Event(row["type"], row))
            if row["type"] in each.types
            else None
            for row in rows
        ]
        assert known.tolist() == [one is not None for one in wanted]
        for (a, one), (b, other) in product(zip(integers, wanted, strict=True), repeat=2):
            if one is None or other is None:
                continue
            assert (a == b) == compare("=", one, other), (each, one, other)
            if each.hashed is None:
                assert (a < b) == compare("<", one, other), (each, one, other)


# --------------------------------------------------------------------------------------- every engine


def test_values_on_duckdb_are_in_order() -> None:
    found = on_duckdb(open_source(TABLE, EventLayout.of(type="type")), asking(VALUES))
    assert_in_order(found, VALUES, TABLE.to_pylist())


@pytest.mark.parametrize("zone", ["UTC", "America/Santiago"])
def test_values_on_spark_are_in_order(spark: SparkSession, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    found = on_spark(spark, TABLE, asking(VALUES))
    spark.conf.set("spark.sql.session.timeZone", before or "UTC")
    assert_in_order(found, VALUES, TABLE.to_pylist())


@given(streams(min_size=1))
def test_values_of_random_events_are_in_order(events: list[Event]) -> None:
    values = (value("n"), value("x", types=("A", "B")), value("s", 0), value("x * 2.0"), value("time"))
    source = open_source(to_table(events), EventLayout.of(type="type"))
    classification = Classification(
        (EventPredicate(("A", "B", "C")),), source.schema, type_column="type", values=values
    )
    assert_in_order(on_duckdb(source, classification), values, to_table(events).to_pylist())


def test_the_two_hashes_of_a_string_are_independent() -> None:
    values = (value("s", 0), value("s", 1))
    found = on_duckdb(open_source(TABLE, EventLayout.of(type="type")), asking(values))
    one, other = (as_integers(found[f"__value{number}"].combine_chunks())[0] for number in (0, 1))
    assert not (one[:7] == other[:7]).any()


# -------------------------------------------------------------------------------------------- floats


@given(st.floats(), st.floats())
def test_floats_as_integers_are_in_order(one: float, other: float) -> None:
    (a, b), _ = as_integers(pa.array([one, other]))
    assert (a == b) == compare("=", one, other)
    assert (a < b) == compare("<", one, other)


def test_every_nan_is_the_same_and_the_largest() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000000], np.uint64)
    (one, other, infinity), known = as_integers(pa.array(bits.view(np.float64)))
    assert one == other > infinity
    assert known.all()


# ------------------------------------------------------------------------------- types, times, columns


def test_values_stand_after_the_bits_and_are_not_kept() -> None:
    source = open_source(TABLE, EventLayout.of(type="type"))
    classification = asking((value("f"), value("i")), keys=(("b",),))
    schema = source.classified_schema(classification)
    assert schema.names == [
        *("__position", "__time", "__key0", "__key1", "__bits0", "__value0", "__value1", "i"),
    ]
    assert [schema.field(name).type for name in ("__value0", "__value1")] == [pa.float64(), pa.int64()]
    assert EventStore(schema).schema.names == ["__position", "__time", "i"]


def test_an_event_of_another_type_is_not_asked() -> None:
    statement = classify_sql(asking((value("f"),)), "events")
    assert 'CAST(CASE WHEN "type" = \'A\' THEN "f" END AS DOUBLE) AS "__value0"' in statement
    source = open_source(TABLE.drop_columns(["type"]), EventLayout.of(only_type="A"))
    values = (value("i"), value("i", types=("B",)))
    found = on_duckdb(
        source, Classification((EventPredicate(("A",)),), source.schema, None, "A", values=values)
    )
    assert found["__value0"].to_pylist() == [*INTEGERS, 1]
    assert found["__value1"].null_count == found.num_rows


def test_timestamps_have_the_ticks_of_the_time_column() -> None:
    table = pa.table({"t": pa.array([10**9 + 1, 2 * 10**9], pa.timestamp("ns")), "u": TIMES[3:5]})
    source = open_source(table, EventLayout.of(time="t"))
    everything = (EventPredicate(("Event",)),)
    values = (value("t", types=("Event",)), value("u", types=("Event",)))
    found = on_duckdb(source, Classification(everything, source.schema, values=values))
    assert found["__value0"].to_pylist() == found["__time"].to_pylist() == [10**9 + 1, 2 * 10**9]
    moment = pa.scalar(TIMES[3], pa.timestamp("us")).value * 1000
    assert found["__value1"].to_pylist() == [moment, moment]


# -------------------------------------------------------------------------------------------- screened


def named(text: str) -> tuple[EventPredicate, ...]:
    return (EventPredicate(("A",), Comparison("=", Attribute("s"), Literal(text))),)


def test_screened_events_have_the_same_values() -> None:
    source = open_source(TABLE, EventLayout.of(type="type"))
    classification = asking(VALUES, named("a"), payload=())
    assert source._screen(classification) is not None
    quick = on_duckdb(source, classification)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source, "_screen", lambda *_: None)
        slow = on_duckdb(source, classification)
    assert quick["__position"].to_pylist() == [1, 8]
    assert quick.equals(slow)


@pytest.mark.parametrize("screened", [True, False])
def test_a_number_that_does_not_fit_is_an_error_in_relevant_events_only(screened: bool) -> None:
    table = pa.table({"type": ["A", "A"], "s": ["a", "b"], "i": pa.array([1, 2**64 - 1], pa.uint64())})
    with pytest.MonkeyPatch.context() as patch:
        if not screened:
            patch.setattr(Source, "_screen", lambda *_: None)
        source = open_source(table, EventLayout.of(type="type"))
        first, second = (asking((value("i"),), named(text), payload=()) for text in "ab")
        assert on_duckdb(source, first)["__value0"].to_pylist() == [1]
        with pytest.raises(DataError, match="a number does not fit into 64 bits"):
            on_duckdb(source, second)
