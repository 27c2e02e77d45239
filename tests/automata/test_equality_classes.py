"""Equalities as PARTITION BY: what is rewritten, why the rest is not, and that the answers are the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from estero.automata.correlated.equality_classes import Partitioned, as_partition, partitioned
from estero.language.syntax.parser import parse_pattern
from estero.language.tree.distances import EventWindow
from estero.language.tree.literals import Value
from estero.language.tree.pattern import PartitionBy, PartitionKey
from estero.language.tree.query import Consume, KeyBracket, QueryTree, Strategy
from estero.language.tree.schema import Kind, Schema
from estero.reference.queries import Event, evaluate_query
from strategies.full import full_queries
from strategies.patterns import AT_ENDS, SCHEMA, TICK, streams

KEYS = {"A": ("id", "n"), "B": ("ref", "id"), "C": ("key", "n"), "D": ("id", "ref")}
TABLES = Schema(
    types={name: dict.fromkeys(attributes, Kind.INT) for name, attributes in KEYS.items()}, closed=True
)
"""Types with tables of their own."""

SAME = {
    "A AS x ; B AS y FILTER x.k = y.k": ("A AS x ; B AS y", "k"),
    "A AS x ; B AS y ; C AS z FILTER x.k = y.k AND y.k = z.k AND x.n < z.n": (
        "A AS x ; B AS y ; C AS z FILTER x.n < z.n",
        "k",
    ),
    "(A AS x ; B+ AS y ; C AS z) FILTER z.k = x.k AND z.k = y.k": ("A AS x ; B+ AS y ; C AS z", "k"),
    "(A OR B)+ PARTITION BY [k]": ("(A OR B)+", "k"),
    "(A AS x ; B AS y) PARTITION BY [x.s, y.s] FILTER x.k = y.k": ("A AS x ; B AS y", "k, s"),
    "A AS x ; (B AS y FILTER y.k = x.k)+": ("A AS x ; B AS y+", "k"),
    "(A AS x ; B AS y FILTER x.k = y.k) OR (A AS x ; C AS z FILTER x.k = z.k)": (
        "(A AS x ; B AS y) OR (A AS x ; C AS z)",
        "k",
    ),
    "(A AS x ALL B AS y) FILTER x.k = y.k": ("A AS x ALL B AS y", "k"),
    "A AS x ; B AS y FILTER x.k = y.k AND x.n = y.k": ("A AS x ; B AS y FILTER x.n = y.k", "k"),
}

REFUSED = {
    "A AS x ; B AS y ; C AS z FILTER x.k = z.k": "the key of y is not known",
    "A AS x ; B AS y FILTER x.n < y.n": "no equality between its events holds for the whole complex event",
    "(A AS x ; B AS y FILTER x.k = y.k)+": "no equality between its events holds for the whole complex event",
    "A AS x ; (B AS y)? FILTER x.k = y.k": "its equalities do not give all its events one key",
    "A AS x ; B AS y ; C AS z ; A AS w FILTER x.k = y.k AND z.k = w.k": "its equalities do not give all its "
    "events one key",
    "A AS x ; B AS y FILTER x.k = y.n": "its equalities do not give all its events one key",
    "A AS x : B AS y FILTER x.k = y.k": "some events have to follow one another directly",
    "(A AS x ; B AS y FILTER x.k = y.k) UNLESS C": "it forbids an event in between",
    "START(A AS x ; B AS y FILTER x.k = y.k)": "it depends on which event is the first of the stream",
    "(A AS x ; B AS y FILTER x.k = y.k) KEEP [x]": "it reads an event without marking it",
}


@pytest.mark.parametrize("text", SAME)
def test_equalities_become_a_partition(text: str) -> None:
    found = as_partition(parse_pattern(text), SCHEMA)
    assert isinstance(found, Partitioned), found
    pattern, keys = SAME[text]
    assert str(found.pattern) == str(parse_pattern(pattern))
    assert found.keys == tuple(KeyBracket((name,)) for name in keys.split(", "))


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_partition_says_why(text: str) -> None:
    assert as_partition(parse_pattern(text), SCHEMA) == REFUSED[text]


def test_types_with_other_attributes_get_alternatives_in_an_order_that_finds_each() -> None:
    found = as_partition(
        parse_pattern("A AS x ; B AS y ; C AS z FILTER x.id = y.ref AND y.ref = z.key"), TABLES
    )
    assert isinstance(found, Partitioned)
    assert found.keys == (KeyBracket(("ref", "id", "key")),)


def test_alternatives_that_find_the_wrong_attribute_are_not_taken() -> None:
    text = "B AS x ; D AS y FILTER x.id = y.ref"
    assert as_partition(parse_pattern(text), TABLES) == "its equalities do not give all its events one key"


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        ({"strategy": Strategy.STRICT}, "the strategy STRICT depends on the events in between"),
        ({"consume": Consume.PARTITION}, "CONSUME BY PARTITION depends on the partitions of the query"),
    ],
)
def test_clauses_that_see_the_partitions_refuse(tree: dict[str, Strategy | Consume], why: str) -> None:
    pattern = parse_pattern("A AS x ; B AS y FILTER x.k = y.k")
    assert partitioned(replace(QueryTree(pattern), **tree), SCHEMA) == why  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------- at random


@st.composite
def keyed(draw: st.DrawFn, attributes: Mapping[str, tuple[str, ...]]) -> str:
    """Sequences of two to four parts, most of them joined with one before by an equality."""
    count = draw(st.integers(2, 4))
    types = [draw(st.sampled_from(sorted(attributes))) for _ in range(count)]
    shapes = st.sampled_from(["{0} AS {1}"] * 3 + ["{0}+ AS {1}", "({0} AS {1})?"])
    parts = [draw(shapes).format(name, f"v{place}") for place, name in enumerate(types)]
    parts[0] = parts[0].replace("?", "")
    main = [draw(st.sampled_from(attributes[name][:2])) for name in types]
    filters = []
    for place in range(1, count):
        other = draw(st.integers(0, place - 1))
        left = main[place] if draw(st.integers(0, 5)) else draw(st.sampled_from(attributes[types[place]]))
        operator = "=" if draw(st.integers(0, 9)) else "<="
        filters.append(f"v{place}.{left} {operator} v{other}.{main[other]}")
    whole = f"({' ; '.join(parts)}) FILTER {' AND '.join(filters)}"
    key = draw(st.sampled_from(sorted({name for names in attributes.values() for name in names})))
    around = ["{0}", "{0}", "{0}", f"({{0}}) PARTITION BY [{key}]", "({0}) OR ({0})", "({0})+"]
    return draw(st.sampled_from(around)).format(whole)


SMALL: st.SearchStrategy[Value] = st.sampled_from([0, 1, 0, 1, 2, None])


@st.composite
def tables_stream(draw: st.DrawFn) -> list[Event]:
    """Events of the types of `TABLES`, each with its own attributes."""
    names = draw(st.lists(st.sampled_from(sorted(KEYS)), max_size=9))
    return [Event(name, {each: draw(SMALL) for each in KEYS[name]}, at) for at, name in enumerate(names)]


@st.composite
def clauses(draw: st.DrawFn, text: str) -> QueryTree:
    """The pattern under any of the clauses."""
    return QueryTree(
        parse_pattern(text),
        strategy=draw(st.sampled_from(AT_ENDS)),
        window=draw(st.sampled_from([None, EventWindow(4)])),
        consume=draw(st.sampled_from([Consume.NONE, Consume.ANY])),
        limit=draw(st.sampled_from([None, None, 1])),
    )


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(tree=keyed(KEYS).flatmap(clauses), events=tables_stream())
def test_types_with_tables_of_their_own_give_the_same_answers(tree: QueryTree, events: list[Event]) -> None:
    _same_answers(tree, TABLES, events)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(tree=keyed(dict.fromkeys("ABC", ("k", "n"))).flatmap(clauses), events=streams(max_size=8))
def test_random_equalities_give_the_same_answers(tree: QueryTree, events: list[Event]) -> None:
    _same_answers(tree, SCHEMA, events)


@st.composite
def partitions(draw: st.DrawFn) -> QueryTree:
    """Any query with all its events in one nested PARTITION BY."""
    tree = draw(full_queries(max_operators=2))
    return replace(tree, pattern=PartitionBy(tree.pattern, (PartitionKey("k"),)))


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(tree=partitions(), events=streams(max_size=6))
def test_random_nested_partitions_give_the_same_answers(tree: QueryTree, events: list[Event]) -> None:
    _same_answers(tree, SCHEMA, events)


def _same_answers(tree: QueryTree, schema: Schema, events: list[Event]) -> None:
    found = partitioned(tree, schema)
    assume(isinstance(found, QueryTree))
    assert isinstance(found, QueryTree)
    assert evaluate_query(found, events, tick=TICK) == evaluate_query(tree, events, tick=TICK)
