"""DuckDB → recognition → answer, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from estero.engine.walk.share import Share
from estero.events.sources import Source
from estero.language.tree.schema import Kind
from estero.plan.plan import Plan
from estero.recognize.reader import counts_of, picked_from, tables_of
from estero.recognize.recognition import Ended, Recognition


def time_type(source: Source) -> pa.DataType | None:
    """The type in which times of a source are shown: timestamps in the zone they came in, or integers."""
    name = source.schema.time
    if name is None:
        return None
    column = source.column_types[name]
    return pa.timestamp(column.tick, source.zone) if column.kind is Kind.TIMESTAMP else pa.int64()


@dataclass(frozen=True, slots=True)
class InProcessRun:
    """One query on one source of events; every question reads the events anew (answer.Run).

    With a `share` all of them are about that share of the complex events.
    """

    plan: Plan
    source: Source
    share: Share | None = None

    @property
    def schema(self) -> pa.Schema:
        """The schema of the public table."""
        return self._recognition(self.plan).schema

    @property
    def query(self) -> str:
        """The canonical text of the query."""
        return self.plan.text

    @property
    def counts_quickly(self) -> bool:
        """Whether `counts` does without enumerating, and the events can be read for it."""
        return not (self.plan.sieved or self.source.one_shot)

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """All complex events in order of their end, or the first `limit` of them."""
        return tables_of(self._recognized(self.plan), limit)

    def counts(self) -> Iterator[tuple[int, int]]:
        """(end position, number of complex events that end there), ascending, without enumerating."""
        return counts_of(self._recognized(self.plan.showing_nothing(), counting=True))

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """The complex events with these ascending indexes, without enumerating those between."""
        return picked_from(self._recognized(self.plan), indexes)

    def shared(self, share: Share) -> InProcessRun:
        """The run of one share of what this one finds; raises ValueError for a share of a share."""
        if self.share is not None:
            raise ValueError("this is a share already: divide the whole answer into more shares")
        return replace(self, share=share)

    def _recognized(self, plan: Plan, *, counting: bool = False) -> Iterator[tuple[Recognition, Ended]]:
        recognition = self._recognition(plan, counting=counting)
        if self.share is not None:
            recognition.give_only(self.share)
        for batch in self.source.read(plan.classification):
            for ended in recognition.recognize(batch):
                yield recognition, ended

    def _recognition(self, plan: Plan, *, counting: bool = False) -> Recognition:
        events = self.source.classified_schema(plan.classification)
        return Recognition(plan, events, time=time_type(self.source), counting=counting)
