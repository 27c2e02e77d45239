"""The division of classified rows among tasks: by keys, in ranges of time, all in one, or all in each.

`plan/division.py` has the part that the plan alone decides; events, or the footers of their files, decide the
rest.
"""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from estero.automata.expectation import expected_matches
from estero.classify.column_names import KEYED, WORD, word_names
from estero.errors import NOWHERE, QueryError
from estero.plan.division import Division, may_be_shared, why_not_shared
from estero.plan.plan import Plan, Window
from estero.spark.batch import ranges
from estero.spark.batch.footers import ranges_by_footers
from estero.spark.batch.tasks import in_ranges, in_shares, whole
from estero.spark.failures import jobs
from estero.spark.frames import Laid, laid_out, relevant_only

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LARGEST_TASK = 2_000_000
"""The most events that a task sorts just because few tasks run at once."""
MOST_SHARES = 8
"""The largest number of tasks made by default: each has a copy of all relevant events."""
MATCHES_PER_EVENT = 50
"""The expected complex events per event from which reading the events once more pays.

Measured (``python -m benchmarks.shared``): a second task costs 1.4 µs per event, and saves 0.04 µs per
complex event.
"""
LEAST_MATCHES = 1_000_000
"""The number of complex events that one task lists in the time that another one takes to begin."""
MOST_CLASSES = 1_000
"""The number of kinds of events that are considered: the most frequent ones."""


@dataclass(frozen=True, slots=True)
class Distributed:
    """Classified rows as tasks receive them, in stream order.

    With `shares`, each of that many tasks has all rows. `kept` are rows that Spark keeps for the job to come,
    because a job has already read them to decide.
    """

    rows: DataFrame
    shares: int | None = None
    kept: DataFrame | None = None

    def release(self) -> None:
        """Lets Spark drop what it keeps; later readers of the rows read the source again."""
        if self.kept is not None:
            self.kept.unpersist()

    def release_with(self, matches: DataFrame) -> None:
        """Releases the rows when `matches` is garbage-collected."""
        if self.kept is not None:
            weakref.finalize(matches, _forget, self.kept).atexit = False


def distribute(
    df: DataFrame,
    plan: Plan,
    division: Division,
    count: int | None,
    *,
    split_keys: bool = True,
    shares: int | None = 1,
) -> Distributed:
    """The classified rows of `df` in `count` tasks, as far as `division` lets several work at once.

    A windowed query is cut by time: its one order, and with `split_keys` all of its keys if the footers of
    files allow it (footers.py), else the hot ones. If the events have to be read to decide, relevant rows are
    computed once and kept for the job to come, because a scan costs more. With several `shares`, that many
    tasks have all events and share the enumeration instead; with None the events decide how many.

    Errors in a time or a key are raised by the job that reads it.
    """
    with jobs():
        laid = laid_out(df, plan.classification, every=division.counted)
        if shares is None and may_be_shared(plan):
            return _shared_where_it_pays(laid, plan, division)
        if shares is not None and shares > 1:
            return Distributed(in_shares(laid, division, shares), shares)
        cut = division.cuts_hot_keys and split_keys if division.by_key else division.cut
        time = plan.classification.schema.time
        if (
            not cut
            or plan.window is None
            or time is None
            or (count or ranges.parallelism(df.sparkSession)) == 1
        ):
            return Distributed(whole(laid, division, count))
        window = plan.window
        if division.cuts_by_footers:
            known = ranges_by_footers(df, time, window, count, by_key=division.by_key)
            if known is not None:
                return Distributed(in_ranges(laid, division, known, window))
        return _cut(laid, division, window, count)


def _shared_where_it_pays(laid: Laid, plan: Plan, division: Division) -> Distributed:
    """All rows in one task, or in several if they promise more complex events than one should list."""
    with _kept(laid, division) as (read, kept):
        shares = shares_that_pay(plan, relevant_only(read.rows) if division.counted else read.rows)
    if shares == 1:
        return Distributed(whole(read, division, None), kept=kept)
    return Distributed(in_shares(read, division, shares), shares, kept)


def _cut(laid: Laid, division: Division, window: Window, count: int | None) -> Distributed:
    """Rows in ranges of time, of all events or of the hot keys, as the events require."""
    session = laid.rows.sparkSession
    with _kept(laid, division) as (read, kept):
        if not division.by_key:
            time_ranges = ranges.find_ranges(read.rows, places=division.positions, count=count)
        else:
            keyed = read.rows.where(KEYED) if division.ordinals else read.rows
            asked = ranges.find_hot_keys(keyed, window, places=division.ordinals, count=count)
            time_ranges = ranges.Ranges(asked.hot, count or ranges.shuffle_partitions(session))
            if not asked.hot:
                count = count or _tasks_for(asked.events, session)
    if sum(cut.count for cut in time_ranges.cuts) <= 1:
        return Distributed(whole(read, division, count), kept=kept)
    return Distributed(in_ranges(read, division, time_ranges, window), kept=kept)


def _tasks_for(events: int, spark: SparkSession) -> int | None:
    """The number of tasks that share `events`: those that run at once, unless that is too many or too few.

    None leaves it to Spark, which joins small tasks of a shuffle while it runs, seldom into equal ones.
    """
    running = ranges.parallelism(spark)
    if events > LARGEST_TASK * running:
        return None
    return max(1, min(running, events // ranges.SMALLEST_TASK))


# --------------------------------------------------------------------------- sharing an enumeration


def number_of_shares(
    plan: Plan, spark: SparkSession, *, share: int | None, partitions: int | None
) -> int | None:
    """The number of tasks that share the enumeration: `share`, or as `partitions` and the planner decide.

    1 means no sharing; None leaves it to the events (`shares_that_pay`). Raises `QueryError` if sharing is
    requested and saves nothing.
    """
    if share is None:
        if not may_be_shared(plan):
            return 1
        return 1 if partitions is None and ranges.parallelism(spark) == 1 else partitions
    reason = why_not_shared(plan)
    if share > 1 and reason:
        raise QueryError(
            f"the enumeration of this query cannot be shared: {reason}",
            text=plan.tree.text,
            span=plan.tree.places.get("CONSUME BY", NOWHERE),
            hint="leave out share, or CONSUME BY",
        )
    return share


def shares_that_pay(plan: Plan, rows: DataFrame) -> int:
    """The number of tasks that pay for a plan that may be shared over these rows; runs a counting job.

    It is the number that run at once if so many complex events are expected that listing them takes longer
    than reading the events again, else 1.
    """
    words = word_names(len(plan.classification.predicates))
    counted = rows.groupBy(*words).count().orderBy("count", ascending=False).limit(MOST_CLASSES).collect()
    classes = {
        sum(row[name] << WORD * word for word, name in enumerate(words)): row["count"] for row in counted
    }
    if plan.estimated_by is None:
        return 1
    window = None if plan.window is None else plan.window.length
    expected = expected_matches(plan.estimated_by, classes, window=window)
    if expected < max(LEAST_MATCHES, MATCHES_PER_EVENT * sum(classes.values())):
        return 1
    return min(ranges.parallelism(rows.sparkSession), MOST_SHARES)


# ------------------------------------------------------------------------------------- kept rows


@contextmanager
def _kept(laid: Laid, division: Division) -> Iterator[tuple[Laid, DataFrame | None]]:
    """The rows, kept by Spark once a job of this block has computed them; dropped if the block fails.

    If irrelevant events are among them, they are too many to be kept. Spark would use what it keeps for any
    query that looks the same, even after files have changed. A condition that is true of all rows makes these
    unique, and is optimized away.
    """
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    if division.counted:
        yield laid, None
        return
    kept = laid.rows.where(F.lit(str(uuid.uuid4())).isNotNull()).persist()
    try:
        with _uncompressed(kept.sparkSession):
            yield replace(laid, rows=kept), kept
    except BaseException:
        kept.unpersist()
        raise


@contextmanager
def _uncompressed(session: SparkSession) -> Iterator[None]:
    """Rows that jobs in this block are the first to keep are not compressed: they are read once, and soon.

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
    """Releases what is kept, unless its session has ended and dropped it."""
    session = kept.sparkSession
    ended = getattr(session, "is_stopped", None)  # Spark Connect has it
    if not (session.sparkContext._jsc is None if ended is None else ended):  # noqa: SLF001 (no public way)
        kept.unpersist()
