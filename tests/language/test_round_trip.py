"""Canonical text parses back to the same tree, and every node knows its piece of the text."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

from hypothesis import given

from estero.errors import QueryError
from estero.language.check.queries import check_query
from estero.language.syntax.conditions import of_one_event
from estero.language.syntax.parser import parse_condition, parse_pattern, parse_query
from estero.language.tree.expressions import (
    Aggregate,
    Attribute,
    Element,
    EventFilter,
    Node,
    Not,
    Previous,
    Range,
    SetPredicate,
    VariableReference,
    When,
    substituted,
    without_variable,
)
from estero.language.tree.pattern import Filter, Optional, Pattern
from estero.language.tree.query import QueryTree
from estero.language.tree.selection import label_types
from language import rebuild
from language.trees import conditions, patterns, queries


@given(conditions)
def test_a_condition_survives_its_text(condition: Node) -> None:
    text = str(condition)
    again = parse_condition(text)
    assert again == condition
    assert str(again) == text


@given(patterns)
def test_a_pattern_survives_its_text(pattern: Pattern) -> None:
    text = str(pattern)
    again = parse_pattern(text)
    assert again == pattern
    assert str(again) == text


@given(queries)
def test_a_query_survives_its_text(tree: QueryTree) -> None:
    text = str(tree)
    again = parse_query(text)
    assert again == tree
    assert again.text == text
    assert str(again) == text


@given(conditions)
def test_a_condition_is_at_its_span(condition: Node) -> None:
    text = str(condition)
    parsed = parse_condition(text)
    inside = {id(each) for node in parsed.walk() if isinstance(node, Aggregate) for each in node.children()}
    filters = [node for node in parsed.walk() if isinstance(node, EventFilter)]
    tested = {id(part) for node in filters for part in _tested_alone(node.predicate)}
    for node in parsed.walk():
        if not isinstance(node, Range | VariableReference | When):
            there = parse_condition(text[node.span.start : node.span.end])
            if id(node) in inside:  # X.a is the place of a
                there = without_variable(there)
                inside |= {id(each) for each in node.children()}
            if id(node) in tested:  # a.b is a field there
                there = of_one_event(there)
            alone, there = _alone(node), _alone(there)
            assert there in (alone, Not(alone))  # x NOT IN {…} is the place of both


def _tested_alone(node: Node) -> Iterator[Node]:
    """The node and the parts of it that ask one event alone."""
    yield node
    if not isinstance(node, EventFilter | Aggregate | SetPredicate | Previous):
        for part in node.children():
            yield from _tested_alone(part)


def _alone(node: Node) -> Node:
    """The node without knowing that it is in the test of an element, whose name is an attribute then."""
    return substituted(node, lambda part: Attribute(part.name) if isinstance(part, Element) else None)


@given(patterns)
def test_a_pattern_is_at_its_span(pattern: Pattern) -> None:
    text = str(pattern)
    for node in parse_pattern(text).walk():
        # The name in φ? AS x belongs to φ, and its span is that of all.
        assert parse_pattern(text[node.span.start : node.span.end]) in (node, Optional(node))
        if isinstance(node, Filter):
            span = node.condition.span
            assert parse_condition(text[span.start : span.end]) == node.condition


@given(queries)
def test_every_query_can_be_checked(tree: QueryTree) -> None:
    parsed = parse_query(str(tree))
    errors = check_query(parsed)
    assert all(isinstance(error, QueryError) and error.text == parsed.text for error in errors)
    assert [error.span.start for error in errors] == sorted(error.span.start for error in errors)
    assert [error.message for error in errors] == [error.message for error in check_query(tree)]
    assert all(str(error) for error in errors)


@given(queries)
def test_a_tree_is_hashable_and_pickles(tree: QueryTree) -> None:
    again = pickle.loads(pickle.dumps(tree))
    assert again == tree
    assert hash(again) == hash(tree)
    assert list(label_types(again.pattern)) == list(label_types(tree.pattern))


@given(conditions)
def test_a_condition_can_be_built(tree: Node) -> None:
    built = rebuild.condition(tree)
    assert built.tree == tree
    assert parse_condition(str(built)) == tree


@given(patterns)
def test_a_pattern_can_be_built(tree: Pattern) -> None:
    built = rebuild.pattern(tree)
    assert built.tree == tree
    assert parse_pattern(str(built)) == tree


@given(queries)
def test_a_query_can_be_built(tree: QueryTree) -> None:
    built = rebuild.query(tree)
    assert built.tree == tree
    assert parse_query(str(built)) == tree
