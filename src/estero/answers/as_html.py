"""Answers, complex events, rows and tables of Arrow as notebooks show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from estero.answers.answer_columns import AnswerColumns
from estero.answers.report import label_of
from estero.answers.shown_values import shown_values
from estero.answers.small_timeline import Lane, SmallTimeline
from estero.markup.colours import LabelColours
from estero.markup.html import Html, element, joined, text
from estero.markup.query_text import code
from estero.markup.style import shown
from estero.markup.tables import MOST_COLUMNS, Column, Dates, Row, named_values, null, share, table

_EVENTS_PER_CELL: Final = 4
"""The most events that a cell shows of a label."""
_EVENTS_ALONE: Final = 20
"""The most that are shown of a label where one complex event is shown."""
_STEPS: Final = 200
"""The most rows of a funnel that are shown."""
_ATTRIBUTES: Final = 12
"""The most attributes that are shown of an event."""

Place = tuple[pa.RecordBatch, int]
"""A batch of an answer and a row in it."""


def answer_html(schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, most: int, count: int | None) -> str:
    """The first `most` complex events as a table; one more is read to say whether there are more.

    `count` is how many there are, if that is known.
    """
    rows = list(islice(((batch, row) for batch in batches for row in range(batch.num_rows)), most + 1))
    if not rows:
        return shown(element("p", "No complex events."))
    more = len(rows) > most
    count = count if more else len(rows)
    number = "More than " + f"{most:,}" if count is None else f"{count:,}"
    said = element("p", element("b", number), f" complex event{'' if count == 1 else 's'}")
    if count is None:
        said = element("p", element("b", number), " complex events, not counted yet")
    return shown(said, _Answer.of(schema, rows[:most]).table(), _more(most, count) if more else "")


def complex_event_html(batch: pa.RecordBatch, row: int) -> str:
    """One complex event: where it is, its timeline, and the events under each label."""
    return shown(_Answer.of(batch.schema, [(batch, row)]).alone())


def rows_html(
    schema: pa.Schema, labels: Iterable[str], batches: Iterable[pa.RecordBatch], *, most: int
) -> str:
    """The first `most` marked events as a table, those of one complex event together.

    The columns are those of `RowsLayout`: the complex event, the label, and the position if there is one.
    """
    rows = _first(batches, most + 1)
    more, rows = len(rows) > most, rows[:most]
    has_position = schema.names[2:3] == ["position"]
    marked: dict[object, list[str]] = {}
    for number, row in enumerate(rows):
        marked.setdefault((row[0], row[2]) if has_position else number, []).append(row[1])
    colours = LabelColours.of(labels, list(marked.values()))
    body, before = [], None
    for row, cells in zip(rows, _cells(schema, rows), strict=True):
        goes_on = row[0] == before
        before = row[0]
        label = element("span", row[1], class_=colours.style(row[1]))
        body.append(Row([Html("") if goes_on else cells[0], label, *cells[2:]], goes_on=goes_on))
    return shown(table(_columns(schema), body, named="Marked events"), _more(most, None) if more else "")


def table_html(schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, most: int, count: int) -> str:
    """The first `most` of the `count` rows of a table."""
    rows = _first(batches, most)
    said = element("p", element("b", f"{count:,}"), f" row{'' if count == 1 else 's'}")
    body = table(_columns(schema), _cells(schema, rows), named="Table")
    return shown(said, body, _more(most, count) if count > most else "")


def funnel_html(schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of a funnel, with bars for shares; the values of a partition stand at its first step."""
    kept, cut = rows[:_STEPS], len(rows) - _STEPS
    body = []
    for row in kept:
        goes_on = row["step"] > 1
        keys = list(row)[: list(row).index("step")]
        cells: list[object] = [
            Html("") if goes_on else _value(row[name], schema.field(name).type) for name in keys
        ]
        cells += [f"{row['step']}", code(row["part"]), f"{row['starts']:,}", share(row["share"])]
        if "median_wait" in row:
            wait = row["median_wait"]
            cells.append(Html("") if wait is None else f"{wait:.3g}" if isinstance(wait, float) else wait)
        body.append(Row(cells, goes_on=goes_on and bool(keys)))
    columns = [Column(field.name, kind_of(field.type)) for field in schema]
    more = element("p", f"… {cut:,} more", class_="quiet") if cut > 0 else ""
    return shown(table(columns, body, named="Funnel"), more)


def kind_of(data_type: pa.DataType) -> str:
    """The name of a type, as Polars writes it.

    >>> kind_of(pa.int64()), kind_of(pa.list_(pa.struct([("a", pa.string()), ("b", pa.float32())])))
    ('i64', 'list[struct[2]]')
    """
    types = pa.types
    if types.is_dictionary(data_type):
        return kind_of(data_type.value_type)
    if types.is_list(data_type) or types.is_large_list(data_type) or types.is_fixed_size_list(data_type):
        return f"list[{kind_of(data_type.value_type)}]"
    if types.is_struct(data_type):
        return f"struct[{data_type.num_fields}]"
    if types.is_timestamp(data_type):
        zone = "" if data_type.tz is None else f", {data_type.tz}"
        return f"datetime[{data_type.unit.replace('us', 'μs')}{zone}]"
    if types.is_duration(data_type):
        return f"duration[{data_type.unit.replace('us', 'μs')}]"
    if types.is_decimal(data_type):
        return f"decimal[{data_type.precision},{data_type.scale}]"
    return _KINDS.get(str(data_type), str(data_type))


_KINDS: Final = {
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "halffloat": "f16",
    "float": "f32",
    "double": "f64",
    "string": "str",
    "large_string": "str",
    "string_view": "str",
    "large_binary": "binary",
    "binary_view": "binary",
    "date32[day]": "date",
    "date64[ms]": "date",
    "time32[s]": "time",
    "time32[ms]": "time",
    "time64[us]": "time",
    "time64[ns]": "time",
}


@dataclass(frozen=True, slots=True)
class _Answer:
    """Some rows of an answer, with all that they have in common."""

    schema: pa.Schema
    rows: Sequence[Place]
    layout: AnswerColumns
    lanes: Sequence[Lane]
    colours: LabelColours

    @classmethod
    def of(cls, schema: pa.Schema, rows: Sequence[Place]) -> _Answer:
        layout = AnswerColumns.of(schema)
        clock = schema.field(2).type if layout.has_time else None
        lanes = [Lane.of(batch, row, layout.labels, clock) for batch, row in rows]
        marked = [labels for lane in lanes for labels in lane.marked().values()]
        return cls(schema, rows, layout, lanes, LabelColours.of(layout.labels, marked))

    @property
    def ends(self) -> int:
        """How many columns say where a complex event starts and ends; the timeline stands behind them."""
        return 4 if self.layout.has_time else 2

    def table(self) -> Html:
        columns = [self._column(field) for field in self.schema]
        columns.insert(self.ends, Column("timeline"))
        timeline = SmallTimeline.of(self.lanes)
        dates = [Dates() for _ in self.schema]
        body = []
        for place, lane in zip(self.rows, self.lanes, strict=True):
            cells = self._row(place, dates, _EVENTS_PER_CELL, most_columns=MOST_COLUMNS)
            cells.insert(self.ends, timeline.drawn(lane, self.colours))
            body.append(cells)
        return table(columns, body, named="Complex events")

    def alone(self) -> Html:
        """The only row, from top to bottom."""
        cells = self._row(self.rows[0], [Dates() for _ in self.schema], _EVENTS_ALONE)
        heads: list[object] = [
            element("span", label, class_=self.colours.style(label))
            if (label := label_of(field))
            else field.name
            for field in self.schema
        ]
        heads.insert(self.ends, "timeline")
        cells.insert(self.ends, SmallTimeline.of(self.lanes).drawn(self.lanes[0], self.colours))
        return named_values(zip(heads, cells, strict=True), named="Complex event")

    def _column(self, field: pa.Field) -> Column:
        label = label_of(field)
        if label is None:
            return Column(field.name, kind_of(field.type))
        return Column(label, kind_of(field.type), is_label=True, colour=self.colours.places.get(label))

    def _row(
        self, place: Place, dates: Sequence[Dates], most: int, *, most_columns: int | None = None
    ) -> list[object]:
        """The cells of a row; times of events stand without the date on which it starts."""
        batch, row = place
        start = shown_values(batch.column(2).slice(row, 1))[0] if self.layout.has_time else None
        cells: list[object] = []
        for number, field in enumerate(list(self.schema)[:most_columns]):
            if label_of(field) is not None:
                cells.append(_events(batch.column(number)[row].values, most, start))
                continue
            (value,) = shown_values(batch.column(number).slice(row, 1))
            is_end = self.layout.has_time and number == 3
            cells.append(_value(value, field.type, dates[number], start if is_end else None))
        return cells


def _events(events: pa.StructArray, most: int, start: object) -> Html:
    """The first events under a label, each with its position and attributes."""
    kinds = {field.name: field.type for field in list(events.type)[:-1]}
    lines = [element("div", _event(event, kinds, start)) for event in shown_values(events.slice(0, most))]
    if len(events) > most:
        lines.append(element("div", f"… {len(events) - most:,} more", class_="quiet"))
    return joined(lines)


def _event(event: dict[str, Any], kinds: Mapping[str, pa.DataType], start: object) -> Html:
    """The position, which is the last value, then the attributes."""
    *attributes, (_, position) = event.items()
    parts = [element("span", f"#{position}", class_="at")]
    for name, value in attributes[:_ATTRIBUTES]:
        said = _value(value, kinds[name], like=start)
        parts.append(element("span", element("i", f"{name}="), said, class_="value"))
    if len(attributes) > _ATTRIBUTES:
        parts.append(element("span", f"… {len(attributes) - _ATTRIBUTES} more", class_="value quiet"))
    return joined(parts, " ")


def _value(value: object, kind: pa.DataType, dates: Dates | None = None, like: object = None) -> Html:
    if value is None:
        return null()
    return (dates or Dates()).shown(value, like) if pa.types.is_timestamp(kind) else text(value)


def _columns(schema: pa.Schema) -> list[Column]:
    return [Column(field.name, kind_of(field.type)) for field in schema]


def _first(batches: Iterable[pa.RecordBatch], most: int) -> list[tuple[Any, ...]]:
    """The first rows, in their first columns, to be shown."""
    rows: list[tuple[Any, ...]] = []
    for batch in batches:
        part = batch.slice(0, most - len(rows))
        rows += zip(*map(shown_values, part.columns[:MOST_COLUMNS]), strict=True)
        if len(rows) >= most:
            break
    return rows


def _cells(schema: pa.Schema, rows: Iterable[tuple[Any, ...]]) -> list[list[Html]]:
    kinds = [field.type for field in schema][:MOST_COLUMNS]
    dates = [Dates() for _ in kinds]
    return [
        [_value(value, kind, date) for value, kind, date in zip(row, kinds, dates, strict=True)]
        for row in rows
    ]


def _more(most: int, count: int | None) -> Html:
    number = "" if count is None else f"{count - most:,} "
    return element("p", f"… {number}more", class_="quiet")
