"""What SELECT computes has the same values and types on every engine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import estero
from engines import Engine
from estero.spark import recognize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = pa.table(
    {
        "kind": ["A", "B", "B", "A", "B"],
        "user": ["u", "u", "u", "v", "v"],
        "n": pa.array([1, 2, None, 4, 5], pa.int64()),
        "x": [1.5, 2.0, 2.5, 3.0, 4.0],
        "s": ["a", "b", "c", "d", "b"],
        "ts": pa.array(range(5), pa.int64()),
    }
)
LAYOUT = {"type": "kind", "time": "ts", "time_unit": "s"}
PATTERN = "WHERE A AS a ; (B AS b)+ PARTITION BY [user]"


def shown(engine: Engine, select: str, names: list[str], pattern: str = PATTERN) -> list[tuple[Any, ...]]:
    """The values of some columns, in order of their texts."""
    rows = engine.rows(f"SELECT {select} {pattern}", EVENTS, LAYOUT)
    return sorted((tuple(row[name] for name in names) for row in rows), key=str)


def test_aggregates_are_columns(engine: Engine) -> None:
    select = (
        "count(b) AS c, sum(b.n) AS total, avg(b.x) AS mean, min(b.s) AS least, max(b.x) AS most, "
        "list(b.n) AS all_n, median(b.x) AS middle, count(DISTINCT b.s) AS d, sum(b.x * b.x) AS squares"
    )
    names = ["user", "c", "total", "mean", "least", "most", "all_n", "middle", "d", "squares"]
    assert shown(engine, select, names) == sorted(
        [
            ("u", 1, 2, 2.0, "b", 2.0, [2], 2.0, 1, 4.0),
            ("u", 2, 2, 2.25, "b", 2.5, [2, None], 2.25, 2, 10.25),
            ("u", 1, None, 2.5, "c", 2.5, [None], 2.5, 1, 6.25),
            ("v", 1, 5, 4.0, "b", 4.0, [5], 4.0, 1, 16.0),
        ],
        key=str,
    )


def test_expressions_over_them_are_columns_beside_labels(engine: Engine) -> None:
    select = (
        "a[n], duration AS lasted, upper(user) AS loud, last(b.ts) - a.ts AS gap, a.n * 2 AS twice, "
        "CASE WHEN count(b) > 1 THEN 'many' ELSE 'one' END AS words, duration > 1 SECOND AS long, "
        "coalesce(sum(b.n), 0) AS total"
    )
    names = ["lasted", "loud", "gap", "twice", "words", "long", "total"]
    assert shown(engine, select, names) == sorted(
        [
            (1, "U", 1, 2, "one", False, 2),
            (2, "U", 2, 2, "many", True, 2),
            (2, "U", 2, 2, "one", True, 0),
            (1, "V", 1, 8, "one", False, 5),
        ],
        key=str,
    )


def test_times_are_timestamps_and_durations_here_and_on_spark(spark: SparkSession) -> None:
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    times = pa.array([begin + timedelta(seconds=each) for each in range(5)], pa.timestamp("us", "UTC"))
    events = EVENTS.set_column(EVENTS.column_names.index("ts"), "ts", times)
    query = f"SELECT duration AS lasted, max(b.ts) AS last, date_trunc('day', a.ts) AS day {PATTERN}"
    here = estero.query(query).run(events, type="kind", time="ts").to_arrow().drop_columns(["start", "end"])
    there = recognize(spark.createDataFrame(events), query, type="kind", time="ts").toArrow()
    assert there.column_names == here.column_names
    rows = sorted(map(str, here.to_pylist()))
    assert rows == sorted(map(str, there.cast(here.schema).to_pylist()))
    first = here.to_pylist()[0]
    assert first["lasted"] == timedelta(seconds=1)
    assert (first["last"], first["day"]) == (begin + timedelta(seconds=1), begin)


def test_of_no_event_they_are_null_and_the_count_is_zero(engine: Engine) -> None:
    select = (
        "count(a) AS c, count(a.n) AS known, sum(a.n) AS total, first(a.s) AS s, list(a.x) AS xs, a.x AS x"
    )
    pattern = "WHERE B AS b OR (A AS a ; B AS b FILTER b[n = 5])"
    names = ["c", "known", "total", "s", "xs", "x"]
    assert shown(engine, select, names, pattern) == sorted(
        [(0, 0, None, None, None, None)] * 3 + [(1, 1, 1, "a", [1.5], 1.5), (1, 1, 4, "d", [3.0], 3.0)],
        key=str,
    )


def test_an_overflow_is_an_error(engine: Engine) -> None:
    with pytest.raises(Exception, match=r"64-bit integer|64 bits"):
        engine.rows(f"SELECT sum(b.n * 4611686018427387904) AS big {PATTERN}", EVENTS, LAYOUT)


def test_an_average_of_large_integers_does_not_overflow(engine: Engine) -> None:
    events = EVENTS.append_column("h", pa.array([0, 2**63 - 1, 2**63 - 1, 0, -7], pa.int64()))
    events = events.append_column("l", pa.array([0, -(2**63), -(2**63), 0, 8], pa.int64()))
    rows = engine.rows(f"SELECT avg(b.h) AS high, avg(b.l) AS low {PATTERN}", events, LAYOUT)
    found = sorted((row["low"], row["high"]) for row in rows)
    assert found == [(-(2.0**63), 2.0**63)] * 3 + [(8.0, -7.0)]


OF_NULL = (
    *("a.z", "min(b.z)", "max(b.z)", "first(b.z)", "last(b.z)", "sum(b.z)", "avg(b.z)", "stddev(b.z)"),
    *("median(b.z)", "coalesce(a.z, a.z)", "a.z + 1", "-a.z", "date_trunc('day', a.z)", "min(length(b.z))"),
    *("CASE WHEN a.z THEN a.z END", "a.z = 1", "a.z[1]", "first(b.z.f)", "CAST(a.z AS STRING)"),
)


def test_of_a_column_that_is_all_null_they_are_null(engine: Engine) -> None:
    events = EVENTS.append_column("z", pa.nulls(5))
    items = [f"{each} AS c{place}" for place, each in enumerate(OF_NULL)]
    items += [
        "list(b.z) AS zs",
        "count(b.z) AS n",
        "count(DISTINCT b.z) AS d",
        "a.z IS NULL AS missing",
        "b[z]",
    ]
    rows = engine.rows(f"SELECT {', '.join(items)} {PATTERN}", events, LAYOUT)
    names = [f"c{place}" for place in range(len(OF_NULL))]
    assert [[row[name] for name in names] for row in rows] == [[None] * len(names)] * 4
    assert {(row["n"], row["d"], row["missing"]) for row in rows} == {(0, 0, True)}
    assert sorted(map(str, (row["zs"] for row in rows))) == [*["[None, None]"], *["[None]"] * 3]
