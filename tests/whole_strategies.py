"""Random queries with everything that the language has, as far as it goes together."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from absence_strategies import absent_queries
from estero.language.check.queries import check_query
from estero.language.tree.query import Consume, QueryTree
from full_strategies import full_queries
from select_strategies import with_measures
from step_strategies import stepped_queries
from strategies import SCHEMA, intervals, queries, queries_by_start, windows

_PLAIN = st.one_of(
    queries(3), full_queries(3), stepped_queries(), stepped_queries(full=True), absent_queries(2)
)


@st.composite
def whole_queries(draw: st.DrawFn) -> QueryTree:
    """Queries of all operators, with steps, absences, strategies, both limits, and values in SELECT."""
    drawn = draw(st.one_of(_PLAIN, queries_by_start(among=_PLAIN)))
    tree = drawn = replace(drawn, select=None, limit=None, per=None)
    if draw(st.booleans()):
        tree = draw(with_measures(st.just(tree)))
    how = draw(st.integers(0, 3))
    if how == 0:
        tree = replace(tree, limit=draw(st.sampled_from([1, 2, 3])))
    if how == 1:
        tree = replace(tree, limit=draw(st.sampled_from([1, 1, 2])), per=draw(intervals()))
    if tree.per is not None:
        tree = replace(tree, consume=Consume.NONE)
    if tree.window is None and draw(st.booleans()):
        tree = replace(tree, window=draw(windows()))
    return tree if not check_query(tree, SCHEMA) else drawn
