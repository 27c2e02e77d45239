"""One bucket of keys on a stream: the state of MATCH_RECOGNIZE between micro-batches.

Rows wait until the watermark has passed them, and then follow those from the first undecided start of their
key, with the rows before it that PREV reads. A start is decided when the watermark has passed its window, so
the state is bounded by the window. MATCH_NUMBER() and ^ keep a row of each key for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estero.classify.arrays import one_batch
from estero.classify.column_names import KEYS, TIME
from estero.recognize.row_patterns.ordered_rows import PROGRESS
from estero.recognize.row_patterns.statements import unique
from estero.spark.row_patterns.work import Evaluated, RowPatternWork, with_progress
from estero.spark.streams.packing import batch_of, blob_of, joined
from estero.system.cached_property import cached_property

HELD: Final = "header STRING, rest BINARY, waiting BINARY"
"""The state of a bucket as Spark has it."""
_PLACE: Final = "place"


class Held(NamedTuple):
    """The state of a bucket: its header, undecided rows with their progress, and later ones."""

    header: str
    rest: bytes | None = None
    waiting: bytes | None = None

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return len(self.rest or b"") + len(self.waiting or b"")


class Turned(NamedTuple):
    """The result of a micro-batch: rows, the state, and the numbers of late rows and of others."""

    result: pa.Table
    held: Held | None
    late: int
    waiting: int
    passed: int


@dataclass(frozen=True)
class Duty:
    """The part that all buckets of a stream share. It travels to workers by pickle.

    `packed` is the schema of blobs: the time in microseconds, the keys' hashes and the crossing columns;
    `order` is SQL of the entries of ORDER BY after the time, and `zoned` says whether the time has a zone.
    """

    work: RowPatternWork
    header: str
    packed: pa.Schema
    order: tuple[str, ...]
    zoned: bool
    buckets: int

    @cached_property
    def rest(self) -> pa.Schema:
        """The schema of rows with their progress."""
        return pa.schema([*self.packed, *(pa.field(name, pa.int64()) for name in PROGRESS)])


class Buckets:
    """The evaluation of all buckets that a task has."""

    def __init__(self, duty: Duty) -> None:
        self._duty = duty
        self._evaluated = Evaluated(duty.work)

    def turn(self, held: Held | None, blobs: Sequence[bytes], watermark: int | None) -> Turned:
        """One micro-batch: `blobs` have come; all rows before the `watermark`, in milliseconds, are known."""
        duty = self._duty
        come = joined([batch_of(blob, duty.packed) for blob in blobs], duty.packed)
        open_from = None if watermark is None else watermark * 1000
        late = 0
        if open_from is not None and come.num_rows:
            in_time = come.filter(pc.greater_equal(come.column(TIME), open_from))
            late, come = come.num_rows - in_time.num_rows, in_time
        waiting = pa.Table.from_batches([*self._rows(held and held.waiting, duty.packed), come])
        if open_from is None:
            rest = b"" if held is None else held.rest
            return self._turned(self._nothing(), rest or None, waiting, late, 0)
        known = pc.less(waiting.column(TIME), open_from)
        passed, waiting = waiting.filter(known), waiting.filter(pc.invert(known))
        rows = pa.Table.from_batches(self._rows(held and held.rest, duty.rest), duty.rest)
        rows = self._in_order(pa.concat_tables([rows, with_progress(passed)]))
        if not rows.num_rows:
            return self._turned(self._nothing(), None, waiting, late, 0)
        table, rest = self._evaluated.table_and_rest(rows, self._time(open_from - 1))
        blob = blob_of(one_batch(rest)) if rest.num_rows else None
        return self._turned(self._evaluated.as_result(table), blob, waiting, late, passed.num_rows)

    def _turned(
        self, result: pa.Table, rest: bytes | None, waiting: pa.Table, late: int, passed: int
    ) -> Turned:
        held = None
        if rest is not None or waiting.num_rows:
            blob = blob_of(one_batch(waiting)) if waiting.num_rows else None
            held = Held(self._duty.header, rest, blob)
        return Turned(result, held, late, waiting.num_rows, passed)

    def _rows(self, blob: bytes | None, schema: pa.Schema) -> list[pa.RecordBatch]:
        return [] if blob is None else [batch_of(blob, schema)]

    def _nothing(self) -> pa.Table:
        return self._duty.work.result.empty_table()

    def _time(self, microseconds: int) -> str:
        """The SQL of a time."""
        origin = "TIMESTAMPTZ '1970-01-01 00:00:00+00'" if self._duty.zoned else "TIMESTAMP '1970-01-01'"
        return f"{origin} + to_microseconds({microseconds})"

    def _in_order(self, rows: pa.Table) -> pa.Table:
        """The rows by key and in order, ties as they came."""
        if not self._duty.order:
            keys = [rows.column(name).to_numpy() for name in (TIME, *KEYS)]
            return rows.take(pa.array(np.lexsort(keys)))
        name = unique("rows")
        numbered = rows.append_column(_PLACE, pa.array(np.arange(rows.num_rows)))
        order = ", ".join([*KEYS, TIME, *self._duty.order, _PLACE])
        sql = f"SELECT {_PLACE} FROM {name} ORDER BY {order}"
        places = self._evaluated.statements.table(sql, "ORDER BY", {name: numbered}).column(0)
        return rows.take(places.combine_chunks())
