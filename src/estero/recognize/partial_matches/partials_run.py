"""Partial matches: how far the starts got that were not completed (docs/funnels.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.answer_schema import answer_schema, columns_alike, with_partial_columns
from estero.answers.held_run import HeldRows
from estero.answers.wait import times_after
from estero.classify.column_names import BEGAN, POSITION
from estero.engine.int64 import saturated
from estero.events.sources import Source
from estero.plan.automaton import AutomatonPlan
from estero.plan.levels import PartialsPlan, of_single_events
from estero.recognize.batch_columns import numbers_of
from estero.recognize.consumed import Consumed
from estero.recognize.excerpts import SharedReading
from estero.recognize.partial_matches.levels import START, consumed_by, level_column, levels_reached
from estero.recognize.recognition import Recognition
from estero.recognize.source_run import time_type
from estero.recognize.until import check_until
from estero.system.cached_property import cached_property


def partials_table(plan: PartialsPlan, source: Source, until: int | None, threads: int) -> pa.Table:
    """The partial matches of starts whose windows have passed, by end and start.

    The columns are those of the answer, then ``steps`` (int64: the level) and, where the events have a time
    and the window is one of time, ``expired_time``. What SELECT computes is NULL if it refers to steps that
    were not reached. Events are known up to time `until`, or up to the last one if it is None.
    """
    one = plan.levels.in_one
    shared = SharedReading(
        source, [part.classification for part in (*([one] if one else ()), *plan.by_level)]
    )
    consumed = consumed_by(plan.levels.consuming, source)
    start, level = _stopped(plan, source, until, consumed, threads, shared)
    of_levels = [
        _of_level(of_level, np.sort(start[level == number]), source, consumed, shared)
        for number, of_level in enumerate(plan.by_level, 1)
    ]
    steps = np.repeat(np.arange(1, len(of_levels) + 1), [rows.num_rows for rows in of_levels])
    schema = _schema(plan, source)
    together = _completed(
        pa.concat_tables(_with_all(rows, schema) for rows in of_levels), steps, plan, source
    )
    order = pc.sort_indices(together, sort_keys=[("end", "ascending"), ("start", "ascending")])
    return together.take(order).combine_chunks()


def partials_schema(plan: PartialsPlan, source: Source) -> pa.Schema:
    """The columns of `partials_table`."""
    return with_partial_columns(_schema(plan, source), timed=not plan.window.in_positions)


def _schema(plan: PartialsPlan, source: Source) -> pa.Schema:
    events = source.classified_schema(plan.by_level[0].classification)
    whole = plan.whole
    return answer_schema(
        whole.shown, events, keys=whole.shown_keys, time=time_type(source), measures=whole.measures
    )


def _with_all(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with all columns: missing ones are NULL."""
    own = columns_alike(rows, schema)
    columns = [own.get(field.name, pa.nulls(rows.num_rows, field.type)) for field in schema]
    return pa.table(columns, schema=schema)


def _of_level(
    plan: AutomatonPlan,
    starts: NDArray[np.int64],
    source: Source,
    consumed: Consumed | None,
    shared: SharedReading,
) -> pa.Table:
    """The complex events of a level that NEXT would choose for some starts."""
    events = source.classified_schema(plan.classification)
    recognition = Recognition(plan, events, time=time_type(source), starts=starts, consumed=consumed)
    tables: list[pa.RecordBatch] = []
    if starts.size:
        for batch in shared.read(plan.classification):
            if of_single_events(plan):  # no other event can matter
                batch = _at(starts, batch)  # noqa: PLW2901
            for ended in recognition.recognize(batch):
                tables += recognition.reader.tables(ended)
        for ended in recognition.ended(None):
            tables += recognition.reader.tables(ended)
    table = pa.Table.from_batches(tables, recognition.schema)
    first = _first_rows(table["start"].to_numpy())  # others mark the same events
    return table.take(pa.array(first))


def _at(positions: NDArray[np.int64], events: pa.RecordBatch) -> pa.RecordBatch:
    """The events at some positions, both ascending."""
    here = numbers_of(events, POSITION)
    if not here.size:
        return events
    places = np.searchsorted(here, positions[slice(*np.searchsorted(positions, [here[0], here[-1] + 1]))])
    return events.take(pa.array(places))


def _first_rows(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    _, first = np.unique(starts, return_index=True)
    return first


def _stopped(
    plan: PartialsPlan,
    source: Source,
    until: int | None,
    consumed: Consumed | None,
    threads: int,
    shared: SharedReading | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The starts that were not completed before their windows had passed, and their levels."""
    if until is not None:
        check_until(until, source.last_time())
    reached = levels_reached(plan.levels, source, until, shared=shared, consumed=consumed, threads=threads)
    levels = len(plan.levels.parts)
    level = np.zeros(reached.num_rows, np.int64)
    for number in range(1, levels + 1):
        level[reached[level_column(number)].is_valid().to_numpy()] = number
    start = reached[START].to_numpy()
    if plan.window.in_positions:
        known, begun = source.event_count() - 1, start
    else:
        known = until if until is not None else source.last_time() or 0
        begun = reached[BEGAN].to_numpy()
    stopped = (level > 0) & (level < levels) & (begun < saturated(known - plan.window.length))
    return start[stopped], level[stopped]


def _completed(table: pa.Table, steps: NDArray[np.int64], plan: PartialsPlan, source: Source) -> pa.Table:
    """The rows with all columns: how far they got, and when their windows had passed."""
    schema = partials_schema(plan, source)
    columns = [*table.columns, pa.array(steps)]
    if len(schema) > len(columns):
        begun = table["start_time"].cast(pa.int64()).to_numpy()
        columns.append(times_after(begun, plan.window.length, schema[-1].type))
    return pa.table(columns, schema=schema)


@dataclass(frozen=True)
class PartialsRun(HeldRows):
    """The partial matches of one query on one source of events, as an answer reads them."""

    plan: PartialsPlan
    source: Source
    until: int | None = None
    threads: int = 1

    @property
    def schema(self) -> pa.Schema:
        """The columns: those of `partials_table`."""
        return partials_schema(self.plan, self.source)

    @property
    def query(self) -> str:
        """The canonical text of the query."""
        return self.plan.whole.text

    @property
    def whole_answer(self) -> str:
        """The place to ask for what these rows cannot tell."""
        return "the answer that these partial matches are of"

    def count(self, *, enough: int | None = None) -> int:
        """The number of rows, without listing them: how far starts got is enough."""
        del enough
        consumed = consumed_by(self.plan.levels.consuming, self.source)
        return int(_stopped(self.plan, self.source, self.until, consumed, self.threads)[0].size)

    @cached_property
    def table(self) -> pa.Table:
        """All rows, by end and start."""
        return partials_table(self.plan, self.source, self.until, self.threads)

    def values(self, attribute: str, first: int, last: int) -> pa.Table:
        """See `Run`."""
        from estero.recognize.attribute_values import attribute_values

        return attribute_values(self.plan.whole, self.source, attribute, first, last)
