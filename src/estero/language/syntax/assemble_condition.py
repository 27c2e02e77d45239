"""The productions of conditions: Lark's parse tree → expressions, filters and predicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from estero.errors import QueryError, Span
from estero.language.tree.expressions import (
    Aggregate,
    AggregateFunction,
    And,
    Arithmetic,
    ArithmeticOperator,
    Attribute,
    Between,
    Call,
    Comparison,
    ComparisonOperator,
    EventFilter,
    In,
    IsNull,
    Like,
    Literal,
    Matches,
    Negative,
    Node,
    Not,
    Or,
    Range,
    SetPredicate,
    VariableReference,
)
from estero.language.tree.literals import TIMESTAMP_FORM, integer_value, string_value, timestamp_value
from estero.language.tree.words import AGGREGATES, SCALAR_FUNCTIONS, SET_PREDICATES, unquoted

if TYPE_CHECKING:
    from lark import Token

Children = list[Any]
"""Nodes, and the tokens among them that say which."""


def span_of(token: Token) -> Span:
    """The place of a token."""
    return Span(cast(int, token.start_pos), cast(int, token.end_pos))


def name_of(token: Token) -> str:
    """The name that a NAME or QUOTED token writes."""
    return unquoted(str(token))


def node_of(child: Node | Token) -> Node:
    """A node, from one or from the token of a constant.

    Constants stay tokens until a parent asks, so that ``-5`` is one literal and ``-(5)`` is not.
    """
    return child if isinstance(child, Node) else _constant([child], span_of(child))


def _constant(children: Children, span: Span) -> Literal:
    *sign, token = children
    if sign and sign[0].type == "NAME":
        return _typed_literal(children, span)
    match token.type:
        case "INT":
            return Literal(integer_value("".join(children), span), span=span)
        case "FLOAT":
            return Literal(float("".join(children)), span=span)
        case "STRING":
            return Literal(string_value(token), span=span)
        case "NULL":
            return Literal(None, span=span)
        case _:
            return Literal(token.type == "TRUE", span=span)


def _typed_literal(children: Children, span: Span) -> Literal:
    word, text = children
    if word.upper() != "TIMESTAMP":
        raise QueryError(
            f"{word} does not start a literal",
            span=span_of(word),
            found=str(word),
            expected="TIMESTAMP before a string, or an operator between the two",
            hint="dates are timestamps too: TIMESTAMP '2024-01-31'"
            if word.upper() in ("DATE", "TIME")
            else f"for a comparison write {word} = {text}",
        )
    try:
        return Literal(timestamp_value(string_value(text)), span=span)
    except ValueError as error:
        raise QueryError(
            f"{text} is not a timestamp",
            span=span_of(text),
            found=str(text),
            expected=TIMESTAMP_FORM,
            hint="for example TIMESTAMP '2024-01-31 12:00:00'; the day has to be in the calendar",
        ) from error


def _or(children: Children, span: Span) -> Node:
    return Or(tuple(map(node_of, children)), span=span)


def _and(children: Children, span: Span) -> Node:
    return And(tuple(map(node_of, children)), span=span)


def _not(children: Children, span: Span) -> Node:
    return Not(node_of(children[1]), span=span)


def _comparison(children: Children, span: Span) -> Node:
    left, operator, right = children
    sign = cast(ComparisonOperator, "!=" if operator == "<>" else str(operator))
    return Comparison(sign, node_of(left), node_of(right), span=span)


def _arithmetic(children: Children, span: Span) -> Node:
    left, operator, right = children
    return Arithmetic(cast(ArithmeticOperator, str(operator)), node_of(left), node_of(right), span=span)


def _negative(children: Children, span: Span) -> Node:
    operand = children[1]
    if not isinstance(operand, Node) and operand.type in ("INT", "FLOAT"):
        return _constant(children, span)
    return Negative(node_of(operand), span=span)


def _negated_if_said(children: Children, node: Node) -> Node:
    said = not isinstance(children[1], Node) and children[1].type == "NOT"
    return Not(node, span=node.span) if said else node


def _in(children: Children, span: Span) -> Node:
    first = 3 if children[1].type == "NOT" else 2
    members = tuple(child if isinstance(child, Range) else _literal_of(child) for child in children[first:])
    return _negated_if_said(children, In(node_of(children[0]), members, span=span))


def _range(children: Children, span: Span) -> Range:
    return Range(_literal_of(children[0]), _literal_of(children[2]), span=span)


def _literal_of(child: Literal | Token) -> Literal:
    return child if isinstance(child, Literal) else _constant([child], span_of(child))


def _between(children: Children, span: Span) -> Node:
    operand, low, high = children[0], children[-2], children[-1]
    return _negated_if_said(children, Between(node_of(operand), node_of(low), node_of(high), span=span))


def _like(children: Children, span: Span) -> Node:
    return _negated_if_said(children, Like(node_of(children[0]), string_value(children[-1]), span=span))


def _matches(children: Children, span: Span) -> Node:
    return Matches(node_of(children[0]), string_value(children[2]), span=span)


def _is_null(children: Children, span: Span) -> Node:
    test = IsNull(node_of(children[0]), span=span)
    return Not(test, span=span) if len(children) == 4 else test


def _attribute(children: Children, span: Span) -> Node:
    return Attribute(name_of(children[0]), span=span)


def _variable_attribute(children: Children, span: Span) -> Node:
    return Attribute(name_of(children[1]), name_of(children[0]), span=span)


def _event_filter(children: Children, span: Span) -> Node:
    return EventFilter(name_of(children[0]), node_of(children[1]), span=span)


def _group(children: Children, _span: Span) -> Node:
    return node_of(children[0])


def _call(children: Children, span: Span) -> Node:
    name = name_of(children[0])
    arguments = tuple(map(node_of, children[1:]))
    folded = name.lower()
    if folded in SCALAR_FUNCTIONS:
        return Call(folded, arguments, span=span)
    if folded in AGGREGATES:
        return _aggregate(cast(AggregateFunction, folded), arguments, span)
    return SetPredicate(
        folded if folded in SET_PREDICATES else name,
        tuple(_set_argument(name, argument) for argument in arguments),
        span=span,
    )


def _aggregate(function: AggregateFunction, arguments: tuple[Node, ...], span: Span) -> Node:
    match arguments:
        case (Attribute(variable, None),) if function == "count":
            return Aggregate(function, variable, span=span)
        case (Attribute(attribute, str(variable)),):
            return Aggregate(function, variable, attribute, span=span)
        case _:
            form = "count(X) or count(X.a)" if function == "count" else f"{function}(X.a)"
            raise QueryError(
                f"{function} takes one variable's events",
                span=arguments[0].span if arguments else span,
                found="something else" if arguments else "no argument",
                expected=f"{form}, with X a variable",
                hint="count(X) is the number of events; all others, and count(X.a), are of one attribute",
            )


def _set_argument(name: str, argument: Node) -> VariableReference | Attribute | Literal:
    match argument:
        case Attribute(variable, None):
            return VariableReference(variable, span=argument.span)
        case Attribute() | Literal():
            return argument
        case _:
            raise QueryError(
                f"{name} takes variables, their attributes and constants",
                span=argument.span,
                found="an expression",
                expected="X, X.a or a constant",
                hint="pass the attribute, and let the predicate compute with it"
                if isinstance(argument, Arithmetic | Negative | Call | Aggregate)
                else f"a condition on the events marked {name} stands in square brackets: {name}[…]",
            )


PRODUCTIONS: Final = {
    "or_": _or,
    "and_": _and,
    "not_": _not,
    "comparison": _comparison,
    "in_": _in,
    "between": _between,
    "like": _like,
    "matches": _matches,
    "is_null": _is_null,
    "arithmetic": _arithmetic,
    "negative": _negative,
    "typed_literal": _typed_literal,
    "attribute": _attribute,
    "variable_attribute": _variable_attribute,
    "call": _call,
    "event_filter": _event_filter,
    "condition_group": _group,
    "range": _range,
    "negative_constant": _constant,
}
