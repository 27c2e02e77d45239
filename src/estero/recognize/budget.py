"""The time that questions may take: a question that exceeds its part of it is abandoned."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SECONDS: Final = 10.0
"""The time that `why_not` may enumerate by default."""


class OutOfTimeError(Exception):
    """Raised when the time of a question has passed, only where a budget was set."""


class Budget:
    """A number of seconds for several questions, each of which may take half of what the previous ones left.

    The time of a question is measured from its first `check` to its last: earlier work, such as reading the
    events, is linear in them and not limited. `clock` gives seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = seconds
        self._first: float | None = None
        self._last = 0.0

    def begin(self) -> None:
        """Starts the time of the next question."""
        if self._first is not None:
            self._left = max(0.0, self._left - (self._last - self._first))
        self._first = None

    def check(self) -> None:
        """Raises `OutOfTimeError` once the question has used up its time."""
        self._last = self._clock()
        if self._first is None:
            self._first = self._last
        if self._last - self._first > self._left / 2:
            raise OutOfTimeError
