"""What follows from the class of a node alone: its text, its parts, changed copies, and its production."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero.errors import Span
from estero.language.syntax.productions import made
from estero.language.tree import conjunctive, expressions, pattern, query
from estero.language.tree.conditions import variables_of
from estero.language.tree.depth import depth_of
from estero.language.tree.expressions import Attribute, Comparison, Literal, Node, Not, with_variable
from estero.language.tree.nodes import SyntaxNode, names_in_text, names_of
from estero.language.tree.pattern import Filter, Pattern
from strategies.full import conditions, full_patterns

KINDS = [
    kind
    for module in (conjunctive, expressions, pattern, query)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, SyntaxNode) and kind.__module__ == module.__name__
]


@dataclass(frozen=True, slots=True)
class When(Node, form="WHEN {condition} THEN {value}"):
    """A case of the node below."""

    condition: Node
    value: Node


@dataclass(frozen=True, slots=True)
class Case(Node, form="CASE {cases: } END"):
    """A node that the language does not have."""

    cases: tuple[When, ...]


ABOVE = When(Comparison(">", Attribute("a", "x"), Literal(1)), Attribute("b", "y"))
BELOW = When(Not(Attribute("ok", "x")), Literal("none"))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.FORM], ids=lambda kind: kind.__name__)
def test_a_form_has_a_place_for_each_field(kind: type[SyntaxNode]) -> None:
    assert sorted(names_in_text(kind)) == sorted(names_of(kind))


def test_a_new_node_is_written_as_its_form_says() -> None:
    assert str(Case((ABOVE, BELOW))) == "CASE WHEN x.a > 1 THEN y.b WHEN NOT x.ok THEN 'none' END"


def test_a_new_node_speaks_of_the_variables_in_it() -> None:
    assert variables_of(Case((ABOVE, BELOW))) == {"x", "y"}


def test_a_new_node_can_be_copied_with_other_variables() -> None:
    assert (
        str(with_variable(Case((ABOVE, BELOW)), None)) == "CASE WHEN a > 1 THEN b WHEN NOT ok THEN 'none' END"
    )


def test_a_new_node_is_built_from_what_is_below_its_production() -> None:
    children: list[Any] = [ABOVE.condition, ABOVE.value]
    assert made(When)(children, Span(0, 4)) == ABOVE


@given(st.one_of(full_patterns(), conditions(("x", "y"))))
def test_a_tree_is_as_deep_as_the_longest_way_down(tree: Pattern | Node) -> None:
    assert depth_of(tree) == longest_way(tree)


def longest_way(tree: Pattern | Node) -> int:
    below: list[Pattern | Node] = [*tree.children()]
    if isinstance(tree, Filter):
        below.append(tree.condition)
    return 1 + max(map(longest_way, below), default=0)
