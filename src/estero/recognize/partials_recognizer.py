"""Complex events and partial matches of a stream without an end, in one answer for each push."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estero.answers.answer import Answer
from estero.answers.report import COMPLETE, EXPIRED_TIME, STEPS, marked_as_partial
from estero.engine.int64 import saturated
from estero.events.sources import Source
from estero.events.streams.stream_layout import StreamLayout
from estero.plan.levels import PartialsPlan
from estero.recognize.continuous import LAYOUT, ContinuousRecognizer
from estero.recognize.held_rows import GivenRows
from estero.recognize.increment import Turn
from estero.recognize.progress import RecognizerProgress
from estero.recognize.state import plan_about
from estero.recognize.state_bytes import (
    State,
    batch_as_array,
    batch_of_array,
    check_key,
    read,
    sound_content,
    written,
)
from estero.recognize.until import AFTER_ALL, Until, check_until, known_until

KIND: Final = "a recognizer of partial matches"
"""What such a state says that it is of."""

_COMPLETED = pa.schema([("start", pa.int64()), ("stamp", pa.int64())])


class PartialsRecognizer:
    """Recognizes a query, and how far its sequence came, over events that are pushed batch by batch.

    (`Query.recognizer` makes one where it is asked for `partials`.) Beside the columns of answers there are
    ``steps`` (int64, from 1), ``expired_time`` where the window is one of time (NULL of a complex event), and
    ``complete`` (boolean). A partial match is given once it is known that its window has passed and its start
    was not completed. Otherwise it is as a `ContinuousRecognizer`; the state is that of the window.

    Beside the query runs, for each level but the last, a recognizer of what leads to it. All decide a start
    at the same time, so its level is the highest that has a row of it.
    """

    def __init__(
        self, plan: PartialsPlan, layout: StreamLayout, source: Source, *, state: State | None = None
    ) -> None:
        self._plan = plan
        self._layout = layout
        states = [None] * (1 + len(plan.by_level)) if state is None else self._states(state)
        self._whole, *self._levels = (
            ContinuousRecognizer(each, layout, source, state=one)
            for each, one in zip((plan.whole, *plan.by_level), states, strict=True)
        )
        self._schema = _schema(self._whole.schema, timed=not plan.window.in_positions)
        self._turn = Turn()
        self._completed = _COMPLETED.empty_table()
        self._waiting = self._schema.empty_table()
        if state is not None:
            with sound_content():
                self._completed = _as_table(state.arrays["completed"], _COMPLETED)
                self._waiting = _as_table(state.arrays["waiting"], self._schema)

    @property
    def schema(self) -> pa.Schema:
        """The columns of answers."""
        return self._schema

    @property
    def late(self) -> int:
        """How many events came too late, of all that were pushed."""
        return self._whole.late

    @property
    def held_back(self) -> int:
        """How many events wait for earlier ones that may still come."""
        return self._whole.held_back

    @property
    def position(self) -> int:
        """The position that the next event gets."""
        return self._whole.position

    def progress(self) -> RecognizerProgress:
        """What was read, and which partial matches of the query are open."""
        return self._whole.progress()

    def late_events(self) -> pa.Table:
        """The events of the last push that came too late, as they were pushed."""
        return self._whole.late_events()

    def push(self, events: object) -> Answer:
        """The complex events and partial matches that these events decide; see `ContinuousRecognizer.push`.

        The answer is held in memory, and stays good.
        """
        self._turn.check_sound()
        return self._answered([each.push(events).to_arrow() for each in self._all], self._known())

    def flush(self) -> Answer:
        """Lets all events go that are held back, and gives what they decide."""
        self._turn.check_sound()
        return self._answered([each.flush().to_arrow() for each in self._all], self._known())

    def close(self, *, until: Until | None = None) -> Answer:
        """As `flush`; nothing can be pushed afterwards. Events are known up to the last one, or to `until`.

        See `ContinuousRecognizer.close`.
        """
        self._turn.check_sound()
        known = self._whole.greatest
        if until is not None:
            known = known_until(until, self._plan.whole, self._whole.time_type)
            check_until(known, self._whole.greatest)
        first, *others = self._all
        tables = [first.close(until=until).to_arrow(), *(each.close().to_arrow() for each in others)]
        answer = self._answered(tables, known, ended=True)
        self._turn.fail("the recognizer is closed: make a new one, or restore a snapshot of it")
        return answer

    def snapshot(self, *, key: bytes | None = None) -> bytes:
        """All that is needed to go on in another process (`estero.restore`); see `ContinuousRecognizer`."""
        self._turn.check_sound()
        check_key(key)
        arrays: dict[str, Any] = {
            f"recognizer_{number}": np.frombuffer(each.snapshot(), np.uint8)
            for number, each in enumerate(self._all)
        }
        arrays |= {"completed": _as_array(self._completed), "waiting": _as_array(self._waiting)}
        arrays |= self._layout.as_arrays()
        return written(State({**self._about(), LAYOUT: self._layout.as_text()}, arrays), key)

    def __repr__(self) -> str:
        return f"PartialsRecognizer({self.position:,} events, {self.late:,} late)\n{self._plan.whole.text}"

    # -------------------------------------------------------------------------------- what is known

    @property
    def _all(self) -> list[ContinuousRecognizer]:
        return [self._whole, *self._levels]

    def _known(self) -> int | None:
        """Up to which time, or before which position, events are known."""
        return self._whole.position - 1 if self._plan.window.in_positions else self._whole.watermark

    def _answered(self, tables: list[pa.Table], known: int | None, *, ended: bool = False) -> Answer:
        """The rows of the query, and those of the levels that are decided as events are known so far."""
        if self._plan.window.in_positions:
            known = self._whole.position - 1
        complete, *levels = tables
        self._remember(complete)
        found = self._furthest(levels)
        waiting = pa.concat_tables([self._waiting, found])
        wait = 0 if ended else self._plan.whole.wait or 0
        passed = self._before(self._stamps(waiting), known, self._plan.window.length + wait)
        open_ends = pc.invert(pc.is_in(waiting["start"], value_set=self._completed["start"].combine_chunks()))
        self._waiting = waiting.filter(pc.and_(open_ends, pc.invert(passed)))
        given = waiting.filter(pc.and_(open_ends, passed))
        steps = len(self._plan.by_level) + 1
        rows = pa.concat_tables([self._marked(complete, steps, complete=True), given])
        order = pc.sort_indices(rows, sort_keys=[("end", "ascending"), ("start", "ascending")])
        self._forget(known)
        return Answer(GivenRows(rows.take(order).combine_chunks(), self._plan.whole.text))

    def _furthest(self, levels: list[pa.Table]) -> pa.Table:
        """Of each start the row of its highest level."""
        rows = [self._marked(table, level, complete=False) for level, table in enumerate(levels, 1)]
        together = pa.concat_tables([*rows, self._schema.empty_table()])
        start, steps = together["start"].to_numpy(), together[STEPS].to_numpy()
        order = np.lexsort((-steps, start))
        first = np.flatnonzero(np.diff(start[order], prepend=-1))
        return together.take(pa.array(order[first]))

    def _marked(self, table: pa.Table, steps: int, *, complete: bool) -> pa.Table:
        """Rows with all columns: those that a table lacks are NULL."""
        rows = table.num_rows
        there = {
            STEPS: pa.array(np.full(rows, steps)),
            COMPLETE: pa.array(np.full(rows, complete)),
        }
        if EXPIRED_TIME in self._schema.names and not complete:
            kind = self._schema.field(EXPIRED_TIME).type
            expired = table["start_time"].cast(pa.int64()).to_numpy() + self._plan.window.length
            there[EXPIRED_TIME] = pa.array(expired).cast(kind)
        columns = [
            there[field.name]
            if field.name in there
            else table[field.name].cast(field.type)
            if field.name in table.column_names
            else pa.nulls(rows, field.type)
            for field in self._schema
        ]
        return pa.table(columns, schema=self._schema)

    def _stamps(self, rows: pa.Table) -> pa.ChunkedArray:
        name = "start" if self._plan.window.in_positions else "start_time"
        return rows[name].cast(pa.int64())

    @staticmethod
    def _before(stamps: pa.ChunkedArray, known: int | None, length: int) -> pa.ChunkedArray:
        """Which stamps are more than `length` before what is known."""
        if known is None:
            return pa.chunked_array([pa.array(np.zeros(len(stamps), np.bool_))])
        if known >= AFTER_ALL:
            return pa.chunked_array([pa.array(np.ones(len(stamps), np.bool_))])
        return pc.less(stamps, pa.scalar(saturated(known - length), pa.int64()))

    def _remember(self, complete: pa.Table) -> None:
        """Keeps the starts that are completed."""
        started = pa.table([complete["start"], self._stamps(complete)], schema=_COMPLETED)
        together = pa.concat_tables([self._completed, started])
        self._completed = together.group_by(["start", "stamp"]).aggregate([])

    def _forget(self, known: int | None) -> None:
        """Lets completed starts go that no partial match can have any more."""
        length = self._plan.window.length + (self._plan.whole.wait or 0)
        gone = self._before(self._completed["stamp"], known, length)
        self._completed = self._completed.filter(pc.invert(gone))

    # -------------------------------------------------------------------------------- states

    def _about(self) -> dict[str, str]:
        columns = pa.schema([(field.name, field.type) for field in self._whole.schema])
        return plan_about(KIND, self._plan.whole, columns)

    def _states(self, state: State) -> list[State | None]:
        """The states of the recognizers."""
        with sound_content():
            parts = range(1 + len(self._plan.by_level))
            return [read(state.arrays[f"recognizer_{number}"].tobytes()) for number in parts]


def _schema(answer: pa.Schema, *, timed: bool) -> pa.Schema:
    """The columns of both kinds of rows."""
    shared = {"start", "end", "start_time", "end_time"}
    fields = [field if field.name in shared else field.with_nullable(True) for field in answer]
    fields.append(marked_as_partial(STEPS, pa.int64()))
    if timed and "end_time" in answer.names:
        fields.append(marked_as_partial(EXPIRED_TIME, answer.field("end_time").type).with_nullable(True))
    return pa.schema([*fields, marked_as_partial(COMPLETE, pa.bool_())])


def _as_array(table: pa.Table) -> Any:
    batches = table.combine_chunks().to_batches()
    return batch_as_array(batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema))


def _as_table(array: Any, schema: pa.Schema) -> pa.Table:
    batch = batch_of_array(array)
    if not batch.schema.equals(schema):
        raise ValueError("other columns")
    return pa.Table.from_batches([batch])
