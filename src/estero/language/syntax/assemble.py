"""Lark's parse tree → the syntax tree of a query, a pattern or a condition, spans included.

One function for each production that builds something, called bottom-up without recursion, so no
chain is too long; those of patterns and of conditions are in modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from estero.errors import QueryError, Span
from estero.language.syntax import assemble_condition, assemble_pattern
from estero.language.syntax.assemble_condition import name_of, span_of
from estero.language.syntax.assemble_pattern import PartitionTail, Tail, with_tails
from estero.language.syntax.mistakes_in_clauses import unit_of
from estero.language.tree import query as q
from estero.language.tree.literals import integer_value
from estero.language.tree.names import listed, suggestion
from estero.language.tree.words import UNITS

if TYPE_CHECKING:
    from lark import Token, Tree

Children = list[Any]


def assemble(tree: Tree[Token]) -> Any:
    """What a whole parse tree means: a node of the syntax tree.

    Raises `QueryError`, without its text, for what the grammar allows and the language does not.
    """
    results: dict[int, Any] = {}
    stack: list[tuple[Tree[Token], bool]] = [(tree, False)]
    while stack:
        node, ready = stack.pop()
        subtrees = [child for child in node.children if not isinstance(child, str)]
        if subtrees and not ready:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(subtrees))
            continue
        children = [child if isinstance(child, str) else results.pop(id(child)) for child in node.children]
        results[id(node)] = PRODUCTIONS[str(node.data)](
            children, Span(node.meta.start_pos, node.meta.end_pos)
        )
    return results[id(tree)]


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause of a query: which, its value, its place."""

    name: str
    value: Any
    span: Span


def _query(children: Children, _span: Span) -> q.QueryTree:
    clauses = {child.name: child for child in children if isinstance(child, _Clause)}
    pattern, partition = clauses["WHERE"].value
    if partition is not None:
        clauses["PARTITION BY"] = partition

    def value(name: str, default: Any) -> Any:
        return clauses[name].value if name in clauses else default

    return q.QueryTree(
        pattern=pattern,
        select=value("LIST", None),
        strategy=value("STRATEGY", q.Strategy.ALL),
        streams=value("FROM", ()),
        partition_by=value("PARTITION BY", ()),
        window=value("WITHIN", None),
        consume=value("CONSUME BY", q.Consume.NONE),
        limit=value("LIMIT", None),
        places={name: clause.span for name, clause in clauses.items()},
    )


def _strategy(children: Children, span: Span) -> _Clause:
    word = str(children[0]).upper()
    word = "ALL" if word == "ANY" else word
    if word not in q.Strategy.__members__:
        raise QueryError(
            f"{children[0]} is not a strategy",
            span=span,
            found=str(children[0]),
            expected="ALL, ANY, STRICT, MAX, NEXT or LAST",
            hint=_INSTEAD.get(word)
            or suggestion(word, [*q.Strategy.__members__, "ANY"])
            or "labels are separated by commas",
        )
    return _Clause("STRATEGY", q.Strategy[word], span)


_INSTEAD: Final = {
    "DISTINCT": "leave it out: an answer has no complex event twice",
    "FIRST": "NEXT keeps, of those with one end, that with the earliest events",
    "TOP": "LIMIT 5 behind the pattern keeps 5 for each end",
}
"""What is written for words of other languages."""


def _select_list(children: Children, span: Span) -> _Clause:
    if isinstance(children[0], str):
        return _Clause("LIST", None, span)
    if len(children) == 1 and children[0][1]:
        return _Clause("LIST", (), span)
    return _Clause("LIST", tuple(item for item, _ in children), span)


def _select_item(children: Children, span: Span) -> tuple[q.SelectItem, bool]:
    label, *attributes = children
    says_none = not attributes and label.type == "NAME" and label.upper() == "NONE"
    return q.SelectItem(name_of(label), tuple(map(name_of, attributes)) or None, span=span), says_none


def _from(children: Children, span: Span) -> _Clause:
    return _Clause("FROM", tuple(map(name_of, children[1:])), span)


def _where(children: Children, span: Span) -> _Clause:
    pattern = children[0]
    tails: list[Tail] = children[1:]
    partition = None
    if tails and isinstance(tails[-1], PartitionTail) and tails[-1].plain:
        last = tails[-1]
        keys = (tuple(key.attribute for key in keys) for keys in last.brackets)
        brackets = tuple(
            q.KeyBracket(names, span=place) for names, place in zip(keys, last.places, strict=True)
        )
        partition = _Clause("PARTITION BY", brackets, last.span)
        tails = tails[:-1]
    for tail in tails:
        if isinstance(tail, PartitionTail) and tail.plain:
            raise QueryError(
                "PARTITION BY on attributes comes after the pattern and its filters",
                span=tail.span,
                found="PARTITION BY",
                expected="FILTER and KEEP before PARTITION BY",
                hint="move it behind the last FILTER, or put what it covers of the pattern in parentheses",
            )
    return _Clause("WHERE", (with_tails(pattern, tails), partition), span)


def _whole_number(children: Children, span: Span) -> int:
    return integer_value("".join(children), span)


def _within(children: Children, span: Span) -> _Clause:
    return _Clause("WITHIN", children[1], span)


def _span_window(children: Children, span: Span) -> q.Window:
    amounts, units = children[::2], children[1::2]
    if len(units) == 1 and units[0].upper() in ("EVENTS", "EVENT"):
        return q.EventWindow(amounts[0], span=span)
    return q.DurationWindow(tuple(zip(amounts, map(_unit, units), strict=True)), span=span)


def _unit(word: Token) -> q.TimeUnit:
    unit = UNITS.get(word.upper())
    if unit is None:
        raise QueryError(
            f"there is no unit {word}",
            span=span_of(word),
            found=str(word),
            expected=listed(["EVENTS", *q.TimeUnit.__members__]),
            hint=_unit_instead(word),
        )
    return unit


def _unit_instead(word: Token) -> str:
    if word.lower().removesuffix("s") in ("month", "year", "quarter"):
        return "months and years differ in length: write so many DAYS"
    known = unit_of(word)
    near = suggestion(word.upper(), [*q.TimeUnit.__members__, "EVENTS"])
    return (
        f"write {known}" if known else near or "ticks of an integer time column are written WITHIN 5 [time]"
    )


def _attribute_window(children: Children, span: Span) -> q.Window:
    return q.AttributeWindow(children[0], name_of(children[1]), span=span)


def _consume(children: Children, span: Span) -> _Clause:
    word = children[2]
    policy = q.Consume.__members__.get(word.upper())
    if policy is None:
        raise QueryError(
            f"{word} is not a consumption policy",
            span=span_of(word),
            found=str(word),
            expected="ANY, PARTITION or NONE",
            hint=suggestion(word.upper(), q.Consume.__members__)
            or "ANY forgets all that was read, PARTITION what its partition read, NONE nothing",
        )
    return _Clause("CONSUME BY", policy, span)


def _limit(children: Children, span: Span) -> _Clause:
    return _Clause("LIMIT", children[1], span)


PRODUCTIONS: Final[dict[str, Callable[[Children, Span], Any]]] = {
    **assemble_condition.PRODUCTIONS,
    **assemble_pattern.PRODUCTIONS,
    "query": _query,
    "strategy": _strategy,
    "select_list": _select_list,
    "select_item": _select_item,
    "from_clause": _from,
    "where": _where,
    "whole_number": _whole_number,
    "within_clause": _within,
    "span_window": _span_window,
    "attribute_window": _attribute_window,
    "consume_clause": _consume,
    "limit_clause": _limit,
}
"""What each production of ceql.lark that builds something builds, from its children and its span."""
