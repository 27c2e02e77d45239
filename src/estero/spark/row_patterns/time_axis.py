"""The times of ORDER BY and WITHIN as integers, which rise in the order of the rows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from estero.engine.int64 import GREATEST, LEAST

if TYPE_CHECKING:
    from estero.recognize.row_patterns.evaluation import Evaluation

_MICROSECONDS_OF_A_DAY: Final = 86_400_000_000
_TICKS: Final = {
    "timestamp": "unix_micros({})",
    "timestamp_ntz": "timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01 00:00:00', {})",
    "date": "CAST(unix_date({}) AS BIGINT)",
    **dict.fromkeys(("byte", "short", "integer", "long"), "CAST({} AS BIGINT)"),
}
_FIXED: Final = re.compile(r"(Etc/)?(UTC|GMT|UCT|Zulu)|Z|[+-]\d.*")
"""Time zones in which all days are equally long."""


class TimeAxis:
    """The first entry of ORDER BY, of a Spark type and in a time zone, and the windows from it."""

    def __init__(self, evaluation: Evaluation, kind: str, zone: str) -> None:
        self._evaluation, self._kind, self._zone = evaluation, kind, zone
        self._key = evaluation.order[0]

    @property
    def why_not(self) -> str:
        """The reason why times cannot be cut into ranges; empty if they can."""
        if self._kind not in _TICKS:
            return f"values of type {self._kind} are not cut into ranges"
        if self._kind == "timestamp" and not _FIXED.fullmatch(self._zone):
            length = self._evaluation.window_length()
            if length is None or length.months or length.days:
                return f"days and months in {self._zone} are not equally long: write WITHIN in hours"
        return ""

    def ticks(self, column: str) -> str:
        """SQL of the integer of a time; NULL if that is NULL."""
        ticks = _TICKS[self._kind].format(column)
        return f"~({ticks})" if self._key.descending else ticks

    def ticks_of_all(self, column: str) -> str:
        """The same, and the least or greatest integer if the time is NULL."""
        null = LEAST if self._key.nulls_first else GREATEST
        return f"coalesce({self.ticks(column)}, CAST('{null}' AS BIGINT))"

    def ends_of_windows(self, times: Sequence[int]) -> list[int] | None:
        """The last integers of times in the windows from these on; None if one has no end."""
        turned = [~time for time in times] if self._key.descending else list(times)
        latest = self._evaluation.deadlines(_times(turned, self._kind))
        if latest.null_count:
            return None
        inside = math.ceil if self._key.descending else math.floor
        ends = [inside(end) for end in _integers(latest, self._kind)]
        return [~end for end in ends] if self._key.descending else ends


def _times(integers: Sequence[int], kind: str) -> pa.Array:
    """Times in the form in which they cross to Python."""
    if kind == "date":
        return pa.array(integers, pa.int32()).cast(pa.date32())
    times = pa.array(integers, pa.int64())
    if kind == "timestamp":
        return times.cast(pa.timestamp("us", "UTC"))
    return times.cast(pa.timestamp("us")) if kind == "timestamp_ntz" else times


def _integers(latest: pa.Array, kind: str) -> list[int | float | Decimal | Fraction]:
    """The integers of times, in the unit of the first entry of ORDER BY."""
    integers: list[int | float | Decimal | Fraction]
    if pa.types.is_date32(latest.type):
        integers = latest.cast(pa.int32()).to_pylist()
        return integers
    if pa.types.is_timestamp(latest.type):
        unit = _MICROSECONDS_OF_A_DAY if kind == "date" else 1
        ticks = latest.cast(pa.timestamp("us", latest.type.tz)).cast(pa.int64()).to_pylist()
        return [Fraction(tick, unit) for tick in ticks]
    integers = latest.to_pylist()
    return integers
