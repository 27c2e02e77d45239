"""Durations: their units, and constants that are durations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final


class TimeUnit(Enum):
    """A unit of a duration; the value is its length in nanoseconds."""

    NANOSECONDS = 1
    MICROSECONDS = 1_000
    MILLISECONDS = 1_000_000
    SECONDS = 1_000_000_000
    MINUTES = 60_000_000_000
    HOURS = 3_600_000_000_000
    DAYS = 86_400_000_000_000
    WEEKS = 604_800_000_000_000


UNITS: Final = {name: unit for unit in TimeUnit for name in (unit.name, unit.name.removesuffix("S"))}
"""Units of a duration by their name in capitals, plural and singular."""

_ELSEWHERE: Final = {
    **dict.fromkeys(("s", "sec"), "SECONDS"),
    **dict.fromkeys(("m", "min"), "MINUTES"),
    **dict.fromkeys(("h", "hr"), "HOURS"),
    "d": "DAYS",
    **dict.fromkeys(("w", "wk"), "WEEKS"),
    **dict.fromkeys(("ms", "milli", "msec"), "MILLISECONDS"),
    **dict.fromkeys(("us", "µs", "micro", "usec"), "MICROSECONDS"),
    **dict.fromkeys(("ns", "nano", "nsec"), "NANOSECONDS"),
    **dict.fromkeys(("row", "tuple", "position"), "EVENTS"),
}
"""Other names of units."""


def unit_of(word: str) -> str:
    """The unit for a short or other name, as it is written, or the empty string.

    >>> unit_of("min"), unit_of("rows"), unit_of("fortnights")
    ('MINUTES', 'EVENTS', '')
    """
    folded = word.lower()
    unit = UNITS.get(word.upper())
    return unit.name if unit else _ELSEWHERE.get(folded) or _ELSEWHERE.get(folded.removesuffix("s"), "")


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time; a negative one leads to an earlier time.

    >>> str(Duration(5_400_000_000_000)), str(Duration(-1_000))
    ('1 HOUR 30 MINUTES', '-(1 MICROSECOND)')
    """

    nanoseconds: int

    def __str__(self) -> str:
        if self.nanoseconds < 0:
            return f"-({Duration(-self.nanoseconds)})"
        return " ".join(
            f"{n} {unit.name if n != 1 else unit.name.removesuffix('S')}" for n, unit in self.parts
        )

    @property
    def fits(self) -> bool:
        """Whether it has 64 bits: in microseconds, or else in nanoseconds."""
        micros, beyond = divmod(self.nanoseconds, 1000)
        return -(2**63) <= (self.nanoseconds if beyond else micros) < 2**63

    @property
    def parts(self) -> tuple[tuple[int, TimeUnit], ...]:
        """The amounts of each unit, the largest first, with weeks in days; the duration is not negative."""
        parts: list[tuple[int, TimeUnit]] = []
        left = self.nanoseconds
        for unit in sorted(set(TimeUnit) - {TimeUnit.WEEKS}, key=lambda unit: -unit.value):
            amount, left = divmod(left, unit.value)
            if amount:
                parts.append((amount, unit))
        return tuple(parts) or ((0, TimeUnit.SECONDS),)

    @classmethod
    def of(cls, parts: Iterable[tuple[int, TimeUnit]]) -> Duration:
        """The sum of these amounts of units."""
        return cls(sum(amount * unit.value for amount, unit in parts))
