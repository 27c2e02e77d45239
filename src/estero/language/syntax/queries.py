"""The productions of queries, from Lark's parse tree to a query with its clauses, in either language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from estero.errors import QueryError, Span
from estero.language.syntax import conditions, patterns
from estero.language.syntax.patterns import Tail, with_tails
from estero.language.syntax.productions import (
    Children,
    Production,
    constant,
    name_of,
    node_of,
    nodes_of,
    refused,
    span_of,
)
from estero.language.syntax.units import unit_named
from estero.language.tree import conjunctive as c
from estero.language.tree import distances as d
from estero.language.tree import expressions as e
from estero.language.tree import query as q
from estero.language.tree.depth import depth_of
from estero.language.tree.durations import unit_of
from estero.language.tree.literals import integer_value
from estero.language.tree.names import suggestion
from estero.language.tree.parameters import OpenNumber, OpenWindow
from estero.language.tree.paths import field_of, is_path
from estero.language.tree.selection import label_types
from estero.language.tree.words import quoted

if TYPE_CHECKING:
    from lark import Token


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause of a query: the field of the tree that it gives, its value, its name and its place."""

    field: str
    value: Any
    name: str
    span: Span


def _clauses(children: Children) -> dict[str, Any]:
    """The fields of a query given by its clauses."""
    clauses = [child for child in children if isinstance(child, _Clause)]
    return {
        **{clause.field: clause.value for clause in clauses},
        "places": {clause.name: clause.span for clause in clauses},
    }


def _spread(children: Children) -> Children:
    """The children of a query, with grouped clauses one by one."""
    return [clause for child in children for clause in (child if isinstance(child, tuple) else (child,))]


# ── CEQL ─────────────────────────────────────────────────────────────────────────────────────────


def _query(children: Children, _span: Span) -> q.QueryTree:
    clauses = _clauses(_spread(children))
    return q.QueryTree(**clauses | {"select": _with_fields_of_keys(clauses)})


def _with_fields_of_keys(clauses: dict[str, Any]) -> tuple[q.Selected, ...] | None:
    """The items of SELECT, where ``a.b`` is a key of that name unless the pattern has a label a."""
    keys = {
        name for bracket in clauses.get("partition_by", ()) for name in bracket.alternatives if is_path(name)
    }
    labels = label_types(clauses["pattern"]) if keys else ()

    def key(node: e.Node) -> e.Node | None:
        match node:
            case e.Attribute(name, str() as first) if first not in labels and field_of(first, name) in keys:
                return e.Attribute(field_of(first, name), span=node.span)
            case _:
                return None

    shown: tuple[q.Selected, ...] | None = clauses["select"]
    if not keys or shown is None:
        return shown
    return tuple(
        replace(item, expression=e.substituted(_not_too_deep(item.expression), key))
        if isinstance(item, q.SelectExpression)
        else item
        for item in shown
    )


def _not_too_deep(expression: e.Node) -> e.Node:
    depth_of(expression)
    return expression


def _strategy_and_list(children: Children, _span: Span) -> tuple[_Clause, ...]:
    """The strategy, one word or two, and the items shown."""
    token, *further, shown = children
    word = token.upper()
    word = "ALL" if word == "ANY" else word
    if word not in q.Strategy.__members__:
        raise refused(
            token,
            f"{token} is not a strategy",
            "ALL, ANY, STRICT, MAX, NEXT, LAST, LONGEST or SHORTEST",
            _INSTEAD.get(word)
            or suggestion(word, [*q.Strategy.__members__, "ANY"])
            or "labels are separated by commas",
        )
    strategy = q.Strategy[word]
    place = Span(span_of(token).start, span_of((token, *further)[-1]).end)
    disjoint: tuple[_Clause, ...] = ()
    if further:
        _check_disjoint(further[0], strategy)
        disjoint = (_Clause("disjoint", True, "DISJOINT", span_of(further[0])),)
    return _Clause("strategy", strategy, "STRATEGY", place), *disjoint, shown


def _check_disjoint(word: Token, strategy: q.Strategy) -> None:
    """Raises `QueryError` unless a word after a strategy is DISJOINT, and the strategy allows it."""
    if word.upper() != "DISJOINT":
        raise refused(
            word,
            f"{word} is not part of a strategy",
            "a label, * or DISJOINT",
            suggestion(word.upper(), ["DISJOINT"]) or "labels are separated by commas",
        )
    if not strategy.one_for_each_start:
        raise refused(
            word,
            f"DISJOINT does not go with {strategy.value}",
            "LONGEST DISJOINT or SHORTEST DISJOINT",
            "it leaves out what starts before the last one has ended, where each start has one end",
        )


_INSTEAD: Final = {
    "DISTINCT": "leave it out: an answer has no complex event twice",
    "FIRST": "of complex events with the same end, NEXT keeps the one with the earliest events",
    "TOP": "LIMIT 5 after the pattern keeps 5 at each end",
    "DISJOINT": "write SELECT LONGEST DISJOINT or SELECT SHORTEST DISJOINT",
}
"""The replacements for words of other languages."""


def _select_list(children: Children, span: Span) -> _Clause:
    items = tuple(children)
    match items:
        case (q.EveryLabel(),):
            return _Clause("select", None, "LIST", span)
        case (q.SelectItem(label, None) as item,) if label.upper() == "NONE" and _is_bare(item):
            return _Clause("select", (), "LIST", span)
        case _:
            return _Clause("select", items, "LIST", span)


def _shown_name(node: e.Node) -> str:
    if isinstance(node, e.Attribute):
        return node.name
    raise QueryError(
        "only attributes are shown of a label",
        span=node.span,
        found=str(node),
        expected="names of attributes, separated by commas: x[a, b]",
        hint=f"what is computed has a name of its own: {_COMPUTED}",
    )


_COMPUTED: Final = "SELECT x, sum(x.price * x.volume) AS total"


def _is_bare(item: q.SelectItem) -> bool:
    """Whether a label is written without quotes: NONE in double quotes is a label."""
    return item.span.end - item.span.start == len(item.label)


def _select_item(children: Children, span: Span) -> q.SelectItem:
    """A label; ``x[a]`` was read as a condition on x."""
    if len(children) > 1:
        label, *attributes = children
        names = tuple(_shown_name(conditions.of_one_event(node_of(attribute))) for attribute in attributes)
        return q.SelectItem(name_of(label), names, span=span)
    match node_of(children[0]):
        case e.Attribute(label, None):
            return q.SelectItem(label, span=span)
        case e.EventFilter(label, e.Attribute(attribute, None)):
            return q.SelectItem(label, (attribute,), span=span)
        case expression:
            hint = f"write {expression} AS {_likely_name(expression)}"
            if isinstance(expression, e.SetPredicate):
                hint = f"the attributes of a label go in square brackets: {quoted(expression.name)}[price]"
            raise QueryError(
                "an expression in SELECT needs a name",
                span=span,
                found="an expression",
                expected="a label, or an expression with AS and a name",
                hint=hint,
            )


def _likely_name(expression: e.Node) -> str:
    """A likely name for the value of an expression."""
    match expression:
        case e.Aggregate(function, variable):
            return quoted(f"{function}_{variable}" if variable.isidentifier() else function)
        case e.Attribute(name):
            return quoted(name)
        case _:
            return "n"


def _select_expression(children: Children, span: Span) -> q.SelectExpression:
    expression, _, name = children
    return q.SelectExpression(node_of(expression), name_of(name), span=span)


def _where(children: Children, span: Span) -> tuple[_Clause, ...]:
    """The clause WHERE, and PARTITION BY if the last tail is the query's clause."""
    pattern = children[0]
    tails: list[Tail] = [tail.over(pattern) for tail in children[1:]]
    partition: tuple[_Clause, ...] = ()
    if tails and (keys := tails[-1].plain_keys):
        brackets = (q.KeyBracket(tuple(key.attribute for key in node.keys), span=node.span) for node in keys)
        partition = (_Clause("partition_by", tuple(brackets), "PARTITION BY", tails.pop().span),)
    for tail in tails:
        if tail.plain_keys:
            raise QueryError(
                "PARTITION BY on attributes comes after the pattern and its filters",
                span=tail.span,
                found="PARTITION BY",
                expected="FILTER and KEEP before PARTITION BY",
                hint="move it after the last FILTER, or put what it covers in parentheses",
            )
    return _Clause("pattern", with_tails(pattern, tails), "WHERE", span), *partition


def _whole_number(signs: Children, span: Span) -> int:
    """A number, or an open one."""
    if signs[0].type == "PARAMETER":
        return OpenNumber.of(signs[0][1:], span)
    return integer_value("".join(signs), span)


def _span_window(children: Children, span: Span) -> d.Window:
    amounts, units = children[::2], children[1::2]
    if len(units) == 1 and units[0].upper() in ("EVENTS", "EVENT"):
        return d.EventWindow(amounts[0], span=span)
    parts = zip(amounts, (unit_named(unit, ("EVENTS",)) for unit in units), strict=True)
    return d.DurationWindow(tuple(parts), span=span)


def _consume(children: Children, span: Span) -> _Clause:
    word = children[2]
    policy = q.Consume.__members__.get(word.upper())
    if policy is None:
        raise refused(
            word,
            f"{word} is not a consumption policy",
            "ANY, PARTITION or NONE",
            suggestion(word.upper(), q.Consume.__members__)
            or "ANY forgets everything read so far, PARTITION only in the partition, NONE nothing",
        )
    return _Clause("consume", policy, "CONSUME BY", span)


def _order(children: Children, span: Span) -> _Clause:
    _, by, *direction = children
    if direction and direction[0].upper() not in ("ASC", "DESC"):
        (word,) = direction
        hint = suggestion(word.upper(), ["ASC", "DESC"]) or "DESC has the greatest first"
        raise refused(word, f"{word} is not an order", "ASC or DESC", hint)
    ascending = not direction or direction[0].upper() == "ASC"
    return _Clause("ranking", q.Ranking(node_of(by), ascending, span=span), "ORDER BY", span)


def _limit(children: Children, span: Span) -> tuple[_Clause, ...]:
    most, *per = children[1:]
    return _Clause("limit", most, "LIMIT", span), *(clause for clause in per if clause.value is not None)


def _per(children: Children, span: Span) -> _Clause:
    """The length of an interval, or None for PER END."""
    _, length = children
    if not isinstance(length, str):
        return _Clause("per", length, "PER", span)
    if length.upper() != "END":
        one = f"PER 1 {unit_of(length).removesuffix('S')}" if unit_of(length) else ""
        raise refused(
            cast("Token", length),
            f"LIMIT does not count by {length}",
            "PER END, or a duration",
            f"write {one}" if one else "for example LIMIT 3 PER 1 HOUR, or LIMIT 3 PER 5 [time]",
        )
    return _Clause("per", None, "PER", span)


# ── Conjunctive queries ──────────────────────────────────────────────────────────────────────────


def _conjunctive(children: Children, _span: Span) -> c.ConjunctiveTree:
    (name, head), *rest = children
    atoms = tuple(child for child in rest if isinstance(child, c.Atom))
    clauses = _clauses(_spread(rest))
    if "per" in clauses:
        raise QueryError(
            "LIMIT of a conjunctive query counts at each end",
            span=clauses["places"]["PER"],
            found="PER",
            expected="LIMIT n, or LIMIT n PER END",
            hint="an interval is for the queries that begin with SELECT",
        )
    return c.ConjunctiveTree(name, head, atoms, **clauses)


def _head(children: Children, _span: Span) -> tuple[str, tuple[c.Variable, ...]]:
    name, *variables = children
    for variable in variables:
        if variable == "_":
            raise refused(
                variable,
                "_ stands for any value, so it cannot be in the head",
                "the variables of the body",
                "leave it out of the head",
            )
    return name_of(name), tuple(
        c.Variable(name_of(variable), span=span_of(variable)) for variable in variables
    )


def _atom(children: Children, span: Span) -> c.Atom:
    relation, *rest = children
    arguments = tuple(child for child in rest if isinstance(child, c.Argument))
    label = name_of(rest[-1]) if len(rest) > len(arguments) else None
    return c.Atom(relation, arguments, label, span=span)


def _variable(children: Children, span: Span) -> c.Term:
    return c.Anything(span=span) if children[0] == "_" else c.Variable(name_of(children[0]), span=span)


PRODUCTIONS: Final[Mapping[str, Production]] = {
    **conditions.PRODUCTIONS,
    **nodes_of(q),
    **patterns.PRODUCTIONS,
    "query": _query,
    "strategy_and_list": _strategy_and_list,
    "select_list": _select_list,
    "select_item": _select_item,
    "select_expression": _select_expression,
    "every_label": lambda _, span: q.EveryLabel(span=span),
    "from_clause": lambda names, span: _Clause("streams", tuple(map(name_of, names[1:])), "FROM", span),
    "where": _where,
    "whole_number": _whole_number,
    "open_window": lambda names, span: OpenWindow(name=names[0][1:], span=span),
    "within_clause": lambda children, span: _Clause("window", children[1], "WITHIN", span),
    "span_window": _span_window,
    "consume_clause": _consume,
    "order_clause": _order,
    "limit_clause": _limit,
    "per": _per,
}
"""The builders of the productions of ceql.lark and shared.lark."""

CONJUNCTIVE: Final[Mapping[str, Production]] = {
    **nodes_of(c),
    "conjunctive_query": _conjunctive,
    "head": _head,
    "atom": _atom,
    "variable": _variable,
    "constant": constant,
}
"""The builders of the further productions of conjunctive.lark."""
