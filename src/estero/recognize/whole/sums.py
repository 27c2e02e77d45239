"""Exact sums and extremes by partition, and the columns and values made from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.answers.participation import text_of
from estero.recognize.whole.sets_at_hand import SMALL

_DIGITS: Final = 38
"""The digits of a decimal number of Arrow, of 128 bits."""
_MANTISSA: Final = 53
_POINT: Final = 1126
"""Every float is an integer, divided by two to this power."""


def weighted(times: NDArray[Any], values: NDArray[Any], of: NDArray[np.int64], size: int) -> NDArray[Any]:
    """The exact sums of integers by partition, values[i] times[i] times for partition of[i]: [size].

    int64 if that holds them, else objects.
    """
    if not values.size:
        return np.zeros(size, np.int64)
    rough = np.dot(times.astype(np.float64), np.abs(values.astype(np.float64)))
    kind: Any = np.int64 if object not in (times.dtype, values.dtype) and rough < SMALL else object
    times, values = times.astype(kind), values.astype(kind)
    if size == 1:
        return np.array([np.dot(times, values)], kind)
    sums = np.zeros(size, kind)
    np.add.at(sums, of, times * values)
    return sums


def added(sums: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
    """The sums plus `more`, as Python integers, for as many partitions as `more` has."""
    together = more.astype(object)
    together[: sums.size] += sums
    return together


class Sums:
    """Exact sums of numbers of one type, each multiplied by a count, by partition."""

    def __init__(self, kind: pa.DataType | None) -> None:
        self._floating = kind is not None and pa.types.is_floating(kind)
        self._scale = kind.scale if kind is not None and pa.types.is_decimal(kind) else 0
        self._exact: NDArray[Any] = np.zeros(0, object)
        self._beyond = np.zeros(0)
        """The sums of infinite values and NaN."""

    def add(self, values: NDArray[Any], times: NDArray[Any], of: NDArray[np.int64], size: int) -> None:
        """Adds values[i] times[i] times to partition of[i], of `size` partitions so far."""
        self._beyond = _grown(self._beyond, size)
        if values.dtype != np.float64:
            self._exact = added(self._exact, weighted(times, values, of, size))
            return
        finite = np.isfinite(values)
        np.add.at(self._beyond, of[~finite], values[~finite])
        values, times, of = values[finite], times[finite], of[finite]
        mantissa, exponent = np.frexp(values)
        digits = (mantissa * 2.0**_MANTISSA).astype(np.int64)
        self._exact = added(self._exact, np.zeros(size, np.int64))
        for power in np.unique(exponent).tolist():
            here = exponent == power
            sums = weighted(times[here], digits[here], of[here], size)
            nonzero = np.flatnonzero(sums)
            self._exact[nonzero] += sums[nonzero].astype(object) << (power - _MANTISSA + _POINT)

    def values(self, numbers: NDArray[Any]) -> list[Any]:
        """The sums as ints or as the nearest floats; those without decimal point for decimals; or None.

        `numbers` are the numbers of values of each.
        """
        if self._floating:
            return self._averages(numbers, numbers.astype(bool).astype(object))
        exact = added(self._exact, np.zeros(numbers.size, np.int64))
        return [sum_ if number else None for sum_, number in zip(exact, numbers, strict=True)]

    def averages(self, numbers: NDArray[Any]) -> list[float | None]:
        """The averages of `numbers` values, as the nearest floats."""
        return self._averages(numbers, numbers.astype(object))

    def _averages(self, numbers: NDArray[Any], by: NDArray[Any]) -> list[float | None]:
        one = 1 << _POINT if self._floating else 10**self._scale
        exact = added(self._exact, np.zeros(numbers.size, np.int64))
        beyond_of = _grown(self._beyond, numbers.size).tolist()
        rows = zip(exact, by, beyond_of, numbers, strict=True)
        return [_ratio(sum_, of * one, beyond) if number else None for sum_, of, beyond, number in rows]


def _grown(sums: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    return np.concatenate([sums, np.zeros(size - sums.size)])


def _ratio(exact: int, by: int, beyond: float) -> float:
    """The float nearest to a quotient, infinity if it is too large, or the sum `beyond` finite floats."""
    if beyond:
        return beyond
    try:
        return exact / by
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


class Extremes:
    """The least or the greatest numbers by partition."""

    def __init__(self, *, least: bool) -> None:
        self._least = least
        self._of = np.empty(0, np.int64)
        self._values: NDArray[Any] = np.empty(0, np.int64)

    def add(self, values: NDArray[Any], of: NDArray[np.int64]) -> None:
        """Adds numbers, values[i] to partition of[i]."""
        if not self._of.size:
            self._values = self._values.astype(values.dtype)
        every, parts = np.concatenate([self._of, of]), np.concatenate([self._values, values])
        self._of, first, places = np.unique(every, return_index=True, return_inverse=True)
        self._values = parts[first]
        choose = np.minimum if self._least else np.maximum
        choose.at(self._values, places, parts)

    def values(self, size: int) -> list[Any]:
        """The extreme of each of `size` partitions, None if there is none."""
        extremes: list[Any] = [None] * size
        for partition, value in zip(self._of.tolist(), self._values.tolist(), strict=True):
            extremes[partition] = value
        return extremes


def integers(numbers: Sequence[int | None], scale: int | None = None) -> pa.Array:
    """Integers as int64 if they fit, else as decimals, and else as text.

    With a `scale` they are the digits of decimals, with so many digits after the point.
    """
    most = max((abs(number) for number in numbers if number is not None), default=0)
    if most < 1 << 63 and scale is None:
        return pa.array(numbers, pa.int64())
    shown = [None if number is None else decimal_of(number, scale or 0) for number in numbers]
    if most < 10**_DIGITS:
        return pa.array(shown, pa.decimal128(_DIGITS, scale or 0))
    return pa.array([None if number is None else f"{number:f}" for number in shown], pa.string())


def decimal_of(number: int, scale: int) -> Decimal:
    """The decimal number with these digits, of which `scale` are after the point."""
    return Decimal((int(number < 0), tuple(map(int, text_of(abs(number)))), -scale))


def times_of(ticks: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """Ticks as durations of the unit that timestamps of type `kind` have, as integers for other times."""
    numbers = pa.array(ticks, pa.int64())
    return numbers.cast(pa.duration(kind.unit)) if pa.types.is_timestamp(kind) else numbers
