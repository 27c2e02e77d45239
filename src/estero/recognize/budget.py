"""Time that questions may take: one that is not answered in its part of it is given up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SECONDS: Final = 10.0
"""How long `why_not` may enumerate unless it is told."""


class OutOfTimeError(Exception):
    """The time of a question has passed; raised to those only who set it."""


class Budget:
    """Some seconds for several questions, each of which may take half of what those before it have left.

    A question takes time from its first `check` to its last: what comes before, such as reading the events,
    is linear in them and may take as long as it takes. `clock` gives seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = seconds
        self._first: float | None = None
        self._last = 0.0

    def begin(self) -> None:
        """Gives the next question its time."""
        if self._first is not None:
            self._left = max(0.0, self._left - (self._last - self._first))
        self._first = None

    def check(self) -> None:
        """Raises `OutOfTimeError` once the question has taken its time."""
        self._last = self._clock()
        if self._first is None:
            self._first = self._last
        if self._last - self._first > self._left / 2:
            raise OutOfTimeError
