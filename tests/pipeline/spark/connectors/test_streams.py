"""Streams of files through Spark: what is read, what is written, and what is said where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from estero import DataError
from estero.errors import EnvironmentProblem
from estero.pipeline.spark.connectors.sources import schema_of
from estero.spark import follow, read_stream, write_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "kind STRING, time TIMESTAMP, n BIGINT"
HINT = "a schema is written as column TYPE, …: kind STRING, time TIMESTAMP, price DOUBLE"

pytestmark = pytest.mark.spark


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """A directory with two files of lines of JSON."""
    directory = tmp_path / "events"
    directory.mkdir()
    for number in range(2):
        lines = [{"kind": "A", "time": f"2025-01-01T00:00:0{i}", "n": number * 5 + i} for i in range(5)]
        (directory / f"{number}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return directory


def copied(frame: DataFrame, sink: str, checkpoint: Path) -> int:
    """Writes a stream until all that is there has been read; how many events that were."""
    running = write_stream(frame, sink, checkpoint=checkpoint, trigger="available-now")
    totals = list(follow(running))[-1]
    assert totals.answers == totals.events
    return totals.events


def test_files_say_their_columns_and_each_is_read_once(
    spark: SparkSession, events: Path, tmp_path: Path
) -> None:
    frame = read_stream(f"json:{events}?maxFilesPerTrigger=1")
    assert frame.schema.simpleString() == "struct<kind:string,time:timestamp_ntz,n:bigint>"
    sink = f"parquet:{tmp_path}/found"
    assert copied(frame, sink, tmp_path / "checkpoint") == 10
    (events / "2.jsonl").write_text((events / "0.jsonl").read_text())
    assert copied(frame, sink, tmp_path / "checkpoint") == 5
    found = spark.read.parquet(f"{tmp_path}/found")
    assert sorted(row["n"] for row in found.collect()) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9]


def test_times_have_microseconds_in_text(spark: SparkSession, events: Path, tmp_path: Path) -> None:
    frame = read_stream(f"json:{events}", schema=SCHEMA).where("n = 7")
    copied_events = write_stream(
        frame, f"json:{tmp_path}/found", checkpoint=tmp_path / "checkpoint", trigger="available-now"
    )
    list(follow(copied_events))
    text = "".join(each.read_text() for each in sorted(tmp_path.glob("found/part-*")))
    assert text == '{"kind":"A","time":"2025-01-01T00:00:02.000000Z","n":7}\n'


def test_a_csv_file_is_read_as_a_batch_would_be(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("kind;time;n\nA;2025-01-01 00:00:00;1\n")
    frame = read_stream(f"{tmp_path}/events.csv")
    assert frame.schema.simpleString() == "struct<kind:string,time:timestamp_ntz,n:bigint>"
    assert copied(frame, f"json:{tmp_path}/found", tmp_path / "checkpoint") == 1


def test_a_schema_is_text_or_a_file_with_it_or_with_events(
    spark: SparkSession, events: Path, tmp_path: Path
) -> None:
    wanted = schema_of(spark, SCHEMA)
    (tmp_path / "columns.ddl").write_text(SCHEMA + "\n")
    (tmp_path / "columns.json").write_text(wanted.json())
    assert schema_of(spark, tmp_path / "columns.ddl") == wanted
    assert schema_of(spark, tmp_path / "columns.json") == wanted
    assert schema_of(spark, wanted) is wanted
    assert schema_of(spark, events / "0.jsonl").names == ["kind", "time", "n"]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("kind STRNG", 'the schema cannot be read: Unsupported data type "STRNG".'),
        ("int", "the schema is one type without columns: int"),
        ('{"kind": "A"}', "the schema cannot be read: 'fields'"),
    ],
)
def test_what_is_no_schema_is_said(spark: SparkSession, schema: str, reason: str) -> None:
    with pytest.raises(DataError) as error:
        read_stream("json:events", schema=schema)
    assert str(error.value) == f"{reason}\n  hint: {HINT}"


def test_an_empty_directory_needs_a_schema(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        read_stream(f"json:{tmp_path}")
    hint = f"name a schema, with which files can come later; {HINT}"
    assert str(error.value) == f"{tmp_path}: the directory holds no files\n  hint: {hint}"
    assert read_stream(f"json:{tmp_path}", schema=SCHEMA).columns == ["kind", "time", "n"]


def test_a_directory_that_is_not_there_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^Spark: Path does not exist: file:\S+/nowhere\.$"):
        read_stream(f"json:{tmp_path}/nowhere", schema=SCHEMA)


def test_a_row_that_does_not_fit_names_its_file(spark: SparkSession, events: Path, tmp_path: Path) -> None:
    (events / "2.jsonl").write_text('{"kind": "A", "time": "soon", "n": 1}\n')
    for sink in ("console", f"parquet:{tmp_path}/found"):
        running = write_stream(
            read_stream(f"json:{events}", schema=SCHEMA),
            sink,
            checkpoint=tmp_path / sink[:7],
            trigger="available-now",
        )
        with pytest.raises(DataError) as error:
            list(follow(running))
        hint = "the option mode=PERMISSIVE of Spark's reader makes it NULL"
        file = (events / "2.jsonl").as_uri()
        assert str(error.value) == f"{file}: a row does not fit the columns\n  hint: {hint}"


def test_messages_need_a_schema(spark: SparkSession) -> None:
    with pytest.raises(DataError) as error:
        read_stream("kafka://h:9092/t")
    reason = "kafka://h:9092/t: messages do not say what is in them: name a schema"
    assert str(error.value) == f"{reason}\n  hint: {HINT}"


def test_a_session_without_connectors_says_so(spark: SparkSession, events: Path, tmp_path: Path) -> None:
    frame = read_stream(f"json:{events}", schema=SCHEMA)
    with pytest.raises(EnvironmentProblem, match=r"^This Spark session has no connector for Kafka: start it"):
        read_stream("kafka://h:9092/t", schema=SCHEMA)
    with pytest.raises(EnvironmentProblem, match="no connector for PostgreSQL"):
        write_stream(frame, "postgresql://h/d/t", checkpoint=tmp_path)
    with pytest.raises(EnvironmentProblem, match="no connector for Delta"):
        read_stream("delta:readings")


def test_a_key_that_is_no_column_is_said(spark: SparkSession, events: Path, tmp_path: Path) -> None:
    frame = read_stream(f"json:{events}", schema=SCHEMA)
    with pytest.raises(DataError) as error:
        write_stream(frame, "kafka://h:9092/t?key=farm", checkpoint=tmp_path)
    there = "there is no column 'farm' to be the key; there are kind, time, n"
    assert str(error.value) == f"kafka://h:9092/t: {there}"
