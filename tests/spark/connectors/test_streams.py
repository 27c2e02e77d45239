"""Streams of files through Spark: what is read, what is written, and what is said where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from estero import DataError
from estero.errors import EnvironmentProblem
from estero.spark import count, follow, read_stream, recognize, write_stream
from estero.spark.connectors.sources import schema_of

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
    wanted = schema_of(SCHEMA)
    (tmp_path / "columns.ddl").write_text(SCHEMA + "\n")
    (tmp_path / "columns.json").write_text(wanted.json())
    assert schema_of(tmp_path / "columns.ddl") == wanted
    assert schema_of(tmp_path / "columns.json") == wanted
    assert schema_of(wanted) is wanted
    assert schema_of(events / "0.jsonl").names == ["kind", "time", "n"]


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
    hint = f"name a schema, and the files can come later; {HINT}"
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


def test_letters_of_globs_are_refused_where_spark_reads_files_twice(
    spark: SparkSession, events: Path, tmp_path: Path
) -> None:
    (tmp_path / "a[b").mkdir()
    with pytest.raises(DataError) as error:
        read_stream(f"json:{tmp_path}/a[b", schema=SCHEMA)
    said = "Spark does not follow files with [ in their names\n  hint: rename it"
    assert str(error.value) == f"{tmp_path}/a[b: {said}"
    (events / "{2}.jsonl").write_text((events / "0.jsonl").read_text())
    with pytest.raises(DataError, match=r"\{2\}\.jsonl: Spark does not follow files with \{ in their names"):
        read_stream(f"json:{events}")
    alone = read_stream(f"json:{events}/{{2}}.jsonl")
    assert copied(alone, f"json:{tmp_path}/100% found", tmp_path / "check #1") == 5


def test_a_stream_has_a_directory_and_a_checkpoint_of_its_own(
    spark: SparkSession, events: Path, tmp_path: Path
) -> None:
    frame = read_stream(f"json:{events}", schema=SCHEMA)
    assert copied(frame, f"json:{tmp_path}/found", tmp_path / "first") == 10
    (tmp_path / "file").touch()
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "metadata").write_text('{"id":')
    own = "a stream with a new checkpoint needs a directory of its own"
    noted = (
        "another stream has written here, up to batch 0: batches up to that one would be left out\n"
        f"  hint: {own}, or resumes with the checkpoint of the stream that has written here"
    )
    others = (
        "the directory contains files that no stream has written, such as 0.jsonl: Spark would no longer see "
        f"them once a stream writes here\n  hint: {own}"
    )
    torn = (
        "this is not a checkpoint, or it is damaged: its file 'metadata' is not what Spark writes there\n"
        "  hint: start with a new one, and everything is read from the beginning"
    )
    for sink, checkpoint, said in (
        ("found", "second", f"{tmp_path}/found: {noted}"),
        ("events", "second", f"{tmp_path}/events: {others}"),
        ("file", "second", f"{tmp_path}/file: there is a file where the directory to write to should be"),
        ("other", "file", f"{tmp_path}/file: the checkpoint is not a directory"),
        ("other", "torn", f"{tmp_path}/torn: {torn}"),
    ):
        with pytest.raises(DataError) as error:
            write_stream(frame, f"json:{tmp_path}/{sink}", checkpoint=tmp_path / checkpoint)
        assert str(error.value) == said
    with pytest.raises(DataError, match=r"^the checkpoint has no name\n  hint: name a directory"):
        write_stream(frame, "console", checkpoint="")


def test_files_of_parquet_that_do_not_fit_are_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pyarrow.parquet.write_table(pa.table({"kind": ["A"], "time": ["soon"]}), tmp_path / "in" / "a.parquet")
    wanted = read_stream(f"parquet:{tmp_path}/in", schema="kind STRING, time TIMESTAMP")
    with pytest.raises(DataError) as error:
        copied(wanted, "console", tmp_path / "first")
    hint = "all files need the columns of the first one, or of the schema that you name"
    said = "holds BINARY, where timestamp is expected"
    assert (
        str(error.value)
        == f"{(tmp_path / 'in' / 'a.parquet').as_uri()}, column 'time': {said}\n  hint: {hint}"
    )
    (tmp_path / "in" / "a.parquet").write_bytes(b"these are no columns")
    with pytest.raises(DataError, match=r"a\.parquet: this is not a Parquet file, or it is damaged$"):
        read_stream(f"parquet:{tmp_path}/in")
    with pytest.raises(DataError, match=r"a\.parquet: this is not a Parquet file, or it is damaged$"):
        copied(wanted, "console", tmp_path / "second")


def test_messages_need_a_schema(spark: SparkSession) -> None:
    with pytest.raises(DataError) as error:
        read_stream("kafka://h:9092/t")
    reason = "kafka://h:9092/t: messages do not say what columns they have: name a schema"
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
    there = "there is no column 'farm' to use as the key; the columns are kind, time, n"
    assert str(error.value) == f"kafka://h:9092/t: {there}"


def test_a_streaming_query_recognizes_one_query(spark: SparkSession, events: Path) -> None:
    frame = read_stream(f"json:{events}", schema=SCHEMA)
    once = recognize(frame, "SELECT a WHERE A AS a", type="kind", time="time")
    with pytest.raises(DataError) as error:
        recognize(once, "SELECT * WHERE Event AS e", time="end_time")
    hint = "start a streaming query for each, with a checkpoint of its own"
    assert str(error.value) == f"a streaming query can have only one recognize\n  hint: {hint}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"partitions": 2.5}, "recognize() takes an integer or None as partitions, not 2.5"),
        ({"share": True}, "recognize() takes an integer or None as share, not True"),
        ({"share": 10**6}, "share is a whole number from 1 to 100,000, not 1000000"),
        ({"partitions": 5000}, "partitions is a whole number from 1 to 4,096, not 5000"),
        ({"lateness": "5 parsecs"}, "a lateness is a duration such as '5 seconds', not '5 parsecs'"),
        ({"lateness": "-3 seconds"}, "a lateness cannot be negative: -3 seconds"),
        ({"lateness": True}, "a lateness is a duration such as '5 seconds', not True"),
        ({"lateness": "900000 days"}, "a lateness is less than 292 years, not 900000 days"),
    ],
)
def test_numbers_that_cannot_be_meant_are_refused(
    spark: SparkSession, events: Path, arguments: dict[str, Any], said: str
) -> None:
    frame = read_stream(f"json:{events}", schema=SCHEMA)
    with pytest.raises((ValueError, TypeError)) as error:
        recognize(frame, "SELECT a WHERE A AS a", type="kind", time="time", **arguments)
    assert str(error.value) == said


def test_only_frames_of_spark_are_recognized_on_spark() -> None:
    said = "this is not a Spark DataFrame but a Table of pyarrow\n  hint: make one with spark.createDataFrame"
    table: Any = pa.table({"kind": ["A"]})
    for ask in (recognize, count):
        with pytest.raises(DataError, match=said):
            ask(table, "SELECT a WHERE A AS a", type="kind")
    with pytest.raises(ValueError, match=r"^partitions is a whole number from 1 to 100,000, not 1000000$"):
        count(_Frame(), "SELECT a WHERE A AS a", partitions=10**6)  # type: ignore[arg-type]


class _Frame:
    """As much of a DataFrame as is looked at before the numbers are."""

    isStreaming = schema = None  # noqa: N815
    columns = ()
