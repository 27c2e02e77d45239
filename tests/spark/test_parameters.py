"""Values for parameters on Spark: short lists are written, long ones are looked up, also in streams."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import estero
from engines import SparkStream
from estero.spark import recognize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LAYOUT: dict[str, Any] = {"type": "type", "time": "time"}
BEGUN = datetime(2024, 1, 1, tzinfo=UTC)
EVENTS = pa.table(
    {
        "type": [*list("AABAABBAAB"), "C"],
        "time": [BEGUN + timedelta(minutes=each) for each in (*range(10), 500)],
        "k": [1, 2, 3, None, 5, 6, 7, 8, 9, 10, 0],
        "x": [0.5, 1.0, -0.0, 2.5, None, float("nan"), 3.0, 4.0, 5.0, 6.0, 0.0],
        "s": ["a", "b'\\", "é", None, "a", '"', "b'\\", "é", "x", "a", "c"],
    }
)
MANY = range(100, 3_000)


def queries() -> list[estero.Query]:
    """Queries with lists, each one short and one long."""
    text = "SELECT A, B WHERE A ; B FILTER A[{} IN $v] AND B[{} NOT IN $w] WITHIN $length"
    lists: list[tuple[str, list[Any], list[Any]]] = [
        ("k", [1, 2, 9], [7]),
        ("x", [1.0, 4.0], [6]),
        ("s", ["a", "b'\\", "é"], ['"']),
        ("time", [BEGUN, BEGUN + timedelta(minutes=7)], [BEGUN + timedelta(minutes=9)]),
    ]
    further: dict[str, list[Any]] = {
        "s": [f"'{each}\\" for each in MANY],
        "time": [BEGUN + timedelta(hours=each) for each in MANY],
    }
    made = []
    for name, inside, outside in lists:
        more = further.get(name, list(MANY))
        query = estero.query(text.format(name, name)).bind(length="5 minutes")
        made += [query.bind(v=inside, w=outside), query.bind(v=[*inside, *more], w=[*outside, *more])]
    return made


def shown(rows: list[dict[str, Any]]) -> list[str]:
    kept = [{name: row[name] for name in ("start_time", "end_time")} for row in rows]
    return sorted(map(repr, kept))


@pytest.mark.parametrize("query", queries(), ids=lambda each: str(each)[36:80])
def test_a_job_looks_values_up_as_this_process_does(spark: SparkSession, query: estero.Query) -> None:
    wanted = shown(query.run(EVENTS, **LAYOUT).to_arrow().to_pylist())
    frame = spark.createDataFrame(EVENTS).repartition(2)
    assert shown(recognize(frame, query, **LAYOUT, partitions=2).toArrow().to_pylist()) == wanted
    assert wanted


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], list(MANY)], ids=["short", "long"])
def test_a_stream_does(spark: SparkSession, tmp_path: Path, more: list[int]) -> None:
    timed = EVENTS.select(["type", "k"]).append_column("time", pa.array(range(EVENTS.num_rows)))
    query = estero.query("SELECT A, B WHERE A ; B FILTER A[k IN $v] AND B[k NOT IN $w] WITHIN 5 [time]")
    query = query.bind(v=[1, 2, 9, *more], w=[7, *more])
    wanted = shown(query.run(timed, **LAYOUT).to_arrow().to_pylist())
    assert shown(SparkStream(spark, tmp_path).rows(query, timed, LAYOUT)) == wanted
