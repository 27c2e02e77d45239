"""How many complex events a DataFrame has: each task counts those that end in its events, the driver adds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.plan.plan_joins import AnyPlan, KeyedPlan
from estero.spark.batch.batch import Batches, Work
from estero.spark.batch.distribute import distribute
from estero.spark.batch.halo import Piece
from estero.spark.batch.spreading import spread
from estero.spark.failures import jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COUNT = pa.schema([pa.field("count", pa.binary(), nullable=False)])


def count_frame(
    df: DataFrame, plan: AnyPlan, *, partitions: int | None = None, split_keys: bool = True
) -> int:
    """The exact number of complex events of `plan` in `df`, of any size; one job, and those of cutting.

    Nothing is enumerated, except where a sieve has to look at each complex event, and no attribute crosses
    to Python that is only shown. The arguments and errors are those of `batch.recognize_frame`.
    """
    plan = plan.showing_nothing()
    if isinstance(plan, KeyedPlan):
        df, plan = spread(df, plan)
    work = Work.of(df.schema, plan, positions=False)
    distributed = distribute(df, work.plan, work.tasks, partitions, split_keys=split_keys)
    counted = distributed.rows.mapInArrow(_count(work, distributed.pieces), "count binary")
    try:
        with jobs():
            return sum(int.from_bytes(row["count"], "big") for row in counted.collect())
    finally:
        distributed.release()


def _count(work: Work, cut: Callable[[Batches], Iterator[Piece]]) -> Callable[[Batches], Batches]:
    """The function for ``mapInArrow``: one row with the count of a task.

    Bytes, because a count has more digits than a column of numbers holds, and than Python reads.
    """

    def count(batches: Batches) -> Batches:
        total = sum(
            number
            for recognition, ended in work.ended(cut(batches), counting=True)
            for _, number in recognition.counts(ended)
        )
        size = (total.bit_length() + 7) // 8
        yield pa.RecordBatch.from_arrays([pa.array([total.to_bytes(size, "big")])], schema=_COUNT)

    return count
