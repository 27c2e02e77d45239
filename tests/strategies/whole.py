"""Random queries with everything that the language has, as far as it goes together."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from estero.language.check.queries import check_query
from estero.language.tree import expressions as e
from estero.language.tree.durations import Duration
from estero.language.tree.pattern import Filter, ending
from estero.language.tree.query import Consume, QueryTree
from estero.language.tree.selection import label_types
from strategies.absences import absent_queries
from strategies.full import full_queries
from strategies.patterns import SCHEMA, filters, intervals, queries, queries_by_start, windows
from strategies.selections import with_measures
from strategies.steps import stepped_queries

_PLAIN = st.one_of(
    queries(3), full_queries(3), stepped_queries(), stepped_queries(full=True), absent_queries(2)
)


@st.composite
def _of_whole(draw: st.DrawFn, tree: QueryTree) -> e.Node:
    """A condition on the times and the keys of complex events, beside another one sometimes."""
    names = ["start_time", "end_time", "duration", *["decided_time"] * (3 * bool(ending(tree.pattern)))]
    value: e.Node = e.Attribute(draw(st.sampled_from(names)))
    other: e.Node = e.Literal(draw(st.integers(0, 6)))
    in_units: bool = draw(st.booleans())
    if value == e.Attribute("duration") and in_units:
        other = e.Literal(Duration(draw(st.integers(0, 4)) * 1_000_000_000))
    keys = [name for bracket in tree.partition_by for name in bracket.alternatives]
    by_key: bool = draw(st.booleans())
    if keys and by_key:
        key = e.Attribute(draw(st.sampled_from(keys)))
        value, other = key, draw(st.sampled_from([key, e.Literal(1), e.Literal("a")]))
    condition: e.Node = e.Comparison(draw(st.sampled_from(["<", "<=", "=", ">", "!="])), value, other)
    labels = tuple(label_types(tree.pattern))
    how = draw(st.integers(0, 3))
    if how == 0:
        condition = e.Not(condition)
    if how == 1:
        connective = e.And if draw(st.booleans()) else e.Or
        condition = connective((condition, draw(filters(labels))))
    return condition


@st.composite
def whole_queries(draw: st.DrawFn) -> QueryTree:
    """Queries of all operators, with steps, absences, strategies, both limits, and values in SELECT."""
    drawn = draw(st.one_of(_PLAIN, queries_by_start(among=_PLAIN)))
    drawn = replace(drawn, select=None, limit=None, per=None)
    if draw(st.booleans()):
        filtered = replace(drawn, pattern=Filter(drawn.pattern, draw(_of_whole(drawn))))
        drawn = drawn if check_query(filtered, SCHEMA) else filtered
    tree = drawn
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
