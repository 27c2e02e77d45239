"""``decided_time`` in FILTER and SELECT: what it says at the limits of times, and beside other such names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import estero
from estero.answers.answer import Answer
from estero.engine.int64 import GREATEST

pytestmark = [
    pytest.mark.filterwarnings("ignore:there are no events of type"),
    pytest.mark.filterwarnings("ignore:the (key|label) .* is shown as"),
]

PAID = "SELECT NONE WHERE paid ; NOT(shipped) FOR 1 HOUR"
START = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS = pa.table(
    {
        "type": ["paid", "shipped", "paid", "paid", "other"],
        "ts": [START + timedelta(minutes=minutes) for minutes in (0, 30, 100, 200, 900)],
        "decided_time": [1, 2, 3, 4, 5],
    }
)


def asked(text: str, **values: object) -> Answer:
    query = estero.query(text)
    return (query.bind(values) if values else query).run(ORDERS, type="type", time="ts")


def starts(text: str, **values: object) -> list[int]:
    return [each.start for each in asked(text, **values)]


def of_ticks(text: str, ticks: list[int], kind: pa.DataType) -> Answer:
    times = pa.array(ticks, pa.int64())
    shown = times.view(kind) if pa.types.is_timestamp(kind) else times
    stream = pa.table({"type": ["A"] * len(ticks), "t": shown})
    unit = None if pa.types.is_timestamp(kind) else "ns"
    return estero.query(text).run(stream, type="type", time="t", time_unit=unit, until="end")


def test_it_is_compared_with_constants_and_with_times_of_events() -> None:
    assert starts(PAID) == [2, 3]
    assert starts(f"{PAID} FILTER decided_time < TIMESTAMP '2026-01-01 03:00:00'") == [2]
    assert starts(f"{PAID} FILTER decided_time - paid.ts >= 1 HOUR") == [2, 3]
    assert starts(f"{PAID} FILTER decided_time - paid.ts > 1 HOUR OR hour(decided_time) = 4") == [3]
    text = "SELECT NONE WHERE paid ; NOT(shipped) FOR $d FILTER decided_time - start_time = $d"
    assert starts(text, d="25 minutes") == [0, 2, 3]


def test_what_does_not_pass_is_neither_given_nor_waits() -> None:
    answer = asked(
        "SELECT NONE WHERE paid ; NOT(x) FOR 1 DAY FILTER decided_time < TIMESTAMP '2026-01-02 01:00:00'"
    )
    assert (answer.count(), answer.undecided().count()) == (0, 1)


@pytest.mark.parametrize(
    ("kind", "ticks"),
    [(pa.int64(), 1500), (pa.timestamp("ns"), 1500), (pa.timestamp("us"), 1), (pa.timestamp("us", "UTC"), 1)],
)
def test_a_deadline_is_whole_ticks_in_all_of_it(kind: pa.DataType, ticks: int) -> None:
    text = "SELECT decided_time AS d, decided_time - end_time AS w WHERE A ; NOT(B) FOR 1500 NANOSECONDS"
    for rest in (
        "",
        " FILTER decided_time - A.t >= 1 MICROSECOND AND decided_time - A.t <= 1500 NANOSECONDS",
    ):
        found = of_ticks(text + rest, [0, 9000], kind).to_arrow()
        assert found["decided_time"].cast(pa.int64()).to_pylist() == [ticks, 9000 + ticks]
        assert found["d"].equals(found["decided_time"])
        assert found["w"].cast(pa.int64()).to_pylist() == [ticks, ticks]


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        (pa.int64(), "NANOSECONDS"),
        (pa.timestamp("us"), "MICROSECONDS"),
        (pa.timestamp("ns"), "NANOSECONDS"),
        (pa.timestamp("ns", "Europe/Madrid"), "NANOSECONDS"),
    ],
)
def test_beyond_64_bits_it_is_the_latest_time_that_there_is(kind: pa.DataType, unit: str) -> None:
    last = GREATEST - int(pa.types.is_timestamp(kind))  # the greatest timestamp is no time: infinity
    text = f"SELECT decided_time - A.t AS w WHERE A ; NOT(B) FOR 15 {unit}"
    ticks = [last - 20, last - 10, last - 1]
    found = of_ticks(text, ticks, kind).to_arrow()
    assert found["decided_time"].cast(pa.int64()).to_pylist() == [last - 5, last, last]
    assert found["w"].cast(pa.int64()).to_pylist() == [15, 10, 1]
    for rest, wanted in {
        f"decided_time - A.t < 15 {unit}": [1, 2],
        f"decided_time - end_time >= 10 {unit}": [0, 1],
        "decided_time > start_time": [0, 1, 2],
        "decided_time IS NULL": [],
    }.items():
        assert of_ticks(f"{text} FILTER {rest}", ticks, kind).to_arrow()["start"].to_pylist() == wanted


def test_it_is_the_time_where_there_is_one_and_a_key_where_there_is_none() -> None:
    text = "SELECT decided_time AS d, paid.decided_time AS own WHERE paid{} PARTITION BY [decided_time]"
    waiting = asked(text.format(" ; NOT(shipped) FOR 1 HOUR FILTER paid[decided_time > 1]")).to_arrow()
    assert waiting["d"].equals(waiting["decided_time"])
    assert waiting["own"].equals(waiting["decided_time_"])
    keyed = asked(text.format(" FILTER decided_time > 1")).to_arrow()
    assert keyed["d"].to_pylist() == keyed["decided_time"].to_pylist() == [3, 4]


def test_a_second_name_of_a_key_is_that_key() -> None:
    tables = {
        "A": pa.table({"t": [0], "decided_time": [5], "start_time": [6]}),
        "C": pa.table({"t": [1, 9], "k": [5, 5], "n": [6, 6]}),
    }
    found = estero.query(
        "SELECT k AS d, n AS s, decided_time AS known, start_time AS begun WHERE A ; C ; NOT(C) FOR 2 [t] "
        "PARTITION BY [decided_time, k], [start_time, n]"
    ).run(tables, time="t")
    assert found[0].measures == {"d": 5, "s": 6, "known": 3, "begun": 0}


def test_a_label_and_a_type_may_have_its_name() -> None:
    stream = pa.table({"type": ["decided_time", "x"], "t": [1, 9]})
    for pattern in ("decided_time", "(decided_time AS decided_time)"):
        found = estero.query(
            f"SELECT *, decided_time AS d WHERE {pattern} ; NOT(x) FOR 2 [t] FILTER decided_time = 3"
        )
        (row,) = found.run(stream, type="type", time="t").to_arrow().to_pylist()
        assert (row["decided_time"], row["d"], len(row["decided_time_"])) == (3, 3, 1)


def test_why_not_names_it() -> None:
    said = str(asked(f"{PAID} FILTER decided_time > TIMESTAMP '2027-01-01'").why_not())
    assert (
        "decided_time > TIMESTAMP '2027-01-01T00:00:00Z' rejects 2; nearest: decided_time is 2026-01-01"
        in said
    )
    text = "SELECT NONE WHERE paid ; other ; NOT(other) FOR 1 HOUR FILTER decided_time - paid.ts > 1000 HOURS"
    assert "without NOT(other) FOR 1 HOURS" in str(asked(text).why_not())
