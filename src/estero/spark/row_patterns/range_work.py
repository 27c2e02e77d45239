"""The work of a task for one range of time: the matches that begin in it, and those of them that are taken.

If AFTER MATCH SKIP leaves out matches, the task cannot know at which row of its range the search continues.
It follows the search from each possible row; where two of these searches meet, they continue as one, so most
of their results are the same. Among the results of all ranges, the true search takes the next start from its
row on, and continues where that match ends: one task reads the results in order to do that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.column_names import TIME
from estero.errors import DataError
from estero.recognize.row_patterns.evaluation import RangePart
from estero.recognize.row_patterns.ordered_rows import Starts
from estero.spark.row_patterns.work import (
    ROWS,
    Batches,
    Evaluated,
    RowPatternWork,
    pieces_of,
    with_progress,
)
from estero.spark.work import spark_schema
from estero.spark.workers import spare_collector

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from estero.spark.row_patterns.time_ranges import TimeRanges

TASK: Final = "__task"
"""The range of a task."""
HOME: Final = "__home"
"""The range of a row."""
ENTRY: Final = "__entry"
"""Whether a row is in a window that begins before its range."""
START: Final = "__start"
RESUME: Final = "__resume"
LINE: Final = "__line"
"""For a row of a result, the start of its match, the row at which the search continues, and its index."""
_NUMBER, _REACHED = "__number", "__reached"
_CHANGED: Final = (
    "MATCH_RECOGNIZE: the rows have changed since the statement was read, so that a range of time lacks rows "
    "beside it; read it again with estero.spark.sql"
)
_PLACES: Final = 40
"""The bits for the index of a row in its range; those before it are the number of the range."""


@dataclass(frozen=True)
class RangeWork:
    """A clause over rows in `count` ranges; with `chained` AFTER MATCH SKIP leaves out matches."""

    work: RowPatternWork
    chained: bool
    count: int

    @property
    def result(self) -> pa.Schema:
        """The columns of the results of tasks."""
        if not self.chained:
            return self.work.result
        return pa.schema([*self.work.result, *(pa.field(name, pa.int64()) for name in (START, RESUME, LINE))])

    def on_batches(self) -> Callable[[Batches], Batches]:
        """The function for ``mapInArrow`` over the rows of a range and its surroundings, in order."""

        def match(batches: Batches) -> Batches:
            spare_collector()
            rows_of_range = None
            for rows in pieces_of(batches):
                rows_of_range = rows_of_range or _RangeRows(self)
                yield from rows_of_range.batches(rows)
            if rows_of_range is not None:
                yield from rows_of_range.last()

        return match

    def taken(self) -> Callable[[Batches], Batches]:
        """The function for ``mapInArrow`` over the results of all ranges, by `START` and `LINE`."""
        names = self.work.result.names

        def take(batches: Batches) -> Batches:
            search = TakenMatches()
            for batch in batches:
                taken = search.among(batch.column(START).to_numpy(), batch.column(RESUME).to_numpy())
                yield batch.select(names).filter(pa.array(taken))

        return take


def in_time_ranges(
    rows: DataFrame, ranges: TimeRanges, work: RowPatternWork, order: Sequence[Column | str], *, chained: bool
) -> DataFrame:
    """The rows of the result, of columns r0, r1, …; `rows` have ``__time``, and `order` is that of all."""
    home = ranges.home(TIME)
    rows = rows.selectExpr("*", f"{home} AS {HOME}", f"{ranges.is_entry(TIME)} AS {ENTRY}")
    rows = rows.selectExpr("*", f"explode({ranges.tasks(TIME)}) AS {TASK}")
    rows = rows.repartitionById(ranges.count, TASK).sortWithinPartitions(*order)
    range_work = RangeWork(work, chained, ranges.count)
    rows = rows.select(TASK, HOME, ENTRY, *work.crossing.names)
    matches = rows.mapInArrow(range_work.on_batches(), spark_schema(range_work.result))
    if not chained:
        return matches
    in_order = matches.repartition(1).sortWithinPartitions(START, LINE)
    return in_order.mapInArrow(range_work.taken(), spark_schema(work.result))


class TakenMatches:
    """The matches that the one search takes, with all rows of each."""

    def __init__(self) -> None:
        self._start, self._resume = -1, 0

    def among(self, starts: NDArray[np.int64], resumes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the match of each of the next rows, in the order of their starts, is taken."""
        begins = np.flatnonzero(np.diff(starts, prepend=-1))
        is_taken = []
        for start, resume in zip(starts[begins].tolist(), resumes[begins].tolist(), strict=True):
            if start >= self._resume:
                self._start, self._resume = start, resume
            is_taken.append(start == self._start)
        return np.repeat(np.array(is_taken, np.bool_), np.diff(begins, append=starts.size))


class _RangeRows:
    """The rows of a task as they come; rows after the last decided start wait for the next ones."""

    def __init__(self, range_work: RangeWork) -> None:
        self._range_work = range_work
        self._evaluated = Evaluated(range_work.work)
        self._rest = range_work.work.crossing.empty_table()
        for name, kind in ((HOME, pa.int32()), (_NUMBER, pa.int64()), (_REACHED, pa.bool_())):
            self._rest = self._rest.append_column(name, pa.array([], kind))
        self._task = 0
        self._begin: int | None = None
        self._is_dropped = self._is_over = False
        self._is_next_reached = False
        self._behind = 0
        self._counted = (-1, 0)

    def batches(self, rows: pa.Table) -> Batches:
        """The rows for Spark after the next rows."""
        if self._is_over:
            return
        self._task = rows.column(TASK)[0].as_py()
        homes = rows.column(HOME).to_numpy()
        is_entry = rows.column(ENTRY).to_numpy()
        self._behind += int(np.count_nonzero((homes == self._task + 1) & ~is_entry))
        reached = np.zeros(rows.num_rows + 1, np.bool_)
        reached[:-1] = is_entry & (homes == self._task)
        reached[1:] |= reached[:-1].copy()
        reached[0] |= self._is_next_reached
        self._is_next_reached = bool(reached[-1])
        come = rows.select([*self._rest.column_names[:-2]])
        come = come.append_column(_NUMBER, pa.array(self._numbers(homes)))
        come = come.append_column(_REACHED, pa.array(reached[:-1]))
        self._rest = pa.concat_tables([self._rest, come.cast(self._rest.schema)])
        yield from self._decided(last=False)

    def last(self) -> Batches:
        """The rows for Spark when there are no more rows."""
        if self._is_over:
            return
        work = self._range_work
        if self._task + 1 < work.count and self._behind < self._evaluated.surroundings.ahead:
            raise DataError(_CHANGED)
        yield from self._decided(last=True)

    def _decided(self, *, last: bool) -> Batches:
        rows, back = self._rest, self._evaluated.surroundings.back
        homes = rows.column(HOME).to_numpy()
        begin, stop = (int(np.searchsorted(homes, self._task, side)) for side in ("left", "right"))
        if begin == rows.num_rows:  # those before the range only
            self._keep(max(0, begin - back))
            return
        reached = np.append(rows.column(_REACHED).to_numpy(), self._is_next_reached)
        if self._begin is None:
            if self._task and begin < back:
                raise DataError(_CHANGED)
            self._is_dropped = self._task > 0
            self._begin = begin
            reached[begin] = True
        starts = Starts(stop, reached if self._range_work.chained else None)
        crossed = rows.select(self._range_work.work.crossing.names)
        crossed = with_progress(crossed, dropped=int(self._is_dropped), begin=self._begin)
        part = self._evaluated.part_of_range(crossed, starts, last=last)
        yield from self._going_back(part, rows.column(_NUMBER).to_numpy())
        self._is_over = part.stop >= stop and (last or stop < rows.num_rows)
        self._is_next_reached = bool(reached[-1])
        place = rows.schema.get_field_index(_REACHED)
        self._rest = rows.set_column(place, _REACHED, pa.array(reached[:-1]))
        self._keep(max(0, part.stop - back))
        self._begin = part.stop - max(0, part.stop - back)

    def _keep(self, first: int) -> None:
        """Forgets the rows before this one."""
        self._is_dropped |= first > 0
        self._rest = self._rest.slice(first)

    def _going_back(self, part: RangePart, numbers: NDArray[np.int64]) -> Batches:
        table = self._evaluated.as_result(part.table)
        if self._range_work.chained:
            numbers = np.append(numbers, numbers[-1] + 1)
            places = (numbers[part.start], numbers[part.resume], np.arange(table.num_rows))
            for name, values in zip((START, RESUME, LINE), places, strict=True):
                table = table.append_column(name, pa.array(values))
        yield from table.to_batches(ROWS)

    def _numbers(self, homes: NDArray[np.int32]) -> NDArray[np.int64]:
        """The numbers of the next rows, from their range and the index in it: all tasks number alike."""
        home, count = self._counted
        begins = np.flatnonzero(np.diff(homes, prepend=home))
        sizes = np.diff(begins, append=homes.size)
        place = np.arange(homes.size, dtype=np.int64)
        place[: begins[0] if begins.size else None] += count
        if begins.size:
            place[begins[0] :] -= np.repeat(begins, sizes)
        self._counted = (int(homes[-1]), int(place[-1]) + 1)
        numbers: NDArray[np.int64] = (homes.astype(np.int64) << _PLACES) | place
        return numbers
