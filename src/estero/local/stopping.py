"""A flag that a signal handler may set, without a lock for which the handler could wait."""

from __future__ import annotations

import time
from typing import Final

_PAUSE: Final = 0.05


class Stopping:
    """A flag like `threading.Event`, whose lock the interrupted thread itself may hold."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        """Requests that everything stops."""
        self._is_set = True

    def is_set(self) -> bool:
        """Whether everything should stop."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the flag is set, for at most a number of seconds; returns whether it is."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._is_set and (end is None or time.monotonic() < end):
            time.sleep(_PAUSE if end is None else min(_PAUSE, max(0.0, end - time.monotonic())))
        return self._is_set
