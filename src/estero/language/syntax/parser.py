"""The parser from text to syntax tree, by the grammars ceql.lark and conjunctive.lark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from estero.errors import QueryError, Span
from estero.language.syntax.productions import Production, node_of
from estero.language.syntax.queries import CONJUNCTIVE, PRODUCTIONS
from estero.language.syntax.shapes import Shapes
from estero.language.syntax.syntax_errors import syntax_error
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.language.tree.depth import depth_of
from estero.language.tree.expressions import Node
from estero.language.tree.pattern import Pattern
from estero.language.tree.query import QueryTree, SelectExpression

if TYPE_CHECKING:
    from lark import Lark, Token, Tree


def parse_query(text: str) -> QueryTree:
    """The syntax tree of a whole query, with spans into `text`.

    Raises `QueryError` with the place, what is there, what is expected, and a hint if one is known.

    >>> print(parse_query("select * where a as x; b+ within 2 hours"))
    SELECT * WHERE a AS x ; b+ WITHIN 2 HOURS
    """
    tree: QueryTree = _parse(text, "query")
    return replace(tree, text=text)


def parse_pattern(text: str) -> Pattern:
    """The syntax tree of a pattern; PARTITION BY is a part of it, as there is no query around.

    Raises `QueryError` as `parse_query` does.
    """
    return cast(Pattern, _parse(text, "pattern"))


def parse_condition(text: str) -> Node:
    """The syntax tree of a filter, or of a predicate over one event.

    Raises `QueryError` as `parse_query` does.

    >>> parse_condition("volume > 5 AND name = 'INTC'").parts[0]
    Comparison(operator='>', left=Attribute(name='volume', variable=None), right=Literal(value=5))
    """
    return cast(Node, node_of(_parse(text, "condition")))


def parse_conjunctive(text: str) -> ConjunctiveTree:
    """The syntax tree of a conjunctive query, with spans into `text`.

    Raises `QueryError` with the place, what is there, what is expected, and a hint.

    >>> print(parse_conjunctive("Q(x, y) <- T(x), S(x,y), R(k: x, l: y) as r within 10 events"))
    Q(x, y) <- T(x), S(x, y), R(k: x, l: y) AS r WITHIN 10 EVENTS
    """
    tree: ConjunctiveTree = _parse(text, "conjunctive_query")
    return replace(tree, text=text)


@cache
def parser(start: str = "query") -> Lark:
    """The parser of the grammar of `start`, made once for each grammar."""
    if start in ("pattern", "condition"):
        return parser()
    from estero.language.syntax.parser_tables import lark_of  # Lark is not loaded to import this

    return lark_of("ceql" if start == "query" else "conjunctive")


@cache
def shapes() -> Shapes:
    """The shapes of queries in CEQL."""
    return Shapes(parser(), "query", _PRODUCTIONS)


def parse_alone(text: str, start: str) -> Any:
    """The tree of a text, without its shape; raises `QueryError`, and `UnexpectedInput` of Lark as it is."""
    tree = parser(start).parse(text, start=start)
    return tree if isinstance(tree, str) else built_bottom_up(tree, _PRODUCTIONS)


def accepted_at_end(text: str) -> frozenset[str]:
    """The terminals that can follow the beginning of a query; none where it cannot be read up to there.

    >>> sorted(accepted_at_end("SELECT * WHERE a LIMIT 3"))
    ['$END', 'PER']
    """
    from lark.exceptions import UnexpectedInput

    reading = parser().parse_interactive(text, start="query")
    try:
        for token in reading.lexer_thread.lex(reading.parser_state):  # type: ignore[no-untyped-call]
            reading.feed_token(token)
    except UnexpectedInput:
        return frozenset()
    return frozenset(str(accept) for accept in reading.accepts())  # type: ignore[no-untyped-call]


def _parse(text: str, start: str) -> Any:
    from lark.exceptions import UnexpectedInput

    try:
        check_characters(text)
        shaped = shapes().shaped(text) if start == "query" else None
        built = parse_alone(text, start) if shaped is None else shaped.built()
        _check_depth(built)
    except UnexpectedInput as problem:
        raise syntax_error(problem, text, start, parser(start)) from None
    except QueryError as error:
        error.text = text
        raise
    return built


def check_characters(text: str) -> None:
    """Raises `QueryError` for half of a surrogate pair, which no engine, file or terminal takes."""
    half = _HALF_OF_A_PAIR.search(text)
    if half is not None:
        raise QueryError(
            f"{half[0]!r} is half of a surrogate pair, which is not a character",
            span=Span(*half.span()),
            found=repr(half[0]),
            expected="a character",
            hint="it comes from text that was cut or decoded wrongly; leave it out",
        )


_HALF_OF_A_PAIR: Final = re.compile("[\ud800-\udfff]")


def built_bottom_up(tree: Tree[Token], productions: Mapping[str, Production]) -> Any:
    """The syntax tree of a parse tree, built bottom-up without recursion, so that no chain is too long.

    Raises `QueryError`, without its text, for constructs that only the grammar allows.
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
        span = Span(node.meta.start_pos, node.meta.end_pos)
        results[id(node)] = productions[str(node.data)](children, span)
    return results[id(tree)]


_PRODUCTIONS: Final = {**PRODUCTIONS, **CONJUNCTIVE}


def _check_depth(built: object) -> None:
    """Refuses a tree too deep for recursive passes."""
    roots: list[object] = [built]
    if isinstance(built, QueryTree):
        computed = [item.expression for item in built.select or () if isinstance(item, SelectExpression)]
        roots = [built.pattern, *computed]
    for root in roots:
        if isinstance(root, Pattern | Node):
            depth_of(root)
