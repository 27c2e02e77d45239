"""Builders of the classes of the syntax tree from the productions of a grammar.

A production with the name of a class of nodes, such as `is_null` of `IsNull`, builds one: what is below it is
what the fields hold, in the order of the text. With `not_` before the name, it builds the negation. In the
grammar, signs and keywords that say no more than the name are in double quotes, so that Lark leaves them out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args, get_origin, get_type_hints

from estero.errors import QueryError, Span
from estero.language.tree import expressions as e
from estero.language.tree.literals import TIMESTAMP_FORM, integer_value, string_value, timestamp_value
from estero.language.tree.nodes import OpenText, SyntaxNode, names_in_text
from estero.language.tree.paths import is_path
from estero.language.tree.words import unquoted

if TYPE_CHECKING:
    from lark import Token

Children: TypeAlias = list[Any]
"""The nodes below a production, and the tokens that distinguish its forms."""

Production: TypeAlias = Callable[[Children, Span], Any]
"""A function that builds the node of a production from its children and its span."""


def span_of(token: Token) -> Span:
    """The span of a token."""
    return Span(cast(int, token.start_pos), cast(int, token.end_pos))


def name_of(token: Token) -> str:
    """The name in a NAME or QUOTED token; raises `QueryError` for one that no column can have."""
    name = unquoted(str(token))
    if is_path(name):
        raise refused(token, "a name cannot contain a NUL character", "a name", "leave the character out")
    return name


def refused(token: Token, message: str, expected: str, hint: str) -> QueryError:
    """The error for a word that the grammar allows in its place but the language does not."""
    return QueryError(message, span=span_of(token), found=str(token), expected=expected, hint=hint)


def nodes_of(module: ModuleType) -> dict[str, Production]:
    """The productions for the node classes of a module, and those of their negations."""
    defined = [var for var in vars(module).values() if getattr(var, "__module__", "") == module.__name__]
    kinds = [member for member in defined if isinstance(member, type) and issubclass(member, SyntaxNode)]
    named = {_production_of(kind): made(kind) for kind in kinds if names_in_text(kind)}
    return named | {f"not_{name}": _negated(build) for name, build in named.items()}


def _production_of(kind: type[SyntaxNode]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def made(kind: type[SyntaxNode]) -> Production:
    """The builder of a node from the values of its fields, in the order of the text.

    A last field that is a tuple takes all the rest. Fields that may be None are left out where there is just
    enough for the others.
    """
    names, hints = names_in_text(kind), get_type_hints(kind)
    rest = names[-1] if get_origin(hints[names[-1]]) is tuple else None
    single = tuple(name for name in names if name != rest)
    needed = tuple(name for name in single if type(None) not in get_args(hints[name]))
    readers = {name: _reader(hints[name]) for name in names}

    def build(children: Children, span: Span) -> SyntaxNode:
        filled = needed if len(children) == len(needed) else single
        values = {name: readers[name](child) for name, child in zip(filled, children, strict=False)}
        if rest is not None:
            values[rest] = tuple(map(readers[rest], children[len(single) :]))
        return kind(**values, span=span)

    return build


def _negated(build: Production) -> Production:
    return lambda children, span: e.Not(build(children, span), span=span)


def _reader(hint: Any) -> Callable[[Any], Any]:
    """The reader of a field's value by its type: a token is a sign, a name, a string or a constant."""
    if get_origin(hint) is tuple:
        hint = get_args(hint)[0]
    if get_origin(hint) is Literal:
        return lambda sign: _SAME.get(sign, str(sign))
    if hint is str or str in get_args(hint):
        return text_of
    return node_of


def text_of(token: Token) -> str:
    """The text in a token: that of a string, of a name, or an open parameter."""
    if token.type == "PARAMETER":
        return OpenText.of(token[1:], span_of(token))
    return string_value(token) if token.type == "STRING" else name_of(token)


_SAME: Final[Mapping[str, str]] = {"<>": "!="}
"""Operators with two spellings."""


def node_of(child: Any) -> Any:
    """A node, from one or from the token of a constant.

    Constants stay tokens until a parent asks, so that ``-5`` is one literal and ``-(5)`` is not.
    """
    return constant([child], span_of(cast("Token", child))) if isinstance(child, str) else child


def constant(children: Children, span: Span) -> e.Literal:
    """A literal from its token and a prefix, a minus or TIMESTAMP."""
    *before, token = children
    if before and before[0].type == "NAME":
        return typed_literal(children, span)
    match token.type:
        case "INT":
            return e.Literal(integer_value("".join(children), span), span=span)
        case "FLOAT":
            return e.Literal(float("".join(children)), span=span)
        case "STRING":
            return e.Literal(string_value(token), span=span)
        case "NULL":
            return e.Literal(None, span=span)
        case "PARAMETER":
            return e.Parameter(None, token[1:], span=span)
        case _:
            return e.Literal(token.type == "TRUE", span=span)


def typed_literal(children: Children, span: Span) -> e.Literal:
    """A literal of a word and a string: ``TIMESTAMP '2024-01-31'``."""
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
