"""A numeric attribute along the stream, with the marked events of complex events on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.arguments import checked
from estero.plots.axes import draw_caption, draw_frame, draw_legend, draw_marks, draw_scale
from estero.plots.picture import FAINT, INK, WIDTH, Picture, drawable, styled
from estero.plots.timeline import ShownAnswer, ShownEvent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Values = Callable[[str, int, int], pa.Table]
"""Attribute, first and last position → the table of `estero.recognize.attribute_values`."""

MOST_PANELS = 6
_POINTS = 4_000
"""The number of points above which a line is drawn by the extremes of each of half as many parts."""
_LINES = ("-", "--", ":", "-.")


@dataclass(frozen=True, slots=True)
class _Panel:
    """One partition: its name, its events (rows of the table, ascending) and its complex events."""

    name: str
    rows: NDArray[np.int64]
    matches: tuple[ShownEvent, ...]


@checked
def plot_values(
    answer: ShownAnswer,
    y: str,
    values: Values,
    *,
    clock: pa.DataType | None = None,
    limit: int = 20,
    title: str | None = None,
) -> Picture:
    """The attribute `y` as a line along the stream, and the marked events of the first complex events on it.

    Each partition has a panel, each type of the query that has the attribute a line. A thin line joins the
    marked events that one complex event has on the same line; an event with several labels is drawn under
    the last of them. At most `limit` complex events in six partitions are drawn, with a little of the stream
    before and after, and the picture says how many are not. `clock` is the type of times, None where there
    are only positions.

    Raises ValueError for an attribute that is missing or not numeric.
    """
    from matplotlib.figure import Figure

    limit = drawable(limit)
    shown = list(islice(iter(answer), limit + 1))
    drawn = shown[:limit]
    low = min((complex_event.start for complex_event in drawn), default=0)
    high = max((complex_event.end for complex_event in drawn), default=0)
    around = max(10, (high - low) // 12)
    table = values(y, max(0, low - around), high + around)
    panels = _panels(drawn, table)
    count = sum(len(panel.matches) for panel in panels)
    hidden = answer.count() - count if len(shown) > count else 0
    labels = list(dict.fromkeys(label for complex_event in drawn for label in complex_event.labels))
    with styled():
        figure = Figure(figsize=(WIDTH, 0.8 + 2.1 * max(1, len(panels))), layout="constrained")
        all_axes = figure.subplots(max(1, len(panels)), sharex=True, squeeze=False)[:, 0]
        places = _places(table, clock)
        for axes, panel in zip(all_axes, panels, strict=False):
            _draw(axes, panel, table, places, labels)
            axes.set_ylabel(f"{y}, {panel.name}" if panel.name else y, color=INK)
            axes.margins(x=0.02, y=0.12)
            draw_frame(axes, grid="both")
        draw_scale(all_axes[-1], places, dates=_is_date(clock), unit="position" if clock is None else "time")
        draw_caption(all_axes[0], title, count, hidden)
        lines = {str(line.get_label()): line for axes in all_axes for line in axes.get_lines()}
        draw_legend(all_axes[0], {label: line for label, line in lines.items() if label in labels})
    return Picture(figure)


def _panels(drawn: Sequence[ShownEvent], table: pa.Table) -> list[_Panel]:
    """The partitions of the complex events, in the order of the answer."""
    keys = [name for name in table.column_names if name.startswith("key")]
    rows = np.arange(table.num_rows)
    if not keys:
        return [_Panel("", rows, tuple(drawn))] if drawn else []
    groups = (
        table.select(keys).append_column("row", pa.array(rows)).group_by(keys).aggregate([("row", "list")])
    )
    group_of = np.zeros(table.num_rows, np.int64)
    lists = [np.asarray(group, np.int64) for group in groups["row_list"].to_pylist()]
    for number, members in enumerate(lists):
        group_of[members] = number
    positions = table["position"].to_numpy()
    together: dict[int, list[ShownEvent]] = {}
    for complex_event in drawn:
        together.setdefault(int(group_of[np.searchsorted(positions, complex_event.end)]), []).append(
            complex_event
        )
    return [
        _Panel(", ".join(map(str, matches[0].partition.values())), np.sort(lists[number]), tuple(matches))
        for number, matches in islice(together.items(), MOST_PANELS)
    ]


def _places(table: pa.Table, clock: Any) -> Floats:
    """The positions of events on the axis: days since 1970, ticks, or positions in the stream."""
    places: Floats = table["position" if clock is None else "time"].to_numpy().astype(np.float64)
    if _is_date(clock):
        places /= {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[clock.unit] * 86_400
    return places


def _is_date(clock: Any) -> bool:
    return clock is not None and bool(pa.types.is_timestamp(clock))


def _draw(axes: Axes, panel: _Panel, table: pa.Table, places: Floats, labels: Sequence[str]) -> None:
    positions = table["position"].to_numpy()[panel.rows]
    y = table["value"].to_numpy(zero_copy_only=False)[panel.rows].astype(np.float64)
    x = places[panel.rows]
    types = table["type"].to_numpy()[panel.rows]
    number = 0
    for kind in np.unique(types):
        here = (types == kind) & ~np.isnan(y)
        if here.any():
            line = _LINES[number % len(_LINES)]
            axes.plot(*_thinned(x[here], y[here]), color=FAINT, lw=0.9, ls=line, zorder=1)
            number += 1
    points: dict[str, list[int]] = {label: [] for label in labels}
    for complex_event in panel.matches:
        marked = {
            position: label for label in complex_event.labels for position in complex_event.positions[label]
        }
        rows = _rows_of(positions, sorted(marked))
        known = [row for row in rows if not np.isnan(y[row])]
        for kind in np.unique(types[known]):
            joined = [row for row in known if types[row] == kind]
            axes.plot(x[joined], y[joined], color=INK, lw=0.8, alpha=0.55, zorder=2)
        for row in known:
            points[marked[int(positions[row])]].append(row)
    for i, label in enumerate(labels):
        if points[label]:
            draw_marks(axes, x[points[label]], y[points[label]], number=i, label=label, size=6)


def _rows_of(positions: NDArray[np.int64], wanted: Sequence[int]) -> list[int]:
    """The rows of those of these positions that occur."""
    rows = np.searchsorted(positions, wanted)
    return [
        row
        for row, p in zip(rows.tolist(), wanted, strict=True)
        if row < len(positions) and positions[row] == p
    ]


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """A line that looks the same, with few points: both extremes of each part."""
    if len(x) <= _POINTS:
        return x, y
    parts = np.array_split(np.arange(len(x)), _POINTS // 2)
    kept = np.unique([place for part in parts for place in (part[y[part].argmin()], part[y[part].argmax()])])
    return x[kept], y[kept]
