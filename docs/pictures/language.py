"""Draws what the queries of docs/language.md match on the farm stream: `make pictures`.

The page is the source: behind each block of CEQL that stands before a picture, the picture. Figure 1 of "A
Second-Order Approach to Complex Event Recognition" gives types and values; places and times are added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

import pyarrow as pa

import estero
from estero.language.syntax.parser import parse_query
from estero.language.tree.selection import label_types
from estero.markup.colours import PALETTE
from estero.plots.picture import FAINT, GRID, INK, SHADE
from estero.reference.queries import ComplexEvent

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "language.md"

FARM: Final = pa.table(
    {
        "type": list("THHTHTHHTH"),
        "value": [-2, 30, 20, -1, 27, 2, 45, 50, -2, 65],
        "place": list("nnssnsssnn"),
        "time": [datetime(2025, 6, 20, 6, tzinfo=UTC) + timedelta(minutes=10 * n) for n in range(10)],
    }
)
"""Temperatures (T, in °C) and humidities (H, in %), every ten minutes from 6:00, north and south."""

_BLOCK: Final = re.compile(
    r"^```sql\n([^`]*)^```\n+!\[(.*?)\]\((pictures/language/[\w-]+\.svg)\)$", re.MULTILINE | re.DOTALL
)
_CODE: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COLUMN, _ROW, _TOP, _SIDE, _MOST = 62, 22, 14, 8, 8


@dataclass(frozen=True)
class Shown:
    """One query of the page, what its picture is called, and where it is."""

    text: str
    caption: str
    file: Path


def shown_queries() -> list[Shown]:
    """The queries of the page that have a picture."""
    blocks = _BLOCK.findall(_page())
    return [Shown(text.strip(), caption, PAGE.parent / target) for text, caption, target in blocks]


def own_predicates() -> dict[str, Callable[..., bool]]:
    """The predicates that the page defines, registered as its readers would, by name."""
    defined: dict[str, Any] = {}
    for code in _CODE.findall(_page()):
        if "@estero.predicate" in code:
            exec(code, {"estero": estero, "positions": answer_positions}, defined)  # noqa: S102  (our own page)
    return {name: value for name, value in defined.items() if callable(value)}


def answer_positions(text: str) -> list[tuple[int, ...]]:
    """The marked positions of each complex event, as `positions` of the page says them."""
    return [tuple(sorted(match.support)) for match in answer(text)]


def answer(text: str) -> list[ComplexEvent]:
    """What a query finds on the farm stream, in order of end, start and events."""
    events = estero.query(text).run(FARM, type="type", time="time")
    matches = [
        ComplexEvent(
            match.start,
            match.end,
            frozenset((label, frozenset(marked)) for label, marked in match.positions.items() if marked),
        )
        for match in events
    ]
    return in_order(matches)


def _page() -> str:
    return PAGE.read_text(encoding="utf-8")


def in_order(matches: Iterable[ComplexEvent]) -> list[ComplexEvent]:
    """Complex events as pictures list them."""
    return sorted(matches, key=lambda match: (match.end, match.start, sorted(match.support), str(match)))


def caption(matches: Sequence[ComplexEvent]) -> str:
    """What a picture shows, for those who do not see it."""
    rows = "; ".join(_said(match) for match in matches[:_MOST])
    more = f"; and {len(matches) - _MOST} more" if len(matches) > _MOST else ""
    return f"{len(matches)} complex event{'' if len(matches) == 1 else 's'}: {rows}{more}"


def _said(match: ComplexEvent) -> str:
    return " ".join(map(str, sorted(match.support))) or f"nothing marked, {match.start} to {match.end}"


def drawn(text: str, matches: Sequence[ComplexEvent]) -> str:
    """The picture as SVG: the stream, and a row of marks for each complex event."""
    lines = [
        name for name, word in (("place", r"\bplace\b"), ("time", r"MINUTES?\b")) if re.search(word, text)
    ]
    head = _TOP + 36 + 15 * len(lines)
    shown = matches[:_MOST]
    more = len(matches) > _MOST
    width = 2 * _SIDE + FARM.num_rows * _COLUMN
    height = head + 8 + _ROW * (len(shown) + more) + 6
    labels = list(label_types(parse_query(text).pattern))
    rows = [_row(match, head + 8 + _ROW * place + _ROW // 2, labels) for place, match in enumerate(shown)]
    if more:
        rows.append(
            _text(_SIDE + 4, height - 13, f"and {len(matches) - _MOST} more", FAINT, 11, anchor="start")
        )
    size = f'width="{width}" height="{height}" font-family="DejaVu Sans, Verdana, sans-serif"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size}>',
            f"<title>{escape(caption(matches))}</title>",
            f'<rect width="{width}" height="{height}" fill="white"/>',
            *_stream(lines, head),
            *rows,
            "</svg>\n",
        ]
    )


def _stream(lines: Sequence[str], head: int) -> list[str]:
    pieces = []
    for place, event in enumerate(FARM.to_pylist()):
        left, middle = _SIDE + place * _COLUMN, _middle(place)
        pieces.append(
            f'<rect x="{left + 3}" y="{_TOP + 3}" width="{_COLUMN - 6}" height="{head - _TOP - 3}" rx="6" '
            f'fill="{SHADE}" stroke="{GRID}"/>'
        )
        pieces.append(_text(middle, _TOP - 2, str(place), FAINT, 10))
        pieces.append(_text(middle, _TOP + 17, event["type"], INK, 13, weight="bold"))
        pieces.append(_text(middle, _TOP + 31, _value(event), INK, 11))
        for line, name in enumerate(lines):
            shown = (
                f"{event['time']:%H:%M}" if name == "time" else {"n": "north", "s": "south"}[event["place"]]
            )
            pieces.append(_text(middle, _TOP + 46 + 15 * line, shown, FAINT, 10))
    return pieces


def _value(event: dict[str, object]) -> str:
    return f"{event['value']} °C".replace("-", "−") if event["type"] == "T" else f"{event['value']} %"


def _row(match: ComplexEvent, height: int, labels: list[str]) -> str:
    line = (
        f'<line x1="{_middle(match.start) - 24}" x2="{_middle(match.end) + 24}" y1="{height}" y2="{height}" '
        f'stroke="{FAINT}" stroke-width="1.5"/>'
    )
    return line + "".join(_mark(match, place, height, labels) for place in sorted(match.support))


def _mark(match: ComplexEvent, place: int, height: int, labels: list[str]) -> str:
    """A pill with the labels of one event; the type alone is named where nothing else marks it."""
    given = [label for label in labels if any(label == name and place in at for name, at in match.labels)]
    own = FARM["type"][place].as_py()
    named = [label for label in given if label != own] or given
    color = PALETTE[labels.index(named[0]) % len(PALETTE)]
    left = _middle(place) - 24
    pill = f'<rect x="{left}" y="{height - 8}" width="48" height="16" rx="8" fill="{color}"/>'
    return pill + _text(_middle(place), height + 4, " ".join(named), "white", 10, weight="bold")


def _middle(place: int) -> int:
    return _SIDE + place * _COLUMN + _COLUMN // 2


def _text(
    x: int, y: int, text: str, color: str, size: int, *, weight: str = "normal", anchor: str = "middle"
) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


def main() -> None:
    """Writes every picture of the page, and the text that stands for it."""
    page = _page()
    own_predicates()
    for shown in shown_queries():
        matches = answer(shown.text)
        shown.file.parent.mkdir(exist_ok=True)
        shown.file.write_text(drawn(shown.text, matches), encoding="utf-8")
        target = shown.file.relative_to(PAGE.parent).as_posix()
        page = page.replace(f"![{shown.caption}]({target})", f"![{caption(matches)}]({target})")
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
