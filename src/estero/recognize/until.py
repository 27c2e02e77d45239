"""Up to when a stream is known, as users say it: a time, or that nothing comes any more."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import pyarrow as pa

from estero.errors import NOWHERE, DataError, QueryError
from estero.language.tree import pattern as p
from estero.language.tree.levels import levels_of
from estero.plan.plan import Plan

END: Final = "end"
"""What users say where nothing comes any more."""

AFTER_ALL: Final = 1 << 70
"""Later than every time."""

Until: TypeAlias = "datetime | int | str | Any"
"""A time in the type of the time column (or its text), or "end"."""


def known_until(until: Until, plan: Plan, time: pa.DataType | None, *, partials: bool = False) -> int:
    """The ticks of a time up to which a stream is known; `AFTER_ALL` for the end.

    `time` is the type in which answers show times. With `partials` there may be partial matches, which are
    decided when their windows have passed. Raises `QueryError` where nothing depends on what is known after
    the last event, and `DataError` for what is no time of the stream.
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
    if time is None or not pa.types.is_timestamp(time):
        return _ticks(until)
    return _moment(until, time)


def has_timed_levels(plan: Plan) -> bool:
    """Whether starts of the query come some of the way, and time says when that is known."""
    return bool(levels_of(plan.tree.pattern)) and plan.window is not None and not plan.window.in_positions


def check_until(known: int, last: int | None) -> None:
    """Raises `DataError` where a stream has events after the time up to which it is said to be known."""
    if last is not None and known < last:
        raise DataError(
            "until is before the last event",
            hint='name a time that is not before it, or "end", or leave until out: '
            "then events are known up to the last one",
        )


def _ticks(until: Until) -> int:
    if isinstance(until, str):
        try:
            return int(until)
        except ValueError:
            raise _no_time(until, "an integer, as the time column has them") from None
    if isinstance(until, bool) or not isinstance(until, int):
        raise _no_time(until, "an integer, as the time column has them")
    return until


def _moment(until: Until, time: pa.DataType) -> int:
    if isinstance(until, str):
        try:
            until = datetime.fromisoformat(until)
        except ValueError:
            raise _no_time(until, "a time such as 2026-05-01T12:00:00") from None
    if isinstance(until, datetime) and until.tzinfo is not None:
        until = until.astimezone(UTC)
    try:
        moment = pa.scalar(until)
        if not pa.types.is_timestamp(moment.type):
            raise _no_time(until, "a time such as datetime(2026, 5, 1, 12)")
        return int(moment.cast(pa.timestamp(time.unit, moment.type.tz), safe=False).value)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise _no_time(until, "a time such as datetime(2026, 5, 1, 12)") from error


def _no_time(until: object, expected: str) -> DataError:
    return DataError(f"until is {until!r}, and no time of these events", hint=f'it is {expected}, or "end"')
