"""How long kernels run as functions of Python before they are compiled: no longer than compiling would take.

Whoever rents skis until the rent is the price of a pair never pays more than twice what it takes. A kernel
that is not compiled costs some 20 µs an event, so most small inputs are through before Numba is loaded.
Looking for compiled kernels on disk has its price, and compiling them a higher one.

The variable `ESTERO_COMPILE` of the environment says otherwise: `first` compiles each kernel before it is
called first, as suits a service that must not slow down later, and `never` compiles none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from time import thread_time
from typing import Any, Final

from estero.errors import EnvironmentProblem

VARIABLE = "ESTERO_COMPILE"
"""The variable of the environment that says when kernels are compiled."""

PRICE_OF_LOOKING = 0.25
"""Seconds to load Numba, and kernels that are on disk."""
PRICE_OF_COMPILING = 2.0
"""Seconds to compile the kernels of a query, at least."""

_EVENT = 25e-6
"""Seconds for an event in kernels that are not compiled, about; more where many runs are open."""
_PORTION: Final = 100
"""So many events are worked on before it is asked again."""

_FOREVER = float("inf")
_SPENT_BEFORE = {"": 0.0, "first": _FOREVER, "never": -_FOREVER}


class Patience:
    """The seconds that this process has spent in kernels that are not compiled, or is about to spend."""

    def __init__(self, when: str) -> None:
        if when not in _SPENT_BEFORE:
            raise EnvironmentProblem(f"{VARIABLE} is {when!r}: set it to 'first' or 'never', or not at all")
        self._spent = _SPENT_BEFORE[when]
        self._foreseen = self._spent

    def compile_first(self) -> None:
        """From now on each kernel is compiled before it is called."""
        self._spent = _FOREVER

    @property
    def is_unspent(self) -> bool:
        """Whether it does not pay yet to look for kernels on disk."""
        return max(self._spent, self._foreseen) < PRICE_OF_LOOKING

    @property
    def is_left(self) -> bool:
        """Whether it does not pay yet to compile here what is not on disk."""
        return max(self._spent, self._foreseen) < PRICE_OF_COMPILING

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """The result of a function, whose time counts."""
        began = thread_time()
        try:
            return function(*arguments)
        finally:
            self._spent += thread_time() - began

    def foresee(self, events: float) -> None:
        """So many events are about to come; a number that takes more time than events counts for more."""
        self._foreseen = max(self._foreseen, self._spent + events * _EVENT)

    def portions(self, events: int) -> Iterator[tuple[int, int]]:
        """Ranges, from first to before last, of so many events: one of all where kernels are compiled."""
        self.foresee(events)
        first, portion = 0, _PORTION if self.is_left else events
        while first < events:
            last = min(first + portion, events)
            before = self._spent
            yield first, last
            first = last
            if self._spent == before or not self.is_left:
                portion = events


patience = Patience(os.environ.get(VARIABLE, ""))
"""That of this process."""
