"""The value of the event before: every engine finds what the reference says."""

from __future__ import annotations

from datetime import timedelta

import pytest

import estero
from estero.testing import assert_matches
from laws.test_durations import START, expected, stream

AS_THEY_COME = (
    "A+ AS a ; B FILTER a.n >= prev(a.n)",
    "A+ AS a ; B FILTER a.time - prev(a.time) <= 2 MINUTES",
    "(A OR B)+ AS x ; C FILTER prev(x.n) < 2 * x.n + 1",
    "A+ AS a ; B FILTER a.n != prev(a.n)",
)
"""What is checked while events are read."""
AT_THE_END = (
    "A+ AS a ; B AS b FILTER a.n - prev(a.n) < b.n",
    "(A OR B)+ AS x ; C FILTER abs(x.n - prev(x.n)) = 1",
    "A+ AS a ; B FILTER NOT increasing(a.n) AND a.due - prev(a.time) > 4 MINUTES",
    "A{2,} AS a ; B FILTER NOT prev(a.due) IS NULL",
)


@pytest.mark.parametrize("pattern", [*AS_THEY_COME, *AT_THE_END])
def test_events_are_compared_with_those_before_them(pattern: str) -> None:
    text, events = f"SELECT * WHERE {pattern} WITHIN 8 EVENTS", stream(ticks=False)
    assert_matches(text, events, expected(text, events, 1000), engines=["process"])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("pattern", [AS_THEY_COME[1], AT_THE_END[1]])
def test_spark_finds_the_same(pattern: str) -> None:
    text = f"SELECT * WHERE {pattern} WITHIN 8 EVENTS"
    events = stream(ticks=False, never=START + timedelta(days=99))
    assert_matches(text, events, expected(text, events, 1000), engines=["spark"])


@pytest.mark.parametrize("pattern", [*AS_THEY_COME, *AT_THE_END])
def test_only_what_a_register_cannot_say_is_checked_at_the_end(pattern: str) -> None:
    explained = estero.query(f"SELECT * WHERE {pattern}").explain(
        stream(ticks=False), type="type", time="time"
    )
    assert bool(explained.plan.residuals) is (pattern in AT_THE_END)
