"""What is part of the language and not evaluated yet: refused by name, at its place.

Each row of `PATTERNS` and `CONDITIONS` goes when its operator is evaluated.
"""

from __future__ import annotations

import re
from typing import Final

from estero.errors import NOWHERE, Span
from estero.language.expressions import (
    Aggregate,
    And,
    Attribute,
    EventFilter,
    Node,
    Not,
    Or,
    SetPredicate,
    without_variable,
)
from estero.language.labels import bound_names
from estero.language.pattern import (
    All,
    Conjunction,
    Filter,
    Keep,
    PartitionBy,
    Pattern,
    Rename,
    Sequence,
    Start,
    Strict,
    Unless,
)
from estero.language.problems import Problems
from estero.language.query import QueryTree, Strategy
from estero.language.render import render_condition
from estero.language.selection import label_types
from estero.language.words import quoted

PATTERNS: Final[dict[type[Pattern], str]] = {
    Rename: "[A -> B]",
    Conjunction: "AND between patterns",
    All: "ALL",
    Unless: "UNLESS",
    Start: "START(…)",
    Strict: "STRICT(…)",
    Keep: "KEEP",
    PartitionBy: "PARTITION BY inside a pattern",
}
CONDITIONS: Final[dict[type[Node], str]] = {
    Aggregate: "an aggregate over a variable",
    SetPredicate: "a predicate over sets of events",
}
STRATEGIES: Final = frozenset(Strategy) - {Strategy.ALL}
_HINTS: Final[dict[type[Pattern], str]] = {
    PartitionBy: "the query's PARTITION BY takes plain attributes and stands outside parentheses",
}
_WORDS: Final[dict[type[Pattern], str]] = {
    Rename: r"\[[^\[]*\]$",
    Conjunction: r"\bAND\b",
    All: r"\bALL\b",
    Unless: r"\bUNLESS\b",
    Start: r"\w+",
    Strict: r"\w+",
    Keep: r"\bKEEP\b.*$",
    PartitionBy: r"\bPARTITION\b.*$",
}
"""Where in its text an operator is: the first match behind its first operand."""


def check_supported(tree: QueryTree, problems: Problems) -> None:
    """Note every use of what this version does not evaluate."""
    if tree.strategy in STRATEGIES:
        _refuse(f"the strategy {tree.strategy.value}", tree.places.get("STRATEGY", NOWHERE), problems)
    bound = set(bound_names(tree.pattern))
    for node in tree.pattern.walk():
        if type(node) in PATTERNS:
            place = _place_of_operator(node, problems.text)
            _refuse(PATTERNS[type(node)], place, problems, _HINTS.get(type(node), ""))
        if isinstance(node, Sequence):
            for absent in (each for link in node.links for each in link.absent):
                _refuse("NOT(…) in a sequence", absent.span, problems)
        if isinstance(node, Filter):
            outside = bound - set(label_types(node.pattern))
            _check_condition(node.condition, outside, problems)


def _place_of_operator(node: Pattern, text: str) -> Span:
    first = node.span.start if isinstance(node, Start | Strict) else next(node.children()).span.end
    found = re.search(_WORDS[type(node)], text[first : node.span.end], re.IGNORECASE | re.DOTALL)
    return Span(first + found.start(), first + found.end()) if found else node.span


def _check_condition(condition: Node, outside: set[str], problems: Problems) -> None:
    """`outside` are the labels that only other parts of the whole pattern give."""
    stack = [condition]
    while stack:
        node = stack.pop()
        match node:
            case And(parts) | Or(parts):
                stack.extend(parts)
            case Not(part):
                stack.append(part)
            case EventFilter(variable):
                if variable in outside:
                    what = f"a filter on {variable}, which is marked elsewhere in the pattern,"
                    _refuse(what, node.span, problems)
            case _:
                _check_comparison(node, problems)


def _check_comparison(node: Node, problems: Problems) -> None:
    for each in node.walk():
        if type(each) in CONDITIONS:
            _refuse(CONDITIONS[type(each)], each.span, problems)
            return
        if isinstance(each, EventFilter):
            _refuse("X[…] inside a comparison", each.span, problems)
            return
    variables = [each.variable for each in node.walk() if isinstance(each, Attribute)]
    named = sorted({each for each in variables if each is not None})
    if None in variables:
        return  # an error of its own
    if len(named) > 1:
        _refuse("a condition on several variables", node.span, problems)
    elif named:
        hint = f"write {quoted(named[0])}[{render_condition(without_variable(node))}]"
        _refuse("a condition with X.a outside of X[…]", node.span, problems, hint)
    elif not variables:
        _refuse("a filter that speaks of no variable", node.span, problems)


def _refuse(what: str, span: Span, problems: Problems, hint: str = "") -> None:
    problems.add(
        f"{what} is part of the language, but this version does not evaluate it yet", span, hint=hint
    )
