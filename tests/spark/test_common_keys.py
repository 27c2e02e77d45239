"""On Spark, NULL keys match nothing either, and tasks share the keys that all events of an answer have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import estero
from classify.null_keys import EVENTS, QUERIES, keys_of
from estero.language.tree.schema import EventLayout
from estero.spark import recognize
from estero.spark.batch.batch import keyed
from estero.spark.work import Work, layout_of_schema
from spark.frames import in_any_order, without_positions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("name", QUERIES)
def test_null_keys_match_nothing_and_common_keys_are_shared(spark: SparkSession, name: str) -> None:
    text, attribute, common = QUERIES[name]
    query = estero.query(text)
    expected = without_positions(query.run(EVENTS, type="type", time="at").to_arrow().to_pylist())
    frame = spark.createDataFrame(EVENTS)
    rows = recognize(frame, query, type="type", time="at", partitions=2).toArrow().to_pylist()
    assert in_any_order(rows) == in_any_order(expected)
    assert all(None not in keys_of(row, attribute) for row in rows)
    plan = query.plan(layout_of_schema(frame.schema, EventLayout.of(type="type", time="at")))
    frame, plan = keyed(frame, plan)
    assert Work.of(frame.schema, plan, positions=False).division.by_key is common
