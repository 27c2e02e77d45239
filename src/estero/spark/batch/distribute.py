"""Classified rows → the tasks that recognize them: by keys, in ranges of time, or all in one."""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from estero.classify.column_names import KEYED
from estero.plan.division import may_be_shared
from estero.plan.plan import Plan
from estero.plan.plan_joins import AnyPlan
from estero.spark.batch.footers import ranges_by_footers
from estero.spark.batch.halo import (
    SMALLEST_TASK,
    Piece,
    Window,
    after_halo,
    by_range,
    halo_of,
    in_ranges,
    parallelism,
    placed,
    whole,
)
from estero.spark.batch.hot_keys import find_hot_keys, hot_in_ranges
from estero.spark.batch.shares import in_shares, shares_that_pay
from estero.spark.failures import jobs
from estero.spark.frames import Laid, Tasks, laid_out, moved, relevant_only

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

LARGEST_TASK = 2_000_000
"""More events than that are not sorted in one task only because so many tasks run at once."""


@dataclass(frozen=True, slots=True)
class Distributed:
    """Classified rows as tasks receive them, in stream order, and the `pieces` that these make of them.

    With `shares`, each of so many pieces has all rows (shares.py). `kept` are rows that Spark keeps for the
    job to come, because cutting has read them already.
    """

    rows: DataFrame
    pieces: Callable[[Iterator[pa.RecordBatch]], Iterator[Piece]] = whole
    shares: int | None = None
    kept: DataFrame | None = None

    def release(self) -> None:
        """Lets Spark forget what it keeps; whoever reads the rows later reads the source again."""
        if self.kept is not None:
            self.kept.unpersist()

    def release_with(self, found: DataFrame) -> None:
        """Releases when nobody holds `found` any more."""
        if self.kept is not None:
            weakref.finalize(found, _forget, self.kept).atexit = False


def distribute(
    df: DataFrame,
    plan: AnyPlan,
    tasks: Tasks,
    count: int | None,
    *,
    split_keys: bool = True,
    shares: int | None = 1,
) -> Distributed:
    """The classified rows of `df` in `count` tasks, as far as `plan` lets several work at once.

    A windowed query is cut by time: its one order, and with `split_keys` all of its keys where the footers of
    files tell how (footers.py), else the hot ones. Where the events have to be asked, relevant rows are
    computed once and kept for the job to come: a scan costs more.

    Keys stay whole where positions in the whole stream are asked for: a task that gives them sees all events
    anyway, and is what takes the time. With more than one of `shares`, so many tasks have all events and
    share the enumeration instead; None asks the events how many that should be.

    Raises ValueError for less than one task, and what is wrong with a time or a key where a job reads it.
    """
    if count is not None and count < 1:
        raise ValueError(f"at least 1 task shares the partition keys, not {count}")
    tasks = replace(tasks, count=count)
    with jobs():
        laid = laid_out(df, plan.classification, every=tasks.counted)
        if shares is None and may_be_shared(plan):
            return _shared_where_it_pays(laid, plan, tasks)
        if shares is not None and shares > 1:
            return Distributed(in_shares(laid, tasks, shares), by_range, shares)
        window, time = halo_of(plan), plan.classification.schema.time
        alone = (count or parallelism(df.sparkSession)) == 1
        uncut = alone or (tasks.by_key and (tasks.positions or not split_keys))
        if window is None or time is None or uncut:
            return Distributed(moved(laid, tasks))
        if tasks.counted:
            return _cut(laid, tasks, window, None)
        known = ranges_by_footers(df, time, window, count, by_key=tasks.by_key)
        if known is not None:
            return Distributed(placed(laid, known, window), after_halo)
        with _kept(laid.rows) as kept:
            return _cut(replace(laid, rows=kept), tasks, window, kept)


def _shared_where_it_pays(laid: Laid, plan: Plan, tasks: Tasks) -> Distributed:
    """All rows in one task, or in several where they promise more complex events than one should list."""
    if tasks.counted:
        kept = None
        shares = shares_that_pay(plan, relevant_only(laid.rows))
    else:
        with _kept(laid.rows) as kept:
            shares = shares_that_pay(plan, kept)
        laid = replace(laid, rows=kept)
    if shares == 1:
        return Distributed(moved(laid, tasks), kept=kept)
    return Distributed(in_shares(laid, tasks, shares), by_range, shares, kept=kept)


def _cut(laid: Laid, tasks: Tasks, window: Window, kept: DataFrame | None) -> Distributed:
    if not tasks.by_key:
        ranges = in_ranges(laid, window, positions=tasks.positions, count=tasks.count)
        if ranges is None:
            return Distributed(moved(laid, tasks), kept=kept)
        return Distributed(ranges, after_halo, kept=kept)
    if tasks.ordinals:
        laid = replace(laid, rows=laid.rows.where(KEYED))
    found = find_hot_keys(laid.rows, window, ordinals=tasks.ordinals, count=tasks.count)
    if not found.hot:
        tasks = replace(tasks, count=tasks.count or _tasks_for(found.events, laid.rows.sparkSession))
        return Distributed(moved(laid, tasks), kept=kept)
    rows = hot_in_ranges(laid, found.hot, window, ordinals=tasks.ordinals, count=tasks.count)
    return Distributed(rows, by_range, kept=kept)


def _tasks_for(events: int, spark: SparkSession) -> int | None:
    """How many tasks share so many events: those that run at once, unless that is too many or too few.

    None leaves it to Spark, which joins small tasks of a shuffle while it runs: seldom into equal ones.
    """
    running = parallelism(spark)
    if events > LARGEST_TASK * running:
        return None
    return max(1, min(running, events // SMALLEST_TASK))


@contextmanager
def _kept(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, kept by Spark once a job of this block has computed them; forgotten if the block fails.

    Spark would take what it keeps for any query that looks the same, also once files have changed. A
    condition that is true of all rows makes these look like no others, and is optimized away.
    """
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    kept = rows.where(F.lit(str(uuid.uuid4())).isNotNull()).persist()
    try:
        with _uncompressed(rows.sparkSession):
            yield kept
    except BaseException:
        kept.unpersist()
        raise


@contextmanager
def _uncompressed(session: SparkSession) -> Iterator[None]:
    """What jobs in this block are the first to keep is kept as it is: it is read once, and soon.

    Measured on a million rows out of 50 million, two cores: keeping them took 0.5 s less of 2.0 s.
    """
    name = "spark.sql.inMemoryColumnarStorage.compressed"
    before = session.conf.get(name)
    session.conf.set(name, "false")
    try:
        yield
    finally:
        session.conf.set(name, before or "true")


def _forget(kept: DataFrame) -> None:
    """Releases what is kept, unless its session has ended and forgotten it."""
    session = kept.sparkSession
    ended = getattr(session, "is_stopped", None)  # Spark Connect has it
    if not (session.sparkContext._jsc is None if ended is None else ended):  # noqa: SLF001 (no public way)
        kept.unpersist()
