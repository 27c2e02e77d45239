"""Tables as notebooks show them: names with types, numbers at the right, times without repeated dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from estero.markup.html import Html, element, text

MOST_COLUMNS: Final = 40
"""The most columns that are shown."""
_NUMBER: Final = re.compile(r"[iu]\d+|f\d+|decimal.*|duration.*")
_MOMENT: Final = re.compile(r"(-?\d{1,6}-\d\d-\d\d)[ T](\d\d:\d\d(?::[\d.]+)?)(Z|[+-][\d:]+)?")
_FRACTION: Final = re.compile(r"\.(\d+?)(?:000)*(?!\d)")


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column: its name and type; for a label, the class that gives it its colour.

    Neighbours with the same `group` stand below it, with a line in front of the first one.
    """

    name: str
    kind: str = ""
    label: str | None = None
    group: Column | None = None
    is_number: bool = False
    """Whether its cells stand at the right though nothing is said of its type."""

    @property
    def style(self) -> str | None:
        """The class of its cells."""
        if self.kind.startswith("datetime"):
            return "time"
        return "number" if self.is_number or _NUMBER.fullmatch(self.kind) else None

    def head(self, *, rows: int | None = None, columns: int | None = None, style: str | None = None) -> Html:
        """The cell of a heading, which spans this number of rows and columns."""
        name = self.name if self.label is None else element("span", self.name, class_=self.label)
        kind = element("small", self.kind) if self.kind else ""
        style = style or (self.style if columns is None else None)
        scope = "col" if columns is None else "colgroup"
        return element("th", name, kind, scope=scope, class_=style, rowspan=rows, colspan=columns)


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row; `goes_on` if it belongs to the row above."""

    cells: Sequence[object]
    goes_on: bool = False


def table(columns: Sequence[Column], rows: Iterable[Row | Sequence[object]], *, named: str) -> Html:
    """A table that scrolls sideways; `named` says to those who cannot see it what it shows."""
    left_out = len(columns) - MOST_COLUMNS
    kept = columns[:MOST_COLUMNS]
    styles = [_joined_styles(column.style, "first" * begins) for column, begins in _begun(kept)]
    body = []
    for row in rows:
        cells, goes_on = (row.cells, row.goes_on) if isinstance(row, Row) else (row, False)
        shown = [
            element("td", null() if cell is None else cell, class_=style)
            for cell, style in zip(cells, styles, strict=False)
        ]
        shown += [element("td", "…", class_="quiet")] if left_out > 0 else []
        body.append(element("tr", *shown, class_="same" if goes_on else None))
    whole = element("table", element("thead", *_heads(kept, styles, left_out)), element("tbody", *body))
    return element("div", whole, class_="scroll", tabindex=0, role="group", aria_label=named)


def _begun(columns: Sequence[Column]) -> Iterator[tuple[Column, bool]]:
    """The columns, and whether a group begins or ends in front of them."""
    before: Column | None = None
    for column in columns:
        yield column, column.group != before
        before = column.group


def _heads(columns: Sequence[Column], styles: Sequence[str | None], left_out: int) -> list[Html]:
    """The rows of the head: two where columns stand in groups."""
    more = Column(f"… {left_out:,} more")
    if all(column.group is None for column in columns):
        cells = [column.head() for column in columns]
        return [element("tr", *cells, *([more.head()] if left_out > 0 else []))]
    upper: list[Html] = []
    lower: list[Html] = []
    for group, inside in groupby(zip(columns, styles, strict=True), key=lambda pair: pair[0].group):
        pairs = list(inside)
        if group is None:
            upper += [column.head(rows=2, style=style) for column, style in pairs]
        else:
            upper.append(group.head(columns=len(pairs), style="first"))
            lower += [column.head(style=style) for column, style in pairs]
    upper += [more.head(rows=2)] if left_out > 0 else []
    return [element("tr", *upper, class_="groups"), element("tr", *lower)]


def _joined_styles(*styles: str | None) -> str | None:
    return " ".join(filter(None, styles)) or None


def null() -> Html:
    """A missing value."""
    return element("span", "null", class_="quiet")


def named_values(rows: Iterable[tuple[object, object]], *, named: str) -> Html:
    """A table of two columns, a name and what it has."""
    body = [element("tr", element("th", name, scope="row"), element("td", value)) for name, value in rows]
    whole = element("table", element("tbody", *body), class_="names")
    return element("div", whole, class_="scroll", tabindex=0, role="group", aria_label=named)


class Dates:
    """Times of one column from top to bottom: date and offset stand where they differ from those before."""

    def __init__(self) -> None:
        self._date, self._offset = "", ""

    def shown(self, time: object, like: object = None) -> Html:
        """The time, without the date and the offset of the time before; or of `like`, if that is given."""
        if time is None:
            return null()
        moment = _MOMENT.fullmatch(str(time))
        if moment is None:
            return text(time)
        date, clock, offset = (part or "" for part in moment.groups())
        beside = None if like is None else _MOMENT.fullmatch(str(like))
        known = (self._date, self._offset) if beside is None else (beside[1], beside[3] or "")
        self._date, self._offset = date, offset
        said = "" if date == known[0] else f"{date} "
        said += _FRACTION.sub(_thousandths, clock)
        said += "" if offset == known[1] else offset
        return element("span", said, title=time if (date, offset) == known else None)


def _thousandths(fraction: re.Match[str]) -> str:
    """A fraction of a second without the thousandths, millionths and billionths that are not there."""
    return "" if fraction[1] == "000" else f".{fraction[1]}"


def share(part: float | None) -> Html:
    """A bar as long as a share of one, and the share in percent."""
    if part is None:
        return null()
    width = 100 * min(max(part, 0.0), 1.0)
    bar = element("span", element("span", style=f"width:{width:.1f}%"), class_="share", aria_hidden="true")
    return Html(f"{bar}{element('span', f'{part:.1%}', class_='percent')}")
