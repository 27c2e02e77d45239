"""Triggers and progress: text to what Spark takes, and what Spark says to a line."""

from __future__ import annotations

from typing import Any

import pytest

from estero import DataError
from estero.spark.connectors.address import trigger_of
from estero.spark.connectors.progress import Totals


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, {"processingTime": "0 seconds"}),
        ("available-now", {"availableNow": True}),
        ("Available Now", {"availableNow": True}),
        ("10 seconds", {"processingTime": "10 seconds"}),
        ("1 minute", {"processingTime": "1 minute"}),
        ("500ms", {"processingTime": "500 milliseconds"}),
        ("2 h", {"processingTime": "2 hours"}),
    ],
)
def test_a_trigger_is_read_as_it_is_meant(text: str | None, wanted: dict[str, Any]) -> None:
    assert trigger_of(text) == wanted


@pytest.mark.parametrize("text", ["soon", "10", "-1 seconds", ""])
def test_what_is_no_trigger_is_said_with_what_is(text: str) -> None:
    with pytest.raises(DataError) as error:
        trigger_of(text)
    hint = "write available-now, or an interval such as 10 seconds"
    assert str(error.value) == f"{text!r} is not a trigger\n  hint: {hint}"


def batch(number: int, *, answers: int | None = 3, late: int | None = 1) -> dict[str, Any]:
    return {
        "batchId": number,
        "numInputRows": 1000,
        "processedRowsPerSecond": 2000.4,
        "observedMetrics": {"estero_answers": {"answers": answers}, "estero": {"late": late}},
        "stateOperators": [{"numRowsTotal": 8}, {"numRowsTotal": 2}],
    }


def test_batches_add_up_and_count_once() -> None:
    totals = Totals().with_batches([batch(0), batch(1)]).with_batches([batch(0), batch(1), batch(2)])
    assert totals == Totals(events=3000, answers=9, late=3, state=10, speed=2000.4, batch=2)


def test_a_batch_that_found_nothing_counts_nothing() -> None:
    plain = {"batchId": 0, "numInputRows": 0}
    assert Totals().with_batches([plain]) == Totals(batch=0)
    assert Totals().with_batches([batch(0, answers=None, late=None)]).answers == 0


def test_totals_are_a_line() -> None:
    totals = Totals(events=1234567, answers=89, late=2, state=10, speed=2000.4, batch=2)
    assert str(totals) == "2,000 events/s · 1,234,567 events · 89 complex events · 2 late · 10 state rows"
