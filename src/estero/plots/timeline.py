"""The timeline of an answer: one bar per complex event, its marked events in the colours of their labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

from estero.arguments import checked
from estero.errors import legible
from estero.markup.colours import most_specific
from estero.plots.axes import draw_caption, draw_frame, draw_legend, draw_marks, draw_scale
from estero.plots.picture import BAR, SHADE, WIDTH, Picture, drawable, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 9.0
"""The largest total height of the lanes, in inches."""


class ShownEvent(Protocol):
    """The part of a complex event that a picture reads; those of an `estero.Answer` have it."""

    start: int
    end: int

    @property
    def start_time(self) -> Any:
        """The time at `start`, or None."""

    @property
    def end_time(self) -> Any:
        """The time at `end`, or None."""

    @property
    def partition(self) -> Mapping[str, Any]:
        """The values of the partition columns."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The selected labels."""

    @property
    def positions(self) -> Mapping[str, Sequence[int]]:
        """The positions of the events under each label."""

    def __getitem__(self, label: str) -> list[dict[str, Any]]:
        """The events under a label, in the same order; the last value of each is its position."""


class ShownAnswer(Protocol):
    """The part of an answer that a picture reads."""

    def __iter__(self) -> Iterator[ShownEvent]: ...

    def count(self) -> int:
        """The number of complex events."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A complex event as it is drawn: its partition, its ends and its marked events on the axis."""

    key: str
    first: float
    last: float
    marks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class _Timeline:
    """Rows with their lanes (0 at the top), the partitions with their lanes, the labels drawn."""

    rows: tuple[tuple[int, _Row], ...]
    groups: tuple[tuple[str, int, int], ...]
    labels: tuple[str, ...]
    dates: bool
    unit: str

    @property
    def depth(self) -> int:
        """The number of lanes."""
        return max((stop for _, _, stop in self.groups), default=1)


@checked
def plot_answer(
    answer: ShownAnswer, *, limit: int = 200, axis: str | None = None, title: str | None = None
) -> Picture:
    """A timeline: one bar per complex event from start to end, and its marked events in the label's colour.

    Complex events that do not overlap share a lane; each partition has lanes of its own. At most
    `limit` are drawn, and the picture says how many are not. `axis` is "time" or "position", by default
    time if the time of every drawn event is known, because it is among the selected attributes or the event
    is a first or a last one. An event with several labels is drawn under the one that marks the fewest
    events. Raises ValueError for another axis, and for time where it is not known.
    """
    from matplotlib.figure import Figure

    if axis not in (None, "time", "position"):
        raise ValueError(f"axis is 'time' or 'position', not {axis!r}")
    limit = drawable(limit)
    shown = list(islice(iter(answer), limit + 1))
    hidden = answer.count() - limit if len(shown) > limit else 0
    timeline = _timeline(shown[:limit], axis)
    lane_height = min(0.3, HEIGHT / timeline.depth)
    height = max(timeline.depth * lane_height, 0.4)
    with styled():
        figure = Figure(figsize=(WIDTH, height + 0.95), layout="constrained")
        axes = figure.add_subplot()
        _draw_rows(axes, timeline, lane_height)
        _draw_frame(axes, timeline, lane_height)
        draw_caption(axes, title, len(timeline.rows), hidden)
        handles, labels = axes.get_legend_handles_labels()
        legend = draw_legend(axes, dict(zip(labels, handles, strict=True)))
        for handle in legend.get_lines() if legend is not None else ():
            handle.set_markersize(6.5)
    return Picture(figure)


def _timeline(shown: Sequence[ShownEvent], axis: str | None) -> _Timeline:
    marked = [_marked(complex_event) for complex_event in shown]
    times = None if axis == "position" else _times(shown)
    if axis == "time" and times is None:
        raise ValueError(
            "the time of some events is not known: select the time column, or use axis='position'"
        )
    place: Mapping[int, float] = times or {}
    frequency = Counter(label for events in marked for labels in events.values() for label in labels)
    rows = [
        _Row(
            ", ".join(map(str, complex_event.partition.values())),
            place.get(complex_event.start, complex_event.start),
            place.get(complex_event.end, complex_event.end),
            tuple((place.get(p, p), most_specific(labels, frequency)) for p, labels in events.items()),
        )
        for complex_event, events in zip(shown, marked, strict=True)
    ]
    used = {label for row in rows for _, label in row.marks}
    labels = tuple(label for label in (shown[0].labels if shown else ()) if label in used)
    lanes, groups = _lanes(rows)
    dates = times is not None and isinstance(shown[0].end_time, datetime)
    return _Timeline(lanes, groups, labels, dates, "position" if times is None else "time")


def _marked(complex_event: ShownEvent) -> dict[int, list[str]]:
    """The labels of each marked position, in the order of the selection."""
    marked: dict[int, list[str]] = {}
    for label, positions in complex_event.positions.items():
        for position in positions:
            marked.setdefault(position, []).append(label)
    return marked


def _times(shown: Sequence[ShownEvent]) -> dict[int, float] | None:
    """The time of every drawn position as a number, or None if one is not known.

    The time column is an attribute that agrees with the known times wherever both are there.
    """
    ends = {
        position: _number(time)
        for complex_event in shown
        for position, time in (
            (complex_event.start, complex_event.start_time),
            (complex_event.end, complex_event.end_time),
        )
    }
    events = {
        position: event
        for complex_event in shown
        for label, positions in complex_event.positions.items()
        for position, event in zip(positions, complex_event[label], strict=True)
    }
    names = dict.fromkeys(name for event in events.values() for name in list(event)[:-1])
    columns = [{}, *({p: _number(event.get(name)) for p, event in events.items()} for name in names)]
    for column in columns:
        times = column | ends
        known = {p: time for p, time in times.items() if time is not None}
        agrees = all(column.get(p, time) == time for p, time in ends.items())
        if agrees and len(known) == len(times) and events.keys() <= times.keys() and shown:
            return known
    return None


def _number(value: Any) -> float | None:
    """A time as a number on an axis: days since 1970 for timestamps (in UTC), ticks unchanged."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() / 86400
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _lanes(rows: Sequence[_Row]) -> tuple[tuple[tuple[int, _Row], ...], tuple[tuple[str, int, int], ...]]:
    """Each row with the first free lane of its partition, and the lanes of each partition."""
    span = max((row.last for row in rows), default=0) - min((row.first for row in rows), default=0)
    groups: list[tuple[str, int, int]] = []
    placed: list[tuple[int, _Row]] = []
    for key in dict.fromkeys(row.key for row in rows):
        top = groups[-1][2] if groups else 0
        ends: list[float] = []
        for row in sorted((row for row in rows if row.key == key), key=lambda row: (row.first, row.last)):
            free = (lane for lane, end in enumerate(ends) if end + span / 80 < row.first)
            lane = next(free, len(ends))
            ends[lane : lane + 1] = [row.last]
            placed.append((top + lane, row))
        groups.append((key, top, top + len(ends)))
    return tuple(placed), tuple(groups)


def _draw_rows(axes: Axes, timeline: _Timeline, lane_height: float) -> None:
    """Draws the bars, then the marked events on them, as large as lanes and neighbouring events allow."""
    size = max(3.0, min(7.5, 72 * lane_height * 0.36, _spacing([row for _, row in timeline.rows])))
    for lane, row in timeline.rows:
        axes.plot(
            [row.first, row.last], [lane, lane], color=BAR, lw=size * 0.55, solid_capstyle="round", zorder=2
        )
    for i, label in enumerate(timeline.labels):
        points = [(x, lane) for lane, row in timeline.rows for x, name in row.marks if name == label]
        draw_marks(axes, [x for x, _ in points], [y for _, y in points], number=i, label=label, size=size)


def _spacing(rows: Sequence[_Row]) -> float:
    """The space that a marked event has on its bar, in points: the median over the rows."""
    span = max((row.last for row in rows), default=0) - min((row.first for row in rows), default=0)
    spacings = [(row.last - row.first) / max(len(row.marks), 1) for row in rows]
    return median(spacings) / span * WIDTH * 72 if span else math.inf


def _draw_frame(axes: Axes, timeline: _Timeline, lane_height: float) -> None:
    """Draws the axis below and the partitions at the left, with every second one shaded."""
    axes.set_ylim(timeline.depth - 0.4, -0.6)
    axes.margins(x=0.02)
    places = [place for _, row in timeline.rows for place in (row.first, row.last)]
    draw_scale(axes, places, dates=timeline.dates, unit=timeline.unit)
    named = [group for group in timeline.groups if group[0]]
    for _, top, stop in named[::2] if len(named) > 1 else []:
        axes.axhspan(top - 0.5, stop - 0.5, color=SHADE, lw=0, zorder=0)
    ticks: dict[float, str] = {}
    for key, top, stop in named:
        middle = (top + stop - 1) / 2
        if not ticks or (middle - max(ticks)) * lane_height > 0.15:
            ticks[middle] = key
    axes.set_yticks(list(ticks), list(map(legible, ticks.values())))  # ticks are labelled anew when drawn
    draw_frame(axes, grid="x")
