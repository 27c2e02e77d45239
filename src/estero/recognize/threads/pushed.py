"""The events of one large push, recognized by several threads: each takes a range and its halo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.column_names import POSITION, TIME
from estero.plan.division import thread_division_of
from estero.plan.plan import Plan, Window
from estero.recognize.batch_columns import numbers_of
from estero.recognize.ended_sets import EndedSets
from estero.recognize.recognition import Recognition
from estero.recognize.set_reader import SetReader
from estero.recognize.threads import ranges

ReadSets = Sequence[tuple[SetReader, EndedSets]]
"""Compact sets in order of their ends, each with what reads it."""


@dataclass(frozen=True, slots=True)
class PushedRanges:
    """Divides pushes among `threads`; the thread that pushes also continues the stream's own recognition.

    `open` makes the recognitions of the others, which have not seen earlier pushes: no window that ends in
    their ranges reaches back that far.
    """

    open: Callable[[], Recognition]
    window: Window
    threads: int

    @classmethod
    def of(cls, plan: Plan, opened: Callable[[], Recognition], threads: int) -> PushedRanges | None:
        """The division of pushes for a plan; None if one thread recognizes all of them."""
        window = thread_division_of(plan).window
        return None if window is None or threads == 1 else cls(opened, window, threads)

    def sets(self, own: Recognition, relevant: pa.RecordBatch) -> ReadSets:
        """The compact sets that end in a push; `own` is the recognition of the stream, which continues."""
        stamps = self._stamps(relevant)
        bounds = self._bounds(stamps)
        if len(bounds) < 3:
            return [(own.reader, ended) for ended in own.recognize(relevant)]
        from concurrent.futures import ThreadPoolExecutor  # 15 ms, which small pushes can do without

        workers = ThreadPoolExecutor(len(bounds) - 2, thread_name_prefix="estero-push")
        try:
            later = [
                workers.submit(self._of_range, relevant, self._halo(stamps, first), first, last)
                for first, last in pairwise(bounds[1:])
            ]
            sets = [(own.reader, ended) for ended in own.recognize(relevant.slice(0, bounds[1]))]
            for future in later:
                sets += future.result()
        finally:
            workers.shutdown(cancel_futures=True)
        # Results that end in the last window are another range's; those begun there may end in the next push.
        for _ in own.recognize(relevant.slice(max(bounds[1], self._halo(stamps, relevant.num_rows)))):
            pass
        return sets

    def _of_range(self, relevant: pa.RecordBatch, halo: int, first: int, last: int) -> ReadSets:
        """The sets that end in the rows from `first` to before `last`, whose windows begin at row `halo`."""
        recognition = self.open()
        for _ in recognition.recognize(relevant.slice(halo, first - halo)):
            pass
        ended = recognition.recognize(relevant.slice(first, last - first))
        return [(recognition.reader, sets) for sets in ended]

    def _bounds(self, stamps: NDArray[np.int64]) -> list[int]:
        """The rows where ranges begin, and the number of rows: fewer than three if it does not pay."""
        rows = stamps.size
        if rows < 2 * ranges.SHORTEST:
            return [0, rows]
        halo = rows - self._halo(stamps, rows)
        number = max(1, min(self.threads, rows // max(ranges.SHORTEST, ranges.HALOS * halo)))
        inner = [rows * place // number for place in range(1, number)]
        # A window that begins before the push has events that only the stream's own recognition knows.
        return [0, *(first for first in inner if self._halo(stamps, first) > 0), rows]

    def _halo(self, stamps: NDArray[np.int64], row: int) -> int:
        """The first row that is in the window of a row, or of the last one."""
        oldest = int(stamps[min(row, stamps.size - 1)]) - self.window.length
        return min(row, int(np.searchsorted(stamps, oldest)))

    def _stamps(self, relevant: pa.RecordBatch) -> NDArray[np.int64]:
        return numbers_of(relevant, POSITION if self.window.in_positions else TIME)
