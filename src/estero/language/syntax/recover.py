"""Recovery from syntax errors: all errors of a text that cannot be parsed, not only the first.

The parser stops at the first token that it does not accept. The clause around that place is then blanked, so
that the rest keeps its offsets, and the text is parsed again, until it can be read or the same clause fails
twice. Without the omitted clauses some checks of the rest are meaningless; their errors are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from estero.errors import QueryError, Span
from estero.language.syntax.clauses import clauses_of, is_nested
from estero.language.syntax.parser import parse_query
from estero.language.tree.query import QueryTree

_LEAST: Final = "SELECT*WHERE _"


@dataclass(frozen=True, slots=True)
class Reading:
    """The readable part of a text: its tree, the errors, and the clauses left out.

    `tree` is None where nothing could be read. `lost` are the first words of the clauses left out;
    `clauses` are all of them with their places, where something is wrong.
    """

    tree: QueryTree | None
    errors: tuple[QueryError, ...]
    lost: frozenset[str]
    clauses: tuple[tuple[str, Span], ...]

    def with_checks(self, errors: Iterable[QueryError]) -> list[QueryError]:
        """All errors in order of place, with those `errors` from checks of the tree that are believed."""
        believed = [error for error in errors if self._is_believed(error)]
        return sorted((*self.errors, *believed), key=lambda error: (error.span.start, -error.span.end))

    def _is_believed(self, error: QueryError) -> bool:
        if not self.lost:
            return True
        start = error.span.start
        clause = next((word for word, place in self.clauses if place.start <= start < place.end), "")
        if self.lost & {"WHERE", "FROM"}:
            return clause in ("WITHIN", "LIMIT")
        return clause != "CONSUME" or "PARTITION" not in self.lost


def read(text: str) -> Reading:
    """The reading of a text, without the parts that cannot be parsed; it never raises.

    >>> [error.message for error in read("SELECT * WHERE a FILTER a[x == 1] WITHIN 5 SECUNDS").errors]
    ['== is not an operator', 'unknown unit SECUNDS']
    """
    with suppress(QueryError):
        return Reading(parse_query(text), (), frozenset(), ())
    clauses = tuple(clauses_of(text))
    left, lost, errors = text, set[str](), list[QueryError]()
    for _ in range(len(clauses) + 1):
        try:
            tree = parse_query(left)
        except QueryError as error:
            error.text = text
            errors.append(error)
            number = _broken(clauses, error.span.start)
            word = clauses[number][0] if number is not None else ""
            if number is None or word in lost or "WHERE" not in {clause for clause, _ in clauses}:
                break
            lost.add(word)
            place = error.span.start
            if place in {span.start for _, span in clauses} and is_nested(text[:place], text[place:]):
                break  # what follows is the rest of the pattern
            left = _without(left, *clauses[number])
        else:
            return Reading(replace(tree, text=text), tuple(errors), frozenset(lost), clauses)
    return Reading(None, tuple(errors[: len(lost) or 1]), frozenset(lost), clauses)


def _broken(clauses: tuple[tuple[str, Span], ...], place: int) -> int | None:
    """The clause to leave out for an error: its own, or one that ends too early just before it."""
    for number, (_, span) in enumerate(clauses):
        if span.start == place:
            return number - 1 if number else None
        if span.start < place < span.end:
            return number
    return None


def _without(text: str, word: str, place: Span) -> str:
    """The text with one clause blanked, or filled with the least that is required."""
    end = min(place.end, len(text))
    if word == "SELECT":
        return text[: place.start] + "SELECT*" + _blank(text[place.start + 7 : end]) + text[end:]
    if word == "WHERE":
        return _LEAST + _blank(text[len(_LEAST) : end]) + text[end:]
    return text[: place.start] + _blank(text[place.start : end]) + text[end:]


def _blank(text: str) -> str:
    return re.sub(r"\S", " ", text)
