"""Random lists of SELECT: values of complex events, valid against the schema of `strategies`."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hypothesis import strategies as st

from estero.language.tree import expressions as e
from estero.language.tree.durations import Duration
from estero.language.tree.marks import marks_of
from estero.language.tree.pattern import ending
from estero.language.tree.query import EveryLabel, QueryTree, Selected, SelectExpression
from estero.language.tree.selection import label_types

Names = tuple[str, ...]
_SIGNS = ["+", "-", "*", "/", "%"]
_NUMBERS = ["n", "x", "k", "time"]
_OF_NUMBERS = ["sum", "avg", "stddev", "median", "min", "max", "first", "last", "count"]


@cache
def _operands() -> st.SearchStrategy[e.Node]:
    """Numbers of one event."""
    attribute = st.sampled_from(_NUMBERS).map(e.Attribute)
    small = st.integers(-2, 3).map(e.Literal)
    computed = st.builds(e.Arithmetic, st.sampled_from(_SIGNS), attribute, attribute | small)
    positive = st.builds(e.Comparison, st.just(">"), attribute, small)
    cases = st.builds(lambda when, one: e.Case((e.When(when, one),), e.Literal(0)), positive, attribute)
    return st.one_of(attribute, attribute, computed, cases)


@cache
def _values(
    labels: tuple[str, ...], single: tuple[str, ...], keys: tuple[str, ...], *, waits: bool
) -> st.SearchStrategy[e.Node]:
    label = st.sampled_from(labels)
    names = st.sampled_from(["n", "s", "x", "k"]).map(e.Attribute)
    numbers = [
        st.builds(e.Aggregate, st.just("count"), label),
        st.builds(e.Aggregate, st.just("count"), label, names, st.booleans()),
        st.builds(e.Aggregate, st.sampled_from(_OF_NUMBERS), label, _operands()),
        st.sampled_from(["start_time", "end_time", "duration", *["decided_time"] * (3 * waits)]).map(
            e.Attribute
        ),
        st.integers(-2, 3).map(e.Literal),
    ]
    if single:
        numbers.append(st.builds(e.Attribute, st.sampled_from(_NUMBERS), st.sampled_from(single)))
    number = st.one_of(*numbers)
    computed = st.builds(e.Arithmetic, st.sampled_from(_SIGNS), number, number)
    texts = st.builds(
        e.Aggregate, st.sampled_from(["min", "max", "first", "last"]), label, st.just(e.Attribute("s"))
    )
    compared = st.builds(e.Comparison, st.sampled_from(["=", "<", ">="]), number, number)
    seconds = st.integers(0, 5).map(lambda count: e.Literal(Duration(count * 1_000_000_000)))
    values = [
        number,
        number,
        computed,
        texts,
        compared,
        st.builds(e.Comparison, st.sampled_from(["<=", ">"]), st.just(e.Attribute("duration")), seconds),
        st.builds(e.Aggregate, st.just("list"), label, _operands() | names),
        st.builds(lambda when, one, other: e.Case((e.When(when, one),), other), compared, number, number),
        st.builds(lambda text: e.Call("upper", (text,)), texts),
        st.builds(lambda one, other: e.Call("coalesce", (one, other)), number, number),
    ]
    if keys:
        values.append(st.sampled_from(keys).map(e.Attribute))
    return st.one_of(*values)


@st.composite
def with_measures(draw: st.DrawFn, queries: st.SearchStrategy[QueryTree]) -> QueryTree:
    """A query that shows all labels, and one to four values."""
    tree = draw(queries)
    labels = tuple(label_types(tree.pattern))
    single = tuple(each for each in labels if marks_of(tree.pattern, each).most == 1)
    keys = tuple(bracket.alternatives[0] for bracket in tree.partition_by)
    waits = bool(ending(tree.pattern))
    shown = draw(st.lists(_values(labels, single, keys, waits=waits), min_size=1, max_size=4))
    items: list[Selected] = [SelectExpression(each, f"m{place}") for place, each in enumerate(shown)]
    return replace(tree, select=(EveryLabel(), *items), limit=None)
