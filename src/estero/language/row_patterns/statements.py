"""Finds the MATCH_RECOGNIZE clauses of an SQL statement, their relations, and the names in scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from estero.errors import QueryError, Span
from estero.language.row_patterns.check import check_clause
from estero.language.row_patterns.clauses import parse_clause, raise_all
from estero.language.row_patterns.tree import RowPatternClause
from estero.language.row_patterns.words import Dialect, Word, closing, opening, words_of

KEYWORD: Final = "MATCH_RECOGNIZE"
_BEFORE_A_RELATION: Final = frozenset({"FROM", "JOIN", ",", "("})
_NO_ALIAS: Final = frozenset(
    {
        "FROM",
        "JOIN",
        "AS",
        "ON",
        "USING",
        "WHERE",
        "SELECT",
        "LATERAL",
        "INNER",
        "LEFT",
        "RIGHT",
        "CROSS",
        "FULL",
        ",",
    }
)


@dataclass(frozen=True)
class Placed:
    """A clause in its statement: the place of the relation that it is applied to, and that of all of it.

    `relation` is the name by which expressions may refer to the relation, "" if it has none; `named` are the
    places of the common table expressions that it may name.
    """

    clause: RowPatternClause
    source: Span
    relation: str
    whole: Span
    named: tuple[Span, ...]
    recursive: bool


def placed_clauses(text: str, dialect: Dialect = "duckdb") -> tuple[Placed, ...]:
    """All MATCH_RECOGNIZE of a statement in the order of the text; raises `QueryError` with all mistakes."""
    words = words_of(text, dialect=dialect)
    placed: list[Placed] = []
    errors: list[QueryError] = []
    for index, word in enumerate(words[:-1]):
        if word.upper != KEYWORD or words[index + 1].text != "(" or not index or words[index - 1].text == ".":
            continue
        try:
            placed.append(_placed(text, words, index, placed, dialect))
        except QueryError as error:
            errors += [error, *error.others]
    raise_all(errors)
    return tuple(placed)


def _placed(
    text: str, words: Sequence[Word], index: int, earlier: Sequence[Placed], dialect: Dialect
) -> Placed:
    keyword = words[index]
    closed = closing(words, index + 1)
    if closed is None:
        raise _wrong(text, "the parenthesis after MATCH_RECOGNIZE is not closed", words[index + 1].span)
    if _is_nested(words, index):
        raise _wrong(text, "nested row pattern recognition in row pattern recognition", keyword.span)
    first, relation = _relation(text, words, index)
    end = words[closed].end
    clause = parse_clause(text, words[index + 1].start, end, dialect)
    check_clause(clause)
    start = words[first].start
    for other in earlier:  # MATCH_RECOGNIZE after another one is applied to its result
        if other.whole.start <= start < other.whole.end:
            start = min(start, other.whole.start)
    source = Span(start, words[index - 1].end)
    named, recursive = _named(text, words, first, keyword)
    return Placed(clause, source, relation, Span(start, end), named, recursive)


def _wrong(text: str, message: str, span: Span, hint: str = "") -> QueryError:
    return QueryError(message, text=text, span=span, found=text[span.start : span.end], hint=hint)


def _is_nested(words: Sequence[Word], index: int) -> bool:
    """Whether the word is inside of the parentheses of another MATCH_RECOGNIZE."""
    return any(words[bracket - 1].upper == KEYWORD for bracket in _enclosing(words, index) if bracket)


def _enclosing(words: Sequence[Word], index: int) -> list[int]:
    """The brackets around a word, from the outermost on."""
    brackets: list[int] = []
    for place in range(index):
        if words[place].kind == "sign" and words[place].text in "([{":
            brackets.append(place)
        elif words[place].kind == "sign" and words[place].text in ")]}" and brackets:
            brackets.pop()
    return brackets


def _relation(text: str, words: Sequence[Word], index: int) -> tuple[int, str]:
    """The first word of the relation before MATCH_RECOGNIZE, and its name."""
    last = index - 1
    alias = ""
    if words[last].text == ")":
        bracket = opening(words, last)
        if (
            bracket
            and words[bracket - 1].is_name
            and words[bracket - 1].upper != KEYWORD
            and _is_alias(words, bracket - 1)
        ):
            last, alias = bracket - 1, words[bracket - 1].name  # with a list of columns
    if not alias and words[last].is_name and _is_alias(words, last):
        alias = words[last].name
    if alias:
        last -= 1
        if words[last].upper == "AS":
            last -= 1
    first, name = _primary(text, words, last, words[index])
    return first, alias or name


def _is_alias(words: Sequence[Word], place: int) -> bool:
    """Whether the name at a place is an alias for what is before it."""
    before = words[place - 1]
    if before.upper == "AS":
        return True
    is_relation = (
        before.kind == "quoted"
        or before.text == ")"
        or (before.kind == "word" and before.upper not in _NO_ALIAS)
    )
    return is_relation and words[place].upper not in _NO_ALIAS


def _primary(text: str, words: Sequence[Word], last: int, keyword: Word) -> tuple[int, str]:
    """The first word of a table, function or subquery that ends at `last`, and its name."""
    first, name = last, ""
    if words[last].text == ")":
        bracket = opening(words, last)
        if bracket is None:
            raise _wrong(text, "a parenthesis is closed that was not opened", words[last].span)
        first = bracket
        if words[bracket - 1].upper == KEYWORD:
            first, name = _relation(text, words, bracket - 1)
            return first, name
        if words[bracket - 1].is_name and words[bracket - 1].upper not in _NO_ALIAS:
            first, name = bracket - 1, words[bracket - 1].name
    elif words[last].is_name:
        name = words[last].name
    while first >= 2 and words[first - 1].text == "." and words[first - 2].is_name:
        first -= 2
    if words[first - 1].upper == "LATERAL":
        raise _wrong(text, "LATERAL is not supported before MATCH_RECOGNIZE", words[first - 1].span)
    if first and words[first - 1].upper not in _BEFORE_A_RELATION:
        raise _wrong(
            text,
            "MATCH_RECOGNIZE comes after a table or subquery; a join before it is not supported",
            keyword.span,
            "write FROM (SELECT … FROM a JOIN b ON …) MATCH_RECOGNIZE (…)",
        )
    return first, name


# ------------------------------------------------------------------------------- common table expressions


def _named(text: str, words: Sequence[Word], index: int, keyword: Word) -> tuple[tuple[Span, ...], bool]:
    """The common table expressions that a word may name, and whether some are recursive."""
    named: list[Span] = []
    recursive = False
    for begin in [0, *(bracket + 1 for bracket in _enclosing(words, index))]:
        if begin >= len(words) or words[begin].upper != "WITH":
            continue
        place = begin + 1
        is_recursive = words[place].upper == "RECURSIVE"
        place += is_recursive
        for first, last in _definitions(words, place):
            if first <= index <= last:
                if is_recursive:
                    raise _wrong(text, "nested row pattern recognition in recursive query", keyword.span)
                break
            if last < index:
                named.append(Span(words[first].start, words[last].end))
        recursive |= is_recursive
    return tuple(named), recursive


def _definitions(words: Sequence[Word], place: int) -> list[tuple[int, int]]:
    """The first and last words of the definitions in a WITH."""
    definitions: list[tuple[int, int]] = []
    while place + 2 < len(words) and words[place].is_name:
        bracket = place + 1
        if words[bracket].text == "(":
            bracket = (closing(words, bracket) or bracket) + 1
        while bracket < len(words) and words[bracket].upper in ("AS", "NOT", "MATERIALIZED"):
            bracket += 1
        if bracket >= len(words) or words[bracket].text != "(":
            return definitions
        last = closing(words, bracket)
        if last is None:
            return definitions
        definitions.append((place, last))
        if last + 1 >= len(words) or words[last + 1].text != ",":
            return definitions
        place = last + 2
    return definitions
