"""Classified rows → the tasks that recognize them.

A task has all events of some keys, all events, or one range of time preceded by a window of events as its
halo. A complex event ends in one range, and all its events lie within a window: a task that reads the halo
first and reports what ends after it finds exactly the answers of its range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from estero.classify.column_names import HOME, KEYED, KEYS, ORDINAL, POSITION, SHARE, TASK
from estero.plan.division import Division
from estero.plan.plan import Window
from estero.spark.batch.halo import MARKED
from estero.spark.batch.ranges import Ranges
from estero.spark.frames import Laid, relevant_only

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROWS_OF_A_TASK = 2**33 - 1


def whole(laid: Laid, division: Division, count: int | None) -> DataFrame:
    """Classified rows in stream order in each task, without cuts.

    `count` tasks share the keys; None leaves it to Spark's settings and its adaptive execution. The columns
    are the computed ones, and ``__position`` and ``__ordinal`` if `division` requires them. Events with the
    same time and `order` keep their order of arrival: that of the partitions of the DataFrame, and within a
    partition that of its rows. Partitions of one file follow the file; for several files Spark chooses an
    order, by size.
    """
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    rows, order, kept = laid.rows, laid.sort_keys, laid.computed
    placed = False
    if division.positions:
        # In a single partition this function counts 0, 1, 2, … in 64 bits; row_number() has 32.
        place = F.monotonically_increasing_id()
        rows = rows.repartition(1).sortWithinPartitions(*order).withColumn(POSITION, place)
        order, kept = (POSITION,), (POSITION, *kept)
        placed = not (division.by_key or division.ordinals)
    if division.ordinals:
        rows = _with_ordinal(_by_keys(rows.where(KEYED), count), KEYS, order)
        kept = (*kept, ORDINAL)
        placed = division.by_key
    if division.counted:
        rows = relevant_only(rows)
    if not placed:
        rows = _by_keys(rows, count) if division.by_key else rows.repartition(1)
    return rows.sortWithinPartitions(*order).select(*kept)


def in_ranges(laid: Laid, division: Division, ranges: Ranges, window: Window) -> DataFrame:
    """Classified rows in stream order, a range per task: each in its own, and wherever it is in the halo.

    The columns are those of `whole`, except that the first word of bits is -1 - bits in a halo, because a
    separate column would take time to cross to Python. The halo comes first (`after_halo`).
    """
    rows, order, kept = laid.rows, laid.sort_keys, laid.computed
    home, last = ranges.home(), ranges.last(window)
    if division.positions:
        rows, order, kept = _positioned(rows, ranges, order), (POSITION,), (POSITION, *kept)
    elif division.ordinals:
        rows = rows.where(KEYED).selectExpr("*", f"{home} AS {HOME}")
        rows = relevant_only(_with_ordinal(rows, (HOME, *KEYS), order, ranges.first_place()))
        kept = (*kept, ORDINAL)
    rows = rows.selectExpr("*", f"explode(sequence({home}, {last})) AS {TASK}")
    rows = rows.repartitionById(ranges.count, TASK).sortWithinPartitions(*order)
    marked = f"IF({TASK} = {home}, {MARKED}, -1 - {MARKED}) AS {MARKED}"
    return rows.selectExpr(*(marked if name == MARKED else name for name in kept))


def in_shares(laid: Laid, division: Division, count: int) -> DataFrame:
    """Classified rows, all of them in each of `count` tasks, in the same stream order, after ``__share``.

    If irrelevant events count, one task numbers them for all.
    """
    from pyspark.sql import functions as F  # noqa: N812

    rows, kept, order = laid.rows, laid.computed, laid.sort_keys
    if division.counted:
        rows = whole(laid, replace(division, positions=True), None)
        kept, order = tuple(rows.columns), (POSITION,)
    rows = rows.withColumn(SHARE, F.explode(F.sequence(F.lit(0), F.lit(count - 1))))
    rows = rows.repartitionById(count, SHARE).sortWithinPartitions(*order)
    return rows.select(SHARE, *kept)


def _by_keys(rows: DataFrame, count: int | None) -> DataFrame:
    return rows.repartition(*KEYS) if count is None else rows.repartition(count, *KEYS)


def _positioned(rows: DataFrame, ranges: Ranges, order: Sequence[Column | str]) -> DataFrame:
    """The relevant rows with their positions in the stream: the start of their range plus the index in it."""
    from pyspark.sql import functions as F  # noqa: N812

    rows = rows.selectExpr("*", f"{ranges.home()} AS {HOME}")
    rows = rows.repartitionById(ranges.count, HOME).sortWithinPartitions(*order)
    # This function counts the rows of each task from 0, below the task's number: here, of each range.
    place = F.monotonically_increasing_id().bitwiseAND(F.lit(_ROWS_OF_A_TASK))
    return relevant_only(rows.withColumn(POSITION, F.expr(ranges.first_place()) + place))


def _with_ordinal(
    rows: DataFrame, stream: Sequence[str], order: Sequence[Column | str], before: str = "0L"
) -> DataFrame:
    """All rows with their positions in the stream of these columns, after those `before` (SQL)."""
    from pyspark.sql import Window as Over
    from pyspark.sql import functions as F  # noqa: N812

    so_far = Over.partitionBy(*stream).orderBy(*order)
    so_far = so_far.rowsBetween(Over.unboundedPreceding, Over.currentRow)
    return rows.withColumn(ORDINAL, F.count(F.lit(1)).over(so_far) - 1 + F.expr(before))
