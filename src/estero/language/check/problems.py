"""The errors of one query: every check adds to them, and they are returned in order of place."""

from __future__ import annotations

from collections.abc import Iterable

from estero.errors import QueryError, Span
from estero.language.tree.names import SPELLING, some, suggestion
from estero.language.tree.paths import is_path
from estero.language.tree.words import named, quoted


class Problems:
    """The errors of one text; the same one at the same place counts once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._errors: dict[tuple[Span, str], QueryError] = {}

    def add(
        self, message: str, span: Span, *, piece: str | None = None, expected: str = "", hint: str = ""
    ) -> None:
        """Notes an error at `span` on the text there, unless `piece` is given."""
        found_text = self.text[span.start : span.end] if piece is None else piece
        error = QueryError(message, text=self.text, span=span, found=found_text, expected=expected, hint=hint)
        self._errors.setdefault((span, message), error)

    @property
    def count(self) -> int:
        """The number of errors so far."""
        return len(self._errors)

    def no_label(self, label: str, labels: Iterable[str], span: Span, hint: str = "") -> None:
        """Notes an unknown label; `hint` is used if no known one is similar."""
        known = tuple(labels)
        self.add(
            f"no event is marked {label}",
            span,
            expected=some(known) or "no label at all",
            hint=suggestion(label, known) or hint or f"bind it in the pattern with AS {quoted(label)}",
        )

    def no_attribute(
        self, name: str, attributes: Iterable[str], span: Span, message: str = "", hint: str = SPELLING
    ) -> None:
        """Notes an unknown attribute; `hint` is used if no known one is similar."""
        known = tuple(attribute for attribute in attributes if not is_path(attribute))
        self.add(
            message or f"there is no attribute {named(name)}",
            span,
            expected=some(known) or "no attribute at all",
            hint=suggestion(name, known) or hint,
        )

    def inner_span(self, span: Span, name: str) -> Span:
        """The place of the last mention of `name` within `span`, or all of `span`."""
        start = self.text.rfind(name, span.start, span.end)
        return span if start < 0 else Span(start, start + len(name))

    def in_order(self) -> list[QueryError]:
        """The errors from left to right; at one place in the order of noting."""
        return sorted(self._errors.values(), key=lambda error: (error.span.start, -error.span.end))
