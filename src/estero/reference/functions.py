"""The reference meaning of the built-in scalar functions: NULL in, NULL out, except for those that choose."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import MAX_PREC, Context, Decimal
from functools import partial

from estero.errors import DataError, QueryError
from estero.language.tree.expressions import CastType
from estero.language.tree.literals import INT_MAX, INT_MIN, Value

_SECOND = timedelta(seconds=1)
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_LENGTHS = {
    "week": timedelta(days=7),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": _SECOND,
}
_MONDAY = datetime(1, 1, 1, tzinfo=UTC)


def call_function(name: str, arguments: Sequence[Value]) -> Value:
    """The value of the built-in function `name`; NULL if an argument is, except for coalesce."""
    if name == "coalesce":
        return _coalesce(arguments)
    if name not in _FUNCTIONS:
        raise QueryError(f"unknown function {name}")
    if any(argument is None for argument in arguments):
        return None
    return _FUNCTIONS[name](*arguments)


def alike(values: Sequence[Value]) -> list[Value]:
    """The values that are not NULL; beside a float, integers become floats."""
    known = [value for value in values if value is not None]
    has_float = any(isinstance(value, float) for value in known)
    return [float(as_number(value)) if has_float else value for value in known]


def fit(number: int) -> int:
    """The number itself; raises `DataError` unless it is a 64-bit integer."""
    if not -(2**63) <= number < 2**63:
        raise DataError(f"{number} is not a 64-bit integer")
    return number


def as_number(value: Value) -> int | float:
    """The value as a number; raises `DataError` for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise DataError(f"{value!r} is not a number")


def converted(value: Value | Decimal, wanted: CastType) -> Value:
    """``CAST(value AS wanted)``: NULL for NULL and for anything that is not a value of that type."""
    match wanted, value:
        case _, None:
            return None
        case _, Decimal():
            return _decimal_converted(value, wanted)
        case "INTEGER", bool() | int():
            return int(value)
        case "INTEGER", float():
            return int(value) if -(2.0**63) <= value < 2.0**63 else None
        case "INTEGER", str():
            return _in_64_bits(int(value)) if re.fullmatch(r"[+-]?[0-9]+", value) else None
        case "FLOAT", bool() | int() | float():
            return float(value)
        case "FLOAT", str():
            is_number = re.fullmatch(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?", value)
            return _finite(float(value)) if is_number else None
        case "STRING", bool():
            return "true" if value else "false"
        case "STRING", str() | int():
            return str(value)
        case "BOOLEAN", bool() | int():
            return bool(value)
        case "TIMESTAMP", datetime():
            return value
    raise DataError(f"{value!r} cannot be cast to {wanted}")


def _decimal_converted(value: Decimal, wanted: CastType) -> Value:
    match wanted:
        case "INTEGER":
            return _in_64_bits(int(value))
        case "FLOAT":
            return float(value)
        case "STRING":
            return f"{value.normalize(Context(prec=MAX_PREC)):f}" if value else "0"
    raise DataError(f"{value!r} cannot be cast to {wanted}")


def _in_64_bits(number: int) -> int | None:
    return number if -(2**63) <= number < 2**63 else None


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _coalesce(values: Sequence[Value]) -> Value:
    """The first value that is not NULL; an integer among floats becomes a float."""
    known = alike(values)
    return known[0] if known else None


# ------------------------------------------------------------------------------------------ numbers


def _abs(value: Value) -> Value:
    number = as_number(value)
    return fit(abs(number)) if isinstance(number, int) else abs(number)


def _sign(value: Value) -> int:
    """The sign of a number; NaN is the largest number, so it is positive."""
    number = as_number(value)
    return 1 if number > 0 or math.isnan(number) else -1 if number < 0 else 0


def _whole(value: Value, whole: Callable[[float], int]) -> Value:
    number = as_number(value)
    return float(whole(number)) if isinstance(number, float) and math.isfinite(number) else number


def _round(value: Value, digits: Value = 0) -> Value:
    """The nearest number, halves away from zero; a float is multiplied, rounded and divided again."""
    number = as_number(value)
    if isinstance(number, int):
        return number
    scale = 10.0 ** as_number(digits)
    scaled = number * scale
    if not abs(scaled) < 2.0**53:
        return number
    below = math.floor(abs(scaled))
    nearest = below + (abs(scaled) - below >= 0.5)
    return math.copysign(nearest, scaled) / scale


def _sqrt(value: Value) -> float | None:
    number = float(as_number(value))
    return None if number < 0 else math.sqrt(number)


def _ln(value: Value) -> float | None:
    number = float(as_number(value))
    return None if number <= 0 else math.log(number)


def _exp(value: Value) -> float:
    try:
        return math.exp(as_number(value))
    except OverflowError:
        return math.inf


def _power(base: Value, exponent: Value) -> float:
    """A power by IEEE 754: infinite beyond the floats, NaN for a root of a negative number."""
    x, y = float(as_number(base)), float(as_number(exponent))
    is_odd = math.isfinite(y) and y == math.floor(y) and math.fmod(y, 2.0) != 0
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and is_odd else math.inf
    except ValueError:
        return math.copysign(math.inf, x if is_odd else 1.0) if x == 0 else math.nan


# ------------------------------------------------------------------------------------------ strings


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    raise DataError(f"{value!r} is not a string")


def _lower(value: Value) -> str:
    return "".join("i" if letter == "İ" else letter.lower() for letter in _text(value))


def _upper(value: Value) -> str:
    return "".join(letter.upper() if len(letter.upper()) == 1 else letter for letter in _text(value))


def _substring(value: Value, start: Value, length: Value = None) -> str:
    """The characters at the places from `start` on, as many as `length`; places before 1 have none."""
    places = enumerate(_text(value), start=1)
    first = as_number(start)
    end = math.inf if length is None else first + as_number(length)
    return "".join(letter for place, letter in places if first <= place < end)


def _replace(value: Value, old: Value, new: Value) -> str:
    return _text(value).replace(_text(old), _text(new)) if old else _text(value)


def _split_part(value: Value, delimiter: Value, place: Value) -> str:
    parts = dict(enumerate(_text(value).split(_text(delimiter)), start=1))
    return parts.get(int(as_number(place)), "")


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def _div(dividend: Value, divisor: Value) -> Value:
    """The integer quotient towards 0; NULL by 0."""
    one, other = int(as_number(dividend)), int(as_number(divisor))
    if other == 0:
        return None
    return fit(abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1))


def _parse_integer(value: Value, base: Value) -> Value:
    """The integer of a sign, if there is one, and digits; NULL for anything else, and beyond 64 bits."""
    text, known = _lower(value), _DIGITS[: int(as_number(base))]
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or not set(digits) <= set(known):
        return None
    number = 0
    for digit in digits:
        number = number * int(as_number(base)) + known.index(digit)
    number = -number if text.startswith("-") else number
    return number if INT_MIN <= number <= INT_MAX else None


# --------------------------------------------------------------------------------------------- times


def _moment(value: Value) -> datetime:
    if isinstance(value, datetime):
        return value
    raise DataError(f"{value!r} is not a timestamp")


def _part_of_time(part: str) -> Callable[[Value], Value]:
    """`part` of a timestamp on a clock in UTC."""

    def read(value: Value) -> Value:
        number: int = getattr(_moment(value), part)
        return number

    return read


def _epoch(value: Value) -> float:
    return ((_moment(value) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)) / 1e6


def _truncated(unit: Value, value: Value) -> datetime:
    moment = _moment(value)
    months = _MONTHS.get(_text(unit))
    if months is None:
        return moment - (moment - _MONDAY) % _LENGTHS[_text(unit)]
    return datetime(moment.year, (moment.month - 1) // months * months + 1, 1, tzinfo=UTC)


_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "abs": _abs,
    "sign": _sign,
    "floor": partial(_whole, whole=math.floor),
    "ceil": partial(_whole, whole=math.ceil),
    "round": _round,
    "sqrt": _sqrt,
    "ln": _ln,
    "exp": _exp,
    "power": _power,
    "length": lambda text: len(_text(text)),
    "lower": _lower,
    "upper": _upper,
    "trim": lambda text: _text(text).strip(" "),
    "substring": _substring,
    "starts_with": lambda text, part: _text(text).startswith(_text(part)),
    "ends_with": lambda text, part: _text(text).endswith(_text(part)),
    "contains": lambda text, part: _text(part) in _text(text),
    "replace": _replace,
    "concat": lambda *texts: "".join(map(_text, texts)),
    "split_part": _split_part,
    "div": _div,
    "position": lambda text, part: _text(text).find(_text(part)) + 1,
    "last_position": lambda text, part: _text(text).rfind(_text(part)) + 1,
    "parse_integer": _parse_integer,
    **{part: _part_of_time(part) for part in ("year", "month", "day", "hour", "minute", "second")},
    "quarter": lambda moment: (_moment(moment).month + 2) // 3,
    "week": lambda moment: _moment(moment).isocalendar().week,
    "day_of_week": lambda moment: _moment(moment).isoweekday(),
    "epoch": _epoch,
    "date_trunc": _truncated,
}
