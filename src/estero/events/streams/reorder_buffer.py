"""Events held back until no earlier one is expected, and then released in stream order.

The watermark W is the greatest time seen minus the lateness, or a later time before which, as announced,
nothing comes. Events with time ≤ W are released, sorted by time, then by the columns of `order`, then by
arrival. An event is *late* if it is earlier than W was before its batch, and sorts before what was already
released. If deadlines and windows before W have passed with it, and before the announced time, everything
earlier is late.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.classify.column_names import HELD_ARRIVAL as ARRIVAL
from estero.classify.column_names import HELD_ORDER as ORDER
from estero.classify.column_names import HELD_TIME as TIME
from estero.engine.int64 import are_before, count_before, fall
from estero.events.tables.shown_types import in_schema

_TIMES = (pa.TimestampScalar, pa.Date32Scalar, pa.Date64Scalar, pa.DurationScalar)

Rank = tuple[Any, ...]
"""The rank of an event: its time, then a comparable value for each column of `order`."""

_NULL, _NAN, _VALUE = 2, 1, 0
"""How the values of one column sort: NULL is after all others, NaN just before it."""


class _Chunk(NamedTuple):
    """Events in stream order. The time of the first comes first, so that a heap has the earliest on top."""

    time: int
    number: int
    events: pa.Table


class ReorderBuffer:
    """Events that are held back; `events` are their columns, `order` the types of those that break ties.

    It is `strict` about late events if something is decided as the watermark passes it.
    """

    def __init__(
        self, events: pa.Schema, order: Sequence[pa.DataType], lateness: int, *, strict: bool = False
    ) -> None:
        self._order = [f"{ORDER}{place}" for place in range(len(order))]
        own = [pa.field(name, pa.int64()) for name in (TIME, ARRIVAL)]
        own += [pa.field(name, kind) for name, kind in zip(self._order, order, strict=True)]
        self._own = pa.schema(own)
        self._schema = pa.schema([*events, *own])
        self._lateness = lateness
        self._chunks: list[_Chunk] = []
        self._added = 0
        self._arrived = 0
        self._greatest: int | None = None
        self._strict = strict
        self._closed: int | None = None
        self._last: Rank | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of `pending`."""
        return self._schema

    def __len__(self) -> int:
        return sum(chunk.events.num_rows for chunk in self._chunks)

    @property
    def greatest(self) -> int | None:
        """The greatest time seen; None before the first."""
        return self._greatest

    @property
    def watermark(self) -> int | None:
        """The time up to which events have been released; None before the first one."""
        behind = None if self._greatest is None else self._greatest - self._lateness
        return _later(behind, self._closed)

    @property
    def watermark_at_end(self) -> int | None:
        """The watermark once everything is released."""
        return _later(self._greatest, self._closed)

    def advance(self, time: int) -> None:
        """Announces that no event before `time` comes any more."""
        self._closed = _later(self._closed, time)

    @property
    def passed(self) -> int | None:
        """The time before which events are late; None before the first event."""
        if self._strict:
            return self.watermark
        return _later(self._closed, None if self._last is None else self._last[0])

    def late(self, times: NDArray[np.int64], order: Sequence[pa.Array]) -> NDArray[np.bool_]:
        """Whether each event of a batch is late."""
        passed, watermark = self.passed, self.watermark
        late = np.zeros(times.size, np.bool_) if passed is None else are_before(times, passed)
        if order and self._last is not None and watermark is not None and self._last[0] < watermark:
            for row in np.flatnonzero(times == self._last[0]).tolist():
                late[row] |= self._rank(times, order, row) < self._last
        return late

    def follows(self, times: NDArray[np.int64]) -> bool:
        """Whether the events of a batch are in order, and none of them is late."""
        return not fall(times) and (self.passed is None or not times.size or int(times[0]) >= self.passed)

    def passes(self, times: NDArray[np.int64], order: Sequence[pa.Array]) -> bool:
        """Whether a batch may pass by, which then counts as released."""
        if not self.may_pass(times, order):
            return False
        self.pass_by(times)
        return True

    def may_pass(self, times: NDArray[np.int64], order: Sequence[object]) -> bool:
        """Whether a batch is in order, none of it is late, and all of it would be let go at once."""
        if self._chunks or order or not times.size or not self.follows(times):
            return False
        last = int(times[-1])
        return last <= max(last, last if self._greatest is None else self._greatest) - self._lateness

    def pass_by(self, times: NDArray[np.int64]) -> None:
        """Counts a batch that may pass as released."""
        last = int(times[-1])
        self._greatest = last if self._greatest is None else max(self._greatest, last)
        self._last = (last,)
        self._arrived += times.size

    def passes_one(self, time: int) -> bool:
        """The same as `passes` for a single event, which is then not late."""
        if self._chunks or self._order or self._lateness:
            return False
        watermark = self.watermark
        if watermark is not None and time < watermark:
            return False
        self._greatest = time if self._greatest is None else max(self._greatest, time)
        self._last = (time,)
        self._arrived += 1
        return True

    def add(self, events: pa.Table, times: NDArray[np.int64], order: Sequence[pa.Array]) -> None:
        """Adds the events of a batch that are not late."""
        if not times.size:
            return
        own = [pa.array(times), pa.array(np.arange(times.size) + self._arrived), *order]
        self._arrived += times.size
        self._push(self._sorted(pa.Table.from_arrays([*events.columns, *own], schema=self._schema)))
        greatest = int(times.max())
        self._greatest = greatest if self._greatest is None else max(self._greatest, greatest)

    def let_go(self, *, everything: bool = False) -> pa.Table:
        """The events that are no longer held back, in stream order; with `everything`, all of them."""
        if everything:
            self._closed = self.watermark_at_end
        until = self.watermark
        ready: list[pa.Table] = []
        while self._chunks and until is not None and self._chunks[0].time <= until:
            events = heapq.heappop(self._chunks).events
            count = count_before(events.column(TIME).to_numpy(), until + 1)
            ready.append(events.slice(0, count))
            self._push(events.slice(count))
        if not ready:
            return self._schema.empty_table()
        together = ready[0] if len(ready) == 1 else self._sorted(pa.concat_tables(ready))
        order = [together.column(name) for name in self._order]
        self._last = self._rank(together.column(TIME).to_numpy(), order, together.num_rows - 1)
        return together

    def pending(self) -> pa.Table:
        """The events that are held back, in stream order."""
        return self._sorted(
            pa.concat_tables([self._schema.empty_table(), *(chunk.events for chunk in self._chunks)])
        )

    def reached(self) -> pa.RecordBatch:
        """The progress of the stream in one row: the greatest time, the announced one, the last released."""
        last: Sequence[Any] = [None] * (1 + len(self._order))
        if self._last is not None:
            last = [self._last[0], *(_value(value) for value in self._last[1:])]
        names = [name for name in self._own.names if name != ARRIVAL]
        columns = {
            name: pa.array([value], self._own.field(name).type)
            for name, value in zip(names, last, strict=True)
        }
        columns["greatest"] = pa.array([self._greatest], pa.int64())
        columns["closed"] = pa.array([self._closed], pa.int64())
        return pa.record_batch(columns)

    def restore(self, pending: pa.Table, reached: pa.RecordBatch) -> None:
        """Continues from the results of `pending` and `reached`; raises ValueError or KeyError for others."""
        times, arrivals = pending.column(TIME), pending.column(ARRIVAL)
        if reached.num_rows != 1 or times.null_count or arrivals.null_count:
            raise ValueError("what is held back has no times")
        if fall(times.to_numpy()):
            raise ValueError("what is held back is not in order")
        self._greatest, self._closed = (reached.column(name)[0].as_py() for name in ("greatest", "closed"))
        if reached.column(TIME).null_count == 0:
            order = [reached.column(name) for name in self._order]
            self._last = self._rank(reached.column(TIME).to_numpy(), order, 0)
        if pending.num_rows:
            self._push(in_schema(pending, self._schema))
            self._arrived = 1 + pc.max(pending.column(ARRIVAL)).as_py()

    def _push(self, events: pa.Table) -> None:
        if events.num_rows:
            self._added += 1
            heapq.heappush(self._chunks, _Chunk(events.column(TIME)[0].as_py(), self._added, events))

    def _sorted(self, events: pa.Table) -> pa.Table:
        # NULL sorts last, as Arrow has it where nothing else is said.
        keys = [(name, "ascending") for name in (TIME, *self._order, ARRIVAL)]
        return events.take(pc.sort_indices(events, sort_keys=keys))

    def _rank(self, times: NDArray[np.int64], order: Sequence[pa.Array], row: int) -> Rank:
        return (int(times[row]), *(_comparable(column[row]) for column in order))


def _later(one: int | None, other: int | None) -> int | None:
    """The later of two times, either of which may be None."""
    return max((time for time in (one, other) if time is not None), default=None)


def _comparable(scalar: pa.Scalar) -> tuple[int, Any]:
    """A value to sort by; for times the ticks, since Python has no times after the year 9999."""
    value = scalar.value if isinstance(scalar, _TIMES) else scalar.as_py()
    if value is None:
        return _NULL, 0
    if isinstance(value, float) and math.isnan(value):
        return _NAN, 0
    return _VALUE, value


def _value(comparable: tuple[int, Any]) -> Any:
    kind, value = comparable
    return value if kind == _VALUE else math.nan if kind == _NAN else None
