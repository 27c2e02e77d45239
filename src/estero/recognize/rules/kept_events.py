"""Past events of a stream, kept for a replay to rules that are added later."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import one_batch
from estero.classify.column_names import HELD_TIME as TIME
from estero.engine.int64 import count_before, fall
from estero.engine.store.checks import Arrays
from estero.errors import QueryError
from estero.events.streams.batch_classifier import Incoming
from estero.events.streams.reorder_buffer import ReorderBuffer
from estero.events.streams.stream_layout import StreamLayout
from estero.language.tree.durations import Duration
from estero.plan.look_back import look_back_of
from estero.plan.plan import Plan, Window
from estero.recognize.recognizers.intake import Intake, order_columns, order_types
from estero.recognize.state_bytes import batch_as_array, batch_of_array

_LOOSE: Final = 256
"""The number of small batches that are merged into one."""
_SMALL: Final = 1 << 13
"""The largest number of events that are copied to merge batches."""
_AT_ONCE: Final = 1 << 16
"""The largest number of events that are replayed at once."""


class Part(NamedTuple):
    """Consecutive events of the stream, the first of which is at a position."""

    first: int
    events: pa.Table


class KeptEvents:
    """The events of a stream as far back as a window reaches, and those in the reorder buffer.

    `like` is an intake of the same stream, whose watermark decides which events are late. Events are copied,
    because a batch may be a view of memory that its owner reuses.
    """

    def __init__(self, layout: StreamLayout, like: Intake, tick_ns: int | None) -> None:
        self._layout = layout
        self._tick_ns = tick_ns
        self._columns = like.columns
        types = order_types(self._columns, layout)
        self._held = ReorderBuffer(self._columns, types, layout.lateness, strict=True)
        self._chunks: deque[pa.Table] = deque()
        self._loose = 0
        self._position = 0

    def check(self, name: str, plan: Plan) -> None:
        """Raises `QueryError` if future answers of a rule may reach further back than events are kept."""
        reach = look_back_of(plan)
        if isinstance(reach, str):
            why, hint = reach, ""
        elif not any(
            kept.in_positions == reach.in_positions and kept.length >= reach.length
            for kept in self._layout.keep
        ):
            kept = " and ".join(map(self._words, self._layout.keep))
            why, hint = f"it looks back {self._words(reach)}, and {kept} are kept", ", or keep= more"
        else:
            return
        error = QueryError(
            f"the rule cannot begin with a replay: {why}",
            text=plan.text,
            hint=f"leave out replay, so that it begins with the next event{hint}",
        )
        error.rule = f"rule {name}"
        raise error

    def _words(self, window: Window) -> str:
        """The extent of a window, in words."""
        if window.in_positions or self._tick_ns is None:
            unit = "event" if window.in_positions else "tick"
            return f"{window.length:,} {unit}{'s' * (window.length != 1)}"
        return str(Duration(window.length * self._tick_ns)).lower()

    # --------------------------------------------------------------------------- events that come

    def admit(self, parts: Iterable[Incoming]) -> None:
        """Adds the events of a batch that are not late, and drops those out of reach."""
        for part in parts:
            self._admit(part)
        self._trim()

    def _admit(self, incoming: Incoming) -> None:
        order = order_columns(incoming.events, self._layout)
        on_time = np.flatnonzero(~self._held.late(incoming.times, order))
        if on_time.size == incoming.times.size and self._held.passes(incoming.times, order):
            self._put(_copied(incoming.events, on_time), incoming.times)
        else:
            taken = pa.array(on_time)
            order = [column.take(taken) for column in order]
            self._held.add(_copied(incoming.events, on_time), incoming.times[on_time], order)
            self._let_go()

    def advance(self, ticks: int) -> None:
        """Notes that no more events before a time will arrive."""
        self._held.advance(ticks)
        self._let_go()
        self._trim()

    def flush(self) -> None:
        """Releases all events in the reorder buffer."""
        self._let_go(everything=True)
        self._trim()

    def _let_go(self, *, everything: bool = False) -> None:
        ready = self._held.let_go(everything=everything)
        self._put(ready.select(self._columns.names), ready.column(TIME).to_numpy())

    def _put(self, events: pa.Table, times: NDArray[np.int64]) -> None:
        if not events.num_rows:
            return
        self._chunks.append(events.append_column(TIME, pa.array(times)))
        self._position += events.num_rows
        self._loose += 1
        if self._loose == _LOOSE:
            self._loose = 0
            last = list(islice(reversed(self._chunks), _LOOSE))[::-1]
            if sum(chunk.num_rows for chunk in last) <= _SMALL:
                for _ in last:
                    self._chunks.pop()
                self._chunks.append(pa.concat_tables(last).combine_chunks())
                self._loose = 1

    def _trim(self) -> None:
        """Drops the batches whose events are all out of reach."""
        beyond = self._out_of_reach()
        while self._chunks and beyond >= self._chunks[0].num_rows:
            beyond -= self._chunks.popleft().num_rows

    def _out_of_reach(self) -> int:
        """The number of the first events that no window reaches."""
        held = sum(chunk.num_rows for chunk in self._chunks)
        return min((self._beyond(window, held) for window in self._layout.keep), default=held)

    def _beyond(self, window: Window, held: int) -> int:
        if window.in_positions:
            return max(held - window.length, 0)
        passed = self._held.passed
        if passed is None:
            return 0
        beyond = 0
        for chunk in self._chunks:
            count = count_before(chunk.column(TIME).to_numpy(), passed - window.length)
            beyond += count
            if count < chunk.num_rows:
                break
        return beyond

    # ------------------------------------------------------------------------------ what is kept

    def parts(self) -> Iterator[Part]:
        """The events within reach, in stream order."""
        beyond = self._out_of_reach()
        first = self._position - sum(chunk.num_rows for chunk in self._chunks)
        for chunk in self._chunks:
            for begin in range(min(beyond, chunk.num_rows), chunk.num_rows, _AT_ONCE):
                yield Part(first + begin, chunk.slice(begin, _AT_ONCE).select(self._columns.names))
            beyond = max(beyond - chunk.num_rows, 0)
            first += chunk.num_rows

    def held(self) -> pa.Table:
        """The events in the reorder buffer, in stream order."""
        return self._held.pending().select(self._columns.names)

    @property
    def number(self) -> int:
        """The number of events within reach."""
        return int(sum(chunk.num_rows for chunk in self._chunks)) - self._out_of_reach()

    @property
    def bytes(self) -> int:
        """The size of all events kept, in bytes."""
        return sum(int(chunk.nbytes) for chunk in self._chunks) + int(self._held.pending().nbytes)

    # ------------------------------------------------------------------- stopping and going on

    def snapshot(self) -> Arrays:
        """The state, for `resume`."""
        beyond = self._out_of_reach()
        chunks = [chunk.select(self._columns.names) for chunk in self._chunks]
        kept = pa.concat_tables([self._columns.empty_table(), *chunks]).slice(beyond)
        return {
            "kept": batch_as_array(one_batch(kept)),
            "held": batch_as_array(one_batch(self._held.pending())),
            "reached": batch_as_array(self._held.reached()),
        }

    def resume(self, arrays: Arrays, like: Intake) -> None:
        """Restores a state from `snapshot`; raises ValueError if it does not fit the stream of an intake."""
        kept = pa.Table.from_batches([batch_of_array(arrays["kept"])]).cast(self._columns)
        held = pa.Table.from_batches([batch_of_array(arrays["held"])])
        times = like.times(kept)
        if kept.num_rows > like.position or fall(times):
            raise ValueError("events that are kept are not of this stream")
        if held.num_rows != like.held_back:
            raise ValueError("other events are held back")
        self._held.restore(held, batch_of_array(arrays["reached"]))
        self._position = like.position - kept.num_rows
        self._put(kept, times)


def _copied(events: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    return events.take(pa.array(rows))
