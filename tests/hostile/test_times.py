"""Integer times up to the limits of 64 bits: every engine measures windows as the reference does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import estero
from estero.engine.int64 import GREATEST, LEAST
from estero.engine.stamps import out_of_reach, window_starts
from estero.errors import DataError
from estero.language.syntax.parser import parse_query
from estero.reference.queries import Event, evaluate_query
from estero.spark import recognize
from estero.spark.streams.bucket import NEVER, Held
from estero.spark.streams.ticks import Ticks
from estero.spark.streams.watermark import clock_sql
from laws.evaluators import by_end, planned
from laws.test_continuous_laws import Naive
from spark.simulated import Simulation
from strategies.patterns import to_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST = settings.default.max_examples if settings.default else 10

TURNS = [LEAST, -(2**62), -(2**53), 0, 2**53, 2**62, GREATEST]
TIMES = st.builds(
    lambda turn, step: min(max(turn + step, LEAST), GREATEST), st.sampled_from(TURNS), st.integers(-3, 3)
)
LENGTHS = st.sampled_from([1, 2, 2**53, 2**53 + 1, 2**62, 2**63 - 2, 2**63 - 1])
COLUMNS = pa.schema([("type", pa.string()), ("t", pa.int64()), ("k", pa.int64())])

PATTERNS = {
    "sequence": "SELECT * WHERE A ; B",
    "contiguous": "SELECT * WHERE A : B",
    "iteration": "SELECT * WHERE A+ ; B",
    "partition": "SELECT * WHERE A ; B PARTITION BY [k]",
    "strategy": "SELECT NEXT * WHERE A+ ; B",
    "registers": "SELECT * WHERE A AS a ; B AS b ; A AS c FILTER a.k < b.k AND b.k <= c.k",
    "chain": "SELECT * WHERE A AS a ; B AS b FILTER a.k != b.k",
    "joined": "SELECT * WHERE A AS a ALL B AS b FILTER a.k = b.k",
}
"""One pattern for each way in which runs wait; with a window behind it, it is a query."""


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    times = sorted(draw(st.lists(TIMES, min_size=2, max_size=7)))
    rows = [(draw(st.sampled_from("AB")), time, draw(st.integers(0, 1))) for time in times]
    return [Event(kind, {"t": time, "k": k}, time) for kind, time, k in rows]


def table_of(events: list[Event]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"type": event.type, **event.attributes} for event in events], schema=COLUMNS
    )


def at(*times: int) -> pa.Table:
    """A, B, A, B, … at these times."""
    kinds = ["AB"[place % 2] for place in range(len(times))]
    return pa.table({"type": kinds, "t": pa.array(times, pa.int64()), "k": [0] * len(times)}, schema=COLUMNS)


def found_in(table: pa.Table, query: str, **how: Any) -> list[tuple[int, int]]:
    rows = (
        estero.query(query).run(table, type="type", time="t", types=("A", "B"), **how).to_arrow().to_pylist()
    )
    return [(row["start"], row["end"]) for row in rows]


# --------------------------------------------------------------------------------------------- laws


@settings(max_examples=min(40, MOST))
@given(st.sampled_from(list(PATTERNS)), streams(), LENGTHS)
def test_windows_over_extreme_times_hold_what_the_reference_says(
    name: str, events: list[Event], length: int
) -> None:
    query = f"{PATTERNS[name]} WITHIN {length} [t]"
    answer = estero.query(query).run(table_of(events), type="type", time="t", types=("A", "B"))
    assert by_end(answer.batches()) == evaluate_query(parse_query(query), events, tick=1)
    assert answer.count() == sum(map(len, by_end(answer.batches()).values()))


@settings(max_examples=min(30, MOST))
@given(
    st.sampled_from(list(PATTERNS)),
    streams(),
    LENGTHS,
    st.sampled_from([0, 3, 2**62, GREATEST]),
    st.data(),
)
def test_pushed_events_of_extreme_times_are_late_and_found_as_said(
    name: str, events: list[Event], length: int, lateness: int, data: st.DataObject
) -> None:
    query = f"{PATTERNS[name]} WITHIN {length} [t]"
    arriving = data.draw(st.permutations(events))
    recognizer = estero.query(query).recognizer(
        COLUMNS, type="type", time="t", types=("A", "B"), lateness=lateness
    )
    naive, batches = Naive(lateness, strict=False), []
    for place, event in enumerate(arriving):
        batches += list(recognizer.push(table_of([event])).batches())
        naive.push([event], place)
        assert (recognizer.late, recognizer.held_back) == (naive.late, len(naive.held))
        if place == len(events) // 2:
            recognizer = estero.restore(query, recognizer.snapshot())
    batches += list(recognizer.flush().batches())
    naive.let_go(max(naive.times))
    gone = [event for _, _, event in naive.gone]
    assert by_end(batches) == evaluate_query(parse_query(query), gone, tick=1)


@given(st.lists(TIMES, min_size=1).map(sorted), LENGTHS | st.just(0), st.data())
@example([LEAST, GREATEST], GREATEST, None)
def test_the_reach_of_a_window_is_that_of_whole_numbers(
    times: list[int], width: int, data: st.DataObject | None
) -> None:
    first = 0 if data is None else data.draw(st.integers(0, len(times)))
    stamps = np.array(times, np.int64)
    expected = [
        next(place for place, early in enumerate(times) if late - early <= width) for late in times[first:]
    ]
    assert window_starts(stamps, first, width).tolist() == expected
    for stamp in (LEAST, 0, GREATEST):
        assert out_of_reach(stamps, stamp, width) == sum(early < stamp - width for early in times)


@pytest.mark.parametrize("width", [0, 1, 7, 40, 2**64 - 1])
def test_so_is_it_where_stamps_are_consecutive_or_almost(width: int) -> None:
    consecutive = list(range(-9, 31))
    for times in (
        consecutive,
        [*consecutive[:20], consecutive[18], *consecutive[21:]],
        [*consecutive[:-1], 31],
    ):
        times.sort()
        for first in (0, 15, len(times)):
            expected = [
                5 + next(place for place, early in enumerate(times) if late - early <= width)
                for late in times[first:]
            ]
            assert window_starts(np.array(times, np.int64), first, width, 5).tolist() == expected


# --------------------------------------------------------------------------------------- named cases


@pytest.mark.parametrize("times", [(-(2**62), 2**62), (-1, GREATEST), (LEAST, GREATEST), (LEAST, 0)])
def test_times_more_than_63_bits_apart_are_in_no_window(times: tuple[int, int]) -> None:
    table = at(*times)
    for length in (1, GREATEST):
        assert found_in(table, f"SELECT * WHERE A ; B WITHIN {length} [t]") == []
    for unit in ("ns", "s", "d"):
        assert found_in(table, "SELECT * WHERE A ; B WITHIN 200 DAYS", time_unit=unit) == []
    assert found_in(table, "SELECT * WHERE A ; B") == [(0, 1)]


def test_the_least_time_of_a_pandas_frame_is_a_time_that_is_missing() -> None:
    times = pd.Series([pd.Timestamp("2024-01-01"), pd.NaT]).astype("datetime64[ns]").astype("int64")
    frame = pd.DataFrame({"type": ["A", "B"], "t": times, "k": [0, 0]})
    message = f"row 2, column 't': the time is NaT, which is {LEAST} as an integer"
    with pytest.raises(DataError, match=message):
        found_in(frame, "SELECT * WHERE A ; B WITHIN 1 HOUR", time_unit="ns")
    recognizer = estero.query("SELECT * WHERE A ; B").recognizer(
        COLUMNS, type="type", time="t", types=("A", "B")
    )
    with pytest.raises(DataError, match=message):
        recognizer.push(frame)
    tables = {"A": frame, "B": frame.head(1)}
    with pytest.raises(DataError, match="the time in the table of A is NaT"):
        estero.query("SELECT * WHERE A ; B").run(tables, time="t").count()


def test_a_batch_that_falls_by_more_than_63_bits_is_put_in_order() -> None:
    recognizer = estero.query("SELECT * WHERE A ; B").recognizer(
        COLUMNS, type="type", time="t", types=("A", "B")
    )
    assert recognizer.push(at(GREATEST, LEAST)).count() == 0
    assert recognizer.late == 0


@pytest.mark.parametrize("own", [True, False])
def test_a_stream_does_not_wait_for_a_window_that_no_watermark_passes(own: bool) -> None:
    table = to_table([Event("A", dict.fromkeys("nxsk", None) | {"time": 9 * 10**12}, 9 * 10**12)])
    run = planned(parse_query(f"SELECT * WHERE A ; B WITHIN {GREATEST} [time]"), table)
    stream = Simulation(run, own=own)
    assert list(stream.answers([table, table])) == []
    looked = [Held(*value).look_again for value, _ in stream.state.values()]
    assert NEVER in looked
    assert max(looked) < 2**63


# ---------------------------------------------------------------------------------------------- Spark


def in_mode(spark: SparkSession, ansi: str) -> Iterator[None]:
    """The session with overflow as an error, or wrapping around; as it was afterwards."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    yield
    spark.conf.set("spark.sql.ansi.enabled", before or "true")


@pytest.fixture(params=["true", "false"])
def either_mode(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    yield from in_mode(spark, request.param)


EDGES = at(LEAST, LEAST, LEAST + 1, -(2**62), -1, 0, 5, 6, 2**62, 2**62, GREATEST - 1, GREATEST, GREATEST)
ON_SPARK = (1, 2**62)


@pytest.mark.spark
@pytest.mark.usefixtures("either_mode")
def test_ranges_and_hot_keys_of_extreme_times_find_the_same_on_spark(spark: SparkSession) -> None:
    df = spark.createDataFrame(EDGES)
    times = EDGES.column("t").to_pylist()
    for length in ON_SPARK:
        for tail in ("", " PARTITION BY [k]"):
            query = f"SELECT * WHERE A ; B{tail} WITHIN {length} [t]"
            found = recognize(df, query, type="type", time="t", partitions=3)
            pairs = sorted((row["start_time"], row["end_time"]) for row in found.toArrow().to_pylist())
            assert pairs == sorted((times[start], times[end]) for start, end in found_in(EDGES, query)), query


@pytest.mark.spark
@pytest.mark.usefixtures("either_mode")
def test_a_time_that_is_no_timestamp_is_an_error_of_the_watermark_on_spark(spark: SparkSession) -> None:
    micros = f"unix_micros({clock_sql('t', Ticks(1))})"
    with pytest.raises(Exception, match="estero: a time is too large for a timestamp"):
        spark.createDataFrame(at(LEAST)).selectExpr(micros).collect()
    rows = spark.createDataFrame(at(LEAST + 1, GREATEST)).selectExpr(micros).collect()
    assert [row[0] for row in rows] == [-(GREATEST // 1000), GREATEST // 1000]
