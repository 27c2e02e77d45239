"""The results of recognition as an answer reads them: tables, counts and single complex events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.held_run import HeldRun
from estero.answers.participation import Aggregates, Participation
from estero.answers.run import Run, first_rows
from estero.engine.walk.share import WHOLE, Share
from estero.recognize.set_reader import ReadableSets, number_in

_PICKED_AT_ONCE = 256
"""The number of complex events that are located by their indexes before they are returned."""


class Reading(Run, ABC):
    """Reads compact sets as tables, counts and single complex events, any number of times.

    Everything refers to a share: its number and indexes follow from those of the whole, unless complex events
    are sieved.
    """

    share: Share

    def shared(self, share: Share) -> Self:
        """The run of one share of these results; raises ValueError for a share of a share."""
        if self.share != WHOLE:
            raise ValueError("this is a share already: divide the whole answer into more shares")
        return replace(self, share=share)  # type: ignore[type-var]  # runs are dataclasses

    @property
    @abstractmethod
    def _sieved(self) -> bool:
        """Whether complex events are filtered when they are read."""

    @abstractmethod
    def _sets(
        self, share: Share, *, counting: bool = False, total: bool = False, showing: bool = True
    ) -> ReadableSets:
        """All compact sets, or a share of their complex events.

        With `counting`, numbers will be requested, and unless `showing` nothing else. With `total`, only the
        number of all of them is (`number_in`).
        """

    def participation(self, *, by_partition: bool) -> Participation:
        from estero.recognize.whole.participation import participation_of  # for those who ask only

        return participation_of(self._whole_sets(), self.schema, by_partition=by_partition)

    def aggregate(self, expressions: Mapping[str, str]) -> dict[str, Any]:
        from estero.answers.asked_values import asked
        from estero.recognize.whole.aggregates import aggregates

        asked_for = {name: asked(text, self.schema) for name, text in expressions.items()}
        return aggregates(self._whole_sets(), asked_for, self.schema)

    def aggregate_by_partition(self, expressions: Mapping[str, str]) -> Aggregates:
        from estero.answers.asked_values import asked
        from estero.recognize.whole.aggregates import aggregates_by_partition

        asked_for = {name: asked(text, self.schema) for name, text in expressions.items()}
        return aggregates_by_partition(self._whole_sets(), asked_for, self.schema)

    def top(self, n: int, by: str, *, ascending: bool, by_partition: bool) -> HeldRun:
        from estero.answers.asked_values import ranking
        from estero.recognize.whole.top import top_table

        asked = ranking(by, self.schema)
        sets = self._whole_sets()
        rows = top_table(sets, n, asked, ascending=ascending, schema=self.schema, by_partition=by_partition)
        return HeldRun(rows, self.query)

    def ranked(self, by: str, *, ascending: bool) -> RankedRun:
        from estero.answers.asked_values import ranking

        ranking(by, self.schema)
        return RankedRun(self, by, ascending)

    def ranked_tables(self, by: str, *, ascending: bool) -> Iterator[pa.RecordBatch]:
        """All complex events, best first; each is found on demand."""
        from estero.answers.asked_values import ranking
        from estero.recognize.whole.top import ranked_tables

        asked = ranking(by, self.schema)
        return ranked_tables(self._whole_sets(), asked, ascending=ascending, schema=self.schema)

    def _whole_sets(self) -> ReadableSets:
        """The compact sets of the whole answer."""
        for reader, ended in self._sets(self.share):
            yield reader, ended
            self._check_valid()

    def _check_valid(self) -> None:
        """Raises an error if the sets can no longer be read."""

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        return first_rows(self._tables(), limit)

    def _tables(self) -> Iterator[pa.RecordBatch]:
        for reader, ended in self._sets(self.share):
            for table in reader.tables(ended):
                yield table
                self._check_valid()

    def count(self, *, enough: int | None = None) -> int:
        return self._number(enough)

    def _number(self, enough: int | None, *, total: bool = False) -> int:
        """Their number; with `total`, that of all is determined without a compact set if possible."""
        if self._sieved:
            return number_in(self._sets(self.share, counting=True, showing=False), enough)
        enough = None if enough is None else enough * self.share.of
        sets = self._sets(WHOLE, counting=True, total=total, showing=False)
        return self.share.size_of(number_in(sets, enough))

    def counts(self) -> Iterator[tuple[int, int]]:
        """(end position, number of complex events that end there), ascending, without enumerating."""
        for reader, ended in self._sets(self.share, counting=True, showing=False):
            yield from reader.counts(ended)

    def ends(self) -> NDArray[np.int64]:
        """The distinct positions at which complex events end, ascending."""
        if self._sieved or self.share != WHOLE:
            return np.fromiter((end for end, number in self.counts() if number), np.int64)
        sets = self._sets(WHOLE, counting=True, showing=False)
        return np.unique(np.concatenate([np.empty(0, np.int64), *(ended.position for _, ended in sets)]))

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        wanted = _Ahead(indexes)
        dealt = 0
        share, sieved = (WHOLE, True) if self._sieved else (self.share, False)
        for reader, ended in self._sets(self.share if sieved else WHOLE, counting=True):
            if wanted.next is None:
                return
            if sieved:
                total = sum(number for _, number in reader.counts(ended))
                for here in wanted.until(dealt + total):
                    yield reader.pick_sifted(ended, [index - dealt for index in here])
                    self._check_valid()
            else:
                ends = reader.ends(ended)
                total = ends.total
                for here in wanted.until(share.size_of(dealt + total)):
                    yield reader.pick(ended, ends, here, share, dealt)
                    self._check_valid()
            dealt += total


@dataclass(frozen=True, slots=True)
class RankedRun(Run):
    """The complex events of a run, best first; every question ranks them anew."""

    of: Reading
    by: str
    ascending: bool

    @property
    def schema(self) -> pa.Schema:
        return self.of.schema

    @property
    def query(self) -> str:
        return self.of.query

    @property
    def counts_quickly(self) -> bool:
        return self.of.counts_quickly

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        if limit == 0:  # not even ranked
            return iter(())
        return first_rows(self.of.ranked_tables(self.by, ascending=self.ascending), limit)

    def count(self, *, enough: int | None = None) -> int:
        return self.of.count(enough=enough)

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        wanted = _Ahead(indexes)
        before = 0
        for table in self.tables():
            for here in wanted.until(before + table.num_rows):
                yield table.take(pa.array([index - before for index in here], pa.int64()))
            before += table.num_rows
            if wanted.next is None:
                return


class _Ahead:
    """An iterator over ascending indexes; `next` is the next one, None after the last."""

    def __init__(self, indexes: Iterable[int]) -> None:
        self._indexes = iter(indexes)
        self.next = next(self._indexes, None)

    def until(self, end: int) -> Iterator[list[int]]:
        """The indexes before `end`, some at a time."""
        here: list[int] = []
        while self.next is not None and self.next < end:
            here.append(self.next)
            self.next = next(self._indexes, None)
            if len(here) == _PICKED_AT_ONCE:
                yield here
                here = []
        if here:
            yield here
