"""Each engine in turn, for what means the same on all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from classify.everywhere import Evaluate, on_duckdb, on_rows, on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_ON_SPARK = [pytest.param(name, marks=pytest.mark.spark) for name in ("spark", "spark-otherwise-set")]


@pytest.fixture(params=["duckdb", "rows", *_ON_SPARK])
def evaluate(request: pytest.FixtureRequest) -> Iterator[Evaluate]:
    """Expressions on the engine of the test; Spark also in another zone and without its ANSI mode."""
    if request.param in {"duckdb", "rows"}:
        yield on_duckdb if request.param == "duckdb" else on_rows
        return
    spark: SparkSession = request.getfixturevalue("spark")
    changed = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/Santiago"}
    before = {name: spark.conf.get(name) for name in changed}
    for name in changed if request.param == "spark-otherwise-set" else ():
        spark.conf.set(name, changed[name])
    yield on_spark(spark)
    for name, value in before.items():
        if value is not None:
            spark.conf.set(name, value)
