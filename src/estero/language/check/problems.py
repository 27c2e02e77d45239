"""What is wrong with one query, gathered: every check adds to it, and it gives them in order of place."""

from __future__ import annotations

from estero.errors import QueryError, Span


class Problems:
    """The errors of one text; the same one at the same place counts once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: dict[tuple[Span, str], QueryError] = {}

    def add(
        self, message: str, span: Span, *, found: str | None = None, expected: str = "", hint: str = ""
    ) -> None:
        """Note an error at `span`; what is found there is its text unless said otherwise."""
        piece = self.text[span.start : span.end] if found is None else found
        error = QueryError(message, text=self.text, span=span, found=piece, expected=expected, hint=hint)
        self._found.setdefault((span, message), error)

    def inner_span(self, span: Span, name: str) -> Span:
        """The place of the last mention of `name` within `span`, or all of `span`."""
        start = self.text.rfind(name, span.start, span.end)
        return span if start < 0 else Span(start, start + len(name))

    def in_order(self) -> list[QueryError]:
        """The errors from left to right; of two at one place the one that was noted first."""
        return sorted(self._found.values(), key=lambda error: (error.span.start, -error.span.end))
