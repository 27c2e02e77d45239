"""DuckDB → recognition → answer, in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from estero.answers.answer import Run
from estero.engine.walk.share import Share
from estero.events.sources import Source
from estero.language.tree.schema import Kind
from estero.plan.plan import Plan
from estero.recognize.recognition import Ended, Recognition

Found = Iterator[tuple[Recognition, Ended]]
"""Compact sets in order of their ends, each with what has found it."""

_PICKED_AT_ONCE = 256
"""Complex events that are gone to by their indexes before they are handed on."""


class Reading(Run, ABC):
    """What recognition finds → tables, counts and single complex events, however often they are asked for."""

    @abstractmethod
    def _found(self, *, counting: bool = False) -> Found:
        """All that is found; with `counting`, nothing but counts are asked of it."""

    def _check_valid(self) -> None:
        """Raises where what was found cannot be read on."""

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        if limit is not None and limit <= 0:
            return
        left = limit
        for recognition, ended in self._found():
            for table in recognition.tables(ended):
                if left is not None and table.num_rows >= left:
                    yield table.slice(0, left)
                    return
                yield table
                self._check_valid()
                left = None if left is None else left - table.num_rows

    def counts(self) -> Iterator[tuple[int, int]]:
        for recognition, ended in self._found(counting=True):
            yield from recognition.counts(ended)

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        wanted = iter(indexes)
        index = next(wanted, None)
        before = 0
        for recognition, ended in self._found():
            if index is None:
                return
            total = sum(count for _, count in recognition.counts(ended))
            here: list[int] = []
            while index is not None and index < before + total:
                here.append(index - before)
                index = next(wanted, None)
                if len(here) == _PICKED_AT_ONCE:
                    yield recognition.pick(ended, here)
                    self._check_valid()
                    here = []
            if here:
                yield recognition.pick(ended, here)
                self._check_valid()
            before += total


@dataclass(frozen=True, slots=True)
class InProcessRun(Reading):
    """One query on one source of events; every question reads the events anew.

    With a `share` all of them are about that share of the complex events.
    """

    plan: Plan
    source: Source
    share: Share | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._recognition(self.plan).schema

    @property
    def query(self) -> str:
        return self.plan.text

    @property
    def counts_quickly(self) -> bool:
        """Whether `counts` does without enumerating, and the events can be read for it."""
        return not (self.plan.sieved or self.source.one_shot)

    def shared(self, share: Share) -> InProcessRun:
        """The run of one share of what this one finds; raises ValueError for a share of a share."""
        if self.share is not None:
            raise ValueError("this is a share already: divide the whole answer into more shares")
        return replace(self, share=share)

    def _found(self, *, counting: bool = False) -> Found:
        plan = self.plan.showing_nothing() if counting else self.plan
        recognition = self._recognition(plan, counting=counting)
        if self.share is not None:
            recognition.give_only(self.share)
        for batch in self.source.read(plan.classification):
            for ended in recognition.recognize(batch):
                yield recognition, ended

    def _recognition(self, plan: Plan, *, counting: bool = False) -> Recognition:
        events = self.source.classified_schema(plan.classification)
        return Recognition(plan, events, time=time_type(self.source), counting=counting)


def time_type(source: Source) -> pa.DataType | None:
    """The type in which times of a source are shown: timestamps in the zone they came in, or integers."""
    name = source.schema.time
    if name is None:
        return None
    column = source.column_types[name]
    return pa.timestamp(column.tick, source.zone) if column.kind is Kind.TIMESTAMP else pa.int64()
