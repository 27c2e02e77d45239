"""A recognition that is written down and read again at every cut finds what it would have found."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from automata.test_chain import CHAINS
from estero.language.tree.query import QueryTree
from estero.plan.rules import plan_of
from estero.queries.texts import query
from estero.recognize.in_process import InProcessRun
from estero.recognize.recognition import Recognition
from estero.recognize.source_run import time_type
from estero.reference.queries import Event
from laws.evaluators import by_end, planned
from laws.test_plans_agree import check, layout_of, source_of
from laws.test_stream_laws import cut
from strategies.full import full_queries
from strategies.joined import joined_queries
from strategies.patterns import queries, streams, to_table

MOST = settings.default.max_examples if settings.default else 10
SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def begun(run: InProcessRun, state: bytes | None) -> Recognition:
    events = run.source.classified_schema(run.plan.classification)
    return Recognition(run.plan, events, time=time_type(run.source), state=state)


def restarted(run: InProcessRun, sizes: list[int]) -> Iterator[pa.RecordBatch]:
    """The answer of a new recognition for each batch, which has nothing but the state of the one before."""
    state: bytes | None = None
    for batch in cut(run, sizes):
        recognition = begun(run, state)
        yield from recognition.push(batch)
        state = recognition.snapshot()
        assert begun(run, state).snapshot() == state, "a state is read and written without change"


def picked(tree: QueryTree, events: list[Event]) -> InProcessRun:
    """The run by the plan that the planner picks."""
    return InProcessRun(plan_of(tree, layout_of()), source_of(events))


@settings(max_examples=min(40, MOST))
@given(st.one_of(queries(), full_queries(), full_queries()), streams(max_size=14), SIZES)
def test_a_restart_at_every_cut_changes_no_answer(
    tree: QueryTree, events: list[Event], sizes: list[int]
) -> None:
    check(tree, events, by_end(restarted(planned(tree, to_table(events)), sizes)))


@settings(max_examples=min(30, MOST))
@given(joined_queries(), streams(max_size=12), SIZES)
def test_nor_does_it_where_parts_are_joined(tree: QueryTree, events: list[Event], sizes: list[int]) -> None:
    check(tree, events, by_end(restarted(picked(tree, events), sizes)))


@settings(max_examples=min(40, MOST))
@given(
    pattern=st.sampled_from(CHAINS),
    window=st.sampled_from(["", "", " WITHIN 5 EVENTS", " WITHIN 3 [time]"]),
    events=streams(max_size=12),
    sizes=SIZES,
)
def test_nor_where_neighbours_are_compared(
    pattern: str, window: str, events: list[Event], sizes: list[int]
) -> None:
    tree = query(f"SELECT * WHERE {pattern}{window}").tree
    check(tree, events, by_end(restarted(picked(tree, events), sizes)))
