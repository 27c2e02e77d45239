"""Questions to the compact sets of the parts of threads, and merging the items of the parts."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import array_of, one_batch
from estero.recognize.ended_sets import EndedSets
from estero.recognize.set_reader import SetReader

T = TypeVar("T")

_NO_ENDS: Final = np.empty(0, np.int64)


class Question(ABC, Generic[T]):
    """A question to the sets of one part."""

    ordered = True
    """Whether the items of parts of the same stretch must be sorted."""

    @abstractmethod
    def items(self, reader: SetReader, ended: EndedSets) -> Iterable[T]:
        """The items of some sets."""

    def in_order(self, reader: SetReader, ended: EndedSets) -> Iterable[T]:
        """What some sets give where parts are not `merged`, because they follow one another."""
        return self.items(reader, ended)

    def rest(self, reader: SetReader) -> Iterable[T]:
        """The remaining items after all sets of a part."""
        del reader
        return ()

    @abstractmethod
    def merged(self, parts: Sequence[Iterator[T]]) -> Iterator[T]:
        """The items of parts whose ends lie between each other's, in order of their ends."""


class Count(Question[int]):
    """The number of complex events."""

    ordered = False

    def items(self, reader: SetReader, ended: EndedSets) -> Iterable[int]:
        """The number of those that are counted now."""
        return (reader.add(ended),)

    def rest(self, reader: SetReader) -> Iterable[int]:
        """The number of those that were left for later."""
        return (reader.rest(),)

    def merged(self, parts: Sequence[Iterator[int]]) -> Iterator[int]:
        """All numbers, in any order."""
        for part in parts:
            yield from part


class Counts(Question[tuple[int, int]]):
    """The number of complex events at each end: (position, number)."""

    def items(self, reader: SetReader, ended: EndedSets) -> Iterable[tuple[int, int]]:
        """The numbers at each end of some sets."""
        return reader.counts(ended)

    def merged(self, parts: Sequence[Iterator[tuple[int, int]]]) -> Iterator[tuple[int, int]]:
        """The numbers by position."""
        return heapq.merge(*parts)


class Rows(NamedTuple):
    """A table of complex events, and where tables are merged the position at which each ends, ascending."""

    table: pa.RecordBatch
    ends: NDArray[np.int64]

    def part(self, first: int, last: int) -> Rows:
        """The rows first … last - 1."""
        return Rows(self.table.slice(first, last - first), self.ends[first:last])


class Tables(Question[Rows]):
    """The complex events as tables."""

    def items(self, reader: SetReader, ended: EndedSets) -> Iterable[Rows]:
        """The tables of some sets."""
        return (Rows(table, ends) for table, ends in reader.tables_with_ends(ended))

    def in_order(self, reader: SetReader, ended: EndedSets) -> Iterable[Rows]:
        """The tables of some sets, without their ends, which took 8 ns an event of dense streams."""
        return (Rows(table, _NO_ENDS) for table in reader.tables(ended))

    def merged(self, parts: Sequence[Iterator[Rows]]) -> Iterator[Rows]:
        """Tables of all rows, each up to where the first of the current tables ends."""
        heads = [(head, part) for part in parts if (head := next(part, None)) is not None]
        while len(heads) > 1:
            through = min(int(head.ends[-1]) for head, _ in heads)
            ready, left = [], []
            for head, part in heads:
                number = int(np.searchsorted(head.ends, through, "right"))
                ready.append(head.part(0, number))
                behind = head.part(number, head.ends.size) if number < head.ends.size else next(part, None)
                if behind is not None:
                    left.append((behind, part))
            yield _by_end(ready)
            heads = left
        for head, part in heads:
            yield head
            yield from part


def _by_end(parts: Sequence[Rows]) -> Rows:
    """The rows of several tables in order of their ends; no two tables have one end in common."""
    ends = np.concatenate([part.ends for part in parts])
    order = np.argsort(ends, kind="stable")
    table = pa.Table.from_batches([part.table for part in parts]).take(array_of(order))
    return Rows(one_batch(table), ends[order])
