"""Durations between events: every engine finds what the reference says, on timestamps and integer times."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import estero
from engines import Engine
from estero.language.tree.literals import Value
from estero.plan.chains import ChainPlan
from estero.reference.queries import Event, evaluate_query
from estero.testing import assert_matches

START = datetime(2024, 2, 28, 23, 58, tzinfo=UTC)
BY_THE_CHAIN = (
    "A AS a ; B AS b FILTER b.time - a.time <= 2 MINUTES",
    "A AS a ; B AS b FILTER b.time <= a.time + 1 MINUTE 30 SECONDS",
    "A AS a ; B AS b FILTER 1 MINUTE < b.time - a.time",
    "A AS a ; B AS b ; C AS c FILTER b.time - a.time < 1 MINUTE AND c.time - b.time <= 90 SECONDS",
    "A AS a ; B AS b FILTER b.time - a.time BETWEEN 1 MINUTE AND 2 * 1 MINUTE",
    "A AS a ; B AS b FILTER -(b.time - a.time) >= -(90 SECONDS)",
)
"""What an ordered index of neighbours serves whole."""
OTHERS = (
    "A AS a ; B AS b FILTER abs(a.time - b.time) IN {30 SECONDS, 1 MINUTE..2 MINUTES}",
    "A+ AS a ; B AS b FILTER b.time - a.time <= 1 MINUTE AND last(a.time) - first(a.time) > 0 SECONDS",
)
BY_REGISTERS = ("A+ AS a ; C ; B AS b FILTER b.time - a.time <= 2 MINUTES AND b.n > a.n",)
ON_TIMESTAMPS = (
    "A AS a ; B AS b FILTER b.due - a.time > 5 MINUTES",
    "A AS a ; B AS b FILTER b.due - a.due <= 1 HOUR",
    "A AS a ; B AS b FILTER (b.due - a.due) / 2 > b.time - a.time",
    "A AS a ; B AS b FILTER seconds(b.time - a.time) * 1.5 <= 90",
    "A AS a ; B AS b FILTER a[due - time > 3 MINUTES OR due IS NULL] AND b[time + n * 10 MINUTES >= due]",
)


NEVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def stream(*, ticks: bool, never: datetime = NEVER) -> pa.Table:
    """Events with ties, at most minutes apart; deadlines, of which some are NULL and some never come."""
    draw, rows, passed = random.Random(5), [], 0
    for _ in range(14):
        passed += draw.choice([0, 20, 30, 60, 95])
        moment = START + timedelta(seconds=passed)
        due = draw.choice([None, never, moment + timedelta(minutes=draw.randint(1, 9))])
        rows.append({"type": draw.choice("ABC"), "time": moment, "n": draw.randint(0, 3), "due": due})
    instant = pa.timestamp("us", "UTC")
    schema = pa.schema([("type", pa.string()), ("time", instant), ("n", pa.int64()), ("due", instant)])
    table = pa.Table.from_pylist(rows, schema=schema)
    if not ticks:
        return table
    return table.set_column(1, "time", table["time"].cast(pa.timestamp("s", "UTC")).cast(pa.int64()))


def expected(text: str, events: pa.Table, tick: int) -> list[dict[str, list[int]]]:
    """What the reference says, by label."""
    rows: list[dict[str, Value]] = events.to_pylist()
    known = [Event(str(row["type"]), row, _time(row["time"])) for row in rows]
    answer = evaluate_query(estero.query(text).tree, known, tick=tick)
    found = [{label: sorted(at) for label, at in each.labels} for ends in answer.values() for each in ends]
    assert found
    assert len(found) < len(_all(text, known))
    return found


def _all(text: str, events: list[Event]) -> list[object]:
    """What there would be without the filter: the test can fail."""
    answer = evaluate_query(estero.query(text.split(" FILTER ", maxsplit=1)[0]).tree, events)
    return [each for ends in answer.values() for each in ends]


def _time(value: Value) -> int:
    if isinstance(value, datetime):
        return (value - START) // timedelta(microseconds=1)
    assert isinstance(value, int)
    return value


@pytest.mark.parametrize("pattern", [*BY_THE_CHAIN, *BY_REGISTERS, *OTHERS, *ON_TIMESTAMPS])
def test_timestamps_are_compared_by_what_lies_between(pattern: str) -> None:
    text, events = f"SELECT * WHERE {pattern}", stream(ticks=False)
    assert_matches(text, events, expected(text, events, 1000), engines=["process"])


@pytest.mark.parametrize("pattern", [*BY_THE_CHAIN, *BY_REGISTERS, *OTHERS])
def test_integer_times_are_compared_in_ticks(pattern: str) -> None:
    text, events = f"SELECT * WHERE {pattern}", stream(ticks=True)
    assert_matches(text, events, expected(text, events, 10**9), engines=["process"], time_unit="s")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("pattern", [BY_THE_CHAIN[0], OTHERS[0], ON_TIMESTAMPS[1]])
def test_spark_finds_the_same(pattern: str) -> None:
    # Spark reads Arrow tables by pandas, which has no such late times.
    text, events = f"SELECT * WHERE {pattern}", stream(ticks=False, never=START + timedelta(days=99))
    assert_matches(text, events, expected(text, events, 1000), engines=["spark"])


@pytest.mark.parametrize("pattern", BY_THE_CHAIN)
@pytest.mark.parametrize("ticks", [True, False])
def test_a_distance_between_neighbours_is_looked_up(pattern: str, *, ticks: bool) -> None:
    how: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s" if ticks else None}
    plan = estero.query(f"SELECT * WHERE {pattern}").explain(stream(ticks=ticks), **how).plan
    assert isinstance(plan, ChainPlan)
    assert not plan.sieved


def test_registers_hold_a_time_and_a_distance() -> None:
    explained = estero.query(f"SELECT * WHERE {BY_REGISTERS[0]}").explain(
        stream(ticks=False), type="type", time="time"
    )
    assert not explained.plan.residuals


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * WHERE A AS a ; B AS b FILTER 1 SECOND * b.f >= 1 SECOND * a.f",
        "SELECT * WHERE A AS a ; B+ AS b FILTER sum(b.f) * 1 SECOND > 0 SECONDS",
        "SELECT 1 SECOND * b.f AS length WHERE A ; B AS b",
    ],
)
def test_a_duration_of_more_than_64_bits_is_an_error(bounded_engine: Engine, query: str) -> None:
    events = stream(ticks=True).drop_columns("due").append_column("f", pa.array([0.5] * 13 + [1e300]))
    events = events.set_column(0, "type", pa.array(["A", *"AB" * 6, "B"]))
    with pytest.raises(Exception, match=r"64.bit"):  # Spark says it in a job of the user
        bounded_engine.rows(query, events, {"type": "type", "time": "time", "time_unit": "s"})
