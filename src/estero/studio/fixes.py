"""The edits of a text that a hint suggests, kept only if fewer errors remain up to their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from estero.errors import QueryError, Span

_MOST = 3
"""The largest number of edits offered for one error."""
_LEADS = (
    r"did you mean (?P<said>.+?)\?",
    r"as a name, write it (?P<said>\"[^\"]+\")",
    r"strings are written in single quotes: (?P<said>'.*')$",
    r"names are written in double quotes: (?P<said>\".*\")$",
    r"\bwrite (?P<said>[^;]+?)(?:,? (?:or|and|for|to|where|if) .*)?(?:;.*)?$",
    r"use (?P<said>[^;,]+)$",
)
_LEFT_OUT = re.compile(r"leave (it|them|this) out|is written with one")


@dataclass(frozen=True, slots=True)
class Fix:
    """An edit: the text to write in place of a span."""

    span: Span
    insert: str

    def applied(self, text: str) -> str:
        """The text after the edit."""
        return text[: self.span.start] + self.insert + text[self.span.end :]


def fixes_of(
    error: QueryError, errors: Sequence[QueryError], check: Callable[[str], Sequence[QueryError]]
) -> list[Fix]:
    """The edits that the hint of an error suggests, limited to those that leave fewer errors up to its place.

    `check` gives the errors of a text, `errors` those of this one. After the place there may be further
    errors, or errors that only now become visible.

    >>> from estero import check
    >>> text = "SELECT * WHERE a FILTR a[x > 5]"
    >>> errors = check(text)
    >>> [fix.applied(text) for fix in fixes_of(errors[0], errors, check)]
    ['SELECT * WHERE a FILTER a[x > 5]']
    """
    kept: list[Fix] = []
    for fix in _asked(error):
        text = fix.applied(error.text)
        if text == error.text or fix in kept:
            continue
        left = [other for other in check(text) if other.span.start <= error.span.start]
        if len(left) < sum(other.span.start <= error.span.start for other in errors):
            kept.append(fix)
        if len(kept) == _MOST:
            break
    return kept


def _asked(error: QueryError) -> Iterator[Fix]:
    for lead in _LEADS:
        said = re.search(lead, error.hint)
        if said is not None:
            words = re.split(r", | or ", said["said"]) if lead.startswith("did") else [said["said"]]
            yield from (Fix(error.span, word) for word in words)
    if error.expected and len(error.expected) <= 2:
        yield Fix(error.span, error.expected)
    if _LEFT_OUT.search(error.hint) or _LEFT_OUT.search(error.message):
        yield Fix(error.span, "")
