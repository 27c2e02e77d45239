"""Questions to one session from several threads: answered one after the other, and cancelled by ids."""

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
    """The event that requests a session to stop."""

    def set(self) -> Any:
        """Requests the session to stop."""

    def clear(self) -> Any:
        """Withdraws the request."""


class Questions(ABC):
    """Answers messages one after the other, each of which can be cancelled while it waits or is answered."""

    _wish: Wish

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._state = threading.Lock()
        """Held briefly while one of the following changes."""
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
        """Whether a question is being answered."""
        return self._asked is not None

    @property
    def waiting(self) -> int:
        """The number of questions that wait for their turn."""
        return len(self._waiting)

    def cancel(self, ids: Collection[str] | None = None) -> None:
        """Stops the question that is being answered.

        With `ids` it must have one of these as its ``id``; waiting questions with these ids are not answered.
        """
        with self._state:
            if ids is not None:
                self._waiting = [message for message in self._waiting if message.get("id") not in ids]
            if self._asked is not None and (ids is None or self._asked.get("id") in ids):
                self._cancelled_at = monotonic()
                self._wish.set()

    def close(self) -> None:
        """Stops answering."""
        self._closed = True
        self.cancel()

    def _begun(self, message: Message) -> bool:
        """Whether a question that has waited for its turn is still to be answered; if so, it now begins."""
        with self._state:
            wanted = any(one is message for one in self._waiting)
            self._waiting = [one for one in self._waiting if one is not message]
            self._wish.clear()
            self._cancelled_at = None
            self._asked = message if wanted else None
        return wanted


class Inside(Questions):
    """The questions to a session in this process: a cancelled one stops at the next batch of events.

    It is for events that cannot be given to another process.
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
