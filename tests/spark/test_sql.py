"""The table function of Spark SQL: what it finds, its columns, and what it says of mistakes."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException

import estero
from estero.errors import DataError
from estero.spark import recognize, register
from estero.spark.failures import jobs
from spark.frames import in_any_order, parquet_frame, without_positions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

AFTER = "SELECT a, b WHERE A AS a ; B AS b"
HOW: dict[str, Any] = {"type": "kind", "time": "t", "order": ["place"]}


def trades(number: int = 300, seed: int = 11) -> pa.Table:
    draw = random.Random(seed)
    rows = [
        {
            "kind": draw.choice("AABBC"),
            "t": n // 2,
            "name": draw.choice(["x", "y", "z", None]),
            "price": draw.choice([None, 1.5, 2.5]),
            "place": n,
        }
        for n in range(number)
    ]
    return pa.Table.from_pylist(rows)


@pytest.fixture
def sql(spark: SparkSession) -> Callable[[str], DataFrame]:
    """Statements with `recognize`, over a view ``trades`` of several partitions in no order."""
    spark.createDataFrame(trades()).repartition(5, "price").createOrReplaceTempView("trades")
    register(spark)
    return spark.sql


def in_process(query: str, table: pa.Table | None = None, **how: Any) -> list[dict[str, Any]]:
    found = estero.query(query).run(trades() if table is None else table, **(how or HOW)).to_arrow()
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def plan_of(found: DataFrame) -> str:
    """What Spark is going to do, as `explain` prints it."""
    plan: str = found._jdf.queryExecution().executedPlan().toString()
    return plan


def rows_of(found: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = found.toArrow().to_pylist()
    return rows


# ------------------------------------------------------------------------------------------- answers


def test_sql_partitions_and_orders(sql: Callable[[str], DataFrame]) -> None:
    found = sql(
        f"SELECT * FROM recognize(TABLE(trades) PARTITION BY name ORDER BY (t, place),"
        f" '{AFTER} WITHIN 9 [t]', type => 'kind')"
    )
    assert found.columns == ["start_time", "end_time", "a", "b"]
    expected: list[dict[str, Any]] = []
    for name in ("x", "y", "z", None):
        mine = [row for row in trades().to_pylist() if row["name"] == name]
        table = pa.Table.from_pylist(mine, schema=trades().schema)
        expected += in_process(f"{AFTER} WITHIN 9 [t]", table, **HOW)
    assert in_any_order(rows_of(found)) == in_any_order(without_positions(expected))


@pytest.mark.parametrize(
    "query",
    [
        f"{AFTER} PARTITION BY [name] WITHIN 9 [t]",
        "SELECT a[price], b WHERE A AS a : B AS b FILTER a[price > 2] PARTITION BY [name]",
        f"{AFTER} PARTITION BY [name] WITHIN 9 EVENTS",
        f"{AFTER} PARTITION BY [name] WITHIN 50 [t] CONSUME BY ANY",
        "SELECT NEXT a, b WHERE START(A AS a ; B AS b) PARTITION BY [name]",
    ],
)
def test_a_query_with_keys_partitions_and_orders_by_itself(
    sql: Callable[[str], DataFrame], query: str
) -> None:
    call = f"TABLE(trades), '{query}', type => 'kind', time => 't', order => array('place')"
    assert in_any_order(rows_of(sql(f"SELECT * FROM recognize({call})"))) == in_any_order(
        without_positions(in_process(query))
    )
    with_positions = sql(f"SELECT * FROM recognize({call}, positions => true)")
    assert in_any_order(rows_of(with_positions)) == in_any_order(in_process(query))


@pytest.mark.parametrize(
    "query",
    [
        f"{AFTER} WITHIN 30 EVENTS",
        "SELECT a, b WHERE A AS a ; B AS b FILTER a.name = b.name WITHIN 20 [t]",
        "SELECT a, b WHERE A AS a ALL B AS b FILTER a.name = b.name AND a.price = b.price WITHIN 9 [t]",
    ],
)
def test_one_order_is_a_single_partition(sql: Callable[[str], DataFrame], query: str) -> None:
    found = sql(
        "SELECT * FROM recognize(events => TABLE(trades) WITH SINGLE PARTITION ORDER BY (t, place),"
        f" query => '{query}', type => 'kind', time => 't', positions => true)"
    )
    assert in_any_order(rows_of(found)) == in_any_order(in_process(query))


def test_columns_are_typed_as_those_of_recognize(spark: SparkSession) -> None:
    register(spark)
    at = [datetime(2024, 3, 31, 0, second, tzinfo=UTC) for second in range(3)]
    df = spark.createDataFrame(
        [("A", at[0], b"1", [1]), ("B", at[1], None, [])],
        "kind string, `at b` timestamp, blob binary, l array<int>",
    )
    df.createOrReplaceTempView("typed")
    text = f"{AFTER} WITHIN 10 MINUTES"
    found = spark.sql(
        f"SELECT * FROM recognize('{text}', TABLE(typed) WITH SINGLE PARTITION ORDER BY `at b`,"
        " type => 'kind')"
    )
    expected = recognize(df, text, type="kind", time="at b")
    assert found.schema == expected.schema
    assert found.collect() == expected.collect()


@pytest.mark.parametrize("positions", [True, False])
def test_rows_are_those_of_recognize(
    spark: SparkSession, sql: Callable[[str], DataFrame], positions: bool
) -> None:
    query = "SELECT a, b[price] WHERE A AS a ; B AS b PARTITION BY [name] WITHIN 9 [t]"
    found = sql(
        f"SELECT * FROM recognize(TABLE(trades), '{query}', type => 'kind', order => array('place'),"
        f" rows => 'events', positions => {positions})"
    )
    wanted = recognize(spark.table("trades"), query, **HOW, rows="events", positions=positions)
    assert found.columns == wanted.columns

    def groups(df: DataFrame) -> list[list[str]]:
        together: dict[int, list[str]] = {}
        for row in rows_of(df):
            together.setdefault(row["match"], []).append(str({**row, "match": None}))
        return sorted(map(sorted, together.values()))

    assert groups(found) == groups(wanted) != []
    assert sorted(map(str, rows_of(found))) == sorted(map(str, rows_of(found)))


def test_an_empty_table_has_no_complex_events(sql: Callable[[str], DataFrame]) -> None:
    none = "TABLE(SELECT * FROM trades WHERE false)"
    assert sql(f"SELECT * FROM recognize({none}, '{AFTER} PARTITION BY [name]', type => 'kind')").count() == 0


def test_what_is_found_is_a_table_like_others(sql: Callable[[str], DataFrame]) -> None:
    found = sql(
        "SELECT name, count(*) AS number FROM recognize(TABLE(trades), "
        f"'{AFTER} PARTITION BY [name] WITHIN 9 [t]', type => 'kind', time => 't', order => 'place')"
        " GROUP BY name ORDER BY name"
    )
    rows = in_process(f"{AFTER} PARTITION BY [name] WITHIN 9 [t]")
    names = [row["name"] for row in rows]
    assert [(row.name, row.number) for row in found.collect()] == [
        (name, names.count(name)) for name in ("x", "y", "z")
    ]


# ----------------------------------------------------------------------------- what reaches Python


@pytest.mark.parametrize(
    ("table", "query", "before"),
    [
        ("TABLE(trades)", f"{AFTER} PARTITION BY [name] WITHIN 9 [t]", "Scan"),
        ("TABLE(trades)", f"{AFTER} PARTITION BY [name] WITHIN 9 [t] CONSUME BY ANY", "Scan"),
        ("TABLE(trades) PARTITION BY name ORDER BY (t, place)", f"{AFTER} WITHIN 9 [t]", "Sort"),
    ],
)
def test_irrelevant_events_are_dropped_in_the_jvm(
    spark: SparkSession, tmp_path: Path, table: str, query: str, before: str
) -> None:
    register(spark)
    parquet_frame(spark, trades(), tmp_path / "trades.parquet").createOrReplaceTempView("trades")
    found = spark.sql(f"SELECT * FROM recognize({table}, '{query}', type => 'kind', time => 't')")
    listed = re.findall(r"^[ :]*\+- (?:\*\(\d+\) )?(?:File)?(\w+)", plan_of(found), re.MULTILINE)
    operators = [name for name in listed if name != "Project"]
    assert operators[-operators[::-1].index("Generate")] == before
    assert in_any_order(rows_of(found))


def test_where_positions_count_irrelevant_events_are_there(sql: Callable[[str], DataFrame]) -> None:
    query = f"{AFTER} PARTITION BY [name] WITHIN 9 EVENTS"
    found = sql(f"SELECT * FROM recognize(TABLE(trades), '{query}', type => 'kind', time => 't')")
    assert "explode" not in plan_of(found)


@pytest.mark.parametrize(
    ("table", "partitioned"),
    [
        ("TABLE(trades)", " PARTITION BY [name]"),
        ("TABLE(trades) WITH SINGLE PARTITION ORDER BY (t, place)", ""),
    ],
)
def test_a_condition_may_be_checked_in_python(
    sql: Callable[[str], DataFrame], table: str, partitioned: str
) -> None:
    query = f"{AFTER} FILTER a[name ~ '^(x|yz)*(x|y)$']{partitioned} WITHIN 9 [t]"
    order = ", order => 'place'" if partitioned else ""
    found = sql(f"SELECT * FROM recognize({table}, \"{query}\", type => 'kind', time => 't'{order})")
    assert "estero_matches" in plan_of(found)
    assert in_any_order(rows_of(found)) == in_any_order(without_positions(in_process(query)))


def test_an_irrelevant_event_needs_no_time(spark: SparkSession) -> None:
    register(spark)
    spark.sql(
        "SELECT * FROM VALUES ('A', 1L), ('X', CAST(NULL AS bigint)), ('B', 2L) AS t(kind, t)"
    ).createOrReplaceTempView("timeless")
    call = f"recognize(TABLE(timeless) WITH SINGLE PARTITION, '{AFTER}', time => 't', type => 'kind')"
    (row,) = spark.sql(f"SELECT * FROM {call}").collect()
    assert (row.start_time, row.end_time) == (1, 2)


# ------------------------------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "TABLE(trades), 'SELECT * WHERE A AS a FILTER a[prise > 1]', type => 'kind'",
            r"QueryError: .*prise.*\n.*1 \| SELECT \* WHERE A AS a FILTER a\[prise > 1\]\n +\| +\^+\n",
        ),
        ("TABLE(trades), 'SELECT * WHERE A AS a ;'", r"QueryError: [^^]*\n +\| +\^"),
        (
            "TABLE(trades), 'SELECT * WHERE A AS a', type => 'kind', rows => 'event'",
            r"DataError: rows => … is 'events', or left out for complex events, not 'event'",
        ),
        (
            "TABLE(trades), '{after}', time => 'tt'",
            "DataError: there is no time column 'tt'\n +hint: did you mean t",
        ),
        (
            "TABLE(trades), '{after}', typ => 'kind'",
            "recognize has no option 'typ'\n +hint: did you mean type",
        ),
        ("TABLE(trades), '{after}', order => 3", "order => … is a string, or an array of strings, not 3"),
        ("TABLE(trades), '{after}', TYPE => 7", "type => … is a string, not 7"),
        ("TABLE(trades), '{after}', positions => 'no'", "positions => … is true or false, not 'no'"),
        ("TABLE(trades), '{after}', 'kind'", "recognize takes a table and the text of a query"),
        ("'{after}'", "recognize takes a table and the text of a query"),
        ("TABLE(trades), 7", "the query must be a constant string: Spark plans by it before any row"),
    ],
)
def test_a_mistake_is_told_when_the_statement_is_analyzed(
    sql: Callable[[str], DataFrame], arguments: str, said: str
) -> None:
    with pytest.raises(AnalysisException, match=said):
        sql(f"SELECT * FROM recognize({arguments.format(after=AFTER)})")


def test_keys_are_said_in_the_query_or_in_the_statement(sql: Callable[[str], DataFrame]) -> None:
    with pytest.raises(AnalysisException, match="please remove these clauses"):
        sql(
            "SELECT * FROM recognize(TABLE(trades) PARTITION BY name ORDER BY (t),"
            f" '{AFTER} PARTITION BY [name]', type => 'kind', time => 't')"
        )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "TABLE(trades) PARTITION BY (name)",
            "the rows are not in order of 't', the time column\n +hint: write ORDER BY \\(t\\) after TABLE",
        ),
        (
            "TABLE(SELECT /*+ REPARTITION(3) */ * FROM trades)",
            "the rows of the table are in several tasks, and each would see only a part of the stream",
        ),
    ],
)
def test_rows_out_of_order_or_apart_are_refused(
    sql: Callable[[str], DataFrame], arguments: str, said: str
) -> None:
    time = "" if "REPARTITION" in arguments else "t"
    statement = f"SELECT * FROM recognize({arguments}, '{AFTER}', type => 'kind', time => '{time}')"
    with pytest.raises(DataError, match=said), jobs():
        sql(statement).collect()
    with pytest.raises(PythonException, match=said):
        sql(statement).collect()


def test_a_row_without_a_time_is_an_error(spark: SparkSession) -> None:
    register(spark)
    spark.sql("SELECT 'A' AS kind, CAST(NULL AS bigint) AS t").createOrReplaceTempView("timeless")
    call = "recognize(TABLE(timeless) WITH SINGLE PARTITION, 'SELECT * WHERE A', time => 't', type => 'kind')"
    with pytest.raises(DataError, match=r"^the time of an event is NULL$"), jobs():
        spark.sql(f"SELECT * FROM {call}").collect()
