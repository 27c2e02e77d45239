"""A table on a terminal, or in a pipe: a box of columns that fold texts too wide for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from unicodedata import combining, east_asian_width

import click

_HEAVY = ("┏━┳┓", "┃", "┡━╇┩", "│", "└─┴┘")
_ASCII = ("+-++", "|", "+-++", "|", "+-++")
_BETWEEN = 3
"""The number of cells between two columns: a line, with a blank on each side."""


@dataclass
class Table:
    """Rows of texts under a header; `right` says whether each column is aligned to the right."""

    header: Sequence[str]
    right: Sequence[bool]
    rows: list[Sequence[str]] = field(default_factory=list)

    def lines(self, width: int, *, ascii_only: bool = False) -> Iterator[str]:
        """The table in lines of at most `width` cells; header bold and every second row dim on a terminal."""
        across, header_bar, below_header, bar, below = _ASCII if ascii_only else _HEAVY
        widths = _fitted([self._width_of(column) for column in range(len(self.header))], width)
        yield _rule(across, widths)
        yield from self._row(self.header, widths, header_bar, bold=True)
        yield _rule(below_header, widths)
        for number, row in enumerate(self.rows):
            yield from self._row(row, widths, bar, dim=number % 2 == 1)
        yield _rule(below, widths)

    def _width_of(self, column: int) -> int:
        texts = (row[column] for row in (self.header, *self.rows))
        return max(map(cells, (line for text in texts for line in text.split("\n"))), default=0)

    def _row(
        self, texts: Sequence[str], widths: Sequence[int], bar: str, *, bold: bool = False, dim: bool = False
    ) -> Iterator[str]:
        columns = [list(_folded(text, width)) for text, width in zip(texts, widths, strict=True)]
        for number in range(max(map(len, columns), default=0)):
            parts = [lines[number] if number < len(lines) else "" for lines in columns]
            padded = (f" {text} " for text in map(_padded, parts, widths, self.right))
            if bold or dim:
                padded = (click.style(text, bold=bold or None, dim=dim or None) for text in padded)
            yield bar + bar.join(padded) + bar


def cells(text: str) -> int:
    """The number of cells of a terminal that a text takes.

    >>> cells("año"), cells("山"), cells("e\u0301")
    (3, 2, 1)
    """
    if text.isascii():
        return len(text)
    return sum(0 if combining(letter) else 1 + (east_asian_width(letter) in "WF") for letter in text)


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - cells(text))
    return blanks + text if right else text + blanks


def _rule(corners: str, widths: Iterable[int]) -> str:
    left, line, between, right = list(corners)
    return left + between.join(line * (width + _BETWEEN - 1) for width in widths) + right


def _fitted(widths: Sequence[int], most: int) -> list[int]:
    """The widths of the columns of a table of at most `most` cells: the widest ones are cut to one width."""
    kept = most - _BETWEEN * len(widths) - 1
    longest = next(
        (
            width
            for width in range(max(widths, default=1), 1, -1)
            if sum(min(width, own) for own in widths) <= kept
        ),
        1,
    )
    return [min(longest, max(own, 1)) for own in widths]


def _folded(text: str, width: int) -> Iterator[str]:
    """The text in lines of at most `width` cells, broken between words if possible."""
    for line in text.split("\n"):
        rest = line
        while cells(rest) > width:
            end, used = 0, 0
            while end < len(rest) and used + cells(rest[end]) <= width:
                used += cells(rest[end])
                end += 1
            end = max(end, 1)
            blank = rest.rfind(" ", 1, end + 1)
            cut = blank if blank > 0 else end
            yield rest[:cut]
            rest = rest[cut:].removeprefix(" ")
        yield rest
