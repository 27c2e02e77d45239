"""What Spark found, in this process: the columns, the order and the files of an answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from estero import demo
from estero.spark import collect, recognize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from estero.spark.batch.collected import Collected

pytestmark = pytest.mark.spark

QUERY = estero.query(demo.QUERY)


def found(spark: SparkSession, *, positions: bool) -> Collected:
    events = spark.createDataFrame(demo.events())
    return collect(recognize(events, QUERY, type="kind", time="time", order=["id"], positions=positions))


def in_process() -> estero.Answer:
    return QUERY.run(demo.events(), type="kind", time="time", order=["id"])


def test_with_positions_the_rows_and_the_columns_are_those_of_an_answer(spark: SparkSession) -> None:
    there, here = found(spark, positions=True), in_process().to_arrow()
    table = pa.Table.from_batches(there.batches(), there.schema)
    assert table.schema.names == here.schema.names
    assert table.schema.field("damp").metadata == here.schema.field("damp").metadata
    assert sorted(map(str, table.to_pylist())) == sorted(map(str, here.to_pylist()))


def test_labels_that_differ_in_case_only_are_columns_of_their_own(spark: SparkSession) -> None:
    events = pa.table({"kind": ["A", "B", "A", "B"], "ts": [1, 2, 5, 90]})
    text = "SELECT * WHERE A AS a ; B AS b WITHIN 10 [ts]"
    frame = recognize(spark.createDataFrame(events), text, type="kind", time="ts", positions=True)
    assert frame.columns == ["start", "end", "start_time", "end_time", "A", "a_", "B", "b_"]
    assert [row.a_[0].ts for row in frame.select("a_").collect()] == [1]
    there, here = collect(frame), estero.query(text).run(events, type="kind", time="ts").to_arrow()
    table = pa.Table.from_batches(there.batches(), there.schema)
    assert table.schema.names == here.schema.names
    assert table.to_pylist() == here.to_pylist()


def test_rows_come_in_order_of_their_ends(spark: SparkSession) -> None:
    rows = [row for batch in found(spark, positions=True).batches() for row in batch.to_pylist()]
    ends = [row["end"] for row in rows]
    assert ends == sorted(ends)
    times = [
        row["end_time"] for batch in found(spark, positions=False).batches() for row in batch.to_pylist()
    ]
    assert times == sorted(times)


def test_rows_are_counted_and_limited(spark: SparkSession) -> None:
    whole = found(spark, positions=False)
    assert whole.count() == 45
    assert whole.limit(7).count() == 7
    assert sum(batch.num_rows for batch in whole.limit(7).batches()) == 7


def test_files_hold_what_those_of_an_answer_hold(spark: SparkSession, tmp_path: Path) -> None:
    found(spark, positions=True).write(tmp_path / "spark.jsonl", positions=True)
    in_process().write(tmp_path / "here.jsonl", positions=True)
    lines = [sorted((tmp_path / f"{name}.jsonl").read_text().splitlines()) for name in ("spark", "here")]
    assert lines[0] == lines[1]
    found(spark, positions=False).write(tmp_path / "spark.parquet")
    assert pa.parquet.read_table(tmp_path / "spark.parquet").num_rows == 45
