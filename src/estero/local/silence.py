"""The passing of time on a stream without events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from estero.errors import DataError

_A_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_SELDOM: Final = 1.0
"""The seconds between two checks, which may close windows of all rules."""


def ticks_a_second(time: pa.DataType | None, unit: str | None) -> int:
    """The number of ticks in a second; `time` is the type of times, and `unit` that of integers.

    Raises `DataError` if it is unknown.
    """
    known = time.unit if time is not None and pa.types.is_timestamp(time) else unit
    if known not in _A_SECOND:
        raise DataError(
            "idle_after needs to know how long a tick is, and the times are integers without a unit",
            hint="say time_unit, such as 'ms'",
        )
    return _A_SECOND[known]


class Silence:
    """A time that follows the `clock` (monotonic seconds) after `after` seconds without events.

    The watermark then advances from where the last event has left it, as fast as the clock, `after` seconds
    behind it: it does not jump, and an event that is delayed by less than that is not late.
    """

    def __init__(self, after: float, a_second: int, clock: Callable[[], float]) -> None:
        self._after = after
        self._a_second = a_second
        self._clock = clock
        self._watermark: int | None = None
        self._since = self._looked = clock()

    def broken(self, watermark: int | None) -> None:
        """Notes that an event has, or might have, arrived, and the watermark at that moment."""
        self._watermark = watermark
        self._since = self._looked = self._clock()

    def is_due(self) -> bool:
        """Whether no event has arrived for long enough, and the last check is long enough ago."""
        now = self._clock()
        if self._watermark is None or now - self._since <= self._after or now - self._looked < _SELDOM:
            return False
        self._looked = now
        return True

    def time(self) -> int:
        """The current time of the stream, in ticks."""
        if self._watermark is None:
            raise ValueError("a stream without an event has no time")
        passed = max(0.0, self._clock() - self._since - self._after)
        return self._watermark + int(passed * self._a_second)
