"""Questions to one session from several threads: asked one after the other, and cancelled by their ids."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection
from time import monotonic
from typing import Any, Final, Protocol

from estero.studio.opening import Opening
from estero.studio.session import Message, Reply

CANCELLED: Final = "cancelled"


class Wish(Protocol):
    """The event by which a session is asked to stop."""

    def set(self) -> Any:
        """Asks it."""

    def clear(self) -> Any:
        """Asks it no longer."""


class Questions(ABC):
    """Answers messages one after the other, each of which can be cancelled while it waits or is answered."""

    _wish: Wish

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._state = threading.Lock()
        """Held for moments, where one of the following changes."""
        self._asked: Message | None = None
        self._cancelled_at: float | None = None
        self._waiting: list[Message] = []
        self._closed = False

    @abstractmethod
    def _answered(self, message: Message) -> Reply:
        """The reply to the message whose turn it is."""

    def ask(self, message: Message) -> Reply:
        """The reply to a message; one question after the other. To be called in a thread that may wait."""
        with self._state:
            self._waiting.append(message)
        with self._turn:
            try:
                if not self._begun(message):
                    return refused(message, CANCELLED)
                if self._closed:
                    return refused(message, "the studio has ended")
                return self._answered(message)
            finally:
                self._asked = None

    @property
    def is_asked(self) -> bool:
        """Whether a question is asked now."""
        return self._asked is not None

    @property
    def waiting(self) -> int:
        """The number of questions that wait for their turn."""
        return len(self._waiting)

    def cancel(self, ids: Collection[str] | None = None) -> None:
        """Has the question that is asked now stop.

        With `ids` it must be one with such an ``id``; questions with these that still wait are not asked.
        """
        with self._state:
            if ids is not None:
                self._waiting = [message for message in self._waiting if message.get("id") not in ids]
            if self._asked is not None and (ids is None or self._asked.get("id") in ids):
                self._cancelled_at = monotonic()
                self._wish.set()

    def close(self) -> None:
        """Answers no more."""
        self._closed = True
        self.cancel()

    def _begun(self, message: Message) -> bool:
        """Whether a question that has waited for its turn is still to be asked; then it is, from now on."""
        with self._state:
            wanted = any(one is message for one in self._waiting)
            self._waiting = [one for one in self._waiting if one is not message]
            self._wish.clear()
            self._cancelled_at = None
            self._asked = message if wanted else None
        return wanted


class Inside(Questions):
    """The questions to a session in this process: one that is cancelled stops at the next batch of events.

    For events that another process cannot be given.
    """

    def __init__(self, opening: Opening) -> None:
        super().__init__()
        self._wish = wish = threading.Event()
        self._session = opening.session(cancelled=wish.is_set)

    def _answered(self, message: Message) -> Reply:
        return self._session.answer(message)


def refused(message: Message, error: str) -> Reply:
    """The reply to a message that is not answered."""
    return {"kind": message.get("kind"), "error": error, "notes": [], "ms": 0}, []
