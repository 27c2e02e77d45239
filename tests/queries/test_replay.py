"""What recognizers of rules keep of a stream for rules to come, and which rules can begin with that."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import estero
from estero.recognize.rules import kept_events
from estero.recognize.rules.set_recognizer import RuleSetRecognizer

PAIR = "SELECT * WHERE A AS a ; B AS b FILTER b[v > {}] WITHIN 10 SECONDS"
EVENTS = pa.table({"kind": ["A", "B"] * 6, "t": list(range(12)), "v": list(range(12))})
LAYOUT: dict[str, Any] = {"type": "kind", "time": "t", "time_unit": "s"}


def recognizer(keep: Any = "10 seconds", **how: Any) -> RuleSetRecognizer:
    return estero.rules({"first": PAIR.format(0)}).recognizer(EVENTS.schema, **LAYOUT, keep=keep, **how)


def test_a_rule_begins_with_what_is_kept_and_gives_nothing_of_the_past() -> None:
    one = recognizer()
    one.push(EVENTS.slice(0, 6))
    one.add("replayed", PAIR.format(0), replay=True)
    one.add("new", PAIR.format(0))
    assert one.flush().count() == 0
    counts = one.push(EVENTS.slice(6)).counts()
    assert counts == {"first": 14, "replayed": 14, "new": 6}
    one.replace("new", PAIR.format(9), replay=True)
    assert one.names == ("first", "replayed", "new")
    later = EVENTS.slice(0, 1).set_column(1, "t", pa.array([12])).set_column(0, "kind", pa.array(["B"]))
    assert one.push(later.set_column(2, "v", pa.array([20]))).counts() == dict.fromkeys(counts, 5)


def test_rules_that_wait_for_their_replay_can_be_taken_out_and_replaced() -> None:
    one = recognizer()
    one.push(EVENTS.slice(0, 6))
    one.add("gone", PAIR.format(0), replay=True)
    one.add("changed", PAIR.format(0), replay=True)
    one.remove("gone")
    one.replace("changed", PAIR.format(100), replay=True)
    one.remove("first")
    assert one.names == ("changed",)
    assert one.push(EVENTS.slice(6)).counts() == {"changed": 0}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * WHERE A ; B", r"it has no window \(WITHIN\)"),
        ("SELECT * WHERE A ; B WITHIN 11 SECONDS", "it looks back 11 seconds, and 10 seconds are kept"),
        ("SELECT * WHERE A ; B WITHIN 5 EVENTS", "it looks back 5 events, and 10 seconds are kept"),
        ("SELECT * WHERE A ; NOT(B) FOR 1 SECOND WITHIN 10 SECONDS", "it looks back 11 seconds"),
        (
            "SELECT * WHERE A ; NOT(B) FOR 1 SECOND WITHIN 5 EVENTS",
            r"its window counts events, and NOT\(…\) FOR time",
        ),
        (
            "SELECT * WHERE A ; B WITHIN 5 SECONDS CONSUME BY ANY",
            "the events that CONSUME BY drops depend on all",
        ),
        (
            "SELECT * WHERE A ; B WITHIN 5 SECONDS LIMIT 1 PER 1 HOUR",
            "LIMIT … PER depends on earlier answers",
        ),
        (
            "SELECT LONGEST DISJOINT * WHERE A ; B WITHIN 5 SECONDS",
            "DISJOINT depends on earlier answers",
        ),
        ("SELECT * WHERE START(A) ; B WITHIN 5 SECONDS", "START is the first event of the stream"),
    ],
)
def test_a_rule_that_looks_back_further_than_what_is_kept_is_refused_by_name(text: str, said: str) -> None:
    one = recognizer()
    with pytest.raises(estero.QueryError, match=f"rule far: the rule cannot begin with a replay: {said}"):
        one.add("far", text, replay=True)
    with pytest.raises(estero.QueryError, match="leave out replay, so that it begins with the next event"):
        one.replace("first", text, replay=True)
    one.add("far", text)
    assert one.names == ("first", "far")


def test_what_is_kept_is_said_in_time_events_or_both() -> None:
    five = "SELECT * WHERE A ; B WITHIN 5 EVENTS"
    for keep, kept in (
        ("3 seconds", 4),
        (3, 4),
        (timedelta(seconds=3), 4),
        ("5 events", 5),
        (["3 seconds", "5 events"], 5),
        ("0 events", 0),
    ):
        one = recognizer(keep)
        one.push(EVENTS)
        assert one.metrics()["kept_events"] == kept, keep
        if kept == 5:
            one.add("five", five, replay=True)
    assert recognizer(None).metrics()["kept_events"] == 0
    with pytest.raises(ValueError, match=r"this recognizer keeps no events for a replay: .* keep='2 hours'"):
        recognizer(None).add("late", PAIR.format(1), replay=True)
    with pytest.raises(ValueError, match="what is kept is a duration such as '5 seconds', not 'ten'"):
        recognizer("ten")
    with pytest.raises(ValueError, match="what is kept cannot be negative: -1"):
        recognizer(-1)
    with pytest.raises(estero.DataError, match="to keep '3 seconds' needs a time column, and none is named"):
        estero.rules({"five": five}).recognizer(EVENTS.schema, type="kind", keep="3 seconds")


def test_events_that_are_kept_take_memory_and_are_a_part_of_the_state() -> None:
    one, other = recognizer("1000 events"), recognizer(None)
    for place in range(0, 12, 2):
        one.push(EVENTS.slice(place, 2))
        other.push(EVENTS.slice(place, 2))
    assert one.metrics()["state_bytes"] >= other.metrics()["state_bytes"] + 12 * 24
    assert len(one.snapshot()) > len(other.snapshot())
    small = recognizer("1000 events", memory_limit=200, memory_policy="shed")
    with pytest.raises(estero.LimitExceeded, match="the state of this recognizer takes"):
        small.push(EVENTS)


def test_small_batches_are_kept_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_events, "_LOOSE", 4)
    one = recognizer("1000 events")
    for row in EVENTS.to_pylist():
        one.push(row)
    kept = one._kept
    assert kept is not None
    assert kept.number == 12
    assert len(kept._chunks) < 6
    assert next(kept.parts()).first == 0
    again = estero.restore(estero.rules({"first": PAIR.format(0)}), one.snapshot())
    assert again.snapshot() == one.snapshot()
