"""Up to when a stream is known, in the times of every library, and times near the bounds of 64 bits."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import estero
from estero.answers.shown_values import shown_values
from estero.errors import DataError

LAYOUT: dict[str, Any] = {"type": "type", "time": "time", "types": ("A", "B")}
BEGIN = datetime(2010, 1, 1)  # noqa: DTZ001

SHIPPED_LATE = "SELECT * WHERE A AS a ; NOT(B) FOR 3000 DAYS"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize(
    ("until", "count"),
    [
        (datetime.fromisoformat("2600-01-01"), 1),
        (datetime.fromisoformat("2010-06-01"), 0),
        (date(2600, 1, 1), 1),
        ("9999-12-31", 1),
        ("2018-03-20T00:00:00Z", 0),
        ("2018-03-21T02:00:00+02:00", 1),
        (datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12))), 1),
        (np.datetime64("2600"), 1),
        (np.datetime64("2010-12"), 0),
        (np.datetime64("2600-01-01"), 1),
        (np.datetime64("2018-03-20T00", "h"), 0),
        (np.datetime64("2018-03-20T00:01", "m"), 1),
        (np.datetime64("2018-03-20T00:00:00", "ns"), 0),
        (np.datetime64(10**15, "Y"), 1),
        (pd.Timestamp("2600-01-01", tz="Europe/Vienna"), 1),
        (pd.Timestamp("2018-03-20"), 0),
        (pa.scalar(datetime.fromisoformat("2600-01-01")), 1),
    ],
)
def test_until_is_exact_in_every_unit(unit: str, until: object, count: int) -> None:
    table = pa.table({"type": ["A"], "time": pa.array([BEGIN], pa.timestamp(unit))})
    query = estero.query(SHIPPED_LATE)
    assert query.run(table, **LAYOUT, until=until).count() == count
    recognizer = query.recognizer(table.schema, **LAYOUT)
    recognizer.push(table)
    assert recognizer.close(until=until).count() == count


@pytest.mark.parametrize(
    "until", [pd.Timestamp("2018-03-20T00:00:00.000000001"), "2018-03-20T00:00:00.000000001Z"]
)
def test_until_has_the_nanoseconds_of_its_time_column(until: object) -> None:
    found = []
    for unit in ("us", "ns"):
        table = pa.table({"type": ["A"], "time": pa.array([BEGIN], pa.timestamp(unit))})
        answer = estero.query(SHIPPED_LATE).run(table, **LAYOUT, until=until)
        found.append(answer.count())
    assert found == [0, 1]


@pytest.mark.parametrize("until", [pd.NaT, np.datetime64("NaT"), 5, 1.5, True, "soon", b"2026"])
def test_until_of_times_is_a_time(until: object) -> None:
    table = pa.table({"type": ["A"], "time": pa.array([BEGIN], pa.timestamp("ns"))})
    with pytest.raises(
        DataError, match=r"which is not a time of these events\n  hint: it is a time such as datetime"
    ):
        estero.query(SHIPPED_LATE).run(table, **LAYOUT, until=until)


@pytest.mark.parametrize("until", [np.datetime64(-(10**15), "Y"), np.datetime64(0, "as"), "0001-01-01"])
def test_until_is_not_before_the_last_event_however_far(until: object) -> None:
    table = pa.table({"type": ["A"], "time": pa.array([BEGIN], pa.timestamp("ns"))})
    with pytest.raises(DataError, match="until is before the last event"):
        estero.query(SHIPPED_LATE).run(table, **LAYOUT, until=until).count()


@pytest.mark.parametrize("until", [np.int64(40), 40, "40", 10**30])
def test_until_of_integers_is_an_integer(until: object) -> None:
    table = pa.table({"type": ["A"], "time": [30]})
    query = estero.query("SELECT * WHERE A AS a ; NOT(B) FOR 9 [time]")
    assert query.run(table, **LAYOUT, until=until).count() == 1


def test_times_beyond_64_bits_are_the_last_one() -> None:
    last = 2**63 - 2
    table = pa.table({"type": ["A"], "time": pa.array([last], pa.timestamp("ns"))})
    waits = estero.query(SHIPPED_LATE).run(table, **LAYOUT, until="end")
    assert waits.to_arrow()["decided_time"].cast(pa.int64()).to_pylist() == [2**63 - 2]
    begun = estero.query("SELECT a WHERE A AS a ; B WITHIN 3000 DAYS")
    partials = begun.run(table, **LAYOUT, until="end").partials().to_arrow()
    assert partials["expired_time"].cast(pa.int64()).to_pylist() == [2**63 - 2]
    recognizer = begun.recognizer(table.schema, **LAYOUT, partials=True)
    recognizer.push(table)
    rows = recognizer.close(until="end").to_arrow()
    assert rows["expired_time"].cast(pa.int64()).to_pylist() == [2**63 - 2]


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        (pa.timestamp("us"), "MICROSECONDS"),
        (pa.timestamp("ns", "UTC"), "NANOSECONDS"),
        (pa.int64(), "[time]"),
    ],
)
def test_windows_pass_with_the_latest_time_that_there_is(kind: pa.DataType, unit: str) -> None:
    last = 2**63 - 1 - int(pa.types.is_timestamp(kind))
    ticks = pa.array([last - 9, last - 2, last])
    table = pa.table({"type": ["A", "A", "Z"], "time": ticks.cast(kind)})
    query = estero.query(f"SELECT a WHERE A AS a ; B WITHIN 5 {unit}")
    partials = query.run(table, **LAYOUT).partials().to_arrow()
    assert partials["expired_time"].cast(pa.int64()).to_pylist() == [last - 4]
    for each, passed in zip((table.slice(0, 1), table.slice(1, 1)), (last - 4, last), strict=True):
        recognizer = query.recognizer(table.schema, **LAYOUT)
        recognizer.push(each)
        (wanted,) = shown_values(pa.array([passed]).cast(kind))
        assert recognizer.progress().expires == wanted


@pytest.mark.parametrize("operator", ["<=", ">", ">="])
@pytest.mark.parametrize("unit", ["[time]", "EVENTS"])
def test_distances_may_be_almost_as_long_as_64_bits(operator: str, unit: str) -> None:
    table = pa.table({"type": ["A", "B"], "time": [-(2**63), 2**63 - 2]})
    query = f"SELECT * WHERE A ;[{operator} {2**63 - 2} {unit}] B"
    wanted = (operator == "<=") == (unit == "EVENTS")
    assert estero.query(query).run(table, **LAYOUT).count() == wanted
