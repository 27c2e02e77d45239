"""Times and durations of NumPy, of any unit, as exact numbers of nanoseconds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from typing import Any, Final

_UNIT: Final = re.compile(r"[<>=|]?[mM]8\[(\d*)(\w+)\]")
_SECOND: Final = 10**9
_NANOSECONDS: Final[Mapping[str, Fraction]] = {
    "as": Fraction(1, 10**9),
    "fs": Fraction(1, 10**6),
    "ps": Fraction(1, 1000),
    "ns": Fraction(1),
    "us": Fraction(1000),
    "ms": Fraction(10**6),
    "s": Fraction(_SECOND),
    "m": Fraction(60 * _SECOND),
    "h": Fraction(3600 * _SECOND),
    "D": Fraction(86_400 * _SECOND),
    "W": Fraction(7 * 86_400 * _SECOND),
}
_MONTHS: Final = {"Y": 12, "M": 1}
_BEGIN: Final = date(1970, 1, 1)


def nanoseconds_of(value: Any) -> Fraction | None:
    """A ``datetime64`` as nanoseconds since 1970, a ``timedelta64`` as nanoseconds; exact.

    None for NaT, and for a duration in months or years, which have no fixed length. For years beyond
    Python's calendar, days are counted approximately.

    >>> import numpy as np
    >>> nanoseconds_of(np.datetime64("1970-02", "M")) == 31 * 86_400 * 10**9
    True
    """
    unit = _UNIT.fullmatch(value.dtype.str)
    if unit is None or str(value) == "NaT":
        return None
    count = int(value.astype("int64")) * int(unit[1] or 1)
    if unit[2] in _NANOSECONDS:
        return count * _NANOSECONDS[unit[2]]
    if value.dtype.kind != "M":
        return None
    years, months = divmod(count * _MONTHS[unit[2]], 12)
    if 1 <= 1970 + years <= 9999:
        days = (date(1970 + years, 1 + months, 1) - _BEGIN).days
    else:
        days = 365 * years + 30 * months
    return days * _NANOSECONDS["D"]
