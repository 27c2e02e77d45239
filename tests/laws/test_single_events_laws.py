"""Events pushed one by one give the answer of their stream, whichever way each of them goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from estero.events.streams.stream_layout import StreamLayout
from estero.language.tree.query import QueryTree, Strategy
from estero.language.tree.schema import EventLayout
from estero.plan.rules import plan_of
from estero.recognize.recognizers.continuous import ContinuousRecognizer
from estero.recognize.state_bytes import read
from estero.reference.queries import Event
from laws.evaluators import by_end
from laws.test_plans_agree import check, layout_of
from strategies.absences import absent_queries
from strategies.full import full_queries
from strategies.joined import any_joined_queries, joined_queries
from strategies.patterns import TABLE, queries, streams, to_table
from strategies.steps import stepped_queries
from strategies.whole import whole_queries

LAYOUT = StreamLayout({"": TABLE}, EventLayout.of("type", "time", time_unit="s", only_type="A"))
ANY = st.one_of(
    queries(),
    stepped_queries(),
    full_queries(max_operators=3),
    joined_queries(),
    any_joined_queries(),
    absent_queries(),
    whole_queries(),
)


def forms(event: Event) -> list[Any]:
    """One event in each form that is read by itself, and as a batch."""
    table = to_table([event])
    (row,) = table.to_pylist()
    return [row, tuple(row.values()), table, table.to_batches()[0], [row]]


@given(tree=ANY, events=streams(), data=st.data())
def test_events_pushed_one_by_one_have_the_answer_of_their_stream(
    tree: QueryTree, events: list[Event], data: st.DataObject
) -> None:
    assume(tree.window is not None or tree.strategy not in (Strategy.LONGEST, Strategy.SHORTEST))
    plan = plan_of(replace(tree, select=None), layout_of())
    one_by_one, in_batches = (ContinuousRecognizer(plan, LAYOUT, LAYOUT.source()) for _ in range(2))
    answers = []
    restarted = False
    while one_by_one.position < len(events):
        first = one_by_one.position
        if data.draw(st.integers(0, 4)) == 0:
            pushed: Any = to_table(events[first : first + 2])
        else:
            pushed = data.draw(st.sampled_from(forms(events[first])))
        answers += list(one_by_one.push(pushed).batches())
        in_batches.push(to_table(events[first : one_by_one.position]).select(TABLE.names[::-1]))
        if data.draw(st.integers(0, 3)) == 0:
            if not restarted:
                assert one_by_one.snapshot() == in_batches.snapshot()
            state, restarted = data.draw(st.sampled_from([one_by_one, in_batches])).snapshot(), True
            one_by_one = ContinuousRecognizer(plan, LAYOUT, LAYOUT.source(), state=read(state))
    answers += list(one_by_one.close().batches())  # LONGEST is decided by the end of the stream, too
    check(tree, events, by_end(answers))


def shown(table: pa.Table) -> str:
    """A table as text, in which NaN is equal to itself."""
    return f"{table.schema} {table.to_pylist()}"


@settings(max_examples=30)
@given(tree=queries(), arriving=streams().flatmap(st.permutations))
def test_single_events_are_late_where_batches_are(tree: QueryTree, arriving: list[Event]) -> None:
    plan = plan_of(replace(tree, select=None), layout_of())
    alone, listed = (ContinuousRecognizer(plan, LAYOUT, LAYOUT.source()) for _ in range(2))
    for event in arriving:
        row = forms(event)[0]
        assert shown(alone.push(row).to_arrow()) == shown(listed.push([row]).to_arrow())
        assert shown(alone.late_events()) == shown(listed.late_events())
        assert (alone.late, alone.position) == (listed.late, listed.position)
    assert alone.snapshot() == listed.snapshot()
