"""Random queries that come some of the way: sequences with windows, with every clause there is."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from estero.language.check.queries import check_query
from estero.language.syntax.parser import parse_pattern
from estero.language.tree.distances import AttributeWindow, EventWindow
from estero.language.tree.levels import levels_of
from estero.language.tree.pattern import EventType, Link, Pattern
from estero.language.tree.pattern import Sequence as SequencePattern
from estero.language.tree.query import Consume, KeyBracket, QueryTree, Strategy
from strategies.absences import absent_queries
from strategies.full import full_queries
from strategies.patterns import AT_ENDS, SCHEMA, TYPES, intervals, windows

_PARTS = ("A", "B", "C", "A", "B", "C", "A", "B", "A+", "B+", "(A OR B)", "A AS u", "B AS v", "(A ; C?)")
_LINKS = (*[" ; "] * 6, " : ", " ;[NOT C] ", " ;[<= 3 [time]] ", " ; NOT(C) FOR 1 [time] ; ")
_TAILS = ("", "", "", " FILTER first(A.n) < last(B.n)", " FILTER u.n <= v.n", " FILTER A.k = B.k")
_DECIDED = "decided_time % 2 = 0"
_BEFORE, _AFTER = ("", "", "", "", "NOT(C) FOR 2 [time] ; "), ("", "", "", "", " ; NOT(B) FOR 2 [time]")


@st.composite
def plain_sequences(draw: st.DrawFn) -> Pattern:
    """Sequences of two or three small parts, which short streams complete often."""
    parts = draw(st.lists(st.sampled_from(_PARTS), min_size=2, max_size=3))
    text = parts[0]
    for part in parts[1:]:
        text += draw(st.sampled_from(_LINKS)) + part
    after, tail = draw(st.sampled_from(_AFTER)), draw(st.sampled_from(_TAILS))
    if after and draw(st.booleans()):
        tail = f"{tail} AND {_DECIDED}" if tail else f" FILTER {_DECIDED}"
    return parse_pattern(draw(st.sampled_from(_BEFORE)) + text + after + tail)


@st.composite
def queries_with_levels(draw: st.DrawFn) -> QueryTree:
    """Queries that `check_query` accepts, with a window and levels; all strategies, limits and absences."""
    among = draw(st.integers(0, 4))
    tree: QueryTree = draw(st.one_of(full_queries(), absent_queries()) if among == 0 else _plain_queries())
    pattern = tree.pattern
    if not levels_of(pattern):
        last = EventType(draw(st.sampled_from(TYPES)))
        pattern = SequencePattern((pattern, last), (Link(),))
    window = draw(windows()) if tree.window is None else tree.window
    tree = replace(tree, pattern=pattern, select=None, streams=(), window=window, consume=Consume.NONE)
    if check_query(tree, SCHEMA):  # a filter of a part that is not there
        tree = replace(tree, pattern=parse_pattern(draw(st.sampled_from(["A ; B", "A ; B+ ; C"]))))
    strategy = draw(st.sampled_from(Strategy))
    disjoint = strategy.one_for_each_start and draw(st.booleans())
    limit = draw(st.sampled_from([None, None, 1, 2]))
    per = draw(st.one_of(st.none(), intervals())) if limit else None
    chosen = replace(tree, strategy=strategy, disjoint=disjoint, limit=limit, per=per)
    if draw(st.integers(0, 2)):
        return chosen
    strategy = draw(st.sampled_from(AT_ENDS))
    consume = draw(st.sampled_from([Consume.ANY, Consume.PARTITION] if tree.partition_by else [Consume.ANY]))
    consuming = replace(tree, strategy=strategy, limit=limit, consume=consume)
    return chosen if check_query(consuming, SCHEMA) else consuming


@st.composite
def _plain_queries(draw: st.DrawFn) -> QueryTree:
    window = draw(
        st.one_of(
            st.integers(2, 6).map(EventWindow),
            st.integers(2, 6).map(lambda ticks: AttributeWindow(ticks, "time")),
        )
    )
    keys = draw(st.sampled_from([(), (), (KeyBracket(("k",)),), (KeyBracket(("x",)),)]))
    return QueryTree(draw(plain_sequences()), window=window, partition_by=keys)
