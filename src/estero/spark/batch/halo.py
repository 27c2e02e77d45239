"""One global order in many tasks: each has a range of time and, before it, a window of events as its halo.

A complex event ends in one range, and a window holds all that it can be made of: a task that reads the halo
first and reports what ends after it finds exactly the answers of its range. Ranges are cut at quantiles, and
events of one time are never cut apart, so that ties keep their order of arrival inside one task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from estero.classify.bits import bits_name
from estero.classify.column_names import POSITION, TIME
from estero.engine.int64 import saturated
from estero.language.tree.query import Consume
from estero.plan.plan_joins import AnyPlan
from estero.spark.frames import Laid, relevant_only

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

RANGE = "__range"
"""Where a task has several ranges: the number k ≥ 0 of the range, or -1 - k in its halo."""
HOME = "__home"
TASK = "__task"
SMALLEST_TASK = 50_000
"""Where nobody says how many ranges there are, each has this many events: less does not pay for a task."""
MARKED = bits_name(0)
"""The word of bits that tells an event of a halo; an integer of 63 bits."""
_ROWS_OF_A_TASK = 2**33 - 1


@dataclass(frozen=True, slots=True)
class Window:
    """How far back a complex event reaches from its end: `length`, in positions or in ticks of time."""

    length: int
    in_positions: bool


@dataclass(frozen=True, slots=True)
class Ranges:
    """Where ranges begin: number k > 0 with the time `starts[k - 1]`, number 0 with whatever is before.

    `first[k]` is the position of the first event of range k; it is empty where positions do not matter.
    """

    starts: tuple[int, ...]
    first: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """How many ranges there are."""
        return len(self.starts) + 1


def halo_of(plan: AnyPlan) -> Window | None:
    """How far the halo of a range reaches; None where nothing can be cut: by whole keys, or in one order.

    CONSUME BY makes each answer depend on all before it, and without a window any event can matter to any
    end. Without a time there is nothing to cut by: how many events arrive in each
    partition of a DataFrame may change from one job to the next.
    """
    if plan.window is None or plan.consume is not Consume.NONE:
        return None
    if plan.classification.schema.time is None:
        return None
    return Window(plan.window, plan.window_in_positions)


def in_ranges(laid: Laid, window: Window, *, positions: bool, count: int | None) -> DataFrame | None:
    """Classified rows, each in its range and wherever it is part of the halo.

    Columns as `frames.classified_frame` has them, but for the first word of bits: it is -1 - bits in a halo,
    because a column that only said so would take its time to cross to Python. Each task has one range in
    stream order, so its halo comes first (`after_halo`). `positions` asks for ``__position``: all events are
    then counted by ranges, and numbered inside them; else only relevant events are looked at. `count` is the
    number of ranges, fewer where many events have one time; without it there are as many as the cluster has
    places for, and at most one for every 50,000 events.

    None where there would be one range. Nothing is moved yet, but a job reads the times of events at once,
    and for positions a second one counts them; what is wrong with a time is raised here.
    """
    ranges = find_ranges(laid.rows, laid.rows.sparkSession, positions=positions, count=count)
    return None if ranges.count == 1 else placed(laid, ranges, window)


def find_ranges(rows: DataFrame, spark: SparkSession, *, positions: bool, count: int | None) -> Ranges:
    """Ranges with about equally many of `rows`, none of them empty; runs one job, for positions two."""
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    wanted = parallelism(spark) if count is None else count
    if wanted == 1:
        return Ranges(())
    shares = [F.lit(k / wanted) for k in range(1, wanted)]
    time = F.col(TIME)
    quantiles = F.percentile_approx(time, F.array(*shares), max(10_000, 100 * wanted))
    asked = rows.agg(F.count(F.lit(1)).alias("events"), F.min(time).alias("least"), quantiles.alias("cuts"))
    (found,) = asked.collect()
    cuts = found.cuts or []
    if count is None:
        fewer = min(wanted, max(1, found.events // SMALLEST_TASK))
        cuts = [cuts[k * wanted // fewer - 1] for k in range(1, fewer)]
    starts = tuple(sorted(set(cuts) - {found.least}))
    if not (positions and starts):
        return Ranges(starts)
    home = F.expr(place_of(TIME, starts)).alias(HOME)
    sizes = {row[HOME]: row["count"] for row in rows.select(home).groupBy(HOME).count().collect()}
    return Ranges(starts, tuple(accumulate((sizes.get(k, 0) for k in range(len(starts))), initial=0)))


def placed(laid: Laid, ranges: Ranges, window: Window) -> DataFrame:
    """The rows in these ranges (`in_ranges` says of which form), and again in each that is a window away."""
    from pyspark.sql import functions as F  # noqa: N812

    rows, home = laid.rows, place_of(TIME, ranges.starts)
    kept: tuple[str, ...] = laid.computed
    order: Sequence[Column | str] = laid.sort_keys
    if ranges.first:
        rows = relevant_only(_numbered(rows.withColumn(HOME, F.expr(home)), ranges, order))
        kept, order = (POSITION, *kept), [POSITION]
    measured, begins = (POSITION, ranges.first[1:]) if window.in_positions else (TIME, ranges.starts)
    last = place_of(measured, [saturated(each - window.length) for each in begins])
    marked = f"IF({TASK} = {home}, {MARKED}, -1 - {MARKED}) AS {MARKED}"
    rows = in_tasks(rows, home, last, ranges.count, order)
    return rows.selectExpr(*(marked if name == MARKED else name for name in kept))


def in_tasks(rows: DataFrame, home: str, last: str, count: int, order: Sequence[Column | str]) -> DataFrame:
    """Rows in each of `count` ranges from `home` to `last` (SQL): a range to a task, sorted.

    ``__task`` is the number of the range: `home`, or a later one that the row is part of the halo of.
    """
    rows = rows.selectExpr("*", f"explode(sequence({home}, {last})) AS {TASK}")
    return rows.repartitionById(count, TASK).sortWithinPartitions(*order)


def _numbered(rows: DataFrame, ranges: Ranges, order: Sequence[Column | str]) -> DataFrame:
    """All rows with their positions in the stream: where their range begins, and the place in it."""
    from pyspark.sql import functions as F  # noqa: N812

    begin = F.expr(chosen(HOME, [f"{each}L" for each in ranges.first]))
    # This function counts the rows of each task from 0, below the task's number: here, of each range.
    place = F.monotonically_increasing_id().bitwiseAND(F.lit(_ROWS_OF_A_TASK))
    rows = rows.repartitionById(ranges.count, HOME).sortWithinPartitions(*order)
    return rows.withColumn(POSITION, begin + place)


def place_of(value: str, starts: Sequence[int]) -> str:
    """SQL of how many of the ascending `starts` are at or before a number: a search by halves."""
    return _searched(value, starts, [str(k) for k in range(len(starts) + 1)])


def chosen(number: str, results: Sequence[str]) -> str:
    """SQL of the result with this number."""
    return _searched(number, range(1, len(results)), results)


def _searched(value: str, starts: Sequence[int], results: Sequence[str]) -> str:
    """SQL of `results[k]` for a value with k of the ascending `starts` at or before it."""
    if not starts:
        return results[0]
    half = len(starts) // 2
    before = _searched(value, starts[:half], results[: half + 1])
    after = _searched(value, starts[half + 1 :], results[half + 1 :])
    return f"IF({value} < CAST('{starts[half]}' AS BIGINT), {before}, {after})"


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at once; on Spark Connect, which does not say, how many a shuffle has."""
    context = getattr(spark, "sparkContext", None)
    if context is None:
        return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return int(context.defaultParallelism)


# ------------------------------------------------------------------------------------------ workers


class Piece(NamedTuple):
    """Consecutive rows of one range that are all its own, or all of its halo."""

    number: int
    own: bool
    rows: pa.RecordBatch


def after_halo(batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
    """The batches of a task that has one range, the halo of which is marked and comes first (`in_ranges`).

    Raises RuntimeError where it does not: rows have been moved since.
    """
    begun = False
    for batch in batches:
        bits = batch.column(MARKED).to_numpy()
        size = 0 if begun else int(np.count_nonzero(bits < 0))
        if (bits[size:] < 0).any():
            raise RuntimeError("events of a halo come after those of the range")
        if size:
            place = batch.schema.get_field_index(MARKED)
            halo = batch.slice(0, size)
            yield Piece(0, False, halo.set_column(place, MARKED, pa.array(-1 - bits[:size])))
        if size < batch.num_rows:
            begun = True
            yield Piece(0, True, batch.slice(size))


def by_range(batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
    """The batches of a task that has several ranges, cut where one or its halo ends: ``__range`` tells.

    Raises RuntimeError where a range comes back after another one: rows have been moved since.
    """
    done: set[int] = set()
    last: int | None = None
    for batch in batches:
        values = batch.column(RANGE).to_numpy()
        cuts = np.flatnonzero(np.diff(values) != 0) + 1
        for begin, end in pairwise([0, *cuts.tolist(), batch.num_rows]):
            if begin == end:
                continue
            value = int(values[begin])
            if value != last:
                if value in done:
                    raise RuntimeError(f"range {value} comes in parts")
                done.add(value)
                last = value
            number = value if value >= 0 else -1 - value
            yield Piece(number, value >= 0, batch.slice(begin, end - begin))


def whole(batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
    """The batches of a task that has no ranges, as one."""
    return (Piece(0, True, batch) for batch in batches)
