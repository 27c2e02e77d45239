"""Predicates over sets of events: that there is such a one, and that it takes these arguments."""

from __future__ import annotations

from collections.abc import Callable

from estero.errors import Span
from estero.language.check.problems import Problems
from estero.language.check.set_predicates import known_predicates, registered
from estero.language.tree.expressions import Attribute, Literal, Node, SetPredicate, VariableReference
from estero.language.tree.names import some, suggestion
from estero.language.tree.schema import Kind
from estero.language.tree.words import AGGREGATES, SCALAR_FUNCTIONS, SET_PREDICATES, quoted

KindOf = Callable[[Node], Kind | None]
"""The kind of an argument, with what is wrong in it noted."""


def check_set_predicate(node: SetPredicate, kind_of: KindOf, problems: Problems) -> None:
    """Note it where a predicate is not known, or does not take these arguments."""
    if node.name in SET_PREDICATES:
        _check_built_in(node, kind_of, problems)
        return
    predicate = registered(node.name)
    if predicate is None:
        _unknown(node, problems)
    elif not predicate.takes(len(node.arguments)):
        problems.add(
            f"{node.name} takes {predicate.arguments}, not {len(node.arguments)}",
            node.span,
            expected=f"{node.name}{predicate.signature}",
            hint="each of X, X.a and constants is one argument",
        )
    elif all(isinstance(each, Literal) for each in node.arguments):
        problems.add(
            f"{node.name} is not about any variable",
            node.span,
            expected=f"{node.name}(X) or {node.name}(X.a)",
            hint="name at least one variable: what holds of no event is true or false of all complex events",
        )


def _unknown(node: SetPredicate, problems: Problems) -> None:
    known = known_predicates()
    problems.add(
        f"there is no predicate {node.name}",
        _place_of_name(node, problems),
        expected=some(known),
        hint=suggestion(node.name, (*known, *AGGREGATES, *SCALAR_FUNCTIONS))
        or f"make a function one: @estero.predicate above def {node.name}(…)",
    )


def _check_built_in(node: SetPredicate, kind_of: KindOf, problems: Problems) -> None:
    match node.arguments:
        case (Attribute(name, str() as variable) as attribute,):
            if kind_of(attribute) is Kind.OPAQUE:
                problems.add(
                    f"{variable}.{name} cannot be compared",
                    attribute.span,
                    expected="an attribute that holds truth values, numbers, strings or timestamps",
                    hint="lists, bytes and structures can only be shown, or tested with IS NULL",
                )
        case (VariableReference(variable),):
            problems.add(
                f"{node.name} takes values, and {variable} is a variable",
                node.span,
                expected=f"{node.name}(X.a)",
                hint=f"name the attribute: {node.name}({quoted(variable)}.…)",
            )
        case _:
            problems.add(
                f"{node.name} takes one attribute of a variable",
                node.span,
                expected=f"{node.name}(X.a)",
                hint="join several by AND",
            )


def _place_of_name(node: SetPredicate, problems: Problems) -> Span:
    text = problems.text[node.span.start : node.span.end]
    length = len(text.partition("(")[0].rstrip())
    return Span(node.span.start, node.span.start + length)
