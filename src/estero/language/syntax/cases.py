"""Words told apart from names by what is before: WHEN, THEN, ELSE and END in a CASE, and PER behind LIMIT."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lark import Token

_WORDS: Final = frozenset({"WHEN", "THEN", "ELSE", "END"})
_VALUES: Final = frozenset(
    {
        "NAME",
        "QUOTED",
        "INT",
        "FLOAT",
        "STRING",
        "TRUE",
        "FALSE",
        "NULL",
        "_RPAR",
        "_RSQUARE",
        "_RBRACE",
        "_END",
    }
)
"""The tokens that a value or a condition ends with. No name follows one of these."""


_OPERANDS: Final = frozenset({"NAME", "QUOTED", "_LPAR", "_CASE"})
"""The tokens behind DISTINCT."""


class CaseWords:
    """Between the lexer and the parser: a name that follows a value inside a CASE is a word of it.

    PER is one behind LIMIT and its number. So an attribute may be called `end` or `per` and a type `When`,
    without quotes.
    """

    always_accept: tuple[str, ...] = ()

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The same tokens, with the words of CASE, and PER, as such."""
        depth, before, limited = 0, "", False
        for token, after in _with_next(stream):
            word = token.upper()
            if token.type == "_CASE":
                depth += 1
            elif depth and token.type == "NAME" and word in _WORDS and before in (*_VALUES, "_CASE"):
                token = token.update(type=f"_{word}")  # noqa: PLW2901
                depth -= word == "END"
            elif (token.type, word, before) == ("NAME", "DISTINCT", "_LPAR") and after in _OPERANDS:
                token = token.update(type="_DISTINCT")  # noqa: PLW2901
            elif limited and token.type == "NAME" and word == "PER":
                token = token.update(type="PER")  # noqa: PLW2901
            limited = token.type == "LIMIT" or (limited and token.type in ("MINUS", "INT"))
            before = token.type
            yield token


def _with_next(stream: Iterator[Token]) -> Iterator[tuple[Token, str]]:
    """Each token with the type of the next one, the last with none."""
    before = next(stream, None)
    for token in stream:
        if before is not None:
            yield before, token.type
        before = token
    if before is not None:
        yield before, ""
