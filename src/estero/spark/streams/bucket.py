"""One bucket of keys on a stream: its state between micro-batches, and the effect of a micro-batch on it.

Spark keeps one row of state for each bucket: a snapshot of recognition, and the events that wait until the
watermark has passed them. A turn takes the new events and the watermark, puts the events that the watermark
has passed in stream order, recognizes them, and returns the state to keep and when to run again.

Events before the watermark are not waited for. An event is late if its time is before the watermark, or if it
sorts before one that was already recognized; it is counted and left out. Spark's watermark is in whole
milliseconds and is that of earlier micro-batches. If Estero has made it, the next one is known to be at least
the greatest time seen here minus the lateness, to the tick, so that events up to there need not wait. The
user's own counts as having passed all of its millisecond, or the last events of a stream would wait for ever.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.classify.column_names import POSITION, RELEVANT, TIME
from estero.engine.int64 import GREATEST, LEAST, are_before, count_before, fall, saturated
from estero.errors import DataError
from estero.spark.streams.bucket_work import BucketRecognition, BucketWork, ChangingRules
from estero.spark.streams.packing import batch_of, blob_of, joined
from estero.spark.streams.ticks import Ticks
from estero.spark.work import Work, classified_batch

FORMAT = 2
"""The version of the state of streams. Other versions are refused."""

_ANEW = "give the stream a checkpoint directory of its own"

NEVER = -1
"""Spark's word for no timer."""

HELD = (
    "header STRING, seen BIGINT, closed BIGINT, look_again BIGINT, "
    "last BINARY, waiting BINARY, recognition BINARY, progress STRING"
)
"""The state of a bucket as Spark has it."""

_NOTHING = LEAST - 1
"""The watermark at first, which has not passed any time."""
_LAST_MS = GREATEST // 1000
"""The last millisecond of Spark's timestamps."""
_AT_ONCE = 1 << 15
"""The number of events recognized at once: after each lot, events that have left the window are forgotten."""


class Held(NamedTuple):
    """The state of a bucket.

    `header` identifies the stream. `seen` events have their numbers, those before time `closed` are late, and
    when the watermark has passed the millisecond `look_again`, something here is over (else `NEVER`). `last`
    was recognized last; it and those `waiting` are blobs (packing.py). `recognition` is a snapshot, None
    before the first event, and `progress` the open runs (`Progress`), as JSON.
    """

    header: str
    seen: int = 0
    closed: int = LEAST
    look_again: int = NEVER
    last: bytes | None = None
    waiting: bytes | None = None
    recognition: bytes | None = None
    progress: str | None = None

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return sum(map(len, filter(None, (self.last, self.waiting, self.recognition))))


_HELD = pa.schema(
    [
        *(("header", pa.string()), ("seen", pa.int64()), ("closed", pa.int64()), ("look_again", pa.int64())),
        *((name, pa.binary()) for name in ("last", "waiting", "recognition")),
        ("progress", pa.string()),
    ]
)


def held_blob(held: Held) -> bytes:
    """The state of a bucket as bytes."""
    columns = [pa.array([value], field.type) for value, field in zip(held, _HELD, strict=True)]
    return blob_of(pa.RecordBatch.from_arrays(columns, schema=_HELD))


def held_of(blob: bytes) -> Held:
    """The state from `held_blob`."""
    (row,) = batch_of(blob, _HELD).to_pylist()
    return Held(**row)


class Progress(NamedTuple):
    """The open runs of a bucket by step, from step 1, and the time of the first event they have marked.

    The time is in ticks, None if nothing is open.
    """

    runs: tuple[int, ...]
    oldest: int | None = None

    @classmethod
    def of(cls, recognition: BucketRecognition, steps: int) -> Progress:
        """The progress of a recognition of a pattern with this number of steps."""
        open_runs, oldest = recognition.open_runs()
        runs = tuple(open_runs.get(step, 0) for step in range(1, steps + 1))
        return cls(runs, None if oldest is None else oldest[1])

    @classmethod
    def read(cls, text: str | None, steps: int) -> Progress:
        """The progress that `as_text` wrote; None if nothing is open."""
        if text is None:
            return cls((0,) * steps)
        runs, oldest = json.loads(text)
        return cls(tuple(runs), oldest)

    def as_text(self) -> str | None:
        """The progress as JSON; None if nothing is open."""
        return json.dumps([self.runs, self.oldest]) if any(self.runs) or self.oldest is not None else None


@dataclass(frozen=True, slots=True)
class Duty:
    """The part that all buckets of a stream share; it travels to workers by pickle.

    `packed` is the schema of blobs; events are sorted by its columns `order`. The keys are in `buckets`.
    `lateness` is in ticks, None if the watermark is the user's.
    """

    work: BucketWork
    header: str
    packed: pa.Schema
    order: tuple[str, ...]
    buckets: int
    ticks: Ticks
    lateness: int | None

    @property
    def steps(self) -> int:
        """The number of steps of the pattern."""
        return self.work.steps

    @property
    def counted(self) -> bool:
        """Whether all events are included and get their positions in the stream."""
        return self.work.division.positions


class Turn:
    """One micro-batch of a bucket, or a timer that it had set: `run` it to its end, then `close` it.

    `watermark` is Spark's, in milliseconds, None if there is none yet. `newest` is the greatest time of all
    buckets in this micro-batch. `rules` are those from now on, by name, if they change. Raises `DataError` if
    `held` is the state of another stream.
    """

    def __init__(
        self,
        duty: Duty,
        held: Held | None,
        watermark: int | None,
        newest: int | None,
        rules: Mapping[str, str] | None = None,
    ) -> None:
        if held is not None:
            refuse_other(held.header, duty.header)
        self._duty = duty
        self._held = held or Held(duty.header)
        self._spark, self._until = LEAST, _NOTHING
        if watermark is not None:
            self._spark = saturated(duty.ticks.from_ms(watermark))
            self._until = duty.ticks.through_ms(watermark)
        self._passed = watermark is not None and NEVER < self._held.look_again < watermark
        self._open_from = self._closed = max(self._held.closed, self._spark)
        if duty.lateness is not None:
            self._until = _NOTHING if watermark is None else self._spark
            if newest is not None:
                behind = newest - duty.lateness
                self._closed = max(self._closed, saturated(behind))
                self._until = max(self._until, behind, self._closed if self._closed > LEAST else _NOTHING)
        self._seen = self._held.seen
        self._last = self._rows_of(self._held.last)
        self._waiting = self._rows_of(self._held.waiting)
        self._rules = rules
        self._recognition: BucketRecognition | None = None
        self.late: list[pa.RecordBatch] = []
        self.recognized: int = 0

    @property
    def waiting(self) -> int:
        """The number of events that wait."""
        return int(self._waiting.num_rows)

    @property
    def is_due(self) -> bool:
        """Whether the watermark has passed the time for which the bucket had set a timer."""
        waited = self.waiting > 0 and _first_time(self._waiting) <= self._until
        return self._passed or waited or self._rules is not None

    def run(self, blobs: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
        """The answers that end in events that the watermark has passed; `blobs` are in order of arrival."""
        recognition = None if self._rules is None else self._recognizing()
        if isinstance(recognition, ChangingRules):
            recognition.change(self._rules or {})
        come = joined([self._rows_of(blob) for blob in blobs], self._duty.packed)
        come = self._in_time(come)
        if come.num_rows:
            self._waiting = self._sorted(joined([self._waiting, come], self._duty.packed))
        passed = count_before(_times(self._waiting), self._until + 1)
        if passed:
            ready = self._waiting.slice(0, passed)
            self._last = self._waiting.slice(passed - 1, 1)
            self._waiting = self._waiting.slice(passed)
            self.recognized = passed
            yield from self._answers(ready)
        yield from self._decided()

    def close(self) -> Held | None:
        """The state to keep; None if nothing in it can matter to later events."""
        snapshot, idle, progress = self._held.recognition, True, self._held.progress
        closed = snapshot is not None and (self._duty.work.waits or self._spark > self._held.closed)
        if self._recognition is not None or closed:
            recognition = self._recognizing()
            recognition.advance(self._closed)
            snapshot, idle = recognition.snapshot(), recognition.idle
            progress = Progress.of(recognition, self._duty.steps).as_text()
        elif snapshot is not None:
            idle = False
        gone = self._last.num_rows == 0 or _first_time(self._last) < self._spark
        if idle and gone and not self.waiting and not self._duty.counted:
            return None
        return Held(
            self._duty.header,
            self._seen,
            self._closed,
            self._look_again(idle=idle),
            blob_of(self._last) if self._last.num_rows else None,
            blob_of(self._waiting) if self.waiting else None,
            snapshot,
            progress,
        )

    def _look_again(self, *, idle: bool) -> int:
        """The millisecond with which something here is over: a wait, or the windows of all open runs."""
        ticks, window = self._duty.ticks, self._duty.work.window
        soon = [ticks.ms_of(_first_time(self._waiting)) - 1] if self.waiting else []
        due = None if self._recognition is None else self._recognition.due
        if due is not None and ticks.ms_of(due) <= _LAST_MS:
            soon.append(ticks.ms_of(due))
        if soon:
            return max(0, min(soon))
        if self._duty.counted:
            return NEVER
        last = _first_time(self._last)
        if idle:
            return max(0, ticks.ms_of(last))
        over = None if window is None else ticks.ms_of(last + window.length)
        return NEVER if over is None or over > _LAST_MS else max(0, over)

    def _recognizing(self) -> BucketRecognition:
        if self._recognition is None:
            state = self._held.recognition
            self._recognition = self._duty.work.recognizing(snapshots=True, state=state)
        return self._recognition

    def _answers(self, ready: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        work, recognition = self._duty.work, self._recognizing()
        if self._duty.counted:
            places = pa.array(np.arange(self._seen, self._seen + ready.num_rows))
            relevant = ready.column(RELEVANT)
            self._seen += ready.num_rows
            ready = ready.append_column(POSITION, places).filter(relevant)
        for first in range(0, ready.num_rows, _AT_ONCE):
            classified = classified_batch(ready.slice(first, _AT_ONCE), work.events, self._seen)
            if not self._duty.counted:
                self._seen += classified.num_rows
            yield from map(work.shown, recognition.push(classified))

    def _decided(self) -> Iterator[pa.RecordBatch]:
        """The answers that are decided now, if that is later than at their end."""
        work, begun = self._duty.work, self._recognition is not None or self._held.recognition is not None
        if not (work.decides_later and begun):
            return
        decided = self._recognizing().tables_decided(position=self._seen - 1, time=self._closed)
        yield from map(work.shown, decided)

    def _in_time(self, come: pa.RecordBatch) -> pa.RecordBatch:
        """The events that are not late; the others are put into `late`."""
        times = _times(come)
        late = are_before(times, self._open_from)
        if self._last.num_rows:
            late |= self._before_last(come, times)
        if late.any():
            self.late.append(come.filter(pa.array(late)))
            come = come.filter(pa.array(~late))
        return come

    def _before_last(self, come: pa.RecordBatch, times: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each event would have to come before the one that was recognized last."""
        last = _first_time(self._last)
        before = times < last
        ties = np.flatnonzero(times == last)
        if ties.size and len(self._duty.order) > 1:
            both = joined([self._last, come.take(pa.array(ties))], self._duty.packed)
            places = self._places(both)
            before[ties[places[: int(np.flatnonzero(places == 0)[0])] - 1]] = True
        return before

    def _sorted(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """The events in stream order: by time, then `order`, then as they are."""
        times = _times(events)
        if len(self._duty.order) == 1:
            if not fall(times):
                return events
            return events.take(pa.array(np.argsort(times, kind="stable")))
        return events.take(pa.array(self._places(events)))

    def _places(self, events: pa.RecordBatch) -> NDArray[np.int64]:
        """The numbers of the events in stream order."""
        keys = [(name, "ascending") for name in self._duty.order]
        table = pa.Table.from_batches([events])
        indices = pc.sort_indices(table, sort_keys=keys)
        return np.array(indices.to_numpy(), np.int64)

    def _rows_of(self, blob: bytes | None) -> pa.RecordBatch:
        schema = self._duty.packed
        return joined([], schema) if blob is None else batch_of(blob, schema)


def _times(events: pa.RecordBatch) -> NDArray[np.int64]:
    times: NDArray[np.int64] = events.column(TIME).to_numpy()
    return times


def _first_time(events: pa.RecordBatch) -> int:
    return int(events.column(TIME)[0].as_py())


# ------------------------------------------------------------------------- the identity of the state


def header_of(work: Work, packed: pa.Schema, buckets: int) -> str:
    """The header of the state of a stream that does `work` on events packed in columns of `packed`."""
    about = {
        "format": FORMAT,
        "query": work.plan.text,
        "plan": work.fingerprint(packed),
        "buckets": buckets,
    }
    return json.dumps(about)


def refuse_other(given: str, expected: str) -> None:
    """Raises `DataError` unless the two headers are the same."""
    if given == expected:
        return
    saved: Mapping[str, Any] = json.loads(given)
    now: Mapping[str, Any] = json.loads(expected)
    if saved["format"] != now["format"]:
        raise DataError(
            f"the checkpoint has format {saved['format']}, and this version of Estero reads {now['format']}",
            hint=f"{_ANEW}, or go on with the version of Estero that wrote it",
        )
    refuse_other_rules(saved.get("rules"), now.get("rules"))
    if saved["query"] != now["query"]:
        raise DataError(
            f"the checkpoint belongs to another query: {saved['query']}",
            hint=f"it cannot go on with {now['query']}; {_ANEW}",
        )
    if saved["buckets"] != now["buckets"]:
        raise DataError(
            f"the checkpoint has the keys in {saved['buckets']} buckets, and {now['buckets']} are asked for",
            hint=f"ask for partitions={saved['buckets']}, or {_ANEW}",
        )
    raise DataError(
        "the checkpoint belongs to this query, but with other columns or settings",
        hint=f"events must come with the columns and types that they had; else {_ANEW}",
    )


def refuse_other_rules(saved: Mapping[str, str] | None, now: Mapping[str, str] | None) -> None:
    """Raises `DataError` if two headers have different rules: digests of their queries, by name."""
    if saved is None or now is None:
        return
    for name in saved:
        if name not in now:
            raise DataError(f"the checkpoint has the rule {name!r}, and the set does not", hint=_ANEW)
        if saved[name] != now[name]:
            raise DataError(f"the rule {name!r} has another query than in the checkpoint", hint=_ANEW)
    for name in now:
        if name not in saved:
            raise DataError(f"the set has the rule {name!r}, and the checkpoint does not", hint=_ANEW)
