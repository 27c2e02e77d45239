"""How far each start of a stream gets, in this process: a table with a row for each start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.answer_schema import answer_schema
from estero.answers.event_store import EventStore
from estero.answers.report import key_column
from estero.classify.arrays import as_key
from estero.classify.column_names import (
    BEGAN,
    BITS,
    KEYS,
    POSITION,
    REACHED,
    TIME,
    event_column,
    numbered,
)
from estero.engine.batch import NO_PARTITION, EventBatch
from estero.engine.levels.level_runs import LevelRuns, Reached
from estero.engine.levels.run_levels import NEVER
from estero.events.sources import Source
from estero.plan.levels import LevelsInOne, LevelsPlan
from estero.plan.plan import Plan
from estero.recognize.batch_columns import numbers_of, side_by_side
from estero.recognize.consumed import Consumed, consumed_of
from estero.recognize.excerpts import SharedReading
from estero.recognize.recognition import Recognition
from estero.recognize.source_run import SourceRun, time_type

START: Final = "start"
"""The column with the position of a start."""


def level_column(level: int) -> str:
    """The column with the time at which a level, from 1, was first reached."""
    return f"{REACHED}{level}"


def consumed_by(plan: Plan | None, source: Source) -> Consumed | None:
    """The positions of a query's answers, each of which forgets what was before it; None without a plan."""
    if plan is None:
        return None
    consumed = consumed_of(plan.consume)
    events = source.classified_schema(plan.classification)
    recognition = Recognition(plan, events, time=time_type(source), consumed=consumed)
    for batch in source.read(plan.classification):
        for _ in recognition.recognize(batch):
            pass  # it is enough to know that it has ended
    return consumed


def levels_reached(
    plan: LevelsPlan,
    source: Source,
    until: int | None = None,
    *,
    shared: SharedReading | None = None,
    consumed: Consumed | None = None,
    threads: int = 1,
) -> pa.Table:
    """A row for each start that is seen to reach a level or none, in no order.

    The last level's complex events are known up to time `until`. `shared` is the reading in common with
    others, and `consumed` is what the query forgets (`consumed_by`). The `threads` share the partition keys,
    if any. Columns: ``start`` (int64, its position), `BEGAN` (int64, its time in ticks; its position
    without a time), the partition columns, and for each level the time at which it was first reached,
    likewise, or NULL for never. The partition columns have the names of `event_column`.
    """
    levels = len(plan.parts)
    if plan.in_one is None:
        runs = [SourceRun(of_level, source, threads=threads) for of_level in plan.by_level[:-1]]
        runs.append(SourceRun(plan.by_level[-1], source, until=until, threads=threads))
        by_level = [_as_answered(run, level, consumed) for level, run in enumerate(runs, 1)]
        return _together(by_level)
    schema = _schema(plan, source, levels)
    shared = shared or SharedReading(source, [plan.in_one.classification])
    parts = _in_one(plan.in_one, plan.keys, source, shared, schema, consumed, threads)
    reached = pa.Table.from_batches(parts, schema)
    if not plan.as_answered:
        return reached
    return _together(
        [
            reached.drop_columns(level_column(levels)),
            _as_answered(SourceRun(plan.by_level[-1], source, until=until, threads=threads), levels, None),
        ]
    )


def _schema(plan: LevelsPlan, source: Source, levels: int) -> pa.Schema:
    classification = plan.by_level[-1].classification
    keys = answer_schema((), source.classified_schema(classification), keys=plan.keys, positions=False)
    reached = [pa.field(level_column(level), pa.int64()) for level in range(1, levels + 1)]
    keys = [field.with_name(event_column(field.name)) for field in keys]
    return pa.schema([pa.field(START, pa.int64()), pa.field(BEGAN, pa.int64()), *keys, *reached])


# ------------------------------------------------------------------------------------ by one automaton


def _in_one(
    plan: LevelsInOne,
    keys: Sequence[Sequence[str]],
    source: Source,
    shared: SharedReading,
    schema: pa.Schema,
    consumed: Consumed | None,
    threads: int,
) -> Iterator[pa.RecordBatch]:
    """The starts whose windows have passed, batch after batch, and then the remaining ones."""
    batches = shared.read(plan.classification)
    partitioned = bool(plan.classification.keys)
    lanes = [_LevelLane(plan, keys, source, schema, consumed) for _ in range(threads if partitioned else 1)]
    if len(lanes) > 1:
        from estero.recognize.threads.lanes import along_lanes, one_after_the_other

        yield from along_lanes(lanes, batches, one_after_the_other)
        return
    (lane,) = lanes
    for batch in batches:
        yield from lane.push(batch)
    yield from lane.rest()


class _LevelLane:
    """The levels of the starts of some partitions."""

    def __init__(
        self,
        plan: LevelsInOne,
        keys: Sequence[Sequence[str]],
        source: Source,
        schema: pa.Schema,
        consumed: Consumed | None,
    ) -> None:
        events = source.classified_schema(plan.classification)
        self._words, self._partitioned = numbered(BITS, events.names), bool(plan.classification.keys)
        self._runs = LevelRuns(
            plan.deterministic(),
            len(plan.levels),
            window=plan.window.length,
            keyed=self._partitioned,
            words=len(self._words),
        )
        self._store = EventStore(events, () if consumed is None else consumed.columns)
        self._stamp = POSITION if plan.window.in_positions else TIME
        self._clock = POSITION if source.schema.time is None else TIME
        self._keys, self._schema, self._consumed = keys, schema, consumed

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The starts whose windows have passed in a batch."""
        self._store.append(batch)
        read = EventBatch(
            numbers_of(batch, self._stamp),
            side_by_side(batch, self._words),
            partition=side_by_side(batch, KEYS) if self._partitioned else NO_PARTITION,
        )
        yield self._rows(self._runs.push(read))
        self._store.trim(self._runs.oldest)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The remaining starts."""
        yield self._rows(self._runs.rest())

    def _rows(self, reached: Reached) -> pa.RecordBatch:
        return _rows(reached, self._store, self._keys, self._clock, self._schema, self._consumed)


def _rows(
    reached: Reached,
    store: EventStore,
    keys: Sequence[Sequence[str]],
    clock: str,
    schema: pa.Schema,
    consumed: Consumed | None,
) -> pa.RecordBatch:
    starts = store.take(reached.start)
    seen = None if consumed is None else consumed.until(starts)
    columns = [
        starts.column(POSITION),
        starts.column(clock),
        *(as_key(key_column(starts, alternatives)) for alternatives in keys),
    ]
    columns += [_times(column, store, clock, seen) for column in reached.by.T]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _times(by: NDArray[np.int64], store: EventStore, clock: str, seen: NDArray[np.int64] | None) -> pa.Array:
    """The times of events with these sequence numbers; NULL for `NEVER`, and after the positions `seen`."""
    never = by == NEVER
    if seen is not None:
        ended = np.flatnonzero(~never)
        never[ended] = numbers_of(store.take(by[ended], [POSITION]), POSITION) > seen[ended]
    times = np.zeros(by.size, np.int64)
    times[~never] = numbers_of(store.take(by[~never], [clock]), clock)
    return pa.array(times, mask=never)


# ------------------------------------------------------------------------------ from complex events


def _as_answered(run: SourceRun, level: int, consumed: Consumed | None) -> pa.Table:
    """The time at which each start first ends a complex event not `consumed` before: a level's column."""
    timed = time_type(run.source) is not None
    end, before = ("end_time", 4) if timed else ("end", 2)
    begun = "start_time" if timed else START
    keys = run.schema.names[before : before + len(run.plan.shown_keys)]
    columns = list(dict.fromkeys([START, begun, *keys]))
    tables = run.tables() if consumed is None else _seen(run, consumed)
    # Keys are those of the events at the ends, among which -0.0 may stand for 0.0.
    parts = [_with_keys(batch, keys).group_by(columns).aggregate([(end, "min")]) for batch in tables]
    empty = run.schema.empty_table().group_by(columns).aggregate([(end, "min")])
    first = pa.concat_tables([empty, *parts]).group_by(columns).aggregate([(f"{end}_min", "min")])
    named = {
        START: first[START],
        BEGAN: first[begun].cast(pa.int64()),
        **{event_column(name): first[name] for name in keys},
        level_column(level): first[f"{end}_min_min"].cast(pa.int64()),
    }
    return pa.table(named)


def _with_keys(batch: pa.RecordBatch, names: Sequence[str]) -> pa.Table:
    columns = [as_key(batch[name]) if name in names else batch[name] for name in batch.schema.names]
    return pa.table(columns, schema=batch.schema)


def _seen(run: SourceRun, consumed: Consumed) -> Iterator[pa.RecordBatch]:
    """The rows of a run whose starts are not forgotten before their ends."""
    for table, starts in run.tables_with_starts(consumed.columns):
        yield table.filter(pa.array(numbers_of(table, "end") <= consumed.until(starts)))


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """The tables side by side, a row for each start, with NULL where one has no row of it."""
    together = pa.concat_tables(tables, promote_options="default")
    levels = [name for name in together.column_names if name.startswith(REACHED)]
    keys = [name for name in together.column_names if name not in levels]
    # Arrow groups by columns of all kinds that keys have; it joins by none without values.
    reached = together.group_by(keys).aggregate([(name, "min") for name in levels])
    return reached.rename_columns({f"{name}_min": name for name in levels})
