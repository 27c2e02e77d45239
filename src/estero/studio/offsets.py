"""Positions in a text as browsers count them: in UTF-16 units, of which some characters have two."""

from __future__ import annotations

from estero.errors import Span


def to_browser(text: str, place: int) -> int:
    """The position in UTF-16 units of a position in characters.

    >>> to_browser("a𝛼b", 2)
    3
    """
    return place + sum(ord(character) > 0xFFFF for character in text[:place])


def from_browser(text: str, units: int) -> int:
    """The position in characters of a position in UTF-16 units; inside a character, its beginning.

    >>> from_browser("a𝛼b", 3), from_browser("a", 9)
    (2, 1)
    """
    seen = 0
    for place, character in enumerate(text):
        seen += 2 if ord(character) > 0xFFFF else 1
        if seen > units:
            return place
    return len(text)


def span_in_browser(text: str, span: Span) -> dict[str, int]:
    """A span as ``from`` and ``to``."""
    return {"from": to_browser(text, span.start), "to": to_browser(text, span.end)}
