"""Classified events in, complex events and partial matches out: recognitions of one classified stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from estero.classify.column_names import POSITION, TIME
from estero.plan.levels import PartialsPlan
from estero.plan.plan import Classification
from estero.recognize.batch_columns import numbers_of
from estero.recognize.consumed import consumed_of
from estero.recognize.ended_sets import EndedSets
from estero.recognize.excerpts import Excerpt
from estero.recognize.metrics import Extent
from estero.recognize.open_runs import OpenRuns
from estero.recognize.partial_matches.furthest import Furthest, Placed
from estero.recognize.recognition import Recognition
from estero.recognize.state import plan_about
from estero.recognize.state_bytes import State, read, refuse_other, sound_content, written

KIND = "a recognition of partial matches"
"""The name of this kind of state, written into it."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One of the recognitions, and its part of the events."""

    recognition: Recognition
    excerpt: Excerpt

    def ended(self, classified: pa.RecordBatch, position: int, time: int | None) -> Iterator[EndedSets]:
        """The results of these events, or decided once none before `position` or `time` will come."""
        if classified.num_rows:
            yield from self.recognition.recognize(self.excerpt.of(classified))
        yield from self.recognition.decided(position=position, time=time)


class PartialsRecognition:
    """One pass over a stream of batches that are classified for all plans; `events` is their schema.

    It can replace a `Recognition` that is pushed. Rows come as they are decided, complex events before
    partial matches; `known` is the time up to which, or the position before which, events are known.
    """

    def __init__(
        self,
        plan: PartialsPlan,
        everything: Classification,
        events: pa.Schema,
        *,
        time: pa.DataType | None = None,
        positions: bool = True,
        state: bytes | None = None,
    ) -> None:
        self._plan = plan
        self._events = events
        arrays = None if state is None else self._arrays(state)
        self._parts: list[_Part] = []
        consumed = consumed_of(plan.whole.consume)
        for number, plan_of_part in enumerate(plan.plans):
            excerpt = Excerpt(plan_of_part.classification, everything, events)
            of_part = None if arrays is None else arrays[f"recognition_{number}"].tobytes()
            recognition = Recognition(
                plan_of_part,
                excerpt.schema,
                time=time,
                positions=positions,
                endless=True,
                state=of_part,
                consumed=consumed,
            )
            self._parts.append(_Part(recognition, excerpt))
        self._furthest = Furthest(plan, self._parts[0].recognition.schema, consumed)
        if arrays is not None:
            with sound_content():
                self._furthest.resume(arrays)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return self._furthest.schema

    def push(self, classified: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows that these events decide."""
        if classified.num_rows:
            position, time = (int(numbers_of(classified, name)[-1]) for name in (POSITION, TIME))
            yield from self.push_until(classified, position=position, time=time)

    def push_until(
        self, classified: pa.RecordBatch, *, position: int, time: int | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows decided by these events, and once none before `position`, or before `time`, will come."""
        yield from self._given([part.ended(classified, position, time) for part in self._parts])
        yield from self._furthest.given(self._known(position, time)).to_batches()

    def tables_decided(self, *, position: int, time: int | None) -> Iterator[pa.RecordBatch]:
        """The rows decided once no more events before `position`, or before `time` in ticks, will come."""
        yield from self._given(
            [part.recognition.decided(position=position, time=time) for part in self._parts]
        )
        yield from self._furthest.given(self._known(position, time)).to_batches()

    def tables_ended(self, known: int | None, last_position: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows decided by the end of the stream, which is known up to time `known`, or a position."""
        yield from self._given([part.recognition.ended(known) for part in self._parts])
        through = last_position if self._plan.window.in_positions else known
        yield from self._furthest.given(through, ended=True).to_batches()

    def advance(self, time: int) -> None:
        """Declares that no event before `time`, in ticks, will come: windows close, and memory is freed."""
        for part in self._parts:
            part.recognition.advance(time)

    can_shed = False

    def shed(self) -> int:
        """See `Recognition.shed`. It sheds nothing, since partial matches of dropped runs would be lost."""
        return 0

    def let_go(self) -> None:
        """Frees what is out of reach, if it is much; see `Recognition.let_go`."""
        for part in self._parts:
            part.recognition.let_go()

    def expire(self, *, position: int, time: int | None) -> None:
        """Declares that no event before `position`, or before `time` in ticks, will come: windows close."""
        for part in self._parts:
            part.recognition.expire(position=position, time=time)

    @property
    def waiting(self) -> int:
        """The number of events of the query that wait for their deadlines."""
        return self._parts[0].recognition.waiting

    def snapshot(self) -> bytes:
        """The state needed to continue."""
        arrays = {
            f"recognition_{number}": np.frombuffer(part.recognition.snapshot(), np.uint8)
            for number, part in enumerate(self._parts)
        }
        return written(State(self._about(), {**arrays, **self._furthest.arrays()}))

    @property
    def size(self) -> int:
        """The number of nodes, entries, partitions and events held, in reach or not."""
        return sum(part.recognition.size for part in self._parts)

    def extent(self) -> Extent:
        """The size of the state to continue, for the query and all its levels; see `Recognition.extent`."""
        extent = Extent.of_all(part.recognition.extent() for part in self._parts)
        rows = sum(array.nbytes for array in self._furthest.arrays().values())
        return extent._replace(bytes=extent.bytes + rows)

    def open_runs(self) -> OpenRuns:
        """The open runs of the query; see `Recognition.open_runs`."""
        return self._parts[0].recognition.open_runs()

    @property
    def idle(self) -> bool:
        """Whether nothing is open: a restart would change no later row."""
        return self._furthest.idle and all(part.recognition.idle for part in self._parts)

    @property
    def due(self) -> int | None:
        """The first time at which something here may be decided; None if nothing waits for a time."""
        times = [part.recognition.due for part in self._parts]
        if not self._plan.window.in_positions:
            times.append(self._furthest.due)
        return min((time for time in times if time is not None), default=None)

    def _known(self, position: int, time: int | None) -> int | None:
        """The stamp up to which events are known."""
        if not self._plan.window.in_positions:
            return time
        return self._parts[0].recognition.known_through(position, None)

    def _given(self, sets: Iterable[Iterator[EndedSets]]) -> Iterator[pa.RecordBatch]:
        """The complex events of the query; those of the levels wait."""
        for level, (part, ended) in enumerate(zip(self._parts, sets, strict=True)):
            for placed in self._placed(part.recognition, ended):
                if level:
                    self._furthest.add(level, placed)
                else:
                    yield from self._furthest.complete(placed).to_batches()

    def _placed(self, recognition: Recognition, sets: Iterator[EndedSets]) -> Iterator[Placed]:
        stamp = POSITION if self._plan.window.in_positions else TIME
        for ended in sets:
            for table, begun in recognition.reader.tables_with_starts(ended):
                rows = pa.Table.from_batches([table])
                yield Placed(rows, numbers_of(begun, POSITION), numbers_of(begun, stamp))

    def _about(self) -> dict[str, str]:
        return plan_about(KIND, self._plan.whole, self._events)

    def _arrays(self, state: bytes) -> dict[str, Any]:
        taken = read(state)
        refuse_other(taken.about, self._about())
        return dict(taken.arrays)
