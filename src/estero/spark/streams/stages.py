"""The work of Python workers on a stream: pack events, take turns at the state of buckets, unpack answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.answers.answer_ids import ID, AnswerIds, refuse_taken
from estero.classify.column_names import EVENT
from estero.errors import DataError
from estero.spark.streams.bucket import NEVER, Duty, Held, Progress, Turn, held_of, refuse_other
from estero.spark.streams.packing import (
    GUARD,
    NO_TIME,
    RULES,
    STATE,
    Packing,
    batch_of,
    blob_of,
    gathered,
    group_numbers,
    joined,
)
from estero.spark.work import Batches
from estero.spark.workers import spare_collector

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

    Frames = Iterator[pd.DataFrame]

COUNTS = ("late", "waiting", "recognized", "state_bytes")
OLDEST = "oldest"
_BLOBS = ("answers", "late_events")


def open_names(steps: int) -> tuple[str, ...]:
    """The names of the numbers of open runs, by step."""
    return tuple(f"open_{step}" for step in range(1, steps + 1))


def turn_schema(steps: int) -> str:
    """The columns of a turn's rows: blobs and, in its last row, counts, open runs and since when."""
    numbers = [f"{name} BIGINT" for name in (*COUNTS, *open_names(steps), OLDEST)]
    return ", ".join([*numbers, *(f"{name} BINARY" for name in _BLOBS)])


_TURN = ("sql.streaming.queryId", "streaming.sql.batchId")
"""Spark's properties for the id of a stream, which its checkpoint keeps, and the number of a micro-batch."""

MATCH, LATE = "match", "late"
"""The columns of a stream that also gives late events."""

_ROWS, _BYTES = 1 << 16, 1 << 22
"""The most rows, and the most bytes, of a blob of answers, roughly."""
_HELD_BACK = 1 << 25
"""The bytes of results from which PySpark, which waits for enough rows, is made to send them."""


def packing_tasks(packing: Packing) -> Callable[[Batches], Batches]:
    """The function for ``mapInArrow`` that packs the rows of a task."""

    def pack(batches: Batches) -> Batches:
        from pyspark import TaskContext

        spare_collector()
        context = TaskContext.get()
        return packing.packed(batches, 0 if context is None else context.partitionId())

    return pack


@dataclass(frozen=True, slots=True)
class Stages:
    """The functions that workers run. PySpark sends its rows once there are more than `flush`.

    Beside `duty` there may be `others`, on other readings of the events, with their own buckets: answers and
    headers are alike. With `ids` answers have a column with their ids.
    """

    duty: Duty
    flush: int
    others: tuple[Duty, ...] = ()
    ids: bool = False

    def __post_init__(self) -> None:
        if self.ids:
            refuse_taken(self.duty.work.answer, [ID], "answer_ids=True")

    @property
    def answer(self) -> pa.Schema:
        """The columns of answers."""
        answer = self.duty.work.answer
        return answer.append(pa.field(ID, pa.string(), nullable=False)) if self.ids else answer

    def groups(self) -> list[tuple[Duty, tuple[int, ...]]]:
        """The duties, each with the numbers under which Spark groups its buckets."""
        duties = (self.duty, *self.others)
        numbers = iter(group_numbers(sum(duty.buckets for duty in duties)))
        return [(duty, tuple(islice(numbers, duty.buckets))) for duty in duties]

    def pack(self) -> Callable[[Batches], Batches]:
        """The function for ``mapInArrow`` over classified rows."""
        return self.packs()[0]

    def packs(self) -> list[Callable[[Batches], Batches]]:
        """The same for the rows of each duty."""
        return [packing_tasks(Packing(duty.buckets, duty.packed, groups)) for duty, groups in self.groups()]

    def turn(self) -> Callable[[tuple[int], Iterable[pd.DataFrame], GroupState], Frames]:
        """The function for ``applyInPandasWithState``, grouped by buckets."""
        duties = {group: duty for duty, groups in self.groups() for group in groups}

        def turn(key: tuple[int], frames: Iterable[pd.DataFrame], state: GroupState) -> Frames:
            spare_collector()
            held = Held(*state.get) if state.exists else None
            frames = [] if state.hasTimedOut else list(frames)
            if (begun := state_in(frames)) is not None:
                held = self._begun(begun, held)
                state.update(held)
            return (
                self._guard(held, state)
                if key[0] == GUARD
                else self._turn(key[0], duties[key[0]], held, frames, state)
            )

        return turn

    def unpack(self, late: Sequence[str] | None = None) -> Callable[[Batches], Batches]:
        """The function for ``mapInArrow`` from the rows of turns to the answers.

        With `late`, the names of their columns, also the late events, in a column beside that of the answers.
        """
        answer, packed = self.answer, self._late_schema()
        events = pa.schema([field.with_name(name) for field, name in zip(packed, late or (), strict=False)])
        kinds = pa.struct([field.with_nullable(True) for field in answer]), pa.struct(list(events))

        def unpack(batches: Batches) -> Batches:
            spare_collector()
            for batch in batches:
                for row in zip(*(batch.column(name) for name in _BLOBS), strict=True):
                    for place, (blob, schema) in enumerate(zip(row, (answer, events), strict=True)):
                        if blob.is_valid:
                            unpacked = batch_of(blob.as_buffer(), schema)  # where it lies in the batch
                            yield unpacked if late is None else _one_of(unpacked, place, kinds)

        return unpack

    def _begun(self, begun: Held, held: Held | None) -> Held:
        """The state with which a bucket begins; raises `DataError` if it belongs to another stream."""
        refuse_other(begun.header, self.duty.header)
        if held is not None:
            raise DataError(
                "this stream has begun, and a further state has come",
                hint="a state is for one new stream: leave its directory as it is",
            )
        return begun

    def _guard(self, held: Held | None, state: GroupState) -> Frames:
        """Keeps the header of the state, even if nothing else is kept."""
        if held is None:
            state.update(Held(self.duty.header))
        else:
            refuse_other(held.header, self.duty.header)
        return iter(())

    def _turn(
        self, group: int, duty: Duty, held: Held | None, frames: Sequence[pd.DataFrame], state: GroupState
    ) -> Frames:
        blobs, newest = arrived(frames)
        watermark = state.getCurrentWatermarkMs()
        turn = Turn(duty, held, watermark if watermark > 0 else None, newest, rules_in(frames))
        if blobs or turn.is_due:
            answers = turn.run(blobs)
            yield from self._blobs_of(self._with_ids(answers, group) if self.ids else answers)
            held = turn.close()
            if held is not None:
                state.update(held)
            elif state.exists:
                state.remove()
        if held is not None and held.look_again != NEVER:
            state.setTimeoutTimestamp(max(held.look_again, watermark, 1))
        if held is not None or turn.late or turn.recognized:
            late = sum(batch.num_rows for batch in turn.late)
            counts = (late, turn.waiting, turn.recognized, 0 if held is None else held.size)
            progress = Progress.read(None if held is None else held.progress, self.duty.steps)
            numbers = (*counts, *progress.runs, progress.oldest)
            yield self._row(numbers=numbers, late_events=self._late_blob(turn))

    def _with_ids(self, answers: Iterator[pa.RecordBatch], group: int) -> Iterator[pa.RecordBatch]:
        """The answers of a turn with their ids, which are the same if the turn is repeated."""
        from pyspark import TaskContext

        context = TaskContext.get()
        origin = () if context is None else map(context.getLocalProperty, _TURN)
        ids = AnswerIds(*origin, group)
        for batch in answers:
            yield pa.RecordBatch.from_arrays([*batch.columns, ids.of(batch.columns)], schema=self.answer)

    def _blobs_of(self, answers: Iterator[pa.RecordBatch]) -> Frames:
        """The answers as blobs, with empty rows where PySpark is to send those it has."""
        held_back = 0
        for batch in gathered(answers, self.answer, rows=_ROWS, size=_BYTES):
            blob = blob_of(batch)
            yield self._row(answers=blob)
            held_back += len(blob)
            if held_back >= _HELD_BACK:
                yield self._row(times=self.flush + 1)
                held_back = 0

    def _late_schema(self) -> pa.Schema:
        return pa.schema([field for field in self.duty.packed if field.name.startswith(EVENT)])

    def _late_blob(self, turn: Turn) -> bytes | None:
        schema = self._late_schema()
        if not (turn.late and schema.names):
            return None
        return blob_of(joined([batch.select(schema.names) for batch in turn.late], schema))

    def _row(
        self,
        *,
        numbers: tuple[int | None, ...] | None = None,
        answers: bytes | None = None,
        late_events: bytes | None = None,
        times: int = 1,
    ) -> pd.DataFrame:
        """A row of a turn, `times` times."""
        import pandas as pd

        names = (*COUNTS, *open_names(self.duty.steps), OLDEST)
        values = [*(numbers or [None] * len(names)), answers, late_events]
        columns = zip((*names, *_BLOBS), values, strict=True)
        return pd.DataFrame({name: pd.Series([value] * times, dtype=object) for name, value in columns})


def arrived(frames: Iterable[pd.DataFrame]) -> tuple[list[bytes], int | None]:
    """The blobs of packed rows in order of arrival, and the greatest time of all tasks."""
    blobs: list[tuple[int, int, bytes]] = []
    newest: list[int] = []
    for frame in frames:
        for task, number, time, blob in zip(
            frame["task"], frame["number"], frame["newest"], frame["events"], strict=True
        ):
            if blob is not None and task >= 0:
                blobs.append((task, number, blob))
            elif time != NO_TIME:
                newest.append(int(time))
    return [blob for _, _, blob in sorted(blobs, key=itemgetter(0, 1))], max(newest, default=None)


def state_in(frames: Iterable[pd.DataFrame]) -> Held | None:
    """The state with which the bucket begins, if packed rows have one: that with the most events."""
    blobs = [blob for frame in frames for blob in frame["events"][frame["task"] == STATE]]
    return max(map(held_of, blobs), key=lambda held: (held.seen, held.size), default=None)


def rules_in(frames: Iterable[pd.DataFrame]) -> dict[str, str] | None:
    """The rules from now on, if packed rows have them: their texts by name."""
    for frame in frames:
        for text in frame["events"][frame["task"] == RULES]:
            return dict(json.loads(text))
    return None


def _one_of(rows: pa.RecordBatch, place: int, kinds: Sequence[pa.StructType]) -> pa.RecordBatch:
    """Rows of the kind at `place` as a column of structs, with NULL for the columns of other kinds."""
    columns: list[pa.Array] = [pa.nulls(rows.num_rows, kind) for kind in kinds]
    columns[place] = pa.StructArray.from_arrays(rows.columns, fields=list(kinds[place]))
    return pa.RecordBatch.from_arrays(columns, names=[MATCH, LATE])
