"""Errors as values: one base class, places in texts and files as data; and how they are shown.

Text from data is shown safely: characters that would control a terminal, or cannot be printed, are escaped.
"""

from __future__ import annotations

import re
import sys
import unicodedata
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, Literal


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

    def _repr_html_(self) -> str:
        """The error as a notebook shows it if it is a value there, with places aligned under the text."""
        from html import escape  # 2 ms, for notebooks only

        return f"<pre>{escape(str(self))}</pre>"


class QueryError(EsteroError):
    """An error in a query, at one place of its text.

    `message` says what is wrong in one sentence; `found` is the piece of text there; `expected` says what
    could stand there; `hint` says how to fix it. `others` are the further errors of the same text, in order
    of place. In a set of rules `rule` is the name of the rule, or its file. ``str(error)`` renders the line
    with a caret under the place.
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
        self.rule: str | None = None

    @property
    def line_and_column(self) -> tuple[int, int]:
        """The line of the text in which it is, and the column there, each from 1."""
        number, _, start, _ = _line_of(self)
        return int(number), start + 1

    def __str__(self) -> str:
        return render_error(self)


class DataError(EsteroError):
    """An error in the events: names the file, the row and the column if known.

    `row` counts data rows from 1 as the reader of the file would (the header is not a row); `line` is the
    line of a text file, from 1.
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
    """An error for a missing part of the environment (Java, a package); says what to install."""


class MissingPackage(EnvironmentProblem, ImportError):
    """An error for a package of one of Estero's extras that is not installed; says which."""


Extra = Literal[
    "spark",
    "plot",
    "studio",
    "sigma",
    "delta",
    "testing",
    "kafka",
    "postgresql",
    "webhook",
    "metrics",
    "telemetry",
]
_PACKAGES: Final[dict[Extra, tuple[str, ...]]] = {
    "spark": ("pyspark", "pandas"),
    "plot": ("matplotlib",),
    "studio": ("anywidget", "starlette", "uvicorn"),
    "sigma": ("pySigma",),
    "delta": ("deltalake",),
    "testing": ("yaml",),
    "kafka": ("confluent_kafka",),
    "postgresql": ("psycopg",),
    "webhook": ("urllib3", "tenacity"),
    "metrics": ("prometheus_client",),
    "telemetry": ("opentelemetry-api",),
}
"""The packages of each extra (pyproject.toml) that are looked for before they are used."""
_MODULES: Final = {"pySigma": "sigma.collection", "opentelemetry-api": "opentelemetry.metrics"}
"""The module names of packages, if they differ; that of pySigma is part of a namespace."""


def require(extra: Extra, purpose: str) -> None:
    """Raises `MissingPackage` if a package of an extra is not installed; `purpose` begins its sentence."""
    for package in _PACKAGES[extra]:
        if find_spec(_MODULES.get(package, package)) is None:
            raise MissingPackage(
                f"{purpose} needs {package}, which is not installed: pip install 'estero[{extra}]'"
            )


class LimitExceeded(EsteroError):
    """An error for a limit that was reached (automaton states, memory); says which and how to go on.

    `answer` is that of the push after which a recognizer holds too much, else None.
    """

    def __init__(self, message: str, *, answer: object = None) -> None:
        super().__init__(message)
        self.answer = answer


class EsteroWarning(UserWarning):
    """A warning of something allowed but probably not intended; the command line prints it in a line."""


def warn(message: str) -> None:
    """Issues an `EsteroWarning` at the place in the user's code that leads here."""
    frame, level = sys._getframe(1), 2  # noqa: SLF001 (what `warnings` itself looks at)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "estero":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, EsteroWarning, stacklevel=level)


WIDTH: Final = 100
"""The longest line that is shown; a longer one is cut around the place."""


def render_error(error: QueryError) -> str:
    """The error for people to read, followed by its `others`, with an empty line between two.

    Carets are aligned with the place as a terminal shows it: tabs stay tabs, wide characters take two cells.
    """
    return "\n\n".join(map(_paragraph, (error, *error.others)))


def _paragraph(error: QueryError) -> str:
    where = "" if error.rule is None else f"{error.rule}: "
    lines = [legible(where + error.message)]
    indent = "  "
    if error.text.strip():
        number, line, start, end = _line_of(error)
        line = legible_in_place(line)
        line, start, end = _cut(line, start, end)
        indent = " " * (len(number) + 3)
        lines.append(f"  {number} | {line}")
        lines.append(f"{indent}| {_padding(line[:start])}{'^' * max(1, _columns(line[start:end]))}")
    if error.expected:
        lines.append(f"{indent}expected: {legible(error.expected)}")
    if error.hint:
        lines.append(f"{indent}hint: {legible(error.hint, lines=True)}")
    return "\n".join(lines)


def _line_of(error: QueryError) -> tuple[str, str, int, int]:
    """The number and text of the line where the error starts, and the range of columns in it."""
    place = min(error.span.start, len(error.text))
    if not error.text[:place].strip():  # an error without a place is at the first word
        place += len(error.text[place:]) - len(error.text[place:].lstrip())
    first = error.text.rfind("\n", 0, place) + 1
    last = error.text.find("\n", place)
    line = error.text[first : last if last >= 0 else len(error.text)].rstrip("\r")
    start = min(place - first, len(line))
    end = min(max(error.span.end - first, start), len(line))
    return str(error.text.count("\n", 0, first) + 1), line, start, end


def _cut(line: str, start: int, end: int) -> tuple[str, int, int]:
    if len(line) <= WIDTH:
        return line, start, end
    first = max(0, min(start - WIDTH // 3, len(line) - WIDTH))
    last = min(len(line), first + WIDTH)
    front, back = "…" if first > 0 else "", "…" if last < len(line) else ""
    shift = len(front) - first
    return front + line[first:last] + back, start + shift, min(end, last) + shift


def _padding(text: str) -> str:
    return "".join("\t" if character == "\t" else " " * _columns(character) for character in text)


def _columns(text: str) -> int:
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


_UNPRINTED = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters: ESC among them, and line ends
    "\u2028\u2029"  # line ends of Unicode
    "\u202a-\u202e\u2066-\u2069"  # the direction of what follows
    "\ud800-\udfff]"  # halves of characters, and bytes that are no UTF-8
)
_BYTES = range(0xDC80, 0xDD00)
"""The characters that represent bytes 0x80 to 0xFF that are not UTF-8 (PEP 383, surrogateescape)."""


def legible(text: str, *, lines: bool = False) -> str:
    r"""The text with escapes in place of characters unsafe for a terminal; with `lines` it keeps line ends.

    >>> legible("a\x1b[31m\nb")
    'a\\x1b[31m\\nb'
    """
    if not _UNPRINTED.search(text):
        return text
    if lines:
        return "\n".join(map(legible, text.split("\n")))
    return _UNPRINTED.sub(lambda control: _escaped(control[0]), text)


def legible_in_place(text: str) -> str:
    """The same with one character for each, for text under which something points at its characters.

    Tabs stay; control characters become their pictures.
    """
    return _UNPRINTED.sub(lambda control: _picture(control[0]), text)


def _escaped(character: str) -> str:
    if ord(character) in _BYTES:
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def _picture(character: str) -> str:
    if character == "\t":
        return character
    return chr(0x2400 + ord(character)) if ord(character) < 0x20 else "\N{REPLACEMENT CHARACTER}"
