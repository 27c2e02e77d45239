"""Queries in EQL on Spark: lists, structs and cases of letters as in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import estero
from estero.spark import recognize
from queries.test_eql import FOUND, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "`@timestamp` timestamp, process struct<name: string, parent: struct<pid: bigint>>, "
    "event struct<category: string>, code string, size double, tags array<string>, ok boolean"
)
ASKED = [
    'any where tags : "b?" or process.name regex ".*\\\\.t.t"',
    'any where not process.name : "cmd*" and tags != "c"',
    'any where substring(process.name, -4) == ".exe" or indexOf(process.name, ".") == 1',
    'any where string(size) == "2.5" or code == 7 or process.parent.pid / 2 == 3',
]


@pytest.mark.parametrize("text", ASKED)
def test_spark_finds_the_same(spark: SparkSession, text: str) -> None:
    query, events = estero.eql(text), table()
    here = [ce["1"][0]["code"] for ce in query.run(events, time="@timestamp")]
    matches = recognize(spark.createDataFrame(events.to_pylist(), COLUMNS), query, time="@timestamp")
    assert [row["1"][0]["code"] for row in matches.collect()] == here
    assert here


def test_pipes_are_refused_on_spark(spark: SparkSession) -> None:
    (text,) = [text for text in FOUND if text.endswith("| head 1") and "ok" in text]
    with pytest.raises(estero.QueryError, match="head takes a part of a whole answer"):
        estero.eql(text).run(spark.createDataFrame([(1, True)], "n int, ok boolean"))
