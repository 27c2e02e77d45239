"""A set of rules on Spark: tasks give what this process gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import estero
from estero.recognize.rules.conditions import dispatch
from estero.spark import recognize
from estero.spark.batch import rules as on_spark
from estero.spark.batch.rules import passes_of
from spark.frames import in_any_order, with_events

pytestmark = pytest.mark.spark

EVENTS = pa.table(
    {
        "kind": ["A", "B", "C", "A", "B"] * 8,
        "t": list(range(40)),
        "n": [1, 1, 2, 2] * 10,
        "m": [1, 2] * 20,
        "x": [3, 7] * 20,
    }
)
LAYOUT: dict[str, Any] = {"type": "kind", "time": "t", "time_unit": "s"}
KEYED = "SELECT * WHERE A AS a ; B AS b FILTER b[x > {}] PARTITION BY n WITHIN 9 SECONDS"
RULES = {
    "low": KEYED.format(1),
    "joined": "SELECT * WHERE A AS a ; B AS b FILTER a.n = b.m WITHIN 8 SECONDS",
    "high": KEYED.format(5),
    "short": "SELECT MAX * WHERE A AS a ; B AS b WITHIN 4 SECONDS",
    "long": "SELECT * WHERE A AS a ; C AS c WITHIN 7 SECONDS",
    "direct": "SELECT * WHERE A AS a : B AS b PARTITION BY n",
    "absent": "SELECT * WHERE B AS b ; NOT(C) FOR 2 SECONDS PARTITION BY n",
}


def test_tasks_give_the_complex_events_of_all_rules(spark: SparkSession) -> None:
    rules = estero.rules(RULES)
    rows = recognize(spark.createDataFrame(EVENTS), rules, **LAYOUT, partitions=2)
    right = rules.run(EVENTS, **LAYOUT)
    assert min(right.counts().values()) > 0
    assert rows.columns == right.schema.names
    expected = [tuple(map(repr, row.values())) for row in right.to_dicts()]
    assert sorted(tuple(map(repr, row)) for row in rows.collect()) == sorted(expected)


def test_without_positions_rules_show_the_columns_that_order_events(spark: SparkSession) -> None:
    rules, events = estero.rules(RULES), EVENTS.append_column("id", pa.array(range(40, 80)))
    rows = recognize(
        spark.createDataFrame(events), rules, **LAYOUT, order=["id"], positions=False, partitions=2
    )
    right = rules.run(EVENTS, **LAYOUT).to_arrow().to_pylist()
    expected = [with_events(row, events.to_pylist(), ("t", "id")) for row in right]
    assert in_any_order(rows.toArrow().to_pylist()) == in_any_order(expected)


def test_workers_may_dispatch_conditions(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "FEWEST", 1)
    monkeypatch.setattr(on_spark, "MANY", 1)
    pair = "SELECT * WHERE A AS a ; B AS b FILTER b[x > {}] WITHIN 4 SECONDS"
    named = "SELECT * WHERE B AS b FILTER b[place.name ILIKE '%{}' AND NOT coalesce(kind LIKE 'A%', FALSE)]"
    rules = estero.rules(
        {"low": pair.format(1), "high": pair.format(5), "one": named.format("x1"), "two": named.format("X2")}
    )
    events = EVENTS.append_column("place", pa.array([{"name": f"ax{n}"} for n in EVENTS["n"].to_pylist()]))
    rows = recognize(spark.createDataFrame(events), rules, **LAYOUT, partitions=2)
    right = rules.run(events, **LAYOUT)
    assert min(right.counts().values()) > 0
    expected = [tuple(map(repr, row.values())) for row in right.to_dicts()]
    assert sorted(tuple(map(repr, row)) for row in rows.collect()) == sorted(expected)


def test_what_is_for_one_query_is_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame(EVENTS)
    with pytest.raises(ValueError, match=r"^share is for one query: leave it out for a set of rules$"):
        recognize(frame, estero.rules(RULES), **LAYOUT, share=2)
    with pytest.raises(ValueError, match=r"^progress is for events in this process"):
        estero.rules(RULES).run(frame, **LAYOUT, progress=print)
    with pytest.raises(ValueError, match=r"^until is for rules that end with"):
        recognize(frame, estero.rules({"low": RULES["low"]}), **LAYOUT, until="end")
    stream = spark.readStream.format("rate").load()
    one = estero.rules({"low": "SELECT * WHERE A"})
    with pytest.raises(ValueError, match=r"^on a stream, one task numbers all events where rules show"):
        recognize(stream, one, time="timestamp", partitions=2)
    with pytest.raises(ValueError, match=r"^rules that may change show positions, as one task has all"):
        recognize(stream, Path("nowhere"), time="timestamp", positions=False)
    with pytest.raises(ValueError, match=r"^until is for batch DataFrames; on a stream, the watermark says"):
        recognize(stream, one, time="timestamp", until="end")
    with pytest.raises(ValueError, match=r"^lateness is for streaming DataFrames: a batch has all"):
        recognize(frame, one, **LAYOUT, lateness="1 second")
    with pytest.raises(ValueError, match=r"^a stream of rules needs a rule: add one to the set, or name a"):
        recognize(stream, estero.rules({}), time="timestamp")
    with pytest.raises(estero.DataError, match=r"there is no directory with rules"):
        recognize(stream, Path("nowhere"), time="timestamp")
    with pytest.raises(estero.QueryError, match="rule wrong"):
        recognize(frame, estero.rules({"wrong": "SELECT * WHERE A AS a FILTER a[zz > 1]"}), **LAYOUT)


def test_rules_that_are_divided_alike_share_a_pass() -> None:
    plans = estero.rules(RULES).explain(EVENTS, **LAYOUT).plans
    shared = [list(rules) for rules, _ in passes_of(plans)]
    assert shared == [["low", "high"], ["joined"], ["short", "long"], ["direct"], ["absent"]]


def test_a_set_without_rules_has_no_rows(spark: SparkSession) -> None:
    rows = recognize(spark.createDataFrame(EVENTS), estero.rules({}), **LAYOUT)
    assert rows.columns == ["rule", "start", "end", "start_time", "end_time", "keys", "positions"]
    assert rows.count() == 0
