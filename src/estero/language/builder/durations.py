"""Durations written in Python: pairs, texts, timedeltas."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Final, Protocol, TypeAlias, cast

from estero.errors import NOWHERE
from estero.language.tree.distances import Apart, Distance, DurationWindow, EventWindow
from estero.language.tree.durations import Duration, TimeUnit, unit_of
from estero.language.tree.expressions import Node, Parameter
from estero.language.tree.parameters import OpenNumber, OpenWindow

Part = tuple[int, TimeUnit]
Length: TypeAlias = tuple[int, TimeUnit | str] | timedelta | str
"""A duration: ``(5, "minutes")``, a timedelta of Python or pandas, or a text such as "1h 30 min"."""
_PARTS: Final = re.compile(r"\s*(?:\d+\s*[^\W\d]+\s*)+")
_PART: Final = re.compile(r"(\d+)\s*([^\W\d]+)")


class Open(Protocol):
    """A parameter."""

    @property
    def tree(self) -> Node:
        """Its node."""


def window_of(length: Length | Open) -> DurationWindow:
    """A length of time; raises as `durations_of` does."""
    if isinstance(tree := getattr(length, "tree", None), Parameter):
        return OpenWindow(name=tree.name)
    return DurationWindow(tuple(durations_of(cast(Length, length))))


def number_of(number: int | Open) -> int:
    """A whole number."""
    if isinstance(tree := getattr(number, "tree", None), Parameter):
        return OpenNumber.of(tree.name, NOWHERE)
    return cast(int, number)


def distances_of(
    within: Length | Open | None,
    after: Length | Open | None,
    events: int | Open | None,
    apart: Iterable[Distance],
) -> tuple[Distance, ...]:
    """The distances of a step: at most `within`, at least `after`, at most `events` events, and `apart`."""
    distances: list[Distance] = []
    if within is not None:
        distances.append(Apart("<=", window_of(within)))
    if after is not None:
        distances.append(Apart(">=", window_of(after)))
    if events is not None:
        distances.append(Apart("<=", EventWindow(number_of(events))))
    return (*distances, *apart)


def durations_of(duration: Length) -> list[Part]:
    """The parts of a duration in its own units; those of a timedelta in the largest ones.

    Raises ValueError for anything but a duration, and for a negative one.

    >>> [(amount, unit.name) for amount, unit in durations_of("1h 30 min")]
    [(1, 'HOURS'), (30, 'MINUTES')]
    >>> [(amount, unit.name) for amount, unit in durations_of(timedelta(seconds=90))]
    [(1, 'MINUTES'), (30, 'SECONDS')]
    """
    match duration:
        case str():
            return _of_text(duration)
        case timedelta():
            return _of_timedelta(duration)
        case (int(amount), str() | TimeUnit() as name):
            return [(amount, unit_named(name))]
        case _:
            raise _none(duration)


def unit_named(name: TimeUnit | str) -> TimeUnit:
    """The unit of this name; raises ValueError for an unknown one."""
    if isinstance(name, TimeUnit):
        return name
    name_of_unit = unit_of(name)
    if name_of_unit not in TimeUnit.__members__:
        known = ", ".join(unit.lower() for unit in TimeUnit.__members__)
        raise ValueError(f"unknown unit {name}; the units are {known}")
    return TimeUnit[name_of_unit]


def _of_text(text: str) -> list[Part]:
    if _PARTS.fullmatch(text) is None:
        raise _none(text)
    return [(int(amount), unit_named(name)) for amount, name in _PART.findall(text)]


def duration_of(length: timedelta) -> Duration:
    """A timedelta of Python or pandas as a constant of the language.

    >>> print(duration_of(timedelta(hours=-1)))
    -(1 HOUR)
    """
    # pandas has nanoseconds, too, which are those of the last microsecond.
    micros = length // timedelta(microseconds=1)
    return Duration(micros * 1000 + int(getattr(length, "nanoseconds", 0)))


def _of_timedelta(length: timedelta) -> list[Part]:
    duration = duration_of(length)
    if duration.nanoseconds < 0:
        raise ValueError(f"a window cannot be negative, as {length} is")
    return list(duration.parts)


def _none(duration: object) -> ValueError:
    return ValueError(
        f"{duration!r} is not a duration: write hours=2, minutes=30, or '2 hours 30 min', or a timedelta; "
        "windows of another kind are events=100 and ticks=5, attribute='ts'"
    )
