"""Ticks of a time, and the milliseconds of Spark's watermark."""

from __future__ import annotations

from dataclasses import dataclass

MS = 1_000_000
"""The nanoseconds of a millisecond, which is Spark's tick of an integer without a unit."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """The length of a tick, in `nanoseconds`."""

    nanoseconds: int

    def from_ms(self, ms: int) -> int:
        """The first tick not before the beginning of this millisecond; for a length: rounded up."""
        return -(-ms * MS // self.nanoseconds)

    def through_ms(self, ms: int) -> int:
        """The last tick that begins in this millisecond or before."""
        return self.from_ms(ms + 1) - 1

    def ms_of(self, tick: int) -> int:
        """The millisecond in which a tick begins."""
        return tick * self.nanoseconds // MS

    def clock(self, sql: str) -> str:
        """SQL of the timestamp in which a time in ticks begins, in Spark's microseconds."""
        if self.nanoseconds >= 1000:
            return f"timestamp_micros({sql} * {self.nanoseconds // 1000}L)"
        return f"timestamp_micros({sql} div {1000 // self.nanoseconds}L)"
