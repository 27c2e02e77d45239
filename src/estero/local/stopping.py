"""A flag that a handler of signals may set: it has no lock that the handler could wait for."""

from __future__ import annotations

import time
from typing import Final

_PAUSE: Final = 0.05


class Stopping:
    """Whether to stop; as `threading.Event`, whose lock the interrupted thread itself may hold."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        """Says that everything is to stop."""
        self._is_set = True

    def is_set(self) -> bool:
        """Whether everything is to stop."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set, a number of seconds at most; whether it is."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._is_set and (end is None or time.monotonic() < end):
            time.sleep(_PAUSE if end is None else min(_PAUSE, max(0.0, end - time.monotonic())))
        return self._is_set
