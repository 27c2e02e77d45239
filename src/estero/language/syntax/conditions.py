"""The productions of conditions, from Lark's parse tree to expressions, filters and predicates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast

from estero.errors import QueryError, Span
from estero.language.syntax.productions import (
    Children,
    Production,
    constant,
    name_of,
    node_of,
    nodes_of,
    refused,
    span_of,
    typed_literal,
)
from estero.language.syntax.units import unit_named
from estero.language.tree import expressions as e
from estero.language.tree.depth import depth_of
from estero.language.tree.durations import Duration
from estero.language.tree.functions import AGGREGATES, CAST_TYPES, PREVIOUS, SCALAR_FUNCTIONS, SET_PREDICATES
from estero.language.tree.literals import integer_value
from estero.language.tree.names import listed, suggestion
from estero.language.tree.paths import element_of, field_of
from estero.language.tree.words import quoted

_MOST_ELEMENTS: Final = 2**31 - 1


def _event_filter(children: Children, span: Span) -> e.EventFilter:
    return e.EventFilter(name_of(children[0]), of_one_event(node_of(children[1])), span=span)


def of_one_event(condition: e.Node) -> e.Node:
    """The content of ``X[…]``, where ``a.b`` is a field of the attribute a, and ``a[1]`` is an element."""

    def inside(part: e.Node) -> e.Node | None:
        match part:
            case e.Attribute(name, str() as attribute):
                return e.Attribute(field_of(attribute, name), span=part.span)
            case e.EventFilter(attribute, e.Literal(int() as place)) if not isinstance(place, bool):
                return e.Attribute(element_of(attribute, _place(part.predicate)), span=part.span)
            case e.EventFilter() | e.Aggregate() | e.SetPredicate() | e.Previous():
                return part  # which is refused there
            case _:
                return None

    depth_of(condition)
    return e.substituted(condition, inside)


def _field(children: Children, span: Span) -> e.Attribute:
    """``X.a.b``, and ``a[1].b`` in ``X[…]``."""
    whole = _attribute_in(children[0], f".{quoted(name_of(children[1]))}")
    return replace(whole, name=field_of(whole.name, name_of(children[1])), span=span)


def _element(children: Children, span: Span) -> e.Attribute:
    """``X.a[1]``, and ``a[1][1]`` in ``X[…]``."""
    index = node_of(children[1])
    whole = _attribute_in(children[0], f"[{index}]")
    return replace(whole, name=element_of(whole.name, _place(index)), span=span)


def _attribute_in(node: e.Node, step: str) -> e.Attribute:
    """The attribute that a step leads into, which in ``X[…]`` may look like an element."""
    match node:
        case e.Attribute():
            return node
        case e.EventFilter(attribute, e.Literal(int(place))) if not isinstance(place, bool) and place > 0:
            return e.Attribute(element_of(attribute, place))
        case e.EventFilter(attribute, e.Literal(int())):
            raise QueryError(
                "the events marked with a variable are not numbered, and elements are from 1",
                span=node.span,
                found=str(node),
                expected=f"X.a{step}, with X a variable and a an attribute",
                hint="first(a.price) and last(a.price) are values of one event",
            )
        case _:
            raise QueryError(
                "only attributes have fields and elements",
                span=node.span,
                found="a condition on the events of a variable",
                expected=f"X.a{step}, with X a variable and a an attribute",
                hint="X[…] holds conditions on events of X, and is true or false itself",
            )


def _place(index: e.Node) -> int:
    """The index of an element in brackets; raises `QueryError` for anything else."""
    match index:
        case e.Literal(int() as place) if not isinstance(place, bool) and 1 <= place <= _MOST_ELEMENTS:
            return place
        case e.Literal(int() as place) if not isinstance(place, bool) and place < 1:
            what, hint = f"there is no element {place}", "the first element is 1: x.tags[1]"
        case e.Literal(int() as place) if not isinstance(place, bool):
            what, hint = "this index is too large", "elements are counted from 1: x.tags[1]"
        case _:
            what = "the index of an element must be a whole number"
            hint = "elements are counted from 1, as in x.tags[1]; a field is x.process.name"
    raise QueryError(
        what, span=index.span, found=str(index), expected="the index of an element, from 1", hint=hint
    )


def _negative(children: Children, span: Span) -> e.Node:
    operand = children[1]
    if not isinstance(operand, e.Node) and operand.type in ("INT", "FLOAT"):
        return constant(children, span)
    return e.Negative(node_of(operand), span=span)


def _call(children: Children, span: Span) -> e.Node:
    name = name_of(children[0])
    arguments = tuple(map(node_of, children[1:]))
    folded = name.lower()
    if folded == PREVIOUS:
        return _previous(arguments, span)
    if folded in SCALAR_FUNCTIONS:
        return e.Call(folded, arguments, span=span)
    if folded in AGGREGATES:
        return aggregate(cast(e.AggregateFunction, folded), arguments, span)
    known = folded if folded in SET_PREDICATES else name
    return e.SetPredicate(known, tuple(_set_argument(name, argument) for argument in arguments), span=span)


def _previous(arguments: tuple[e.Node, ...], span: Span) -> e.Node:
    match arguments:
        case (e.Attribute(_, str()) as value,):
            return e.Previous(value, span=span)
        case _:
            raise QueryError(
                "prev takes an attribute of a variable",
                span=arguments[0].span if arguments else span,
                found="something else" if arguments else "no argument",
                expected="prev(X.a), with X a variable",
                hint="compute with its value, outside the brackets: abs(x.price - prev(x.price)) > 5",
            )


def aggregate(
    function: e.AggregateFunction, arguments: tuple[e.Node, ...], span: Span, *, distinct: bool = False
) -> e.Aggregate:
    """The aggregate of an expression over the events of one variable."""
    match arguments:
        case (e.Attribute(variable, None),) if function == "count" and not distinct:
            return e.Aggregate(function, variable, span=span)
        case (operand,) if len(variables := _variables(operand)) == 1 and None not in variables:
            of = str(variables.pop())
            return e.Aggregate(function, of, e.without_variable(operand), distinct, span=span)
        case _:
            pass
    form = "count(X), count(X.a) or count(DISTINCT X.a)" if function == "count" else f"{function}(X.a)"
    raise QueryError(
        f"{function} takes the events of one variable",
        span=arguments[0].span if arguments else span,
        found="something else" if arguments else "no argument",
        expected=f"{form}, with X a variable",
        hint="count(X) counts events; the others take an expression over one event of X: sum(X.a * X.b)",
    )


def _variables(operand: e.Node) -> set[str | None]:
    """The variables of the attributes in an expression, None for an attribute without one."""
    return {node.variable for node in operand.walk() if isinstance(node, e.Attribute)}


def _distinct(children: Children, span: Span) -> e.Node:
    name, operand = children
    if name_of(name).lower() != "count":
        raise refused(
            name,
            f"DISTINCT has no meaning in {name}(…)",
            "count(DISTINCT X.a)",
            "leave DISTINCT out",
        )
    return aggregate("count", (node_of(operand),), span, distinct=True)


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


def _duration(children: Children, span: Span) -> e.Literal:
    number, name = children[:2]
    if number.end_pos == name.start_pos and re.match(r"_\d|[xXbBoO]\w", name):
        raise refused(name, "a number has digits only", "digits", "write 1000, without other characters")
    amounts = (integer_value(child, span) for child in children[::2])
    return e.Literal(Duration.of(zip(amounts, map(unit_named, children[1::2]), strict=True)), span=span)


def _in_list(children: Children, span: Span) -> e.Node:
    operand, name = children
    return e.InList(node_of(operand), e.ListOf(name[1:], span=span_of(name)), span=span)


def _case(children: Children, span: Span) -> e.Node:
    whens = tuple(child for child in children if isinstance(child, e.When))
    rest = children[len(whens) :]
    return e.Case(whens, node_of(rest[0]) if rest else None, span=span)


def _cast(children: Children, span: Span) -> e.Node:
    word, operand, wanted = children
    name = name_of(wanted).upper()
    if word.upper() != "CAST":
        raise refused(
            word,
            f"AS has no meaning in {word}(…)",
            "CAST(… AS a type), or arguments separated by commas",
            "for an integer from a string write CAST(x AS INTEGER)",
        )
    cast_type = CAST_TYPES.get(name)
    if cast_type is None:
        raise refused(
            wanted,
            f"unknown type {wanted}",
            listed(dict.fromkeys(CAST_TYPES.values())),
            suggestion(name, CAST_TYPES) or "for a number with a fraction write CAST(x AS FLOAT)",
        )
    return e.Cast(node_of(operand), cast_type, span=span)


def _some_element(children: Children, span: Span) -> e.SomeElement:
    word, operand, element, condition = children
    if word.lower() != "some":
        raise refused(
            word,
            f"AS and a condition have no meaning in {word}(…)",
            "some(X.tags AS t, a condition on t)",
            "some asks whether an element of a list satisfies a condition",
        )
    whole, name = node_of(operand), name_of(element)
    if not isinstance(whole, e.Attribute):
        raise QueryError(
            "some takes a list",
            span=whole.span,
            found=str(whole)[:60],
            expected="an attribute that is a list, as in some(X.tags AS t, t LIKE 'a%')",
        )

    def at_hand(part: e.Node) -> e.Node | None:
        if isinstance(part, e.SomeElement) and part.element == name:
            return part
        return e.Element(name, span=part.span) if part == e.Attribute(name) else None

    tested = node_of(condition)
    depth_of(tested)
    return e.SomeElement(whole, name, e.substituted(tested, at_hand), span=span)


PRODUCTIONS: Final[Mapping[str, Production]] = {
    **nodes_of(e),
    "call": _call,
    "case": _case,
    "cast": _cast,
    "distinct": _distinct,
    "duration": _duration,
    "in_list": _in_list,
    "not_in_list": lambda children, span: e.Not(_in_list(children, span), span=span),
    "element": _element,
    "event_filter": _event_filter,
    "field": _field,
    "group": lambda children, _: node_of(children[0]),
    "negative": _negative,
    "negative_constant": constant,
    "some_element": _some_element,
    "typed_literal": typed_literal,
}
"""The productions without a node class of their own, or that need more than its fields."""
