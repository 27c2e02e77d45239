"""The time up to which a stream is known, as users write it: a time, or that nothing more comes."""

from __future__ import annotations

import operator
import re
from contextlib import suppress
from datetime import UTC, date, datetime
from fractions import Fraction
from math import floor
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from estero.classify.instants import micros_of
from estero.engine.int64 import saturated
from estero.errors import NOWHERE, DataError, QueryError
from estero.language.builder.numpy_times import nanoseconds_of
from estero.language.tree import pattern as p
from estero.language.tree.levels import levels_of
from estero.plan.plan import Plan

END: Final = "end"
"""The word for the end of a stream, after which nothing comes."""

AFTER_ALL: Final = 1 << 70
"""Later than every time."""

_NANOSECONDS: Final = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
_NANOS: Final = re.compile(r"[.,]([0-9]{6})([0-9]{1,3})(?![0-9])")
"""A fraction of a second with nanoseconds."""

Until: TypeAlias = "datetime | int | str | Any"
"""A time: an integer or a time of Python, NumPy, pandas or Arrow as the time column, its text; or "end"."""


def known_until(until: Until, plan: Plan, time: pa.DataType | None, *, partials: bool = False) -> int:
    """The ticks of the time up to which a stream is known; `AFTER_ALL` for the end.

    `time` is the type in which answers show times. With `partials` there may be partial matches, which are
    decided when their windows have passed. Raises `QueryError` if nothing depends on the time known after the
    last event, and `DataError` for a value that is not a time of the stream.
    """
    if not (p.ending(plan.tree.pattern) or (partials and has_timed_levels(plan))):
        raise QueryError(
            "until says how far a stream is known, and this query does not ask what comes after an end",
            text=plan.tree.text,
            span=NOWHERE,
            found="until",
            expected="NOT(…) FOR at the end of the pattern",
            hint="leave until out",
        )
    if isinstance(until, str) and until.lower() == END:
        return AFTER_ALL
    return _moment(until, time) if time is not None and pa.types.is_timestamp(time) else _ticks(until)


def passed_time(until: Until, time: pa.DataType | None) -> int:
    """The ticks of a time that has passed on a stream, within 64 bits; `time` is as for `known_until`."""
    if time is None:
        raise DataError(
            "these events have no time, so nothing can pass", hint="name their time column: time="
        )
    try:
        ticks = _moment(until, time) if pa.types.is_timestamp(time) else _ticks(until)
    except DataError:
        raise DataError(
            f"{until!r} is not a time of these events",
            hint="a time as the time column has them, or its text; "
            'where nothing comes any more, it is close(until="end")',
        ) from None
    return saturated(ticks)


def has_timed_levels(plan: Plan) -> bool:
    """Whether starts of the query may be partial matches, and time decides when that is known."""
    return bool(levels_of(plan.tree.pattern)) and plan.window is not None and not plan.window.in_positions


def check_until(known: int, last: int | None) -> None:
    """Raises `DataError` if a stream has events after the time up to which it is declared to be known."""
    if last is not None and known < last:
        raise DataError(
            "until is before the last event",
            hint='name a time that is not before it, or "end", or leave until out: '
            "then events are known up to the last one",
        )


def _ticks(until: Until) -> int:
    wanted = "an integer, as the time column has them"
    if not isinstance(until, bool | datetime):
        with suppress(ValueError, TypeError):
            return _capped(int(until) if isinstance(until, str) else operator.index(until))
    raise _no_time(until, wanted)


def _moment(until: Until, time: pa.DataType) -> int:
    """The last tick that is not after a time; times beyond 64 bits are cut to their limits."""
    nanoseconds = nanoseconds_since_1970(until)
    if nanoseconds is None:
        raise _no_time(until, "a time such as datetime(2026, 5, 1, 12) or '2026-05-01T12:00:00'")
    return _capped(floor(nanoseconds / _NANOSECONDS[time.unit]))


def nanoseconds_since_1970(value: object) -> Fraction | None:
    """A time of Python, NumPy, pandas, Arrow or in a text, in UTC if it has no zone; None for anything else.

    >>> nanoseconds_since_1970("1970-01-01T00:00:00.000000001") == 1
    True
    """
    value = getattr(value, "asm8", value)  # of a time of pandas, in UTC
    if isinstance(value, np.datetime64):
        return nanoseconds_of(value)
    if isinstance(value, pa.TimestampScalar):
        return None if value.value is None else Fraction(value.value * _NANOSECONDS[value.type.unit])
    if isinstance(value, str):
        return _in_text(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001  (as all without a zone)
    if isinstance(value, datetime):
        zoned = value.replace(tzinfo=UTC) if value.tzinfo is None else value
        return Fraction(micros_of(zoned) * 1000)
    return None


def _in_text(text: str) -> Fraction | None:
    """A time in ISO 8601; Python reads six digits of its fraction."""
    fraction = _NANOS.search(text)
    short = text if fraction is None else text.replace(fraction[0], fraction[0][:7])
    try:
        moment = nanoseconds_since_1970(datetime.fromisoformat(short))
    except ValueError:
        return None
    beyond = "0" if fraction is None else fraction[2].ljust(3, "0")
    return None if moment is None else moment + int(beyond)


def _capped(ticks: int) -> int:
    return min(max(ticks, -AFTER_ALL), AFTER_ALL)


def _no_time(until: object, expected: str) -> DataError:
    shown = until if isinstance(until, datetime) else repr(until)
    return DataError(
        f"until is {shown}, which is not a time of these events", hint=f'it is {expected}, or "end"'
    )
