"""A short table of an answer for notebooks, as HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from estero.answers.complex_event import ComplexEvent, Events
from estero.errors import legible

EVENTS_PER_CELL = 4


def preview(complex_events: Iterable[ComplexEvent], *, shown: int) -> str:
    """The first `shown` complex events as an HTML table; it reads one more to say whether there are more."""
    first: list[ComplexEvent] = []
    more = False
    for each in complex_events:
        if len(first) == shown:
            more = True
            break
        first.append(each)
    if not first:
        return "<p>No complex events.</p>"
    header = map(legible, [*first[0].places_shown(), *first[0].labels])
    rows = "".join(_row(each) for each in first)
    note = f"<p>The first {shown}; there are more.</p>" if more else ""
    return f"<table><thead>{_cells(header, 'th')}</thead><tbody>{rows}</tbody></table>{note}"


def _row(each: ComplexEvent) -> str:
    values = [legible(str(value)) for value in each.places_shown().values()]
    return _cells([*values, *(_events(each.events_shown(label)) for label in each.labels)], "td")


def _events(events: Events) -> str:
    lines = [_event(event) for event in events[:EVENTS_PER_CELL]]
    if len(events) > EVENTS_PER_CELL:
        lines.append(f"… {len(events) - EVENTS_PER_CELL} more")
    return "\n".join(lines)


def _event(event: dict[str, Any]) -> str:
    """The position, which is the last value, then the attributes."""
    *attributes, (_, position) = event.items()
    return ", ".join([f"#{position}", *(legible(f"{name}={value}") for name, value in attributes)])


def _cells(texts: Iterable[str], tag: str) -> str:
    cells = "".join(f"<{tag}>{escape(text).replace(chr(10), '<br>')}</{tag}>" for text in texts)
    return f"<tr>{cells}</tr>"
