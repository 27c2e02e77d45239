"""Kernels run as Python, in which numbers of narrow columns and places in columns are watched.

NumPy computes with as many bits as the column has that a number was read from, and machine code with 64: what
is too large wraps around in kernels that Python runs, and only there. A stream that makes it so large may be
out of reach of a test, so what is refused here is the computation, however small the numbers are. NumPy
counts negative places from the end; to machine code they are memory of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import Kernel

WIDE, TINY = 64, 16


class NarrowError(AssertionError):
    """A kernel computes with numbers of a narrow column."""


class Narrow(int):
    """A number out of a column of so many bits, or a `total` of several."""

    bits: int
    total: bool

    @staticmethod
    def of(value: int, bits: int, *, total: bool = False) -> Narrow:
        """The number, if it fits."""
        if not -(1 << bits - 1) <= value < 1 << bits:
            raise NarrowError(f"{value} does not fit in {bits} bits")
        narrow = Narrow(value)
        narrow.bits, narrow.total = bits, total
        return narrow

    def computed(self, operator: str, other: Any) -> Any:
        """What NumPy would compute; refused for tiny numbers, and where it makes totals longer."""
        if isinstance(other, np.generic) and 8 * other.dtype.itemsize == WIDE:
            return getattr(np.int64(int(self)), operator)(other)
        if not isinstance(other, int):
            return NotImplemented
        if self.bits <= TINY:
            raise NarrowError(f"{operator} of a number of {self.bits} bits")
        if "add" in operator and isinstance(other, Narrow) and (self.total or other.total):
            raise NarrowError(f"a total in {self.bits} bits: let it begin with np.int64(0)")
        value = getattr(int, operator)(self, int(other))
        total = self.total or ("add" in operator and isinstance(other, Narrow))
        return Narrow.of(value, self.bits, total=total)

    def __neg__(self) -> Any:
        return self.computed("__rsub__", 0)


def _operator(name: str) -> Any:
    return lambda narrow, other: narrow.computed(name, other)


for _name in ("add", "sub", "mul", "lshift"):
    setattr(Narrow, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(Narrow, f"__r{_name}__", _operator(f"__r{_name}__"))


class NegativePlaceError(AssertionError):
    """A kernel counts from the end of a column."""


class WatchedColumn(np.ndarray[Any, Any]):
    """A column whose places are not negative."""

    def __getitem__(self, place: Any) -> Any:
        _refuse_negative(place)
        return super().__getitem__(place)

    def __setitem__(self, place: Any, value: Any) -> None:
        _refuse_negative(place)
        super().__setitem__(place, value)


def _refuse_negative(place: Any) -> None:
    for part in place if isinstance(place, tuple) else (place,):
        if isinstance(part, int | np.integer) and part < 0:
            raise NegativePlaceError(f"place {place} of a column")


class NarrowColumn(WatchedColumn):
    """The same where numbers are `Narrow`."""

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return Narrow.of(int(found), 8 * found.dtype.itemsize) if isinstance(found, np.integer) else found


def _watched(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.view(NarrowColumn if 8 * argument.dtype.itemsize < WIDE else WatchedColumn)
    if isinstance(argument, tuple):
        parts = [_watched(each) for each in argument]
        return type(argument)(*parts) if hasattr(argument, "_fields") else tuple(parts)
    return argument


def _ordinary(result: Any) -> Any:
    if isinstance(result, tuple):
        parts = [_ordinary(each) for each in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, WatchedColumn):
        plain: NDArray[Any] = result.view(np.ndarray)
        return plain
    return int(result) if isinstance(result, Narrow) else result


def _call(kernel: Kernel, *arguments: Any) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):  # hashes wrap around, in 64 bits
        return _ordinary(kernel.function(*map(_watched, arguments)))


@contextmanager
def narrow_numbers_watched() -> Iterator[None]:
    """Kernels that Python calls in the block are not compiled, and raise `NarrowError`."""
    with patch.object(Kernel, "__call__", _call):
        yield
