"""The cuts of streams into ranges of time: of all events, or of keys with too many events for a task.

Ranges begin at quantiles, so that they have about equally many events. Events with the same time are never
separated: ties keep their order of arrival inside one task. A key that is not *hot* is whole in one task,
among others: such keys lie in numbered buckets, and the ranges of each hot key are numbered after them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from estero.classify.column_names import HOME, KEYS, POSITION, TIME
from estero.engine.int64 import saturated
from estero.plan.plan import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData, SparkSession

SMALLEST_TASK = 50_000
"""The number of events in each range by default: less does not pay for a task."""
HOT = 1.5
"""The number of even shares of the events above which a key is hot."""
_SKETCHED = 10_000
"""The number of keys that the search counts: the most that Spark allows."""
_MOST = 1_000


@dataclass(frozen=True, slots=True)
class Cut:
    """A stream in ranges: number k > 0 begins at time `starts[k - 1]`, number 0 has all events before.

    `first[k]` is the position in the stream of the first event of range k; it is empty if positions do not
    matter. The stream is that of the key with these two halves, or without a `key` that of all events.
    """

    starts: tuple[int, ...]
    first: tuple[int, ...] = ()
    key: tuple[int, int] | None = None

    @property
    def count(self) -> int:
        """The number of ranges."""
        return len(self.starts) + 1


@dataclass(frozen=True, slots=True)
class Ranges:
    """The numbers of ranges: `cold` buckets of whole keys, then the ranges of each stream that is cut.

    Without `cold` there is one such stream, that of all events.
    """

    cuts: tuple[Cut, ...]
    cold: int = 0

    @property
    def begins(self) -> list[int]:
        """For each cut stream the number of its first range."""
        return list(accumulate((cut.count for cut in self.cuts[:-1]), initial=self.cold))

    @property
    def count(self) -> int:
        """The number of ranges."""
        return self.cold + sum(cut.count for cut in self.cuts)

    def home(self) -> str:
        """SQL of the range of an event."""
        return self._numbers(TIME, lambda cut: cut.starts)

    def last(self, window: Window) -> str:
        """SQL of the last range whose halo contains an event; its home if there is none."""
        if window.in_positions:
            return self._numbers(
                POSITION, lambda cut: [position - window.length for position in cut.first[1:]]
            )
        return self._numbers(TIME, lambda cut: [saturated(start - window.length) for start in cut.starts])

    def first_place(self) -> str:
        """SQL of the number of events of its stream before the range, ``__home``, of an event."""
        return self._by_key(
            [
                searched(
                    f"({HOME} - {begin})", range(1, cut.count), [f"{position}L" for position in cut.first]
                )
                for cut, begin in zip(self.cuts, self.begins, strict=True)
            ],
            "0L",
        )

    def _numbers(self, value: str, starts: Callable[[Cut], Sequence[int]]) -> str:
        """SQL of the number of a range from the number of its stream's `starts` at or before a value."""
        places = [
            f"{begin} + {searched(value, starts(cut), list(map(str, range(cut.count))))}"
            for cut, begin in zip(self.cuts, self.begins, strict=True)
        ]
        return self._by_key(places, f"CAST(pmod(hash({', '.join(KEYS)}), {self.cold}) AS INT)")

    def _by_key(self, cases: Sequence[str], otherwise: str) -> str:
        if not self.cold:
            return f"({cases[0]})"
        whens = (
            f"WHEN {_has_key(cut.key)} THEN {case}"
            for cut, case in zip(self.cuts, cases, strict=True)
            if cut.key is not None
        )
        return f"CASE {' '.join(whens)} ELSE {otherwise} END"


def _has_key(halves: tuple[int, int]) -> str:
    """SQL of whether an event has this key."""
    return " AND ".join(f"{name} = CAST('{half}' AS BIGINT)" for name, half in zip(KEYS, halves, strict=True))


def searched(value: str, starts: Sequence[int], results: Sequence[str]) -> str:
    """SQL of `results[k]` for a value with k of the ascending `starts` at or before it, by binary search."""
    if not starts:
        return results[0]
    half = len(starts) // 2
    before = searched(value, starts[:half], results[: half + 1])
    after = searched(value, starts[half + 1 :], results[half + 1 :])
    return f"IF({value} < CAST('{starts[half]}' AS BIGINT), {before}, {after})"


def parallelism(spark: SparkSession) -> int:
    """The number of tasks that run at once; on Spark Connect, which does not give it, that of a shuffle."""
    context = getattr(spark, "sparkContext", None)
    return shuffle_partitions(spark) if context is None else int(context.defaultParallelism)


def shuffle_partitions(spark: SparkSession) -> int:
    """The number of tasks of a shuffle."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


# --------------------------------------------------------------------------------- reading the events


def find_ranges(rows: DataFrame, *, places: bool, count: int | None) -> Ranges:
    """About equally large, non-empty ranges of `rows`; runs one job, and another one for positions.

    `count` is the number of ranges, fewer if many events have one time; without it there are as many as tasks
    run at once, and at most one for every 50,000 events.
    """
    wanted = parallelism(rows.sparkSession) if count is None else count
    if wanted == 1:
        return Ranges((Cut(()),))
    (quantiles,) = quantiles_of(rows.groupBy(), wanted)
    most = wanted if count is not None else quantiles.events // SMALLEST_TASK
    ranges = Ranges((Cut(starts_of(quantiles, min(wanted, max(1, most)), wanted)),))
    return _with_places(rows, ranges) if places and ranges.count > 1 else ranges


class Frequent(NamedTuple):
    """The number of `events` with a key, and the keys with too many of them for one task, with their cuts."""

    events: int
    hot: tuple[Cut, ...]


def find_hot_keys(rows: DataFrame, window: Window, *, places: bool, count: int | None) -> Frequent:
    """The keys with more than 1.5 even shares of `rows`, cut into as many ranges as they have shares.

    An even share is that of one of `count` tasks, or without it of one of those that run at once: then a
    range has 50,000 events or more, and is at least as long as the window, because a longer halo would be
    more work than the range. A key with many events at one time has fewer ranges. With `places` `rows` are
    all events with a key, and the ranges give the number of events before them.

    One job reads the keys of all rows; others cut hot ones.
    """
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    tasks = parallelism(rows.sparkSession) if count is None else count
    most = min(_MOST, math.ceil(tasks / HOT))
    # A sketch in one pass: it misses no key with a share of 1 in 1,000, and may overestimate a rarer one.
    frequent = F.expr(f"approx_top_k(xxhash64({', '.join(KEYS)}), {most}, {_SKETCHED})")
    (total,) = rows.agg(F.count(F.lit(1)).alias("events"), frequent.alias("frequent")).collect()
    share = total.events / tasks
    asked = [key.item for key in total.frequent or [] if key["count"] > HOT * share]
    if tasks == 1 or not asked:
        return Frequent(total.events, ())
    named = rows.where(F.xxhash64(*KEYS).isin(asked))
    hot = tuple(cut for cut in _hot(named, share, tasks, None if count else window) if cut.starts)
    if places and hot:
        hot = _with_places(rows, Ranges(hot, cold=1)).cuts
    return Frequent(total.events, hot)


def _hot(rows: DataFrame, share: float, tasks: int, window: Window | None) -> Iterator[Cut]:
    """The keys of `rows` at their quantiles that are really hot; one job.

    With a `window`, ranges are no shorter than it, and no smaller than a task should be.
    """
    steps = 2 * tasks  # finer than there are ranges, which need not divide it
    for key in quantiles_of(rows.groupBy(*KEYS), steps):
        if key.events <= HOT * share:
            continue
        ranges = math.ceil(key.events / share)
        if window is not None:
            lengths = (key["last"] - key.least) // max(1, window.length)
            ranges = max(1, min(ranges, key.events // SMALLEST_TASK, lengths))
        yield Cut(starts_of(key, ranges, steps), key=(key[KEYS[0]], key[KEYS[1]]))


def quantiles_of(rows: GroupedData, steps: int) -> list[Any]:
    """The number of events of each group, its first and last times, and the times that cut it evenly."""
    from pyspark.sql import functions as F  # noqa: N812

    time = F.col(TIME)
    shares = F.array(*(F.lit(k / steps) for k in range(1, steps)))
    return rows.agg(
        F.count(F.lit(1)).alias("events"),
        F.min(time).alias("least"),
        F.max(time).alias("last"),
        F.percentile_approx(time, shares, max(10_000, 100 * steps)).alias("cuts"),
    ).collect()


def starts_of(quantiles: Any, ranges: int, steps: int) -> tuple[int, ...]:
    """The times at which ranges begin, except the first one; fewer if many events have one time."""
    if not quantiles.cuts:
        return ()
    return tuple(
        sorted({quantiles.cuts[k * steps // ranges - 1] for k in range(1, ranges)} - {quantiles.least})
    )


def _with_places(rows: DataFrame, ranges: Ranges) -> Ranges:
    """The ranges with the number of events of their stream before each; one job."""
    from pyspark.sql import functions as F  # noqa: N812

    home = F.expr(ranges.home()).alias(HOME)
    sizes = {row[HOME]: row["count"] for row in rows.select(home).groupBy(HOME).count().collect()}
    cuts = [
        replace(
            cut, first=tuple(accumulate((sizes.get(begin + k, 0) for k in range(cut.count - 1)), initial=0))
        )
        for cut, begin in zip(ranges.cuts, ranges.begins, strict=True)
    ]
    return replace(ranges, cuts=tuple(cuts))
