"""When a batch of a stream begins, as a person says it → as Spark takes it."""

from __future__ import annotations

import re
from typing import Any

from estero.errors import DataError

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days"}
_WORDS = r"milliseconds?|seconds?|minutes?|hours?|days?"
_INTERVAL = re.compile(rf"(\d+)\s*({_WORDS}|{'|'.join(_UNITS)})", re.IGNORECASE)


def trigger_of(text: str | None) -> dict[str, Any]:
    """The keyword argument of Spark's `trigger`; `DataError` where the text says none.

    >>> trigger_of("10s"), trigger_of("available-now")
    ({'processingTime': '10 seconds'}, {'availableNow': True})
    """
    if text is None:
        return {"processingTime": "0 seconds"}
    plain = text.strip().lower()
    if plain.replace("_", "-").replace(" ", "-") in ("available-now", "availablenow"):
        return {"availableNow": True}
    found = _INTERVAL.fullmatch(plain)
    if found is None:
        raise DataError(
            f"{text!r} is no trigger", hint="write available-now, or an interval such as 10 seconds"
        )
    return {"processingTime": f"{found[1]} {_UNITS.get(found[2], found[2])}"}
