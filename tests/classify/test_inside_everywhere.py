"""Fields of structs and elements of lists have the same values on every engine."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import estero
from engines import Engine
from estero.spark import recognize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2024, 1, 1, 12)  # noqa: DTZ001 - a clock without a zone
LATER = datetime(2025, 1, 1)  # noqa: DTZ001
PROCESS = pa.struct(
    [
        ("name", pa.string()),
        ("pid", pa.int32()),
        ("Odd name", pa.struct([("of.it", pa.list_(pa.int64())), ("at", pa.timestamp("us"))])),
    ]
)
EVENTS = pa.table(
    {
        "kind": ["A", "B", "B", "A", "B"],
        "process": pa.array(
            [
                {"name": "x", "pid": 1, "Odd name": {"of.it": [5, 6], "at": NOON}},
                {"name": "x", "pid": 2, "Odd name": None},
                {"name": None, "pid": 1, "Odd name": {"of.it": [], "at": None}},
                None,
                {"name": "y", "pid": 1, "Odd name": {"of.it": None, "at": LATER}},
            ],
            PROCESS,
        ),
        "tags": pa.array([["a", "b"], ["c"], [], None, [None, "d"]], pa.list_(pa.string())),
        "ts": pa.array(range(5), pa.int64()),
    }
)
LAYOUT = {"type": "kind", "time": "ts", "time_unit": "s"}


def test_values_of_single_events_are_these(engine: Engine) -> None:
    select = (
        'x.process.pid AS pid, x.process.pid * 2 AS twice, x.process."Odd name"."of.it"[2] AS deep, '
        'year(x.process."Odd name".at) AS year, x.tags[1] AS tag, coalesce(x.process.name, x.tags[2]) AS name'
    )
    rows = engine.rows(f"SELECT {select} WHERE (A OR B) AS x", EVENTS, LAYOUT)
    names = ["pid", "twice", "deep", "year", "tag", "name"]
    assert sorted((tuple(row[name] for name in names) for row in rows), key=repr) == sorted(
        [
            (1, 2, 6, 2024, "a", "x"),
            (2, 4, None, None, "c", "x"),
            (1, 2, None, None, None, None),
            (None, None, None, None, None, None),
            (1, 2, None, 2025, None, "y"),
        ],
        key=repr,
    )


CASES = [
    ("SELECT x.ts AS v WHERE (A OR B) AS x FILTER contains(x.tags, 'd') OR x[contains(tags, 'b')]", [0, 4]),
    ("SELECT x.ts AS v WHERE (A OR B) AS x FILTER NOT contains(x.tags, 'd')", [0, 1, 2]),
    ("SELECT x.ts AS v WHERE A AS x ; B AS y FILTER contains(x.tags, y.tags[1])", []),
    (
        'SELECT contains(x.process."Odd name"."of.it", 5.5 - 0.5) AS v WHERE (A OR B) AS x',
        [True, False, *[None] * 3],
    ),
    ("SELECT x.ts AS v WHERE B AS x FILTER x[process.name = 'y' AND tags[1] IS NULL AND tags[2] = 'd']", [4]),
    ("SELECT y.ts AS v WHERE A AS x ; B AS y FILTER x.process.pid = y.process.pid", [2, 4]),
    ("SELECT y.ts AS v WHERE A AS x ; B AS y FILTER x.process.pid < y.process.pid", [1]),
    ("SELECT y.ts AS v WHERE A AS x ; B AS y FILTER x.tags[2] != y.tags[1] AND x.process.pid > 0", [1]),
    ("SELECT process.pid * 10 AS v WHERE A AS x ; B AS y PARTITION BY process.pid", [10, 10]),
    ("SELECT y.ts AS v WHERE (A AS x ; B AS y PARTITION BY [x.process.pid, y.process.pid]) ; B", [2]),
    ("SELECT count(DISTINCT x.process.name) AS v WHERE B{3} AS x", [2]),
    ("SELECT list(x.tags[1]) AS v WHERE B{3} AS x", [["c", None, None]]),
    ("SELECT last(x.process.pid) AS v WHERE B{2} AS x FILTER prev(x.process.pid) > x.process.pid", [1, 1]),
    ("SELECT sum(x.process.pid + 1) AS v WHERE B{2} AS x FILTER sum(x.process.pid) = 2", [4]),
]


@pytest.mark.parametrize(("query", "values"), CASES)
def test_conditions_keys_and_aggregates_read_them(
    bounded_engine: Engine, query: str, values: list[Any]
) -> None:
    found = [row["v"] for row in bounded_engine.rows(query, EVENTS, LAYOUT)]
    assert sorted(found, key=repr) == sorted(values, key=repr)


def test_keys_and_shown_fields_have_columns_of_their_names(engine: Engine) -> None:
    (row,) = engine.rows(
        "SELECT x[process.pid, tags], y[tags[1]] WHERE A AS x ; B AS y PARTITION BY [process.name]",
        EVENTS,
        LAYOUT,
    )
    assert row["process.name"] == "x"
    (x,), (y,) = row["x"], row["y"]
    assert (x["process.pid"], x["tags"], y["tags[1]"]) == (1, ["a", "b"], "c")


def test_types_of_events_may_have_different_fields() -> None:
    left = pa.table({"p": [{"a": 1, "s": "x"}], "ts": [1]})
    right = pa.table({"p": [{"b": 2.5, "a": 1.0}], "ts": [2]})
    answer = estero.query(
        "SELECT x.p.s AS s, y.p.s AS no, y.p.b AS b WHERE L AS x ; R AS y "
        "FILTER x.p.a = y.p.a AND x.p.b IS NULL"
    ).run({"L": left, "R": right}, time="ts")
    assert [(row["s"], row["no"], row["b"]) for row in answer.to_dicts()] == [("x", None, 2.5)]


def test_fields_that_differ_in_case_only_are_refused() -> None:
    events = pa.table({"p": pa.array([{"a": 1, "A": 2}]), "ts": [1]})
    with pytest.raises(estero.DataError, match="the fields 'a' and 'A' of a struct differ in case only"):
        estero.query("SELECT x.p.a AS v WHERE Event AS x").run(events, time="ts").to_arrow()


@pytest.mark.spark
def test_spark_refuses_a_field_that_it_would_replace(spark: SparkSession) -> None:
    df = spark.createDataFrame(pa.table({"p": [{"${a}": 1}], "ts": [1]}))
    with pytest.raises(estero.DataError, match="which Spark replaces"):
        recognize(df, 'SELECT x.p."${a}" AS v WHERE Event AS x', time="ts", time_unit="s")
