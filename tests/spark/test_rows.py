"""One row for each marked event and label on Spark, as in this process but for the numbers of matches."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from estero.spark import collect, recognize
from waiting import FAR_OFF

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

QUERY = "SELECT * WHERE A AS a ; B? AS b ; C+ AS c PARTITION BY [k] WITHIN 20 [t]"
TIMED: dict[str, Any] = {"type": "type", "time": "t"}
EVENTS = pa.table(
    {
        "type": list("ABCACBCCAB"),
        "t": list(range(10)),
        "k": [1, 1, 1, 2, 2, 1, 1, 2, 1, 1],
        "price": [1.5, None, 2.5, None, 3.0, 3.5, None, 4.5, 5.0, None],
        "Label": [None, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        "match": list("abcdefghij"),
    }
)


def frame(spark: SparkSession, events: pa.Table = EVENTS) -> DataFrame:
    return spark.createDataFrame(events)


def in_groups(rows: Iterable[dict[str, Any]]) -> list[list[str]]:
    """The rows of each complex event, whatever its number, in an order of their own."""
    groups: dict[int, list[str]] = {}
    for row in rows:
        groups.setdefault(row["match"], []).append(str({**row, "match": None}))
    return sorted(sorted(group) for group in groups.values())


def test_the_rows_are_those_of_this_process(spark: SparkSession) -> None:
    here = estero.query(QUERY).run(EVENTS, **TIMED).rows()
    there = recognize(frame(spark), QUERY, **TIMED, positions=True, rows="events")
    assert [name.rstrip("_").lower() for name in there.columns] == [
        name.rstrip("_").lower() for name in here.schema.names
    ]
    wanted = [dict(zip(there.columns, row.values(), strict=True)) for row in here]
    found = [row.asDict() for row in there.collect()]
    assert in_groups(found) == in_groups(wanted)
    assert len({row["match"] for row in found}) == len({row["match"] for row in wanted}) == 10


def test_without_positions_events_are_told_apart_by_what_is_shown(spark: SparkSession) -> None:
    here = estero.query(QUERY).run(EVENTS, **TIMED).rows()
    there = recognize(frame(spark), QUERY, **TIMED, rows="events")
    assert "position" not in there.columns
    names = [name for name in here.schema.names if name != "position"]
    wanted = [
        dict(zip(there.columns, (row[name] for name in names), strict=True))
        for row in here.to_arrow().to_pylist()
    ]
    assert in_groups(row.asDict() for row in there.collect()) == in_groups(wanted)


@pytest.mark.parametrize("positions", [True, False])
def test_numbers_are_the_same_however_tasks_share_the_work(spark: SparkSession, positions: bool) -> None:
    options = {**TIMED, "positions": positions, "rows": "events"}
    once = recognize(frame(spark), QUERY, **options, partitions=1).collect()
    again = recognize(frame(spark).repartition(3), QUERY, **options, partitions=4).collect()
    assert sorted(map(str, once)) == sorted(map(str, again))


def test_a_number_is_the_hash_that_the_page_says(spark: SparkSession) -> None:
    one = "SELECT a[price] WHERE A AS a FILTER a[k = 2] PARTITION BY [k]"
    options: dict[str, Any] = {**TIMED, "rows": "events"}
    (placed,) = recognize(frame(spark), one, **options, positions=True).collect()
    (other,) = recognize(frame(spark), one, **options).collect()
    key, at = "CAST(2 AS BIGINT)", "CAST(3 AS BIGINT)"
    unplaced = f"{key}, {at}, {at}, 1, array(named_struct('p', CAST(NULL AS DOUBLE))), array(array(true))"
    (wanted,) = spark.sql(
        f"SELECT xxhash64({key}, {at}, {at}, {at}, {at}, 1, array({at})) AS p, xxhash64({unplaced}) AS n"
    ).collect()
    assert (placed["match"], other["match"]) == (wanted["p"], wanted["n"])


def test_a_null_here_is_not_a_null_there(spark: SparkSession) -> None:
    events = pa.table({"t": [1, 1], "x": [5, None], "y": [None, 5]})
    found = recognize(frame(spark, events), "SELECT Event WHERE Event", time="t", rows="events").collect()
    assert len({row["match"] for row in found}) == 2


def test_attributes_that_spark_cannot_hash_are_hashed_as_text(spark: SparkSession) -> None:
    df = spark.sql("SELECT 1 AS t, map('a', 1) AS m UNION ALL SELECT 1, map('a', 2)")
    found = recognize(df, "SELECT Event WHERE Event", time="t", rows="events").collect()
    assert len({row["match"] for row in found}) == 2


def test_without_labels_there_are_no_rows(spark: SparkSession) -> None:
    found = recognize(frame(spark), "SELECT NONE WHERE A ; B PARTITION BY [k]", **TIMED, rows="events")
    assert (found.columns, found.count()) == (["match", "label", "k"], 0)


def test_collected_complex_events_have_rows(spark: SparkSession, tmp_path: Path) -> None:
    found = collect(recognize(frame(spark), QUERY, **TIMED))
    found.rows().write(tmp_path / "rows.jsonl")
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert len(lines) == estero.query(QUERY).run(EVENTS, **TIMED).rows().to_arrow().num_rows
    assert '"labels"' not in lines[0]
    assert lines[0].startswith('{"match": ')


def test_streams_have_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    last = pa.table({name: [None] for name in EVENTS.column_names}, EVENTS.schema).to_pylist()[0]
    later = pa.Table.from_pylist([{**last, "type": "Z", "t": FAR_OFF}], EVENTS.schema)
    pyarrow.parquet.write_table(pa.concat_tables([EVENTS, later]), tmp_path / "in" / "0.parquet")
    batch = spark.read.parquet((tmp_path / "in").as_uri())
    stream = spark.readStream.schema(batch.schema).parquet((tmp_path / "in").as_uri())
    rows: list[Any] = []
    options: dict[str, Any] = {**TIMED, "rows": "events"}
    found = recognize(stream, QUERY, **options, partitions=2)
    sink = found.writeStream.foreachBatch(lambda part, _: rows.extend(part.collect()))
    sink = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    sink.start().awaitTermination()
    assert sorted(map(str, rows)) == sorted(map(str, recognize(batch, QUERY, **options).collect()))


def test_bad_requests_are_refused(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match=r"recognize\(\) takes 'events' or None as rows, not 'all'"):
        recognize(frame(spark), QUERY, **TIMED, rows="all")  # type: ignore[arg-type]
