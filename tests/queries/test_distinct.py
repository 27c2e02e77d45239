"""distinct="marks": complex events that differ in their starts alone are one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import estero

EVENTS = pa.table({"kind": ["A", "A", "B", "A", "B"], "t": [0, 1, 2, 3, 4], "n": [1, 2, 3, 4, 5]})
LATER = "SELECT * WHERE A ; B AS b KEEP [b]"
LAYOUT: dict[str, Any] = {"type": "kind", "time": "t", "time_unit": "s"}


def found(answer: estero.Answer) -> list[tuple[int, int, tuple[int, ...]]]:
    return sorted((each.start, each.end, each.positions["b"]) for each in answer)


def test_rows_that_differ_in_their_starts_are_one_that_starts_at_its_first_mark() -> None:
    query = estero.query(LATER)
    assert query.run(EVENTS, **LAYOUT).count() == 5
    answer = query.run(EVENTS, **LAYOUT, distinct="marks")
    assert found(answer) == [(2, 2, (2,)), (4, 4, (4,))]
    assert answer.count() == 2
    assert [each.start_time for each in answer] == [2, 4]
    assert found(query.with_distinct("marks").run(EVENTS, **LAYOUT)) == found(answer)


def test_windows_and_filters_go_by_where_runs_began() -> None:
    near = estero.query(f"{LATER} WITHIN 1 EVENTS").run(EVENTS, **LAYOUT, distinct="marks")
    assert found(near) == [(2, 2, (2,)), (4, 4, (4,))]
    far = "SELECT * WHERE A ; B AS b FILTER duration > 3 SECONDS KEEP [b]"
    assert found(estero.query(far).run(EVENTS, **LAYOUT, distinct="marks")) == [(4, 4, (4,))]


def test_a_limit_counts_what_is_left() -> None:
    answer = estero.query(f"{LATER} LIMIT 2").run(EVENTS, **LAYOUT, distinct="marks")
    assert found(answer) == [(2, 2, (2,)), (4, 4, (4,))]


def test_what_marks_its_start_has_the_plan_that_it_has_without() -> None:
    query = estero.query("SELECT * WHERE A AS a ; B AS b")
    plans = [dict(each.explain().sections())["Plan"] for each in (query, query.with_distinct("marks"))]
    assert plans[0] == plans[1]
    merged = str(estero.query(LATER).with_distinct("marks").explain())
    assert "of complex events that differ only in their starts, one is returned" in merged


def test_a_recognizer_and_its_snapshot_are_told() -> None:
    query = estero.query(LATER)
    recognizer = query.recognizer(EVENTS.schema, **LAYOUT, distinct="marks")
    assert found(recognizer.push(EVENTS[:3])) == [(2, 2, (2,))]
    state = recognizer.snapshot()
    again = estero.restore(query, state, distinct="marks")
    assert found(again.push(EVENTS[3:])) == [(4, 4, (4,))]
    with pytest.raises(estero.DataError, match="it was planned otherwise"):
        estero.restore(query, state)


def test_what_it_cannot_be_is_said() -> None:
    query = estero.query(LATER)
    with pytest.raises(ValueError, match="as distinct") as wrong:
        query.run(EVENTS, **LAYOUT, distinct="start")  # type: ignore[arg-type]
    assert str(wrong.value) == "run() takes 'marks' or None as distinct, not 'start'"
    windowed = estero.query(f"{LATER} WITHIN 3 SECONDS")
    with pytest.raises(ValueError, match='partials and distinct="marks" do not go together'):
        windowed.recognizer(EVENTS.schema, **LAYOUT, distinct="marks", partials=True)
    longest = estero.query("SELECT LONGEST * WHERE A ; B AS b KEEP [b] WITHIN 3 SECONDS")
    with pytest.raises(estero.QueryError) as caught:
        longest.run(EVENTS, **LAYOUT, distinct="marks")
    first = str(caught.value).splitlines()[0]
    assert first.startswith("SELECT LONGEST gives one complex event for each start")
    assert first.endswith(', and distinct="marks" makes one of several starts')
