"""The cuts of MATCH_RECOGNIZE into ranges of time, with the further rows that a range needs.

A range also has the rows after it up to the end of the window of its last start. If NEXT and PREV read
further rows, it has those up to the next of many quantiles of all times: they are counted, so that there are
enough. Rows with the same time are never separated. Times are integers here, which rise in the order of ORDER
BY.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from estero.classify.column_names import TIME
from estero.engine.int64 import GREATEST
from estero.recognize.row_patterns.resumption import Surroundings
from estero.spark.batch import ranges
from estero.spark.batch.ranges import quantiles_of, searched, starts_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_ENTRIES: Final = 4_096
"""The most rows of a window at the start of a range: a search is followed from each of them."""
FEWEST_TASKS = 8
"""The tasks at once from which ranges pay: together they are three times the work of one ordered task."""
SAMPLED: Final = 0.02
"""The share of the rows used for quantiles; rows beside ranges are counted afterwards."""
_FEWEST_QUANTILES: Final = 512
_SEGMENT: Final = "__segment"


class Border(NamedTuple):
    """The beginning of a range.

    It also has the rows from `back` on. The range before it also has those before `ahead`, and its windows
    end before `end`.
    """

    back: int
    start: int
    end: int
    ahead: int


@dataclass(frozen=True)
class TimeRanges:
    """The borders between ranges, in their order, beyond which the rows beside a range do not reach."""

    borders: tuple[Border, ...]

    @property
    def count(self) -> int:
        """The number of ranges."""
        return len(self.borders) + 1

    def home(self, time: str) -> str:
        """SQL of the range of a row."""
        return self._passed(time, [border.start for border in self.borders])

    def tasks(self, time: str) -> str:
        """SQL of the ranges that have a row, as an array."""
        first = self._passed(time, [border.ahead for border in self.borders])
        last = self._passed(time, [border.back for border in self.borders])
        return f"sequence({first}, {last})"

    def is_entry(self, time: str) -> str:
        """SQL of whether a row is in a window that begins before its range."""
        return f"{self._passed(time, [border.end for border in self.borders])} < {self.home(time)}"

    def _passed(self, time: str, places: Sequence[int]) -> str:
        return searched(time, places, list(map(str, range(self.count))))


def find_time_ranges(
    times: DataFrame,
    ends_of_windows: Callable[[Sequence[int]], list[int] | None],
    around: Surroundings,
    *,
    chained: bool,
) -> TimeRanges | None:
    """Ranges of about equally many rows, one per concurrent task; None if one task should have all.

    `times` has one column, ``__time``. `ends_of_windows` gives for times the last one in the window from
    there, None if it is unknown. `chained`: searches are followed from all rows at which they may enter a
    range. Runs one job, and a second one if rows have to be counted.
    """
    wanted = ranges.parallelism(times.sparkSession)
    if wanted < FEWEST_TASKS:
        return None
    steps = wanted * max(8, _FEWEST_QUANTILES // wanted)
    (quantiles,) = quantiles_of(times.sample(fraction=SAMPLED, seed=1).groupBy(), steps)
    count = min(wanted, int(quantiles.events / SAMPLED) // ranges.SMALLEST_TASK)
    starts = starts_of(quantiles, count, steps) if count > 1 else ()
    ends = ends_of_windows(starts)
    if not starts or ends is None:
        return None
    borders = borders_of(starts, ends, sorted(set(quantiles.cuts)), around)
    if around.back or around.ahead or chained:
        borders = _counted(times, borders, around, chained=chained)
    return TimeRanges(tuple(borders)) if borders else None


def borders_of(
    starts: Sequence[int], ends: Sequence[int], quantiles: Sequence[int], around: Surroundings
) -> list[Border]:
    """The borders at `starts` that are further apart than the rows beside ranges."""
    borders: list[Border] = []
    for start, last in zip(starts, ends, strict=True):
        before = bisect_left(quantiles, start) - 1
        behind = bisect_right(quantiles, last)
        if (around.back and before < 0) or (around.ahead and behind == len(quantiles)) or last == GREATEST:
            continue
        end = max(start, last + 1)
        back = quantiles[before] if around.back else start
        ahead = max(end, quantiles[behind] + 1) if around.ahead else end
        if not borders or borders[-1].ahead <= back:
            borders.append(Border(back, start, end, ahead))
    return borders


def _counted(
    times: DataFrame, borders: Sequence[Border], around: Surroundings, *, chained: bool
) -> list[Border]:
    """The borders with enough rows beside them, and not too many; one job counts them."""
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    places = [place for border in borders for place in border]
    segment = searched(TIME, places, list(map(str, range(len(places) + 1))))
    counts = times.where(F.col(TIME).isNotNull()).groupBy(F.expr(segment).alias(_SEGMENT)).count().collect()
    rows = {row[_SEGMENT]: row["count"] for row in counts}
    kept = []
    for number, border in enumerate(borders):
        before, window, behind = (rows.get(len(border) * number + place, 0) for place in (1, 2, 3))
        if before >= around.back and behind >= around.ahead and not (chained and window > MOST_ENTRIES):
            kept.append(border)
    return kept
