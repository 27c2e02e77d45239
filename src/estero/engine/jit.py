"""Kernels: functions of Python over integers and arrays, which are compiled as soon as that pays.

State is arrays either way, so each call may go by itself: `patience` says how. Numba is not loaded before
some kernel is compiled, or read from disk.

Numba computes with 64 bits; NumPy, and so a kernel as Python runs it, with those of the column that a number
was read from. So nothing is computed with numbers of 8 or 16 bits, which are read to be tested, and a sum
over a column of 32 bits begins with ``np.int64(0)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from threading import Lock
from types import FunctionType
from typing import Any

import numpy as np

from estero.engine.patience import patience


def kernel(function: Any) -> Any:
    """For kernels, which allocate nothing."""
    return Kernel(function)


def inlined(function: Any) -> Any:
    """For the frequent small steps of a kernel: LLVM puts them in place of each call.

    Rare steps are left to calls. Types are worked out once for each step and not at each call, as they would
    be where Numba inlines.
    """
    return Kernel(function, forceinline=True)


class Kernel:
    """A kernel as Python calls it."""

    def __init__(self, function: Any, **options: bool) -> None:
        update_wrapper(self, function)
        self._function, self._options = function, options
        self._run = self._undecided

    def __call__(self, *arguments: Any) -> Any:
        """What the function returns."""
        return self._run(*arguments)

    def _undecided(self, *arguments: Any) -> Any:
        if patience.is_unspent:
            return self.interpret(*arguments)
        self._run = self.compiled
        return self._run(*arguments)

    def interpret(self, *arguments: Any) -> Any:
        """What the function returns, and nothing of it is compiled; integers wrap around silently, too."""
        with np.errstate(over="ignore", invalid="ignore"):
            return patience.call(self.plain, arguments)

    @cached_property
    def plain(self) -> Any:
        """The function as Python runs it; other kernels are plain functions to it."""
        function = self._function
        names = dict(function.__globals__)
        plain = FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
        self.__dict__["plain"] = plain  # those that it calls may call it
        for name in function.__code__.co_names:
            if isinstance(names.get(name), Kernel):
                names[name] = names[name].plain
        return plain

    @cached_property
    def compiled(self) -> Any:
        """What Numba makes of it."""
        from estero.engine.compiled.dispatcher import Dispatcher

        return Dispatcher(self._function, self.interpret, **self._options)

    @property
    def _numba_type_(self) -> Any:
        """What it is to the compiler of another kernel."""
        return self.compiled.part._numba_type_


_WATCHING = Lock()


@contextmanager
def watched() -> Iterator[list[Kernel]]:
    """The kernels that are called from Python in the block, each once; none of them is compiled for it.

    Those that other threads call meanwhile are among them: they return the same as ever.
    """
    called: list[Kernel] = []

    def call(kernel: Kernel, *arguments: Any) -> Any:
        if kernel not in called:
            called.append(kernel)
        return kernel.interpret(*arguments)

    with _WATCHING:
        ordinary = Kernel.__call__
        Kernel.__call__ = call  # type: ignore[assignment, method-assign]
        try:
            yield called
        finally:
            Kernel.__call__ = ordinary  # type: ignore[method-assign]
