"""The text of a PATTERN → its tree."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from estero.errors import QueryError, Span
from estero.language.row_patterns.tree import (
    Anchor,
    Choice,
    Excluded,
    Nothing,
    Permutation,
    Repetition,
    RowPattern,
    Sequence,
    Variable,
)
from estero.language.syntax.parser_tables import lark_of

MOST_TIMES: Final = 2**31 - 1
_BOUNDS: Final = re.compile(r"\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}")
_SIGNS: Final = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_EXPECTED: Final = "variables, groups, alternatives and quantifiers, as in (A B+ (C | D)*)"


@cache
def _lark() -> Lark:
    return lark_of("row_pattern")


def parse_row_pattern(text: str, start: int, end: int) -> RowPattern:
    """The tree of the pattern whose parentheses are at `start` and before `end`; raises `QueryError`."""
    try:
        tree = _lark().parse(text[start:end], start="row_pattern")
    except UnexpectedInput as error:
        raise _unexpected(error, text, start, end) from None
    return _Builder(text, start).built(tree)


def _unexpected(error: UnexpectedInput, text: str, start: int, end: int) -> QueryError:
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        place, piece = start + (error.token.start_pos or 0), str(error.token)
    elif isinstance(error, UnexpectedCharacters):
        place = start + (error.pos_in_stream or 0)
        piece = text[place]
    else:
        place, piece = max(start, end - 1), ""
    return QueryError(
        f"{piece!r} cannot stand here in PATTERN" if piece else "PATTERN ends too early",
        text=text,
        span=Span(place, place + max(1, len(piece))),
        found=piece,
        expected=_EXPECTED,
        hint=_hint(piece, text[place:end]),
    )


def _hint(piece: str, behind: str) -> str:
    if piece == "{" and not behind.startswith("{-"):
        return "bounds are written {n}, {n,}, {,m} or {n,m}, with whole numbers"
    if piece in ("*", "+", "?") or (piece and piece[0] in "*+?{"):
        return "a quantifier comes after a variable or a group, and only once; write (A+)* for two"
    if piece == ",":
        return "commas are for PERMUTE(A, B); what follows one another is written A B"
    if piece == "|":
        return "an alternative that is empty is written ()"
    return ""


class _Builder:
    """Nodes from Lark's, with their places in the text of the statement."""

    def __init__(self, text: str, start: int) -> None:
        self._text, self._start = text, start

    def built(self, node: Any) -> RowPattern:
        """The node of a tree of Lark."""
        return getattr(self, f"_{node.data}")(node.children, node)  # type: ignore[no-any-return]

    def _row_pattern(self, children: list[Any], _node: Tree[Any]) -> RowPattern:
        return self.built(children[0]) if children else Nothing()

    def _alternatives(self, children: list[Any], _node: Tree[Any]) -> RowPattern:
        return Choice(tuple(map(self.built, children)))

    def _sequence(self, children: list[Any], _node: Tree[Any]) -> RowPattern:
        parts = tuple(map(self.built, children))
        return parts[0] if len(parts) == 1 else Sequence(parts)

    def _factor(self, children: list[Any], _node: Tree[Any]) -> RowPattern:
        part = self.built(children[0])
        return part if len(children) == 1 else self._repeated(part, children[1])

    def _variable(self, children: list[Token], _node: Tree[Any]) -> RowPattern:
        (name,) = children
        text = str(name)
        if name.type == "QUOTED":
            text = text[1:-1].replace(text[0] * 2, text[0])
        return Variable(text, self._span(name))

    def _anchor(self, children: list[Token], _node: Tree[Any]) -> RowPattern:
        return Anchor("start" if children[0] == "^" else "end")

    def _nothing(self, _children: list[Any], _node: Tree[Any]) -> RowPattern:
        return Nothing()

    def _group(self, children: list[Any], _node: Tree[Any]) -> RowPattern:
        return self.built(children[0])

    def _excluded(self, children: list[Any], _node: Tree[Any]) -> RowPattern:
        return Excluded(self.built(children[0]))

    def _permutation(self, children: list[Any], _node: Tree[Any]) -> RowPattern:
        parts = tuple(map(self.built, children[1:]))
        return parts[0] if len(parts) == 1 else Permutation(parts)

    def _repeated(self, part: RowPattern, sign: Token) -> RowPattern:
        text = str(sign)
        greedy = text in _SIGNS or not text.rstrip().endswith("?")
        if text[0] in _SIGNS:
            least, most = _SIGNS[text[0]]
            return Repetition(part, least, most, greedy)
        low, comma, high = _BOUNDS.match(text).groups()  # type: ignore[union-attr]
        if not (low or comma):
            raise self._wrong(sign, "a quantifier without a number", "write {n}, {n,}, {,m} or {n,m}")
        least = int(low or 0)
        most_or_none = int(high) if high else None if comma else least
        if most_or_none == 0:
            raise self._wrong(
                sign, "a quantifier whose upper bound is 0 matches nothing", "leave the part out"
            )
        if max(least, most_or_none or 0) > MOST_TIMES:
            raise self._wrong(sign, f"bounds go up to {MOST_TIMES:,}", "leave the upper bound out: {n,}")
        if most_or_none is not None and least > most_or_none:
            raise self._wrong(
                sign,
                f"the lower bound {least} is larger than the upper bound {most_or_none}",
                f"write {{{most_or_none},{least}}}",
            )
        return Repetition(part, least, most_or_none, greedy)

    def _wrong(self, token: Token, message: str, hint: str) -> QueryError:
        return QueryError(message, text=self._text, span=self._span(token), found=str(token), hint=hint)

    def _span(self, token: Token) -> Span:
        return Span(self._start + (token.start_pos or 0), self._start + (token.end_pos or 0))
