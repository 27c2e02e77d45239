"""The productions of conditions: Lark's parse tree → expressions, filters and predicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from estero.errors import QueryError, Span
from estero.language.tree import expressions as e
from estero.language.tree.literals import TIMESTAMP_FORM, integer_value, string_value, timestamp_value
from estero.language.tree.words import AGGREGATES, SCALAR_FUNCTIONS, SET_PREDICATES, unquoted

if TYPE_CHECKING:
    from lark import Token

Children: TypeAlias = list[Any]
"""What was built below a production, and the tokens among it that say which."""

Production: TypeAlias = Callable[[Children, Span], Any]
"""Builds what a production means from its children and its span."""


def span_of(token: Token) -> Span:
    """The place of a token."""
    return Span(cast(int, token.start_pos), cast(int, token.end_pos))


def name_of(token: Token) -> str:
    """The name that a NAME or QUOTED token writes."""
    return unquoted(str(token))


def refused(token: Token, message: str, expected: str, hint: str) -> QueryError:
    """The error of a word that the grammar allows in its place and the language does not."""
    return QueryError(message, span=span_of(token), found=str(token), expected=expected, hint=hint)


def node_of(child: e.Node | Token) -> e.Node:
    """A node, from one or from the token of a constant.

    Constants stay tokens until a parent asks, so that ``-5`` is one literal and ``-(5)`` is not.
    """
    return child if isinstance(child, e.Node) else constant([child], span_of(child))


def _nodes(children: Children) -> tuple[e.Node, ...]:
    return tuple(map(node_of, children))


def constant(children: Children, span: Span) -> e.Literal:
    """A literal, from its token and what comes before it: a minus, or TIMESTAMP."""
    *before, token = children
    if before and before[0].type == "NAME":
        return _typed_literal(children, span)
    match token.type:
        case "INT":
            return e.Literal(integer_value("".join(children), span), span=span)
        case "FLOAT":
            return e.Literal(float("".join(children)), span=span)
        case "STRING":
            return e.Literal(string_value(token), span=span)
        case "NULL":
            return e.Literal(None, span=span)
        case _:
            return e.Literal(token.type == "TRUE", span=span)


def _typed_literal(children: Children, span: Span) -> e.Literal:
    word, text = children
    if word.upper() != "TIMESTAMP":
        raise refused(
            word,
            f"{word} does not start a literal",
            "TIMESTAMP before a string, or an operator between the two",
            "dates are timestamps too: TIMESTAMP '2024-01-31'"
            if word.upper() in ("DATE", "TIME")
            else f"for a comparison write {word} = {text}",
        )
    try:
        return e.Literal(timestamp_value(string_value(text)), span=span)
    except ValueError as error:
        raise refused(
            text,
            f"{text} is not a timestamp",
            TIMESTAMP_FORM,
            "for example TIMESTAMP '2024-01-31 12:00:00'; the day has to exist",
        ) from error


def _literal(child: e.Literal | Token) -> e.Literal:
    return child if isinstance(child, e.Literal) else constant([child], span_of(child))


def _in(value: e.Node, *members: Any, span: Span) -> e.In:
    literals = (each if isinstance(each, e.Range) else _literal(each) for each in members)
    return e.In(value, tuple(literals), span=span)


def _negative(children: Children, span: Span) -> e.Node:
    operand = children[1]
    if not isinstance(operand, e.Node) and operand.type in ("INT", "FLOAT"):
        return constant(children, span)
    return e.Negative(node_of(operand), span=span)


def _comparison(children: Children, span: Span) -> e.Node:
    left, operator, right = children
    sign = "!=" if operator == "<>" else str(operator)
    return e.Comparison(cast(e.ComparisonOperator, sign), node_of(left), node_of(right), span=span)


def _arithmetic(children: Children, span: Span) -> e.Node:
    left, operator, right = children
    sign = cast(e.ArithmeticOperator, str(operator))
    return e.Arithmetic(sign, node_of(left), node_of(right), span=span)


def _test(make: Callable[..., e.Node]) -> Production:
    """A test of one value: `make` takes the value and what follows the keywords."""

    def build(children: Children, span: Span) -> e.Node:
        operand, *words = children
        # NOT comes before IN, BETWEEN and LIKE, and after IS.
        negated = any(isinstance(word, str) and word.upper() == "NOT" for word in words[:2])
        test = make(node_of(operand), *words[1 + negated :], span=span)
        return e.Not(test, span=span) if negated else test

    return build


def _call(children: Children, span: Span) -> e.Node:
    name = name_of(children[0])
    arguments = _nodes(children[1:])
    folded = name.lower()
    if folded in SCALAR_FUNCTIONS:
        return e.Call(folded, arguments, span=span)
    if folded in AGGREGATES:
        return _aggregate(cast(e.AggregateFunction, folded), arguments, span)
    known = folded if folded in SET_PREDICATES else name
    return e.SetPredicate(known, tuple(_set_argument(name, each) for each in arguments), span=span)


def _aggregate(function: e.AggregateFunction, arguments: tuple[e.Node, ...], span: Span) -> e.Node:
    match arguments:
        case (e.Attribute(variable, None),) if function == "count":
            return e.Aggregate(function, variable, span=span)
        case (e.Attribute(attribute, str(variable)),):
            return e.Aggregate(function, variable, attribute, span=span)
        case _:
            form = "count(X) or count(X.a)" if function == "count" else f"{function}(X.a)"
            raise QueryError(
                f"{function} takes one variable's events",
                span=arguments[0].span if arguments else span,
                found="something else" if arguments else "no argument",
                expected=f"{form}, with X a variable",
                hint="count(X) counts events; all other aggregates, and count(X.a), take one attribute",
            )


def _set_argument(name: str, argument: e.Node) -> e.VariableReference | e.Attribute | e.Literal:
    match argument:
        case e.Attribute(variable, None):
            return e.VariableReference(variable, span=argument.span)
        case e.Attribute() | e.Literal():
            return argument
        case _:
            raise QueryError(
                f"{name} takes variables, their attributes and constants",
                span=argument.span,
                found="an expression",
                expected="X, X.a or a constant",
                hint="pass the attribute, and let the predicate compute with it"
                if isinstance(argument, e.Arithmetic | e.Negative | e.Call | e.Aggregate)
                else f"a condition on the events marked {name} goes in square brackets: {name}[…]",
            )


PRODUCTIONS: Final[Mapping[str, Production]] = {
    "or_": lambda parts, span: e.Or(_nodes(parts), span=span),
    "and_": lambda parts, span: e.And(_nodes(parts), span=span),
    "not_": lambda children, span: e.Not(node_of(children[1]), span=span),
    "comparison": _comparison,
    "in_": _test(_in),
    "between": _test(lambda value, *ends, span: e.Between(value, *_nodes(list(ends)), span=span)),
    "like": _test(lambda value, text, span: e.Like(value, string_value(text), span=span)),
    "is_null": _test(lambda value, *_, span: e.IsNull(value, span=span)),
    "matches": lambda children, span: e.Matches(node_of(children[0]), string_value(children[2]), span=span),
    "arithmetic": _arithmetic,
    "negative": _negative,
    "typed_literal": _typed_literal,
    "attribute": lambda names, span: e.Attribute(name_of(names[0]), span=span),
    "variable_attribute": lambda names, span: e.Attribute(name_of(names[1]), name_of(names[0]), span=span),
    "call": _call,
    "event_filter": lambda children, span: e.EventFilter(
        name_of(children[0]), node_of(children[1]), span=span
    ),
    "condition_group": lambda children, _: node_of(children[0]),
    "range": lambda ends, span: e.Range(_literal(ends[0]), _literal(ends[2]), span=span),
    "negative_constant": constant,
}
