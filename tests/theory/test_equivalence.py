"""Equivalence, containment and emptiness of queries: decided, and shown by a shortest stream."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import estero
from estero.language.tree.query import QueryTree, Strategy
from estero.queries.equivalence import Counterexample
from estero.queries.pattern_statement import PatternStatement, pattern_statement
from estero.reference.queries import evaluate_query
from estero.reference.values import Event
from estero.theory.emptiness import why_never
from strategies.patterns import patterns, streams

EQUIVALENT = [
    ("A ; (B OR C)", "(A ; B) OR (A ; C)"),
    ("A AS a FILTER a[n > 3]", "A AS a FILTER NOT a[n <= 3]"),
    ("A AS a FILTER a[n BETWEEN 1 AND 2]", "A AS a FILTER a[n >= 1 AND n <= 2]"),
    ("A AS a FILTER a[n IN {1, 2}]", "A AS a FILTER a[n = 1 OR n = 2]"),
    ("A AS a FILTER a[n = 1 OR n != 1]", "A AS a FILTER a[n IS NOT NULL]"),
    ("A+", "A OR (A ; A+)"),
    ("A :+ ; B", "(A ; B) OR (A : A :+ ; B)"),
    ("A AS a FILTER a[length(s) = 1 AND n > 1]", "A AS a FILTER a[n > 1] AND a[length(s) = 1]"),
    ("A AS a FILTER a[n > 3 AND n < 3]", "B AS b FILTER b[n > 3 AND n < 3]"),
    ("A ALL B", "B ALL A"),
]
DIFFERENT = [
    ("A ; B", "A : B", 3),
    ("A ; B", "A ; B ; B", 2),
    ("A AS a FILTER a[n > 3]", "A AS a FILTER a[n >= 3]", 1),
    ("A AS a FILTER a[s < 'b']", "A AS a FILTER a[s <= 'a']", 1),
    ("A AS a", "A AS b", 1),
    ("A+", "A", 2),
    ("START(A ; B)", "A ; B", 3),
    ("A :{1,4}", "A :{1,3}", 4),
]


def select(pattern: str, clauses: str = "") -> str:
    return f"SELECT * WHERE {pattern} {clauses}"


@pytest.mark.parametrize(("one", "other"), EQUIVALENT)
def test_patterns_that_say_the_same_are_equivalent(one: str, other: str) -> None:
    assert estero.equivalent(select(one), select(other)) is True
    assert estero.difference(select(one), select(other)) is None


@pytest.mark.parametrize(("one", "other", "length"), DIFFERENT)
def test_patterns_that_differ_are_told_apart_by_a_shortest_stream(one: str, other: str, length: int) -> None:
    assert estero.equivalent(select(one), select(other)) is False
    example = estero.difference(select(one), select(other))
    assert example is not None
    assert len(example.events) == length


def test_a_counterexample_can_be_run() -> None:
    import pyarrow as pa

    example = estero.difference(select("A AS a ; B FILTER a[n > 3]"), select("A AS a ; B FILTER a[n > 4]"))
    assert example is not None
    assert {type(each) for each in example.events} == {dict}
    events = pa.Table.from_pylist(list(example.events))
    assert example.found_by.run(events, type="type").count() == 1
    assert example.missed_by.run(events, type="type").count() == 0


def test_containment_has_a_direction() -> None:
    assert estero.includes(select("A ; B"), select("A : B")) is True
    assert estero.missing(select("A ; B"), select("A : B")) is None
    assert estero.includes(select("A : B"), select("A ; B")) is False
    example = estero.missing(select("A : B"), select("A ; B"))
    assert example is not None
    assert str(example.found_by) == select("A ; B").strip()


def test_strict_is_a_containment() -> None:
    assert estero.includes(select("A+ ; B"), "SELECT STRICT * WHERE A+ ; B")
    assert estero.equivalent("SELECT STRICT * WHERE A ; B", select("A : B"))


def test_windows_in_events_bound_the_stream() -> None:
    longer, shorter = "A :{1,4}", "A :{1,3}"
    assert estero.equivalent(select(longer, "WITHIN 2 EVENTS"), select(shorter, "WITHIN 2 EVENTS"))
    assert not estero.equivalent(select(longer, "WITHIN 3 EVENTS"), select(shorter, "WITHIN 3 EVENTS"))


def test_one_partition_has_one_value_of_its_key() -> None:
    pair = "A AS a ; B AS b FILTER a[name = 'x'] AND b[name = 'y']"
    never = "A AS a ; B AS b FILTER a[name = 'y'] AND b[name = 'x']"
    assert estero.equivalent(select(pair, "PARTITION BY [name]"), select(never, "PARTITION BY [name]"))
    assert not estero.equivalent(select(pair), select(never))


def test_what_a_strategy_hides_is_not_told_apart_by_the_pattern() -> None:
    with pytest.raises(ValueError, match="SELECT MAX hides it"):
        estero.equivalent("SELECT MAX * WHERE A : B", "SELECT MAX * WHERE (A : B) OR ((A : B) KEEP [B])")


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (select("A AS a ; B AS b FILTER a.k = b.k"), select("A ; B"), "compares events with each other"),
        (select("A", "WITHIN 2 EVENTS"), select("A", "WITHIN 3 EVENTS"), "differ in WITHIN"),
        (select("A"), "SELECT MAX * WHERE A", "differ in their strategies"),
        (select("A AS a FILTER a[n + 1 > 2]"), select("A AS a FILTER a[1 + n > 2]"), "undecided"),
    ],
)
def test_what_cannot_be_decided_says_why(one: str, other: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        estero.equivalent(one, other)


def test_containment_of_chosen_complex_events_is_refused() -> None:
    with pytest.raises(ValueError, match="SELECT MAX chooses"):
        estero.includes("SELECT MAX * WHERE A+", "SELECT MAX * WHERE A")


def test_a_computed_condition_is_told_apart_by_values_near_its_constants() -> None:
    example = estero.difference(select("A AS a FILTER a[n * 1 > 2]"), select("A AS a FILTER a[n * 1 > 1]"))
    assert example is not None
    n = example.events[0]["n"]
    assert isinstance(n, float)
    assert 1 < n <= 2


# ---------------------------------------------------------------------------- against the reference


@given(patterns(), patterns(), st.lists(streams(), min_size=3, max_size=3))
def test_equivalent_patterns_find_the_same_in_the_reference(one, other, many) -> None:  # type: ignore[no-untyped-def]
    first, second = (estero.Query(PatternStatement(QueryTree(each))) for each in (one, other))
    try:
        example = estero.difference(first, second)
    except ValueError:
        reject()
    if example is None:
        for events in many:
            assert evaluate_query(first.tree, events) == evaluate_query(second.tree, events)
    else:
        assert _found(example.found_by, example) != _found(example.missed_by, example)


def _found(query: estero.Query, example: Counterexample) -> object:
    events = [
        Event(str(each["type"]), {k: v for k, v in each.items() if k != "type"}) for each in example.events
    ]
    return evaluate_query(query.tree, events)


@given(patterns(), streams())
def test_what_never_matches_has_no_complex_event_in_the_reference(pattern, events) -> None:  # type: ignore[no-untyped-def]
    query = PatternStatement(QueryTree(pattern))
    if why_never(query.tree, query.compiled().automaton):
        assert not evaluate_query(query.tree, events)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (select("A AS a ; B FILTER a[n > 5 AND n < 3]"), "no event satisfies A[n > 5 AND n < 3]"),
        (select("C ; (A AND B)"), "no complex event matches A AND B"),
        (
            select("A : B : C", "WITHIN 1 EVENTS"),
            "take 3 events or more, and WITHIN 1 EVENTS allows 2",
        ),
        (select("A AS a FILTER a[s > 'b' AND s < 'a']"), "no event satisfies A[s > 'b' AND s < 'a']"),
    ],
)
def test_check_warns_of_what_can_never_match(query: str, reason: str) -> None:
    with pytest.warns(estero.EsteroWarning) as caught:
        assert estero.check(query) == []
    assert any(reason in str(each.message) for each in caught)


def test_check_does_not_warn_of_what_can_match() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert estero.check(select("A AS a ; B FILTER a[n > 3 AND n < 5]")) == []


def test_strict_that_leaves_nothing_is_named() -> None:
    query = pattern_statement("SELECT STRICT * WHERE (A : B : C KEEP [A, C])")
    assert Strategy.STRICT is query.tree.strategy
    assert "STRICT" in why_never(query.tree, query.compiled().automaton)
