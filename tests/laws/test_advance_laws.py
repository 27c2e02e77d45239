"""Time that passes between pushes changes no answer, and gives at once what it decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.answers.answer import Answer
from estero.errors import DataError, QueryError
from estero.language.tree.pattern import ending
from estero.language.tree.query import QueryTree
from estero.plan.rules import plan_of
from estero.recognize.in_process import InProcessRun
from estero.recognize.recognizers.stream_recognizer import StreamRecognizer
from estero.recognize.until import has_timed_levels
from estero.reference.queries import Event
from estero.testing import events as short_events
from laws.evaluators import ByEnd, by_end
from laws.test_plans_agree import layout_of, source_of
from laws.test_restart_laws import MOST, SIZES
from strategies.absences import absent_queries
from strategies.partials import queries_with_levels
from strategies.patterns import TABLE, queries_by_start, streams, to_table


def recognizer_of(tree: QueryTree, lateness: str | None, *, partials: bool) -> StreamRecognizer:
    layout: Any = {"type": "type", "time": "time", "time_unit": "s"}
    query = estero.query(str(tree))
    made: StreamRecognizer = query.recognizer(TABLE, **layout, lateness=lateness, partials=partials)
    return made


def passed_between(
    recognizer: StreamRecognizer,
    events: list[Event],
    sizes: list[int],
    data: st.DataObject,
    decided: str,
    *,
    later: bool = False,
) -> tuple[list[pa.Table], int | None]:
    """What pushes, and times that pass between them, give; the last of these times.

    What waits for a time in column `decided` is given when that has passed, or `later` than then.
    """
    found: list[pa.Table] = []
    marks: list[int] = []
    table, first, turn = to_table(events), 0, 0
    said: int | None = None
    while first < table.num_rows:
        last = min(first + sizes[turn % len(sizes)], table.num_rows)
        found.append(recognizer.push(table.slice(first, last - first)).to_arrow())
        times = table["time"].to_pylist()
        said = data.draw(st.integers(times[0] - 1, times[last] if last < len(times) else times[-1] + 20))
        found.append(recognizer.advance(said).to_arrow())
        assert recognizer.watermark is not None
        marks.append(recognizer.watermark)
        first, turn = last, turn + 1
    assert recognizer.late == 0
    found.append(recognizer.close().to_arrow())
    for number, now in enumerate(marks, 1):
        assert all(time < now for time in times_in(found[: 2 * number], decided))
        assert later or all(time >= now for time in times_in(found[2 * number :], decided))
    return found, said


def times_in(tables: list[pa.Table], column: str) -> Iterator[int]:
    """The times in a column, where there is one."""
    for table in tables:
        if column in table.column_names:
            yield from table[column].drop_null().to_pylist()


def known(tree: QueryTree, events: list[Event], said: int | None, *, partials: bool) -> int | None:
    """What `until` says the same of the whole stream."""
    last = events[-1].time if events else None
    timed = partials and has_timed_levels(plan_of(tree, layout_of()))
    if said is None or last is None or not (ending(tree.pattern) or timed):
        return None
    return max(last, said)


@settings(max_examples=max(40, MOST))
@given(
    st.one_of(absent_queries(), queries_by_start(windowed=True)),
    streams(max_size=10),
    SIZES,
    st.sampled_from([None, "3 seconds"]),
    st.data(),
)
def test_it_changes_no_answer(
    tree: QueryTree, events: list[Event], sizes: list[int], lateness: str | None, data: st.DataObject
) -> None:
    tree = replace(tree, select=None)
    recognizer = recognizer_of(tree, lateness, partials=False)
    found, said = passed_between(recognizer, events, sizes, data, "decided_time")
    until = known(tree, events, said, partials=False)
    wanted: ByEnd = by_end(
        Answer(InProcessRun(plan_of(tree, layout_of()), source_of(events), until=until)).batches()
    )
    assert by_end(batch for each in found for batch in each.to_batches()) == wanted
    assert sum(each.num_rows for each in found) == sum(map(len, wanted.values()))


@settings(max_examples=max(40, MOST))
@given(
    queries_with_levels(),
    streams(max_size=10),
    SIZES,
    st.sampled_from([None, "3 seconds"]),
    st.data(),
)
def test_it_changes_no_partial_match(
    tree: QueryTree, events: list[Event], sizes: list[int], lateness: str | None, data: st.DataObject
) -> None:
    tree = replace(tree, select=None)
    try:
        recognizer = recognizer_of(tree, lateness, partials=True)
    except QueryError:
        return
    waits = bool(ending(tree.pattern))  # a start that an absence at the end may complete waits for it
    found, said = passed_between(recognizer, events, sizes, data, "expired_time", later=waits)
    until = known(tree, events, said, partials=True)
    run = InProcessRun(plan_of(tree, layout_of()), source_of(events), until=until)
    together = pa.concat_tables(found)
    partial = together.filter(pa.compute.invert(together["complete"]))
    keys = ["start", "end", "steps"]
    wanted = Answer(run).partials().to_arrow().select(keys).to_pylist()
    assert sorted(map(repr, partial.select(keys).to_pylist())) == sorted(map(repr, wanted)), str(tree)
    complete = together.filter(together["complete"])
    answered = Answer(replace(run, until=until if ending(tree.pattern) else None))
    assert sorted(zip(complete["start"].to_pylist(), complete["end"].to_pylist(), strict=True)) == sorted(
        (each.start, each.end) for each in answered
    )


@pytest.mark.parametrize("partials", [False, True])
def test_what_is_behind_it_is_late_and_going_back_changes_nothing(partials: bool) -> None:
    events = short_events("a@0s b@1m a@2m b@3m")
    query = estero.query("SELECT * WHERE a ; b WITHIN 5 MINUTES")
    recognizer = query.recognizer(
        events.schema, type="type", time="time", lateness="1 minute", partials=partials
    )
    assert recognizer.advance("1970-01-01").count() == 0
    assert recognizer.push(events.slice(0, 2)).count() == 0
    assert recognizer.held_back == 1
    assert recognizer.advance("1970-01-01T00:02:30").count() == 1
    before = recognizer.watermark
    assert recognizer.advance("1970-01-01T00:00:10").count() == 0
    assert (recognizer.watermark, recognizer.held_back, recognizer.position) == (before, 0, 2)
    recognizer.push(events.slice(2, 1))
    assert (recognizer.late, recognizer.late_events().num_rows) == (1, 1)
    state = recognizer.snapshot()
    recognizer = estero.restore(query, state, partials=partials)
    assert (recognizer.watermark, recognizer.late) == (before, 1)
    # Both starts of b are in the window; the partial match of the late event is none.
    assert recognizer.push(events.slice(3, 1)).count() == 0
    assert [each.end for each in recognizer.close()] == [2]


@pytest.mark.parametrize("partials", [False, True])
def test_what_is_no_time_is_refused(partials: bool) -> None:
    events = short_events("a@0s b@1m")
    query = estero.query("SELECT * WHERE a ; b WITHIN 5 EVENTS")
    timed = query.recognizer(events.schema, type="type", time="time", partials=partials)
    with pytest.raises(DataError, match="'soon' is not a time of these events") as refused:
        timed.advance("soon")
    assert 'close(until="end")' in str(refused.value)
    untimed = query.recognizer(events.schema, type="type", partials=partials)
    with pytest.raises(DataError, match="these events have no time, so nothing can pass"):
        untimed.advance(7)


@pytest.mark.parametrize("partials", [False, True])
def test_whom_a_recognizer_tells_hears_of_time_that_passes(partials: bool) -> None:
    events = short_events("a@0s c@1s")
    text = "SELECT * WHERE a ; c ; NOT(b) FOR 1 MINUTE WITHIN 1 HOUR"
    recognizer = estero.query(text).recognizer(events.schema, type="type", time="time", partials=partials)
    heard: list[int] = []
    recognizer.on_match(lambda answer: heard.append(answer.count()))
    recognizer.push(events)
    assert heard == []
    recognizer.advance("1970-01-01T00:02")
    assert heard == [1]
    assert recognizer.why_slow is None
