"""The clauses of a text that need not be a query yet: their starts, and the clause of a position."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from estero.errors import Span

PIECES: Final = re.compile(
    r"""'(?:[^']|'')*'|"[^"]*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<word>\w+)""",
    re.DOTALL,
)
"""Strings, quoted names and comments, each whole; brackets; words."""
ORDER: Final = (
    "SELECT",
    "FROM",
    "WHERE",
    "FILTER",
    "KEEP",
    "PARTITION",
    "WITHIN",
    "CONSUME",
    "ORDER",
    "LIMIT",
)
"""The first words of the clauses, in the order in which they come."""
_TAILS: Final = frozenset({"FILTER", "KEEP", "PARTITION"})
"""Clauses of a pattern, which may be in parentheses; the others never are, so they end open brackets."""
_OPERATOR: Final = re.compile(r"\s*(?:[=<>!~+*/%.\])]|-[^-]|(?:IN|IS|I?LIKE|BETWEEN|NOT)\b)", re.IGNORECASE)
_BY: Final = re.compile(r"\s+BY\b", re.IGNORECASE)
_VALUE_FOLLOWS: Final = re.compile(r"(?:[\[(,=<>+-]|\b(?:AND|OR|NOT))$", re.IGNORECASE)


def clauses_of(text: str) -> list[tuple[str, Span]]:
    """The first words of the clauses in capitals, with their spans up to the next clause.

    >>> [word for word, _ in clauses_of("select * where (a filter a[limit = 1]) within 5 events")]
    ['SELECT', 'WHERE', 'WITHIN']
    """
    starts: list[tuple[str, int]] = []
    depth = 0
    for word, piece in _words(text):
        depth = max(0, depth + (piece["open"] is not None) - (piece["close"] is not None))
        if word in ORDER and (word not in _TAILS or depth == 0):
            depth = 0
            starts.append((word, piece.start()))
    ends = [start for _, start in starts[1:]] + [len(text) + 1]
    return [(word, Span(start, end)) for (word, start), end in zip(starts, ends, strict=False)]


def clause_at_end(text: str, first: str = "") -> str:
    """The first word of the clause that the end of a text is in; `first` is that of its beginning.

    >>> clause_at_end("SELECT * WHERE (a FILTER a[x = "), clause_at_end("SELECT * WHERE (a FILTER b) ;")
    ('FILTER', 'WHERE')
    """
    around: list[str] = []
    clause = first
    for word, piece in _words(text):
        if piece["open"] is not None:
            around.append(clause)
        elif piece["close"] is not None:
            clause = around.pop() if around else clause
        elif word in ORDER:
            clause = word
    return clause


def is_used_as_name(text: str, start: int, end: int) -> bool:
    """Whether the word at a place can only be a name: ``a.limit``, ``[limit > 5]``."""
    before = text[max(0, start - 200) : start].rstrip()
    expects_value = _VALUE_FOLLOWS.search(before) is not None
    return before.endswith((".", "$", "@", ":")) or (expects_value and _OPERATOR.match(text, end) is not None)


def unclosed(text: str) -> int | None:
    """The place of the last bracket that is not closed, outside strings and comments."""
    open_at: list[int] = []
    for piece in PIECES.finditer(text):
        if piece["open"] is not None:
            open_at.append(piece.start())
        elif piece["close"] is not None and open_at:
            open_at.pop()
    return open_at[-1] if open_at else None


def is_nested(before: str, after: str) -> bool:
    """Whether the place between two texts is inside brackets that are closed later."""
    return unclosed(before) is not None and unclosed(before + after) is None


def _words(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """The pieces of a text, each with its clause word in capitals or the empty string."""
    before, clause = "", ""
    for piece in PIECES.finditer(text):
        word = (piece["word"] or "").upper()
        is_policy = word == "PARTITION" and before == "BY" and clause == "CONSUME"
        if word == "ORDER" and not _BY.match(text, piece.end()):
            word = ""
        if word in ORDER and not is_policy and not is_used_as_name(text, piece.start(), piece.end()):
            clause = word
            yield word, piece
        else:
            yield "", piece
        before = word
