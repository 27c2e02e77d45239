"""Function calls as functions of rows (semantics in language/tree/functions.py)."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TypeAlias

from estero.classify.columns import Tick
from estero.classify.instants import FIRST, LAST, micros_of, moment_of
from estero.classify.rows.classified import Row
from estero.classify.rows.durations import seconds
from estero.classify.rows.texts import MOST_LETTERS
from estero.classify.rows.typed import (
    AskSqlError,
    Function,
    NotInPythonError,
    Typed,
    fit,
    literal,
    of_one,
)
from estero.engine.int64 import GREATEST, LEAST
from estero.language.tree.expressions import CastType, ComparisonOperator
from estero.language.tree.functions import CASTS
from estero.language.tree.literals import in_lower_case
from estero.language.tree.schema import NUMBERS, Kind

_MONTHS: Final = {"year": 12, "quarter": 3, "month": 1}
_SECOND: Final = 10**6
_DAY: Final = 86_400 * _SECOND
_LENGTHS: Final = {
    "week": (7 * _DAY, 4 * _DAY),
    "day": (_DAY, 0),
    "hour": (3600 * _SECOND, 0),
    "minute": (60 * _SECOND, 0),
    "second": (_SECOND, 0),
}
"""The length of each in microseconds, and the start of one of them."""


class Comparing(Protocol):
    """A comparison of two values."""

    def compare(self, sign: ComparisonOperator, left: Typed, right: Typed) -> Function:
        """Whether ``left sign right``."""


Maker: TypeAlias = Callable[[Sequence[Typed]], Typed]


def called(comparing: Comparing, name: str, arguments: Sequence[Typed]) -> Typed:
    """A function call on checked arguments (language/check/kinds.py)."""
    match name:
        case "coalesce":
            return _first_known(arguments)
        case "greatest" | "least":
            return _extreme(comparing, ">" if name == "greatest" else "<", arguments)
        case "nullif":
            return _nullif(comparing, *arguments)
    if any(argument.kind is None for argument in arguments):
        return literal(None)
    return _FUNCTIONS[name](arguments)


# -------------------------------------------------------------------------------- choosing among arguments


def _alike(name: str, arguments: Sequence[Typed]) -> list[Typed]:
    """The operands other than the literal NULL, as values of one kind."""
    typed = [argument for argument in arguments if argument.kind is not None]
    kinds = {argument.kind for argument in typed}
    if kinds == NUMBERS:
        return [Typed(of_one(operand.function, float), Kind.FLOAT) for operand in typed]
    if len(kinds) > 1 or len({argument.tick for argument in typed}) > 1:
        raise NotInPythonError(f"{name} takes values of several kinds")
    return typed


def _first_known(arguments: Sequence[Typed]) -> Typed:
    """The first value that is not NULL; a float among integers and floats."""
    typed = _alike("coalesce", arguments)
    if not typed:
        return literal(None)
    functions = [argument.function for argument in typed]

    def first_known(row: Row) -> Any:
        values = [function(row) for function in functions]
        return next((value for value in values if value is not None), None)

    return Typed(first_known, typed[0].kind, tick=typed[0].tick)


def _extreme(comparing: Comparing, sign: ComparisonOperator, arguments: Sequence[Typed]) -> Typed:
    """The greatest or least value; NULLs do not count."""
    typed = _alike("greatest or least", arguments)
    if not typed:
        return literal(None)
    kind, tick = typed[0].kind, typed[0].tick
    pair = [Typed(operator.itemgetter(place), kind, tick=tick) for place in (0, 1)]
    precedes = comparing.compare(sign, *pair)
    functions = [argument.function for argument in typed]

    def extreme(row: Row) -> Any:
        best = None
        for function in functions:
            value = function(row)
            if best is None or (value is not None and precedes((value, best))):
                best = value
        return best

    return Typed(extreme, kind, tick=tick)


def _nullif(comparing: Comparing, value: Typed, other: Typed) -> Typed:
    if value.kind is None:
        return value
    equal = comparing.compare("=", value, other)
    kept, kind = value.function, value.kind
    if {value.kind, other.kind} == NUMBERS:
        kept, kind = of_one(kept, float), Kind.FLOAT
    return Typed(lambda row: None if equal(row) else kept(row), kind, tick=value.tick)


def chosen(cases: Sequence[tuple[Function, Typed]], default: Typed) -> Typed:
    """``CASE WHEN condition THEN value … ELSE default END``; the values are alike."""
    values = [value for _, value in cases]
    typed = _alike("CASE", [*values, default])
    if not typed:
        return literal(None)
    change = float if {value.kind for value in typed} == {Kind.FLOAT} else lambda value: value
    tests = [(test, value.function) for test, value in cases]
    last = default.function

    def choice(row: Row) -> Any:
        function = next((function for test, function in tests if test(row)), last)
        value = function(row)
        return None if value is None else change(value)

    return Typed(choice, typed[0].kind, tick=typed[0].tick)


def converted(value: Typed, wanted: CastType) -> Typed:
    """``CAST(value AS wanted)``; NULL if the value is not one of that type."""
    kind, _ = CASTS[wanted]
    if value.kind is None or value.kind is kind:
        return value
    return Typed(of_one(value.function, _CONVERSIONS[value.kind, kind]), kind)


_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_FLOAT: Final = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?")


def _text_to_integer(text: str) -> int | None:
    if len(text) > MOST_LETTERS:
        raise AskSqlError("a long number")
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and LEAST <= number <= GREATEST else None


def _text_to_float(text: str) -> float | None:
    number = float(text) if _FLOAT.fullmatch(text) else math.inf
    return number if math.isfinite(number) else None


_CONVERSIONS: Final[Mapping[tuple[Kind, Kind], Callable[[Any], Any]]] = {
    (Kind.FLOAT, Kind.INT): lambda number: int(number) if -(2.0**63) <= number < 2.0**63 else None,
    (Kind.STRING, Kind.INT): _text_to_integer,
    (Kind.BOOL, Kind.INT): int,
    (Kind.INT, Kind.FLOAT): float,
    (Kind.BOOL, Kind.FLOAT): float,
    (Kind.STRING, Kind.FLOAT): _text_to_float,
    (Kind.INT, Kind.STRING): str,
    (Kind.BOOL, Kind.STRING): lambda truth: "true" if truth else "false",
    (Kind.INT, Kind.BOOL): bool,
}


# ------------------------------------------------------------------------------------------ numbers


def _of_float(change: Callable[[float], float | None]) -> Maker:
    """The function `change` of a number as a float."""

    def make(arguments: Sequence[Typed]) -> Typed:
        (value,) = arguments
        return Typed(of_one(value.function, lambda number: change(float(number))), Kind.FLOAT)

    return make


def _abs(arguments: Sequence[Typed]) -> Typed:
    (value,) = arguments
    change = abs if value.kind is Kind.FLOAT else lambda number: fit(abs(number))
    return Typed(of_one(value.function, change), value.kind, tick=value.tick)


def _sign(arguments: Sequence[Typed]) -> Typed:
    (value,) = arguments
    return Typed(of_one(value.function, lambda x: -1 if x < 0 else 0 if x == 0 else 1), Kind.INT)


def _whole(whole: Callable[[float], int]) -> Maker:
    """A number without its fraction."""

    def make(arguments: Sequence[Typed]) -> Typed:
        (value,) = arguments
        if value.kind is Kind.INT:
            return value
        return Typed(of_one(value.function, lambda x: float(whole(x)) if math.isfinite(x) else x), Kind.FLOAT)

    return make


def _round(arguments: Sequence[Typed]) -> Typed:
    value, *digits = arguments
    if value.kind is Kind.INT:
        return value
    scale = 10.0 ** (digits[0].literal if digits else 0)  # type: ignore[operator]

    def rounded(number: float) -> float:
        scaled = abs(number * scale)
        if not scaled < 2.0**53:
            return number
        below = math.floor(scaled)
        return math.copysign(below + (scaled - below >= 0.5), number) / scale

    return Typed(of_one(value.function, rounded), Kind.FLOAT)


def _exp(number: float) -> float:
    try:
        return math.exp(number)
    except OverflowError:
        return math.inf


def _power(arguments: Sequence[Typed]) -> Typed:
    base, exponent = (argument.function for argument in arguments)

    def power(row: Row) -> float | None:
        one, other = base(row), exponent(row)
        if one is None or other is None:
            return None
        try:
            return math.pow(one, other)
        except (OverflowError, ValueError):
            raise AskSqlError("a power without a value") from None

    return Typed(power, Kind.FLOAT)


# ------------------------------------------------------------------------------------------ strings


def _of_values(kind: Kind, change: Callable[..., Any]) -> Maker:
    """The function `change` of all values; NULL if one is NULL."""

    def make(arguments: Sequence[Typed]) -> Typed:
        functions = [argument.function for argument in arguments]
        if len(functions) == 1:
            return Typed(of_one(functions[0], change), kind)

        def changed(row: Row) -> Any:
            values = [function(row) for function in functions]
            return None if None in values else change(*values)

        return Typed(changed, kind)

    return make


def _upper(text: str) -> str:
    upper = text.upper()
    if len(upper) == len(text):
        return upper
    return "".join(letter if len(letter.upper()) > 1 else letter.upper() for letter in text)


def _substring(text: str, start: int, length: int | None = None) -> str:
    first = max(start, 1) - 1
    return text[first:] if length is None else text[first : max(start + length - 1, first)]


def _div(dividend: int, divisor: int) -> int | None:
    if divisor == 0:
        return None
    quotient = abs(dividend) // abs(divisor)
    return fit(-quotient if (dividend < 0) != (divisor < 0) else quotient)


def _parsed(text: str, base: int) -> int | None:
    text = in_lower_case(text)
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or not set(digits) <= set(_DIGITS[:base]):
        return None
    number = int(text, base)
    return number if LEAST <= number <= GREATEST else None


_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


# -------------------------------------------------------------------------------------------- times


def _of_time(read: Callable[[datetime], int]) -> Maker:
    """The part of a timestamp in UTC that `read` extracts."""

    def make(arguments: Sequence[Typed]) -> Typed:
        (value,) = arguments
        moment = _moment_of(value.tick)
        return Typed(of_one(value.function, lambda ticks: read(moment(ticks))), Kind.INT)

    return make


def _moment_of(tick: Tick) -> Callable[[int], datetime]:
    per_microsecond = 1000 if tick == "ns" else 1

    def moment(ticks: int) -> datetime:
        micros = ticks // per_microsecond
        if not FIRST <= micros <= LAST:
            raise AskSqlError("a time without a calendar")
        return moment_of(micros)

    return moment


def _epoch(arguments: Sequence[Typed]) -> Typed:
    (value,) = arguments
    per_second = 1e9 if value.tick == "ns" else 1e6
    return Typed(of_one(value.function, lambda ticks: ticks / per_second), Kind.FLOAT)


def _date_trunc(arguments: Sequence[Typed]) -> Typed:
    unit, value = arguments
    moment, name = _moment_of(value.tick), str(unit.literal)

    def truncated(ticks: int) -> int:
        begun = moment(ticks)
        if name in _LENGTHS:
            micros = micros_of(begun)
            length, origin = _LENGTHS[name]
            return micros - (micros - origin) % length
        month = (begun.month - 1) // _MONTHS[name] * _MONTHS[name] + 1
        return micros_of(datetime(begun.year, month, 1, tzinfo=UTC))

    return Typed(of_one(value.function, truncated), Kind.TIMESTAMP)


_PARTS: Final[Mapping[str, Maker]] = {
    **{
        part: _of_time(operator.attrgetter(part))
        for part in ("year", "month", "day", "hour", "minute", "second")
    },
    "quarter": _of_time(lambda moment: (moment.month + 2) // 3),
    "week": _of_time(lambda moment: moment.isocalendar().week),
    "day_of_week": _of_time(datetime.isoweekday),
    "date_trunc": _date_trunc,
}
BEYOND_PYTHON: Final = frozenset({"abs", "div", "power", *_PARTS})
"""Functions with values that are an error or are left to SQL."""
_FUNCTIONS: Final[Mapping[str, Maker]] = {
    **_PARTS,
    "abs": _abs,
    "sign": _sign,
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": _round,
    "sqrt": _of_float(lambda number: None if number < 0 else math.sqrt(number)),
    "ln": _of_float(lambda number: None if number <= 0 else math.log(number)),
    "exp": _of_float(_exp),
    "power": _power,
    "length": _of_values(Kind.INT, len),
    "lower": _of_values(Kind.STRING, in_lower_case),
    "upper": _of_values(Kind.STRING, _upper),
    "trim": _of_values(Kind.STRING, lambda text: text.strip(" ")),
    "substring": _of_values(Kind.STRING, _substring),
    "starts_with": _of_values(Kind.BOOL, str.startswith),
    "ends_with": _of_values(Kind.BOOL, str.endswith),
    "contains": _of_values(Kind.BOOL, lambda text, part: part in text),
    "replace": _of_values(Kind.STRING, lambda text, old, new: text.replace(old, new) if old else text),
    "concat": _of_values(Kind.STRING, lambda *texts: "".join(texts)),
    "div": _of_values(Kind.INT, _div),
    "position": _of_values(Kind.INT, lambda text, part: text.find(part) + 1),
    "last_position": _of_values(Kind.INT, lambda text, part: text.rfind(part) + 1),
    "parse_integer": _of_values(Kind.INT, _parsed),
    "split_part": _of_values(
        Kind.STRING, lambda text, delimiter, place: dict(enumerate(text.split(delimiter), 1)).get(place, "")
    ),
    "epoch": _epoch,
    "seconds": lambda arguments: seconds(arguments[0]),
}
