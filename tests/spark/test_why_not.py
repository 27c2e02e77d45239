"""Why not more, asked of events on Spark."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

import estero
from estero.errors import DataError, QueryError
from estero.spark import why_not
from estero.testing import events

pytestmark = pytest.mark.spark

QUERY = "SELECT * WHERE a ; b FILTER b.v > 60 PARTITION BY [k] WITHIN 1 MINUTE"
STREAM = "a(k=1,v=1)@0s b(k=1,v=59.5)@5s b(k=2,v=70)@6s b(k=1,v=80)@90s"
HOW: dict[str, Any] = {"type": "type", "time": "time"}


def test_it_says_the_same_as_in_this_process(spark: SparkSession) -> None:
    table = events(STREAM)
    frame = spark.createDataFrame(table.to_pandas().sample(frac=1, random_state=1)).repartition(3)
    here = estero.query(QUERY).run(table, **HOW).why_not()
    assert why_not(frame, QUERY, **HOW) == here
    assert [(each.kind, each.events) for each in here.reasons] == [
        ("condition", 1),
        ("key", 1),
        ("window", 1),
    ]


def test_the_first_events_are_looked_at(spark: SparkSession) -> None:
    frame = spark.createDataFrame(events(STREAM))
    assert why_not(frame, QUERY, **HOW, sample=2).came == 1
    with pytest.raises(ValueError, match="sample"):
        why_not(frame, QUERY, **HOW, sample=0)


def test_what_it_cannot_be_asked_of(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(DataError, match="this one is streaming"):
        why_not(stream, "SELECT * WHERE Event", time="timestamp")
    with pytest.raises(QueryError, match="no attribute w"):
        why_not(spark.createDataFrame(events(STREAM)), "SELECT * WHERE a FILTER a.w > 1", **HOW)
