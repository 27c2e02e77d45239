"""The random queries and streams are what they say they are."""

from __future__ import annotations

import math

from hypothesis import given, settings

from estero.language.check.queries import check_query
from estero.language.syntax.parser import parse_condition, parse_query
from estero.language.tree import pattern
from estero.language.tree.expressions import Node
from estero.language.tree.query import Consume, QueryTree
from estero.reference.queries import Event
from strategies.full import full_queries
from strategies.patterns import AT_ENDS, SCHEMA, from_table, predicates, queries, streams, to_table


@given(queries())
def test_queries_are_valid_and_print_to_what_parses_back(tree: QueryTree) -> None:
    assert check_query(tree, SCHEMA) == []
    assert parse_query(str(tree)) == tree


@given(predicates())
def test_predicates_print_to_what_parses_back(predicate: Node) -> None:
    assert parse_condition(str(predicate)) == predicate


@given(streams())
def test_streams_are_in_order_and_survive_a_table(events: list[Event]) -> None:
    times = [event.time or 0 for event in events]
    assert times == sorted(times)
    back = from_table(to_table(events))
    assert [repr(event) for event in back] == [repr(event) for event in events]


def test_a_table_tells_nan_from_null() -> None:
    numbers = [math.nan, None, -0.0]
    events = [Event("A", {"time": 1, "n": None, "x": x, "s": "", "k": 0}, 1) for x in numbers]
    column = to_table(events).column("x")
    assert column.null_count == 1
    assert [str(event.attributes["x"]) for event in from_table(to_table(events))] == ["nan", "None", "-0.0"]


@given(full_queries())
def test_full_queries_are_valid_and_print_to_what_parses_back(tree: QueryTree) -> None:
    assert check_query(tree, SCHEMA) == []
    assert parse_query(str(tree)) == tree


def test_full_queries_use_the_whole_language() -> None:
    seen: set[object] = set()

    @settings(max_examples=400)
    @given(full_queries(max_operators=6))
    def collect(tree: QueryTree) -> None:
        seen.update((tree.strategy, tree.consume))
        for node in tree.pattern.walk():
            seen.add(type(node).__name__)
            if isinstance(node, pattern.Filter):
                seen.update(type(each).__name__ for each in node.condition.walk())

    collect()
    operators = {kind.__name__ for kind in pattern.Pattern.__subclasses__()}
    filters = {"Aggregate", "SetPredicate", "Arithmetic", "Comparison", "EventFilter", "And", "Or", "Not"}
    assert operators | filters | set(AT_ENDS) | set(Consume) <= seen
