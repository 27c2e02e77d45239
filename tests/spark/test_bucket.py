"""The parts of a stream one by one: ticks, headers, blobs, what is late to the tick, what is sent when."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import estero
from estero.classify.column_names import TIME
from estero.errors import DataError
from estero.reference.queries import Event
from estero.spark.streams import packing, stages
from estero.spark.streams.bucket import FORMAT, Duty, Held, Turn, refuse_other
from estero.spark.streams.packing import GUARD, NO_TIME, Packing, batch_of, blob_of, buckets_of
from estero.spark.streams.ticks import Ticks
from laws.evaluators import planned
from spark.simulated import Simulation
from strategies.patterns import to_table

MICROS = Ticks(1000)


# -------------------------------------------------------------------------------------------- ticks


def test_a_millisecond_is_all_the_ticks_in_it() -> None:
    assert (MICROS.from_ms(5), MICROS.through_ms(5), MICROS.ms_of(5_999)) == (5_000, 5_999, 5)
    assert (MICROS.from_ms(-1), MICROS.ms_of(-1), MICROS.from_ms(2)) == (-1_000, -1, 2_000)


def test_of_long_ticks_those_count_that_begin_in_time() -> None:
    seconds = Ticks(1_000_000_000)
    assert [seconds.from_ms(ms) for ms in (0, 1, 999, 1000, 1001)] == [0, 1, 1, 1, 2]
    assert [seconds.through_ms(ms) for ms in (0, 1, 998, 999, 1000)] == [0, 0, 0, 0, 1]
    assert (seconds.ms_of(3), seconds.from_ms(1), seconds.from_ms(2000)) == (3000, 1, 2)


def test_times_are_followed_as_timestamps() -> None:
    assert Ticks(1_000_000).clock("t") == "timestamp_micros(t * 1000L)"
    assert MICROS.clock("t") == "timestamp_micros(t * 1L)"
    assert Ticks(1).clock("t") == "timestamp_micros(t div 1000L)"


# ------------------------------------------------------------------------------------------ headers


def test_a_state_of_another_version_is_refused() -> None:
    header = json.dumps({"format": FORMAT, "query": "q", "plan": "p", "buckets": 1})
    refuse_other(header, header)
    with pytest.raises(
        DataError, match=f"the checkpoint has format 0, and this version of Estero reads {FORMAT}"
    ):
        refuse_other(json.dumps(json.loads(header) | {"format": 0}), header)


# ---------------------------------------------------------------------------------------- packing


EVENTS = pa.schema(
    [(TIME, pa.int64()), ("__key0", pa.int64()), ("__key1", pa.int64()), ("__bits0", pa.int64())]
)


def test_events_of_a_key_are_in_one_bucket_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_ROWS", 300)
    keys = np.random.default_rng(1).integers(0, 50, 1000)
    columns = [pa.array(np.arange(1000)), pa.array(keys), pa.array(np.zeros(1000, np.int64)), pa.array(keys)]
    events = pa.RecordBatch.from_arrays(columns, schema=EVENTS)
    batches = [events.slice(first, 100) for first in range(0, 1000, 100)]
    rows = [row for batch in Packing(4, EVENTS).packed(batches, 7) for row in batch.to_pylist()]
    ends = [row for row in rows if row["events"] is None]
    assert len({row["bucket"] for row in ends} - {GUARD}) == 4 == len(ends) - 1
    assert {row["newest"] for row in ends} == {999}
    assert {(row["task"], row["newest"]) for row in rows if row["events"]} == {(7, NO_TIME)}
    assert {row["number"] for row in rows if row["events"]} == {0, 1, 2, 3}
    found: dict[int, list[int]] = {}
    of: dict[int, set[int]] = {}
    for row in sorted((row for row in rows if row["events"]), key=lambda row: row["number"]):
        batch = batch_of(row["events"], EVENTS)
        for time, key in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            found.setdefault(key, []).append(time)
            of.setdefault(key, set()).add(row["bucket"])
    assert found == {key: np.flatnonzero(keys == key).tolist() for key in set(keys.tolist())}
    assert all(len(buckets) == 1 for buckets in of.values())


def test_keys_that_are_small_numbers_are_shared_evenly() -> None:
    keys = [np.arange(16_000), np.zeros(16_000, np.int64)]
    sizes = np.bincount(buckets_of(keys, 16), minlength=16)
    assert sizes.min() > 900
    assert sizes.max() < 1100


# -------------------------------------------------------------------------------------------- turns


def at(*times: int, order: tuple[int, ...] = ()) -> bytes:
    """Events of type A at these ticks, with what breaks ties."""
    schema = duty(order=bool(order)).packed
    rows = [
        {TIME: time, "__bits0": 1, "__order1": order[place] if order else None}
        for place, time in enumerate(times)
    ]
    return blob_of(pa.RecordBatch.from_pylist(rows, schema=schema))


def duty(*, order: bool = False, lateness: int | None = None) -> Duty:
    """A stream in microseconds that finds each event."""
    table = to_table([Event("A", {"time": 0, "n": 0, "x": 0.0, "s": "", "k": 0}, 0)])
    run = planned(estero.query("SELECT a[time] WHERE A AS a WITHIN 2 [time]").tree, table)
    plain = Simulation(run).stages().duty
    packed = plain.packed.append(pa.field("__order1", pa.int64())) if order else plain.packed
    sorted_by = (TIME, "__order1") if order else (TIME,)
    return replace(plain, packed=packed, order=sorted_by, ticks=MICROS, lateness=lateness)


def turned(turn: Turn, *blobs: bytes) -> tuple[list[int], list[int], Held | None]:
    """The ends that are found, the times that are late, and what is kept."""
    found = [row["end_time"] for table in turn.run(blobs) for row in table.to_pylist()]
    return found, [time for batch in turn.late for time in batch.column(TIME).to_pylist()], turn.close()


def test_the_last_events_of_a_stream_are_found_with_the_millisecond_that_they_are_in() -> None:
    stream = duty()
    found, late, held = turned(Turn(stream, None, None, 1_700), at(1_200, 1_700))
    assert (found, late) == ([], [])
    assert held is not None
    assert held.look_again == 0
    found, late, held = turned(Turn(stream, held, 1, None))
    assert (found, late) == ([1_200, 1_700], [])


def test_what_is_in_order_inside_a_millisecond_is_not_late() -> None:
    stream = duty()
    _, _, held = turned(Turn(stream, None, 1, 1_200), at(1_200))
    found, late, held = turned(Turn(stream, held, 1, 1_900), at(1_900, 1_201, 1_199, 1_200))
    assert (found, late) == ([1_200, 1_201, 1_900], [1_199])


def test_where_the_watermark_is_ours_no_event_waits_that_the_next_one_passes() -> None:
    stream = duty(lateness=300)
    found, late, held = turned(Turn(stream, None, None, 1_700), at(1_200, 1_400, 1_401))
    assert (found, late) == ([1_200, 1_400], [])
    found, late, _ = turned(Turn(stream, held, None, 1_701), at(1_399, 1_400, 1_402))
    assert (found, late) == ([1_400, 1_401], [1_399])


def test_of_events_of_one_time_those_before_one_that_was_recognized_are_late() -> None:
    stream = duty(order=True, lateness=0)
    found, late, held = turned(Turn(stream, None, None, 7), at(7, 7, order=(4, 2)))
    assert (found, late) == ([7, 7], [])
    turn = Turn(stream, held, None, 7)
    assert turned(turn, at(7, 7, 7, order=(3, 4, 9)))[:2] == ([7, 7], [7])
    assert turn.late[0].column("__order1").to_pylist() == [3]


def test_pyspark_is_made_to_send_answers_before_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_HELD_BACK", 1000)
    monkeypatch.setattr(stages, "_ROWS", 10)
    working = stages.Stages(duty(), 5)
    answer = working.duty.work.answer
    tables = [
        pa.RecordBatch.from_pylist(
            [{name: [] if name.isalpha() else 1 for name in answer.names}] * 6, schema=answer
        )
    ] * 40
    frames = list(working._blobs_of(iter(tables)))
    rows = [frame["answers"].tolist() for frame in frames]
    assert [None] * 6 in rows
    blobs = [blob for each in rows for blob in each if blob is not None]
    assert sum(batch_of(blob, answer).num_rows for blob in blobs) == 240
    sent = 0
    for each in rows:
        sent = 0 if each == [None] * 6 else sent + sum(map(len, each))
        assert sent < 3000
