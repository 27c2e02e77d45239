"""The text of a query in lines, and with its words, labels, texts and numbers marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from estero.language.syntax.vocabulary import vocabulary
from estero.language.tree.words import unquoted
from estero.markup.colours import colour_class
from estero.markup.html import Html, cut_off, element, text

LONGEST_LINE: Final = 90
"""A longer clause is broken at the operators that hold it together."""
MOST_LETTERS: Final = 20_000
"""The most characters of a query that are shown."""
_TOKEN: Final = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<comment>--[^\n]*)"
    r"|(?P<string>'(?:[^']|'')*'?)"
    r'|(?P<quoted>"(?:[^"]|"")*"?|`(?:[^`]|``)*`?)'
    r"|(?P<parameter>\$\w+)"
    r"|(?P<digits>\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<sign><-|->|.)",
    re.DOTALL,
)
_CLAUSES: Final = ("FROM", "WHERE", "FILTER", "PARTITION", "WITHIN", "CONSUME", "LIMIT", "KEEP")
"""The words that begin a line, outside of brackets."""
_INDENT: Final = "  "
_SQL: Final = frozenset(
    {
        *("CASE", "WHEN", "THEN", "ELSE", "END", "ON", "JOIN", "LEFT", "ORDER", "GROUP", "HAVING"),
        *("WITH", "UNION", "OVER", "USING", "ASC", "DESC", "CAST"),
    }
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    depth: int = 0
    """How many brackets are open around it."""
    bracket: str = ""
    """The innermost of these."""

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind == "word" else self.text


def _tokens(query: str) -> list[_Token]:
    tokens: list[_Token] = []
    brackets = [""]
    for match in _TOKEN.finditer(query):
        kind = match.lastgroup or "sign"
        if kind == "sign" and match[0] in ")]}" and len(brackets) > 1:
            brackets.pop()
        tokens.append(_Token(kind, match[0], len(brackets) - 1, brackets[-1]))
        if kind == "sign" and match[0] in "([{":
            brackets.append(match[0])
    return tokens


def in_lines(query: str) -> str:
    """The query with each clause on a line of its own, and long ones broken; it reads as the same query.

    A text of several lines stays as it is.

    >>> print(in_lines("SELECT * WHERE a ; b FILTER a[n BETWEEN 1 AND 2] WITHIN 5 EVENTS"))
    SELECT *
    WHERE a ; b
    FILTER a[n BETWEEN 1 AND 2]
    WITHIN 5 EVENTS
    """
    if "\n" in query:
        return query
    lines: list[list[_Token]] = [[]]
    for token in _tokens(query):
        if token.depth == 0 and token.kind == "word" and token.upper in _CLAUSES and lines[-1]:
            lines.append([])
        lines[-1].append(token)
    return "\n".join(piece for line in lines for piece in _broken(line))


def _broken(line: Sequence[_Token]) -> Iterator[str]:
    """The clause, in several lines if it is long: each begins with the operator that leads to it."""
    whole = "".join(token.text for token in line).strip()
    if len(whole) <= LONGEST_LINE:
        yield whole
        return
    piece, between = "", False
    for token in line:
        joins = token.depth == 0 and token.upper in ("AND", "OR", ";", ":", "ALL", "UNLESS")
        if joins and not (between and token.upper == "AND"):
            if piece.strip():
                yield piece.rstrip()
            piece = _INDENT
        if token.depth == 0:
            between = token.upper == "BETWEEN" or (between and not joins)
        piece += token.text
    yield piece.rstrip()


def highlighted(query: str, labels: Mapping[str, int | None] | None = None, *, sql: bool = False) -> Html:
    """The text with its keywords, functions, texts and numbers marked, and `labels` in their colours.

    `sql` takes the words of SQL for keywords, too.
    """
    cut = query if len(query) <= MOST_LETTERS else query[:MOST_LETTERS]
    tokens = [token for token in _tokens(cut) if token.kind != "space"]
    kinds = iter(_kinds(tokens, labels or {}, sql=sql))
    pieces = []
    for token in _tokens(cut):
        kind = "" if token.kind == "space" else next(kinds)
        plain = text(token.text, most=MOST_LETTERS, lines=True)
        pieces.append(element("span", plain, class_=kind) if kind else plain)
    if cut is not query:
        pieces.append(cut_off(len(query)))
    return Html("".join(pieces))


def code(query: str) -> Html:
    """A part of a query among other text."""
    return element("code", highlighted(query))


@cache
def _words() -> dict[str, str]:
    kinds = {"function": "function", "unit": "unit", "constant": "digits", "modifier": "keyword"}
    kinds["keyword"] = "keyword"
    return {word.upper(): style for kind, style in kinds.items() for word in vocabulary()[kind]}


def _kinds(tokens: Sequence[_Token], labels: Mapping[str, int | None], *, sql: bool) -> Iterator[str]:
    """The class of each token; the empty string for what has none.

    Names in square brackets are attributes, but behind KEEP, in [old -> new], and in front of a dot.
    """
    before, behind_keep = _Token("sign", ""), False
    for place, token in enumerate(tokens):
        following = tokens[place + 1].text if place + 1 < len(tokens) else ""
        behind_keep = token.upper == "KEEP" or (behind_keep and before.text != "]")
        is_label = token.bracket != "[" or behind_keep or "->" in (before.text, following) or following == "."
        yield _kind(token, before, following, labels if is_label else {}, sql=sql)
        before = token


def _kind(
    token: _Token, before: _Token, following: str, labels: Mapping[str, int | None], *, sql: bool
) -> str:
    match token.kind:
        case "string" | "parameter" | "digits" | "comment":
            return token.kind
        case "word" | "quoted" if before.text != ".":
            name = token.text if token.kind == "word" else unquoted(token.text)
            if name in labels:
                return colour_class(labels[name])
            kind = _words().get(token.upper, "") if token.kind == "word" else ""
            if kind == "unit":
                return "keyword" if before.kind in ("digits", "word", "parameter") else ""
            if kind == "function":
                return kind if following == "(" else ""
            return kind or ("keyword" if sql and token.upper in _SQL else "")
        case _:
            return ""
