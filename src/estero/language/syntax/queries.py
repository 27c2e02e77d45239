"""The productions of queries: Lark's parse tree → a query with its clauses, in either language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from estero.errors import QueryError, Span
from estero.language.syntax import conditions, patterns
from estero.language.syntax.patterns import Tail, with_tails
from estero.language.syntax.productions import (
    Children,
    Production,
    constant,
    name_of,
    nodes_of,
    refused,
    span_of,
)
from estero.language.syntax.units import unit_named
from estero.language.tree import conjunctive as c
from estero.language.tree import distances as d
from estero.language.tree import query as q
from estero.language.tree.literals import integer_value
from estero.language.tree.names import suggestion

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause of a query: the field of the tree that it gives, its value, its name and its place."""

    field: str
    value: Any
    name: str
    span: Span


def _clauses(children: Children) -> dict[str, Any]:
    """The fields of a tree that its clauses give."""
    found = [child for child in children if isinstance(child, _Clause)]
    return {**{each.field: each.value for each in found}, "places": {each.name: each.span for each in found}}


# ── CEQL ─────────────────────────────────────────────────────────────────────────────────────────


def _query(children: Children, _span: Span) -> q.QueryTree:
    where = [clause for child in children if isinstance(child, tuple) for clause in child]
    return q.QueryTree(**_clauses([*children, *where]))


def _strategy(children: Children, span: Span) -> _Clause:
    word = children[0].upper()
    word = "ALL" if word == "ANY" else word
    if word not in q.Strategy.__members__:
        raise refused(
            children[0],
            f"{children[0]} is not a strategy",
            "ALL, ANY, STRICT, MAX, NEXT or LAST",
            _INSTEAD.get(word)
            or suggestion(word, [*q.Strategy.__members__, "ANY"])
            or "labels are separated by commas",
        )
    return _Clause("strategy", q.Strategy[word], "STRATEGY", span)


_INSTEAD: Final = {
    "DISTINCT": "leave it out: an answer has no complex event twice",
    "FIRST": "of complex events with the same end, NEXT keeps the one with the earliest events",
    "TOP": "LIMIT 5 after the pattern keeps 5 at each end",
}
"""What is written for words of other languages."""


def _select_list(children: Children, span: Span) -> _Clause:
    first, *others = children
    if isinstance(first, str):
        return _Clause("select", None, "LIST", span)
    # NONE in double quotes is a label.
    none = not others and first.attributes is None and first.span.end - first.span.start == len("NONE")
    return _Clause("select", () if none and first.label.upper() == "NONE" else tuple(children), "LIST", span)


def _select_item(children: Children, span: Span) -> q.SelectItem:
    label, *attributes = map(name_of, children)
    return q.SelectItem(label, tuple(attributes) or None, span=span)


def _where(children: Children, span: Span) -> tuple[_Clause, ...]:
    """WHERE, and PARTITION BY where its last tail is the query's clause."""
    pattern = children[0]
    tails: list[Tail] = children[1:]
    partition: tuple[_Clause, ...] = ()
    if tails and (keys := tails[-1].plain_keys):
        brackets = (q.KeyBracket(tuple(key.attribute for key in each.keys), span=each.span) for each in keys)
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


def _span_window(children: Children, span: Span) -> d.Window:
    amounts, units = children[::2], children[1::2]
    if len(units) == 1 and units[0].upper() in ("EVENTS", "EVENT"):
        return d.EventWindow(amounts[0], span=span)
    parts = zip(amounts, (unit_named(each, ("EVENTS",)) for each in units), strict=True)
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


# ── Conjunctive queries ──────────────────────────────────────────────────────────────────────────


def _conjunctive(children: Children, _span: Span) -> c.ConjunctiveTree:
    (name, head), *rest = children
    atoms = tuple(child for child in rest if isinstance(child, c.Atom))
    return c.ConjunctiveTree(name, head, atoms, **_clauses(rest))


def _head(children: Children, _span: Span) -> tuple[str, tuple[c.Variable, ...]]:
    name, *variables = children
    for each in variables:
        if each == "_":
            raise refused(
                each,
                "_ stands for any value, so it cannot be in the head",
                "the variables of the body",
                "leave it out of the head",
            )
    return name_of(name), tuple(c.Variable(name_of(each), span=span_of(each)) for each in variables)


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
    "strategy": _strategy,
    "select_list": _select_list,
    "select_item": _select_item,
    "from_clause": lambda names, span: _Clause("streams", tuple(map(name_of, names[1:])), "FROM", span),
    "where": _where,
    "whole_number": lambda signs, span: integer_value("".join(signs), span),
    "within_clause": lambda children, span: _Clause("window", children[1], "WITHIN", span),
    "span_window": _span_window,
    "consume_clause": _consume,
    "limit_clause": lambda children, span: _Clause("limit", children[1], "LIMIT", span),
}
"""What each production of ceql.lark and shared.lark that builds something builds."""

CONJUNCTIVE: Final[Mapping[str, Production]] = {
    **nodes_of(c),
    "conjunctive_query": _conjunctive,
    "head": _head,
    "atom": _atom,
    "variable": _variable,
    "constant": constant,
}
"""What the further productions of conjunctive.lark build."""
