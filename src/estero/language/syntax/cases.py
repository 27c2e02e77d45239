"""Words that are keywords only in context: those of CASE, DISTINCT, PER and strategies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
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
        "PARAMETER",
        "TRUE",
        "FALSE",
        "NULL",
        "_RPAR",
        "_RSQUARE",
        "_RBRACE",
        "_END",
    }
)
"""The tokens that end a value or a condition, which no name follows."""


_OPERANDS: Final = frozenset({"NAME", "QUOTED", "_LPAR", "_CASE"})
"""The tokens after DISTINCT."""
_WORDS_BEHIND: Final = {
    "SELECT": frozenset({"ANY", "STRICT", "MAX", "NEXT", "LAST", "LONGEST", "SHORTEST"}),
    "STRATEGY": frozenset({"DISJOINT"}),
}
"""The words of strategies by the token that is before them."""


def strategy_words() -> frozenset[str]:
    """The words of strategies, in capitals."""
    return frozenset().union(*_WORDS_BEHIND.values())


_BEGINNINGS: Final = frozenset(
    {*_VALUES, "_LPAR", "MINUS", "NOT", "_CASE"} - {"_RPAR", "_RSQUARE", "_RBRACE", "_END"}
)
"""The tokens that a value begins with."""


class CaseWords:
    """The step between lexer and parser that turns names into keywords by their context.

    A name that follows a value inside a CASE is a word of it, and so is DISTINCT in ``count(DISTINCT x.a)``;
    the first name behind SELECT is a strategy unless it is a label or the beginning of an expression. So an
    attribute may be called `end`, `distinct`, `max` or `per` and a type `When`, without quotes. PER is one
    behind LIMIT and its number.
    """

    always_accept: tuple[str, ...] = ()

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The tokens, with keywords in context as such."""
        ahead: deque[Token] = deque()

        def following(place: int) -> str:
            while len(ahead) <= place:
                token = next(stream, None)
                if token is None:
                    return ""
                ahead.append(token)
            return ahead[place].type

        depth, before, limited = 0, "", False
        while (token := ahead.popleft() if ahead else next(stream, None)) is not None:
            word = token.upper()
            if token.type == "_CASE":
                depth += 1
            elif token.type != "NAME":
                pass
            elif depth and word in _WORDS and before in (*_VALUES, "_CASE"):
                token = token.update(type=f"_{word}")
                depth -= word == "END"
            elif (word, before) == ("DISTINCT", "_LPAR") and following(0) in _OPERANDS:
                token = token.update(type="_DISTINCT")
            elif before in _WORDS_BEHIND and _is_strategy(word, _WORDS_BEHIND[before], following):
                token = token.update(type="STRATEGY")
            elif limited and word == "PER":
                token = token.update(type="PER")
            limited = token.type == "LIMIT" or (limited and token.type in ("MINUS", "INT", "PARAMETER"))
            before = token.type
            yield token


def _is_strategy(word: str, words: frozenset[str], following: Callable[[int], str]) -> bool:
    """Whether a word in place of a strategy is one of `words` or meant as one, judged by what follows."""
    after = following(0)
    if after == "STAR":
        return following(1) not in _BEGINNINGS  # or else a product
    if word not in words:
        return after in ("NAME", "QUOTED")
    return after in _BEGINNINGS and not (word in ("MAX", "LAST") and after == "_LPAR")
