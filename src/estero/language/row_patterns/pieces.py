"""A statement in which clauses are replaced by names for their results."""

from __future__ import annotations

from collections.abc import Sequence

from estero.errors import Span
from estero.language.row_patterns.statements import Placed


class Pieces:
    """A text in which parts are replaced, by their places in the first text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._replaced: list[tuple[Span, str]] = []

    def replace(self, span: Span, piece: str) -> None:
        """Puts a piece in place of a part, with all pieces in it."""
        inside = [entry for entry in self._replaced if not span.start <= entry[0].start < span.end]
        self._replaced = sorted([*inside, (span, piece)], key=lambda entry: entry[0].start)

    def text(self, span: Span | None = None) -> str:
        """The text of a part as it is now, or all of it."""
        parts = []
        at, end = (0, len(self._text)) if span is None else (span.start, span.end)
        for replaced, piece in self._replaced:
            if at <= replaced.start and replaced.end <= end:
                parts += [self._text[at : replaced.start], piece]
                at = replaced.end
        return "".join([*parts, self._text[at:end]])

    def definitions(self, placed: Placed, before: Sequence[str] = ()) -> str:
        """The WITH before the relation of a clause, which begins with other definitions."""
        definitions = [*before, *map(self.text, placed.named)]
        if not definitions:
            return ""
        return f"WITH {'RECURSIVE ' if placed.recursive else ''}{', '.join(definitions)}"
