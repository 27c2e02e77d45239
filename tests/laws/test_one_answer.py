"""The same queries over the same stream, on every engine: the answers of the reference semantics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engines import Engine, SparkBatch, SparkStream
from laws.one_answer import EVENTS, HOW, QUERIES, expected, found

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONJUNCTIVE = "Q(x) <- A(k: x) AS a, B(k: x) AS b, C(k: x) AS c WITHIN 4 [time]"
"""What the joined query asks for."""
IN_ONE_TASK = ("keys, places", "ranges", "shares", "one order", "correlated by key")
ON_STREAMS = ("keys", "keys, places", "keys, forgotten", "ranges, places", "one order", "correlated by key")
"""One for each way in which streams are divided or count; `spark/test_stopped.py` has all, without Spark."""


@pytest.mark.parametrize("name", QUERIES)
def test_every_engine_finds_what_the_reference_finds(bounded_engine: Engine, name: str) -> None:
    assert found(bounded_engine.rows(QUERIES[name], EVENTS, HOW)) == expected(name)


@pytest.mark.spark
@pytest.mark.parametrize("name", IN_ONE_TASK)
def test_one_task_on_spark_does(spark: SparkSession, name: str) -> None:
    assert found(SparkBatch(spark, 1).rows(QUERIES[name], EVENTS, HOW)) == expected(name)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", ON_STREAMS)
def test_a_stream_on_spark_does(spark: SparkSession, tmp_path: Path, name: str) -> None:
    assert found(SparkStream(spark, tmp_path).rows(QUERIES[name], EVENTS, HOW)) == expected(name)


def test_a_conjunctive_query_finds_what_the_join_of_all_finds(bounded_engine: Engine) -> None:
    """It is the joined query above, written otherwise."""
    assert found(bounded_engine.rows(CONJUNCTIVE, EVENTS, HOW)) == expected("joined")
