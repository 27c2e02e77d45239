"""The layout of an endless stream: its columns, the lateness of its events, and which of them are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.errors import DataError
from estero.events.database import lent_cursor
from estero.events.inputs import Input, open_input
from estero.events.reading_errors import reading
from estero.events.scan import Scan
from estero.events.sources import Source, open_source
from estero.events.tables.exact_columns import exact_layout, renamed_schema
from estero.events.tables.nested_columns import extended
from estero.events.tables.readable_types import readable_schema
from estero.events.tables.shown_types import has_within
from estero.events.tables.written_times import with_written_times
from estero.language.tree.durations import TimeUnit
from estero.language.tree.exact_names import exact_names
from estero.language.tree.literals import INT_MAX
from estero.language.tree.schema import UNITS_OF_TIME, EventLayout, Kind
from estero.plan.plan import Window

Lateness = str | int | timedelta
"""A duration such as "5 seconds" or "5s", or a number of ticks of the time column."""

Keep = Lateness | Sequence[Lateness]
"""The extent of events kept: a duration or ticks, as a lateness, "1000 events", or two of these."""

_PART = re.compile(r"\s*(\d+)\s*([a-zµ]+)\s*", re.IGNORECASE)
_NEGATIVE = re.compile(r"\s*-\s*\d.*", re.DOTALL)
_UNITS = {
    **{unit.name.lower().removesuffix("s"): unit for unit in TimeUnit},
    **UNITS_OF_TIME,
    "µs": TimeUnit.MICROSECONDS,
    "sec": TimeUnit.SECONDS,
    "w": TimeUnit.WEEKS,
}
"""The units of a duration by name, in the singular."""
_EVENTS = re.compile(r"\s*(\d{1,15})\s*events?\s*", re.IGNORECASE)
_SCHEMA = "schema of "


@dataclass(frozen=True, slots=True)
class StreamLayout:
    """The columns of events that come batch by batch.

    `schemas` gives the columns of each type, or under "" those of all types together. `lateness` is in ticks
    of the time column. Events are kept as far back as one of the windows of `keep` reaches.
    """

    schemas: Mapping[str, pa.Schema]
    columns: EventLayout
    lateness: int = 0
    keep: tuple[Window, ...] = ()

    @property
    def mapped(self) -> bool:
        """Whether each type has its own table."""
        return "" not in self.schemas

    def source(self) -> Source:
        """A source of this layout, without events."""
        empty = {name: schema.empty_table() for name, schema in self.schemas.items()}
        return open_source(empty if self.mapped else empty[""], self.columns)

    def as_text(self) -> str:
        """All but the schemas, as JSON."""
        unit = self.columns.time_unit
        plain = asdict(self.columns) | {"time_unit": None if unit is None else unit.name}
        kept = {"keep": [[one.length, one.in_positions] for one in self.keep]} if self.keep else {}
        return json.dumps(plain | {"lateness": self.lateness} | kept, sort_keys=True)

    def as_arrays(self) -> dict[str, NDArray[np.uint8]]:
        """The schemas."""
        return {
            f"{_SCHEMA}{name}": np.frombuffer(schema.serialize(), np.uint8)
            for name, schema in self.schemas.items()
        }

    @classmethod
    def of_state(cls, text: str, arrays: dict[str, NDArray[np.uint8]]) -> StreamLayout:
        """The layout from a text and arrays, whose schemas it removes; ValueError for another text."""
        named = [name for name in arrays if name.startswith(_SCHEMA)]
        schemas = {
            name.removeprefix(_SCHEMA): pa.ipc.read_schema(pa.py_buffer(arrays.pop(name))) for name in named
        }
        said = json.loads(text)
        if not isinstance(said, dict) or not all(_is_said(name, value) for name, value in said.items()):
            raise ValueError("the layout of the stream is invalid")
        lateness, unit = said.pop("lateness"), said.pop("time_unit")
        keep = tuple(Window(length, in_positions) for length, in_positions in said.pop("keep", ()))
        columns = EventLayout(
            **said | {name: tuple(said[name]) for name in ("order", "types")},
            time_unit=None if unit is None else TimeUnit[unit],
        )
        return cls(schemas, columns, lateness, keep)


def _is_said(name: str, value: object) -> bool:
    """Whether a part of a layout has a value of its type."""
    match name:
        case "lateness":
            return isinstance(value, int) and not isinstance(value, bool) and value >= 0
        case "order" | "types":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case "keep":
            return isinstance(value, list) and all(map(_is_window, value))
        case _:
            return value is None or isinstance(value, str | bool)


def _is_window(value: object) -> bool:
    match value:
        case [int(length), bool()]:
            return not isinstance(length, bool) and length >= 0
    return False


def layout_of(scan: Scan, lateness: Lateness | None = None, keep: Keep | None = None) -> StreamLayout:
    """The layout that a user describes.

    The scan has an Arrow schema, a table, of which only the columns matter, or a mapping of type name to
    these. Raises `DataError` for an object without a schema, for missing columns and for a lateness, or a
    time to keep, without a time; ValueError for an invalid lateness, and for an invalid `keep`.
    """
    named = scan.events if isinstance(scan.events, Mapping) else {"": scan.events}
    if not named:
        raise DataError("the mapping of types to their schemas is empty")
    given = {
        str(name): _schema_of(schema, scan.csv_options, scan.layout.time) for name, schema in named.items()
    }
    _refuse_unions(given)
    exact = exact_names(name for schema in given.values() for name in schema.names)
    columns = exact_layout(scan.layout, exact)
    schemas = {name: extended(renamed_schema(schema, exact), columns) for name, schema in given.items()}
    layout = StreamLayout(schemas, columns)
    source = layout.source()
    kept = windows_of(keep, columns, source.layout.tick_ns)
    if lateness is None:
        return replace(layout, keep=kept)
    _check_time(columns)
    return replace(layout, lateness=ticks_of(lateness, source.layout.tick_ns), keep=kept)


def _refuse_unions(schemas: Mapping[str, pa.Schema]) -> None:
    """Raises `DataError` for a column of unions: Arrow cannot make an empty one."""
    for schema in schemas.values():
        for field in schema:
            if has_within(field.type, pa.types.is_union):
                raise DataError(
                    f"holds {field.type}, and unions cannot be pushed",
                    column=field.name,
                    hint="leave the column out, or cast it to the type of its values",
                )


def check_distances(lateness: Lateness | None, keep: Keep | None, time: str | None) -> None:
    """Raises as `layout_of` for a lateness, or an extent of events to keep, that no column of times takes."""
    columns = EventLayout(time=time)
    if lateness is not None:
        _check_time(columns)
        ticks_of(lateness, 1)
    windows_of(keep, columns, 1)


def _check_time(columns: EventLayout) -> None:
    if columns.time is None:
        raise DataError("a lateness needs a time column, and none is named")


def windows_of(keep: Keep | None, columns: EventLayout, tick_ns: int | None) -> tuple[Window, ...]:
    """The windows that cover the events that are kept; raises as `layout_of`."""
    if keep is None:
        return ()
    listed = [keep] if isinstance(keep, str | int | timedelta) else keep
    if not isinstance(listed, list | tuple):
        kind = type(keep).__name__
        raise TypeError(f"keep is a duration ('2 hours'), '1000 events', or a list of these, not a {kind}")
    return tuple(_window_of(one, columns, tick_ns) for one in listed)


def _window_of(keep: Lateness, columns: EventLayout, tick_ns: int | None) -> Window:
    if isinstance(keep, str) and (events := _EVENTS.fullmatch(keep)):
        return Window(int(events[1]), in_positions=True)
    if columns.time is None:
        raise DataError(
            f"to keep {keep!r} needs a time column, and none is named", hint="say a number: '1000 events'"
        )
    return Window(ticks_of(keep, tick_ns, "what is kept"))


def ticks_of(lateness: Lateness, tick_ns: int | None, said: str = "a lateness") -> int:
    """A lateness in ticks of `tick_ns` nanoseconds, None if their length is unknown; rounded up.

    Raises ValueError for a text that is not a duration, for a negative lateness, and for one that has no
    meaning without the length of a tick; the error uses the name `said`.

    >>> ticks_of("1 minute 30s", 1_000_000)
    90000
    """
    if isinstance(lateness, int) and not isinstance(lateness, bool):
        if lateness < 0:
            raise ValueError(f"{said} cannot be negative: {lateness}")
        return _in_64_bits(lateness, lateness, said)
    if isinstance(lateness, timedelta):
        nanoseconds = (lateness // timedelta(microseconds=1)) * 1000
    else:
        nanoseconds = _nanoseconds(lateness, said)
    if nanoseconds < 0:
        raise ValueError(f"{said} cannot be negative: {lateness}")
    if tick_ns is None:
        raise ValueError(
            f"the time column has no unit, so {str(lateness)!r} has no meaning there: "
            "say its time_unit, or give a number of ticks"
        )
    return _in_64_bits(-(-nanoseconds // tick_ns), lateness, said)


def _in_64_bits(ticks: int, lateness: Lateness, said: str) -> int:
    if ticks > INT_MAX:
        raise ValueError(f"{said} of {lateness} does not fit in 64 bits")
    return ticks


def _nanoseconds(text: object, said: str) -> int:
    if isinstance(text, str) and _NEGATIVE.fullmatch(text):
        raise ValueError(f"{said} cannot be negative: {text}")
    parts = list(_PART.finditer(text)) if isinstance(text, str) else []
    names = [part[2].lower() for part in parts]
    units = [_UNITS.get(name) or _UNITS.get(name.removesuffix("s")) for name in names]
    if not parts or "".join(part[0] for part in parts) != text or None in units:
        raise ValueError(f"{said} is a duration such as '5 seconds', not {text!r}")
    return sum(int(part[1]) * unit.value for part, unit in zip(parts, units, strict=True) if unit)


def _schema_of(events: object, csv_options: Mapping[str, object] | None, time: str | None) -> pa.Schema:
    if isinstance(events, pa.Schema):
        return readable_schema(events)
    opened: Input = with_written_times(open_input(events, csv_options), time)
    if opened.schema is not None:
        return opened.schema
    if opened.written is not None and exact_names(opened.written.names):
        return opened.written
    with lent_cursor() as connection, reading(opened.file):
        return connection.sql(f"{opened.query} LIMIT 0").to_arrow_table().schema


def time_kind(source: Source) -> pa.DataType | None:
    """The type in which times are ticks once they are cast to it: timestamps of one unit, or integers."""
    if source.schema.time is None:
        return None
    column = source.column_types[source.schema.time]
    return pa.timestamp(column.tick) if column.kind is Kind.TIMESTAMP else pa.int64()
