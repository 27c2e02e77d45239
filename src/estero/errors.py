"""What can go wrong, as values: one base class, places in texts and files as data, rendering apart."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

from estero.legible import legible


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range ``[start, end)`` of character offsets in a query's text."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"a span runs forward from 0, not from {self.start} to {self.end}")

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.start, max(self.end, other.end))


NOWHERE = Span(0, 0)
"""The span of a node that was built without a text (by the builder or by a rewriting)."""


class EsteroError(Exception):
    """The base of every error that Estero raises on purpose."""


class QueryError(EsteroError):
    """Something is wrong with a query, at one place of its text.

    `message` says what is wrong in one sentence; `found` is the piece of text there; `expected`
    says what could stand there; `hint` says how to mend it. `others` are the further errors of the
    same text, in order of place. ``str(error)`` renders the line with a caret under the place.
    """

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        span: Span = NOWHERE,
        found: str = "",
        expected: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.span = span
        self.found = found
        self.expected = expected
        self.hint = hint
        self.others: tuple[QueryError, ...] = ()

    def __str__(self) -> str:
        from estero.language.render import render_error

        return render_error(self)


class DataError(EsteroError):
    """Something is wrong with the events: names the file, the row and the column where known.

    `row` counts data rows from 1 as the reader of the file would (the header is not a row); `line`
    is the line of a text file, from 1.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        row: int | None = None,
        line: int | None = None,
        column: str | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.row = row
        self.line = line
        self.column = column
        self.hint = hint

    def __str__(self) -> str:
        places = [
            legible(self.file or ""),
            f"line {self.line}" if self.line is not None else "",
            f"row {self.row}" if self.row is not None else "",
            f"column {self.column!r}" if self.column is not None else "",
        ]
        where = ", ".join(place for place in places if place)
        message = legible(self.message, lines=True)
        sentence = f"{where}: {message}" if where else message
        return f"{sentence}\n  hint: {legible(self.hint, lines=True)}" if self.hint else sentence


class EnvironmentProblem(EsteroError):
    """Something outside Estero is missing (Java, a package); says what to install."""


class LimitExceeded(EsteroError):
    """A stated limit was reached (automaton states, memory); says which and how to go on."""


class EsteroWarning(UserWarning):
    """Something that is allowed, and probably not meant; the command line says it in a line."""


def warn(message: str) -> None:
    """Warns of something with an `EsteroWarning`, at the place in the user's code that leads here."""
    frame, level = sys._getframe(1), 2  # noqa: SLF001 (what `warnings` itself looks at)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "estero":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, EsteroWarning, stacklevel=level)
