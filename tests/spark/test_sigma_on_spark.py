"""Correlations of Sigma on Spark, whose aliases are another field in each rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import estero
from engines import SparkStream
from estero.spark import recognize
from queries.test_sigma import HOPS, hop

pytestmark = pytest.mark.spark

LAYOUT: dict[str, Any] = {"time": "t", "time_unit": "s"}


def test_an_alias_may_be_another_field_in_each_rule(spark: SparkSession, tmp_path: Path) -> None:
    query = estero.sigma(HOPS, logsource=False)
    hops = [hop(0, 22, "a", "b"), hop(1, 22, "c", "c"), hop(2, 80, "b", "e"), hop(3, 22, "f", "b")]
    events = pa.Table.from_pylist([*hops, hop(999, 80, "x", "x")])
    here = query.run(events, **LAYOUT).to_arrow().to_pylist()
    assert [row["host"] for row in here] == ["b"]
    rows = recognize(spark.createDataFrame(events), query, **LAYOUT, positions=True).collect()
    assert [row.asDict(recursive=True) for row in rows] == here
    streamed = SparkStream(spark, tmp_path).rows(query, events, LAYOUT)
    assert [(row["host"], row["start_time"], row["end_time"]) for row in streamed] == [("b", 0, 3)]
