"""The events of a studio, in memory and in stream order, and the parts of them that a page draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.classify.column_names import BITS, POSITION, TIME, WORD, event_column
from estero.errors import DataError, LimitExceeded
from estero.events.scan import Scan
from estero.events.sources import Source, open_source
from estero.language.tree.names import some
from estero.language.tree.schema import Kind
from estero.plan.plan import Classification
from estero.studio.shown import shown
from estero.system.cached_property import cached_property

MOST_EVENTS: Final = 20_000_000
"""The largest number of events that are read into memory."""
MOST_DRAWN: Final = 200_000
"""The largest number of events drawn one by one; for more, a page gets the number in each place."""
MOST_TEXTS: Final = 1 << 14
"""The largest number of different texts of a column that is dictionary-encoded."""
MOST_LANES: Final = 200
"""The largest number of lanes of a timeline; the last one has all other values."""
BINS: Final = 1_500


@dataclass(frozen=True, slots=True)
class Lanes:
    """A lane for each value of a column: their names, and the lane of each event."""

    names: tuple[str, ...]
    of_event: NDArray[np.uint16]


class Stream:
    """Events as described by an `estero.scan`, read once.

    `scan` is the one on which queries run: the same events, in memory if they are files, or could be read
    only once, and with dictionaries of repeated texts, so that questions about types, names and keys are
    answered by numbers. `table` are the events in stream order, with all attributes; a position is a row of
    it.
    """

    def __init__(self, scan: Scan) -> None:
        self.asked = scan
        self.source: Source = open_source(scan.events, scan.layout, scan.csv_options, declared=False)

    @cached_property
    def table(self) -> pa.Table:
        """The events in order: the attributes under their names; reads them all.

        Raises `LimitExceeded` for more than `MOST_EVENTS`.
        """
        return self._read[0]

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The types of the events, sorted."""
        return tuple(self._type_lanes.names)

    @cached_property
    def scan(self) -> Scan:
        """The events as queries read them."""
        mapped = self.source.type_column not in (None, *self.source.columns)
        self.table  # noqa: B018 (which is also to know whether they can be read)
        if mapped and not self.source.one_shot:
            return self.asked
        if mapped:
            raise DataError(
                "events in one iterator for each type can be read once only",
                hint="give tables, or files",
            )
        given = self.asked.events if isinstance(self.asked.events, pa.Table) else self.table
        return replace(self.asked, events=_with_dictionaries(given), csv_options=None)

    @cached_property
    def times(self) -> NDArray[np.float64] | None:
        """The time of each event: milliseconds since 1970, or ticks of an integer; None without a time."""
        ticks = self._read[1]
        if ticks is None:
            return None
        known = ticks.astype(np.float64)
        return known * ((self.source.layout.tick_ns or 1_000_000) / 1e6) if self.dated else known

    @property
    def dated(self) -> bool:
        """Whether times are dates and not integers."""
        name = self.source.schema.time
        return name is not None and self.source.column_types[name].kind is not Kind.INT

    def event(self, position: int) -> dict[str, Any]:
        """An event: its attributes. Raises IndexError if there is none at this position."""
        if not 0 <= position < self.table.num_rows:
            raise IndexError(f"there is no event {position}: the stream has {self.table.num_rows:,}")
        (event,) = self.table.slice(position, 1).to_pylist()
        number = int(self._type_lanes.of_event[position])
        return {
            "position": position,
            "type": self._type_lanes.names[number],
            "values": {name: shown(value) for name, value in event.items()},
        }

    def places(self, positions: Sequence[int]) -> list[float]:
        """The positions of events on the axis of the timeline."""
        if self.times is None:
            return [float(position) for position in positions]
        return [float(time) for time in self.times[np.asarray(positions, np.int64)]]

    def lanes(self, column: str | None) -> Lanes:
        """The lanes of a timeline by a column, or by type if it is None."""
        return self._type_lanes if column is None else self._lanes_by(column)

    @property
    def columns_for_lanes(self) -> tuple[str, ...]:
        """The columns by which there can be lanes: not that of the time, floats, or nested ones."""
        kinds = {name: self.source.column_types[name].kind for name in self.source.columns}
        plain = (Kind.STRING, Kind.INT, Kind.BOOL)
        left = {self.source.schema.time, self.source.type_column}
        return tuple(name for name, kind in kinds.items() if kind in plain and name not in left)

    def timeline(
        self, column: str | None, first: float | None = None, last: float | None = None
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The events of an interval of the axis, drawn by lanes: a description, and columns as bytes.

        The columns are little-endian: positions on the axis (float64) and lanes (uint16), one for each event
        from position ``first`` on; or, if there are more than `MOST_DRAWN`, the number of events (uint32) by
        lane and by `BINS` parts of the interval.
        """
        lanes = self.lanes(column)
        axis = np.arange(self.table.num_rows, dtype=np.float64) if self.times is None else self.times
        begun = 0 if first is None else int(np.searchsorted(axis, first, "left"))
        ended = axis.size if last is None else int(np.searchsorted(axis, last, "right"))
        ended = max(begun, ended)
        head = {
            "lanes": [shown(name) for name in lanes.names],
            "types": [shown(name) for name in self.types],
            "axis": "position" if self.times is None else "date" if self.dated else "number",
            "from": float(axis[0]) if axis.size else 0.0,
            "to": float(axis[-1]) if axis.size else 1.0,
            "first": begun,
            "events": ended - begun,
            "total": int(axis.size),
        }
        here = slice(begun, ended)
        if ended - begun <= MOST_DRAWN:
            columns = [axis[here].astype("<f8"), lanes.of_event[here].astype("<u2")]
            return {**head, "binned": False}, [column.tobytes() for column in columns]
        low = axis[begun] if first is None else first
        high = axis[ended - 1] if last is None else last
        width = (high - low) / BINS or 1.0
        bins = np.clip(((axis[here] - low) / width).astype(np.int64), 0, BINS - 1)
        places = lanes.of_event[here].astype(np.int64) * BINS + bins
        counts = np.bincount(places, minlength=len(lanes.names) * BINS).astype("<u4")
        shape = {"binned": True, "bins": BINS, "low": float(low), "high": float(high)}
        return {**head, **shape}, [counts.tobytes()]

    @cached_property
    def _read(self) -> tuple[pa.Table, NDArray[np.int64] | None, pa.Array]:
        """The table, the ticks of time, and the names of types by event."""
        source = self.source
        typed = source.type_column in source.columns
        names = () if typed or source.type_column is None else source.type_names()
        asked = Classification(
            tuple(EventPredicate((name,)) for name in names),
            source.schema,
            source.type_column,
            source.only_type,
            keep_all=True,
            order=source.order,
            payload=tuple(source.columns),
        )
        batches, rows = [], 0
        for batch in source.read(asked):
            rows += batch.num_rows
            if rows > MOST_EVENTS:
                raise LimitExceeded(
                    f"the studio holds events in memory, and these are more than {MOST_EVENTS:,}: "
                    "give it a part of them"
                )
            batches.append(batch)
        whole = pa.Table.from_batches(batches, source.classified_schema(asked))
        if rows:  # positions are rows, because all events are kept
            positions = whole[POSITION].to_numpy()
            if positions[0] != 0 or positions[-1] != rows - 1:
                raise RuntimeError("the positions of the events are not those of their rows")
        columns = {name: whole[event_column(name)] for name in source.columns}
        ticks = whole[TIME].to_numpy() if TIME in whole.column_names else None
        if source.type_column is None:
            kinds = pa.array(np.zeros(rows, np.int32))
            kinds = pa.DictionaryArray.from_arrays(kinds, pa.array([source.only_type]))
        elif typed:
            kinds = _encoded(columns[source.type_column])
        else:
            kinds = pa.DictionaryArray.from_arrays(
                pa.array(_first_bit(whole, len(names))), pa.array(list(names))
            )
        return pa.table(columns), ticks, kinds

    @cached_property
    def _type_lanes(self) -> Lanes:
        return _lanes(self._read[2])

    @cache  # noqa: B019 (as long as the stream)
    def _lanes_by(self, column: str) -> Lanes:
        if column not in self.source.columns:
            raise ValueError(
                f"there is no column {column}: there are {some(self.source.columns, word='and')}"
            )
        return _lanes(_encoded(self.table[column]))


def _with_dictionaries(events: pa.Table) -> pa.Table:
    """The same events, with texts dictionary-encoded if there are few different ones."""
    for place, field in enumerate(events.schema):
        column = events.column(place)
        if field.metadata or not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
            continue
        different_at_first = pc.count_distinct(column.slice(0, 4 * MOST_TEXTS)).as_py()
        if different_at_first <= MOST_TEXTS // 4 and pc.count_distinct(column).as_py() <= MOST_TEXTS:
            encoded = pc.dictionary_encode(column).unify_dictionaries()
            events = events.set_column(place, pa.field(field.name, encoded.type, field.nullable), encoded)
    return events


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    texts = column.cast(pa.string())
    return pc.dictionary_encode(texts.combine_chunks(), null_encoding="encode")


def _lanes(values: pa.DictionaryArray) -> Lanes:
    """Lanes in the order of their names, restricted to the most frequent ones if there are too many."""
    numbers = values.indices.to_numpy()
    names = ["NULL" if name is None else str(name) for name in values.dictionary.to_pylist()]
    often = np.bincount(numbers, minlength=len(names)) if names else np.zeros(0, np.int64)
    kept = sorted(range(len(names)), key=lambda number: -often[number])[:MOST_LANES]
    if len(names) > MOST_LANES:
        kept = kept[: MOST_LANES - 1]
    kept.sort(key=lambda number: _by_name(names[number]))
    lane = np.full(len(names), len(kept), np.uint16)
    lane[kept] = np.arange(len(kept), dtype=np.uint16)
    others = [f"{len(names) - len(kept)} others"] if len(names) > len(kept) else []
    return Lanes((*(names[number] for number in kept), *others), lane[numbers])


def _by_name(name: str) -> tuple[int, float, str]:
    """The order of names, in which numbers are ordered by value."""
    digits = name.removeprefix("-")
    return (0, float(name), name) if digits.isdecimal() and len(digits) < 16 else (1, 0.0, name)


def _first_bit(whole: pa.Table, predicates: int) -> NDArray[np.int32]:
    """The number of the first predicate that is true of each event."""
    kinds = np.zeros(whole.num_rows, np.int32)
    for number in reversed(range(predicates)):
        bits = whole[f"{BITS}{number // WORD}"].to_numpy()
        kinds[(bits >> (number % WORD)) & 1 == 1] = number
    return kinds
