"""What did not happen: the situations that other engines document, and when answers are given.

The situations are those of missing events in Elastic's EQL, absent patterns in Siddhi, and ``notFollowedBy``
with ``within`` in Flink. Where these measure a time from the beginning of a sequence, or from the moment that
a query starts, here it is measured from the end of what is before, or back from the start of what follows.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import estero
from estero.errors import DataError, QueryError
from estero.testing import events


def spans(where: str, stream: str, **known: object) -> list[tuple[int, int]]:
    """Start and end of what is found."""
    answer = estero.query(f"SELECT * WHERE {where}").run(
        events(stream),
        type="type",
        time="time",
        **known,  # type: ignore[arg-type]
    )
    return [(each.start, each.end) for each in answer]


# ------------------------------------------------------------------------------- missing events (EQL)


def test_a_login_without_a_second_factor() -> None:
    where = "login ; NOT(token) FOR 5 MINUTES PARTITION BY [user]"
    stream = "login(user=1)@0s login(user=2)@10s token(user=1)@4m token(user=2)@311s other(user=3)@1h"
    assert spans(where, stream) == [(1, 1)]


def test_a_file_is_deleted_without_a_process_that_began_shortly_before() -> None:
    where = "NOT(start) FOR 1 MINUTE ; delete PARTITION BY [host]"
    stream = "delete(host=1)@0s start(host=1)@10s delete(host=1)@70s delete(host=1)@71s start(host=2)@71s"
    assert spans(where, stream) == [(0, 0), (3, 3)]


def test_a_process_ends_without_an_answer_between() -> None:
    where = "asked ; NOT(answered) FOR 1 MINUTE ; gone PARTITION BY [id]"
    stream = (
        "asked(id=1)@0s asked(id=2)@0s answered(id=2)@60s gone(id=1)@61s gone(id=2)@90s "
        "asked(id=3)@100s gone(id=3)@160s answered(id=1)@200s"
    )
    assert spans(where, stream) == [(0, 3)]


# ---------------------------------------------------------------------------- absent patterns (Siddhi)


@pytest.mark.filterwarnings("ignore:there are no events of type")
def test_a_taxi_passed_on_and_nobody_else_came_in_time() -> None:
    where = "passed ; NOT(arrived) FOR 10 SECONDS"
    assert spans(where, "passed@0s arrived@11s") == [(0, 0)]
    assert spans(where, "passed@0s arrived@10s end@30s") == []
    assert spans(where, "passed@0s") == []
    assert spans(where, "passed@0s", until="end") == [(0, 0)]


def test_nothing_before_the_first_event_of_a_stream_happened() -> None:
    """Siddhi waits from the moment that the query starts: there is no such moment in a stream of the past."""
    assert spans("NOT(a) FOR 5 SECONDS ; b", "b@0s a@1s b@5s b@6s b@7s") == [(0, 0), (4, 4)]


def test_a_larger_price_is_absent_and_a_smaller_one_is_not() -> None:
    where = "tick AS first ; NOT(tick AS high FILTER high[price > 20]) FOR 5 SECONDS FILTER first[price < 10]"
    stream = "tick(price=5)@0s tick(price=15)@3s tick(price=6)@9s tick(price=25)@13s tick(price=1)@40s"
    assert spans(where, stream) == [(0, 0)]


@pytest.mark.filterwarnings("ignore:there are no events of type")
def test_two_absences_in_a_row_both_hold_and_the_longer_decides() -> None:
    where = "a ; NOT(b) FOR 5 SECONDS ; NOT(c) FOR 9 SECONDS"
    assert spans(where, "a@0s b@6s d@10s") == [(0, 0)]
    assert spans(where, "a@0s c@9s d@20s") == []
    answer = estero.query(f"SELECT * WHERE {where}").run(events("a@0s b@6s d@10s"), type="type", time="time")
    (found,) = answer
    assert found.decided_time - found.end_time == timedelta(seconds=9)


# ------------------------------------------------------------------- not followed by, within (Flink)


def test_not_followed_by_counts_the_last_moment_and_events_at_the_same_time() -> None:
    """Flink's window is exclusive and begins with the sequence; here d is inclusive and begins at its end."""
    where = "first ; middle ; NOT(stop) FOR 10 SECONDS WITHIN 1 MINUTE"
    assert spans(where, "first@0s middle@5s stop@15s x@60s") == []
    assert spans(where, "first@0s middle@5s stop@16s x@60s") == [(0, 1)]
    assert spans(where, "first@0s middle@5s stop@5s x@60s") == []
    assert spans(where, "first@0s stop@4s middle@5s x@60s") == [(0, 2)]


# ------------------------------------------------------------------------------ when it is decided

ORDERS = "SELECT paid[id] WHERE paid ; NOT(shipped) FOR 1 MINUTE PARTITION BY [id]"
SCHEMA = pa.schema([("type", pa.string()), ("time", pa.int64()), ("id", pa.int64())])


def row(kind: str, time: int, number: int = 0) -> dict[str, object]:
    return {"type": kind, "time": time, "id": number}


def test_a_recognizer_answers_when_the_deadline_has_passed_whatever_comes_then() -> None:
    recognizer = estero.query(ORDERS).recognizer(SCHEMA, type="type", time="time", time_unit="s")
    assert not recognizer.push([row("paid", 0, 1), row("paid", 1, 2), row("shipped", 30, 2)])
    assert not recognizer.push(row("other", 60, 9))
    (found,) = recognizer.push(row("other", 61, 9))
    assert (found.partition, found.end_time, found.decided_time) == ({"id": 1}, 0, 60)
    assert not recognizer.push(row("paid", 62, 3))
    assert not recognizer.close()


def test_lateness_decides_nothing_before_late_events_may_have_come() -> None:
    layout: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s", "lateness": "30 seconds"}
    recognizer = estero.query(ORDERS).recognizer(SCHEMA, **layout)
    assert not recognizer.push([row("paid", 0, 1), row("paid", 0, 2), row("other", 90)])
    assert not recognizer.push(row("shipped", 60, 1))
    assert [each.partition["id"] for each in recognizer.push(row("other", 91))] == [2]


def test_closing_says_how_far_the_stream_is_known() -> None:
    def begun() -> estero.ContinuousRecognizer:
        recognizer = estero.query(ORDERS).recognizer(SCHEMA, type="type", time="time", time_unit="s")
        assert not recognizer.push([row("paid", 0, 1), row("paid", 50, 2)])
        return recognizer

    assert begun().close().count() == 0
    assert begun().close(until=61).count() == 1
    assert begun().close(until="end").count() == 2
    with pytest.raises(DataError, match="until is before the last event"):
        begun().close(until=49)


def test_what_waits_is_all_that_a_snapshot_holds() -> None:
    query = estero.query(ORDERS)
    recognizer = query.recognizer(SCHEMA, type="type", time="time", time_unit="s")
    sizes = []
    for turn in range(40):
        at = turn * 1000
        pushed = [row("paid", at + n // 10, n) for n in range(500)]
        recognizer.push([*pushed, *(row("shipped", at + 55, n) for n in range(499))])
        recognizer = estero.restore(query, recognizer.snapshot())
        sizes.append(len(recognizer.snapshot()))
    assert max(sizes) < 1.5 * min(sizes)


@pytest.mark.parametrize("until", ["soon", 1.5, True, "2026-01-01"])
def test_what_is_no_time_of_the_stream_is_refused(until: object) -> None:
    table = pa.Table.from_pylist([row("paid", 0, 1), row("shipped", 9, 2)], schema=SCHEMA)
    with pytest.raises(DataError, match="not a time of these events"):
        estero.query(ORDERS).run(table, type="type", time="time", time_unit="s", until=until)


def test_until_goes_with_an_absence_at_the_end() -> None:
    table = pa.Table.from_pylist([row("paid", 0, 1)], schema=SCHEMA)
    with pytest.raises(QueryError, match="does not ask what comes after an end"):
        estero.query("SELECT * WHERE paid").run(table, type="type", time="time", until="end")


def test_a_stream_that_passes_once_is_known_up_to_its_last_event() -> None:
    table = pa.Table.from_pylist(
        [row("paid", 0, 1), row("paid", 1, 2), row("shipped", 2, 2), row("other", 61)], schema=SCHEMA
    )
    answer = estero.query(ORDERS).run(
        iter(table.to_batches(max_chunksize=2)), type="type", time="time", time_unit="s"
    )
    assert [each.partition["id"] for each in answer] == [1]


def test_a_funnel_asks_it_of_the_last_step() -> None:
    stream = events("a@0s b@4s a@30s b@31s c@32s x@90s")
    query = estero.query("SELECT * WHERE a ; b ; NOT(c) FOR 5 SECONDS WITHIN 10 SECONDS")
    funnel = query.run(stream, type="type", time="time").funnel()
    assert funnel.to_arrow()["starts"].to_pylist() == [2, 1]


# ----------------------------------------------------------------------- compared with other events


def test_an_order_that_is_paid_and_not_shipped_whatever_happens_to_others() -> None:
    where = "paid ; NOT(shipped AS s FILTER s.order = paid.order) FOR 2 HOURS"
    stream = "paid(order=1)@0s paid(order=2)@1m shipped(order=2)@2h paid(order=3)@3h shipped(order=1)@4h"
    assert spans(where, stream) == [(0, 0)]
    assert spans(where, stream, until="end") == [(0, 0), (3, 3)]


def test_a_first_part_is_compared_across_the_second() -> None:
    where = "a ; b ; NOT(c FILTER c.n > a.n) FOR 10 SECONDS"
    stream = "a(n=5)@0s a(n=1)@1s b()@2s c(n=3)@12s other()@13s"
    assert spans(where, stream) == [(0, 2)]


def test_the_last_price_before_was_not_higher() -> None:
    where = "NOT(p AS before FILTER before.price >= now.price) FOR 10 SECONDS ; p AS now WITHIN 1 MINUTE"
    stream = "p(price=5)@0s p(price=4)@5s p(price=5)@11s p(price=4)@30s"
    assert spans(where, stream) == [(0, 0), (2, 2), (3, 3)]


def test_between_two_parts_only_what_comes_too_soon_is_compared() -> None:
    where = "a ; NOT(c FILTER c.n = a.n) FOR 10 SECONDS ; b"
    stream = "a(n=1)@0s c(n=2)@10s c(n=1)@11s b()@12s a(n=3)@20s c(n=3)@30s b()@31s"
    assert spans(where, stream) == [(0, 3), (0, 6)]


def test_partitions_and_equal_values_go_together() -> None:
    where = "paid ; NOT(shipped AS s FILTER s.order = paid.order) FOR 2 HOURS PARTITION BY [shop]"
    stream = (
        "paid(order=1,shop=1)@0s paid(order=1,shop=2)@1s shipped(order=1,shop=2)@1h "
        "shipped(order=1,shop=3)@1h end(shop=1)@1d"
    )
    assert spans(where, stream) == [(0, 0)]


def test_what_one_push_decides_in_several_steps_stays_as_it_was_found() -> None:
    query = estero.query("SELECT LONGEST * WHERE (A ALL C) ; NOT(B) FOR 1 [time] WITHIN 5 [time]")
    stream = pa.table({"type": list("ACAAA"), "time": [0, 5, 6, 8, 8]})
    recognizer = query.recognizer(
        stream.schema, type="type", time="time", time_unit="s", lateness="3 seconds"
    )
    for row in range(stream.num_rows):
        assert recognizer.push(stream.slice(row, 1)).count() == 0
    found = [str(each) for each in recognizer.close(until="end")]
    assert found == [
        "ComplexEvent(0–1, 0 – 5, A=[0], C=[1])",
        "ComplexEvent(1–4, 5 – 8, A=[4], C=[1])",
    ]
