"""Tables as notebooks show them: names with types, numbers at the right, times without repeated dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from estero.markup.colours import colour_class
from estero.markup.html import Html, element, text

MOST_COLUMNS: Final = 40
"""The most columns that are shown."""
_NUMBER: Final = re.compile(r"[iu]\d+|f\d+|decimal.*|duration.*")
_MOMENT: Final = re.compile(r"(-?\d{1,6}-\d\d-\d\d)[ T](\d\d:\d\d.*)")


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column: its name and type; of a label also its place in the palette."""

    name: str
    kind: str = ""
    is_label: bool = False
    colour: int | None = None

    @property
    def style(self) -> str | None:
        """The class of its cells."""
        if self.kind.startswith("datetime"):
            return "time"
        return "number" if _NUMBER.fullmatch(self.kind) else None

    def head(self) -> Html:
        """The cell at the top."""
        name: object = self.name
        if self.is_label:
            name = element("span", self.name, class_=colour_class(self.colour))
        return element("th", name, element("small", self.kind), scope="col", class_=self.style)


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row; `goes_on` if it belongs to the row above."""

    cells: Sequence[object]
    goes_on: bool = False


def table(columns: Sequence[Column], rows: Iterable[Row | Sequence[object]], *, named: str) -> Html:
    """A table that scrolls sideways; `named` says to those who cannot see it what it shows."""
    left_out = len(columns) - MOST_COLUMNS
    kept = columns[:MOST_COLUMNS]
    more = [element("th", f"… {left_out:,} more", class_="quiet", scope="col")] if left_out > 0 else []
    body = []
    for row in rows:
        cells, goes_on = (row.cells, row.goes_on) if isinstance(row, Row) else (row, False)
        shown = [_cell(cell, column) for cell, column in zip(cells, kept, strict=False)]
        shown += [element("td", "…", class_="quiet")] * bool(more)
        body.append(element("tr", *shown, class_="same" if goes_on else None))
    head = element("thead", element("tr", *(column.head() for column in kept), *more))
    whole = element("table", head, element("tbody", *body))
    return element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=named)


def _cell(cell: object, column: Column) -> Html:
    if isinstance(cell, Html) and cell.startswith("<td"):
        return cell
    return element("td", null() if cell is None else cell, class_=column.style)


def null() -> Html:
    """A missing value."""
    return element("span", "null", class_="quiet")


def named_values(rows: Iterable[tuple[object, object]], *, named: str) -> Html:
    """A table of two columns, a name and what it has."""
    body = [element("tr", element("th", name, scope="row"), element("td", value)) for name, value in rows]
    whole = element("table", element("tbody", *body), class_="names")
    return element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=named)


class Dates:
    """Times of one column from top to bottom: a date stands where it differs from the one before."""

    def __init__(self) -> None:
        self._date = ""

    def shown(self, time: object, like: object = None) -> Html:
        """The time; without its date if that is the date of the time before, or of `like`."""
        if time is None:
            return null()
        moment = _MOMENT.fullmatch(str(time))
        if moment is None:
            return text(time)
        date, clock = moment.groups()
        beside = None if like is None else _MOMENT.fullmatch(str(like))
        known = self._date if beside is None else beside[1]
        self._date = date
        said = text(clock) if date == known else Html(f"{text(date)} {text(clock)}")
        return element("span", said, title=time if date == known else None)


def share(part: float | None) -> Html:
    """A bar as long as a share of one, and the share in percent."""
    if part is None:
        return null()
    width = 100 * min(max(part, 0.0), 1.0)
    bar = element("span", element("span", style=f"width:{width:.1f}%"), class_="share", aria_hidden="true")
    return Html(f"{bar}{part:.1%}")
