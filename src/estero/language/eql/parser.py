"""The parser of EQL: from a text to a syntax tree, by the grammar eql.lark."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from estero.errors import QueryError
from estero.language.eql.productions import PRODUCTIONS
from estero.language.eql.syntax_errors import syntax_error
from estero.language.eql.tree import EqlNode, EqlTree, EventQuery, Item
from estero.language.syntax.parser import built_bottom_up, check_characters
from estero.language.tree.depth import MAXIMUM_DEPTH

if TYPE_CHECKING:
    from lark import Lark


def parse_eql(text: str) -> EqlTree:
    """The syntax tree of a query in EQL, with spans into `text`.

    Raises `QueryError` with the place, the text found there, the expected text, and a hint if one is known.

    >>> print(parse_eql('process where process.name : ("a*", "b") and not pid == 4 | head 3'))
    process where process.name : ("a*", "b") and not pid == 4 | head 3
    """
    from lark.exceptions import UnexpectedInput

    try:
        check_characters(text)
        tree: EqlTree = built_bottom_up(_parser().parse(text), PRODUCTIONS)
        for part in _parts(tree):
            _check_depth(part.condition)
    except UnexpectedInput as problem:
        raise syntax_error(problem, text, _parser()) from None
    except QueryError as error:
        error.text = text
        raise
    return replace(tree, text=text)


@cache
def _parser() -> Lark:
    from estero.language.syntax.parser_tables import lark_of  # importing this module does not load Lark

    return lark_of("eql")


def _parts(tree: EqlTree) -> list[EventQuery | Item]:
    query = tree.query
    if isinstance(query, EventQuery):
        return [query]
    until = getattr(query, "until", None)
    return [*query.items, *([until] if until else [])]


def _check_depth(condition: EqlNode) -> None:
    """Raises `QueryError` for a tree that is too deep for recursive passes."""
    level = [condition]
    for _ in range(MAXIMUM_DEPTH // 2):
        if not level:
            return
        above, level = level, [child for node in level for child in node.children()]
    if level:
        raise QueryError(
            f"this is nested more than {MAXIMUM_DEPTH // 2} levels deep",
            span=above[0].span,
            found="a deeper level",
            expected=f"at most {MAXIMUM_DEPTH // 2} levels of operators",
            hint="chains of and, of or count as one level; a sum of many terms does not",
        )
