"""What a worker of Python keeps between micro-batches: recognitions, by the states that they have written.

To restore a state takes longer than many a micro-batch: rules are planned anew. The state in Spark counts: a
recognition is used again only where the state is the very one that it has written, by no more than one turn.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final


class Kept:
    """At most so many recognitions, the last ones, by their states."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of: OrderedDict[bytes, object] = OrderedDict()

    def keep(self, state: bytes, recognition: object) -> bytes:
        """Keeps a recognition behind the state that it has written, and gives this."""
        self._of[_digest(state)] = recognition
        while len(self._of) > self._most:
            self._of.popitem(last=False)
        return state

    def taken(self, state: bytes) -> object | None:
        """The recognition that has written a state; it is given once, as it goes on from there."""
        return self._of.pop(_digest(state), None)


KEPT: Final = Kept(64)
"""Those of this process."""


def _digest(state: bytes) -> bytes:
    return hashlib.sha256(state).digest()
