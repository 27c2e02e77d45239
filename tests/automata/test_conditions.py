"""Conditions on neighbours: their AND, what is left without another, and how they are written."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from automata.chain_runs import holds
from estero.automata.chain import Neighbours
from estero.automata.correlated.conditions import Condition, Terms
from estero.automata.reads import not_true
from estero.language.tree.expressions import (
    And,
    Attribute,
    Comparison,
    ComparisonOperator,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
)
from estero.reference.queries import Event
from estero.reference.values import evaluate_predicate
from strategies.patterns import streams

OPERATORS = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
VALUES = st.sampled_from(("n", "k", "time")).map(Attribute)


def _comparison(operator: ComparisonOperator, left: Node, right: Node) -> Node:
    return Comparison(operator, left, right)


def _predicates() -> st.SearchStrategy[Node]:
    simple = st.one_of(
        st.builds(_comparison, OPERATORS, VALUES, VALUES),
        st.builds(_comparison, OPERATORS, VALUES, st.sampled_from((0, 1)).map(Literal)),
        VALUES.map(IsNull),
        VALUES.map(lambda value: Not(IsNull(value))),
    )
    joined = st.builds(lambda one, other, how: how((one, other)), simple, simple, st.sampled_from((And, Or)))
    return st.one_of(simple, simple.map(not_true), joined, joined.map(not_true), simple.map(Not))


Asked = tuple[list[Neighbours], list[Node]]
ASKED: st.SearchStrategy[Asked] = st.tuples(
    st.lists(st.builds(Neighbours, OPERATORS, VALUES, VALUES), max_size=3),
    st.lists(_predicates(), max_size=2),
)


def is_true(asked: Asked, before: Event, event: Event) -> bool:
    comparisons, parts = asked
    return all(holds(before, event, each) for each in comparisons) and all(
        evaluate_predicate(each, event) is True for each in parts
    )


def conditions_of(terms: Terms, asked: Asked) -> list[Condition]:
    """Disjoint conditions that say it."""
    comparisons, parts = asked
    whole = terms.of_neighbours(comparisons)
    both = [] if whole is None else [terms.both(whole, each) for each in terms.of_event(parts)]
    return [each for each in both if each is not None]


def ways(
    terms: Terms, conditions: list[Condition], before: Event, event: Event, *, null_differs: bool
) -> int:
    """In how many of the ways in which conditions are written two events pass them."""
    return sum(
        is_true((list(comparisons), list(here)), before, event)
        for each in conditions
        for here, comparisons in terms.written(each, null_differs=null_differs)
    )


@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much])
@given(one=ASKED, other=ASKED, events=streams(min_size=2, max_size=4), null_differs=st.booleans())
def test_conditions_mean_what_they_are_made_of(
    one: Asked, other: Asked, events: list[Event], null_differs: bool
) -> None:
    terms = Terms()
    first, second = conditions_of(terms, one), conditions_of(terms, other)
    both = [terms.both(a, b) for a in first for b in second]
    left = first
    for each in second:
        left = [rest for condition in left for rest in terms.without(condition, each)]
    fused = terms.fused([*left, *(each for each in both if each is not None)])
    for before in events:
        for event in events:
            wanted = is_true(one, before, event), is_true(other, before, event)

            def count(conditions: list[Condition], before: Event = before, event: Event = event) -> int:
                return ways(terms, conditions, before, event, null_differs=null_differs)

            assert count(first) == wanted[0]
            assert count([each for each in both if each is not None]) == all(wanted)
            assert count(left) == (wanted[0] and not wanted[1])
            assert count(fused) == wanted[0]


def test_equal_values_are_compared_at_the_event_at_hand() -> None:
    terms = Terms()
    k, n, t = (Attribute(name) for name in ("k", "n", "t"))
    condition = terms.of_neighbours([Neighbours("=", k, n), Neighbours("!=", k, t)])
    assert condition is not None
    assert list(terms.written(condition, null_differs=True)) == [
        ((Comparison("!=", n, t),), (Neighbours("=", k, n),))
    ]


def test_opposite_conditions_exclude_one_another() -> None:
    terms = Terms()
    k = Attribute("k")
    assert terms.of_neighbours([Neighbours("<", k, k), Neighbours(">=", k, k)]) is None
    assert terms.of_event([IsNull(k), Comparison("=", k, Literal(1))]) == []
