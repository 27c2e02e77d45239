"""The HTML of answers, complex events, rows and Arrow tables in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from estero.answers.answer_columns import AnswerColumns
from estero.answers.answer_schema import label_of
from estero.answers.report import positions_in
from estero.answers.shown_values import shown_rows, shown_values
from estero.answers.small_timeline import Lane, SmallTimeline
from estero.markup.colours import LabelColours
from estero.markup.html import MOST_LETTERS, Html, element, joined, text
from estero.markup.query_text import code
from estero.markup.style import shown
from estero.markup.tables import MOST_COLUMNS, Column, Dates, Row, named_values, null, share, table

_EVENTS_PER_CELL: Final = 4
"""The largest number of events of a label that a cell shows."""
_EVENTS_ALONE: Final = 20
"""The largest number of events of a label that are shown for a single complex event."""
_STEPS: Final = 200
"""The largest number of rows of a funnel that are shown."""
_ATTRIBUTES: Final = 12
"""The largest number of attributes of an event that are shown."""
_LINE: Final = 60
"""The largest number of characters of an attribute that are shown, because each event is one line."""

Place = tuple[pa.RecordBatch, int]
"""A batch of an answer and a row in it."""


def answer_html(schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, most: int, count: int | None) -> str:
    """The first `most` complex events as a table; one more is read to find out whether there are more.

    `count` is their number, if that is known.
    """
    rows = list(islice(((batch, row) for batch in batches for row in range(batch.num_rows)), most + 1))
    if not rows:
        is_whole = AnswerColumns.of(schema).steps is None
        return shown(element("p", "No complex events." if is_whole else "No partial matches."))
    more = len(rows) > most
    count = count if more else len(rows)
    answer = _Answer.of(schema, rows[:most])
    number = f"More than {most:,}" if count is None else f"{count:,}"
    noun = answer.one if count == 1 else answer.several
    said = element("p", element("b", number), f" {noun}", ", not counted yet" if count is None else "")
    return shown(said, answer.table(), _more(most, count) if more else "")


def complex_event_html(batch: pa.RecordBatch, row: int) -> str:
    """One complex event: its start and end, its timeline, and the events under each label."""
    return shown(_Answer.of(batch.schema, [(batch, row)]).alone())


def rows_html(
    schema: pa.Schema, labels: Iterable[str], batches: Iterable[pa.RecordBatch], *, most: int
) -> str:
    """The first `most` marked events as a table, grouped by complex event.

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


def funnel_html(funnel: pa.Table) -> str:
    """The first rows of a funnel, with bars for shares; the values of a partition stand at its first step."""
    schema, body = funnel.schema, []
    for row in (row for batch in funnel.slice(0, _STEPS).to_batches() for row in shown_rows(batch)):
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
    more = _more(_STEPS, funnel.num_rows) if funnel.num_rows > _STEPS else ""
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
    """Some rows of an answer, with the properties that they share."""

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
    def one(self) -> str:
        """The name of a row."""
        return "complex event" if self.layout.steps is None else "partial match"

    @property
    def several(self) -> str:
        """The name of all of them."""
        return "complex events" if self.layout.steps is None else "partial matches"

    @property
    def order(self) -> list[tuple[int, pa.Field]]:
        """The columns with their numbers; those of labels come last."""
        return sorted(enumerate(self.schema), key=lambda column: label_of(column[1]) is not None)

    @property
    def ends(self) -> int:
        """The number of columns for the start and end of a complex event; the timeline comes after them."""
        return 4 if self.layout.has_time else 2

    def table(self) -> Html:
        """All rows, the events of each label in columns below it."""
        timeline = SmallTimeline.of(self.lanes)
        columns = self._columns()
        columns.insert(self.ends, Column("timeline", timeline.said))
        dates = [Dates() for _ in self.schema]
        body = []
        for place, lane in zip(self.rows, self.lanes, strict=True):
            cells = self._row(place, dates)
            cells.insert(self.ends, timeline.drawn(lane, self.colours))
            body.append(cells)
        return table(columns, body, named="Complex events")

    def alone(self) -> Html:
        """The only row, from top to bottom."""
        (batch, row), start = self.rows[0], self._start(self.rows[0])
        values: list[tuple[object, object]] = []
        for number, field in self.order:
            label = label_of(field)
            if label is None:
                cell = self._value(self.rows[0], number, Dates(), start)
                values.append((field.name, cell))
                continue
            head = element("span", label, class_=self.colours.style(label))
            events = batch.column(number)[row].values
            if label in self.colours.places:
                values.append((head, _events_alone(label, events, start)))
            else:
                values.append((head, _positions(events, _EVENTS_ALONE)))
        timeline = SmallTimeline.of(self.lanes)
        values.insert(self.ends, ("timeline", timeline.drawn(self.lanes[0], self.colours)))
        return named_values(values, named="Complex event")

    @property
    def _attributes(self) -> int:
        """The number of attributes shown of events under each label, so that all labels can be seen."""
        labels = max(1, len(self.colours.places))
        return min(_ATTRIBUTES, max(2, (MOST_COLUMNS - len(self.schema)) // labels - 1))

    def _columns(self) -> list[Column]:
        columns = []
        for _, field in self.order:
            label, kind = label_of(field), kind_of(field.type)
            if label is None:
                columns.append(Column(field.name, kind))
                continue
            head = Column(label, kind, self.colours.style(label))
            if label in self.colours.places:
                columns += _event_columns(field.type.value_type, self._attributes, head)
            else:
                columns.append(head)
        return columns

    def _row(self, place: Place, dates: Sequence[Dates]) -> list[object]:
        """The cells of a row; the times of events omit the date on which the row starts."""
        batch, row = place
        start = self._start(place)
        cells: list[object] = []
        for number, field in self.order:
            label = label_of(field)
            if label is None:
                cells.append(self._value(place, number, dates[number], start))
                continue
            events = batch.column(number)[row].values
            if label in self.colours.places:
                lines = _event_cells(events, _EVENTS_PER_CELL, self._attributes, start)
                columns = [joined(_line(cell) for cell in column) for column in zip(*lines, strict=True)]
                width = len(_event_columns(events.type, self._attributes))
                columns = columns or [Html("")] * width
                if len(events) > _EVENTS_PER_CELL:
                    more = element("div", f"… {len(events) - _EVENTS_PER_CELL:,} more", class_="quiet line")
                    columns[0] = joined([columns[0], more])
                cells += columns
            else:
                cells.append(_positions(events, _EVENTS_PER_CELL))
        return cells

    def _start(self, place: Place) -> object:
        """The time at which a row starts, to be shown."""
        batch, row = place
        return shown_values(batch.column(2).slice(row, 1))[0] if self.layout.has_time else None

    def _value(self, place: Place, number: int, dates: Dates, start: object) -> Html:
        """The cell of a column that is not a label."""
        batch, row = place
        (value,) = shown_values(batch.column(number).slice(row, 1))
        is_end = self.layout.has_time and number == 3
        return _value(value, self.schema.field(number).type, dates, start if is_end else None)


def _positions(events: pa.StructArray, most: int) -> Html:
    """The positions of the events of a label, if the other columns show everything else about them."""
    positions = positions_in(events.slice(0, most)).to_pylist()
    more = f" … {len(events) - most:,} more" if len(events) > most else ""
    return element("span", ", ".join(f"#{position}" for position in positions), more, class_="at")


def _events_alone(label: str, events: pa.StructArray, start: object) -> Html:
    columns = _event_columns(events.type, _ATTRIBUTES)
    lines = _event_cells(events, _EVENTS_ALONE, _ATTRIBUTES, start)
    more = _more(_EVENTS_ALONE, len(events)) if len(events) > _EVENTS_ALONE else ""
    return joined([table(columns, lines, named=f"Events marked {label}"), more])


def _event_columns(event: pa.StructType, most: int, group: Column | None = None) -> list[Column]:
    """The position, then the first attributes."""
    attributes = list(event)[:-1]
    columns = [Column("#", "", group=group)]
    columns += [Column(field.name, kind_of(field.type), group=group) for field in attributes[:most]]
    return columns + [Column(f"… {len(attributes) - most} more", group=group)] * (len(attributes) > most)


def _event_cells(events: pa.StructArray, most: int, attributes: int, start: object) -> list[list[Html]]:
    """For each of the first events, its position and its first attributes."""
    shown_events = events.slice(0, most)
    fields = list(events.type)[:-1]
    columns: list[list[Html]] = [
        [element("span", f"#{position}", class_="at") for position in positions_in(shown_events).to_pylist()]
    ]
    known = shown_events.flatten()
    for field, values in zip(fields[:attributes], known, strict=False):
        columns.append([_value(value, field.type, like=start, most=_LINE) for value in shown_values(values)])
    if len(fields) > attributes:
        columns.append([Html("…")] * len(shown_events))
    return [list(row) for row in zip(*columns, strict=True)]


def _line(cell: Html) -> Html:
    return element("div", cell, class_="line")


def _value(
    value: object,
    kind: pa.DataType,
    dates: Dates | None = None,
    like: object = None,
    *,
    most: int = MOST_LETTERS,
) -> Html:
    if value is None:
        return null()
    if pa.types.is_timestamp(kind):
        return (dates or Dates()).shown(value, like)
    return text(value, most=most)


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
