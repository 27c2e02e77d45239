"""Text → syntax tree: queries, patterns and conditions, by the one grammar in ceql.lark."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, cast

from estero.errors import QueryError, Span
from estero.language.tree.expressions import Node
from estero.language.tree.pattern import Pattern
from estero.language.tree.query import QueryTree

if TYPE_CHECKING:
    from lark import Lark

MAXIMUM_DEPTH: Final = 100
"""How deep a tree may be. Chains of one operator are one level, so this counts nested parentheses."""


def parse_query(text: str) -> QueryTree:
    """The syntax tree of a whole query, with spans into `text`.

    Raises `QueryError` with place, what was found and expected, and a hint where one is known.

    >>> print(parse_query("select * where a as x; b+ within 2 hours"))
    SELECT * WHERE a AS x ; b+ WITHIN 2 HOURS
    """
    tree: QueryTree = _parse(text, "query")
    return replace(tree, text=text)


def parse_pattern(text: str) -> Pattern:
    """The syntax tree of a pattern. PARTITION BY is a part of it, as there is no query around.

    Raises `QueryError` as `parse_query` does.
    """
    return cast(Pattern, _parse(text, "pattern"))


def parse_condition(text: str) -> Node:
    """The syntax tree of a filter, or of a predicate over one event.

    Raises `QueryError` as `parse_query` does.

    >>> parse_condition("volume > 5 AND name = 'INTC'").parts[0]
    Comparison(operator='>', left=Attribute(name='volume', variable=None), right=Literal(value=5))
    """
    from estero.language.syntax.assemble_condition import node_of

    return node_of(_parse(text, "condition"))


@cache
def parser() -> Lark:
    """The parser of ceql.lark, made once; takes 0.1 s."""
    from lark import Lark

    grammar = resources.files(__package__).joinpath("ceql.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        start=["query", "pattern", "condition"],
        propagate_positions=True,
    )


def _parse(text: str, start: str) -> Any:
    from lark.exceptions import UnexpectedInput

    from estero.language.syntax.assemble import assemble
    from estero.language.syntax.syntax_errors import syntax_error

    try:
        check_characters(text)
        tree = parser().parse(text, start=start)
        found = tree if isinstance(tree, str) else assemble(tree)
        _check_depth(found)
    except UnexpectedInput as problem:
        raise syntax_error(problem, text, start) from None
    except QueryError as error:
        error.text = text
        raise
    return found


def check_characters(text: str) -> None:
    """Raises `QueryError` for half of a surrogate pair: no engine, file or terminal takes such a text."""
    for place, character in enumerate(text):
        if "\ud800" <= character <= "\udfff":
            raise QueryError(
                f"{character!r} is half of a surrogate pair, which is no character",
                span=Span(place, place + 1),
                found=repr(character),
                expected="a character",
                hint="it comes from text that was cut or decoded wrongly; leave it out",
            )


def _check_depth(found: QueryTree | Pattern | Node | str) -> None:
    """Refuse what a recursive pass could not walk."""
    if isinstance(found, str):
        return
    root = found.pattern if isinstance(found, QueryTree) else found
    level: list[Any] = [root]
    for _ in range(MAXIMUM_DEPTH):
        level = [child for node in level for child in _children(node)]
        if not level:
            return
    raise QueryError(
        f"this is nested more than {MAXIMUM_DEPTH} levels deep",
        span=level[0].span,
        found="a deeper level",
        expected=f"at most {MAXIMUM_DEPTH} levels of operators",
        hint="chains of ; : OR AND ALL count as one level; a sum of many terms does not",
    )


def _children(node: Any) -> list[Any]:
    from estero.language.tree.pattern import Filter

    below = list(node.children())
    return [*below, node.condition] if isinstance(node, Filter) else below
