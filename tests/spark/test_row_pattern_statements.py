"""MATCH_RECOGNIZE in statements of Spark SQL: what it finds, its types, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import estero
import estero.spark
from estero import DataError, EsteroWarning, QueryError
from estero.language.row_patterns.tree import Choice, Repetition, RowPattern, Skip, Variable
from estero.language.row_patterns.tree import Sequence as PatternSequence
from estero.spark.row_patterns.work import check_zone
from laws.test_row_pattern_laws import ALL, ONE, can_be_said, clause_of, is_accepted, table_of
from strategies.row_patterns import NAMES, Condition, Row, conditions, partitions, row_patterns, skips

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:the alternative")]

TIDE = pa.table(
    {
        "gauge": ["north"] * 6 + ["south"] * 4,
        "hour": [1, 2, 3, 4, 5, 6, 1, 2, 3, 4],
        "level": [5, 3, 2, 4, 6, 1, 7, 7, 2, 9],
    }
)
EBB = "DEFINE ebb AS level < PREV(level), flood AS level > PREV(level)"
ANY = "PATTERN (a+) DEFINE a AS TRUE"
LOWS = f"""MATCH_RECOGNIZE (PARTITION BY gauge ORDER BY hour
    MEASURES FIRST(hour) AS since, LAST(ebb.level) AS low, count(*) AS n PATTERN (high ebb+ flood+) {EBB})"""


def rows(spark: SparkSession, text: str, **tables: object) -> list[tuple[Any, ...]]:
    """The rows of a statement over the tide, or over other tables, in some order."""
    frame = estero.spark.sql(spark, text, **(tables or {"tide": TIDE}))
    return sorted(map(tuple, frame.collect()), key=str)


def refused(spark: SparkSession, text: str, **tables: object) -> str:
    with pytest.raises((QueryError, DataError)) as raised:
        estero.spark.sql(spark, text, **(tables or {"tide": TIDE})).collect()
    return str(raised.value)


# ------------------------------------------------------------------------------- the statement around it


def test_a_clause_gives_the_rows_that_it_gives_in_this_process(spark: SparkSession) -> None:
    text = f"SELECT * FROM tide {LOWS}"
    assert rows(spark, text) == [("north", 1, 2, 5), ("south", 2, 2, 3)]
    assert estero.spark.sql(spark, text, tide=TIDE).columns == ["gauge", "since", "low", "n"]
    in_process = estero.sql(text, tide=TIDE).to_arrow()
    assert estero.spark.sql(spark, text, tide=TIDE).toArrow().sort_by("since") == in_process


def test_what_stands_around_is_sql_of_spark(spark: SparkSession) -> None:
    spark.createDataFrame(TIDE).createOrReplaceTempView("tide_view")
    text = f"""
        WITH lows AS (SELECT * FROM tide_view {LOWS} AS m), names AS (
            SELECT * FROM VALUES ('north', '{{N}}'), ('south', "it's") AS v(gauge, short))
        SELECT short, low, `n` + 1 AS one_more, transform(array(n), x -> x * 2)[0] AS twice
        FROM lows JOIN names USING (gauge) WHERE low < 3"""
    assert sorted(map(tuple, estero.spark.sql(spark, text).collect())) == [
        ("it's", 2, 4, 6),
        ("{N}", 2, 6, 10),
    ]
    spark.catalog.dropTempView("tide_view")


def test_several_clauses_one_behind_the_other_and_in_subqueries(spark: SparkSession) -> None:
    again = "MATCH_RECOGNIZE (ORDER BY since MEASURES sum(n) AS total PATTERN (a+) DEFINE a AS TRUE)"
    text = f"""
        SELECT total, (SELECT count(*) FROM (SELECT * FROM tide WHERE level > 1) {LOWS}) AS lows
        FROM (SELECT * FROM tide {LOWS}) {again}"""
    assert rows(spark, text) == [(Decimal(8), 2)]
    assert rows(spark, f"SELECT total FROM tide {LOWS} {again}") == [(Decimal(8),)]


def test_tables_that_are_given_hide_no_views_and_leave_none(spark: SparkSession) -> None:
    spark.sql("SELECT 7 AS other").createOrReplaceTempView("tide")
    before = {table.name for table in spark.catalog.listTables()}
    frame = estero.spark.sql(spark, f"WITH t AS (SELECT * FROM tide) SELECT n FROM t {LOWS}", tide=TIDE)
    assert {table.name for table in spark.catalog.listTables()} == before
    assert spark.table("tide").columns == ["other"]
    assert sorted(row.n for row in frame.collect()) == [3, 5]
    spark.catalog.dropTempView("tide")


def test_a_statement_without_the_clause_is_left_to_spark(spark: SparkSession) -> None:
    assert rows(spark, "SELECT max(level) FROM tide") == [(9,)]
    frame = spark.createDataFrame(TIDE).where("hour > 2")
    assert rows(spark, "SELECT min(hour) AS h FROM shown", shown=frame) == [(3,)]


def test_results_can_be_written_by_a_command(spark: SparkSession, tmp_path: Any) -> None:
    spark.createDataFrame(TIDE).createOrReplaceTempView("tide_view")
    path = tmp_path / "lows"
    text = f"INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT * FROM tide_view {LOWS}"
    estero.spark.sql(spark, text)
    assert spark.read.parquet(str(path)).count() == 2
    spark.catalog.dropTempView("tide_view")


def test_nothing_is_computed_before_it_is_asked_for(spark: SparkSession) -> None:
    text = """SELECT * FROM (SELECT raise_error('read') AS x) MATCH_RECOGNIZE (
        ORDER BY x MEASURES count(*) AS n PATTERN (a) DEFINE a AS x IS NOT NULL)"""
    frame = estero.spark.sql(spark, text)
    with pytest.raises(DataError, match="read"):
        frame.collect()


# ------------------------------------------------------------------------------- keys, names and types


def test_keys_are_expressions_and_nulls_come_last(spark: SparkSession) -> None:
    table = pa.table({"k": [1, 2, 3, 4, 5], "t": [2.0, None, 1.0, 7.0, 0.0]})
    text = """SELECT * FROM t MATCH_RECOGNIZE (
        PARTITION BY k % 2, t IS NULL ORDER BY -t {} MEASURES array_agg(k) AS ks
        PATTERN (a+) DEFINE a AS TRUE)"""
    assert estero.spark.sql(spark, text.format(""), t=table).columns == ["k % 2", "t IS NULL", "ks"]
    assert rows(spark, text.format(""), t=table) == [
        (0, False, [4]),
        (0, True, [2]),
        (1, False, [1, 3, 5]),
    ]
    ordered = f"SELECT ks FROM t MATCH_RECOGNIZE (ORDER BY {{}} MEASURES array_agg(k) AS ks {ANY})"
    for order, ks in (
        ("t", [5, 3, 1, 4, 2]),
        ("t DESC", [4, 1, 3, 5, 2]),
        ("t NULLS FIRST", [2, 5, 3, 1, 4]),
    ):
        assert rows(spark, ordered.format(order), t=table) == [(ks,)]


def test_names_may_be_quoted_and_have_any_letters(spark: SparkSession) -> None:
    table = pa.table({"Größe ": [1, 2, 3], "a`b": ["x", "x", "y"], "left": [1, 1, 1]})
    text = """SELECT `größter Wert`, `b``c` FROM `zählung` MATCH_RECOGNIZE (
        PARTITION BY `a``b` ORDER BY `Größe `
        MEASURES max(`größer`.`größe `) AS `größter Wert`, CLASSIFIER() AS `b``c`, LAST(left) AS l
        PATTERN (`größer`+ ende?) DEFINE `größer` AS `größer`.`Größe ` < 3 AND 'it\\'s' <> "b\\"")"""
    assert rows(spark, text, zählung=table) == [(2, "größer")]


def test_types_are_those_of_duckdb_as_spark_has_them(spark: SparkSession) -> None:
    noon = datetime(2024, 5, 1, 12)  # noqa: DTZ001 - a time without a zone
    table = pa.table(
        {
            "at": pa.array([noon, noon + timedelta(hours=36)], pa.timestamp("us")),
            "zoned": pa.array([noon, noon + timedelta(hours=36)], pa.timestamp("us", "UTC")),
            "day": pa.array([date(2024, 5, 1), date(2024, 5, 2)]),
            "cost": pa.array([Decimal("1.50"), Decimal("2.25")], pa.decimal128(10, 2)),
            "took": pa.array([timedelta(seconds=1), timedelta(days=2)], pa.duration("us")),
            "place": pa.array([{"x": 1, "y": [1.5]}, {"x": 2, "y": None}]),
            "raw": pa.array([b"a", b"b"]),
        }
    )
    text = """SELECT * FROM t MATCH_RECOGNIZE (ORDER BY at MEASURES
            LAST(at) AS at, LAST(zoned) AS zoned, LAST(day) AS day, sum(cost) AS cost, LAST(took) AS took,
            LAST(at) - FIRST(at) AS between, LAST(place.x) AS x, LAST(place) AS place, LAST(raw) AS raw,
            count(*) AS n, sum(place.x) AS total, NULL AS nothing, array_agg(day) AS days, avg(cost) AS mean
        PATTERN (a b) DEFINE b AS at > PREV(at) + INTERVAL 1 DAY AND day = DATE '2024-05-02')"""
    frame = estero.spark.sql(spark, text, t=table)
    assert [field.dataType.simpleString() for field in frame.schema] == [
        *("timestamp_ntz", "timestamp", "date", "decimal(38,2)", "interval day to second"),
        *("interval day to second", "bigint", "struct<x:bigint,y:array<double>>", "binary"),
        *("bigint", "decimal(38,0)", "string", "array<date>", "double"),
    ]
    later = noon + timedelta(hours=36)
    (row,) = frame.toArrow().to_pylist()
    assert row["zoned"] == later.replace(tzinfo=UTC)
    del row["zoned"]
    assert list(row.values()) == [
        *(later, date(2024, 5, 2), Decimal("3.75"), timedelta(days=2), timedelta(hours=36), 2),
        *({"x": 2, "y": None}, b"b", 2, Decimal(3), None, [date(2024, 5, 1), date(2024, 5, 2)], 1.875),
    ]


def test_spellings_of_spark_mean_what_they_mean_there(spark: SparkSession) -> None:
    text = """SELECT * FROM tide MATCH_RECOGNIZE (PARTITION BY gauge ORDER BY hour MEASURES
            CAST(count(*) AS STRING) AS n, collect_list(hour) AS hours, array(FIRST(hour), 9)[0] AS since,
            "text" AS quoted, collect_list(CLASSIFIER())[1] AS second
        PATTERN (high ebb) DEFINE ebb AS level < PREV(level))"""
    assert rows(spark, text) == [
        ("north", "2", [1, 2], 1, "text", "ebb"),
        ("north", "2", [5, 6], 5, "text", "ebb"),
        ("south", "2", [2, 3], 2, "text", "ebb"),
    ]


def test_a_table_without_rows_has_the_columns(spark: SparkSession) -> None:
    frame = estero.spark.sql(spark, f"SELECT * FROM tide {LOWS}", tide=TIDE.slice(0, 0))
    assert frame.collect() == []
    assert frame.dtypes == [("gauge", "string"), ("since", "bigint"), ("low", "bigint"), ("n", "bigint")]


def test_rows_are_counted_where_no_column_is_read(spark: SparkSession) -> None:
    text = f"SELECT n FROM tide MATCH_RECOGNIZE (ORDER BY hour MEASURES count(*) AS n {ANY})"
    assert rows(spark, text) == [(10,)]


def test_zeros_are_one_partition_and_nan_another(spark: SparkSession) -> None:
    table = pa.table({"k": [0.0, -0.0, float("nan"), float("nan"), None], "t": [1, 2, 3, 4, 5]})
    text = """SELECT n FROM t MATCH_RECOGNIZE (
        PARTITION BY k ORDER BY t MEASURES count(*) AS n PATTERN (a+) DEFINE a AS TRUE)"""
    assert rows(spark, text, t=table) == [(1,), (2,), (2,)]


# ------------------------------------------------------------------------------- what is wrong


def test_mistakes_in_the_clause_have_a_caret(spark: SparkSession) -> None:
    said = refused(
        spark, "SELECT * FROM tide MATCH_RECOGNIZE (MEASURES 1 AS x PATTERN (a b{3,2}) DEFINE c AS TRUE)"
    )
    assert "the lower bound 3 is larger than the upper bound 2" in said
    assert "hint: write {2,3}" in said
    said = refused(
        spark,
        f"SELECT * FROM tide MATCH_RECOGNIZE (ORDER BY hour MEASURES LAST(depth) AS d {ANY})",
    )
    assert "there is no column 'depth' in the input" in said
    assert "^^^^^" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"SELECT nothing FROM tide {LOWS}", "the statement around MATCH_RECOGNIZE: A column"),
        (f"SELEC n FROM tide {LOWS}", "tables can be given to a query only"),
        (f"SELECT * FROM nowhere {LOWS}", "the input of MATCH_RECOGNIZE: The table or view `nowhere`"),
        (
            f"SELECT * FROM tide {LOWS} WHERE )",
            "the statement around MATCH_RECOGNIZE: Syntax error at or near",
        ),
        (f"CREATE TEMP VIEW v AS SELECT * FROM tide {LOWS}", "a view of SQL cannot have MATCH_RECOGNIZE"),
        ("SELECT nothing FROM tide", "the statement: A column"),
        (
            f"SELECT * FROM tide {LOWS.replace('level < PREV', 'level + PREV')}",
            "the condition of ebb has the type BIGINT, not BOOLEAN",
        ),
    ],
)
def test_what_spark_refuses_is_an_error_of_estero(spark: SparkSession, text: str, message: str) -> None:
    said = refused(spark, text)
    assert message in said
    assert "_pyspark_" not in said


def test_columns_that_cannot_be_read_are_named(spark: SparkSession) -> None:
    source = "(SELECT INTERVAL 1 MONTH AS months, 1 AS t)"
    clause = "MATCH_RECOGNIZE (ORDER BY t MEASURES {} AS m PATTERN (a) DEFINE a AS TRUE)"
    assert rows(spark, f"SELECT * FROM {source} {clause.format('LAST(t)')}") == [(1,)]
    assert "column 'months': values of this type cannot be read" in refused(
        spark, f"SELECT * FROM {source} {clause.format('LAST(months)')}"
    )
    assert "an INTERVAL inside of a list or struct" in refused(
        spark, f"SELECT * FROM {source} {clause.format('array(INTERVAL 1 DAY)')}"
    )
    assert "an INTERVAL with months cannot go to Spark" in refused(
        spark, f"SELECT * FROM {source} {clause.format('INTERVAL 1 MONTH')}"
    )


def test_keys_that_cannot_be_read_are_refused(spark: SparkSession) -> None:
    measured = f"ORDER BY hour MEASURES count(*) AS n {ANY}"
    text = f"SELECT n FROM tide MATCH_RECOGNIZE (PARTITION BY {{}} {measured})"
    assert "values of type interval year cannot be keys of MATCH_RECOGNIZE" in refused(
        spark, text.format("make_ym_interval(hour) + INTERVAL 1 YEAR")
    ).replace("interval year to month", "interval year")
    assert "the input of MATCH_RECOGNIZE" in refused(spark, text.format("no_function(hour)"))


@pytest.mark.parametrize(("zone", "day"), [("UTC", 1), ("Asia/Tokyo", 2), ("+05:30", 2), ("-03:00", 1)])
def test_days_begin_in_the_zone_of_the_session(spark: SparkSession, zone: str, day: int) -> None:
    table = pa.table({"t": pa.array([datetime(2024, 5, 1, 19, tzinfo=UTC)], pa.timestamp("us", "UTC"))})
    text = f"SELECT d FROM t MATCH_RECOGNIZE (ORDER BY t MEASURES CAST(LAST(t) AS DATE) AS d {ANY})"
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert rows(spark, text, t=table) == [(date(2024, 5, day),)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_zone_that_duckdb_does_not_know_is_refused() -> None:
    with pytest.raises(DataError, match="the time zone 'Nowhere/City' of the session is not known to DuckDB"):
        check_zone("Nowhere/City")


def test_rows_without_an_answer_are_named_by_an_action(spark: SparkSession) -> None:
    text = """SELECT * FROM tide MATCH_RECOGNIZE (PARTITION BY gauge ORDER BY hour MEASURES count(*) AS n
        AFTER MATCH SKIP TO b PATTERN (a | b) DEFINE a AS level = 6, b AS FALSE)"""
    frame = estero.spark.sql(spark, text, tide=TIDE)
    for action in (frame.collect, frame.toArrow, frame.count, frame.show):
        with pytest.raises(DataError, match=r"no row matched to b.*starts at row 5 of the partition north"):
            action()


def test_the_order_of_the_table_is_taken_with_a_warning(spark: SparkSession) -> None:
    text = f"SELECT n FROM tide MATCH_RECOGNIZE (MEASURES count(*) AS n {ANY})"
    with pytest.warns(EsteroWarning, match="without ORDER BY"):
        frame = estero.spark.sql(spark, text, tide=TIDE)
    assert [tuple(row) for row in frame.collect()] == [(10,)]


def test_only_a_session_takes_statements() -> None:
    with pytest.raises(TypeError, match="a session of Spark"):
        estero.spark.sql("SELECT 1", "SELECT 1")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------- the law


@pytest.mark.slow
@settings(max_examples=20, phases=(Phase.generate,))  # a job for each step of shrinking would take minutes
@given(
    row_patterns,
    conditions,
    skips,
    st.lists(partitions, min_size=1, max_size=3),
    st.sampled_from((None, 1, 2)),
    st.sampled_from((ONE, ALL)),
)
def test_spark_finds_what_this_process_finds(
    spark: SparkSession,
    pattern: RowPattern,
    define: Mapping[str, Condition],
    skip: Skip,
    parts: Sequence[Sequence[Row]],
    within: int | None,
    measures: str,
) -> None:
    if measures == ALL:  # which reads all variables
        pattern = PatternSequence((pattern, Repetition(Choice(tuple(map(Variable, NAMES))), 0, 2)))
    assume(can_be_said(pattern, define, skip))
    per_match = "ALL ROWS PER MATCH" if measures == ALL else ""
    text = clause_of(pattern, define, skip, measures, per_match, within)
    assume(is_accepted(text))
    events = table_of(parts)
    in_spark = estero.spark.sql(spark, text.replace("[1]", "[0]"), events=events)  # its lists begin at 0
    try:
        expected = estero.sql(text, events=events).to_arrow()
    except DataError:
        with pytest.raises(DataError, match="SKIP"):
            in_spark.collect()
        return
    assert in_spark.columns == expected.column_names
    assert in_spark.toArrow().to_pylist() == expected.to_pylist()
