"""Numbers shared by all engines: instants as microseconds, and the largest integer exact as a float."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

EXACT: Final = 2**53
"""Integers up to here are exact as floats."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FIRST: Final = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
LAST: Final = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH + timedelta(days=1)) // timedelta(
    microseconds=1
) - 1
"""The first and the last microsecond of the years 1 to 9999, which are those of Python's calendar."""


def micros_of(moment: datetime) -> int:
    """Microseconds since the epoch; `moment` has a zone."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_of(micros: int) -> datetime:
    """The time in UTC at a number of microseconds since 1970; OverflowError outside of the calendar."""
    return _EPOCH + timedelta(microseconds=micros)
