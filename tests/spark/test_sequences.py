"""Sequences by stages and samples on Spark: jobs and streams find what this process does."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import estero
from estero.spark import recognize
from spark.streams import files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LAYOUT: dict[str, Any] = {"time": "t", "order": ["n"]}
KEYED = "sequence by k with maxspan=20s [any where c == 1] [any where c == 2] ![any where c == 3]"
QUERIES = {
    "by a key": KEYED,
    "by keys of their own": (
        "sequence with maxspan=9s [any where c == 1] by k [any where c == 2] by m "
        "until [any where c == 4] by k"
    ),
    "in one order": "sequence with maxspan=3s [any where c == 1] [any where c == 2]",
    "without a span": "sequence by ?k, m [any where c == 1] [any where c == 2]",
    "by lists": "sequence by l with maxspan=6s [any where c == 1] [any where c < 3] with runs=2",
    "a sample": "sample by k [any where c == 1] [any where c < 3]",
    "samples": "sample by k [any where c == 1] [any where c < 3] [any where c == 3]",
}


def events() -> pa.Table:
    draw = Random(3)
    rows = [
        {
            "t": number * 400_000,
            "n": number,
            "c": draw.randint(1, 4),
            "k": draw.choice(["x", "y", "z", None]),
            "m": draw.choice(["x", "y", "z"]),
            "l": draw.choice([["x", "y"], ["y", None], [], None]),
        }
        for number in range(120)
    ]
    schema = [("t", pa.timestamp("us", "UTC")), ("n", pa.int64()), ("c", pa.int64())]
    texts = [("k", pa.string()), ("m", pa.string()), ("l", pa.list_(pa.string()))]
    return pa.Table.from_pylist(rows).cast(pa.schema([*schema, *texts]))


def marked(rows: list[dict[str, Any]]) -> list[list[list[int]]]:
    """The numbers of the events of each stage, in no order of rows."""
    labels = [name for name in rows[0] if name.isdigit()]
    return sorted([[event["n"] for event in row[label]] for label in labels] for row in rows)


@pytest.mark.parametrize("name", QUERIES)
def test_a_job_finds_what_this_process_does(spark: SparkSession, name: str) -> None:
    query = estero.eql(QUERIES[name], max_samples_per_key=9 if name == "samples" else 1)
    expected = query.run(events(), **LAYOUT).to_arrow().to_pylist()
    assert expected
    frame = spark.createDataFrame(events().to_pandas())
    found = recognize(frame, query, **LAYOUT).toArrow().to_pylist()
    assert marked(found) == marked(expected)


def test_a_stream_decides_what_is_missing_as_its_watermark_passes(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events()
    last = table.slice(table.num_rows - 1)
    later = pa.compute.add(last["t"], pa.scalar(10**9, pa.duration("us")))
    files(table, tmp_path / "events", [50, 40, 20])
    files(last.set_column(0, "t", later), tmp_path / "events", [], first=9)
    query = estero.eql(KEYED)
    frame = spark.readStream.schema(spark.createDataFrame(table.to_pandas()).schema)
    stream = frame.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "events"))
    out = tmp_path / "found"
    matches = recognize(stream, query, lateness="0 seconds", **LAYOUT)
    writer = matches.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start(str(out)).awaitTermination()
    found = spark.read.parquet(str(out)).toArrow().to_pylist()
    assert marked(found) == marked(query.run(table, **LAYOUT).to_arrow().to_pylist())
