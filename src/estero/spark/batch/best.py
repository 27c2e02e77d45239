"""The best complex events of a batch: each task gives its own, and one task chooses the best of these."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from estero.answers.asked_values import Asked, ranking
from estero.classify.arrays import array_of
from estero.language.tree.selection import END_TIME
from estero.queries.ranked import Wanted
from estero.spark.work import Batches, Work, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE: Final = pa.schema(
    [("__worth", pa.string()), ("__end", pa.int64()), ("__task", pa.int64()), ("__row", pa.int64())]
)
"""The order of rows of tasks: a number as JSON, largest first, and then what breaks ties."""


@dataclass(frozen=True, slots=True)
class BestWork:
    """The work of tasks that give only the best complex events; it travels to workers by pickle."""

    work: Work
    wanted: Wanted
    asked: Asked

    @classmethod
    def of(cls, work: Work, wanted: Wanted) -> BestWork:
        """The work for what is wanted; ValueError if complex events cannot be ranked by that."""
        return cls(work, wanted, ranking(wanted.by, work.recognized))

    def best(self, rows: DataFrame) -> DataFrame:
        """The best complex events of classified rows, best first, in one task."""
        schema = pa.schema([*self.work.answer, *_PLACE])
        of_tasks = rows.mapInArrow(self.on_batches, spark_schema(schema))
        return of_tasks.repartition(1).mapInArrow(self.merged, spark_schema(self.work.answer))

    def on_batches(self, batches: Batches) -> Batches:
        """The best of a task, with their sort keys."""
        from pyspark import TaskContext

        from estero.recognize.whole.top import best_rows  # for workers only

        number, _, ascending = self.wanted
        sets, schema = self.work.ended(batches), self.work.recognized
        table, worths = best_rows(sets, number, self.asked, ascending=ascending, schema=schema)
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        texts = pa.array([json.dumps(worth) for worth in worths], pa.string())
        places = [
            texts,
            self._ends(table),
            *map(array_of, (np.full(len(worths), task), np.arange(len(worths)))),
        ]
        schema = pa.schema([*self.work.answer, *_PLACE])
        for rows in table.combine_chunks().to_batches():
            yield pa.RecordBatch.from_arrays([*self.work.shown(rows).columns, *places], schema=schema)

    def merged(self, batches: Batches) -> Batches:
        """The best of the results of tasks."""
        schema = pa.schema([*self.work.answer, *_PLACE])
        given = [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches]
        rows = pa.Table.from_batches(given, schema)
        places = list(_places(rows))
        order = sorted(range(len(places)), key=places.__getitem__)[: self.wanted.number]
        yield from rows.select(range(len(self.work.answer))).take(pa.array(order, pa.int64())).to_batches()

    def _ends(self, table: pa.Table) -> pa.Array:
        """The positions at which rows end, or else their times; all equal without either."""
        if self.work.positions:
            return table.column("end").combine_chunks()
        if self.work.time is None:
            return array_of(np.zeros(table.num_rows, np.int64))
        return table.column(END_TIME).cast(pa.int64()).combine_chunks()


def _places(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The sort keys of rows."""
    worths, *others = (rows.column(name).to_pylist() for name in _PLACE.names)
    for worth, *place in zip(worths, *others, strict=True):
        yield -json.loads(worth), *place
