"""Partition keys with too many events for one task: cut into ranges of time, each with its halo.

A key that is not hot is in one task whole, among others. A hot one is a stream of its own that halo.py would
cut: at its own quantiles, and the tasks of its ranges read the window before them first. Both lie in
numbered ranges, so that workers need not tell them apart: the first are buckets of cold keys, without a halo.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from estero.classify.column_names import KEYS, ORDINAL, TIME
from estero.engine.int64 import saturated
from estero.spark.batch.halo import (
    HOME,
    RANGE,
    SMALLEST_TASK,
    TASK,
    Window,
    chosen,
    in_tasks,
    parallelism,
    place_of,
)
from estero.spark.frames import Laid, relevant_only

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HOT = 1.5
"""A key is hot that has more than so many even shares of the events."""
_SKETCHED = 10_000
"""Keys that the search keeps count of: the most that Spark allows."""
_MOST = 1_000


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key by its halves, and the times at which its ranges but the first begin.

    `first[k]` is the ordinal of the first event of range k; it is empty where ordinals do not matter.
    """

    halves: tuple[int, int]
    starts: tuple[int, ...]
    first: tuple[int, ...] = ()

    @property
    def condition(self) -> str:
        """SQL of whether an event has this key."""
        return " AND ".join(
            f"{name} = CAST('{half}' AS BIGINT)" for name, half in zip(KEYS, self.halves, strict=True)
        )


class _Share(NamedTuple):
    """What the tasks of a job should have: `events` each, in `tasks`; a range has `least` events or more."""

    events: float
    tasks: int
    least: int


class Frequent(NamedTuple):
    """How many `events` have a key, and the keys with too many of them for one task."""

    events: int
    hot: list[HotKey]


def hot_in_ranges(
    laid: Laid, hot: Sequence[HotKey], window: Window, *, ordinals: bool, count: int | None
) -> DataFrame:
    """Classified rows in ranges that ``__range`` tells (`halo.by_range`): cold keys whole, `hot` ones cut.

    `count` is the number of tasks that cold keys are shared among; without it as many as a shuffle has.
    `ordinals` asks for ``__ordinal``, each event's place in its partition's stream: all events with a key
    have to be there.
    """
    numbers = _Numbers(hot, count or _shuffled(laid.rows))
    rows, home = laid.rows, numbers.home()
    kept: tuple[str, ...] = laid.computed
    if ordinals:
        rows = relevant_only(_numbered(rows, numbers, laid.sort_keys))
        kept = (*kept, ORDINAL)
    rows = in_tasks(rows, home, numbers.home(before=window.length), numbers.count, laid.sort_keys)
    return rows.selectExpr(f"IF({TASK} = {home}, {TASK}, -1 - {TASK}) AS {RANGE}", *kept)


def find_hot_keys(rows: DataFrame, window: Window, *, ordinals: bool, count: int | None) -> Frequent:
    """The keys with more than 1.5 even shares of `rows`, cut into as many ranges as they have shares.

    An even share is that of one of `count` tasks, or without it of one of those that run at once: then a
    range has 50,000 events or more, and is at least as long as the window, because a longer halo would be
    more work than the range. A key of which many events have one time has fewer ranges. With `ordinals`
    `rows` are all events with a key, and the ranges say how many are before them.

    One job looks at the keys of all rows; others cut hot ones.
    """
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    tasks = parallelism(rows.sparkSession) if count is None else count
    most = min(_MOST, math.ceil(tasks / HOT))
    # A sketch in one pass: it misses no key with a share of 1 in 1,000, and may take a rarer one for more.
    frequent = F.expr(f"approx_top_k(xxhash64({', '.join(KEYS)}), {most}, {_SKETCHED})")
    (found,) = rows.agg(F.count(F.lit(1)).alias("events"), frequent.alias("frequent")).collect()
    share = _Share(found.events / tasks, tasks, SMALLEST_TASK if count is None else 1)
    asked = [each.item for each in found.frequent or [] if each["count"] > HOT * share.events]
    if tasks == 1 or not asked:
        return Frequent(found.events, [])
    named = rows.where(F.xxhash64(*KEYS).isin(asked))
    hot = [each for each in _cut(named, share, None if count else window) if each.starts]
    return Frequent(found.events, _with_first_ordinals(rows, hot) if ordinals and hot else hot)


def _cut(rows: DataFrame, share: _Share, window: Window | None) -> Iterator[HotKey]:
    """The keys of `rows` at their quantiles, those that are hot indeed; one job."""
    from pyspark.sql import functions as F  # noqa: N812

    time, steps = F.col(TIME), 2 * share.tasks
    shares = F.array(*(F.lit(k / steps) for k in range(1, steps)))
    quantiles = F.percentile_approx(time, shares, max(10_000, 100 * steps))
    asked = rows.groupBy(*KEYS).agg(
        F.count(F.lit(1)).alias("events"),
        F.min(time).alias("least"),
        F.max(time).alias("last"),
        quantiles.alias("cuts"),
    )
    for key in asked.collect():
        if key.events <= HOT * share.events:
            continue
        ranges = min(math.ceil(key.events / share.events), max(1, key.events // share.least))
        if window is not None:
            ranges = min(ranges, max(1, (key["last"] - key.least) // max(1, window.length)))
        cuts = {key.cuts[k * steps // ranges - 1] for k in range(1, ranges)}
        yield HotKey((key[KEYS[0]], key[KEYS[1]]), tuple(sorted(cuts - {key.least})))


def _with_first_ordinals(rows: DataFrame, hot: Sequence[HotKey]) -> list[HotKey]:
    """The keys with how many of their events are before each range; one job."""
    from pyspark.sql import functions as F  # noqa: N812

    numbers = _Numbers(hot, cold=1)
    home = F.expr(numbers.home()).alias(HOME)
    sizes = {row[HOME]: row["count"] for row in rows.groupBy(home).count().collect()}
    return [
        replace(
            key, first=tuple(accumulate((sizes.get(begin + k, 0) for k in range(len(key.starts))), initial=0))
        )
        for key, begin in zip(hot, numbers.begins, strict=True)
    ]


def _numbered(rows: DataFrame, numbers: _Numbers, order: Sequence[Column | str]) -> DataFrame:
    """All rows with their places in their partition's stream: what is before the range, plus that in it."""
    from pyspark.sql import Window as Over
    from pyspark.sql import functions as F  # noqa: N812

    so_far = Over.partitionBy(HOME, *KEYS).orderBy(*order)
    so_far = so_far.rowsBetween(Over.unboundedPreceding, Over.currentRow)
    rows = rows.withColumn(HOME, F.expr(numbers.home()))
    return rows.withColumn(ORDINAL, F.count(F.lit(1)).over(so_far) - 1 + F.expr(numbers.first_ordinal()))


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers of ranges: `cold` buckets of cold keys, then the ranges of each hot key."""

    hot: Sequence[HotKey]
    cold: int

    @property
    def begins(self) -> list[int]:
        """For each hot key the number of its first range."""
        return list(accumulate((len(key.starts) + 1 for key in self.hot[:-1]), initial=self.cold))

    @property
    def count(self) -> int:
        """How many ranges there are."""
        return self.cold + sum(len(key.starts) + 1 for key in self.hot)

    def home(self, *, before: int = 0) -> str:
        """SQL of the range of an event; for a hot key, the last that begins up to `before` ticks later."""
        bucket = f"CAST(pmod(hash({', '.join(KEYS)}), {self.cold}) AS INT)"
        cases = [
            f"{begin} + {place_of(TIME, [saturated(each - before) for each in key.starts])}"
            for key, begin in zip(self.hot, self.begins, strict=True)
        ]
        return self._by_key(cases, bucket)

    def first_ordinal(self) -> str:
        """SQL of how many events of the partition are before the range of an event."""
        cases = [
            chosen(f"({HOME} - {begin})", [f"{each}L" for each in key.first])
            for key, begin in zip(self.hot, self.begins, strict=True)
        ]
        return self._by_key(cases, "0L")

    def _by_key(self, cases: Sequence[str], otherwise: str) -> str:
        whens = [f"WHEN {key.condition} THEN {case}" for key, case in zip(self.hot, cases, strict=True)]
        return f"CASE {' '.join(whens)} ELSE {otherwise} END"


def _shuffled(rows: DataFrame) -> int:
    return int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
