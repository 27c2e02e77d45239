"""MATCH_RECOGNIZE over streams: what micro-batches give together is what one batch gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import estero
import estero.spark
from estero import DataError, QueryError
from estero.classify.column_names import KEYS, TIME
from estero.language.row_patterns.statements import placed_clauses
from estero.language.row_patterns.tree import Anchor, Excluded, RowPattern, Skip, nodes_of
from estero.spark.row_patterns.buckets import Buckets, Duty
from estero.spark.row_patterns.work import RowPatternWork, StatementsInZone
from estero.spark.streams.packing import blob_of
from laws.test_row_pattern_laws import ONE, can_be_said, clause_of, is_accepted, table_of
from spark.streams import files
from strategies.row_patterns import Condition, Row, conditions, partitions, row_patterns, skips

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:the alternative")]

BEGIN = datetime(2024, 5, 1, tzinfo=UTC)
UNMATCHED = "MATCH_NUMBER() AS number, FIRST(i) AS first"


def timed(table: pa.Table) -> pa.Table:
    """Events with a time: place i is i seconds after `BEGIN`."""
    times = [BEGIN + timedelta(seconds=i) for i in table["i"].to_pylist()]
    return table.append_column("at", pa.array(times, pa.timestamp("us", "UTC")))


# ------------------------------------------------------------------------------- turns, without Spark


def duty_of(text: str, table: pa.Table, result: pa.Schema) -> Duty:
    """The work of a stream of rows like these, which all cross."""
    (placed,) = placed_clauses(text)
    statements = StatementsInZone("UTC")
    columns = tuple(statements.types("SELECT * FROM t", "t", {"t": table}))
    crossing = pa.schema([(f"c{number}", field.type) for number, field in enumerate(table.schema)])
    work = RowPatternWork(
        placed.clause, columns, "", "UTC", crossing, result, statements.aggregates, in_pieces=True
    )
    packed = pa.schema([(name, pa.int64()) for name in (TIME, *KEYS)] + list(crossing))
    return Duty(work, "a header", packed, (), zoned=True, buckets=1)


def packed_rows(table: pa.Table, duty: Duty) -> pa.RecordBatch:
    """Rows as they come to a bucket."""
    times, keys = table["at"].cast(pa.int64()), table["g"]
    arrays = [column.combine_chunks() for column in (times, keys, keys, *table.columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=duty.packed)


@given(
    row_patterns,
    conditions,
    skips,
    st.lists(partitions, min_size=1, max_size=3),
    st.integers(0, 3),
    st.booleans(),
    st.lists(st.integers(0, 18), max_size=4),
)
def test_micro_batches_give_what_the_whole_gives(
    pattern: RowPattern,
    define: Mapping[str, Condition],
    skip: Skip,
    parts: Sequence[Sequence[Row]],
    within: int,
    unmatched: bool,
    cuts: Sequence[int],
) -> None:
    nodes = list(nodes_of(pattern))
    assume(can_be_said(pattern, define, skip))
    assume(not any(isinstance(node, Anchor) and node.at == "end" for node in nodes))
    assume(not unmatched or not any(isinstance(node, Excluded) for node in nodes))
    table = timed(table_of(parts)).sort_by("i")
    measures, per_match = (UNMATCHED, "ALL ROWS PER MATCH WITH UNMATCHED ROWS") if unmatched else (ONE, "")
    text = clause_of(pattern, define, skip, measures, per_match, within).partition("ORDER BY g, number")[0]
    assume(is_accepted(text))
    text = text.replace("ORDER BY i", "ORDER BY at").replace(
        f"WITHIN {within}", f"WITHIN INTERVAL {within} SECONDS"
    )
    assume("NEXT" not in text)  # what it reads may never come
    try:
        expected = estero.sql(text, events=table).to_arrow()
    except DataError:
        return
    result = pa.schema([(f"r{place}", field.type) for place, field in enumerate(expected.schema)])
    duty = duty_of(text, table, result)
    buckets, held, found = Buckets(duty), None, []
    rows = packed_rows(table, duty)
    borders = sorted({min(cut, rows.num_rows) for cut in cuts} | {0, rows.num_rows})
    watermark = None
    for first, last in zip(borders, [*borders[1:], rows.num_rows], strict=True):
        turned = buckets.turn(held, [blob_of(rows.slice(first, last - first))], watermark)
        held = turned.held
        assert turned.late == 0
        found.append(turned.result)
        if last:
            watermark = int(rows.column(TIME)[last - 1].as_py()) // 1000
    found.append(buckets.turn(held, [], 2**42).result)
    names = [field.name for field in expected.schema]
    rows_found = pa.concat_tables(found).rename_columns(names).to_pylist()
    in_order = sorted(rows_found, key=lambda row: (row["g"], _place(row)))
    assert in_order == sorted(expected.to_pylist(), key=lambda row: (row["g"], _place(row)))


def _place(row: Mapping[str, Any]) -> tuple[int, ...]:
    return (-1 if row["number"] is None else row["number"], row["i"])


def test_a_bucket_keeps_what_its_windows_hold() -> None:
    text = """SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY g ORDER BY at MEASURES count(*) AS n
        PATTERN (a b) WITHIN INTERVAL 2 SECONDS DEFINE b AS v > 100)"""
    parts = [[Row(1, place) for place in range(50)] for _ in range(3)]
    table = timed(table_of(parts)).sort_by("i")
    duty = duty_of(text, table, pa.schema([("r0", pa.int64()), ("r1", pa.int64())]))
    buckets, held, sizes = Buckets(duty), None, []
    rows = packed_rows(table, duty)
    for second in range(50):
        watermark = int(BEGIN.timestamp() * 1000) + second * 1000
        turned = buckets.turn(held, [blob_of(rows.slice(3 * second, 3))], watermark)
        held = turned.held
        sizes.append(0 if held is None else held.size)
    assert sizes[10] == sizes[-1]
    late = buckets.turn(held, [blob_of(rows.slice(0, 3))], watermark)
    assert (late.late, late.passed) == (3, 0)
    assert buckets.turn(held, [], 2**42).held is None


def test_rows_of_one_time_are_ordered_by_what_follows() -> None:
    text = """SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY g ORDER BY at, w DESC MEASURES
        array_agg(w) AS ws PATTERN (a+) WITHIN INTERVAL 2 SECONDS DEFINE a AS TRUE)"""
    table = timed(pa.table({"g": [0] * 4, "i": [0] * 4, "v": [0] * 4, "w": [2, 4, 1, 3]}))
    duty = duty_of(text, table, pa.schema([("r0", pa.int64()), ("r1", pa.list_(pa.int64()))]))
    duty = Duty(duty.work, duty.header, duty.packed, ("c3 DESC",), zoned=True, buckets=1)
    blobs = [blob_of(packed_rows(table, duty))]
    held = Buckets(duty).turn(None, blobs, None).held
    turned = Buckets(duty).turn(held, [], 2**42)
    assert turned.result["r1"].to_pylist() == [[4, 3, 2, 1]]


# ------------------------------------------------------------------------------- in a session

PROBES = """MATCH_RECOGNIZE (PARTITION BY card ORDER BY at
    MEASURES MATCH_NUMBER() AS number, FIRST(at) AS since, count(*) AS n, LAST(amount) AS last
    {skip} PATTERN (probe+ grab) WITHIN INTERVAL '20' SECOND
    DEFINE probe AS amount < 50 AND (PREV(amount) IS NULL OR PREV(amount) <> 7), grab AS amount > 80)"""
PAST_LAST, TO_NEXT = PROBES.format(skip=""), PROBES.format(skip="AFTER MATCH SKIP TO NEXT ROW")


def payments() -> pa.Table:
    """Payments of a few cards, somewhat out of order, and a last one that is far in the future."""
    draw = np.random.default_rng(5)
    seconds = np.arange(400) + draw.integers(0, 4, 400)
    times = [BEGIN + timedelta(seconds=int(at), microseconds=place) for place, at in enumerate(seconds)]
    return pa.table(
        {
            "card": pa.array([*draw.integers(0, 5, 400).tolist(), 99, 99], pa.int64()),
            "at": pa.array(
                [*times, BEGIN + timedelta(days=1), BEGIN + timedelta(days=2)], pa.timestamp("us", "UTC")
            ),
            "amount": pa.array([*draw.integers(0, 100, 400).tolist(), 0, 0], pa.int64()),
        }
    )


def stream_of(spark: SparkSession, folder: Path) -> DataFrame:
    """The files of a folder, one in each micro-batch."""
    schema = spark.createDataFrame(payments()).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder)).withWatermark("at", "10 seconds")


def run(frame: DataFrame, place: Path) -> pa.Table:
    """What a stream has written once it has read all that is there."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(place / "out"))
    query.awaitTermination()
    return frame.sparkSession.read.parquet(str(place / "out")).toArrow()


def ordered(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.sort_by([("card", "ascending"), ("number", "ascending")]).to_pylist()
    return rows


@pytest.mark.parametrize("clause", [PAST_LAST, TO_NEXT])
def test_a_stream_finds_what_a_batch_finds(spark: SparkSession, tmp_path: Path, clause: str) -> None:
    table = payments()
    expected = estero.sql(f"SELECT * FROM payments {clause} WHERE n > 1", payments=table).to_arrow()
    assert expected.num_rows > 20
    files(table.slice(0, 400), tmp_path / "in", [90, 1, 130, 60])
    files(table.slice(400), tmp_path / "in", [1], first=10)
    text = f"SELECT * FROM payments {clause} WHERE n > 1"
    frame = estero.spark.sql(spark, text, payments=stream_of(spark, tmp_path / "in"))
    assert frame.isStreaming
    assert ordered(run(frame, tmp_path)) == ordered(expected)


def test_a_stream_goes_on_where_it_stopped(spark: SparkSession, tmp_path: Path) -> None:
    table = payments()
    expected = estero.sql(f"SELECT * FROM payments {PAST_LAST}", payments=table).to_arrow()
    for first, part in enumerate([table.slice(0, 150), table.slice(150, 250), table.slice(400)]):
        files(part, tmp_path / "in", [part.num_rows // 2], first=10 * first)
        text = f"SELECT * FROM payments {PAST_LAST}"
        found = run(estero.spark.sql(spark, text, payments=stream_of(spark, tmp_path / "in")), tmp_path)
    assert ordered(found) == ordered(expected)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (("WITHIN INTERVAL '20' SECOND", ""), QueryError, "needs WITHIN: without it no row could ever be"),
        (("grab)", "grab $)"), QueryError, r"\$ is the end of a partition, which a stream does not have"),
        (("BY at", "BY at DESC"), QueryError, "ORDER BY begins with the column of the time, ascending"),
        (("ORDER BY at", "ORDER BY at + INTERVAL 1 DAY"), QueryError, "ORDER BY begins with the column"),
        (("ORDER BY at", "ORDER BY CAST(amount AS DOUBLE)"), QueryError, "ORDER BY begins with the column"),
    ],
)
def test_what_is_never_decided_on_a_stream_is_refused(
    spark: SparkSession, tmp_path: Path, change: tuple[str, str], error: type[Exception], message: str
) -> None:
    files(payments(), tmp_path / "in", [])
    clause = PAST_LAST.replace(*change)
    with pytest.raises(error, match=message):
        estero.spark.sql(
            spark, f"SELECT * FROM payments {clause}", payments=stream_of(spark, tmp_path / "in")
        )


def test_a_stream_needs_a_watermark_on_the_time(spark: SparkSession, tmp_path: Path) -> None:
    files(payments(), tmp_path / "in", [])
    frame = spark.readStream.schema(spark.createDataFrame(payments()).schema).parquet(str(tmp_path / "in"))
    with pytest.raises(DataError, match=r"column 'at': on a stream .* needs a watermark"):
        estero.spark.sql(spark, f"SELECT * FROM payments {PAST_LAST}", payments=frame)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * FROM payments {PAST_LAST} UNION ALL SELECT * FROM payments {TO_NEXT}",
        f"SELECT * FROM payments {PAST_LAST} UNION ALL SELECT * FROM known {TO_NEXT}",
        f"SELECT * FROM known {PAST_LAST} UNION ALL SELECT * FROM payments {TO_NEXT}",
        f"""SELECT * FROM payments {PAST_LAST} MATCH_RECOGNIZE (ORDER BY since MEASURES count(*) AS m
            PATTERN (a+) WITHIN INTERVAL '1' MINUTE DEFINE a AS TRUE)""",
    ],
)
def test_a_statement_has_one_clause_over_a_stream(spark: SparkSession, tmp_path: Path, text: str) -> None:
    files(payments(), tmp_path / "in", [])
    with pytest.raises(QueryError, match="can have one MATCH_RECOGNIZE, and this is another") as raised:
        estero.spark.sql(spark, text, payments=stream_of(spark, tmp_path / "in"), known=payments())
    assert "write a statement for each" in str(raised.value)
    assert "^^^" in str(raised.value)
