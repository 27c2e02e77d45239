"""Ranges of a classified stream, each with a halo: the window of events before it.

A complex event ends in one range, and its window holds all its events: a recognition that reads the halo
first and reports what ends after it has the complex events of its range (docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Stamps = Callable[[pa.RecordBatch], NDArray[np.int64]]
"""The unit of windows, ascending: positions, or times in ticks."""

SHORTEST = 1 << 17
"""The least number of rows of a range: opening a recognition takes as long as some thousand events."""
LONGEST = 1 << 20
"""The greatest number of rows of a range; if windows are longer than a part of that, ranges do not pay."""
HALOS = 4
"""The length of a range in halos: so at most a quarter is read twice."""


class Range(NamedTuple):
    """Consecutive batches, and the batches of the window before them."""

    halo: list[pa.RecordBatch]
    own: list[pa.RecordBatch]


class RangeCutter:
    """Cuts a stream into ranges; `first` are its first rows, as many as the shortest range has, or all.

    `length` is that of the window.
    """

    def __init__(self, first: list[pa.RecordBatch], length: int, stamps: Stamps) -> None:
        self._stamps = stamps
        self._length = length
        last = int(stamps(first[-1])[-1])
        in_window = sum(batch.num_rows for batch in self._after(first, last - length))
        self.rows: int = max(SHORTEST, HALOS * in_window)
        self.pays: bool = self.rows <= LONGEST
        """Whether only a small part is read twice."""

    def cut(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Range]:
        """The ranges of all batches."""
        halo: list[pa.RecordBatch] = []
        for own in _stretches(batches, self.rows):
            halo = self._after(halo, int(self._stamps(own[0])[0]) - self._length)
            yield Range(halo, own)
            halo = [*halo, *own]

    def _after(self, batches: list[pa.RecordBatch], oldest: int) -> list[pa.RecordBatch]:
        """The rows with stamps from `oldest` on."""
        kept = []
        for batch in batches:
            first = int(np.searchsorted(self._stamps(batch), oldest))
            if first < batch.num_rows:
                kept.append(batch.slice(first))
        return kept


def _stretches(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[list[pa.RecordBatch]]:
    """Consecutive rows of batches, `rows` at a time."""
    stretch: list[pa.RecordBatch] = []
    lacking = rows
    for batch in batches:
        left = batch
        while left.num_rows >= lacking:
            yield [*stretch, left.slice(0, lacking)]
            left = left.slice(lacking)
            stretch, lacking = [], rows
        if left.num_rows:
            stretch.append(left)
            lacking -= left.num_rows
    if stretch:
        yield stretch
