"""The reference meaning of the built-in scalar functions. NULL in, NULL out, except for coalesce."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from estero.errors import DataError, QueryError
from estero.language.tree.literals import Value


def call_function(name: str, arguments: Sequence[Value]) -> Value:
    """The value of the built-in function `name`; NULL if an argument is, except for coalesce."""
    if name == "coalesce":
        return _coalesce([argument for argument in arguments if argument is not None])
    if name not in _FUNCTIONS:
        raise QueryError(f"there is no function {name}")
    if any(argument is None for argument in arguments):
        return None
    return _FUNCTIONS[name](*arguments)


def fit(number: int) -> int:
    """`number`, if it is a 64-bit integer."""
    if not -(2**63) <= number < 2**63:
        raise DataError(f"{number} is not a 64-bit integer")
    return number


def _coalesce(known: Sequence[Value]) -> Value:
    """The first; beside a float, an integer becomes one."""
    if not known:
        return None
    return float(as_number(known[0])) if any(isinstance(each, float) for each in known) else known[0]


def _abs(value: Value) -> Value:
    number = as_number(value)
    return fit(abs(number)) if isinstance(number, int) else abs(number)


def _rounded(value: Value, whole: Callable[[float], int]) -> Value:
    number = as_number(value)
    return float(whole(number)) if isinstance(number, float) and math.isfinite(number) else number


def _length(value: Value) -> Value:
    """The number of code points."""
    if isinstance(value, str):
        return len(value)
    raise DataError(f"{value!r} is not a string")


def _part_of_time(part: str) -> Callable[[Value], Value]:
    """`part` of a timestamp on a clock in UTC."""

    def read(value: Value) -> Value:
        if not isinstance(value, datetime):
            raise DataError(f"{value!r} is not a timestamp")
        number: int = getattr(value, part)
        return number

    return read


def as_number(value: Value) -> int | float:
    """`value` as a number; anything but one is an error."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise DataError(f"{value!r} is not a number")


_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "abs": _abs,
    "floor": partial(_rounded, whole=math.floor),
    "ceil": partial(_rounded, whole=math.ceil),
    "length": _length,
    **{part: _part_of_time(part) for part in ("year", "month", "day", "hour", "minute", "second")},
}
