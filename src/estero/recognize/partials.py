"""Partial matches: how far those starts came that were not completed (semantics-2.md, "How far it came")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.answers.answer import Run
from estero.answers.report import EXPIRED_TIME, STEPS, answer_schema, marked_as_partial
from estero.engine.int64 import saturated
from estero.engine.walk.share import Share
from estero.events.sources import Source
from estero.plan.automaton import AutomatonPlan
from estero.plan.levels import PartialsPlan
from estero.recognize.in_process import time_type
from estero.recognize.levels import START, level_column, levels_reached
from estero.recognize.recognition import Recognition


def partials_table(plan: PartialsPlan, source: Source, until: int | None = None) -> pa.Table:
    """The partial matches of starts whose windows have passed, by end and start.

    The columns are those of the answer, without what SELECT computes, then ``steps`` (int64: the level) and,
    where the events have a time and the window is one of time, ``expired_time``. Events are known up to time
    `until`, and up to the last one where it is None.
    """
    reached = levels_reached(plan.levels, source, until)
    levels = len(plan.levels.parts)
    columns = [reached[level_column(level)] for level in range(1, levels + 1)]
    level = np.zeros(reached.num_rows, np.int64)
    for number, column in enumerate(columns, 1):
        level[column.is_valid().to_numpy()] = number
    start = reached[START].to_numpy()
    found = [
        _of_level(each, number, np.sort(start[level == number]), source)
        for number, each in enumerate(plan.by_level, 1)
    ]
    together = pa.concat_tables(found)
    together = _passed(together, plan, source, until)
    order = pc.sort_indices(together, sort_keys=[("end", "ascending"), ("start", "ascending")])
    return together.take(order).combine_chunks()


def partials_schema(plan: PartialsPlan, source: Source) -> pa.Schema:
    """The columns of `partials_table`."""
    schema = _schema(plan, source)
    if time_type(source) is None or plan.window.in_positions:
        return schema.append(marked_as_partial(STEPS, pa.int64()))
    expired = marked_as_partial(EXPIRED_TIME, schema.field("end_time").type)
    return schema.append(marked_as_partial(STEPS, pa.int64())).append(expired)


def _schema(plan: PartialsPlan, source: Source) -> pa.Schema:
    events = source.classified_schema(plan.by_level[0].classification)
    return answer_schema(plan.whole.shown, events, keys=plan.whole.shown_keys, time=time_type(source))


def _of_level(plan: AutomatonPlan, level: int, starts: NDArray[np.int64], source: Source) -> pa.Table:
    """What NEXT would choose of each of some starts, among the complex events of a level."""
    events = source.classified_schema(plan.classification)
    recognition = Recognition(plan, events, time=time_type(source), starts=starts)
    tables: list[pa.RecordBatch] = []
    if starts.size:
        for batch in source.read(plan.classification):
            for ended in recognition.recognize(batch):
                tables += recognition.tables(ended)
        for ended in recognition.ended(None):
            tables += recognition.tables(ended)
    table = pa.Table.from_batches(tables, recognition.schema)
    first = _first_rows(table["start"].to_numpy())  # others mark the same events
    return table.take(pa.array(first)).append_column(STEPS, pa.array(np.full(first.size, level)))


def _first_rows(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    _, first = np.unique(starts, return_index=True)
    return first


def _passed(table: pa.Table, plan: PartialsPlan, source: Source, until: int | None) -> pa.Table:
    """The rows whose windows have passed, with the time at which they had."""
    length = plan.window.length
    schema = partials_schema(plan, source)
    steps = table.column_names.index(STEPS)
    if plan.window.in_positions:
        passed = table["start"].to_numpy() < source.event_count() - 1 - length
        kept = table.filter(pa.array(passed))
        return kept.set_column(steps, schema.field(STEPS), kept[STEPS])
    begun = table["start_time"].cast(pa.int64()).to_numpy()
    known = until if until is not None else source.last_time() or 0
    kept = table.filter(pa.array(begun < saturated(known - length)))
    expired = pa.array(begun[begun < saturated(known - length)] + length).cast(schema.field("end_time").type)
    kept = kept.set_column(steps, schema.field(STEPS), kept[STEPS])
    return kept.append_column(schema.field(EXPIRED_TIME), expired)


@dataclass(frozen=True)
class PartialsRun(Run):
    """The partial matches of one query on one source of events, as an answer reads them."""

    plan: PartialsPlan
    source: Source
    until: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns: those of `partials_table`."""
        return partials_schema(self.plan, self.source)

    @property
    def query(self) -> str:
        """The canonical text of the query."""
        return self.plan.whole.text

    @property
    def counts_quickly(self) -> bool:
        """Always: the rows are held."""
        return True

    @cached_property
    def _table(self) -> pa.Table:
        return partials_table(self.plan, self.source, self.until)

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, or the first `limit` of them."""
        yield from self._table.slice(0, limit).to_batches()

    def count(self, *, enough: int | None = None) -> int:
        """The number of rows."""
        del enough
        return int(self._table.num_rows)

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """The rows with these indexes."""
        wanted = [each for each in indexes if each < self._table.num_rows]
        yield from self._table.take(pa.array(wanted, pa.int64())).combine_chunks().to_batches()

    def undecided(self) -> int:
        """None: what is given is decided."""
        return 0

    def funnel(self, *, by_partition: bool) -> NoReturn:  # noqa: ARG002
        """Raises ValueError: a funnel is of all starts."""
        raise ValueError("these are partial matches: ask the answer that they are of for the funnel")

    def partials(self) -> NoReturn:
        """Raises ValueError: these are partial matches."""
        raise ValueError("these are partial matches already")

    def values(self, attribute: str, first: int, last: int) -> pa.Table:
        """See `Run`."""
        from estero.recognize.attribute_values import attribute_values

        return attribute_values(self.plan.whole, self.source, attribute, first, last)

    def shared(self, share: Share) -> NoReturn:  # noqa: ARG002
        """Raises ValueError: they are not shared."""
        raise ValueError("partial matches are not shared: divide the answer that they are of")
