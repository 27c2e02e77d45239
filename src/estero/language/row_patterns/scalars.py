"""The text of an expression in MEASURES or DEFINE → a tree of SQLGlot whose nodes have their places."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from estero.errors import QueryError, Span
from estero.language.row_patterns.tree import Scalar
from estero.language.row_patterns.words import Dialect, Word, closing, words_of

_BEFORE: Final = "SELECT ("
PREFIX: Final = "estero__"
"""The prefix of the names of functions of rows in the tree, so that SQLGlot takes them for no others."""
NAVIGATION: Final = frozenset({"PREV", "NEXT", "FIRST", "LAST"})
FUNCTIONS: Final = frozenset({*NAVIGATION, "CLASSIFIER", "MATCH_NUMBER"})
MODES: Final = frozenset({"RUNNING", "FINAL"})


class ParsedScalar:
    """A tree, and the places of its nodes in the text of the statement."""

    scalar: Scalar
    text: str

    def __init__(self, scalar: Scalar, text: str, dialect: Dialect) -> None:
        self.scalar, self.text = scalar, text
        pieces, self._places = _rewritten(scalar, text, dialect)
        try:
            select = sqlglot.parse_one(f"{_BEFORE}{''.join(pieces)}\n)", dialect=dialect)
        except (SqlglotError, RecursionError) as error:
            raise self.error(_reason(error), scalar.span) from None
        selected = select.args.get("expressions") if isinstance(select, exp.Select) else None
        if not selected or len(selected) > 1:
            raise self.error("this is not an expression", scalar.span)
        (tree,) = selected
        if isinstance(tree, exp.Paren) and isinstance(tree.this, exp.Alias | exp.Tuple):
            raise self.error("one expression is expected, without a name", scalar.span)
        self.tree: exp.Expr = tree.this if isinstance(tree, exp.Paren) else tree

    def span_of(self, node: exp.Expr) -> Span:
        """The place of a node, as far as SQLGlot knows it, else that of the expression."""
        places = [
            (child.meta["start"], child.meta["end"] + 1)
            for child in node.walk()
            if "start" in child.meta and "end" in child.meta
        ]
        if not places:
            return self.scalar.span
        start = self._old(min(place for place, _ in places))
        return Span(start, max(start, self._old(max(end for _, end in places))))

    def error(
        self, message: str, place: exp.Expr | Span, *, hint: str = "", expected: str = ""
    ) -> QueryError:
        """An error at a node."""
        span = place if isinstance(place, Span) else self.span_of(place)
        piece = self.text[span.start : span.end]
        return QueryError(message, text=self.text, span=span, found=piece, hint=hint, expected=expected)

    def _old(self, place: int) -> int:
        place = max(place - len(_BEFORE), 0)
        new, old = self._places[bisect_right(self._places, (place, 1 << 60)) - 1]
        return min(old + place - new, self.scalar.span.end)


def _reason(error: Exception) -> str:
    entries = getattr(error, "errors", None)
    if entries:
        return f"this expression cannot be read: {entries[0].get('description', '').rstrip('.')}"
    return "this expression cannot be read"


def _rewritten(scalar: Scalar, text: str, dialect: Dialect) -> tuple[list[str], list[tuple[int, int]]]:
    """The text with renamed functions of rows, RUNNING and FINAL as functions, and places of its pieces."""
    start, end = scalar.span.start, scalar.span.end
    words = words_of(text, start, end, dialect)
    mark = "`" if dialect == "spark" else '"'
    edits: list[tuple[int, int, str]] = []
    for index, word in enumerate(words):
        if word.kind != "word":
            continue
        called = index + 1 < len(words) and words[index + 1].text == "("
        behind_dot = index > 0 and words[index - 1].text == "."
        if word.upper in FUNCTIONS and called and not behind_dot:
            edits.append((word.start, word.end, PREFIX + word.text.lower()))
        elif _is_qualifier(words, index):
            edits.append(
                (word.start, word.end, f"{mark}{word.text}{mark}")
            )  # it may be a keyword, such as DROP
        elif word.upper in MODES and not called and _calls(words, index + 1):
            edits.append((word.start, word.end, f"{PREFIX}{word.text.lower()}("))
            closed = closing(words, index + 2) or len(words) - 1
            edits.append((words[closed].end, words[closed].end, ")"))
    pieces: list[str] = []
    places = [(0, start)]
    at, length = start, 0
    for first, last, piece in sorted(edits):
        pieces += [text[at:first], piece]
        length += first - at
        places.append((length, first))
        length += len(piece)
        places.append((length, last))
        at = last
    return [*pieces, text[at:end]], places


def _is_qualifier(words: list[Word], index: int) -> bool:
    """Whether a word is the name of a variable or table, judged by its context."""
    behind = words[index + 1].text if index + 1 < len(words) else ""
    before = words[index - 1].text if index else ""
    is_argument = index > 1 and words[index - 2].upper == "CLASSIFIER" and before == "(" and behind == ")"
    return (behind == "." and before != ".") or is_argument


def _calls(words: list[Word], index: int) -> bool:
    return index + 1 < len(words) and words[index].is_name and words[index + 1].text == "("


def function_of(node: exp.Expr) -> str:
    """The name of a function of rows, RUNNING or FINAL, in upper case; "" for any other node."""
    if isinstance(node, exp.Anonymous) and str(node.this).lower().startswith(PREFIX):
        return str(node.this)[len(PREFIX) :].upper()
    return ""
