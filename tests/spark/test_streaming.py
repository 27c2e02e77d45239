"""Streams on Spark: the same answers as in this process, cut, stopped and killed anywhere."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.errors import StreamingQueryException

from estero.errors import DataError
from estero.spark import recognize
from estero.spark.failures import readable
from estero.spark.streams.packing import group_numbers
from spark import stopped_stream
from spark.frames import in_any_order, without_positions
from spark.streams import expected, files, timed_events, whole_answer
from waiting import FAR_OFF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Row = dict[str, Any]
TIMED: dict[str, Any] = {"type": "type", "time": "t"}
PAIRS = "SELECT a, b WHERE A AS a ; B AS b"
BY_KEY = f"{PAIRS} PARTITION BY [k] WITHIN 20 [t]"
IN_SECONDS = f"{PAIRS} PARTITION BY [k] WITHIN 20 SECONDS"
SCHEMA = "type STRING, t BIGINT, k BIGINT, x BIGINT, n BIGINT"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PROVIDERS = "org.apache.spark.sql.execution.streaming.state."


def events(number: int = 300, seed: int = 1) -> pa.Table:
    """Events in order, of which many have the time of the one before."""
    draw = random.Random(seed)
    time, rows = 0, []
    for place in range(number):
        time += draw.choice([0, 1, 1, 5])
        k, x = draw.randrange(7), draw.randrange(5)
        rows.append({"type": draw.choice("ABC"), "t": time, "k": k, "x": x, "n": place})
    return pa.Table.from_pylist(rows)


def stream(spark: SparkSession, place: Path, schema: str = SCHEMA) -> DataFrame:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(place.as_uri())


def run(found: DataFrame, checkpoint: Path) -> tuple[list[Row], list[dict[str, Any]]]:
    """The rows of a stream until its source has no more files, and its progress reports."""
    rows: list[Row] = []
    sink = found.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.toArrow().to_pylist()))
    query = sink.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return rows, [json.loads(report.json) for report in query.recentProgress]


def total(reports: Sequence[dict[str, Any]], name: str) -> int:
    return sum(report["observedMetrics"]["estero"][name] for report in reports)


# ----------------------------------------------------------------------------------------- equality


@pytest.mark.parametrize(
    ("query", "how"),
    [
        (f"{PAIRS} PARTITION BY [k] WITHIN 30 EVENTS", {"positions": True}),
        (f"{PAIRS} ; C AS c FILTER a.k = b.k AND b.x < c.x WITHIN 30 [t]", {"order": ["n"]}),
    ],
)
def test_files_cut_anywhere_have_the_answers_of_one_table(
    spark: SparkSession, tmp_path: Path, query: str, how: dict[str, Any]
) -> None:
    table = events()
    draw = random.Random(query)
    files(table, tmp_path / "in", [draw.randrange(1, 300)])
    rows, reports = run(recognize(stream(spark, tmp_path / "in"), query, **TIMED, **how), tmp_path / "state")
    found = expected(query, table, **TIMED)
    assert in_any_order(rows) == in_any_order(found if "positions" in how else without_positions(found))
    assert total(reports, "late") == 0


def test_instants_out_of_order_wait_for_the_watermark_of_the_user(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events()
    micros = pa.array([each * 1_000_003 for each in table.column("t").to_pylist()], pa.timestamp("us", "UTC"))
    table = table.set_column(1, "t", micros)
    draw = random.Random(5)
    arrived = table.take(
        sorted(range(table.num_rows), key=lambda at: micros[at].value + draw.randrange(3_000_000))
    )
    files(arrived, tmp_path / "in", [70, 110])
    df = stream(spark, tmp_path / "in", "type STRING, t TIMESTAMP, k BIGINT, x BIGINT, n BIGINT")
    spark.conf.set(PROVIDER, PROVIDERS + "HDFSBackedStateStoreProvider")
    try:
        found = recognize(df.withWatermark("t", "3 seconds"), IN_SECONDS, **TIMED)
        rows, reports = run(found, tmp_path / "state")
    finally:
        spark.conf.set(PROVIDER, PROVIDERS + "RocksDBStateStoreProvider")
    last = max(micros.to_pylist())
    in_time = [row for row in expected(IN_SECONDS, arrived, **TIMED) if (last - row["end_time"]).seconds >= 3]
    assert in_any_order(rows) == in_any_order(without_positions(in_time))
    assert (total(reports, "late"), reports[-1]["stateOperators"][0]["numRowsTotal"] > 1) == (0, True)


# ------------------------------------------------------------------------------------------ restart


def answers_of(spark: SparkSession, place: Path, name: str = "keys") -> list[str]:
    return in_any_order(spark.read.parquet(str(place / "answers" / name)).toArrow().to_pylist())


def test_after_an_error_and_with_other_partitions_the_answer_is_that_of_one_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = timed_events()
    files(table, tmp_path / "events", [90])

    def fail() -> None:
        raise RuntimeError("the sink is full")

    found = stopped_stream.recognized(tmp_path)
    with pytest.raises(StreamingQueryException, match="the sink is full"):
        stopped_stream.written(stopped_stream.once(found, tmp_path / "failed", fail), tmp_path)
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    try:
        stopped_stream.written(stopped_stream.recognized(tmp_path), tmp_path)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert answers_of(spark, tmp_path) == whole_answer(table)


def test_killed_in_the_middle_of_a_micro_batch_the_answer_is_that_of_one_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = timed_events()
    files(table, tmp_path / "events", [90])
    start = [sys.executable, stopped_stream.__file__, str(tmp_path)]
    killed = subprocess.run(start, capture_output=True, timeout=FAR_OFF, check=False)
    assert (tmp_path / "killed").exists(), killed.stderr.decode()
    assert killed.returncode != 0
    stopped_stream.run(tmp_path)
    for name in stopped_stream.QUERIES:
        assert answers_of(spark, tmp_path, name) == whole_answer(table, name)


# ------------------------------------------------------------------------------------ late and idle


def rows_at(*rows: tuple[str, int, int]) -> pa.Table:
    columns = [{"type": kind, "t": at, "k": k, "x": 0, "n": n} for n, (kind, at, k) in enumerate(rows)]
    return pa.Table.from_pylist(columns)


def test_late_events_are_counted_and_can_be_had(spark: SparkSession, tmp_path: Path) -> None:
    first = [("A", 10, 1), ("C", 30, 1)]
    second = [("A", 24, 1), ("B", 26, 1), ("A", 27, 2), ("B", 28, 1), ("B", 30, 2)]
    files(rows_at(*first, *second, ("C", 40, 0)), tmp_path / "in", [2, 5])
    df = stream(spark, tmp_path / "in")
    rows, reports = run(recognize(df, BY_KEY, **TIMED, lateness=3), tmp_path / "state")
    matches = {(10, 28), (27, 30)}
    assert ({(row["start_time"], row["end_time"]) for row in rows}, total(reports, "late")) == (matches, 2)
    both = recognize(df, BY_KEY, **TIMED, lateness=3, late_events=True)
    assert both.columns == ["match", "late"]
    rows, _ = run(both, tmp_path / "both")
    late = [row["late"] for row in rows if row["match"] is None]
    found = [row["match"] for row in rows if row["late"] is None]
    assert late == [
        {"type": kind, "t": at, "k": 1, "x": 0, "n": n} for kind, at, n in [("A", 24, 2), ("B", 26, 3)]
    ]
    assert {(row["start_time"], row["end_time"]) for row in found} == matches


@pytest.mark.parametrize(
    ("condition", "kind", "partials"),
    [
        ("A.k = B.x", pa.int64(), False),
        ("A.k = B.x AND A.n < B.n", pa.float64(), False),
        ("A.p.k = B.x", pa.decimal128(20, 2), True),
    ],
)
def test_late_events_are_whole_where_types_have_the_key_under_names_of_their_own(
    spark: SparkSession, tmp_path: Path, condition: str, kind: pa.DataType, *, partials: bool
) -> None:
    ones = pa.array([1, None, 1, None, 2, 7])
    table = pa.table(
        {
            "type": ["A", "B", "A", "B", "A", "A"],
            "t": [10, 26, 30, 8, 9, 60],
            "k": ones,
            "p": pa.StructArray.from_arrays([ones], ["k"]),
            "x": pa.array([None, 1, None, 2, None, None], kind),
            "n": range(6),
        }
    )
    files(table, tmp_path / "in", [3, 5])
    named = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE"}.get(kind, "DECIMAL(20, 2)")
    schema = f"type STRING, t BIGINT, k BIGINT, p STRUCT<k: BIGINT>, x {named}, n BIGINT"
    both = recognize(
        stream(spark, tmp_path / "in", schema),
        f"SELECT A, B WHERE A ; B FILTER {condition} WITHIN 20 [t]",
        **TIMED,
        lateness=3,
        late_events=True,
        partials=partials,
    )
    rows, reports = run(both, tmp_path / "state")
    late = [row["late"] for row in rows if row["match"] is None]
    assert sorted(late, key=str) == sorted(table.to_pylist()[3:5], key=str)
    found = [row["match"] for row in rows if row["late"] is None]
    complete = [(row["start_time"], row["end_time"]) for row in found if row.get("complete", True)]
    assert (complete, total(reports, "late")) == ([(10, 26)], 2)
    assert [row["start_time"] for row in found if not row.get("complete", True)] == [30] * partials


def test_late_events_stand_beside_rows_of_events(spark: SparkSession, tmp_path: Path) -> None:
    first = [("A", 10, 1), ("C", 30, 1)]
    second = [("A", 24, 1), ("B", 26, 1), ("A", 27, 2), ("B", 28, 1), ("B", 30, 2)]
    files(rows_at(*first, *second, ("C", 40, 0)), tmp_path / "in", [2, 5])
    df = stream(spark, tmp_path / "in")
    rows, _ = run(recognize(df, BY_KEY, **TIMED, lateness=3, rows="events"), tmp_path / "rows")
    both = recognize(df, BY_KEY, **TIMED, lateness=3, late_events=True, rows="events")
    assert both.columns == ["match", "late"]
    found, _ = run(both, tmp_path / "both")
    assert sorted(str(row["match"]) for row in found if row["late"] is None) == sorted(map(str, rows))
    assert [row["late"]["t"] for row in found if row["match"] is None] == [24, 26]
    none = f"SELECT NONE {BY_KEY[BY_KEY.index('WHERE') :]}"
    only_late = recognize(df, none, **TIMED, lateness=3, late_events=True, rows="events")
    found, _ = run(only_late, tmp_path / "none")
    assert [(row["match"], row["late"]["t"]) for row in found] == [(None, 24), (None, 26)]


def test_an_irrelevant_event_moves_the_watermark_and_idle_keys_are_forgotten(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = rows_at(*(("A", 5, k) for k in range(40)), ("C", 900, 0), ("C", 901, 0), ("A", 901, 3))
    files(table, tmp_path / "in", [40, 1])
    _, reports = run(recognize(stream(spark, tmp_path / "in"), BY_KEY, **TIMED), tmp_path / "state")
    kept = [report["stateOperators"][0]["numRowsTotal"] for report in reports]
    held = [report["observedMetrics"]["estero"]["state_bytes"] for report in reports]
    assert kept[0] > 10
    assert kept[-1] == 1 + 1  # what the state is of, and the bucket of the last event
    assert held[-1] < held[0]


def test_reports_say_what_is_open(spark: SparkSession, tmp_path: Path) -> None:
    """Of three starts two have come one step further, and may do so again; then the windows have passed."""
    table = rows_at(
        ("A", 5, 1), ("A", 7, 2), ("A", 9, 3), ("B", 10, 1), ("B", 10, 2), ("C", 11, 1), ("Z", 900, 0)
    )
    query = "SELECT * WHERE A ; B ; C PARTITION BY [k] WITHIN 20 [t]"
    files(table, tmp_path / "in", [6])
    _, reports = run(recognize(stream(spark, tmp_path / "in"), query, **TIMED), tmp_path / "state")
    open_there = [report["observedMetrics"]["estero"] for report in reports]
    names = "open_1", "open_2", "open_3", "oldest", "expires"
    assert [open_there[0].get(name) for name in names] == [3, 2, 0, 5, 25]
    assert [open_there[-1].get(name) for name in names] == [0, 0, 0, None, None]


@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("us", "UTC")])
def test_reports_say_the_latest_time_that_there_is(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType
) -> None:
    """A window that passes later still is no reason for a stream to end."""
    late = 2**63 - 20
    table = rows_at(("A", late, 1), ("B", late + 1, 1))
    table = table.set_column(table.schema.get_field_index("t"), "t", table["t"].cast(kind))
    instants = pa.types.is_timestamp(kind)
    unit, sql = ("MICROSECONDS", "TIMESTAMP") if instants else ("[t]", "BIGINT")
    files(table, tmp_path / "in", [])
    query = f"SELECT * WHERE A ; B ; C PARTITION BY [k] WITHIN 50 {unit}"
    df = stream(spark, tmp_path / "in", SCHEMA.replace("t BIGINT", f"t {sql}"))
    units: dict[str, Any] = {} if instants else {"time_unit": "us"}
    _, reports = run(recognize(df, query, **TIMED, **units), tmp_path / "state")
    wanted = "294247-01-10 04:00:54" if instants else 2**63 - 1
    assert reports[0]["observedMetrics"]["estero"]["expires"] == wanted


# ---------------------------------------------------------------------------------------- refusals


def refusal(found: DataFrame, checkpoint: Path) -> str:
    with pytest.raises(StreamingQueryException) as caught:
        run(found, checkpoint)
    said = readable(caught.value)
    assert isinstance(said, DataError)
    assert said.message in str(caught.value) or said.message == "the time of an event is NULL"
    return str(said)


def test_a_checkpoint_of_something_else_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    files(rows_at(("A", 1, 1), ("B", 2, 1)), tmp_path / "in", [])
    df, state = stream(spark, tmp_path / "in"), tmp_path / "state"
    run(recognize(df, BY_KEY, **TIMED), state)
    files(rows_at(("A", 10_000, 1)), tmp_path / "in", [], first=5)
    text = refusal(recognize(df, BY_KEY.replace("20", "30"), **TIMED), state)
    assert text.startswith("the checkpoint belongs to another query: SELECT a, b WHERE A AS a ; B AS b")
    assert "give the stream a checkpoint directory of its own" in text
    text = refusal(recognize(df, BY_KEY, **TIMED, partitions=4), state)
    assert text == (
        "the checkpoint has the keys in 16 buckets, and 4 are asked for\n"
        "  hint: ask for partitions=16, or give the stream a checkpoint directory of its own"
    )
    text = refusal(recognize(df, BY_KEY, **TIMED, order=["n"]), state)
    assert text.startswith("the checkpoint belongs to this query, but with other columns or settings")


def test_a_relevant_event_without_a_time_is_an_error_of_the_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = pa.Table.from_pylist([{"type": kind, "t": None, "k": 1, "x": 0, "n": 0} for kind in "ZA"])
    files(table.cast(events().schema).slice(0, 1), tmp_path / "in", [])
    found = recognize(stream(spark, tmp_path / "in"), BY_KEY, **TIMED)
    assert run(found, tmp_path / "state")[0] == []
    files(table.cast(events().schema), tmp_path / "in", [], first=5)
    assert refusal(found, tmp_path / "state") == "the time of an event is NULL"


@pytest.fixture
def ticking(spark: SparkSession) -> DataFrame:
    rate = spark.readStream.format("rate").load()
    return rate.selectExpr("'A' AS type", "timestamp AS ts", "value AS t", "value AS k")


def test_a_stream_needs_a_time(ticking: DataFrame) -> None:
    with pytest.raises(
        DataError, match=r"a stream needs a time column: events of a micro-batch come in no order"
    ):
        recognize(ticking, "SELECT * WHERE A AS a", type="type")


def test_one_watermark_is_enough(ticking: DataFrame) -> None:
    own = ticking.withWatermark("ts", "2 seconds")
    how: dict[str, Any] = {"type": "type"}
    assert recognize(own, "SELECT a WHERE A AS a", time="ts", **how).isStreaming
    with pytest.raises(
        DataError, match=r"column 'ts': the time column already has a watermark, so no lateness"
    ):
        recognize(own, "SELECT a WHERE A AS a", time="ts", lateness="1 second", **how)
    with pytest.raises(DataError, match=r"column 't': the watermark is on another column: ts"):
        recognize(own, "SELECT a WHERE A AS a", time="t", **how)


@pytest.mark.parametrize(
    ("time", "lateness", "said"),
    [
        ("ts", "soon", "lateness is a duration such as '5 seconds', not 'soon'"),
        ("ts", "-3 seconds", "lateness cannot be negative: -3 seconds"),
        ("ts", -3, "a lateness cannot be negative: -3"),
        (
            "t",
            "3 seconds",
            "the time column has no unit, so '3 seconds' has no meaning there: say its time_unit",
        ),
    ],
)
def test_what_is_no_lateness_is_refused(
    ticking: DataFrame, time: str, lateness: str | int, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        recognize(ticking, "SELECT a WHERE A AS a", type="type", time=time, lateness=lateness)


def test_what_is_for_streams_only_is_refused_of_batches_and_the_other_way(
    spark: SparkSession, ticking: DataFrame
) -> None:
    df = spark.createDataFrame(events(5))
    only: list[dict[str, Any]] = [{"lateness": 1}, {"late_events": True}]
    for how in only:
        with pytest.raises(ValueError, match="lateness and late_events are for streaming DataFrames"):
            recognize(df, BY_KEY, **TIMED, **how)
    with pytest.raises(ValueError, match="partitions is a whole number from 1 to 4,096, not 0"):
        recognize(ticking, "SELECT a WHERE A AS a PARTITION BY [k]", type="type", time="ts", partitions=0)
    with pytest.raises(
        ValueError, match="split_keys is for batch DataFrames; on a stream, a key is never split"
    ):
        recognize(ticking, "SELECT a WHERE A AS a PARTITION BY [k]", type="type", time="ts", split_keys=False)


def test_tasks_get_equally_many_buckets(spark: SparkSession) -> None:
    numbers = group_numbers(16)
    assert len(set(numbers)) == 16
    df = spark.createDataFrame([(number,) for number in numbers], "bucket int")
    for tasks in (2, 4, 8, 16):
        sizes = df.selectExpr(f"pmod(hash(bucket), {tasks}) AS task").groupBy("task").count().collect()
        assert [row["count"] for row in sizes] == [16 // tasks] * tasks
