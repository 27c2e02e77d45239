"""How far each start comes, in this process: what the reference says, whatever finds it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero.errors import QueryError
from estero.language.tree.distances import EventWindow
from estero.language.tree.levels import levels_of
from estero.language.tree.pattern import EventType, Link
from estero.language.tree.pattern import Sequence as SequencePattern
from estero.language.tree.query import QueryTree
from estero.plan.levels import levels_plan
from estero.recognize.partial_matches.levels import level_column, levels_reached
from estero.reference.partial_matches import evaluate_levels
from estero.reference.queries import Event
from laws.evaluators import opened
from strategies.full import full_queries
from strategies.patterns import SCHEMA, TICK, TYPES, queries, streams, to_table


@st.composite
def sequences(draw: st.DrawFn) -> QueryTree:
    """Queries with levels, whose starts are those of all complex events or of some."""
    tree = draw(st.one_of(queries(), full_queries()))
    last = EventType(draw(st.sampled_from(TYPES)))
    pattern = tree.pattern if levels_of(tree.pattern) else SequencePattern((tree.pattern, last), (Link(),))
    return replace(tree, pattern=pattern, window=tree.window or EventWindow(3), limit=None, per=None)


def reached(tree: QueryTree, events: list[Event]) -> dict[int, int]:
    """The level that each start reaches, by the engine."""
    source = opened(to_table(events))
    plan = levels_plan(tree, replace(source.layout, schema=SCHEMA))
    table = levels_reached(plan, source)
    levels = [table[level_column(level)].to_pylist() for level in range(1, len(plan.parts) + 1)]
    return {
        start: max(level for level, column in enumerate(levels, 1) if column[row] is not None)
        for row, start in enumerate(table["start"].to_pylist())
    }


@given(sequences(), streams())
def test_each_start_comes_as_far_as_the_reference_says(tree: QueryTree, events: list[Event]) -> None:
    try:
        levels = evaluate_levels(tree, events, tick=TICK)
    except QueryError:
        with pytest.raises(QueryError, match="depends on a later part"):
            reached(tree, events)
    else:
        assert reached(tree, events) == levels
