"""The functions of the language: what each takes, what it gives, what it means. NULL gives NULL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from estero.language.tree.expressions import AggregateFunction
from estero.language.tree.schema import NUMBERS, Kind

_ANY: Final = frozenset(Kind)
_TIMESTAMP: Final = frozenset({Kind.TIMESTAMP})


@dataclass(frozen=True, slots=True)
class Function:
    """The kinds that its argument may have, and the kind of its value (None: that of the argument)."""

    takes: frozenset[Kind]
    gives: Kind | None
    meaning: str


SCALAR_FUNCTIONS: Final[Mapping[str, Function]] = {
    "abs": Function(NUMBERS, None, "the absolute value"),
    "floor": Function(NUMBERS, None, "the largest whole number not above the argument"),
    "ceil": Function(NUMBERS, None, "the smallest whole number not below the argument"),
    "length": Function(frozenset({Kind.STRING}), Kind.INT, "the number of code points of a string"),
    "coalesce": Function(_ANY, None, "the first of several that is not NULL; of one kind, or all numbers"),
    "year": Function(_TIMESTAMP, Kind.INT, "the year of a timestamp in UTC"),
    "month": Function(_TIMESTAMP, Kind.INT, "the month of a timestamp in UTC, 1 to 12"),
    "day": Function(_TIMESTAMP, Kind.INT, "the day of the month of a timestamp in UTC, 1 to 31"),
    "hour": Function(_TIMESTAMP, Kind.INT, "the hour of a timestamp in UTC, 0 to 23"),
    "minute": Function(_TIMESTAMP, Kind.INT, "the minute of a timestamp, 0 to 59"),
    "second": Function(_TIMESTAMP, Kind.INT, "the whole seconds of a timestamp, 0 to 59"),
}
"""Functions of values of one event that mean the same on every engine.

Not here: lower and upper (they differ outside ASCII), round (engines differ in ties and kinds).
"""

AGGREGATES: Final[Mapping[AggregateFunction, Function]] = {
    "count": Function(_ANY, Kind.INT, "how many events, or how many values that are not NULL"),
    "sum": Function(NUMBERS, None, "the sum"),
    "avg": Function(NUMBERS, Kind.FLOAT, "the mean"),
    "stddev": Function(NUMBERS, Kind.FLOAT, "the standard deviation of a sample"),
    "min": Function(_ANY, None, "the smallest value"),
    "max": Function(_ANY, None, "the largest value"),
    "first": Function(_ANY, None, "the value of the first event"),
    "last": Function(_ANY, None, "the value of the last event"),
}
"""Functions of the set of events marked with a variable. NULLs do not count, but for first and last."""

SET_PREDICATES: Final = ("increasing", "decreasing")
"""Built-in predicates over sets of events; users register more."""
