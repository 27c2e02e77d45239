"""Durations in what is shown and in text files: days, hours, minutes and seconds, whatever their unit."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pytest

import estero
from estero.answers.shown_values import shown_values
from estero.cli.terminal import table_of
from notebooks import shown_by

SECOND = 1_000_000_000
QUERY = "SELECT x[d], y, duration AS lasted WHERE A AS x ; B AS y"


def lasting(unit: str, seconds: float) -> estero.Answer:
    """The answer whose one complex event takes so many seconds, with times and an attribute of this unit."""
    ticks = pa.array([0, int(seconds * SECOND)], pa.int64())
    durations = pa.array(ticks, pa.duration("ns")).cast(pa.duration(unit), safe=False)
    times = ticks.cast(pa.timestamp("ns")).cast(pa.timestamp(unit), safe=False)
    events = pa.table({"kind": ["A", "B"], "t": times, "d": durations})
    return estero.query(QUERY).run(events, type="kind", time="t")


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_durations_are_written_as_people_write_them(unit: str) -> None:
    answer = lasting(unit, 81.67)
    lines, table = io.BytesIO(), io.BytesIO()
    answer.write(lines, format="jsonl")
    line = json.loads(lines.getvalue())
    assert line["lasted"] == "0:01:21.67"
    assert line["labels"]["y"][0]["d"] == "0:01:21.67"
    answer.write(table, format="csv")
    assert table.getvalue().decode().splitlines()[1].split(",")[4] == '"0:01:21.67"'
    assert repr(answer[0]).endswith("lasted=0:01:21.67, x=[0], y=[1])")
    (row,) = shown_by(answer).rows()
    assert row.count("0:01:21.67") == 2
    for value in (answer, answer[0], answer.rows()):
        assert "days" not in shown_by(value).text
    shown, _ = table_of(answer, rows=None, positions=False)
    assert "0:01:21.67 " in "\n".join(shown.lines(160))


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0:00:00"),
        (1, "0:00:00.000000001"),
        (-61 * SECOND, "-0:01:01"),
        (86_400 * SECOND, "1 day, 0:00:00"),
        (3 * 86_400 * SECOND + 36_000 * SECOND, "3 days, 10:00:00"),
        (2**63 - 1, "106751 days, 23:47:16.854775807"),
    ],
)
def test_a_duration_has_as_many_decimals_as_it_needs(nanoseconds: int, text: str) -> None:
    assert shown_values(pa.array([nanoseconds, None], pa.duration("ns"))) == [text, None]


def test_long_durations_of_coarse_units_are_shown() -> None:
    assert shown_values(pa.array([2**62], pa.duration("s"))) == ["53375995583650 days, 7:45:04"]


def test_a_funnel_shows_waits_in_the_same_way() -> None:
    events = pa.table({"kind": ["A", "B"], "t": pa.array([0, 81_670_000_001], pa.timestamp("ns"))})
    funnel = estero.query("SELECT * WHERE A ; B WITHIN 1 HOUR").run(events, type="kind", time="t").funnel()
    assert "0:01:21.670000001" in repr(funnel)
    assert shown_by(funnel).rows()[1][-1] == "0:01:21.670000001"


def test_why_not_says_durations_as_queries_write_them() -> None:
    times = pa.array([0, 81_670_000_001], pa.timestamp("ns"))
    events = pa.table({"kind": ["A", "B"], "t": times})
    query = estero.query("SELECT * WHERE A AS x ; B AS y FILTER y.t - x.t < 1 SECOND")
    said = str(query.run(events, type="kind", time="t").why_not())
    assert "1 MINUTE 21 SECONDS 670 MILLISECONDS 1 NANOSECOND" in said
