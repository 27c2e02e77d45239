"""The classified table: positions, times, keys and bits, by DuckDB and by Spark's expressions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estero.automata.cea import EventPredicate
from estero.classify.classify import Clauses, classify_sql, columns_of
from estero.classify.column_names import MAPPED_TYPE, WORD
from estero.classify.duckdb_dialect import DUCKDB
from estero.classify.spark_dialect import SPARK
from estero.events.sources import open_source
from estero.language.syntax.parser import parse_condition
from estero.language.tree.expressions import (
    And,
    Arithmetic,
    Attribute,
    Comparison,
    IsNull,
    Like,
    Literal,
    Node,
    Or,
)
from estero.language.tree.schema import EventLayout, Kind, Schema
from estero.plan.plan import Classification
from estero.reference.queries import Event, evaluate_predicate
from strategies.patterns import ATTRIBUTES, TYPES, predicates, streams, to_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

N = Attribute("n")
TABLE = pa.table(
    {
        "type": ["A", "B", None, "A", "C"],
        "n": [1, None, 3, -4, 5],
        "s": ["x", "y", "x", None, "x"],
        "x": [0.5, math.nan, -0.0, 0.0, None],
    }
)
SCHEMA = Schema(shared={"type": Kind.STRING, "n": Kind.INT, "s": Kind.STRING, "x": Kind.FLOAT})


def above(limit: int) -> Node:
    return Comparison(">", N, Literal(limit))


def classified(classification: Classification, table: pa.Table = TABLE) -> list[dict[str, Any]]:
    source = open_source(table, EventLayout.of(type=classification.type_column))
    return [row for batch in source.read(classification) for row in batch.to_pylist()]


def asking(*asked: EventPredicate, **more: Any) -> Classification:
    return Classification(asked, SCHEMA, **({"type_column": "type"} | more))


# -------------------------------------------------------------------------------------------- bits


def test_a_bit_is_set_only_where_type_and_condition_are_true() -> None:
    rows = classified(
        asking(
            EventPredicate(("A",)),
            EventPredicate(("A", "B"), above(0)),
            EventPredicate(("B",), IsNull(N)),
            EventPredicate(("C", "D"), Comparison("!=", N, Literal(5))),
        )
    )
    assert [(row["__position"], row["__bits0"]) for row in rows] == [(0, 0b11), (1, 0b100), (3, 0b01)]
    assert [row["__time"] for row in rows] == [0, 1, 3]


def test_without_a_type_column_events_have_the_only_type() -> None:
    both = (EventPredicate(("A",), above(2)), EventPredicate(("Other",), above(2)))
    rows = classified(asking(*both, type_column=None, only_type="A"))
    assert [(row["__position"], row["__bits0"]) for row in rows] == [(2, 1), (4, 1)]


@pytest.mark.parametrize("count", [0, 1, 62, 63, 64, 126, 127, 200])
def test_any_number_of_predicates_fits_into_words(count: int) -> None:
    asked = tuple(EventPredicate(("A",), Comparison("=", N, Literal(k))) for k in range(count))
    words = max(1, -(-count // WORD))
    source = open_source(pa.table({"n": range(count + 3)}), EventLayout.of(only_type="A"))
    found = list(source.read(Classification(asked, source.schema, only_type="A")))
    rows = [row for batch in found for row in batch.to_pylist()]
    assert len(rows) == count
    for k, row in enumerate(rows):
        bits = [row[f"__bits{word}"] for word in range(words)]
        assert f"__bits{words}" not in row
        assert bits == [1 << k % WORD if word == k // WORD else 0 for word in range(words)]


def test_irrelevant_events_stay_where_an_operator_needs_them() -> None:
    rows = classified(asking(EventPredicate(("C",)), keep_all=True, payload=("s",)))
    assert [(row["__position"], row["__bits0"], row["s"]) for row in rows] == [
        (0, 0, "x"),
        (1, 0, "y"),
        (2, 0, "x"),
        (3, 0, None),
        (4, 1, "x"),
    ]


def test_the_columns_come_in_their_order() -> None:
    classification = asking(EventPredicate(("A",)), keys=(("s",),), payload=("x", "n"))
    assert list(classified(classification)[0]) == [
        *("__position", "__time", "__key0", "__key1", "__bits0", "x", "n"),
    ]


# -------------------------------------------------------------------------------------------- keys


def halves(rows: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    return [(row["__key0"], row["__key1"]) for row in rows]


def test_a_single_integer_is_its_own_key() -> None:
    rows = classified(asking(EventPredicate(("A", "B", "C")), keys=(("n",),)))
    assert halves(rows) == [(1, 0), (2**64 - 4, 0), (5, 0)]
    assert [row["__position"] for row in rows] == [0, 3, 4]


def test_equal_keys_have_equal_hashes_and_others_have_others() -> None:
    table = pa.table({"s": ["a", "b", "a", "ab", ""], "r": ["b", "a", "b", "", "ab"], "n": [1, 2, 1, 2, 2]})
    source = open_source(table)
    for keys in ((("s",),), (("s",), ("r",)), (("s",), ("n",)), (("n",), ("s",))):
        classification = Classification((EventPredicate(("Event",)),), source.schema, keys=keys)
        found = halves([row for batch in source.read(classification) for row in batch.to_pylist()])
        assert found[0] == found[2]
        assert len(set(found)) == 4
        assert len({half for both in found for half in both}) == 8


def test_floats_that_are_equal_are_one_key() -> None:
    bits = [0x7FF8000000000000, 0xFFF8000000000001, 0x8000000000000000, 0, 0x3FF0000000000000]
    floats = pa.array(bits, pa.uint64()).view(pa.float64())
    found = halves(
        classified(asking(EventPredicate(("A",)), keys=(("x",),)), pa.table({"type": ["A"] * 5, "x": floats}))
    )
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert len(set(found)) == 3


def test_a_key_is_the_first_alternative_that_the_type_has() -> None:
    source = open_source(
        {
            "A": pa.table({"ticker": ["q", None], "symbol": ["r", "r"]}),
            "B": pa.table({"symbol": ["q", "r"]}),
            "C": pa.table({"n": [1]}),
        }
    )
    everything = (EventPredicate(("A", "B", "C")),)
    classification = Classification(
        everything, source.schema, source.type_column, keys=(("ticker", "symbol"),), payload=(MAPPED_TYPE,)
    )
    rows = [row for batch in source.read(classification) for row in batch.to_pylist()]
    assert [(row["__position"], row[MAPPED_TYPE]) for row in rows] == [(0, "A"), (2, "B"), (3, "B")]
    found = halves(rows)
    assert found[0] == found[1]
    assert found[1] != found[2]


def test_events_without_a_key_are_dropped_even_where_all_are_kept() -> None:
    rows = classified(asking(keys=(("s",), ("n",)), keep_all=True))
    assert [row["__position"] for row in rows] == [0, 2, 4]


# --------------------------------------------------------------------------------------- relevance


def test_the_prefilter_is_plain_and_leaves_out_what_may_fail() -> None:
    sum_above = Comparison(">", Arithmetic("+", N, Literal(1)), Literal(0))
    named = Comparison("=", Attribute("s"), Literal("x"))
    condition = Clauses(asking(EventPredicate(("A",), And((named, sum_above)))), SPARK).relevance()
    assert condition.startswith("(`type` = 'A' AND `s` = 'x') AND (CAST(CASE WHEN `type` = 'A' THEN")
    plain = Clauses(
        asking(EventPredicate(("A",), named), EventPredicate(("B",), above(3))), SPARK
    ).relevance()
    assert plain == "((`type` = 'A' AND `s` = 'x') OR (`type` = 'B' AND `n` > 3L))"
    either = Clauses(asking(EventPredicate(("A",), Or((named, sum_above)))), SPARK).relevance()
    assert either.startswith("(`type` = 'A') AND (CAST(")


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("at + 5 MINUTES > at", True),
        ("1 SECOND * x > 1 SECOND", True),
        ("1 SECOND / x > 1 SECOND", True),
        ("-(at - at) < 1 SECOND", True),
        ("at - at < 1 NANOSECOND", True),
        ("at - at < 1 SECOND", False),
        ("(at - at) / 1 SECOND < x", False),
        ("n % 2 = 0", False),
    ],
)
def test_durations_that_may_fail_are_no_part_of_the_prefilter(text: str, fails: bool) -> None:
    schema = Schema(shared={"type": Kind.STRING, "n": Kind.INT, "x": Kind.FLOAT, "at": Kind.TIMESTAMP})
    asked = Classification((EventPredicate(("A",), parse_condition(text)),), schema, "type")
    condition = Clauses(asked, DUCKDB).relevance()
    assert condition.startswith("(\"type\" = 'A') AND (CAST(" if fails else "(\"type\" = 'A' AND ")


def test_float_arithmetic_cannot_fail_and_is_part_of_the_prefilter() -> None:
    half = Comparison(">", Arithmetic("/", N, Literal(2)), Attribute("x"))
    assert "bits" not in Clauses(asking(EventPredicate(("A",), half)), DUCKDB).relevance()
    assert "/" in Clauses(asking(EventPredicate(("A",), half)), DUCKDB).relevance()


def test_the_statement_reads_as_it_is_meant() -> None:
    classification = Classification(
        (EventPredicate(("A",), Like(Attribute("s"), "a%")),),
        Schema(shared={"t": Kind.TIMESTAMP, "s": Kind.STRING}, time="t"),
        type_column="kind",
    )
    assert classify_sql(classification, "events") == (
        'SELECT "__position" AS "__position", EPOCH_US("t") AS "__time", '
        "CAST(CASE WHEN \"kind\" = 'A' THEN CASE WHEN \"s\" LIKE 'a%' ESCAPE '\\' THEN 1 ELSE 0 END "
        'ELSE 0 END AS BIGINT) AS "__bits0" '
        "FROM (SELECT *, row_number() OVER () - 1 AS __position FROM events) "
        "WHERE (\"kind\" = 'A' AND \"s\" LIKE 'a%' ESCAPE '\\')"
    )


def test_a_statement_can_sort_by_itself() -> None:
    table = pa.table({"t": [3, 1, 1, 2], "id": [0, 2, 1, 3]})
    source = open_source(table, EventLayout.of(time="t", order=["id"]))
    classification = Classification((), source.schema, order=("id",), keep_all=True, payload=("id",))
    assert "ORDER BY" in classify_sql(classification, "events", ordered=False)
    assert [row["id"] for batch in source.read(classification) for row in batch.to_pylist()] == [1, 2, 3, 0]


# ------------------------------------------------------------------------------------- every engine


def event_predicates() -> st.SearchStrategy[EventPredicate]:
    types = st.lists(st.sampled_from(TYPES), min_size=1, max_size=2, unique=True).map(tuple)
    return st.builds(EventPredicate, types, st.one_of(st.none(), predicates()))


def reference(asked: Sequence[EventPredicate], events: Sequence[Event]) -> list[tuple[int, int]]:
    """(position, bits) of the relevant events, as the reference semantics say."""
    found = []
    for position, event in enumerate(events):
        bits = sum(
            1 << k
            for k, each in enumerate(asked)
            if event.type in each.types
            and (each.condition is None or evaluate_predicate(each.condition, event) is True)
        )
        if bits:
            found.append((position, bits))
    return found


@given(st.lists(event_predicates(), min_size=1, max_size=8).map(tuple), streams(min_size=1))
def test_bits_on_duckdb_are_those_of_the_reference(
    asked: tuple[EventPredicate, ...], events: list[Event]
) -> None:
    source = open_source(to_table(events), EventLayout.of(type="type", time="time", time_unit="s"))
    batches = source.read(Classification(asked, source.schema, type_column="type"))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [(row["__position"], row["__bits0"]) for row in rows] == reference(asked, events)
    assert [row["__time"] for row in rows] == [events[row["__position"]].time for row in rows]


@settings(max_examples=6)
@given(st.lists(event_predicates(), min_size=5, max_size=20).map(tuple), streams(min_size=8))
def test_bits_on_spark_are_those_of_the_reference(
    spark: SparkSession, asked: tuple[EventPredicate, ...], events: list[Event]
) -> None:
    numbered = to_table(events).append_column("__place", pa.array(range(len(events))))
    frame = spark.createDataFrame(numbered)
    columns = {name: SPARK.column_type(kind) for name, kind in frame.dtypes}
    classification = Classification(asked, Schema(shared=ATTRIBUTES, time="time"), type_column="type")
    clauses = Clauses(classification, SPARK, columns)
    words = clauses.bits()
    rows = (
        frame.where(clauses.relevance())
        .selectExpr("__place", *(f"{sql} AS {name}" for name, sql in words.items()))
        .toArrow()
        .sort_by("__place")
        .to_pylist()
    )
    assert [(row["__place"], row["__bits0"]) for row in rows] == reference(asked, events)


def test_keys_and_times_on_spark_are_64_bits(spark: SparkSession) -> None:
    table = pa.table({"t": [1, 2, 3], "s": ["a", "b", "a"], "k": [7, None, 7]})
    frame = spark.createDataFrame(table)
    columns = {name: SPARK.column_type(kind) for name, kind in frame.dtypes}
    schema = Schema(shared={name: column.kind for name, column in columns.items()}, time="t")
    classification = Classification((), schema, keys=(("s",), ("k",)), keep_all=True)
    clauses = Clauses(classification, SPARK, columns)
    keys, time = clauses.keys(), clauses.time()
    chosen = frame.where(clauses.relevance())
    rows = chosen.selectExpr(f"{time} AS t", *keys.values()).toArrow().sort_by("t")
    first, second = (list(row.values()) for row in rows.to_pylist())
    assert [first[0], second[0]] == [1, 3]
    assert first[1:] == second[1:]
    assert first[1] != first[2]
    assert rows.schema.types == [pa.int64()] * 3


def test_columns_of_a_schema_are_read_in_their_own_form() -> None:
    schema = Schema(types={"A": {"n": Kind.INT}, "B": {"s": Kind.STRING}}, closed=True)
    columns = columns_of(Classification((), schema, type_column="kind"))
    assert {name: column.kind for name, column in columns.items()} == {
        "n": Kind.INT,
        "s": Kind.STRING,
        "kind": Kind.STRING,
    }
    assert all(column.cast is None for column in columns.values())
