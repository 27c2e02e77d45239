"""How time passes on a stream on which no event comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from estero.errors import DataError

_A_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_SELDOM: Final = 1.0
"""Seconds between two looks: each may close windows of all rules."""


def ticks_a_second(time: pa.DataType | None, unit: str | None) -> int:
    """The ticks that a second has; `time` is the type of times, `unit` that of integers.

    Raises `DataError` where nobody knows.
    """
    known = time.unit if time is not None and pa.types.is_timestamp(time) else unit
    if known not in _A_SECOND:
        raise DataError(
            "idle_after needs to know how long a tick is, and the times are integers without a unit",
            hint="say time_unit, such as 'ms'",
        )
    return _A_SECOND[known]


class Silence:
    """Follows the `clock` (seconds that never go back) once nothing has come for `after` seconds.

    The watermark then goes on from where the last event has left it, as fast as the clock, and `after`
    seconds behind it: it makes no jump, and an event that is on its way for less than that is not late.
    """

    def __init__(self, after: float, a_second: int, clock: Callable[[], float]) -> None:
        self._after = after
        self._a_second = a_second
        self._clock = clock
        self._watermark: int | None = None
        self._since = self._looked = clock()

    def broken(self, watermark: int | None) -> None:
        """An event has come, or might have, and left the watermark there."""
        self._watermark = watermark
        self._since = self._looked = self._clock()

    def is_due(self) -> bool:
        """Whether nothing has come for long, and this was not asked a moment ago."""
        now = self._clock()
        if self._watermark is None or now - self._since <= self._after or now - self._looked < _SELDOM:
            return False
        self._looked = now
        return True

    def time(self) -> int:
        """The time that the stream has now, in ticks."""
        if self._watermark is None:
            raise ValueError("a stream without an event has no time")
        passed = max(0.0, self._clock() - self._since - self._after)
        return self._watermark + int(passed * self._a_second)
