"""Complex events under the stream that they are in, as text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import pyarrow as pa

from estero.events.scan import Scan
from estero.testing.ways import Shown

MOST_EVENTS = 30
"""The longest stream that is shown in full; for longer ones, only marked events are shown."""


def picture(scan: Scan, rows: Sequence[tuple[str, Shown]]) -> str:
    """A column for each event of a table, and a row for each complex event, with its labels under its events.

    `rows` are complex events, each with a word to put before it. Above them are the positions, the types and,
    if there are any, the times of the events.
    """
    events: pa.Table = scan.events
    kind, time = scan.layout.type, scan.layout.time
    marked = {place for _, row in rows for _, places in row.marks for place in places}
    shown = sorted(marked) if events.num_rows > MOST_EVENTS else list(range(events.num_rows))
    lines = [["position", *map(str, shown)], ["type", *(str(events[kind][place]) for place in shown)]]
    if time is not None:
        lines.append(["time", *(_time(events[time][place]) for place in shown)])
    for word, (marks, _) in rows:
        if not marks:
            continue
        labels = {place: " ".join(label for label, places in marks if place in places) for place in shown}
        lines.append([word, *labels.values()])
    widths = [max(map(len, column)) for column in zip_longest(*lines, fillvalue="")]
    padded = (
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def _time(value: pa.Scalar) -> str:
    """A time in the short form; a number of ticks unchanged."""
    text = str(value)
    return text.removeprefix("1970-01-01 ")
