"""Recognitions that a Python worker keeps between micro-batches, by the states that they have written.

Restoring a state takes longer than many micro-batches, because rules are planned anew. The state in Spark is
authoritative: a recognition is reused only if the state is exactly the one it has written, and by only one
turn.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final


class Kept:
    """A limited number of recognitions, the latest ones, by their states."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of: OrderedDict[bytes, object] = OrderedDict()

    def keep(self, state: bytes, recognition: object) -> bytes:
        """Keeps a recognition under the state that it has written, and returns that state."""
        self._of[_digest(state)] = recognition
        while len(self._of) > self._most:
            self._of.popitem(last=False)
        return state

    def taken(self, state: bytes) -> object | None:
        """The recognition that has written a state; it is returned once, because it continues from there."""
        return self._of.pop(_digest(state), None)


KEPT: Final = Kept(64)
"""The recognitions of this process."""


def _digest(state: bytes) -> bytes:
    return hashlib.sha256(state).digest()
