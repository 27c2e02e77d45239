"""The functions of the language, with their arguments, values and meanings.

NULL in, NULL out, but for those that choose among their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from estero.language.tree.expressions import AggregateFunction, CastType, ComparisonOperator
from estero.language.tree.literals import Value
from estero.language.tree.schema import NUMBERS, Kind

Kinds: TypeAlias = frozenset[Kind]

_ANY: Final = frozenset(Kind)
COMPARED: Final = _ANY - {Kind.OPAQUE}
"""The kinds of values that can be compared."""
_CHOSEN: Final = _ANY - {Kind.DECIMAL}
_ORDERED: Final = COMPARED - {Kind.DECIMAL}
"""The kinds that functions choose among: not decimals, as several may have no common type."""
SUMMED: Final = NUMBERS | {Kind.DECIMAL}
"""The kinds that `sum`, `avg`, `stddev` and `median` take."""
_INT: Final = frozenset({Kind.INT})
_STRING: Final = frozenset({Kind.STRING})
_TIMESTAMP: Final = frozenset({Kind.TIMESTAMP})
_DURATION: Final = frozenset({Kind.DURATION})

UNITS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""The units of `date_trunc`; a week begins on Monday."""
MOST_DIGITS: Final = 15
"""The most decimal places that `round` keeps; a float has hardly more."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant argument: the allowed values, and the phrase for them."""

    expected: str
    allows: Callable[[Value], bool]


@dataclass(frozen=True, slots=True)
class Function:
    """A function: the kinds of each argument, and the kind of the value (None: that of the arguments).

    The last `optional` arguments may be left out; the last may be `repeated`. Arguments that are `alike` are
    of one kind or all numbers; beside a float, integers become floats.
    """

    takes: tuple[Kinds, ...]
    gives: Kind | None
    meaning: str
    example: str
    optional: int = 0
    repeated: bool = False
    alike: bool = False
    constants: Mapping[int, Constant] = field(default_factory=dict)

    def accepts(self, arguments: int) -> bool:
        """Whether it can be called with this number of arguments."""
        least = len(self.takes) - self.optional
        return least <= arguments and (self.repeated or arguments <= len(self.takes))

    def taken(self, place: int) -> Kinds:
        """The allowed kinds of the argument at a place."""
        return self.takes[min(place, len(self.takes) - 1)]


def _is_text(value: Value) -> bool:
    return isinstance(value, str) and value != ""


def _is_count(least: int, most: int) -> Callable[[Value], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


_UNIT: Final = Constant(
    ", ".join(f"'{unit}'" for unit in UNITS[:-1]) + f" or '{UNITS[-1]}'", UNITS.__contains__
)
_DIGITS: Final = Constant(f"a whole number from 0 to {MOST_DIGITS}", _is_count(0, MOST_DIGITS))
_DELIMITER: Final = Constant("a string that is not empty", _is_text)
_BASE: Final = Constant("a whole number from 2 to 36", _is_count(2, 36))
_ORDINAL: Final = Constant("a whole number from 1 to 2147483647", _is_count(1, 2**31 - 1))


def _of_number(gives: Kind | None, meaning: str, name: str) -> Function:
    return Function((NUMBERS,), gives, meaning, f"{name}(x)")


def _of_string(gives: Kind, meaning: str, name: str) -> Function:
    return Function((_STRING,), gives, meaning, f"{name}(s)")


def _of_strings(meaning: str, name: str, gives: Kind = Kind.BOOL) -> Function:
    return Function((_STRING, _STRING), gives, meaning, f"{name}(s, 'ab')")


def _of_time(meaning: str, name: str) -> Function:
    return Function((_TIMESTAMP,), Kind.INT, meaning, f"{name}(t)")


SCALAR_FUNCTIONS: Final[Mapping[str, Function]] = {
    "abs": Function((NUMBERS | _DURATION,), None, "the absolute value", "abs(x)"),
    "sign": _of_number(Kind.INT, "-1, 0 or 1", "sign"),
    "floor": _of_number(None, "the largest whole number not above the argument", "floor"),
    "ceil": _of_number(None, "the smallest whole number not below the argument", "ceil"),
    "round": Function(
        (NUMBERS, _INT),
        None,
        "the nearest whole number, or the nearest with so many decimal places; of two, that away from 0",
        "round(x, 2)",
        optional=1,
        constants={1: _DIGITS},
    ),
    "sqrt": _of_number(Kind.FLOAT, "the square root; NULL of a negative number", "sqrt"),
    "ln": _of_number(Kind.FLOAT, "the natural logarithm; NULL unless the argument is positive", "ln"),
    "exp": _of_number(Kind.FLOAT, "e to the power of the argument", "exp"),
    "power": Function(
        (NUMBERS, NUMBERS), Kind.FLOAT, "the first argument to the power of the second", "power(x, 2)"
    ),
    "greatest": Function(
        (_ORDERED,),
        None,
        "the largest argument; NULLs do not count",
        "greatest(a, b)",
        repeated=True,
        alike=True,
    ),
    "least": Function(
        (_ORDERED,),
        None,
        "the smallest argument; NULLs do not count",
        "least(a, b)",
        repeated=True,
        alike=True,
    ),
    "div": Function(
        (_INT, _INT),
        Kind.INT,
        "the whole number of times that the second argument is in the first, towards 0; NULL by 0",
        "div(x, 2)",
    ),
    "length": _of_string(Kind.INT, "the number of code points of a string", "length"),
    "lower": _of_string(Kind.STRING, "each letter in lower case; letters of Unicode 13", "lower"),
    "upper": _of_string(
        Kind.STRING,
        "each letter in upper case, if that is one letter (ß stays); of Unicode 13",
        "upper",
    ),
    "trim": _of_string(Kind.STRING, "the string without spaces at its ends", "trim"),
    "substring": Function(
        (_STRING, _INT, _INT),
        Kind.STRING,
        "the characters from a place on, the first being 1; as many as the third argument says",
        "substring(s, 2, 3)",
        optional=1,
    ),
    "starts_with": _of_strings("whether the first string begins with the second", "starts_with"),
    "ends_with": _of_strings("whether the first string ends with the second", "ends_with"),
    "contains": _of_strings("whether the second is in the first, a string or a list", "contains"),
    "replace": Function(
        (_STRING, _STRING, _STRING),
        Kind.STRING,
        "the third string wherever the second is in the first; an empty one is nowhere",
        "replace(s, 'a', 'b')",
    ),
    "concat": Function(
        (_STRING,), Kind.STRING, "the strings, joined end to end", "concat(a, b)", repeated=True
    ),
    "split_part": Function(
        (_STRING, _STRING, _INT),
        Kind.STRING,
        "the part of a string at a place, from 1 on, where a delimiter divides it; empty beyond the last",
        "split_part(s, '-', 1)",
        constants={1: _DELIMITER, 2: _ORDINAL},
    ),
    "position": _of_strings(
        "the place at which the second string first begins in the first, from 1; 0 if it is not there",
        "position",
        Kind.INT,
    ),
    "last_position": _of_strings(
        "the place at which the second string last begins in the first, from 1; 0 if it is not there",
        "last_position",
        Kind.INT,
    ),
    "parse_integer": Function(
        (_STRING, _INT),
        Kind.INT,
        "the integer that the digits of a string are to a base; NULL if they are none, or beyond 64 bits",
        "parse_integer(s, 16)",
        constants={1: _BASE},
    ),
    "coalesce": Function(
        (_CHOSEN,), None, "the first argument that is not NULL", "coalesce(a, b)", repeated=True, alike=True
    ),
    "nullif": Function(
        (_ORDERED, _ORDERED),
        None,
        "the first argument; NULL if the second equals it",
        "nullif(a, b)",
        alike=True,
    ),
    "year": _of_time("the year of a timestamp in UTC", "year"),
    "quarter": _of_time("the quarter of a timestamp in UTC, 1 to 4", "quarter"),
    "month": _of_time("the month of a timestamp in UTC, 1 to 12", "month"),
    "week": _of_time("the week of a timestamp in UTC, 1 to 53, as ISO 8601 counts them", "week"),
    "day": _of_time("the day of the month of a timestamp in UTC, 1 to 31", "day"),
    "day_of_week": _of_time("the day of the week of a timestamp in UTC, 1 (Monday) to 7", "day_of_week"),
    "hour": _of_time("the hour of a timestamp in UTC, 0 to 23", "hour"),
    "minute": _of_time("the minute of a timestamp, 0 to 59", "minute"),
    "second": _of_time("the whole seconds of a timestamp, 0 to 59", "second"),
    "epoch": Function((_TIMESTAMP,), Kind.FLOAT, "the seconds since 1970 in UTC", "epoch(t)"),
    "seconds": Function((_DURATION,), Kind.FLOAT, "the seconds of a duration, with a fraction", "seconds(d)"),
    "date_trunc": Function(
        (_STRING, _TIMESTAMP),
        Kind.TIMESTAMP,
        "the beginning of the year, quarter, month, week, day, hour, minute or second of a timestamp in UTC",
        "date_trunc('day', t)",
        constants={0: _UNIT},
    ),
}
"""Functions of values of one event that mean the same on every engine.

`ln`, `exp` and `power` may differ in the last digit, as the libraries of the engines do.
"""


CAST_TYPES: Final[Mapping[str, CastType]] = {
    **dict.fromkeys(("INTEGER", "INT", "BIGINT"), "INTEGER"),
    **dict.fromkeys(("FLOAT", "DOUBLE", "REAL"), "FLOAT"),
    **dict.fromkeys(("STRING", "VARCHAR", "TEXT"), "STRING"),
    **dict.fromkeys(("BOOLEAN", "BOOL"), "BOOLEAN"),
    "TIMESTAMP": "TIMESTAMP",
}
"""The names of the types of CAST."""
CASTS: Final[Mapping[CastType, tuple[Kind, Kinds]]] = {
    "INTEGER": (Kind.INT, frozenset({Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.BOOL, Kind.STRING})),
    "FLOAT": (Kind.FLOAT, frozenset({Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.BOOL, Kind.STRING})),
    "STRING": (Kind.STRING, frozenset({Kind.STRING, Kind.INT, Kind.DECIMAL, Kind.BOOL})),
    "BOOLEAN": (Kind.BOOL, frozenset({Kind.BOOL, Kind.INT})),
    "TIMESTAMP": (Kind.TIMESTAMP, _TIMESTAMP),
}
"""The kinds of the types of CAST, and the kinds that they take.

A float or a decimal becomes an integer towards zero; a decimal becomes the nearest float, and a string
without zeros at its end. A string becomes a number if it is written as one, with digits, a sign, a point and
an exponent, and without spaces. Anything else becomes NULL. Engines write floats and timestamps
differently, so they do not become strings.
"""


@dataclass(frozen=True, slots=True)
class AggregateKind:
    """An aggregate: the kinds of its operand, and the kind of its value (None: the same)."""

    takes: Kinds
    gives: Kind | None
    meaning: str


AGGREGATES: Final[Mapping[AggregateFunction, AggregateKind]] = {
    "count": AggregateKind(_ANY, Kind.INT, "how many events, or how many values that are not NULL"),
    "sum": AggregateKind(SUMMED, None, "the sum; of decimals exact, up to 38 digits"),
    "avg": AggregateKind(SUMMED, Kind.FLOAT, "the mean"),
    "stddev": AggregateKind(SUMMED, Kind.FLOAT, "the standard deviation of a sample"),
    "median": AggregateKind(SUMMED, Kind.FLOAT, "the value in the middle, or the mean of the two there"),
    "min": AggregateKind(COMPARED, None, "the smallest value"),
    "max": AggregateKind(COMPARED, None, "the largest value"),
    "first": AggregateKind(_ANY, None, "the value of the first event"),
    "last": AggregateKind(_ANY, None, "the value of the last event"),
    "list": AggregateKind(_ANY, Kind.OPAQUE, "all values, in the order of the events"),
}
"""Functions of the set of events marked with a variable. NULLs do not count, but for first, last and list."""

SET_PREDICATES: Final[Mapping[str, ComparisonOperator]] = {"increasing": ">", "decreasing": "<"}
"""Built-in predicates over sets of events, with the comparison of each value and the previous one."""
PREVIOUS: Final = "prev"
"""The name of the function for the value of the previous event."""
