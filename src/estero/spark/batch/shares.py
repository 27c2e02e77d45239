"""One order of events in several tasks, which share the enumeration of its complex events (distributed-cea).

Every task has all relevant events and recognizes them: that costs little beside an enumeration. Of each
compact set it enumerates its share, to which it goes by counting, so tasks have nothing to tell each other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from estero.automata.expectation import expected_matches
from estero.classify.bits import WORD, bits_name
from estero.classify.column_names import POSITION
from estero.errors import NOWHERE, QueryError
from estero.plan.division import may_be_shared, why_not_shared
from estero.plan.plan import Plan
from estero.plan.plan_joins import AnyPlan
from estero.spark.batch.halo import RANGE, parallelism
from estero.spark.frames import Laid, Tasks, moved

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_SHARES = 8
"""Nobody is given more tasks than that without asking: each has a copy of all relevant events."""

MATCHES_PER_EVENT = 50
"""So many complex events have to be expected for each event before it pays to read the events once more.

Measured (``python -m benchmarks.shared``): a second task costs 1.4 µs an event, and saves 0.04 µs a complex
event.
"""
LEAST_MATCHES = 1_000_000
"""One task has listed fewer before another one has begun."""
MOST_CLASSES = 1_000
"""So many kinds of events, the most frequent ones, are looked at."""


def number_of_shares(
    plan: AnyPlan, spark: SparkSession, *, share: int | None, partitions: int | None
) -> int | None:
    """How many tasks share the enumeration: `share`, or as `partitions` and the planner say; 1 is none.

    None where it is for the events to say (`shares_that_pay`). Raises ValueError for less than one task, and
    `QueryError` where sharing is asked for and saves nothing.
    """
    if share is None:
        if not may_be_shared(plan):
            return 1
        return 1 if partitions is None and parallelism(spark) == 1 else partitions
    if share < 1:
        raise ValueError(f"at least 1 task shares the enumeration, not {share}")
    reason = why_not_shared(plan)
    if share > 1 and reason:
        raise QueryError(
            f"the enumeration of this query is not shared: {reason}",
            text=plan.tree.text,
            span=plan.tree.places.get("CONSUME BY", NOWHERE),
            hint="leave out share, or CONSUME BY",
        )
    return share


def shares_that_pay(plan: Plan, rows: DataFrame) -> int:
    """How many tasks pay for a plan that may be shared over these classified rows; runs a job that counts.

    As many as run at once where so many complex events are to be expected that listing them takes longer than
    reading the events again, else 1.
    """
    words = [bits_name(word) for word in range(-(-len(plan.classification.predicates) // WORD))]
    counted = rows.groupBy(*words).count().orderBy("count", ascending=False).limit(MOST_CLASSES).collect()
    classes = {
        sum(row[name] << WORD * word for word, name in enumerate(words)): row["count"] for row in counted
    }
    expected = expected_matches(plan.automaton, classes, window=plan.window)
    if expected < max(LEAST_MATCHES, MATCHES_PER_EVENT * sum(classes.values())):
        return 1
    return min(parallelism(rows.sparkSession), MOST_SHARES)


def in_shares(laid: Laid, tasks: Tasks, count: int) -> DataFrame:
    """Classified rows, all of them in each of `count` tasks, in the same stream order.

    Columns as `frames.classified_frame` has them, after ``__range``: the number of the share.
    Where events are counted, one task does it for all.
    """
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    rows, kept, order = laid.rows, laid.computed, laid.sort_keys
    if tasks.counted:
        rows = moved(laid, replace(tasks, positions=True))
        kept, order = tuple(rows.columns), (POSITION,)
    shares = F.sequence(F.lit(0), F.lit(count - 1))
    rows = rows.withColumn(RANGE, F.explode(shares))
    rows = rows.repartitionById(count, RANGE).sortWithinPartitions(*order)
    return rows.select(RANGE, *kept)
