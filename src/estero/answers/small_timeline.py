"""A complex event as a bar with its marked events, small enough for a cell of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.report import positions_in
from estero.markup.colours import LabelColours
from estero.markup.html import Html, element, empty_element

WIDTH: Final = 160
HEIGHT: Final = 18
_RADIUS: Final = 3.5
_TOO_SHORT: Final = 12
"""The ratio of the axis to the longest complex event above which they are too short to be seen well."""
_MOST_MARKS: Final = 1_000
"""The largest number of events of a label that are drawn; of more, that many at even distances."""

Ticks = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lane:
    """A complex event to be drawn: its ends and marked events, by position and by time.

    `times` has for each attribute that might be the time its values, label by label, none of them NULL.
    `span` are the times of both ends, None if the stream has no time.
    """

    ends: tuple[int, int]
    span: tuple[int, int] | None
    marks: Mapping[str, Ticks]
    times: Mapping[str, Mapping[str, Ticks]]

    @classmethod
    def of(
        cls, batch: pa.RecordBatch, row: int, labels: Mapping[str, int], clock: pa.DataType | None
    ) -> Lane:
        """The lane of a row of an answer; `labels` are its columns, `clock` is the type of its times."""
        start, end = (int(batch.column(column)[row].as_py()) for column in range(2))
        span = None
        if clock is not None:
            first, last = (_ticks(batch.column(column).slice(row, 1), clock) for column in (2, 3))
            span = None if first is None or last is None else (int(first[0]), int(last[0]))
        marks: dict[str, Ticks] = {}
        times: dict[str, dict[str, Ticks]] = {}
        for label, column in labels.items():
            events = _thinned(batch.column(column)[row].values)
            marks[label] = positions_in(events).to_numpy(zero_copy_only=False).astype(np.int64)
            for place, field in enumerate(list(events.type)[:-1] if span is not None else ()):
                ticks = _ticks(events.field(place), clock)
                if ticks is not None:
                    times.setdefault(field.name, {})[label] = ticks
        return cls((start, end), span, marks, times)

    def marked(self) -> dict[int, list[str]]:
        """The labels of each marked position."""
        labels: dict[int, list[str]] = {}
        for label, positions in self.marks.items():
            for position in positions.tolist():
                labels.setdefault(position, []).append(label)
        return labels

    def has_times_in(self, name: str) -> bool:
        """Whether an attribute is the time of all marked events, as far as the times of the ends can tell."""
        values = self.times.get(name, {})
        if self.span is None or any(len(self.marks[label]) and label not in values for label in self.marks):
            return False
        return all(
            bool(np.all(times[self.marks[label] == position] == time))
            for label, times in values.items()
            for position, time in zip(self.ends, self.span, strict=True)
        )

    def span_on(self, axis: str | None) -> tuple[int, int]:
        """Both ends on the axis."""
        return self.ends if axis is None or self.span is None else self.span

    def places(self, axis: str | None) -> Iterator[tuple[str, Ticks, Ticks]]:
        """The marked events of each label: their positions in the stream, and their positions on the axis."""
        for label, positions in self.marks.items():
            yield label, positions, positions if axis is None else self.times[axis].get(label, positions)


@dataclass(frozen=True, slots=True)
class SmallTimeline:
    """An axis for some complex events.

    It shows time if an attribute is known to be the time of all events, and positions otherwise. It runs from
    the first start to the last end; if complex events are too short to be seen on that, each is drawn from
    its own start on an axis as long as the longest.
    """

    axis: str | None
    first: int | None
    """The beginning of the axis; None if it begins at the start of each complex event."""
    length: int

    @classmethod
    def of(cls, lanes: Sequence[Lane]) -> SmallTimeline:
        """The axis for these complex events."""
        names = dict.fromkeys(name for lane in lanes for name in lane.times)
        axis = next((name for name in names if all(lane.has_times_in(name) for lane in lanes)), None)
        ends = [lane.span_on(axis) for lane in lanes]
        first, last = min(first for first, _ in ends), max(last for _, last in ends)
        longest = max(last - first for first, last in ends)
        if longest * _TOO_SHORT < last - first:
            return cls(axis, None, longest)
        return cls(axis, first, last - first)

    @property
    def said(self) -> str:
        """A description of the axis."""
        what = "position" if self.axis is None else "time"
        return what if self.first is not None else f"{what} since start"

    def drawn(self, lane: Lane, colours: LabelColours) -> Html:
        """The complex event as SVG: a bar, and a dot for each marked event in the colour of its label."""
        span = lane.span_on(self.axis)
        first = span[0] if self.first is None else self.first
        start, end = (self._place(tick - first) for tick in span)
        marked = lane.marked()
        dots: dict[tuple[float, str], Html] = {}
        middle = HEIGHT / 2
        for label, positions, places in lane.places(self.axis):
            for position, place in zip(positions.tolist(), places.tolist(), strict=True):
                x = round(self._place(place - first) * 2) / 2
                if (x, label) not in dots and colours.shown_under(marked[position]) == label:
                    style = colours.style(label)
                    dots[x, label] = empty_element("circle", cx=x, cy=middle, r=_RADIUS, class_=style)
        length = round(max(2.0, end - start), 1)
        return element(
            "svg",
            empty_element("rect", x=0, y=middle - 1, width=WIDTH, height=2, rx=1),
            empty_element("rect", x=start, y=middle - 2.5, width=length, height=5, rx=2, class_="span"),
            *dots.values(),
            class_="timeline",
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            width=WIDTH,
            height=HEIGHT,
            role="img",
            aria_label=f"from {lane.ends[0]} to {lane.ends[1]}",
        )

    def _place(self, ticks: int) -> float:
        """The distance from the left edge of something this far after the beginning."""
        share = ticks / self.length if self.length else 0.5
        return round(_RADIUS + 1 + share * (WIDTH - 2 * _RADIUS - 2), 1)


def _thinned(events: pa.StructArray) -> pa.StructArray:
    """All events, or some of them at even distances, including the first and the last."""
    if len(events) <= _MOST_MARKS:
        return events
    return events.take(pa.array(np.linspace(0, len(events) - 1, _MOST_MARKS).astype(np.int64)))


def _ticks(values: pa.Array, clock: pa.DataType | None) -> Ticks | None:
    """The values as times of this type, in ticks; None for values of another kind, and if one is NULL."""
    kind = values.type
    both_times = pa.types.is_timestamp(kind) and clock is not None and pa.types.is_timestamp(clock)
    if clock is None or values.null_count or not (both_times or kind == clock):
        return None
    if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind)):
        return None
    try:
        ticks: Ticks = values.cast(clock, safe=False).cast(pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # beyond the range of the other unit
        return None
    return ticks
