"""Ids of answers on a stream: the same when a micro-batch is done again, and no other answer's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import estero
from estero.errors import DataError
from estero.spark import recognize
from spark.streams import files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LAYOUT: dict[str, Any] = {"type": "kind", "time": "t"}
SCHEMA = "kind STRING, t BIGINT, k BIGINT"
PAIRS = "SELECT A WHERE A ; B PARTITION BY [k] WITHIN 20 [t]"
NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"


def stream(spark: SparkSession, place: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(place.as_uri())


def run(found: DataFrame, checkpoint: Path) -> dict[int, list[dict[str, Any]]]:
    """The rows of micro-batches, until there are no more files."""
    rows: dict[int, list[dict[str, Any]]] = {}
    sink = found.writeStream.foreachBatch(
        lambda batch, number: rows.update({number: batch.toArrow().to_pylist()})
    )
    sink.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    return rows


def test_answers_that_look_alike_have_their_ids_again(spark: SparkSession, tmp_path: Path) -> None:
    """Each file has a B for two A of one time, twice; the second micro-batch is then taken for undone."""
    lot = [("A", 1, 1), ("A", 1, 1), ("B", 2, 1), ("B", 2, 1), ("A", 1, 2), ("B", 2, 2)]
    rows = [{"kind": kind, "t": t, "k": k} for shift in (0, 1) for kind, t, k in lot for t in [t + shift]]
    files(pa.Table.from_pylist(rows), tmp_path / "in", [len(lot)])
    spark.conf.set(NO_DATA, "false")
    try:
        found = recognize(stream(spark, tmp_path / "in"), PAIRS, **LAYOUT, answer_ids=True, late_events=True)
        first = run(found, tmp_path / "state")
        for name in ("1", ".1.crc"):
            (tmp_path / "state" / "commits" / name).unlink(missing_ok=True)
        again = run(found, tmp_path / "state")
    finally:
        spark.conf.set(NO_DATA, "true")
    ids = [row["match"]["answer_id"] for batch in first.values() for row in batch if row["match"]]
    assert len(set(ids)) == len(ids) > 10
    assert [sorted(map(str, again[number])) for number in again] == [sorted(map(str, first[1]))]
    assert len({str(row["match"] | {"answer_id": None}) for row in first[0]}) < len(first[0])


def test_what_has_no_ids_says_so(spark: SparkSession, tmp_path: Path) -> None:
    batch = spark.createDataFrame([("A", 1, 1)], SCHEMA)
    with pytest.raises(ValueError, match="answer_ids is for streaming DataFrames: a batch gives each"):
        recognize(batch, PAIRS, **LAYOUT, answer_ids=True)
    (tmp_path / "in").mkdir()
    df = stream(spark, tmp_path / "in")
    with pytest.raises(ValueError, match='answer_ids is for complex events, and rows="events" are of events'):
        recognize(df, PAIRS, **LAYOUT, answer_ids=True, rows="events")
    taken = "SELECT * WHERE A AS answer_id PARTITION BY [k]"
    with pytest.raises(DataError, match="answers have a column answer_id already, which answer_ids="):
        recognize(df, taken, **LAYOUT, answer_ids=True)
    rules = recognize(df, estero.rules({"pairs": PAIRS}), **LAYOUT, answer_ids=True)
    assert rules.columns[-1] == "answer_id"
