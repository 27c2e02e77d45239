"""Complex events, and the furthest partial match of each start without one, as they become known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.answer_schema import (
    COMPLETE,
    EXPIRED_TIME,
    STEPS,
    columns_alike,
    partial_of,
    schema_with_partials,
)
from estero.answers.wait import times_after
from estero.classify.arrays import one_batch
from estero.engine.int64 import saturated
from estero.events.tables.shown_types import in_type
from estero.plan.levels import PartialsPlan
from estero.recognize.consumed import Consumed
from estero.recognize.state_bytes import batch_as_array, batch_of_array
from estero.recognize.until import AFTER_ALL

_STARTED = [("start", pa.int64()), ("stamp", pa.int64())]
_COMPLETED = pa.schema(_STARTED)
"""The completed starts. Waiting rows have these two columns after their own."""


class Placed(NamedTuple):
    """Rows of an answer, with the position of each one's first event, and its time or, again, position.

    The latter is the unit of the window.
    """

    rows: pa.Table
    start: NDArray[np.int64]
    stamp: NDArray[np.int64]


class Furthest:
    """What is known about each start: whether it is completed, and otherwise the row of its highest level.

    Starts are identified by their positions. `answer` is the schema of the query's own answers, `consumed`
    what it forgets, which is recorded here, too.
    """

    def __init__(self, plan: PartialsPlan, answer: pa.Schema, consumed: Consumed | None) -> None:
        self._consumed = consumed
        self._window = plan.window
        self._wait = 0 if plan.window.in_positions else plan.whole.wait or 0
        self._steps = len(plan.by_level) + 1
        self._completed_by_rows = plan.completing is None
        self.schema: Any = schema_with_partials(answer, timed=not plan.window.in_positions)
        """The columns of the results."""
        self._column_of_steps = list(map(partial_of, self.schema)).index(STEPS)
        self._waited = pa.schema([*self.schema, *map(pa.field, *zip(*_STARTED, strict=True))])
        self._completed = _COMPLETED.empty_table()
        self._waiting = self._waited.empty_table()

    @property
    def idle(self) -> bool:
        """Whether no row is waiting."""
        return not self._waiting.num_rows

    @property
    def due(self) -> int | None:
        """The first stamp at which a waiting row may be decided; None if no row is waiting."""
        if self.idle:
            return None
        return int(pc.min(self._waiting[-1]).as_py()) + self._window.length + self._wait + 1

    def complete(self, placed: Placed) -> pa.Table:
        """Takes complex events of the query, as they are reported."""
        if self._completed_by_rows:
            self.add(self._steps, placed)
        return self._marked(placed, self._steps, complete=True).select(range(len(self.schema)))

    def add(self, level: int, placed: Placed) -> None:
        """Takes complex events of a level, from 1: they wait, unless their starts have got further.

        Those of the last level mark their starts as completed.
        """
        if not placed.rows.num_rows:
            return
        if level == self._steps:
            started = pa.table([placed.start, placed.stamp], schema=_COMPLETED)
            together = pa.concat_tables([self._completed, started])
            self._completed = together.group_by(_COMPLETED.names).aggregate([])
            return
        together = pa.concat_tables([self._waiting, self._marked(placed, level, complete=False)])
        start, steps = together[-2].to_numpy(), together[self._column_of_steps].to_numpy()
        order = np.lexsort((-steps, start))
        first = np.flatnonzero(np.diff(start[order], prepend=-1))
        self._waiting = together.take(pa.array(np.sort(order[first])))

    def given(self, known: int | None, *, ended: bool = False) -> pa.Table:
        """Removes and returns the decided partial matches, in order of end and start.

        Events are known up to stamp `known`: a time, or a position up to which nothing waits for a deadline.
        If the stream has `ended`, nothing waits for one.
        """
        wait = 0 if ended else self._wait
        passed = self._before(self._waiting[-1], known, self._window.length + wait)
        completed = pc.is_in(self._waiting[-2], value_set=self._completed["start"].combine_chunks())
        rows = self._waiting.filter(pc.and_not(passed, completed))
        self._waiting = self._waiting.filter(pc.invert(pc.or_(passed, completed)))
        gone = self._before(self._completed["stamp"], known, self._window.length + self._wait)
        self._completed = self._completed.filter(pc.invert(gone))
        if self._consumed is not None and known is not None:
            self._consumed.forget(saturated(known - self._window.length - self._wait))
        return rows.select(range(len(self.schema)))

    def arrays(self) -> dict[str, Any]:
        """The state as arrays, for `resume`."""
        arrays = {"completed": _as_array(self._completed), "waiting": _as_array(self._waiting)}
        return arrays if self._consumed is None else {**arrays, **self._consumed.arrays()}

    def resume(self, arrays: dict[str, Any]) -> None:
        """Takes the state of `arrays` out of them; raises ValueError or KeyError for other arrays."""
        self._completed = _as_table(arrays["completed"], _COMPLETED)
        self._waiting = _as_table(arrays["waiting"], self._waited)
        if self._consumed is not None:
            self._consumed.resume(arrays)

    def _marked(self, placed: Placed, steps: int, *, complete: bool) -> pa.Table:
        """Rows with all columns: missing ones are NULL."""
        rows = placed.rows
        of_partials: dict[str, Any] = {
            STEPS: pa.array(np.full(rows.num_rows, steps)),
            COMPLETE: pa.array(np.full(rows.num_rows, complete)),
        }
        own = columns_alike(rows, self.schema)
        columns = []
        for field in self.schema:
            partial = partial_of(field)
            column = own.get(field.name) if partial is None else of_partials.get(partial)
            if partial == EXPIRED_TIME and not complete:
                column = times_after(placed.stamp, self._window.length, field.type)
            columns.append(
                pa.nulls(rows.num_rows, field.type) if column is None else in_type(column, field.type)
            )
        return pa.table([*columns, placed.start, placed.stamp], schema=self._waited)

    @staticmethod
    def _before(stamps: pa.ChunkedArray, known: int | None, length: int) -> pa.ChunkedArray:
        """Whether each stamp is more than `length` before the known time."""
        if known is None:
            return pa.chunked_array([pa.array(np.zeros(len(stamps), np.bool_))])
        if known >= AFTER_ALL:
            return pa.chunked_array([pa.array(np.ones(len(stamps), np.bool_))])
        return pc.less(stamps, pa.scalar(saturated(known - length), pa.int64()))


def _as_array(table: pa.Table) -> Any:
    return batch_as_array(one_batch(table))


def _as_table(array: Any, schema: pa.Schema) -> pa.Table:
    batch = batch_of_array(array)
    if not batch.schema.equals(schema):
        raise ValueError("other columns")
    return pa.Table.from_batches([batch])
