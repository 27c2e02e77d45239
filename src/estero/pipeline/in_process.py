"""DuckDB → recognition → answer, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from estero.language.schema import Kind
from estero.pipeline.joining import Joining, recognition_of
from estero.pipeline.recognition import Ended, Recognition
from estero.pipeline.sources import Source
from estero.plan_joins import AnyPlan, KeyedPlan

_PICKED_AT_ONCE = 256
"""Complex events that are gone to by their indexes before they are handed on."""


def time_type(source: Source) -> pa.DataType | None:
    """The type in which the times of a source are shown: instants in UTC, or the integers they are."""
    name = source.schema.time
    if name is None:
        return None
    column = source.column_types[name]
    return pa.timestamp(column.tick, "UTC") if column.kind is Kind.TIMESTAMP else pa.int64()


@dataclass(frozen=True, slots=True)
class InProcessRun:
    """One query on one source of events; every question reads the events anew (answer.Run)."""

    plan: AnyPlan
    source: Source

    @property
    def schema(self) -> pa.Schema:
        """The schema of the public table."""
        return self._recognition(self.plan).schema

    @property
    def query(self) -> str:
        """The canonical text of the query."""
        return self.plan.text if isinstance(self.plan, KeyedPlan) else str(self.plan.tree)

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """All complex events in order of their end, or the first `limit` of them."""
        if limit is not None and limit <= 0:
            return
        left = limit
        for recognition, ended in self._recognized(self.plan):
            for table in recognition.tables(ended):
                if left is not None and table.num_rows >= left:
                    yield table.slice(0, left)
                    return
                yield table
                left = None if left is None else left - table.num_rows

    def counts(self) -> Iterator[tuple[int, int]]:
        """(end position, number of complex events that end there), ascending, without enumerating."""
        for recognition, ended in self._recognized(self._without_payload(), counting=True):
            yield from recognition.counts(ended)

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """The complex events with these ascending indexes, without enumerating those between."""
        wanted = iter(indexes)
        index = next(wanted, None)
        before = 0
        for recognition, ended in self._recognized(self.plan):
            if index is None:
                return
            counts = recognition.counts(ended)
            total = sum(count for _, count in counts)
            here: list[int] = []
            while index is not None and index < before + total:
                here.append(index - before)
                index = next(wanted, None)
                if len(here) == _PICKED_AT_ONCE:
                    yield recognition.pick(ended, _without_limits(recognition, ended, counts, here))
                    here = []
            if here:
                yield recognition.pick(ended, _without_limits(recognition, ended, counts, here))
            before += total

    def _recognized(
        self, plan: AnyPlan, *, counting: bool = False
    ) -> Iterator[tuple[Recognition | Joining, Ended]]:
        recognition = self._recognition(plan, counting=counting)
        for batch in self.source.read(plan.classification):
            for ended in recognition.recognize(batch):
                yield recognition, ended

    def _recognition(self, plan: AnyPlan, *, counting: bool = False) -> Recognition | Joining:
        events = self.source.classified_schema(plan.classification)
        return recognition_of(plan, events, time=time_type(self.source), counting=counting)

    def _without_payload(self) -> AnyPlan:
        """The plan for counting: no attribute crosses that is only shown."""
        return self.plan.showing_nothing()


def _without_limits(
    recognition: Recognition | Joining, ended: Ended, counts: list[tuple[int, int]], indexes: list[int]
) -> list[int]:
    """Indexes among the complex events that LIMIT leaves → indexes among all of them."""
    if recognition.plan.limit is None or recognition.plan.sieved:
        return indexes
    full: dict[int, int] = {}
    for position, count in zip(
        ended.position.tolist(), recognition.recognizer.counts(ended.roots), strict=True
    ):
        full[position] = full.get(position, 0) + count
    found: list[int] = []
    places = iter(indexes)
    index = next(places, None)
    limited_before, full_before = 0, 0
    for position, count in counts:
        while index is not None and index < limited_before + count:
            found.append(full_before + index - limited_before)
            index = next(places, None)
        limited_before += count
        full_before += full[position]
    return found
