"""A `QueryError` → a paragraph: what is wrong, the line with carets, what was expected, how to mend it."""

from __future__ import annotations

import unicodedata
from typing import Final

from estero.errors import QueryError
from estero.legible import legible, legible_in_place

WIDTH: Final = 100
"""The most characters of a line that are shown; a longer one is cut around the place."""


def render_error(error: QueryError) -> str:
    """The error for people to read, followed by its `others`, an empty line between two.

    Carets stand under the place as a terminal shows it: tabs stay tabs, wide characters take two.
    """
    return "\n\n".join(map(_one, (error, *error.others)))


def _one(error: QueryError) -> str:
    lines = [legible(error.message)]
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
    return "".join("\t" if each == "\t" else " " * _columns(each) for each in text)


def _columns(text: str) -> int:
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
